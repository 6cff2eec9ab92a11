//! The script that takes the program in on the other machine, and what it says meanwhile.

use crate::program::Program;

const SCRIPT: &str = include_str!("take-in.sh");
/// Before everything that the script says; what else comes is the account's own greeting.
const MARK: &str = "webdyno-remote: ";

/// A line of the script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    /// What the machine is: kernel and processor.
    Machine(&'a str),
    /// The program is not there; it would go into this folder.
    Need(&'a str),
    /// There is no folder for it, and why.
    No(&'a str),
    /// So many bytes of it arrived, or all of them and something is wrong, in that folder.
    Short(&'a str),
    /// From here on frames follow.
    Start,
    /// None of ours.
    Greeting,
}

/// What the other machine's shell is told to run.
pub(crate) fn command(program: &Program) -> String {
    let script = SCRIPT.replace("SUM", &program.sum).replace("SIZE", &program.bytes.len().to_string());
    debug_assert!(!script.contains('\''), "the script stands in single quotes");
    format!("exec sh -c '{script}'")
}

/// Reads a line.
pub(crate) fn said(line: &str) -> Said<'_> {
    let Some((_, said)) = line.trim_end().split_once(MARK) else { return Said::Greeting };
    let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
    match word {
        "machine" => Said::Machine(rest),
        "need" => Said::Need(rest),
        "no" => Said::No(rest.trim_end_matches([';', ' '])),
        "short" => Said::Short(rest),
        "start" => Said::Start,
        _ => Said::Greeting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_told_from_the_script() {
        assert_eq!(said("Welcome!\n"), Said::Greeting);
        assert_eq!(said("webdyno-remote: machine Linux x86_64\n"), Said::Machine("Linux x86_64"));
        // A greeting need not end its line.
        assert_eq!(said("Hi webdyno-remote: start\n"), Said::Start);
        assert_eq!(said("webdyno-remote: no /a is full; /b is, too; \n"), Said::No("/a is full; /b is, too"));
    }

    #[test]
    fn the_script_survives_single_quotes() {
        let program = Program { bytes: vec![0; 3], sum: "ab".to_owned() };
        let command = command(&program);
        assert_eq!(command.matches('\'').count(), 2);
        assert!(command.contains("head -c 3 >") && command.contains("generator-ab\""), "{command}");
    }
}
