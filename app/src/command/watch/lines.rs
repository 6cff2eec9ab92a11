//! The rows of a watch as JSON lines.

use super::beat::Moment;
use model::device::Roster;
use model::reading::Look;
use report::watch::{Sight, Tick, json};

/// Draws lines.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    roster: &'a Roster,
    page_bytes: u64,
    /// Where the rates of the next line begin.
    from: Option<Look>,
    /// What is told with the next line.
    notes: Vec<String>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(roster: &'a Roster, page_bytes: u64) -> Lines<'a> {
        Lines { roster, page_bytes, from: None, notes: Vec::new() }
    }

    /// Tells something with the next line.
    pub(super) fn note(&mut self, notes: &[String]) {
        self.notes.extend_from_slice(notes);
    }

    /// Draws a look; nothing while its row may still change.
    pub(super) fn draw(&mut self, look: &Look, moment: Moment, epoch: f64) -> String {
        if !moment.fixed {
            return String::new();
        }
        self.notes.extend(moment.marks(self.from.as_ref(), look, " "));
        let tick = Tick {
            from: self.from.as_ref().map(sight),
            to: sight(look),
            roster: self.roster,
            page_bytes: self.page_bytes,
            epoch,
            clock: "",
            processes: None,
        };
        let line = json::row(&tick, &self.notes);
        self.notes.clear();
        self.from = Some(look.clone());
        line
    }
}

fn sight(look: &Look) -> Sight<'_> {
    Sight { reading: &look.reading, devices: &look.devices }
}
