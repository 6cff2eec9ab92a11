//! Processes told apart for certain, and ended: a number alone is never enough, because numbers come round again.
//!
//! A set of processes is either a session or a group; both keep together whatever a server forks. Nothing outside
//! the set is ever signalled.

use crate::kernel;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, pidfd_send_signal, waitid,
};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two looks at processes that are about to end.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Where the kernel tells the pid namespace of this process.
const NAMESPACE: &str = "/proc/self/ns/pid";

/// A pid namespace: among whom a number means one process. A container has its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Namespace {
    /// Its number; 0 when that is hidden. The next namespace gets it as soon as this one has ended.
    pub(crate) number: u64,
    /// When its first process began, which tells it from that next one; 0 when that is hidden.
    pub(crate) start_time: u64,
}

/// One process: its number, and when it began, which no later process with that number shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Its number.
    pub(crate) pid: u32,
    /// Clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub(crate) start_time: u64,
}

/// A session, by its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    /// The leader; it may be gone while others of its session live.
    pub(crate) leader: Identity,
    /// How often the machine had forked when the leader was known to have its number.
    pub(crate) forks: u64,
}

/// Processes that belong together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Members<'a> {
    /// The leader, even before it has made its session, and everything in the session.
    Session(Session),
    /// Everything in one cgroup directory.
    Group(&'a Path),
}

impl Namespace {
    /// That of this process.
    pub(crate) fn own() -> Result<Namespace, String> {
        let number = match fs::metadata(NAMESPACE) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => 0,
            found => found.map_err(|error| format!("cannot read {NAMESPACE}: {error}"))?.ino(),
        };
        Ok(Namespace { number, start_time: Stat::of(1)?.map_or(0, |first| first.start_time) })
    }

    /// Whether a number means another process there. What is hidden tells nothing apart.
    pub(crate) fn differs_from(self, other: Namespace) -> bool {
        let differs = |one: u64, other: u64| one != 0 && other != 0 && one != other;
        differs(self.number, other.number) || differs(self.start_time, other.start_time)
    }
}

impl Identity {
    /// The living process `pid`; `None`, too, when it cannot be looked at.
    pub(crate) fn of(pid: u32) -> Option<Identity> {
        let stat = Stat::of(pid).ok()??;
        Some(Identity { pid, start_time: stat.start_time })
    }

    /// Whether it still lives. Nobody but a container's first process may be slow to collect it when it is dead.
    pub(crate) fn lives(self) -> bool {
        match Stat::of(self.pid) {
            Ok(stat) => stat.is_some_and(|stat| stat.start_time == self.start_time && stat.is_alive()),
            // It may.
            Err(_) => true,
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(self, signal: Signal) -> Result<(), Errno> {
        signal_if(|| Identity::of(self.pid) == Some(self), self.pid, signal)
    }
}

/// What a child of this process has ended with: its exit code, or 128 and the signal that killed it, as a shell counts. `None` while it lives.
/// Looked at and not collected: as long as it is not collected, its number is not given away.
pub(crate) fn ended_with(child: Pid) -> Option<i32> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(child), options).ok()??;
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal))
}

impl Session {
    /// The session that process `pid` leads or is going to lead; `None` when there is no such process.
    pub(crate) fn of(pid: u32) -> Option<Session> {
        Identity::of(pid).map(|leader| Session { leader, forks: forks() })
    }

    /// The same as of now, where the leader has its number still, be it as a dead process that nobody has collected: to be asked for before
    /// that may change.
    pub(crate) fn renewed(self) -> Session {
        // Counted before it is looked for. What cannot be counted renews nothing.
        let forks = forks().max(self.forks);
        let is_there = |stat: Stat| stat.start_time == self.leader.start_time;
        let holds = Stat::of(self.leader.pid).is_ok_and(|stat| stat.is_some_and(is_there));
        if holds { Session { forks, ..self } } else { self }
    }

    /// Whether the session may have another leader of the same number by now. The kernel gives a number away again
    /// only when it has counted through all others, so few forks since then are a proof that it has not.
    fn may_be_anothers(&self) -> bool {
        came_round(self.forks, forks(), pid_max())
    }

    fn members(&self) -> Result<Vec<u32>, String> {
        let Identity { pid: leader, start_time } = self.leader;
        match Stat::of(leader)? {
            // A number is not given away as long as a session bears it, so this session has ended.
            Some(stat) if stat.start_time != start_time => return Ok(vec![]),
            Some(_) => {}
            None if self.may_be_anothers() => {
                let others = living(|_, stat| stat.session == leader)?;
                if let Some(first) = others.first() {
                    return Err(format!(
                        "process {first} may be left over from a server with the process id {leader}, or be somebody \
                         else's: look at it, and end it if it is one"
                    ));
                }
            }
            None => {}
        }
        living(|pid, stat| stat.session == leader || pid == leader)
    }
}

