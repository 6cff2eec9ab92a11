//! Recordings of watches: a head, and chunks of looks that are each written whole or not at all.
//!
//! A writer killed at any moment leaves every chunk it had written. Old recordings are forgotten by age and by size, and their
//! room is given back to the disk; whether a recording is still being written is judged by the age of its last look alone, so
//! that several watches, also of several machines, may share a store.

use crate::blobs::{self, LOOKS_VERSION};
use crate::error::Problem;
use crate::processes;
use crate::{Kind, LATEST, Store, StoreError, WATCH, from_json, json, kind};
use model::Nanos;
use model::recording::{Chunk, Extent, RecordingHead, Retention};
use model::run::{Anchor, RunEnd};
use rusqlite::{OptionalExtension, TransactionBehavior, params};

/// A recording whose last look is younger than this may still be written: it is never forgotten, whatever its size.
const UNDER_WAY: Nanos = 3600 * model::SECOND;

/// The same in looks, where they are rare: the last one is written when the next one comes.
const LOOKS_UNDER_WAY: Nanos = 3;

/// `auto_vacuum` of a file that gives pages back when it is told to.
const INCREMENTAL: i64 = 2;

/// A recording, without its looks: [`Store::chunk`] reads a piece.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its head.
    pub head: RecordingHead,
    /// How it ended.
    pub end: RunEnd,
    /// Its chunks, ascending in time.
    pub pieces: Vec<Piece>,
}

/// Where a chunk is, and what it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    key: i64,
    /// How much there is in it; in the sum of all, how much there is of the recording.
    pub extent: Extent,
    /// Looks before it that could not be written.
    pub lost: u64,
}

impl Store {
    /// Enters a new recording.
    ///
    /// # Errors
    /// When the id is taken or the store cannot be written.
    pub fn begin_recording(&mut self, head: &RecordingHead) -> Result<(), StoreError> {
        self.begin_recording_within(head).map_err(|problem| self.fail(problem))
    }

    /// Adds a chunk to a recording: all of it or nothing.
    ///
    /// # Errors
    /// When there is no such recording or the store cannot be written.
    pub fn append(&mut self, head: &RecordingHead, chunk: &Chunk) -> Result<(), StoreError> {
        self.append_within(head, chunk).map_err(|problem| self.fail(problem))
    }

    /// A recording, by its id, a prefix that only one has, or `latest`, which is the newest recording here.
    ///
    /// # Errors
    /// When none or more than one fits, it is no recording, or what is stored cannot be read.
    pub fn recorded(&self, id: &str) -> Result<Recorded, StoreError> {
        self.recorded_within(id).map_err(|problem| self.fail(problem))
    }

    /// One chunk of a recording.
    ///
    /// # Errors
    /// When it was forgotten meanwhile, or cannot be read.
    pub fn chunk(&self, recorded: &Recorded, piece: &Piece) -> Result<Chunk, StoreError> {
        self.chunk_within(recorded, piece).map_err(|problem| self.fail(problem))
    }

