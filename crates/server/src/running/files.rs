//! Files of a configuration: names with wildcards, and text that is read once and said to be missing when it is.

use crate::lossy::read_lossy;
use std::fs;
use std::path::{Path, PathBuf};

/// No configuration has more files or is nested deeper; what would be is a circle.
const MOST_FILES: usize = 2000;
/// The longest of them.
const LONGEST: u64 = 4 << 20;

/// Files read so far.
#[derive(Debug, Default)]
pub(super) struct Files {
    read: usize,
    /// Those that could not be read, and why.
    pub(super) unread: Vec<String>,
    /// When the youngest of them was changed, in seconds since 1970, and which it is.
    pub(super) youngest: Option<(u64, PathBuf)>,
}

impl Files {
    /// The text of a file.
    pub(super) fn text(&mut self, path: &Path) -> Option<String> {
        use std::os::unix::fs::MetadataExt;
        self.read += 1;
        if self.read > MOST_FILES {
            return None;
        }
        // A pipe or a device would be waited for.
        let facts = fs::metadata(path).and_then(|facts| {
            if facts.is_file() && facts.len() <= LONGEST {
                Ok(facts)
            } else {
                Err(std::io::Error::other("not a file of a configuration"))
            }
        });
        match facts.and_then(|facts| Ok((facts, read_lossy(path)?))) {
            Ok((facts, text)) => {
                let changed = u64::try_from(facts.mtime()).unwrap_or(0);
                if self.youngest.as_ref().is_none_or(|(at, _)| *at < changed) {
                    self.youngest = Some((changed, path.to_owned()));
                }
                Some(text)
            }
            Err(error) => {
                self.unread.push(format!("{}: {error}", path.display()));
                None
            }
        }
    }
}

/// The files that a name with wildcards stands for, in order; a folder stands for all that is in it when `whole_folders`.
pub(crate) fn expand(pattern: &Path, whole_folders: bool) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let part = part.as_os_str();
        let text = part.to_string_lossy();
        if !text.contains(['*', '?', '[']) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let inside = |folder: &PathBuf| {
            let mut names: Vec<PathBuf> = fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .filter(|entry| fits(text.as_bytes(), entry.file_name().as_encoded_bytes()))
                .map(|entry| entry.path())
                .collect();
            names.sort_unstable();
            names
        };
        found = found.iter().flat_map(inside).collect();
    }
    found.into_iter().flat_map(|path| if whole_folders && path.is_dir() { below(&path) } else { vec![path] }).collect()
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    names.sort_unstable();
    names.into_iter().flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

/// fnmatch(3) with `*`, `?` and `[abc]`; a leading dot must be written.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    fn rest(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', more)), _) => (0..=name.len()).any(|skip| rest(more, &name[skip..])),
            (Some((b'?', more)), Some((_, left))) => rest(more, left),
            (Some((b'[', more)), Some((first, left))) => match more.iter().position(|&byte| byte == b']') {
                Some(end) => one_of(&more[..end], *first) && rest(&more[end + 1..], left),
                None => *first == b'[' && rest(more, left),
            },
            (Some((byte, more)), Some((first, left))) => byte == first && rest(more, left),
            _ => false,
        }
    }
    (name.first() != Some(&b'.') || pattern.first() == Some(&b'.')) && rest(pattern, name)
}

fn one_of(set: &[u8], byte: u8) -> bool {
    let (set, wanted) = match set.split_first() {
        Some((b'!' | b'^', rest)) => (rest, false),
        _ => (set, true),
    };
    let inside = set.contains(&byte) || set.windows(3).any(|w| w[1] == b'-' && (w[0]..=w[2]).contains(&byte));
    inside == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        let check = |pattern: &str, name: &str, expected| {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        };
        check("*.conf", "a.conf", true);
        check("*.conf", ".a.conf", false);
        check("*.conf", "a.conf.bak", false);
        check("[0-9]*", "000-default", true);
        check("[!0-9]*", "000-default", false);
        check("a?c", "abc", true);
        check("*", "", true);
    }

    #[test]
    fn names_with_wildcards_in_folders_too() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b/x.conf", "a/y.conf", "a/z.txt"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let names = |pattern: &str, whole: bool| -> Vec<String> {
            let found = expand(&folder.path().join(pattern), whole);
            found.iter().map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string()).collect()
        };
        assert_eq!(names("*/*.conf", false), ["a/y.conf", "b/x.conf"]);
        assert_eq!(names("a", true), ["a/y.conf", "a/z.txt"]);
        assert_eq!(names("none*", true), Vec::<String>::new());
        let mut files = Files::default();
        assert!(files.text(folder.path()).is_none() && files.unread.len() == 1);
    }
}
