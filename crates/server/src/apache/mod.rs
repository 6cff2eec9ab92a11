//! A private instance of the system's Apache httpd: found, configured, tested, started, and asked what is in force.
//!
//! The order of a start is the order of the files: `install` looks at the machine, `render` writes the
//! configuration, `refuse` and `check` judge it, the latter by asking Apache, `instance` starts it, `settings` reads back what runs.

mod check;
mod install;
mod instance;
mod refuse;
mod render;
mod settings;

pub(crate) use install::Install;
pub(crate) use instance::ApacheControl;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Apache's name in messages.
pub(crate) const SERVER: &str = "Apache";

/// A short call of Apache's program, to ask it something. In a process group of its own: Ctrl-C at the terminal is for us, and would
/// make a half answer of it.
pub(crate) fn asking(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").process_group(0);
    command
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
}
