//! What stands beside the rows of a watched server that has mod_admission: its fullest groups, what waits, what is turned away.
//!
//! Only what a server tells of itself is shown: the one whose first process is the root of the tree.

use crate::command::admission::find::{self, Found};
use model::admission::Admission;
use model::reading::{Column, Look};
use report::admission::{is_stale, row};
use std::path::PathBuf;

/// Room where lines have no end.
const ROOM: usize = 60;

/// Who looks at a server's status for each row.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    /// Where it was found last.
    file: Option<PathBuf>,
    /// The looks that the next rates lie between.
    now: Option<Admission>,
    before: Option<Admission>,
}

impl Admitted {
    /// Looks for the row of that look.
    pub(super) fn look(&mut self, look: &Look) {
        let root = look.reading.get(Column::TreeRoot).and_then(|root| u32::try_from(root).ok());
        let found = root.and_then(|root| self.of(root));
        let Some(Found { file, status, .. }) = found else {
            *self = Admitted::default();
            return;
        };
        self.file = Some(file);
        match &self.now {
            Some(now) if now.written.to_bits() == status.written.to_bits() => {}
            _ => self.before = self.now.replace(status),
        }
    }

    /// What is to be said, in so many columns.
    pub(super) fn text(&self, room: Option<usize>) -> String {
        let now = self.now.as_ref();
        now.map_or_else(String::new, |now| row::beside(now, self.before.as_ref(), room.unwrap_or(ROOM)))
    }

    /// The status of the server with that first process, if it is alive.
    fn of(&self, root: u32) -> Option<Found> {
        let clock = find::now();
        let is_its = |found: &Found| found.status.server_pid == Some(root) && !is_stale(&found.status, clock);
        let known = self.file.as_ref().and_then(|file| find::read(file).ok()).filter(&is_its);
        known.or_else(|| {
            let files = find::usual(std::path::Path::new("/"));
            files.iter().filter_map(|file| find::read(file).ok()).find(&is_its)
        })
    }
}
