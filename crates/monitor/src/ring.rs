//! The memory that a sampler and its parent share: notes first, then a ring of readings.
//!
//! One process writes rows, another reads them, and neither ever waits for the other: the number of rows published so far is
//! stored after the row itself, and a reader looks at it again after copying a row, to know that the row was not being
//! overwritten meanwhile. The layout is private to one build of the program, so it carries no version.

use model::reading::{ABSENT, COLUMNS, Reading};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of a row: when, and the columns.
const ROW: usize = 1 + COLUMNS;
/// Words before the first row: the number of rows published, the length of the notes in bytes, the notes.
const HEADER: usize = 1024;
const PUBLISHED: usize = 0;
const NOTES_LENGTH: usize = 1;
const NOTES: usize = 2;

/// The shared memory, mapped.
pub(crate) struct Ring {
    words: NonNull<AtomicU64>,
    capacity: usize,
}

// SAFETY: the mapping belongs to this value alone until it is dropped, and every access to it is atomic.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// Makes the memory, with room for `capacity` rows, and the descriptor by which another process can map it.
    pub(crate) fn create(capacity: usize) -> Result<(Self, OwnedFd), Errno> {
        let file = rustix::fs::memfd_create("webdyno-readings", MemfdFlags::CLOEXEC)?;
        // Allocated now: when memory runs out later, the sampler must not die for want of a page of it.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes(capacity) as u64)?;
        Ok((Ring::map(file.as_fd(), capacity)?, file))
    }

    /// Maps the memory that another process made; `INVAL` when it is not of the size that `capacity` asks for.
    pub(crate) fn open(file: BorrowedFd<'_>, capacity: usize) -> Result<Self, Errno> {
        if rustix::fs::fstat(file)?.st_size as u64 != bytes(capacity) as u64 {
            return Err(Errno::INVAL);
        }
        Ring::map(file, capacity)
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

    /// Appends a row; over the earliest one once the ring is full.
    pub(crate) fn publish(&mut self, row: &Reading) {
        let index = self.published();
        let slot = self.slot(index);
        // A reader that sees any of the new words must also see that the old row is gone: see `row`.
        fence(Ordering::Release);
        slot[0].store(row.at_ns, Ordering::Relaxed);
        slot[1..].iter().zip(&row.values).for_each(|(word, &value)| word.store(value, Ordering::Relaxed));
        self.words()[PUBLISHED].store(index + 1, Ordering::Release);
    }

    /// How many rows were ever published.
    pub(crate) fn published(&self) -> u64 {
        self.words()[PUBLISHED].load(Ordering::Acquire)
    }

    /// The index of the earliest row that is still whole, were `published` the number published: the slot after the newest
    /// row may be half written at any time.
    pub(crate) fn earliest(&self, published: u64) -> u64 {
        (published + 1).saturating_sub(self.capacity as u64)
    }

    /// The row of that index, counted from the first ever published; `None` when it is not there yet or no more.
    pub(crate) fn row(&self, index: u64) -> Option<Reading> {
        if index >= self.published() {
            return None;
        }
        let slot = self.slot(index);
        let mut row = Reading { at_ns: slot[0].load(Ordering::Relaxed), values: [ABSENT; COLUMNS] };
        row.values.iter_mut().zip(&slot[1..]).for_each(|(value, word)| *value = word.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        (index >= self.earliest(self.published())).then_some(row)
    }

    fn slot(&self, index: u64) -> &[AtomicU64] {
        let begin = HEADER + (index % self.capacity as u64) as usize * ROW;
        &self.words()[begin..begin + ROW]
    }

    fn map(file: BorrowedFd<'_>, capacity: usize) -> Result<Self, Errno> {
        // SAFETY: the kernel chooses a free range for a new mapping, so no memory in use is touched.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes(capacity),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                0,
            )?
        };
        let words = NonNull::new(start.cast()).ok_or(Errno::FAULT)?;
        Ok(Ring { words, capacity })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping starts at a page, has this many words, lives as long as `self`, and is shared with another
        // process that accesses it by the same atomic words only.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), bytes(self.capacity) / 8) }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("capacity", &self.capacity).field("published", &self.published()).finish()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `map` got, and no reference into it outlives `self`. Failure leaves it mapped.
        let _ = unsafe { rustix::mm::munmap(self.words.as_ptr().cast(), bytes(self.capacity)) };
    }
}

fn bytes(capacity: usize) -> usize {
    (HEADER + capacity * ROW) * 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::reading::Column;

    fn reading(number: u64) -> Reading {
        Reading { at_ns: number, values: [number; COLUMNS] }
    }

    fn check(capacity: usize, published: u64, expected: &[u64]) {
        let (mut ring, file) = Ring::create(capacity).unwrap();
        let other = Ring::open(file.as_fd(), capacity).unwrap();
        (0..published).for_each(|number| ring.publish(&reading(number)));
        let seen: Vec<_> = (other.earliest(other.published())..other.published() + 2)
            .filter_map(|index| other.row(index))
            .map(|row| (row.at_ns, row.get(Column::ALL[COLUMNS - 1])))
            .collect();
        let expected: Vec<_> = expected.iter().map(|&number| (number, Some(number))).collect();
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
        let (mut ring, file) = Ring::create(3).unwrap();
        let reader = std::thread::spawn(move || {
            let other = Ring::open(file.as_fd(), 3).unwrap();
            let mut whole = 0;
            loop {
                let published = other.published();
                for row in (other.earliest(published)..published).filter_map(|index| other.row(index)) {
                    assert!(row.values.iter().all(|&value| value == row.at_ns), "half a row: {row:?}");
                    whole += 1;
                }
                if published == 100_000 {
                    return whole;
                }
            }
        });
        (0..100_000).for_each(|number| ring.publish(&reading(number)));
        assert!(reader.join().unwrap() > 0);
    }

    #[test]
    fn notes_come_across_as_far_as_there_is_room() {
        let (mut ring, file) = Ring::create(1).unwrap();
        let other = Ring::open(file.as_fd(), 1).unwrap();
        let mut notes = vec!["no PSI".to_owned(), "locked memory was refused (EPERM) – read on".to_owned()];
        ring.set_notes(&notes);
        assert_eq!(other.notes(), notes);
        notes.extend((0..1000).map(|number| format!("note number {number}")));
        ring.set_notes(&notes);
        let seen = other.notes();
        assert!(seen.len() > 100 && seen.len() < notes.len() && notes.starts_with(&seen));
    }

    #[test]
    fn a_file_of_another_size_is_refused() {
        let (_ring, file) = Ring::create(2).unwrap();
        assert_eq!(Ring::open(file.as_fd(), 3).err(), Some(Errno::INVAL));
    }
}