    /// Forgets recordings, the oldest first, until what is left is neither too old nor too much, and gives their room back;
    /// returns their ids. `now_wall_ns` is nanoseconds since 1970.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn forget(&mut self, retention: Retention, now_wall_ns: i64) -> Result<Vec<String>, StoreError> {
        self.forget_within(retention, now_wall_ns).map_err(|problem| self.fail(problem))
    }

    fn begin_recording_within(&self, head: &RecordingHead) -> Result<(), Problem> {
        let inserted = self.connection.execute(
            "INSERT INTO run (id, plan, anchor, \"end\", head, kind) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT (id) DO NOTHING",
            params![head.id, head.words.join(" "), json(&head.anchor)?, json(&RunEnd::Unfinished)?, json(head)?, WATCH],
        )?;
        if inserted == 1 { Ok(()) } else { Err(Problem::Taken(head.id.clone())) }
    }

    fn append_within(&mut self, head: &RecordingHead, chunk: &Chunk) -> Result<(), Problem> {
        let data = blobs::pack_looks(&head.roster, &chunk.looks).map_err(Problem::Pack)?;
        let at =
            |look: Option<&model::reading::Look>| look.map_or(chunk.anchor.mono_ns, |look| look.at_ns()).cast_signed();
        let notes = json(&chunk.notes)?;
        let processes = processes::pack(&chunk.processes).map_err(Problem::Pack)?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let run: i64 = transaction
            .query_row("SELECT key FROM run WHERE id = ?1 AND kind = ?2", [head.id.as_str(), WATCH], |row| row.get(0))
            .optional()?
            .ok_or_else(|| Problem::NoRun(head.id.clone()))?;
        transaction.execute(
            "INSERT INTO chunk (run, version, looks, from_ns, to_ns, wall_ns, lost, notes, data, processes) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                run,
                LOOKS_VERSION,
                chunk.looks.len() as i64,
                at(chunk.looks.first()),
                at(chunk.looks.last()),
                chunk.anchor.wall_ns,
                chunk.lost.cast_signed(),
                notes,
                data,
                processes
            ],
        )?;
        transaction.commit()?;
        Ok(())
    }

    fn recorded_within(&self, wanted: &str) -> Result<Recorded, Problem> {
        let id = match wanted {
            LATEST => self.newest("=")?.ok_or(Problem::NoRecording)?,
            prefix => self.resolve_prefix(prefix)?,
        };
        let (key, head, end, of): (i64, String, String, String) =
            self.connection.query_row("SELECT key, head, \"end\", kind FROM run WHERE id = ?1", [&id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
        if kind(&of, &id)? != Kind::Watch {
            return Err(Problem::NotRecorded(id));
        }
        let mut statement = self
            .connection
            .prepare("SELECT key, looks, from_ns, to_ns, length(data) + ifnull(length(processes), 0), lost FROM chunk WHERE run = ?1 ORDER BY key")?;
        let pieces = statement.query_map([key], |row| {
            Ok(Piece { key: row.get(0)?, extent: extent(row, 1)?, lost: row.get::<_, i64>(5)?.unsigned_abs() })
        })?;
        Ok(Recorded { head: from_json(&head)?, end: from_json(&end)?, pieces: pieces.collect::<Result<_, _>>()? })
    }

    fn chunk_within(&self, recorded: &Recorded, piece: &Piece) -> Result<Chunk, Problem> {
        let found = self.connection.query_row(
            "SELECT version, wall_ns, lost, notes, data, processes FROM chunk WHERE key = ?1",
            [piece.key],
            |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get::<_, i64>(2)?,
                    row.get::<_, String>(3)?,
                    row.get::<_, Vec<u8>>(4)?,
                    row.get::<_, Option<Vec<u8>>>(5)?,
                ))
            },
        );
        let (version, wall_ns, lost, notes, data, processes): (i64, i64, _, _, _, _) =
            found.optional()?.ok_or_else(|| Problem::NoRun(recorded.head.id.clone()))?;
        Ok(Chunk {
            anchor: Anchor { mono_ns: piece.extent.from_ns, wall_ns },
            processes: processes.map_or(Ok(Vec::new()), |data| processes::unpack(&data)).map_err(Problem::Damaged)?,
            looks: blobs::looks(&recorded.head.roster, version, &data).map_err(Problem::Damaged)?,
            lost: lost.unsigned_abs(),
            notes: from_json(&notes)?,
        })
    }

    /// How much there is of a recording.
    pub(crate) fn extent(&self, run: i64) -> Result<Extent, Problem> {
        let sum = "SELECT ifnull(sum(looks), 0), ifnull(min(from_ns), 0), ifnull(max(to_ns), 0), \
                   ifnull(sum(length(data) + ifnull(length(processes), 0)), 0) FROM chunk WHERE run = ?1";
        Ok(self.connection.query_row(sum, [run], |row| extent(row, 0))?)
    }

    fn forget_within(&mut self, retention: Retention, now_wall_ns: i64) -> Result<Vec<String>, Problem> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let forgotten = {
            let old = oldest_first(&transaction)?;
            let forgotten = to_forget(&old, retention, now_wall_ns);
            for recording in &forgotten {
                transaction.execute("DELETE FROM run WHERE key = ?1", [recording.key])?;
            }
            forgotten.into_iter().map(|recording| recording.id.clone()).collect::<Vec<_>>()
        };
        transaction.commit()?;
        if !forgotten.is_empty() {
            self.give_room_back();
        }
        Ok(forgotten)
    }

    /// Makes the file smaller by what is free in it. Not to be able to, because somebody reads the store or there is no room to
    /// rewrite it, is no error: what is free is used again.
    fn give_room_back(&self) {
        let mode = self.connection.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i64>(0));
        // A page is given back with each step of the statement.
        let stepped = |sql: &str| -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        };
        let _ = if mode.is_ok_and(|mode| mode == INCREMENTAL) {
            stepped("PRAGMA incremental_vacuum")
        } else {
            // A store made before recordings were kept: rewritten once.
            self.connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
        };
        let _ = stepped("PRAGMA wal_checkpoint(TRUNCATE)");
    }
}

