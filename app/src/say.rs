//! Standard error and standard output, to which nobody may be listening any more: a closed terminal or pipe must not end a run.

use std::fmt::Display;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One line for the user.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Text as it is, which brings its own line breaks.
pub(crate) fn say_part(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Text on standard output, at once. Whoever closed the pipe has seen enough.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// One line in the name of webdyno, without the numbers that the standard library puts behind the kernel's words.
pub(crate) fn tell(what: impl Display) {
    let line = without_numbers(&what.to_string());
    match &mut *held() {
        Some(lines) => lines.push(line),
        None => say(&format!("webdyno: {line}")),
    }
}

/// Lines that wait until a full screen is no longer in their way.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on lines are kept back: they would stand in the middle of a screen.
pub(crate) fn hold() {
    held().get_or_insert_default();
}

/// What was kept back so far.
pub(crate) fn kept_back() -> Vec<String> {
    held().clone().unwrap_or_default()
}

/// Says what was kept back, and from now on everything at once.
pub(crate) fn let_go() {
    let lines = held().take().unwrap_or_default();
    lines.iter().for_each(tell);
}

/// An error and its causes in one line, each once: some say their cause themselves.
pub(crate) fn with_causes(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |told, cause| match cause.to_string() {
        cause if told.is_empty() => cause,
        cause if told.contains(&cause) => told,
        cause => format!("{told}: {cause}"),
    })
}

pub(crate) fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        told + rest.strip_prefix(')').unwrap_or(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("no port").context("cannot start: no port; choose one").context("run");
        assert_eq!(with_causes(&error), "run: cannot start: no port; choose one");
        assert_eq!(with_causes(&anyhow::anyhow!("a").context("b")), "b: a");
    }

    #[test]
    fn the_kernels_numbers_are_left_out() {
        let check = |text: &str, expected: &str| assert_eq!(without_numbers(text), expected);
        check(
            "cannot open /x: Permission denied (os error 13); a: b (os error 2)",
            "cannot open /x: Permission denied; a: b",
        );
        check("refused (Permission denied (os error 13)): late", "refused (Permission denied): late");
        check("nothing (to leave out)", "nothing (to leave out)");
    }
}
