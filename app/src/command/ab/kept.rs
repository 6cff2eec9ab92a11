//! Every single request of a load, sixteen bytes each: in memory, and in a file without a name when there are too many.

use report::ab::{Record, Records};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Records that are handed over at a time: 1 MB.
pub(super) const AT_A_TIME: usize = 1 << 16;
/// Bytes of a record.
const EACH: usize = size_of::<Record>();
/// So many records stay in memory: 64 MB. With one more, all go into the file.
const IN_MEMORY: usize = (64 << 20) / EACH;

/// Takes records while a load goes on, on a thread of its own: writing a megabyte would delay the requests of whoever does it.
pub(super) struct Keeper {
    sender: Sender<Vec<Record>>,
    thread: JoinHandle<Kept>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Kept {
    file: Option<File>,
    in_file: u64,
    memory: Vec<Vec<Record>>,
}

impl Keeper {
    pub(super) fn start() -> io::Result<Keeper> {
        let (sender, receiver) = channel();
        let thread =
            std::thread::Builder::new().name("records".to_owned()).spawn(move || keep(&receiver, IN_MEMORY))?;
        Ok(Keeper { sender, thread })
    }

    /// Where a worker hands over its records.
    pub(super) fn hatch(&self) -> Sender<Vec<Record>> {
        self.sender.clone()
    }

    /// All records that were handed over; nobody may hand over any more.
    pub(super) fn finish(self) -> Kept {
        drop(self.sender);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn keep(receiver: &Receiver<Vec<Record>>, in_memory: usize) -> Kept {
    let mut kept = Kept::default();
    let mut held = 0;
    // Where no file can be written they stay in memory: more of it is better than no report.
    let mut refused = false;
    for records in receiver {
        held += records.len();
        kept.memory.push(records);
        if held > in_memory && !refused {
            refused = kept.spill().is_err();
            held = kept.memory.iter().map(Vec::len).sum();
        }
    }
    kept
}

impl Kept {
    /// Writes what is in memory behind what is in the file. What could not be written stays.
    fn spill(&mut self) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        let mut bytes = Vec::with_capacity(AT_A_TIME * EACH);
        let mut written = 0;
        let done = self.memory.iter().try_for_each(|records| {
            bytes.clear();
            records.iter().for_each(|record| bytes.extend_from_slice(&packed(record)));
            file.write_all(&bytes)?;
            self.in_file += records.len() as u64;
            written += 1;
            Ok(())
        });
        self.memory.drain(..written);
        self.file = Some(file);
        done
    }
}

impl Records for Kept {
    fn count(&self) -> u64 {
        self.in_file + self.memory.iter().map(|records| records.len() as u64).sum::<u64>()
    }

    fn visit(&self, show: &mut dyn FnMut(&[Record])) -> io::Result<()> {
        if let Some(file) = &self.file {
            let mut bytes = vec![0; AT_A_TIME * EACH];
            let mut records = Vec::with_capacity(AT_A_TIME);
            let mut at = 0;
            while at < self.in_file {
                let length = usize::try_from(self.in_file - at).unwrap_or(AT_A_TIME).min(AT_A_TIME) * EACH;
                file.read_exact_at(&mut bytes[..length], at * EACH as u64)?;
                records.clear();
                records.extend(bytes[..length].as_chunks::<EACH>().0.iter().map(unpacked));
                show(&records);
                at += records.len() as u64;
            }
        }
        self.memory.iter().for_each(|records| show(records));
        Ok(())
    }
}

fn packed(record: &Record) -> [u8; EACH] {
    let mut bytes = [0; EACH];
    let numbers = [record.start_ms, record.connect_us, record.total_us, record.wait_us];
    for (place, number) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
        *place = number.to_le_bytes();
    }
    bytes
}

fn unpacked(bytes: &[u8; EACH]) -> Record {
    let number = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    Record { start_ms: number(0), connect_us: number(4), total_us: number(8), wait_us: number(12) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records that are handed over in pieces of those sizes come back in order, with so few of them in memory.
    fn check(pieces: &[usize], in_memory: usize, in_file: u64) {
        let (sender, receiver) = channel();
        let mut all = Vec::new();
        for &length in pieces {
            let next = |i: usize| (all.len() + i) as u32;
            let piece: Vec<Record> = (0..length)
                .map(|i| Record { start_ms: next(i), connect_us: !next(i), total_us: next(i) << 9, wait_us: 7 })
                .collect();
            all.extend_from_slice(&piece);
            sender.send(piece).unwrap();
        }
        drop(sender);
        let kept = keep(&receiver, in_memory);
        let mut seen = Vec::new();
        kept.visit(&mut |piece| seen.extend_from_slice(piece)).unwrap();
        assert!(seen == all);
        assert_eq!((kept.count(), kept.in_file), (all.len() as u64, in_file), "{pieces:?}");
    }

    #[test]
    fn records_come_back_from_memory_and_from_the_file() {
        check(&[], 10, 0);
        check(&[5, 5], 10, 0);
        check(&[5, 6], 10, 11);
        check(&[11, 3, 4], 10, 11);
        check(&[11, 3, 8], 10, 22);
        check(&[AT_A_TIME, AT_A_TIME, 3], 10, 2 * AT_A_TIME as u64);
    }
}
