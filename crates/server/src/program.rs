//! Programs of this machine: finding one, and asking it something.

use crate::ServerError;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// How long an answer may take: a server that reads its configuration may ask for names of hosts.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a path leads to a program.
pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// The first program of one of these names along `path` (as in `$PATH`), and then in further folders.
pub(crate) fn find(names: &[&str], path: &OsStr, further: &[&str]) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).chain(further.iter().map(PathBuf::from));
    folders.flat_map(|folder| names.iter().map(move |name| folder.join(name))).find(|program| is_program(program))
}

/// A call of a server's program to [`ask`] it something, in English, where Ctrl-C at the terminal and questions to it do not reach.
pub(crate) fn asking(program: &Path) -> Command {
    let mut command = host::call(program);
    command.env("LC_ALL", "C");
    command
}

/// What a program answers when it is called.
///
/// # Errors
/// When it cannot be run, or does not end.
pub(crate) fn ask(command: &mut Command) -> Result<Output, ServerError> {
    ask_within(command, PATIENCE)
}

fn ask_within(command: &mut Command, patience: Duration) -> Result<Output, ServerError> {
    let program = PathBuf::from(command.get_program());
    let host::Said { status, stdout, stderr } =
        host::ask(command, patience).map_err(ServerError::io("run", &program))?;
    match status {
        Some(status) => Ok(Output { status, stdout, stderr }),
        None => Err(ServerError::Hangs {
            call: words(command),
            patience,
            said: String::from_utf8_lossy(&stderr).trim_end().lines().next_back().unwrap_or_default().to_owned(),
        }),
    }
}

/// A call as it would be typed into a shell, but for its environment.
fn words(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| for_a_shell(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn for_a_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What to do about what was said, where a file may not be read; nothing where it is something else.
pub(crate) fn if_denied(said: &str) -> &'static str {
    if said.contains("ermission denied") { "; run webdyno as root, who may read it" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = asking(Path::new("/bin/sh"));
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_terminal_reaches_no_question() {
        let script = "read -r pid name state parent group session rest </proc/$$/stat; echo $pid $group $session";
        let told = ask(&mut shell(script)).unwrap().stdout;
        let told = String::from_utf8(told).unwrap();
        let numbers: Vec<&str> = told.split_whitespace().collect();
        assert!(numbers.len() == 3 && numbers.iter().all(|number| *number == numbers[0]), "{told}");
        // As for the password of a key.
        let asked = ask(&mut shell("read -r password </dev/tty && echo \"$password\"")).unwrap();
        assert!(!asked.status.success() && asked.stdout.is_empty() && !asked.stderr.is_empty(), "{asked:?}");
    }

    #[test]
    fn what_never_ends_is_ended_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("nobody writes");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let late = ask_within(shell("cat \"$1\"").arg("sh").arg(&pipe), Duration::ZERO).unwrap_err().to_string();
        let call = format!("`/bin/sh -c 'cat \"$1\"' sh '{}'`", pipe.display());
        assert!(late.starts_with(&format!("{call} had not ended after 0 s and was killed")), "{late}");
        let hangs = ServerError::Hangs {
            call: "nginx -T".to_owned(),
            patience: PATIENCE,
            said: "Enter PEM pass phrase:".to_owned(),
        };
        assert_eq!(
            hangs.to_string(),
            "`nginx -T` had not ended after 60 s and was killed (it said: Enter PEM pass phrase:); run it yourself to see what it \
             waits for, such as a password, a name server or a file on a network"
        );
    }

    #[test]
    fn a_call_can_be_pasted() {
        let check = |word: &str, expected: &str| assert_eq!(for_a_shell(word), expected);
        check("/usr/sbin/nginx", "/usr/sbin/nginx");
        check("a b", "'a b'");
        check("", "''");
        check("exec \"$@\"", "'exec \"$@\"'");
        check("it's", r"'it'\''s'");
    }

    #[test]
    fn what_cannot_be_run_is_named() {
        let why = ask(&mut asking(Path::new("/none"))).unwrap_err().to_string();
        assert!(why.starts_with("cannot run /none: "), "{why}");
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
