//! The generator on its way to another machine: the talk with the script that takes it in, and what can be in the way.

use crate::error::RemoteError;
use crate::line::{Line, News};
use crate::message::{Answer, Hello, language};
use crate::program::Program;
use crate::remote::LOOK;
use crate::shell::{Said, said};
use model::plan::Origin;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is written at once of the program.
const CHUNK: usize = 1 << 16;

/// The generator on its way there.
pub(crate) struct Arrival<'a> {
    from: &'a str,
    origin: &'a Origin,
    program: &'a Program,
    line: &'a mut Line,
    machine: Option<String>,
    interrupted: &'a AtomicBool,
}

impl<'a> Arrival<'a> {
    /// At its beginning.
    pub(crate) fn new(
        from: &'a str,
        origin: &'a Origin,
        program: &'a Program,
        line: &'a mut Line,
        interrupted: &'a AtomicBool,
    ) -> Arrival<'a> {
        Arrival { from, origin, program, line, machine: None, interrupted }
    }

    /// Talks with the script until frames follow.
    pub(crate) fn take_in(&mut self) -> Result<(), RemoteError> {
        loop {
            let Some(text) = self.next_line()? else { return Err(self.no_way()) };
            match said(&text) {
                Said::Greeting => self.line.greeted(&text),
                Said::Machine(machine) => {
                    self.is_like_ours(machine)?;
                    self.machine = Some(machine.to_owned());
                    self.write(b"on\n")?;
                }
                Said::Need(_) => {
                    self.write(b"put\n")?;
                    for chunk in self.program.bytes.chunks(CHUNK) {
                        self.go_on()?;
                        // Whoever does not take it says why.
                        if self.line.write(chunk).is_err() {
                            break;
                        }
                    }
                }
                Said::No(why) => {
                    return Err(self.no_place(format!("no folder for the generator: {why}; make one of them usable")));
                }
                Said::Short(rest) => return Err(self.short(rest)),
                Said::Start => return Ok(()),
            }
        }
    }

    /// The generator's first words.
    pub(crate) fn hello(&mut self) -> Result<Hello, RemoteError> {
        loop {
            match self.next()? {
                Some(News::Answer(Answer::Hello(hello), _)) if hello.language == language() => return Ok(*hello),
                Some(News::Answer(Answer::Hello(hello), _)) => {
                    let (theirs, ours) = (hello.language, language());
                    return Err(self.no_place(format!(
                        "the generator there is of another version ({theirs}, ours is {ours}); remove webdyno's folder in that \
                         account's cache"
                    )));
                }
                Some(News::Line(_) | News::Answer(..)) => {}
                Some(News::End(_)) | None => {
                    let why = self.line.complaints().pop().unwrap_or_else(|| "it ends at once".to_owned());
                    return Err(self.no_place(format!(
                        "the generator does not run there: {why}; build webdyno on the older of the two systems"
                    )));
                }
            }
        }
    }

    fn is_like_ours(&self, machine: &str) -> Result<(), RemoteError> {
        let ours = rustix::system::uname();
        let ours = format!("{} {}", ours.sysname().to_string_lossy(), ours.machine().to_string_lossy());
        if machine == ours {
            return Ok(());
        }
        Err(self.no_place(format!(
            "that is a {machine} machine and this webdyno was built for {ours}; take a generator of the same kind, or build webdyno \
             there and load from it: webdyno load"
        )))
    }

    fn short(&mut self, rest: &str) -> RemoteError {
        let (size, folder) = rest.split_once(' ').unwrap_or((rest, ""));
        let all = self.program.bytes.len();
        let said = self.line.complaints().pop();
        if size.parse() == Ok(all) {
            let why = said.unwrap_or_else(|| "its sum differs".to_owned());
            return self
                .no_place(format!("the generator was copied to {folder} and cannot be checked or kept there: {why}"));
        }
        let why = said.unwrap_or_else(|| "the copy ended early".to_owned());
        self.no_place(format!(
            "only {size} of {all} bytes of the generator went into {folder}: {why}; make room for {} MiB",
            all.div_ceil(1 << 20)
        ))
    }

    /// The end of a line over which nothing came.
    fn no_way(&mut self) -> RemoteError {
        let complaints = self.line.complaints();
        if let Some(machine) = &self.machine {
            let why = complaints.last().cloned().unwrap_or_else(|| "its shell ended".to_owned());
            return self.no_place(format!("the generator could not be brought to that {machine} machine: {why}"));
        }
        RemoteError::NoWay { from: self.from.to_owned(), why: no_way(&self.origin.destination, &complaints) }
    }

    fn no_place(&self, why: String) -> RemoteError {
        RemoteError::NoPlace { from: self.from.to_owned(), why }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), RemoteError> {
        let written = self.line.write(bytes);
        written.map_err(|_| self.no_way())
    }

    fn next_line(&mut self) -> Result<Option<String>, RemoteError> {
        loop {
            match self.next()? {
                Some(News::Line(line)) => return Ok(Some(line)),
                Some(News::Answer(..)) => {}
                Some(News::End(_)) | None => return Ok(None),
            }
        }
    }

    fn next(&mut self) -> Result<Option<News>, RemoteError> {
        loop {
            self.go_on()?;
            if let Some(heard) = self.line.next(LOOK) {
                return Ok(Some(heard.what));
            }
        }
    }

    fn go_on(&self) -> Result<(), RemoteError> {
        let interrupted = self.interrupted.load(Ordering::Relaxed);
        if interrupted { Err(RemoteError::Interrupted(self.from.to_owned())) } else { Ok(()) }
    }
}

/// What ssh's last words mean, and what to do.
fn no_way(destination: &str, complaints: &[String]) -> String {
    let by_hand = format!("this must work first: ssh {destination} true");
    let with = |part: &str| complaints.iter().rev().find(|line| line.contains(part));
    if with("REMOTE HOST IDENTIFICATION HAS CHANGED").is_some() {
        return format!(
            "its host key is not the one that ssh knows; find out why, then remove the old one: ssh-keygen -R {destination}"
        );
    }
    if with("Host key verification failed").is_some() {
        return format!("ssh does not know its host key; look at it and accept it once: ssh {destination} true");
    }
    if let Some(line) = with("Permission denied (") {
        return format!("it does not let us in ({line}); {by_hand}");
    }
    if let Some(line) = with("not found").filter(|line| line.starts_with("ssh:") && line.contains("exec")) {
        return format!("there is no ssh on this machine ({line}); install it: openssh-client");
    }
    match complaints.last() {
        Some(line) => format!("{line}; {by_hand}"),
        None => format!("ssh ended without a word; {by_hand}"),
    }
}

#[cfg(test)]
mod tests;
