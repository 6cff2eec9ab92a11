//! What the kernel says a process's time went to, asked over netlink (taskstats): delay accounting.
//!
//! A process can be asked about while it lives, threads and all; of each one that ends, the kernel tells by itself whoever listens on the
//! CPUs. Layouts are those of linux/genetlink.h and linux/taskstats.h, whose fields keep their places from version to version.

use crate::appointments::now;
use model::Nanos;
use model::accounts::Delays;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, sockopt};
use std::os::fd::OwnedFd;

/// A socket to the kernel's accountant.
pub(crate) struct TaskStats {
    kernel: OwnedFd,
    family: u16,
    sequence: u32,
    room: Vec<u8>,
}

/// A thread that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The thread.
    pub(crate) pid: u32,
    /// Its process.
    pub(crate) process: u32,
    /// Its process's parent, as it was then.
    pub(crate) parent: u32,
    /// When it was told of.
    pub(crate) at_ns: Nanos,
    /// From its start to its end.
    pub(crate) elapsed_ns: Nanos,
    /// What that time went to.
    pub(crate) delays: Delays,
}

const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const TYPE_ERROR: u16 = 2;
const GET: u8 = 1;
const ASK_THREAD: u16 = 1;
const ASK_PROCESS: u16 = 2;
const REGISTER: u16 = 3;
const OF_PROCESS: u16 = 5;
const OF_THREAD: u16 = 4;
const STATS: u16 = 3;

/// Offsets in a `struct taskstats`.
const CPU_WAIT: usize = 24;
const DISK: usize = 40;
const SWAP_IN: usize = 56;
const ON_CPU: usize = 72;
const PID: usize = 128;
const PARENT: usize = 132;
const ELAPSED_US: usize = 144;
const RECLAIM: usize = 320;
const THRASHING: usize = 336;
const COMPACTION: usize = 360;
const PROCESS: usize = 368;
/// What every version that tells of thrashing has (8, Linux 4.20).
const LEAST: usize = THRASHING + 8;
/// Ends that the kernel keeps for us while we are not running: more than two thousand.
const KEPT: usize = 4 << 20;

impl TaskStats {
    /// Opens the socket and finds the accountant.
    pub(crate) fn open() -> Result<TaskStats, Errno> {
        let flags = SocketFlags::CLOEXEC;
        let kernel = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::GENERIC))?;
        // What the kernel allows to nobody but root; without it, the usual size has to do.
        let _ = sockopt::set_socket_recv_buffer_size_force(&kernel, KEPT);
        let mut socket = TaskStats { kernel, family: CONTROLLER, sequence: 0, room: vec![0; 1 << 16] };
        socket.send(GET_FAMILY, FAMILY_NAME, b"TASKSTATS\0")?;
        let mut family = None;
        socket.answer(&mut |_, body| {
            for (kind, content) in attributes(body) {
                if kind == FAMILY_ID && content.len() >= 2 {
                    family = Some(u16::from_ne_bytes([content[0], content[1]]));
                }
            }
        })?;
        socket.family = family.ok_or(Errno::NOENT)?;
        Ok(socket)
    }

    /// Has the kernel tell of every thread that ends on the CPUs of a list such as `0-3`.
    pub(crate) fn listen(&mut self, cpus: &str) -> Result<(), Errno> {
        self.send(GET, REGISTER, format!("{cpus}\0").as_bytes())?;
        // There is an answer only when it is refused. What comes meanwhile is nothing that was asked for.
        match self.receive(&mut |_, _| {}) {
            Err(Errno::AGAIN) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A process that lives, with all threads that it has and had; `None` when there is none.
    pub(crate) fn process(&mut self, pid: u32) -> Option<Delays> {
        self.ask(ASK_PROCESS, pid, OF_PROCESS)
    }

    /// One thread that lives; `None` when there is none.
    pub(crate) fn thread(&mut self, thread: u32) -> Option<Delays> {
        self.ask(ASK_THREAD, thread, OF_THREAD)
    }

    fn ask(&mut self, attribute: u16, number: u32, of: u16) -> Option<Delays> {
        self.send(GET, attribute, &number.to_ne_bytes()).ok()?;
        let mut found = None;
        self.answer(&mut |_, body| {
            found = stats(body, of).map(|(_, stats)| delays(stats));
        })
        .ok()?;
        found
    }

    /// Waits until somebody has ended, or so long.
    pub(crate) fn wait(&self, at_most: std::time::Duration) {
        let timeout = Timespec::try_from(at_most).ok();
        let _ = poll(&mut [PollFd::new(&self.kernel, PollFlags::IN)], timeout.as_ref());
    }

    /// Tells of those who ended since the last call. False when the kernel could not keep all of them.
    pub(crate) fn ended(&mut self, tell: &mut dyn FnMut(Ended)) -> bool {
        let mut kept_all = true;
        loop {
            let at_ns = now();
            match self.receive(&mut |_, body| {
                if let Some(ended) = ended(body, at_ns) {
                    tell(ended);
                }
            }) {
                Ok(()) => {}
                Err(Errno::NOBUFS) => kept_all = false,
                Err(_) => return kept_all,
            }
        }
    }

    fn send(&mut self, command: u8, attribute: u16, content: &[u8]) -> Result<(), Errno> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = question(self.family, self.sequence, command, attribute, content);
        rustix::net::send(&self.kernel, &message, SendFlags::empty()).map(|_| ())
    }

    /// Takes the answer to what was sent last; the kernel has made it by the time that sending returns.
    fn answer(&mut self, tell: &mut dyn FnMut(u32, &[u8])) -> Result<(), Errno> {
        let sequence = self.sequence;
        let mut answered = false;
        while !answered {
            self.receive(&mut |number, body| {
                if number == sequence {
                    answered = true;
                    tell(number, body);
                }
            })?;
        }
        Ok(())
    }

    /// One datagram, if there is one.
    fn receive(&mut self, tell: &mut dyn FnMut(u32, &[u8])) -> Result<(), Errno> {
        let TaskStats { kernel, room, .. } = self;
        let length = loop {
            match rustix::net::recv(&*kernel, room.as_mut_slice(), RecvFlags::DONTWAIT) {
                Err(Errno::INTR) => {}
                result => break result?.1.min(room.len()),
            }
        };
        walk(&room[..length], tell)
    }
}

