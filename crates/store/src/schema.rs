//! The tables, and the steps that bring an older store up to date.
//!
//! `PRAGMA user_version` counts the steps taken; a step, once released, is never edited. `PRAGMA application_id` says that the
//! file is ours, so that somebody else's database is refused instead of migrated.
//!
//! The same count covers what stands inside: heads and trials as JSON and the streams beside them. The rule for their types in
//! `model` is that a field added later carries `#[serde(default)]`, so that older JSON is read as it is and needs no step; a
//! field renamed, removed or given another meaning, and a new kind of outcome or stream that older readers would stumble over,
//! needs a step, be it an empty one, so that they refuse the file by its version. `tests/fixtures/v1.sqlite`, written by the
//! first format, is read by the tests for good and is never made anew.

use crate::error::Problem;
use rusqlite::{Connection, TransactionBehavior};

/// Marks the file as a webdyno store: "WDyn" in ASCII.
const APPLICATION_ID: i64 = 0x5744_796E;

/// Step `i` leads from version `i` to `i + 1`.
const STEPS: &[&str] = &[
    "
    CREATE TABLE run (
        key INTEGER PRIMARY KEY,     -- ascending in the order of beginning
        id TEXT NOT NULL UNIQUE,
        plan TEXT NOT NULL,          -- its name
        anchor TEXT NOT NULL,        -- JSON
        \"end\" TEXT NOT NULL,         -- JSON; what stands here, not in the head, is how the run ended
        head TEXT NOT NULL           -- JSON
    ) STRICT;
    CREATE TABLE trial (
        key INTEGER PRIMARY KEY,     -- ascending in the order of execution
        run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
        meta TEXT NOT NULL           -- JSON
    ) STRICT;
    CREATE INDEX trial_of_run ON trial (run);
    CREATE TABLE blob (
        key INTEGER PRIMARY KEY,
        trial INTEGER NOT NULL REFERENCES trial ON DELETE CASCADE,
        stream TEXT NOT NULL,        -- readings, intervals, latency.total ...
        version INTEGER NOT NULL,    -- of the packing of this stream
        data BLOB NOT NULL,
        UNIQUE (trial, stream)
    ) STRICT;
",
    "
    -- Besides: streams `probe.` and so on, which the first format does not know.
    CREATE TABLE operated (
        host TEXT PRIMARY KEY        -- whom the user said they operate
    ) STRICT;
",
    "
    -- 'run': the head is a run's, and it may have trials. 'import': the head is texts of others, and there are none.
    ALTER TABLE run ADD COLUMN kind TEXT NOT NULL DEFAULT 'run';
",
    "
    -- Only: bounds of requests without an answer in loads of every kind (`latency.at_least`, which had been an open loop's alone,
    -- `latency.first_byte_at_least`, `latency.service_at_least`).
",
    "
    -- Besides: runs of the kind 'watch', whose head is a recording's, and which have chunks instead of trials.
    CREATE TABLE chunk (
        key INTEGER PRIMARY KEY,     -- ascending in the order of writing
        run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
        version INTEGER NOT NULL,    -- of the packing
        looks INTEGER NOT NULL,
        from_ns INTEGER NOT NULL,    -- the first look, on the monotonic clock
        to_ns INTEGER NOT NULL,      -- the last
        wall_ns INTEGER NOT NULL,    -- the first, since 1970
        lost INTEGER NOT NULL,       -- looks before these that could not be written
        notes TEXT NOT NULL,         -- JSON
        data BLOB NOT NULL
    ) STRICT;
    CREATE INDEX chunk_of_run ON chunk (run);
",
    "
    -- Every process at some of the looks, when one of them was shown; of version 1 of its own packing.
    ALTER TABLE chunk ADD COLUMN processes BLOB;
",
    "
    -- No table changes: trials may have streams of loads beside the cell's own, which older readers do not know.
",
];

/// The version this webdyno writes.
pub(crate) const VERSION: i64 = STEPS.len() as i64;

/// Makes an empty file a store, brings an older store up to date, and refuses everything else.
pub(crate) fn prepare(connection: &mut Connection) -> Result<(), Problem> {
    check_ours(connection)?;
    if version(connection)? < VERSION {
        migrate(connection)?;
    }
    // WAL: readers (`webdyno report`) do not stop the writer. FULL: a run may drive the host into a state that only the power
    // switch ends, and the trials before it are the evidence; one fsync per trial, outside the measured window, costs nothing.
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(())
}

fn check_ours(connection: &Connection) -> Result<(), Problem> {
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let found = version(connection)?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (id, tables) {
        (APPLICATION_ID, _) if found > VERSION => Err(Problem::Newer { found }),
        (APPLICATION_ID, _) | (0, 0) => Ok(()),
        _ => Err(Problem::NotAStore),
    }
}

fn migrate(connection: &mut Connection) -> Result<(), Problem> {
    // Only in a file without tables: a store made before recordings were kept gives room back with the first that is forgotten.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    // The journal mode is a property of the file and cannot change inside a transaction. Where WAL is impossible (some network
    // file systems) SQLite keeps its rollback journal, which is as safe and only makes readers wait.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // Immediate: of two webdynos that open a new store together, the second waits and then finds nothing left to do.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = usize::try_from(version(&transaction)?).map_err(|_| Problem::NotAStore)?;
    for step in STEPS.iter().skip(from) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(())
}

fn version(connection: &Connection) -> Result<i64, Problem> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}
