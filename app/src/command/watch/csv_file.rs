//! The file of `--output`: opened as dstat opens it, whole rows at all times, and a full disk is no reason to end.

use crate::say::{count, without_numbers};
use std::fs::File;
use std::io::Write;

/// The file, and how much of it is whole rows.
#[derive(Debug)]
pub(super) struct CsvFile {
    path: String,
    file: File,
    /// Its length after the last whole row; `None` for what has no length, such as a pipe.
    whole: Option<u64>,
    /// What goes before the next row, because it has not been written yet.
    headings: String,
    /// Rows that could not be written since the last one that could.
    missing: u64,
}

impl CsvFile {
    /// Opens a file to append to it; true when it was there before.
    pub(super) fn open(path: &str) -> anyhow::Result<(CsvFile, bool)> {
        let was_there = std::path::Path::new(path).exists();
        let opened = File::options().append(true).create(true).open(path);
        let (file, kind) = opened.and_then(|file| file.metadata().map(|kind| (file, kind))).map_err(|error| {
            // The error stays one of the environment, by which the exit code goes.
            let line = format!("cannot write {path}: {error}; give --output a file that can be written");
            std::io::Error::new(error.kind(), line)
        })?;
        let whole = kind.is_file().then_some(kind.len());
        Ok((CsvFile { path: path.to_owned(), file, whole, headings: String::new(), missing: 0 }, was_there))
    }

    /// Headings, to be written with the first row for which there is room: without them nobody knows what the rows tell.
    pub(super) fn head(&mut self, headings: String) {
        self.headings = headings;
    }

    /// Appends whole rows. What must be said about it is returned: once when rows begin to be missing, once when they no longer are.
    pub(super) fn append(&mut self, rows: &str) -> Option<String> {
        let text = self.headings.clone() + rows;
        match self.file.write_all(text.as_bytes()) {
            Ok(()) => {
                self.headings.clear();
                self.whole = self.whole.map(|whole| whole + text.len() as u64);
                let missing = std::mem::take(&mut self.missing);
                (missing > 0).then(|| format!("{} is written again, with {} missing", self.path, count(missing, "row")))
            }
            Err(error) => {
                // Half a row would spoil the next one. If even this fails, there is nothing better to do.
                let _ = self.whole.map(|whole| self.file.set_len(whole));
                self.missing += 1;
                let why = without_numbers(&error.to_string());
                (self.missing == 1)
                    .then(|| format!("cannot write {}: {why}; its rows are missing until there is room", self.path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_costs_rows_and_one_line() {
        let (mut full, was_there) = CsvFile::open("/dev/full").unwrap();
        assert!(was_there);
        let said = "cannot write /dev/full: No space left on device; its rows are missing until there is room";
        assert_eq!(full.append("1,2\n").as_deref(), Some(said));
        assert_eq!(full.append("3,4\n"), None);
        let folder = tempfile::tempdir().unwrap();
        let room = folder.path().join("room.csv");
        full.file = File::create(&room).unwrap();
        let said = "/dev/full is written again, with 2 rows missing";
        assert_eq!(full.append("5,6\n").as_deref(), Some(said));
        assert_eq!(full.append("7,8\n"), None);
        assert_eq!(std::fs::read_to_string(room).unwrap(), "5,6\n7,8\n");
    }

    #[test]
    fn headings_wait_for_room_as_well() {
        let (mut full, _) = CsvFile::open("/dev/full").unwrap();
        full.head("\"a\",\"b\"\n".to_owned());
        assert!(full.append("1,2\n").is_some());
        let folder = tempfile::tempdir().unwrap();
        let room = folder.path().join("room.csv");
        full.file = File::create(&room).unwrap();
        let said = "/dev/full is written again, with 1 row missing";
        assert_eq!(full.append("3,4\n").as_deref(), Some(said));
        assert_eq!(full.append("5,6\n"), None);
        assert_eq!(std::fs::read_to_string(room).unwrap(), "\"a\",\"b\"\n3,4\n5,6\n");
    }

    #[test]
    fn a_file_that_is_there_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv").display().to_string();
        let (mut first, was_there) = CsvFile::open(&path).unwrap();
        assert!(!was_there);
        first.append("1\n");
        let (mut second, was_there) = CsvFile::open(&path).unwrap();
        assert!(was_there);
        second.append("2\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n2\n");
        let error = CsvFile::open("/no/such/folder/a.csv").unwrap_err();
        assert!(format!("{error:#}").starts_with("cannot write /no/such/folder/a.csv: No such file"), "{error:#}");
    }
}
