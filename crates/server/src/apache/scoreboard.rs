//! Apache's scoreboard, read where it lies: in the memory that the parent shares with its workers. No request is made for it, so no
//! worker is taken, and the server is told nothing of it.
//!
//! The layout is that of httpd 2.4's scoreboard.h on 64-bit machines. Nothing is believed that does not fit: the memory must have exactly
//! the size that its own first numbers ask for, its processes must be the parent's children, and its letters must exist.

use crate::lossy::read_lossy;
use crate::running::processes;
use model::status::WebStatus;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// APR puts the size of anonymous shared memory before it.
const BEFORE: usize = 8;
/// `global_score`.
const GLOBAL: usize = 56;
/// `process_score`, aligned; its first field is the process.
const PROCESS: usize = 40;
/// `worker_score`: since 2.4.24 with a long client address, and before without, and without the duration.
const WORKERS: [usize; 3] = [336, 272, 264];
/// Where the state stands in it.
const STATE: usize = 20;
/// And `access_count`: requests of this place since the start, whoever worked in it.
const SERVED: usize = 32;
const PAGE: usize = 4096;
/// The letters of mod_status by state.
const LETTERS: [char; 11] = ['.', 'S', '_', 'R', 'W', 'K', 'L', 'D', 'C', 'G', 'I'];
/// Nobody has more memory for it.
const MOST: usize = 64 << 20;

/// The scoreboard of one running server.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    memory: File,
    /// Where it begins in the parent's memory.
    at: u64,
    shape: Shape,
}

/// How many there are of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    servers: usize,
    threads: usize,
    worker: usize,
}

impl Scoreboard {
    /// Finds it in the memory of a parent; `None` where that may not be read or does not look like one.
    pub(crate) fn of(parent: u32) -> Option<Scoreboard> {
        let memory = File::open(format!("/proc/{parent}/mem")).ok()?;
        let maps = read_lossy(format!("/proc/{parent}/maps")).ok()?;
        maps.lines().filter_map(shared).find_map(|(from, length)| {
            let mut limits = [0; 8];
            let at = from + BEFORE as u64;
            memory.read_exact_at(&mut limits, at).ok()?;
            let shape = Shape::of(&limits, length)?;
            let board = Scoreboard { memory: memory.try_clone().ok()?, at, shape };
            board.is_of(parent).then_some(board)
        })
    }

    /// The letters and the requests as they are now.
    pub(crate) fn look(&self) -> Option<WebStatus> {
        let bytes = self.read()?;
        let mut places: BTreeMap<char, u64> = BTreeMap::new();
        for state in self.shape.states(&bytes) {
            *places.entry(*LETTERS.get(usize::from(state))?).or_default() += 1;
        }
        Some(WebStatus::Apache { places, served: Some(self.shape.served(&bytes)) })
    }

    fn read(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.shape.size()];
        self.memory.read_exact_at(&mut bytes, self.at).ok()?;
        Some(bytes)
    }

    /// Whether the processes in it are the parent's children, and there are some.
    fn is_of(&self, parent: u32) -> bool {
        let Some(bytes) = self.read() else { return false };
        let is_child =
            |pid: u32| processes::read(Path::new("/proc"), pid).is_some_and(|process| process.parent == parent);
        self.shape.processes(&bytes).any(is_child) && self.look().is_some()
    }
}

impl Shape {
    /// The shape that these limits give, if memory of that length is made for it.
    fn of(limits: &[u8; 8], length: u64) -> Option<Shape> {
        let word =
            |at: usize| u32::from_ne_bytes([limits[at], limits[at + 1], limits[at + 2], limits[at + 3]]) as usize;
        let (servers, threads) = (word(0), word(4));
        if servers == 0 || threads == 0 || servers.checked_mul(threads)? > MOST / WORKERS[0] {
            return None;
        }
        let shape = |worker| Shape { servers, threads, worker };
        let fits = |shape: &Shape| (BEFORE + shape.size()).next_multiple_of(PAGE) as u64 == length;
        WORKERS.map(shape).into_iter().find(fits)
    }

    fn size(&self) -> usize {
        GLOBAL + self.servers * (PROCESS + self.threads * self.worker)
    }

    fn processes<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = u32> + use<'a> {
        let places = bytes[GLOBAL..GLOBAL + self.servers * PROCESS].chunks_exact(PROCESS);
        places.filter_map(|place| Some(u32::from_ne_bytes(place[..4].try_into().ok()?))).filter(|pid| *pid != 0)
    }

    fn states<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = u8> + use<'a> {
        let workers = &bytes[GLOBAL + self.servers * PROCESS..];
        workers.chunks_exact(self.worker).map(|worker| worker[STATE])
    }

    fn served(&self, bytes: &[u8]) -> u64 {
        let workers = &bytes[GLOBAL + self.servers * PROCESS..];
        let count = |worker: &[u8]| u64::from_ne_bytes(worker[SERVED..SERVED + 8].try_into().unwrap_or_default());
        workers.chunks_exact(self.worker).map(count).fold(0, u64::wrapping_add)
    }
}

/// A piece of shared memory that can be written, from a line of `/proc/PID/maps`: where it begins, and its length.
fn shared(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (from, to) = (number(from)?, number(to)?);
    (fields.next()? == "rw-s").then_some((from, to.checked_sub(from)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_must_fit_exactly() {
        let check = |servers: u32, threads: u32, length: u64, expected: Option<usize>| {
            let mut limits = [0; 8];
            limits[..4].copy_from_slice(&servers.to_ne_bytes());
            limits[4..].copy_from_slice(&threads.to_ne_bytes());
            assert_eq!(Shape::of(&limits, length).map(|shape| shape.worker), expected, "{servers} {threads} {length}");
        };
        let pages = |bytes: u64| bytes.next_multiple_of(4096);
        check(256, 1, pages(8 + 56 + 256 * (40 + 336)), Some(336));
        check(16, 64, pages(8 + 56 + 16 * (40 + 64 * 336)), Some(336));
        check(16, 64, pages(8 + 56 + 16 * (40 + 64 * 264)), Some(264));
        check(16, 64, 4096, None);
        check(0, 64, 4096, None);
        check(u32::MAX, u32::MAX, 4096, None);
    }

    #[test]
    fn only_shared_memory_is_looked_at() {
        assert_eq!(
            shared("7f00000000-7f00010000 rw-s 00000000 00:01 5 /dev/zero (deleted)"),
            Some((0x7f_0000_0000, 0x1_0000))
        );
        assert_eq!(shared("7f00000000-7f00010000 rw-p 00000000 00:00 0"), None);
        assert_eq!(shared(""), None);
    }

    #[test]
    fn a_process_that_is_no_apache_has_none() {
        assert!(Scoreboard::of(std::process::id()).is_none());
    }
}
