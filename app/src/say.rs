//! Standard error and standard output, to which nobody may be listening any more: a closed terminal or pipe must not end a run.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One line for the user.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Text as it is, which brings its own line breaks.
pub(crate) fn say_part(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Text on standard output, at once.
pub(crate) fn print(text: &str) {
    put(text);
}

/// The same; false when it was not taken, and more will not be either.
pub(crate) fn put(text: impl AsRef<[u8]>) -> bool {
    // Nobody else of this process writes in between.
    let out = io::stdout().lock();
    let written = write_whole(out.as_fd(), text.as_ref()).map_err(io::Error::from);
    written.inspect_err(not_written).is_ok()
}

/// Whether something for standard output was lost, though nobody closed it.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether what was to be printed did not get out: the process must not end as if it had.
pub(crate) fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Tells, once, why standard output does not take what it is given. Whoever closed it has seen enough.
pub(crate) fn not_written(error: &io::Error) {
    if !is_gone(io::stdout().as_fd(), error) && !LOST.swap(true, Ordering::Relaxed) {
        tell(format!("cannot write to standard output: {error}; send it elsewhere"));
    }
}

/// Whether nobody is there any more: a pipe was closed, or a terminal hung up.
fn is_gone(out: BorrowedFd<'_>, error: &io::Error) -> bool {
    match Errno::from_io_error(error) {
        Some(Errno::PIPE | Errno::CONNRESET) => true,
        // A broken disk says the same.
        Some(Errno::IO) => {
            fstat(out).is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice)
        }
        _ => false,
    }
}

/// Writes all of it. A terminal that others share with us may have been told by them not to wait: then we do.
fn write_whole(out: BorrowedFd<'_>, mut text: &[u8]) -> rustix::io::Result<()> {
    while !text.is_empty() {
        match rustix::io::write(out, text) {
            Ok(count) => text = &text[count..],
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(&out, PollFlags::OUT)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            },
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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

/// So many of what takes an s when there are several.
pub(crate) fn count(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
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
    use rustix::fs::{OFlags, fcntl_setfl};
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::fs::File;
    use std::io::Read;
    use std::thread;

    #[test]
    fn who_was_told_not_to_wait_waits_all_the_same() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        fcntl_setfl(&write, OFlags::NONBLOCK).unwrap();
        let mut before = 0;
        while let Ok(count) = rustix::io::write(&write, &[b'.'; 4096]) {
            before += count;
        }
        let text = "x".repeat(1 << 20);
        let writing = thread::spawn(move || write_whole(write.as_fd(), text.as_bytes()));
        let mut taken = String::new();
        File::from(read).read_to_string(&mut taken).unwrap();
        writing.join().unwrap().unwrap();
        assert_eq!(taken.trim_start_matches('.').len(), 1 << 20);
        assert_eq!(taken.len(), before + (1 << 20));
    }

    #[test]
    fn a_full_disk_is_no_closed_pipe() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = write_whole(full.as_fd(), b"x").unwrap_err();
        assert!(error == Errno::NOSPC && !is_gone(full.as_fd(), &error.into()));
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        drop(read);
        let error = write_whole(write.as_fd(), b"x").unwrap_err();
        assert!(is_gone(write.as_fd(), &error.into()));
        // A disk that is broken, and a terminal that is gone.
        let file = tempfile::tempfile().unwrap();
        assert!(!is_gone(file.as_fd(), &Errno::IO.into()));
        assert!(is_gone(full.as_fd(), &Errno::IO.into()));
    }

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
