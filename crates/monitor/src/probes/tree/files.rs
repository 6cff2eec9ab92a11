//! The files of one process, and the table of locks: what of their texts is used.

use crate::source::Buffer;
use crate::text::{fields, lines, number, stat};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Bytes that the kernel keeps of a program's name, without the zero at its end.
const NAME: usize = 15;

/// What of a stat file is used.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: u32,
    pub(super) state: u8,
    /// The beginning of its program's name, filled up with zeros.
    pub(super) name: [u8; NAME],
    /// User and system time.
    pub(super) own_ticks: u64,
    /// The same of children that were waited for.
    pub(super) child_ticks: u64,
    /// Threads; `state` is that of the first one alone.
    pub(super) threads: u64,
    pub(super) resident_pages: u64,
}

/// Opens a file of a process.
pub(super) fn open_file(proc: &OwnedFd, pid: u32, name: &str) -> Result<OwnedFd, Errno> {
    let mut path = [0u8; 24];
    let length = {
        let mut rest = &mut path[..];
        // Ten digits and the names in use always fit.
        std::io::Write::write_fmt(&mut rest, format_args!("{pid}/{name}")).map_err(|_| Errno::NAMETOOLONG)?;
        24 - rest.len()
    };
    rustix::fs::openat(proc, &path[..length], OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Whether that number is a process's and not one of its threads'.
pub(super) fn is_process(proc: &OwnedFd, pid: u32, buffer: &mut Buffer) -> bool {
    let Ok(file) = open_file(proc, pid, "status") else { return false };
    let Ok(text) = buffer.fill(&file) else { return false };
    let group = lines(text).find_map(|line| line.strip_prefix(b"Tgid:"));
    group.and_then(|number_of| number(number_of.trim_ascii())) == Some(pid.into())
}

/// Whose child a process is, what it does, the CPU time and memory it has.
pub(super) fn parse_stat(text: &[u8]) -> Option<Stat> {
    let (called, mut fields) = stat(text)?;
    let mut name = [0; NAME];
    name.iter_mut().zip(called).for_each(|(to, from)| *to = *from);
    let state = *fields.next()?.first()?;
    let parent = u32::try_from(number(fields.next()?)?).ok()?;
    // From here on the field after `skip` others: utime, stime, cutime, cstime, then num_threads and rss.
    let mut ticks = [0u64; 4];
    let skipped = fields.by_ref().take(9).count();
    for (place, field) in ticks.iter_mut().zip(fields.by_ref()) {
        *place = number(field)?;
    }
    let [user, system, of_children, of_children_system] = ticks;
    let (own_ticks, child_ticks) = (user.saturating_add(system), of_children.saturating_add(of_children_system));
    let threads = number(fields.nth(2)?)?;
    let resident_pages = number(fields.nth(3)?)?;
    Some(Stat { parent, state, name, own_ticks, child_ticks, threads, resident_pages }).filter(|_| skipped == 9)
}

/// The process of a line such as `1: -> FLOCK  ADVISORY  WRITE 1235 fd:00:123 0 EOF`: one that waits, not one that holds.
pub(super) fn lock_waiter(line: &[u8]) -> Option<u32> {
    let mut fields = fields(line);
    fields.find(|&field| field == b"->")?;
    number(fields.nth(3)?).and_then(|pid| u32::try_from(pid).ok())
}
