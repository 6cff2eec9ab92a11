//! The memory that a sampler and its parent share: notes and the parent's one order first, then a ring of looks.
//!
//! One process writes rows, another reads them, and the writer never waits for a reader: the number of rows published so far is
//! stored after the row itself, and a reader looks at it again after copying a row, to know that the row was not being
//! overwritten meanwhile. A reader that wants the next row sleeps on the bell, a futex in the same memory; ringing it is all
//! that the writer does for that. The layout is private to one build of the program, so it carries no version.

use crate::appointments::timespec;
use model::Nanos;
use model::reading::{COLUMNS, Look, Reading};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Words before the first row: the number of rows published, the bell, the root to follow, the length of the notes in bytes, the
/// notes.
const HEADER: usize = 1024;
const PUBLISHED: usize = 0;
const BELL: usize = 1;
const ROOT: usize = 2;
const NOTES_LENGTH: usize = 3;
const NOTES: usize = 4;

/// How large a ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Rows there is room for.
    pub(crate) capacity: usize,
    /// Numbers of devices in a row.
    pub(crate) devices: usize,
}

impl Shape {
    /// Words of a row: when, the columns, the numbers of devices.
    fn row(self) -> usize {
        1 + COLUMNS + self.devices
    }

    fn bytes(self) -> usize {
        (HEADER + self.capacity * self.row()) * 8
    }
}

/// Which process tree to follow from now on: an order that differs from the one before is a new one, even when the number is the
/// same. The first one is not to change anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RootOrder(pub(crate) u64);

impl RootOrder {
    /// The next order: that root.
    fn next(self, pid: Option<u32>) -> RootOrder {
        let number = (self.0 >> 32).wrapping_add(1);
        RootOrder(number << 32 | u64::from(pid.unwrap_or(0)))
    }

    /// The root's number, if there is a root.
    pub(crate) fn pid(self) -> Option<u32> {
        Some(self.0 as u32).filter(|&pid| pid != 0)
    }
}

/// How a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slept {
    /// There may be something new, or the time is over.
    Well,
    /// A signal came.
    Interrupted,
}

/// The shared memory, mapped.
pub(crate) struct Ring {
    words: NonNull<AtomicU64>,
    shape: Shape,
}