impl Members<'_> {
    /// Sends SIGKILL until nobody is left; returns how many processes there were. A process that thrashes or waits for a disk
    /// takes its time to die, so this looks again until `patience` is over.
    pub(crate) fn end(&self, patience: Duration) -> Result<usize, String> {
        let deadline = Instant::now() + patience;
        let mut seen: Vec<u32> = vec![];
        loop {
            let members = self.list()?;
            // One empty listing proves nothing: a process may fork behind the reader's back and end before it is reached.
            if members.is_empty() && self.list()?.is_empty() {
                return Ok(seen.len());
            }
            if Instant::now() > deadline {
                let names: Vec<_> = members.iter().map(|&pid| describe(pid)).collect();
                return Err(format!("{} would not end", names.join(", ")));
            }
            self.kill_at_once();
            for pid in members {
                self.kill(pid);
                if !seen.contains(&pid) {
                    seen.push(pid);
                }
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// How many there are now.
    pub(crate) fn count(&self) -> Result<usize, String> {
        self.list().map(|members| members.len())
    }

    /// Those that live.
    pub(crate) fn list(&self) -> Result<Vec<u32>, String> {
        match self {
            Members::Session(session) => session.members(),
            Members::Group(dir) => match fs::read_to_string(dir.join("cgroup.procs")) {
                Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(vec![]),
                // The directory was removed between open and read.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(vec![]),
                Err(error) => Err(format!("cannot read {}: {error}", dir.join("cgroup.procs").display())),
            },
        }
    }

    fn has(&self, number: u32) -> bool {
        match self {
            // Whose session it is was settled by the listing, and no number comes round within milliseconds.
            Members::Session(session) => {
                let leader = session.leader.pid;
                Stat::of(number).is_ok_and(|stat| stat.is_some_and(|stat| stat.session == leader || number == leader))
            }
            Members::Group(_) => self.list().is_ok_and(|members| members.contains(&number)),
        }
    }

    /// Cgroup v2 can end a whole group with one write, which no fork escapes. Elsewhere the repeated listing has to do.
    fn kill_at_once(&self) {
        if let Members::Group(dir) = self {
            let _ = fs::OpenOptions::new()
                .write(true)
                .open(dir.join("cgroup.kill"))
                .and_then(|mut file| std::io::Write::write_all(&mut file, b"1"));
        }
    }

    fn kill(&self, number: u32) {
        // A failure (gone already, not permitted) shows in the next listing.
        let _ = signal_if(|| self.has(number), number, Signal::KILL);
    }
}

/// Sends a signal to one process. Since it was found its number may have been given away; a pidfd holds on to one process, so asking after
/// taking it whether it is the one that is meant settles that. Before Linux 5.3 there are none, some containers forbid them, and the gap stays.
fn signal_if(is_meant: impl FnOnce() -> bool, number: u32, signal: Signal) -> Result<(), Errno> {
    let pid = i32::try_from(number).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let held = pidfd_open(pid, PidfdFlags::empty());
    if !is_meant() {
        return Err(Errno::SRCH);
    }
    match held {
        Ok(held) => pidfd_send_signal(held, signal),
        Err(Errno::NOSYS | Errno::PERM) => kill_process(pid, signal),
        Err(error) => Err(error),
    }
}

/// The parts of `/proc/PID/stat` that matter here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    session: u32,
    threads: u32,
    start_time: u64,
}

impl Stat {
    /// `Ok(None)` when there is no such process, or when it is hidden from this user. What fails otherwise, such as for want of memory or
    /// of open files, proves nothing.
    fn of(pid: u32) -> Result<Option<Stat>, String> {
        let file = format!("/proc/{pid}/stat");
        match kernel::text(&file) {
            Ok(text) => Ok(Stat::parse(&text)),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM) => Ok(None),
                _ => Err(format!("cannot read {file}: {error}")),
            },
        }
    }

    fn parse(text: &str) -> Option<Stat> {
        // The name in parentheses may hold anything, parentheses and spaces included.
        let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
        Some(Stat {
            state: fields.first()?.chars().next()?,
            session: fields.get(3)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            start_time: fields.get(19)?.parse().ok()?,
        })
    }

    /// A zombie is dead unless it is a main thread that ended before the others.
    fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X') || self.threads > 1
    }
}

