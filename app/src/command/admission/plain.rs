//! Files that a server names are opened with care: the server may be in the wrong hands, and webdyno be run by root.

use anyhow::{Context, bail, ensure};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Written by more than its owner.
const OTHERS: u32 = 0o022;
/// Nobody removes or renames what is another's.
const STICKY: u32 = 0o1000;

/// The text of a regular file of at most so many bytes; `None` when there is nothing. No pipe is waited for, no link followed.
pub(super) fn read(file: &Path, most: u64) -> anyhow::Result<Option<(String, Metadata)>> {
    let cannot = || format!("cannot read {}", file.display());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = match rustix::fs::open(file, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => bail!("{} is a symbolic link, which is not believed: name the file itself", file.display()),
        Err(error) => return Err(std::io::Error::from(error)).with_context(cannot),
    };
    let facts = opened.metadata().with_context(cannot)?;
    ensure!(facts.is_file(), "{} is not a regular file", file.display());
    let mut bytes = Vec::new();
    opened.take(most + 1).read_to_end(&mut bytes).with_context(cannot)?;
    ensure!(bytes.len() as u64 <= most, "{} is longer than {most} bytes", file.display());
    let text = String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", file.display()))?;
    Ok(Some((text, facts)))
}

/// Whether nobody but root and who runs this can have put something there, or can put something in its place.
pub(super) fn believe(file: &Path, facts: &Metadata) -> anyhow::Result<()> {
    ensure!(file.is_absolute(), "{} is not an absolute path: the server would not believe it", file.display());
    believe_one(file, facts, OTHERS)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let folder = fs::canonicalize(folder).with_context(|| format!("there is no folder {}", folder.display()))?;
    for folder in folder.ancestors() {
        let facts = fs::symlink_metadata(folder).with_context(|| format!("cannot look at {}", folder.display()))?;
        believe_one(folder, &facts, if facts.mode() & STICKY == 0 { OTHERS } else { 0 })?;
    }
    Ok(())
}

fn believe_one(path: &Path, facts: &Metadata, others: u32) -> anyhow::Result<()> {
    let caller = rustix::process::geteuid().as_raw();
    let (path, owner) = (path.display(), facts.uid());
    ensure!(owner == 0 || owner == caller, "{path} belongs to user {owner}, neither root nor you: nothing is changed");
    ensure!(facts.mode() & others == 0, "{path} can be written by others than its owner: nothing is changed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_is_no_plain_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let check = |file: &Path, expected: &str| {
            let error = format!("{:#}", read(file, 4).unwrap_err());
            assert!(error.contains(expected), "{error}");
        };
        assert!(read(&file, 4).unwrap().is_none());
        fs::write(&file, "four").unwrap();
        assert_eq!(read(&file, 4).unwrap().unwrap().0, "four");
        fs::write(&file, "fives").unwrap();
        check(&file, "is longer than 4 bytes");
        fs::write(&file, b"\xff").unwrap();
        check(&file, "is not UTF-8 text");
        check(folder.path(), "is not a regular file");
        symlink("file", folder.path().join("link")).unwrap();
        check(&folder.path().join("link"), "is a symbolic link");
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        check(&pipe, "is not a regular file");
    }

    #[test]
    fn what_others_can_write_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let check = |bits: u32, folder_bits: u32, expected: Result<(), &str>| {
            fs::set_permissions(&file, Permissions::from_mode(bits)).unwrap();
            fs::set_permissions(folder.path(), Permissions::from_mode(folder_bits)).unwrap();
            let found = believe(&file, &fs::metadata(&file).unwrap()).map_err(|error| error.to_string());
            match expected {
                Ok(()) => found.unwrap(),
                Err(part) => assert!(found.unwrap_err().contains(part)),
            }
        };
        check(0o644, 0o755, Ok(()));
        check(0o664, 0o755, Err("file can be written by others"));
        check(0o646, 0o755, Err("file can be written by others"));
        check(0o644, 0o775, Err("can be written by others"));
        check(0o644, 0o1777, Ok(()));
        assert!(believe(Path::new("control"), &fs::metadata(&file).unwrap()).is_err());
    }
}
