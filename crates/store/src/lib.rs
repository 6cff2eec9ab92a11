//! Runs kept in one SQLite file: heads and trials as JSON, histograms and series as packed, versioned blobs; and imports, and
//! recordings of watches.
//!
//! The store holds what was observed, never a verdict: whoever loads a run judges it anew. A trial is one transaction, so a
//! writer killed at any moment leaves every trial it had saved and nothing of the one under way. The store does not decide
//! when to write; callers save a trial outside its measured window.

mod blobs;
mod columns;
mod error;
mod place;
mod processes;
mod recordings;
mod schema;

pub use error::StoreError;
pub use place::default_path;
pub use recordings::{Piece, Recorded};

use error::Problem;
use model::import::Import;
use model::recording::Extent;
use model::run::{Anchor, Run, RunEnd, RunHead};
use model::trial::Trial;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The word that stands for the newest run wherever an id is asked for.
pub const LATEST: &str = "latest";

/// How long a write waits for another webdyno that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// One line about a run, without its trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Identifier.
    pub id: String,
    /// Name of its plan.
    pub plan: String,
    /// When it began.
    pub anchor: Anchor,
    /// How it ended.
    pub end: RunEnd,
    /// Trials saved.
    pub trials: u64,
    /// Who measured it.
    pub kind: Kind,
    /// How much was recorded; of a recording only.
    pub recorded: Option<Extent>,
}

/// What is kept under an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A run of webdyno.
    Run,
    /// Texts of others.
    Import,
    /// A recording of a watch.
    Watch,
}

/// What an id stands for.
#[derive(Debug, Clone)]
pub enum Kept {
    /// A run of webdyno.
    Run(Box<Run>),
    /// Texts of others.
    Import(Import),
}

