//! A recording as a film: it goes by, stands still, and is gone through. Only the chunks that are seen are read.

use super::super::place;
use super::{Film, Still, with_news};
use crate::say::count;
use model::reading::Look;
use model::recording::Chunk;
use model::run::Anchor;
use model::{Nanos, SECOND};
use report::watch::full::{COLUMNS, State};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use store::{Recorded, Store};

/// Chunks that are kept unpacked: four hours, at one look a second.
const KEPT: usize = 256;
/// A time without looks that is longer is passed over.
const GAP: Nanos = 10 * SECOND;
/// Not slower than a tenth, nor faster than a day in a minute.
const SPEEDS: (f64, f64) = (0.1, 1440.0);

/// A recording, and where in it we are.
pub(super) struct Tape {
    store: Store,
    recorded: Recorded,
    at_ns: Nanos,
    playing: bool,
    speed: f64,
    /// When time was last looked at.
    since: Instant,
    unpacked: BTreeMap<usize, Chunk>,
    /// The looks that are seen.
    looks: Vec<Look>,
}

impl Tape {
    pub(super) fn open(path: &Path, id: &str, speed: f64) -> anyhow::Result<Tape> {
        let store = Store::open_existing(path)?;
        let recorded = store.recorded(id)?;
        anyhow::ensure!(!recorded.pieces.is_empty(), "recording {} has no reading", recorded.head.id);
        let mut tape = Tape {
            store,
            recorded,
            at_ns: 0,
            playing: true,
            speed,
            since: Instant::now(),
            unpacked: BTreeMap::new(),
            looks: Vec::new(),
        };
        tape.leap(false);
        Ok(tape)
    }

    fn first_ns(&self) -> Nanos {
        self.recorded.pieces.first().map_or(0, |piece| piece.extent.from_ns)
    }

    fn last_ns(&self) -> Nanos {
        self.recorded.pieces.last().map_or(0, |piece| piece.extent.to_ns)
    }

    /// The last chunk that begins before this instant, or at it.
    fn piece_at(&self, at_ns: Nanos) -> usize {
        self.recorded.pieces.partition_point(|piece| piece.extent.from_ns <= at_ns).saturating_sub(1)
    }

    /// Passes over a time without looks.
    fn pass_over(&mut self) {
        let here = self.piece_at(self.at_ns);
        let (ended, next) = (&self.recorded.pieces[here], self.recorded.pieces.get(here + 1));
        if let Some(next) =
            next.filter(|next| next.extent.from_ns > self.at_ns + GAP && self.at_ns > ended.extent.to_ns)
        {
            self.at_ns = next.extent.from_ns;
        }
    }

    /// Unpacks these chunks, and lets go of those that are farthest away when there are too many.
    fn unpack(&mut self, from: usize, to: usize) -> anyhow::Result<()> {
        for at in from..=to {
            if !self.unpacked.contains_key(&at) {
                let chunk = self.store.chunk(&self.recorded, &self.recorded.pieces[at])?;
                self.unpacked.insert(at, chunk);
            }
        }
        while self.unpacked.len() > KEPT.max(to - from + 1) {
            let far = if self.unpacked.first_key_value().is_some_and(|(&first, _)| first < from) {
                self.unpacked.pop_first()
            } else {
                self.unpacked.pop_last()
            };
            drop(far);
        }
        Ok(())
    }

    fn anchor(&self) -> Anchor {
        self.unpacked
            .get(&self.piece_at(self.at_ns))
            .map_or(self.recorded.head.anchor, |chunk| chunk.anchor_at(self.at_ns))
    }

    fn notes(&self) -> Vec<String> {
        let here = self.piece_at(self.at_ns);
        let mut notes: Vec<String> = self.unpacked.get(&here).map(|chunk| chunk.notes.clone()).unwrap_or_default();
        let lost = self.recorded.pieces[here].lost;
        if lost > 0 {
            notes.insert(0, format!("{} missing before these", count(lost, "reading")));
        }
        notes.extend(self.recorded.head.notes.iter().cloned());
        with_news(&notes)
    }
}

impl Film for Tape {
    fn go_on(&mut self) -> anyhow::Result<bool> {
        let passed = self.since.elapsed();
        self.since = Instant::now();
        if !self.playing {
            return Ok(false);
        }
        let last = self.last_ns();
        let more = passed.as_secs_f64() * self.speed * SECOND as f64;
        self.at_ns = (self.at_ns + more as Nanos).min(last);
        self.pass_over();
        self.playing = self.at_ns < last;
        Ok(true)
    }

    fn is_over(&self) -> bool {
        false
    }

    fn pause(&mut self) {
        // From its end it goes on from the beginning.
        if !self.playing && self.at_ns >= self.last_ns() {
            self.leap(false);
        }
        self.playing = !self.playing;
    }

