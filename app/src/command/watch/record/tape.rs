//! What is recorded when: looks become chunks, chunks are written as they are complete, and wait in memory when they cannot be.
//!
//! No thread and no clock of its own. What must be told comes back as lines.

use crate::say::count;
use model::process::Processes;
use model::reading::Look;
use model::recording::{Chunk, RecordingHead, Retention};
use model::run::{Anchor, RunEnd};
use model::{Nanos, SECOND};
use std::collections::VecDeque;
use store::{Store, StoreError};

/// A chunk has so many looks at most: with a look a second, a killed watch loses a minute at most.
const LOOKS: usize = 64;
/// A chunk covers so much time at most.
const LENGTH: Nanos = 60 * SECOND;
/// So many chunks wait for a disk without room; about 100 KB each.
const WAITING: usize = 32;
/// After so long a recording goes on as a new one, so that the beginning of a watch without end can be forgotten.
const PART: Nanos = 86_400 * SECOND;
/// Between two times of forgetting.
const FORGETTING: Nanos = 4200 * SECOND;

/// What is kept of recordings, and how new ones are called.
#[derive(Clone, Copy)]
pub(crate) struct Keeping {
    /// What is kept.
    pub(crate) retention: Retention,
    /// An identifier for a recording that begins then.
    pub(crate) name: fn(Anchor) -> String,
}

/// A recording that is being written.
pub(crate) struct Tape {
    store: Store,
    head: RecordingHead,
    keeping: Keeping,
    clock: fn() -> Anchor,
    /// Being filled.
    open: Option<Chunk>,
    /// Complete and not yet written.
    full: VecDeque<Chunk>,
    /// Processes at looks, of chunks that are not complete yet.
    processes: VecDeque<(Nanos, Processes)>,
    /// Looks lost since the last chunk that was begun.
    lost: u64,
    trouble: Option<Trouble>,
    forgot: Nanos,
}

/// A time in which nothing can be written.
struct Trouble {
    why: String,
    lost: u64,
}

impl Tape {
    /// Enters the recording; recordings that are too old, or too much, go first. `clock` is both clocks now.
    pub(crate) fn start(
        mut store: Store,
        head: RecordingHead,
        keeping: Keeping,
        clock: fn() -> Anchor,
    ) -> Result<Tape, StoreError> {
        store.forget(keeping.retention, head.anchor.wall_ns)?;
        store.begin_recording(&head)?;
        let forgot = head.anchor.mono_ns;
        Ok(Tape {
            store,
            head,
            keeping,
            clock,
            open: None,
            full: VecDeque::new(),
            processes: VecDeque::new(),
            lost: 0,
            trouble: None,
            forgot,
        })
    }

    /// Takes new looks, of which so many more were missed, and writes what is complete. Returns what must be told.
    pub(crate) fn take(&mut self, looks: Vec<Look>, missed: u64) -> Vec<String> {
        self.lost += missed;
        let mut told = Vec::new();
        for look in looks {
            let at = look.at_ns();
            if self.open.as_ref().is_some_and(|chunk| is_full(chunk, at)) {
                self.close();
                told.extend(self.write());
                self.go_on(&look);
            }
            let (lost, clock) = (&mut self.lost, self.clock);
            let begin = || Chunk {
                anchor: anchor_of(&look, clock),
                looks: Vec::new(),
                processes: Vec::new(),
                lost: std::mem::take(lost),
                notes: Vec::new(),
            };
            self.open.get_or_insert_with(begin).looks.push(look);
        }
        told
    }

    /// Takes every process at a look, which may be one that is still to come.
    pub(crate) fn take_processes(&mut self, look_ns: Nanos, processes: Processes) {
        self.processes.push_back((look_ns, processes));
    }

    /// Writes what is left and notes that the recording is complete. Returns what must be told, and whether it has its end.
    pub(crate) fn end(mut self) -> (Vec<String>, bool) {
        self.close();
        let mut told: Vec<String> = self.write().into_iter().collect();
        let waiting: u64 = self.full.iter().map(|chunk| chunk.looks.len() as u64).sum();
        let id = &self.head.id;
        if waiting > 0 {
            told.push(format!("{} at the end of recording {id} could not be written", count(waiting, "reading")));
        } else if let Err(error) = self.store.finish(id, &RunEnd::Complete) {
            told.push(format!("every reading of recording {id} is saved, but not that it is complete: {error}"));
        }
        (told, waiting == 0)
    }

    fn close(&mut self) {
        let Some(mut chunk) = self.open.take() else { return };
        let (first, last) = (chunk.anchor.mono_ns, chunk.looks.last().map_or(0, Look::at_ns));
        let later = self.processes.partition_point(|(look_ns, _)| *look_ns <= last);
        // Rows that a terminal held up come when the chunk of their look has been written.
        chunk.processes = self.processes.drain(..later).filter(|(look_ns, _)| *look_ns >= first).collect();
        self.full.push_back(chunk);
    }