// SAFETY: the mapping belongs to this value alone until it is dropped, and every access to it is atomic.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// Makes the memory, and the descriptor by which another process can map it.
    pub(crate) fn create(shape: Shape) -> Result<(Self, OwnedFd), Errno> {
        let file = rustix::fs::memfd_create("webdyno-readings", MemfdFlags::CLOEXEC)?;
        // Allocated now: when memory runs out later, the sampler must not die for want of a page of it.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, shape.bytes() as u64)?;
        Ok((Ring::map(file.as_fd(), shape)?, file))
    }

    /// Maps the memory that another process made; `INVAL` when it is not of the size that `shape` asks for.
    pub(crate) fn open(file: BorrowedFd<'_>, shape: Shape) -> Result<Self, Errno> {
        if rustix::fs::fstat(file)?.st_size as u64 != shape.bytes() as u64 {
            return Err(Errno::INVAL);
        }
        Ring::map(file, shape)
    }

    /// Writes the notes, those that fit into 8 KiB; before the first row, because a reader looks at them once it sees one.
    pub(crate) fn set_notes(&mut self, notes: &[String]) {
        let mut text = String::new();
        for note in notes {
            if text.len() + note.len() < (HEADER - NOTES) * 8 {
                text.push_str(note);
                text.push('\n');
            }
        }
        for (word, chunk) in self.words()[NOTES..HEADER].iter().zip(text.as_bytes().chunks(8)) {
            let mut packed = [0; 8];
            packed[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(packed), Ordering::Relaxed);
        }
        self.words()[NOTES_LENGTH].store(text.len() as u64, Ordering::Release);
    }

    /// The notes.
    pub(crate) fn notes(&self) -> Vec<String> {
        let length = self.words()[NOTES_LENGTH].load(Ordering::Acquire) as usize;
        let mut bytes: Vec<u8> =
            self.words()[NOTES..HEADER].iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        bytes.truncate(length);
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    /// The parent's side: orders another root.
    pub(crate) fn order_root(&self, pid: Option<u32>) {
        let word = &self.words()[ROOT];
        word.store(RootOrder(word.load(Ordering::Relaxed)).next(pid).0, Ordering::Relaxed);
    }

    /// The sampler's side: the root that was ordered last.
    pub(crate) fn root_order(&self) -> RootOrder {
        RootOrder(self.words()[ROOT].load(Ordering::Relaxed))
    }

    /// Appends a row, over the earliest one once the ring is full, and rings the bell.
    pub(crate) fn publish(&mut self, look: &Look) {
        let index = self.published();
        let slot = self.slot(index);
        // A reader that sees any of the new words must also see that the old row is gone: see `look`.
        fence(Ordering::Release);
        let numbers = look.reading.values.iter().chain(&look.devices);
        slot[0].store(look.reading.at_ns, Ordering::Relaxed);
        slot[1..].iter().zip(numbers).for_each(|(word, &value)| word.store(value, Ordering::Relaxed));
        self.words()[PUBLISHED].store(index + 1, Ordering::Release);
        self.bell().store(index as u32 + 1, Ordering::Release);
        // It fails only when the memory is none, and then nobody waits.
        let _ = futex::wake(self.bell(), futex::Flags::empty(), i32::MAX as u32);
    }

    /// Sleeps until more than `seen` rows were published, or something else ends it.
    pub(crate) fn wait(&self, seen: u64, timeout: Nanos) -> Slept {
        // The bell follows the count: whoever still sees the old one is woken by the new one.
        let bell = self.bell().load(Ordering::Acquire);
        if bell != seen as u32 || self.published() > seen {
            return Slept::Well;
        }
        match futex::wait(self.bell(), futex::Flags::empty(), bell, Some(&timespec(timeout))) {
            Err(Errno::INTR) => Slept::Interrupted,
            _ => Slept::Well,
        }
    }

    /// How many rows were ever published.
    pub(crate) fn published(&self) -> u64 {
        self.words()[PUBLISHED].load(Ordering::Acquire)
    }

    /// The index of the earliest row that is still whole, were `published` the number published: the slot after the newest
    /// row may be half written at any time.
    pub(crate) fn earliest(&self, published: u64) -> u64 {
        (published + 1).saturating_sub(self.shape.capacity as u64)
    }

    /// The row of that index, counted from the first ever published; `None` when it is not there yet or no more.
    pub(crate) fn look(&self, index: u64) -> Option<Look> {
        let (reading, rest) = self.copy(index)?;
        let devices = rest.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        self.still_whole(index).then_some(Look { reading, devices })
    }

    /// The columns of that row alone.
    pub(crate) fn reading(&self, index: u64) -> Option<Reading> {
        let (reading, _) = self.copy(index)?;
        self.still_whole(index).then_some(reading)
    }

    /// The columns of a row and where its other numbers stand, whole or not.
    fn copy(&self, index: u64) -> Option<(Reading, &[AtomicU64])> {
        if index >= self.published() {
            return None;
        }
        let (columns, rest) = self.slot(index).split_at(1 + COLUMNS);
        let mut reading = Reading::empty(columns[0].load(Ordering::Relaxed));
        reading.values.iter_mut().zip(&columns[1..]).for_each(|(value, word)| *value = word.load(Ordering::Relaxed));
        Some((reading, rest))
    }

    /// Whether the row was not being overwritten until now.
    fn still_whole(&self, index: u64) -> bool {
        fence(Ordering::Acquire);
        index >= self.earliest(self.published())
    }

    fn slot(&self, index: u64) -> &[AtomicU64] {
        let row = self.shape.row();
        let begin = HEADER + (index % self.shape.capacity as u64) as usize * row;
        &self.words()[begin..begin + row]
    }

    /// The low half of the number of rows published, as a futex.
    fn bell(&self) -> &AtomicU32 {
        // SAFETY: the word lies in the mapping, is aligned for more than this, and is never accessed in another size.
        unsafe { AtomicU32::from_ptr(self.words.as_ptr().add(BELL).cast()) }
    }

    fn map(file: BorrowedFd<'_>, shape: Shape) -> Result<Self, Errno> {
        // SAFETY: the kernel chooses a free range for a new mapping, so no memory in use is touched.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                shape.bytes(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                0,
            )?
        };
        let words = NonNull::new(start.cast()).ok_or(Errno::FAULT)?;
        Ok(Ring { words, shape })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping starts at a page, has this many words, lives as long as `self`, and is shared with another
        // process that accesses it by the same atomic words only.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.shape.bytes() / 8) }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("shape", &self.shape).field("published", &self.published()).finish()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `map` got, and no reference into it outlives `self`. Failure leaves it mapped.
        let _ = unsafe { rustix::mm::munmap(self.words.as_ptr().cast(), self.shape.bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: usize = 3;

    fn shape(capacity: usize) -> Shape {
        Shape { capacity, devices: DEVICES }
    }

    fn look(number: u64) -> Look {
        Look { reading: Reading { at_ns: number, values: [number; COLUMNS] }, devices: vec![number; DEVICES] }
    }

    fn check(capacity: usize, published: u64, expected: &[u64]) {
        let (mut ring, file) = Ring::create(shape(capacity)).unwrap();
        let other = Ring::open(file.as_fd(), shape(capacity)).unwrap();
        (0..published).for_each(|number| ring.publish(&look(number)));
        let seen: Vec<_> =
            (other.earliest(other.published())..other.published() + 2).filter_map(|index| other.look(index)).collect();
        let expected: Vec<_> = expected.iter().map(|&number| look(number)).collect();
        assert_eq!(seen, expected, "{published} rows in a ring of {capacity}");
    }

    #[test]
    fn what_one_side_publishes_the_other_sees() {
        check(4, 0, &[]);
        check(4, 3, &[0, 1, 2]);
    }

    #[test]
    fn a_full_ring_keeps_the_newest_whole_rows() {
        check(4, 4, &[1, 2, 3]);
        check(4, 9, &[6, 7, 8]);
    }

    #[test]
    fn a_row_is_never_seen_half_written() {
        let (mut ring, file) = Ring::create(shape(3)).unwrap();
        let reader = std::thread::spawn(move || {
            let other = Ring::open(file.as_fd(), shape(3)).unwrap();
            let mut whole = 0;
            loop {
                let published = other.published();
                for seen in (other.earliest(published)..published).filter_map(|index| other.look(index)) {
                    assert_eq!(seen, look(seen.at_ns()), "half a row");
                    whole += 1;
                }
                if published == 100_000 {
                    return whole;
                }
            }
        });
        (0..100_000).for_each(|number| ring.publish(&look(number)));
        assert!(reader.join().unwrap() > 0);
    }

    #[test]
    fn notes_come_across_as_far_as_there_is_room() {
        let (mut ring, file) = Ring::create(shape(1)).unwrap();
        let other = Ring::open(file.as_fd(), shape(1)).unwrap();
        let mut notes = vec!["no PSI".to_owned(), "locked memory was refused (EPERM) – read on".to_owned()];
        ring.set_notes(&notes);
        assert_eq!(other.notes(), notes);
        notes.extend((0..1000).map(|number| format!("note number {number}")));
        ring.set_notes(&notes);
        let seen = other.notes();
        assert!(seen.len() > 100 && seen.len() < notes.len() && notes.starts_with(&seen));
    }

    #[test]
    fn orders_differ_even_when_the_root_is_the_same() {
        let (ring, file) = Ring::create(shape(1)).unwrap();
        let other = Ring::open(file.as_fd(), shape(1)).unwrap();
        assert_eq!(other.root_order(), RootOrder::default());
        let mut orders = vec![RootOrder::default()];
        for pid in [Some(7), Some(7), None, Some(u32::MAX)] {
            ring.order_root(pid);
            assert_eq!(other.root_order().pid(), pid);
            assert!(!orders.contains(&other.root_order()), "{orders:?}");
            orders.push(other.root_order());
        }
    }

    #[test]
    fn a_file_of_another_size_is_refused() {
        let (_ring, file) = Ring::create(shape(2)).unwrap();
        assert_eq!(Ring::open(file.as_fd(), shape(3)).err(), Some(Errno::INVAL));
        assert_eq!(Ring::open(file.as_fd(), Shape { capacity: 2, devices: DEVICES + 1 }).err(), Some(Errno::INVAL));
    }

    #[test]
    fn whoever_waits_is_woken_by_the_row() {
        const ROWS: u64 = 1000;
        let (mut ring, file) = Ring::create(shape(3)).unwrap();
        let waiter = std::thread::spawn(move || {
            let other = Ring::open(file.as_fd(), shape(3)).unwrap();
            let mut seen = 0;
            while seen < ROWS {
                // Far longer than any test may take: only the bell can end it in time.
                let _ = other.wait(seen, 1000 * model::SECOND);
                seen = other.published();
            }
        });
        (0..ROWS).for_each(|number| {
            ring.publish(&look(number));
            std::thread::yield_now();
        });
        waiter.join().unwrap();
    }

    #[test]
    fn a_wait_ends_without_a_row() {
        let (ring, _file) = Ring::create(shape(3)).unwrap();
        assert_eq!(ring.wait(0, 1000), Slept::Well);
        assert_eq!(ring.published(), 0);
    }
}