impl Store {
    /// Opens the store at `path`; makes it, and the folders above it, when it is not there, and brings an older one up to date.
    ///
    /// # Errors
    /// When the file cannot be made, is not a store, or was written by a newer webdyno.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let fail = |problem| StoreError::new(path, problem);
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| fail(Problem::Folder(error)))?;
        }
        let connect = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            Ok(connection)
        };
        let mut connection = connect().map_err(|error| fail(error.into()))?;
        schema::prepare(&mut connection).map_err(fail)?;
        Ok(Store { connection, path: path.to_owned() })
    }

    /// Opens a store that must be there already: whoever only reads does not want an empty one made.
    ///
    /// # Errors
    /// When there is none, and as [`Store::open`].
    pub fn open_existing(path: &Path) -> Result<Store, StoreError> {
        match path.try_exists() {
            Ok(true) => Store::open(path),
            Ok(false) => Err(StoreError { path: path.to_owned(), problem: Problem::Absent }),
            // A folder that is closed to us.
            Err(error) => Err(StoreError { path: path.to_owned(), problem: Problem::Closed(error) }),
        }
    }

    /// Where the store is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Enters a new run.
    ///
    /// # Errors
    /// When the id is taken or the store cannot be written.
    pub fn begin(&mut self, head: &RunHead) -> Result<(), StoreError> {
        self.begin_within(head).map_err(|problem| self.fail(problem))
    }

    /// Adds a trial to a run: all of it or nothing.
    ///
    /// # Errors
    /// When there is no such run or the store cannot be written.
    pub fn save_trial(&mut self, run_id: &str, trial: &Trial) -> Result<(), StoreError> {
        self.save_trial_within(run_id, trial).map_err(|problem| self.fail(problem))
    }

    /// Notes how a run ended.
    ///
    /// # Errors
    /// When there is no such run or the store cannot be written.
    pub fn finish(&mut self, run_id: &str, end: &RunEnd) -> Result<(), StoreError> {
        self.finish_within(run_id, end).map_err(|problem| self.fail(problem))
    }

    /// Enters texts of others, all at once.
    ///
    /// # Errors
    /// When the id is taken or the store cannot be written.
    pub fn save_import(&mut self, import: &Import) -> Result<(), StoreError> {
        self.save_import_within(import).map_err(|problem| self.fail(problem))
    }

    /// Every run, import and recording, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.runs_within().map_err(|problem| self.fail(problem))
    }

    /// Whether there is a run, an import or a recording of just that id.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn has(&self, id: &str) -> Result<bool, StoreError> {
        let found = self.connection.query_row("SELECT 1 FROM run WHERE id = ?1", [id], |_| Ok(())).optional();
        found.map(|row| row.is_some()).map_err(|error| self.fail(error.into()))
    }

    /// A run with its trials, by its id, a prefix that only one run has, or `latest`, which is never a recording.
    ///
    /// # Errors
    /// When no run or more than one fits, it is an import, or what is stored cannot be read.
    pub fn load(&self, id: &str) -> Result<Run, StoreError> {
        self.resolve(id).and_then(|id| self.load_within(&id)).map_err(|problem| self.fail(problem))
    }

    /// A run or an import, by what [`Store::load`] takes.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn kept(&self, id: &str) -> Result<Kept, StoreError> {
        self.resolve(id).and_then(|id| self.kept_within(&id)).map_err(|problem| self.fail(problem))
    }

    /// Whether the user once said that they operate a host.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn is_operated(&self, host: &str) -> Result<bool, StoreError> {
        let found = self.connection.query_row("SELECT 1 FROM operated WHERE host = ?1", [host], |_| Ok(()));
        Ok(found.optional().map_err(|error| self.fail(error.into()))?.is_some())
    }

    /// Remembers that the user operates a host.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn remember_operated(&mut self, host: &str) -> Result<(), StoreError> {
        let done = self.connection.execute("INSERT OR IGNORE INTO operated (host) VALUES (?1)", [host]);
        done.map(drop).map_err(|error| self.fail(error.into()))
    }

    fn fail(&self, problem: Problem) -> StoreError {
        StoreError::new(&self.path, problem)
    }

    fn begin_within(&self, head: &RunHead) -> Result<(), Problem> {
        let inserted = self.connection.execute(
            "INSERT INTO run (id, plan, anchor, \"end\", head) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO NOTHING",
            params![head.id, head.plan.name, json(&head.anchor)?, json(&head.end)?, json(head)?],
        )?;
        if inserted == 1 { Ok(()) } else { Err(Problem::Taken(head.id.clone())) }
    }

    fn save_import_within(&self, import: &Import) -> Result<(), Problem> {
        let inserted = self.connection.execute(
            "INSERT INTO run (id, plan, anchor, \"end\", head, kind) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT (id) DO NOTHING",
            params![import.id, import.name(), json(&import.anchor)?, json(&RunEnd::Complete)?, json(import)?, IMPORT],
        )?;
        if inserted == 1 { Ok(()) } else { Err(Problem::Taken(import.id.clone())) }
    }

    fn save_trial_within(&mut self, run_id: &str, trial: &Trial) -> Result<(), Problem> {
        let blobs = blobs::of(trial).map_err(Problem::Pack)?;
        let meta = json(trial)?;
        // Immediate: it waits for another writer at its beginning; an upgrade from reading to writing would not wait at all.
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let run: i64 = transaction
            .query_row("SELECT key FROM run WHERE id = ?1", [run_id], |row| row.get(0))
            .optional()?
            .ok_or_else(|| Problem::NoRun(run_id.to_owned()))?;
        transaction.execute("INSERT INTO trial (run, meta) VALUES (?1, ?2)", params![run, meta])?;
        let key = transaction.last_insert_rowid();
        for blob in &blobs {
            transaction.execute(
                "INSERT INTO blob (trial, stream, version, data) VALUES (?1, ?2, ?3, ?4)",
                params![key, blob.stream, blob.version, blob.data],
            )?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn finish_within(&self, run_id: &str, end: &RunEnd) -> Result<(), Problem> {
        let changed =
            self.connection.execute("UPDATE run SET \"end\" = ?2 WHERE id = ?1", params![run_id, json(end)?])?;
        if changed == 1 { Ok(()) } else { Err(Problem::NoRun(run_id.to_owned())) }
    }

    fn runs_within(&self) -> Result<Vec<RunSummary>, Problem> {
        let mut statement = self.connection.prepare(
            "SELECT id, plan, anchor, \"end\", (SELECT count(*) FROM trial WHERE trial.run = run.key), kind, key \
             FROM run ORDER BY key DESC",
        )?;
        let mut rows = statement.query([])?;
        let mut runs = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, anchor, end): (String, String, String) = (row.get(0)?, row.get(2)?, row.get(3)?);
            let kind = kind(&row.get::<_, String>(5)?, &id)?;
            runs.push(RunSummary {
                kind,
                recorded: if kind == Kind::Watch { Some(self.extent(row.get(6)?)?) } else { None },
                id,
                plan: row.get(1)?,
                anchor: from_json(&anchor)?,
                end: from_json(&end)?,
                trials: row.get::<_, i64>(4)?.unsigned_abs(),
            });
        }
        Ok(runs)
    }

    /// The full id meant by an id, a unique prefix or `latest`.
    fn resolve(&self, wanted: &str) -> Result<String, Problem> {
        if wanted == LATEST {
            return self.newest("!=")?.ok_or(Problem::Empty);
        }
        self.resolve_prefix(wanted)
    }

    /// The newest that is a recording (`=`), or that is none (`!=`).
    fn newest(&self, recording: &str) -> Result<Option<String>, Problem> {
        let newest = format!("SELECT id FROM run WHERE kind {recording} '{WATCH}' ORDER BY key DESC LIMIT 1");
        Ok(self.connection.query_row(&newest, [], |row| row.get(0)).optional()?)
    }

    fn resolve_prefix(&self, wanted: &str) -> Result<String, Problem> {
        let mut statement = self.connection.prepare("SELECT id FROM run WHERE substr(id, 1, length(?1)) = ?1")?;
        let mut ids = statement.query_map([wanted], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        match ids.len() {
            0 => Err(Problem::NoRun(wanted.to_owned())),
            1 => Ok(ids.remove(0)),
            _ if ids.iter().any(|id| id == wanted) => Ok(wanted.to_owned()),
            _ => Err(Problem::Ambiguous { wanted: wanted.to_owned(), ids }),
        }
    }

    fn load_within(&self, id: &str) -> Result<Run, Problem> {
        match self.kept_within(id)? {
            Kept::Run(run) => Ok(*run),
            Kept::Import(import) => Err(Problem::Imported(import.id)),
        }
    }

    fn kept_within(&self, id: &str) -> Result<Kept, Problem> {
        let (key, head, end, of): (i64, String, String, String) =
            self.connection.query_row("SELECT key, head, \"end\", kind FROM run WHERE id = ?1", [id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
        match kind(&of, id)? {
            Kind::Import => Ok(Kept::Import(from_json(&head)?)),
            Kind::Watch => Err(Problem::Recorded(id.to_owned())),
            Kind::Run => {
                let head = RunHead { end: from_json(&end)?, ..from_json(&head)? };
                Ok(Kept::Run(Box::new(Run { head, trials: self.trials(key)? })))
            }
        }
    }

    fn trials(&self, run: i64) -> Result<Vec<Trial>, Problem> {
        let mut statement = self.connection.prepare("SELECT key, meta FROM trial WHERE run = ?1 ORDER BY key")?;
        let mut rows = statement.query([run])?;
        let mut trials = Vec::new();
        while let Some(row) = rows.next()? {
            let meta: String = row.get(1)?;
            let mut trial: Trial = from_json(&meta)?;
            for blob in self.blobs(row.get(0)?)? {
                blobs::restore(&mut trial, &blob).map_err(Problem::Damaged)?;
            }
            trials.push(trial);
        }
        Ok(trials)
    }

    /// A trial's blobs, in the order they were written: later ones may rest on earlier ones.
    fn blobs(&self, trial: i64) -> Result<Vec<blobs::Blob>, Problem> {
        let mut statement =
            self.connection.prepare_cached("SELECT stream, version, data FROM blob WHERE trial = ?1 ORDER BY key")?;
        let blobs = statement.query_map([trial], |row| {
            Ok(blobs::Blob { stream: row.get(0)?, version: row.get(1)?, data: row.get(2)? })
        })?;
        Ok(blobs.collect::<Result<_, _>>()?)
    }
}

/// How the kinds are written.
const RUN: &str = "run";
const IMPORT: &str = "import";
const WATCH: &str = "watch";

fn kind(text: &str, id: &str) -> Result<Kind, Problem> {
    match text {
        RUN => Ok(Kind::Run),
        IMPORT => Ok(Kind::Import),
        WATCH => Ok(Kind::Watch),
        _ => Err(Problem::UnknownKind(id.to_owned())),
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, Problem> {
    serde_json::to_string(value).map_err(|error| Problem::Damaged(error.to_string()))
}

fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|error| Problem::Damaged(error.to_string()))
}