    /// Writes every complete chunk, or as far as the disk takes them. A line when that begins to fail and when it works again.
    fn write(&mut self) -> Option<String> {
        while let Some(chunk) = self.full.front_mut() {
            if let Some(trouble) = &self.trouble {
                let note = format!("could not be written for a while: {}", trouble.why);
                if !chunk.notes.contains(&note) {
                    chunk.notes.push(note);
                }
            }
            match self.store.append(&self.head, chunk) {
                Ok(()) => drop(self.full.pop_front()),
                Err(error) => return self.is_refused(&error),
            }
        }
        let trouble = self.trouble.take()?;
        Some(match trouble.lost {
            0 => format!("recording {} goes on, with nothing missing", self.head.id),
            lost => format!("recording {} goes on, with {} missing", self.head.id, count(lost, "reading")),
        })
    }

    fn is_refused(&mut self, error: &StoreError) -> Option<String> {
        let begins = self.trouble.is_none();
        let trouble = self.trouble.get_or_insert_with(|| Trouble { why: error.to_string(), lost: 0 });
        while self.full.len() > WAITING {
            let Some(gone) = self.full.pop_front() else { break };
            let looks = gone.looks.len() as u64;
            trouble.lost += looks;
            if let Some(next) = self.full.front_mut() {
                next.lost += gone.lost + looks;
            }
        }
        let id = &self.head.id;
        begins.then(|| {
            format!("recording {id} waits: {error}; the watch goes on, and readings are kept in memory meanwhile")
        })
    }

    /// Forgets what has become too old, and goes on in a new part when this one is long enough; when that is refused, later.
    fn go_on(&mut self, first: &Look) {
        if self.trouble.is_some() {
            return;
        }
        let now = anchor_of(first, self.clock);
        if now.mono_ns.saturating_sub(self.head.anchor.mono_ns) >= PART {
            let before = self.head.id.clone();
            let id = (self.keeping.name)(now);
            let next = RecordingHead { id, anchor: now, continues: Some(before.clone()), ..self.head.clone() };
            if self.store.begin_recording(&next).is_ok() {
                self.head = next;
                // Nothing depends on it: what is not marked as complete was killed, and can be replayed as well.
                let _ = self.store.finish(&before, &RunEnd::Complete);
            }
        }
        if now.mono_ns.saturating_sub(self.forgot) >= FORGETTING {
            self.forgot = now.mono_ns;
            // What is too much now can go an hour later.
            let _ = self.store.forget(self.keeping.retention, now.wall_ns);
        }
    }
}

fn is_full(chunk: &Chunk, next_ns: Nanos) -> bool {
    chunk.looks.len() >= LOOKS || next_ns.saturating_sub(chunk.anchor.mono_ns) >= LENGTH
}