    fn step(&mut self, by_ns: i64) {
        self.at_ns = self.at_ns.saturating_add_signed(by_ns).clamp(self.first_ns(), self.last_ns());
    }

    fn leap(&mut self, last: bool) {
        self.at_ns = if last { self.last_ns() } else { self.first_ns() };
    }

    fn speed(&mut self, faster: bool) {
        self.speed = (self.speed * if faster { 2.0 } else { 0.5 }).clamp(SPEEDS.0, SPEEDS.1);
    }

    fn still(&mut self, column_ns: Nanos) -> anyhow::Result<Still<'_>> {
        let oldest = self.at_ns.saturating_sub((COLUMNS as u64 + 1) * column_ns);
        let (from, to) = (self.piece_at(oldest), self.piece_at(self.at_ns));
        self.unpack(from, to)?;
        self.looks.clear();
        for (_, chunk) in self.unpacked.range(from..=to) {
            self.looks.extend(chunk.looks.iter().filter(|look| look.at_ns() <= self.at_ns).cloned());
        }
        let state = match self.playing {
            true => State::Playing(self.speed),
            false if self.at_ns >= self.last_ns() => State::Over,
            false => State::Stopped,
        };
        Ok(Still {
            state,
            when: place::date_of((self.anchor().epoch_s(self.at_ns) * 1e9) as i64),
            notes: self.notes(),
            looks: &self.looks,
            host: &self.recorded.head.host,
            page_bytes: self.recorded.head.page_bytes,
            period_ns: self.recorded.head.period_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::device::Roster;
    use model::recording::RecordingHead;
    use model::run::HostFacts;

    /// A recording of chunks that begin at these seconds and are ten looks long.
    fn tape(begins: &[u64]) -> (tempfile::TempDir, Tape) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        let mut store = Store::open(&path).unwrap();
        let head = RecordingHead {
            id: "r".into(),
            anchor: Anchor { mono_ns: 0, wall_ns: 0 },
            host: HostFacts::default(),
            version: "0".into(),
            words: vec![],
            period_ns: SECOND,
            page_bytes: 4096,
            roster: Roster::default(),
            notes: vec!["no PSI".into()],
            continues: None,
        };
        store.begin_recording(&head).unwrap();
        for (at, &begin) in begins.iter().enumerate() {
            let looks = (begin..begin + 10).map(|second| Look::empty(second * SECOND, 0)).collect();
            let anchor = Anchor { mono_ns: begin * SECOND, wall_ns: (begin * SECOND).cast_signed() };
            store.append(&head, &Chunk { anchor, looks, processes: vec![], lost: at as u64, notes: vec![] }).unwrap();
        }
        let tape = Tape::open(&path, "latest", 1.0).unwrap();
        (folder, tape)
    }

    fn seen(tape: &mut Tape, column_s: u64) -> (Vec<u64>, State, Vec<String>) {
        let still = tape.still(column_s * SECOND).unwrap();
        (still.looks.iter().map(|look| look.at_ns() / SECOND).collect(), still.state, still.notes)
    }

    #[test]
    fn it_is_gone_through() {
        let (_folder, mut tape) = tape(&[100, 110, 500]);
        tape.pause();
        assert_eq!(seen(&mut tape, 1).0, [100]);
        tape.step(12 * 1_000_000_000);
        let (looks, state, notes) = seen(&mut tape, 1);
        assert_eq!((looks, state), ((100..=112).collect(), State::Stopped));
        assert_eq!(notes, ["1 reading missing before these", "no PSI"]);
        tape.step(-3600 * 1_000_000_000);
        assert_eq!(seen(&mut tape, 1).0, [100]);
        tape.leap(true);
        let (looks, state, _) = seen(&mut tape, 1);
        // From the chunk before on: a rate begins at the look before.
        assert_eq!((looks.first(), looks.last(), state), (Some(&110), Some(&509), State::Over));
        // Charts of longer columns reach back to what was before the gap.
        assert_eq!(seen(&mut tape, 60).0.len(), 30);
        tape.pause();
        assert_eq!((seen(&mut tape, 1).0, tape.playing), (vec![100], true));
    }

    #[test]
    fn a_long_gap_is_passed_over() {
        let (_folder, mut tape) = tape(&[100, 110, 500]);
        tape.at_ns = 119 * SECOND + 1;
        tape.pass_over();
        assert_eq!(tape.at_ns, 500 * SECOND);
        tape.at_ns = 105 * SECOND;
        tape.pass_over();
        assert_eq!(tape.at_ns, 105 * SECOND);
    }

    #[test]
    fn speed_has_bounds() {
        let (_folder, mut tape) = tape(&[100]);
        tape.speed(true);
        assert_eq!(tape.speed, 2.0);
        (0..99).for_each(|_| tape.speed(true));
        assert_eq!(tape.speed, SPEEDS.1);
        (0..99).for_each(|_| tape.speed(false));
        assert_eq!(tape.speed, SPEEDS.0);
    }
}
