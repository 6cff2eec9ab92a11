//! Programs of this machine: finding one, and asking it something.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether a path leads to a program.
pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// The first program of one of these names along `path` (as in `$PATH`), and then in further folders.
pub(crate) fn find(names: &[&str], path: &OsStr, further: &[&str]) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).chain(further.iter().map(PathBuf::from));
    folders.flat_map(|folder| names.iter().map(move |name| folder.join(name))).find(|program| is_program(program))
}

/// A short call of a server's program, to ask it something. In a process group of its own: Ctrl-C at the terminal is for us, and would
/// make a half answer of it.
pub(crate) fn asking(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").process_group(0);
    command
}

/// What to do about what was said, where a file may not be read; nothing where it is something else.
pub(crate) fn if_denied(said: &str) -> &'static str {
    if said.contains("ermission denied") { "; run webdyno as root, who may read it" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_reaches_no_question() {
        let script = "read -r pid name state parent group rest < /proc/$$/stat; echo $pid $group";
        let output = asking(Path::new("/bin/sh")).args(["-c", script]).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let (pid, group) = told.trim().split_once(' ').unwrap();
        assert_eq!(pid, group);
    }

    #[test]
    fn the_first_folder_with_one_of_the_names_decides() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mode) in [("a/httpd", 0o755), ("b/apache2", 0o755), ("a/apache2", 0o644)] {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        let path = std::env::join_paths([&a, &b]).unwrap();
        assert_eq!(find(&["apache2", "httpd"], &path, &[]), Some(a.join("httpd")));
        assert_eq!(find(&["apache2"], OsStr::new(""), &[b.to_str().unwrap()]), Some(b.join("apache2")));
        assert_eq!(find(&["nginx"], &path, &[]), None);
    }
}