/// Whether any living process is one of those.
pub(crate) fn any(mut wanted: impl FnMut(u32) -> bool) -> Result<bool, String> {
    Ok(!living(|pid, _| wanted(pid))?.is_empty())
}

/// Whether any of those is that lead a session and began at most `age` ago.
pub(crate) fn any_young_leader(age: Duration, mut wanted: impl FnMut(u32) -> bool) -> Result<bool, String> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec.cast_unsigned();
    // In seconds, as the kernel's number is in ticks of that clock; one more for what both leave away.
    let young = |stat: &Stat| now <= stat.start_time / rustix::param::clock_ticks_per_second() + age.as_secs() + 1;
    Ok(!living(|pid, stat| stat.session == pid && young(stat) && wanted(pid))?.is_empty())
}

/// All of them or an error: whoever is missing here would be taken for dead.
fn living(mut wanted: impl FnMut(u32, &Stat) -> bool) -> Result<Vec<u32>, String> {
    let unread = |error: io::Error| format!("cannot read /proc: {error}");
    let mut found = vec![];
    for entry in fs::read_dir("/proc").map_err(unread)? {
        let name = entry.map_err(unread)?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        if Stat::of(pid)?.is_some_and(|stat| stat.is_alive() && wanted(pid, &stat)) {
            found.push(pid);
        }
    }
    Ok(found)
}

fn describe(pid: u32) -> String {
    format!("process {pid} ({})", name_of(pid))
}

/// The name of a process's program; empty when it has ended.
pub(crate) fn name_of(pid: u32) -> String {
    kernel::text(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// Processes and threads made since boot, from `/proc/stat`; 0 when it does not tell.
fn forks() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("processes ")?.trim().parse().ok()).unwrap_or(0)
}

fn pid_max() -> u64 {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    // The kernel's own default, should the file be hidden.
    text.trim().parse().unwrap_or(32_768)
}

/// Half of all numbers is far less than what it takes, whatever numbers are in use and left out.
fn came_round(forks_then: u64, forks_now: u64, pid_max: u64) -> bool {
    forks_now.saturating_sub(forks_then) >= pid_max / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(char, u32, u32, u64)>) {
        let stat = Stat::parse(text).map(|stat| (stat.state, stat.session, stat.threads, stat.start_time));
        assert_eq!(stat, expected, "{text}");
    }

    #[test]
    fn a_name_may_hold_anything() {
        let rest = "S 1 10 11 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 4711 99 100";
        check(&format!("12 (sh) {rest}"), Some(('S', 11, 3, 4711)));
        check(&format!("12 (a) Z 9 9 9 (b) {rest}"), Some(('S', 11, 3, 4711)));
        check("12 (sh) S 1 10", None);
        check("", None);
    }

    #[test]
    fn a_zombie_is_dead_unless_its_threads_live() {
        let stat = |state, threads| Stat { state, session: 1, threads, start_time: 1 };
        assert!(!stat('Z', 1).is_alive() && stat('Z', 2).is_alive() && stat('D', 1).is_alive());
    }

    #[test]
    fn a_number_comes_round_only_after_many_forks() {
        assert!(!came_round(1_000, 1_000 + 16_383, 32_768));
        assert!(came_round(1_000, 1_000 + 16_384, 32_768));
        assert!(!came_round(1_000, 500, 32_768));
    }

    #[test]
    fn a_container_that_was_started_anew_is_another() {
        let check = |now: (u64, u64), then: (u64, u64), expected: bool| {
            let namespace = |(number, start_time)| Namespace { number, start_time };
            assert_eq!(namespace(now).differs_from(namespace(then)), expected, "{now:?} {then:?}");
        };
        check((7, 900), (7, 900), false);
        check((8, 900), (7, 900), true);
        check((7, 1900), (7, 900), true);
        // Journals of before know neither, and not everybody may see the first process.
        check((7, 900), (0, 0), false);
        check((7, 0), (7, 900), false);
        let own = Namespace::own().unwrap();
        assert!(!own.differs_from(own));
    }

    #[test]
    fn another_process_with_the_number_of_a_leader_is_left_alone() {
        let mut bystander = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut leader = Identity::of(bystander.id()).unwrap();
        leader.start_time -= 1;
        assert_eq!(Members::Session(Session { leader, forks: forks() }).end(Duration::from_secs(1)), Ok(0));
        assert!(bystander.try_wait().unwrap().is_none(), "the bystander was signalled");
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
}