/// A recording as far as forgetting goes.
#[derive(Debug)]
struct Old {
    key: i64,
    id: String,
    last_wall_ns: i64,
    bytes: u64,
    /// It may still be written while its last look is younger than this.
    under_way_ns: Nanos,
}

fn oldest_first(connection: &rusqlite::Connection) -> Result<Vec<Old>, Problem> {
    let mut statement = connection.prepare(
        "SELECT run.key, run.id, run.anchor, max(chunk.wall_ns + chunk.to_ns - chunk.from_ns), \
         ifnull(sum(length(chunk.data) + ifnull(length(chunk.processes), 0)), 0), run.head \
         FROM run LEFT JOIN chunk ON chunk.run = run.key WHERE kind = ?1 GROUP BY run.key ORDER BY run.key",
    )?;
    let mut rows = statement.query([WATCH])?;
    let mut old = Vec::new();
    while let Some(row) = rows.next()? {
        let (anchor, last): (String, Option<i64>) = (row.get(2)?, row.get(3)?);
        let began: Anchor = from_json(&anchor)?;
        let head: RecordingHead = from_json(&row.get::<_, String>(5)?)?;
        old.push(Old {
            key: row.get(0)?,
            id: row.get(1)?,
            last_wall_ns: last.unwrap_or(began.wall_ns),
            bytes: row.get::<_, i64>(4)?.unsigned_abs(),
            under_way_ns: UNDER_WAY.max(head.period_ns.saturating_mul(LOOKS_UNDER_WAY)),
        });
    }
    old.sort_by_key(|recording| recording.last_wall_ns);
    Ok(old)
}

/// Which of the recordings, oldest first, are too old or too much.
fn to_forget(old: &[Old], retention: Retention, now_wall_ns: i64) -> Vec<&Old> {
    let mut bytes: u64 = old.iter().map(|recording| recording.bytes).sum();
    old.iter()
        .filter(|recording| {
            // A clock that was set back makes what is written now lie in the future: that is not old.
            let age = u64::try_from(now_wall_ns.saturating_sub(recording.last_wall_ns)).unwrap_or(0);
            let go = age >= recording.under_way_ns && (age > retention.age_ns || bytes > retention.bytes);
            if go {
                bytes -= recording.bytes;
            }
            go
        })
        .collect()
}

/// Looks, from, to and bytes, in the columns from `first` on.
fn extent(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Extent> {
    let number = |at: usize| row.get::<_, i64>(first + at).map(i64::cast_unsigned);
    Ok(Extent { looks: number(0)?, from_ns: number(1)?, to_ns: number(2)?, bytes: number(3)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = UNDER_WAY;

    /// Recordings by the hours since their last look and their bytes, and which of them go.
    fn check(recordings: &[(u64, u64)], retention: (u64, u64), expected: &[i64]) {
        let now = 1_000_000 * HOUR;
        let old: Vec<Old> = (0..)
            .zip(recordings)
            .map(|(key, &(hours, bytes))| Old {
                key,
                id: String::new(),
                last_wall_ns: (now - hours * HOUR).cast_signed(),
                bytes,
                under_way_ns: UNDER_WAY,
            })
            .collect();
        let retention = Retention { age_ns: retention.0 * HOUR, bytes: retention.1 };
        let found: Vec<i64> = to_forget(&old, retention, now.cast_signed()).iter().map(|old| old.key).collect();
        assert_eq!(found, expected, "{recordings:?}");
    }

    #[test]
    fn the_old_and_the_many_go_and_what_is_under_way_stays() {
        check(&[], (24, 100), &[]);
        check(&[(30, 1), (25, 1), (24, 1), (2, 1)], (24, 100), &[0, 1]);
        check(&[(9, 60), (8, 60), (7, 60), (6, 10)], (24, 100), &[0, 1]);
        check(&[(9, 60), (0, 600)], (24, 100), &[0]);
        check(&[(0, 600)], (0, 0), &[]);
        check(&[(1, 600)], (24, 0), &[0]);
    }

    #[test]
    fn a_clock_that_was_set_back_forgets_nothing() {
        let old = [Old { key: 1, id: String::new(), last_wall_ns: i64::MAX, bytes: 9, under_way_ns: UNDER_WAY }];
        assert!(to_forget(&old, Retention { age_ns: 0, bytes: 0 }, 5).is_empty());
    }
}