/// Both clocks at a look that has just been.
fn anchor_of(look: &Look, clock: fn() -> Anchor) -> Anchor {
    look.reading.anchor().unwrap_or_else(|| {
        let now = clock();
        let since = i64::try_from(now.mono_ns.saturating_sub(look.at_ns())).unwrap_or_default();
        Anchor { mono_ns: look.at_ns(), wall_ns: now.wall_ns.saturating_sub(since) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::device::Roster;
    use model::reading::Column;
    use model::run::HostFacts;
    use store::Recorded;

    const WALL: i64 = 1_763_000_000_000_000_000;

    fn clock() -> Anchor {
        Anchor { mono_ns: 0, wall_ns: WALL }
    }

    fn name(anchor: Anchor) -> String {
        format!("part-{}", anchor.mono_ns / PART)
    }

    fn head() -> RecordingHead {
        RecordingHead {
            id: "first".into(),
            anchor: clock(),
            host: HostFacts::default(),
            version: "0".into(),
            words: vec![],
            period_ns: SECOND,
            page_bytes: 4096,
            roster: Roster::default(),
            notes: vec![],
            continues: None,
        }
    }

    fn look(second: u64) -> Look {
        let mut look = Look::empty(second * SECOND, 0);
        look.reading.set(Column::Runnable, second);
        look
    }

    fn tape(folder: &std::path::Path) -> Tape {
        let store = Store::open(&folder.join("store.sqlite")).unwrap();
        Tape::start(store, head(), Keeping { retention: Retention::default(), name }, clock).unwrap()
    }

    /// The seconds in a recording, and how many looks were lost before the chunks in which any were.
    fn seconds(folder: &std::path::Path, id: &str) -> (Vec<u64>, Vec<u64>, Recorded) {
        let store = Store::open(&folder.join("store.sqlite")).unwrap();
        let recorded = store.recorded(id).unwrap();
        let chunks: Vec<Chunk> = recorded.pieces.iter().map(|piece| store.chunk(&recorded, piece).unwrap()).collect();
        let seconds = chunks.iter().flat_map(|chunk| &chunk.looks).map(|look| look.at_ns() / SECOND).collect();
        (seconds, chunks.iter().map(|chunk| chunk.lost).filter(|&lost| lost > 0).collect(), recorded)
    }

    #[test]
    fn a_minute_is_written_as_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut tape = tape(folder.path());
        assert!(tape.take((0..61).map(look).collect(), 0).is_empty());
        // A reader, or a killed writer's heir, sees all but the chunk under way.
        assert_eq!(seconds(folder.path(), "first").0, (0..60).collect::<Vec<_>>());
        assert!(tape.take((65..70).map(look).collect(), 4).is_empty());
        assert_eq!(tape.end(), (vec![], true));
        let (found, lost, recorded) = seconds(folder.path(), "first");
        assert_eq!(found, (0..61).chain(65..70).collect::<Vec<_>>());
        assert_eq!((lost, recorded.end), (vec![], RunEnd::Complete));
    }

    #[test]
    fn processes_are_written_with_their_looks() {
        let folder = tempfile::tempdir().unwrap();
        let mut tape = tape(folder.path());
        let at = |second: u64| Processes { at_ns: second * SECOND + 1, ..Processes::default() };
        // The one at second 60 is here before its look, and that of second 59 comes too late.
        for second in [0, 1, 60] {
            tape.take_processes(second * SECOND, at(second));
        }
        tape.take((0..61).map(look).collect(), 0);
        tape.take_processes(59 * SECOND, at(59));
        tape.end();
        let store = Store::open(&folder.path().join("store.sqlite")).unwrap();
        let recorded = store.recorded("first").unwrap();
        let of = |piece| store.chunk(&recorded, piece).unwrap().processes;
        let found: Vec<Vec<_>> = recorded.pieces.iter().map(of).collect();
        let expected =
            |seconds: &[u64]| seconds.iter().map(|&second| (second * SECOND, at(second))).collect::<Vec<_>>();
        assert_eq!(found, [expected(&[0, 1]), expected(&[60])]);
    }

    #[test]
    fn a_storm_is_written_by_the_number_of_looks() {
        let folder = tempfile::tempdir().unwrap();
        let mut tape = tape(folder.path());
        let fast = |at: u64| Look::empty(at * SECOND / 10, 0);
        tape.take((0..200).map(fast).collect(), 0);
        let pieces = seconds(folder.path(), "first").2.pieces;
        assert_eq!(pieces.iter().map(|piece| piece.extent.looks).collect::<Vec<_>>(), [64, 64, 64]);
    }

    #[test]
    fn a_long_watch_goes_on_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let mut tape = tape(folder.path());
        let day = PART / SECOND;
        tape.take([0, 30, day - 1, day + 20, day + 100].map(look).to_vec(), 0);
        tape.end();
        assert_eq!(seconds(folder.path(), "first").0, [0, 30, day - 1, day + 20]);
        let (found, _, second) = seconds(folder.path(), "part-1");
        assert_eq!((found, second.head.continues.as_deref()), (vec![day + 100], Some("first")));
        assert_eq!(second.head.anchor.wall_ns, WALL);
    }

    /// A trigger that refuses every chunk stands for a disk that takes nothing.
    #[test]
    fn a_refusal_is_told_once_and_the_gap_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut tape = tape(folder.path());
        tape.take((0..60).map(look).collect(), 0);
        let broken = folder.path().join("store.sqlite");
        let other = rusqlite::Connection::open(&broken).unwrap();
        let trigger = "CREATE TRIGGER no BEFORE INSERT ON chunk BEGIN SELECT RAISE(ABORT, 'no room'); END";
        other.execute_batch(trigger).unwrap();
        let told = tape.take((60..60 * 40).map(look).collect(), 0);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("recording first waits: ") && told[0].contains(&broken.display().to_string()));
        other.execute_batch("DROP TRIGGER no").unwrap();
        let told = tape.take((2400..2461).map(look).collect(), 0);
        assert_eq!(told, ["recording first goes on, with 420 readings missing"]);
        assert_eq!(tape.end(), (vec![], true));
        let (found, lost, _) = seconds(folder.path(), "first");
        assert_eq!((found.len() as u64, lost), (2461 - 420, vec![420]));
    }

    #[test]
    fn an_end_that_cannot_be_written_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let mut tape = tape(folder.path());
        tape.take((0..3).map(look).collect(), 0);
        let other = rusqlite::Connection::open(folder.path().join("store.sqlite")).unwrap();
        other
            .execute_batch("CREATE TRIGGER no BEFORE INSERT ON chunk BEGIN SELECT RAISE(ABORT, 'no room'); END")
            .unwrap();
        let (told, has_its_end) = tape.end();
        assert_eq!(
            told.last().map(String::as_str),
            Some("3 readings at the end of recording first could not be written")
        );
        assert!(!has_its_end);
    }
}