/// A request with one attribute.
fn question(family: u16, sequence: u32, command: u8, attribute: u16, content: &[u8]) -> Vec<u8> {
    let padded = content.len().next_multiple_of(4);
    let length = HEADER + GENERIC_HEADER + 4 + padded;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend(1u16.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend((4 + content.len() as u16).to_ne_bytes());
    bytes.extend(attribute.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(length, 0);
    bytes
}

/// The messages of a datagram: number of the question, and what follows the generic header.
fn walk(mut datagram: &[u8], tell: &mut dyn FnMut(u32, &[u8])) -> Result<(), Errno> {
    while datagram.len() >= HEADER {
        let length = (word(datagram, 0) as usize).clamp(HEADER, datagram.len());
        let (message, rest) = datagram.split_at(length);
        datagram = rest.get(length.next_multiple_of(4) - length..).unwrap_or_default();
        let body = &message[HEADER..];
        match u16::from_ne_bytes([message[4], message[5]]) {
            TYPE_ERROR if body.len() >= 4 && word(body, 0) != 0 => {
                return Err(Errno::from_raw_os_error((word(body, 0) as i32).wrapping_neg()));
            }
            TYPE_ERROR => {}
            _ => tell(word(message, 8), body.get(GENERIC_HEADER..).unwrap_or_default()),
        }
    }
    Ok(())
}

/// The attributes of a message: kind and content.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let head = bytes.get(..4)?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]])).clamp(4, bytes.len());
        let kind = u16::from_ne_bytes([head[2], head[3]]);
        let content = &bytes[4..length];
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

/// The `struct taskstats` in an aggregate of this kind, and its version.
fn stats(body: &[u8], of: u16) -> Option<(u16, &[u8])> {
    let (_, aggregate) = attributes(body).find(|(kind, _)| *kind == of)?;
    let (_, stats) = attributes(aggregate).find(|(kind, _)| *kind == STATS)?;
    (stats.len() >= LEAST).then(|| (u16::from_ne_bytes([stats[0], stats[1]]), stats))
}

fn ended(body: &[u8], at_ns: Nanos) -> Option<Ended> {
    let (_, stats) = stats(body, OF_THREAD)?;
    let pid = word(stats, PID);
    // Versions before 12 do not name the process: those of several threads look like several then.
    let process = if stats.len() >= PROCESS + 4 { word(stats, PROCESS) } else { pid };
    let elapsed_ns = long(stats, ELAPSED_US).saturating_mul(1000);
    let delays = delays(stats).within(elapsed_ns);
    Some(Ended { pid, process, parent: word(stats, PARENT), at_ns, elapsed_ns, delays })
}

fn delays(stats: &[u8]) -> Delays {
    Delays {
        on_cpu_ns: long(stats, ON_CPU),
        cpu_wait_ns: long(stats, CPU_WAIT),
        disk_ns: long(stats, DISK),
        swap_in_ns: long(stats, SWAP_IN),
        reclaim_ns: long(stats, RECLAIM),
        thrashing_ns: long(stats, THRASHING),
        compaction_ns: if stats.len() >= COMPACTION + 8 { long(stats, COMPACTION) } else { 0 },
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a thread as Linux 6.18 tells of it (version 16), with these numbers in it.
    fn datagram() -> Vec<u8> {
        let mut stats = vec![0; 560];
        let mut put = |at: usize, value: u64| stats[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        put(0, 16);
        put(CPU_WAIT, 64_700_000);
        put(DISK, 5_000_000_000_000);
        put(SWAP_IN, 3);
        put(ON_CPU, 30_500_000);
        put(PID, 4711 | 42 << 32);
        put(ELAPSED_US, 95_500);
        put(RECLAIM, 2_200_000);
        put(THRASHING, 5);
        put(COMPACTION, 6);
        put(PROCESS, 4710);
        let attribute = |kind: u16, content: &[u8]| {
            let head = [(4 + content.len() as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
            [head, content.to_vec()].concat()
        };
        let inner = [attribute(1, &4711u32.to_ne_bytes()), attribute(STATS, &stats)].concat();
        let body = [vec![2, 1, 0, 0], attribute(OF_THREAD, &inner)].concat();
        let mut message = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend(31u16.to_ne_bytes());
        message.resize(HEADER, 0);
        message.extend(body);
        message
    }

    fn told(datagram: &[u8]) -> Vec<Ended> {
        let mut told = Vec::new();
        let _ = walk(datagram, &mut |_, body| told.extend(ended(body, 7)));
        told
    }

    #[test]
    fn the_end_of_a_thread() {
        let delays = Delays {
            on_cpu_ns: 30_500_000,
            cpu_wait_ns: 64_700_000,
            // More than its whole life: what is left of it is what it can have been at most.
            disk_ns: 300_000,
            swap_in_ns: 3,
            reclaim_ns: 2_200_000,
            thrashing_ns: 5,
            compaction_ns: 6,
        };
        let expected = Ended { pid: 4711, process: 4710, parent: 42, at_ns: 7, elapsed_ns: 95_500_000, delays };
        assert_eq!(told(&datagram()), std::slice::from_ref(&expected));
        assert_eq!(told(&[datagram(), datagram()].concat()), [expected.clone(), expected]);
    }

    #[test]
    fn a_datagram_cut_anywhere_does_no_harm() {
        let whole = datagram();
        let lengths: Vec<usize> = (0..=whole.len()).map(|cut| told(&whole[..cut]).len()).collect();
        // Older kernels end their records earlier.
        let first = lengths.iter().position(|&told| told == 1).unwrap();
        assert_eq!(first, whole.len() - 560 + LEAST);
        assert!(lengths[first..].iter().all(|&told| told == 1));
    }

    #[test]
    fn the_kernel_refuses_in_a_number() {
        let mut refusal = vec![0; HEADER + 4];
        refusal[0..4].copy_from_slice(&20u32.to_ne_bytes());
        refusal[4..6].copy_from_slice(&TYPE_ERROR.to_ne_bytes());
        refusal[HEADER..].copy_from_slice(&(-1i32).to_ne_bytes());
        assert_eq!(walk(&refusal, &mut |_, _| panic!("nothing was told")), Err(Errno::PERM));
    }

    #[test]
    fn this_process_and_one_that_ends() {
        let mut kernel = match TaskStats::open().and_then(|mut kernel| kernel.listen("0").map(|()| kernel)) {
            Ok(kernel) => kernel,
            Err(error) => return testkit::skip::not_here(&format!("the kernel tells no delays here ({error})")),
        };
        let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
        kernel.listen(possible.trim()).unwrap();
        assert!(kernel.process(std::process::id()).unwrap().on_cpu_ns > 0);
        assert_eq!(kernel.process(u32::MAX), None);
        // The kernel counts time on a CPU when it is given up, or at a tick: one that ends before either has none.
        let mut child = std::process::Command::new("sleep").arg("0.01").spawn().unwrap();
        child.wait().unwrap();
        // It was told of before it could be waited for.
        let mut ends = Vec::new();
        kernel.ended(&mut |ended| ends.push(ended));
        let end = ends.iter().find(|ended| ended.pid == child.id()).expect("told of");
        assert_eq!((end.process, end.parent), (child.id(), std::process::id()));
        assert!(end.delays.on_cpu_ns > 0 && end.delays.on_cpu_ns <= end.elapsed_ns + 1_000_000, "{end:?}");
    }
}
