//! The rows of a watch as text, one after the other: where each begins, whether headings come before it, what goes into the file.
//!
//! Looks come in and text comes out; how large the terminal is and what time it is are parameters.

use super::admitted::Admitted;
use super::beat::Moment;
use super::meant::Meant;
use crate::flags::watch::Layout;
use model::process::Processes;
use model::reading::{Column, Look};
use report::watch::{Compat, Module, ProcessSpan, Screen, Sight, Start, Tick, csv, vmstat};

/// Between a row and what stands behind it.
const BESIDE: &str = "  ";

/// Draws rows.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    meant: &'a Meant,
    screen: Screen,
    machine: Machine,
    /// Where the rates of the next row begin.
    from: Option<Look>,
    /// The same for those of processes.
    from_processes: Option<Processes>,
    /// Final rows so far.
    finished: u64,
    /// The last row may still change.
    open: bool,
    /// What the screen was fitted to.
    columns: Option<usize>,
    /// Characters that stand behind the last row.
    behind: usize,
}

/// What does not change while a machine runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    /// Bytes of a page of memory.
    pub(super) page_bytes: u64,
    pub(super) cpus: usize,
}

/// A look, and all processes when a module asks for one of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) look: &'a Look,
    pub(super) processes: Option<&'a Processes>,
}

/// Lines and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) lines: usize,
    pub(super) columns: usize,
}

/// The time of a look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wall<'a> {
    /// Seconds since 1970.
    pub(super) epoch: f64,
    /// As `-t` shows it.
    pub(super) clock: &'a str,
}

/// What one look comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    /// For the screen.
    pub(super) text: String,
    /// Modules had to be left out, which nobody has been told yet.
    pub(super) trimmed: bool,
}

impl<'a> Rows<'a> {
    /// Rows of what is meant; `clock` is a text as wide as the times of day will be.
    pub(super) fn new(meant: &'a Meant, machine: Machine, clock: &str) -> Rows<'a> {
        let screen = Screen::new(&meant.shown, meant.style, clock);
        Rows {
            meant,
            screen,
            machine,
            from: None,
            from_processes: None,
            finished: 0,
            open: false,
            columns: None,
            behind: 0,
        }
    }

    /// What comes before everything else: dstat asks terminals with colours not to wrap lines.
    pub(super) fn opening(&self) -> &'static str {
        if self.is_vmstat() {
            return "";
        }
        match (self.meant.style.colour, self.meant.style.compat, self.meant.updates) {
            (true, Compat::Dool, false) => "\x1b[7l\n",
            (true, ..) => "\x1b[7l",
            (false, Compat::Dool, false) => "\n",
            (false, ..) => "",
        }
    }

    /// What comes after everything else.
    pub(super) fn ending(&self) -> &'static str {
        match (self.meant.updates && !self.is_vmstat(), self.meant.style.colour) {
            (true, true) => "\n\x1b[0;0m",
            (true, false) => "\n",
            (false, true) => "\x1b[0;0m",
            (false, false) => "",
        }
    }

    /// The headings of the file.
    pub(super) fn csv_headings(&self) -> String {
        csv::headings(&self.screen, self.meant.csv_epoch)
    }

    /// The line of the file for a final look that is about to be drawn.
    pub(super) fn csv_line(&self, seen: Seen<'_>, wall: Wall<'_>) -> String {
        csv::row(&self.screen, &self.tick(seen, wall), self.meant.csv_epoch)
    }

    /// Whether the time of day is among what is shown.
    pub(super) fn show_the_clock(&self) -> bool {
        self.meant.shown.iter().any(|shown| shown.module == Module::Time)
    }

    /// Draws a look; `size` is that of the terminal, if there is one. What is admitted stands behind the row as far as there is room.
    pub(super) fn draw(
        &mut self,
        seen: Seen<'_>,
        moment: Moment,
        wall: Wall<'_>,
        size: Option<Size>,
        admitted: Option<&Admitted>,
    ) -> Drawn {
        let refitted = self.fit(size);
        let text = self.lead(size, refitted, moment.fixed) + &self.row(seen, moment, wall, admitted);
        let trimmed = self.from.is_none() && self.screen.is_trimmed();
        self.pass(seen, moment);
        Drawn { text, trimmed }
    }

    /// Goes on from a look: when it is final, the rates of the next one begin here.
    pub(super) fn pass(&mut self, seen: Seen<'_>, moment: Moment) {
        self.open = !moment.fixed;
        if moment.fixed {
            self.finished += 1;
            self.from = Some(seen.look.clone());
            // A row without them is no reason for the next one to tell of all the time since the machine was started.
            if let Some(processes) = seen.processes {
                self.from_processes = Some(processes.clone());
            }
        }
    }

    /// Leaves out what does not fit; true when the terminal's width is another than before.
    fn fit(&mut self, size: Option<Size>) -> bool {
        let columns = size.map(|size| size.columns);
        let changed = self.columns != columns;
        if changed {
            self.columns = columns;
            self.screen.fit(columns.unwrap_or(usize::MAX));
        }
        changed
    }

    /// What goes before a row: a new line or the way back to the beginning of this one, and headings when they are due.
    fn lead(&self, size: Option<Size>, refitted: bool, fixed: bool) -> String {
        let first = self.from.is_none();
        let lines = size.map_or(0, |size| size.lines) as u64;
        if self.is_vmstat() {
            let due = first || (self.meant.headers && lines > 4 && self.finished.is_multiple_of(lines - 3));
            return if due { vmstat::HEADINGS.to_owned() } else { String::new() };
        }
        let start = match (self.meant.updates, first, self.open) {
            (false, ..) => String::new(),
            (true, true, _) => self.screen.start(Start::First),
            (true, false, true) => self.screen.start(Start::Over),
            (true, false, false) => self.screen.start(Start::Below),
        };
        let again = !self.open && Screen::headings_due(self.finished, lines, self.meant.updates);
        let due = first || (self.meant.headers && (again || (refitted && lines > 0)));
        if !due {
            return start;
        }
        let mark = if first || fixed { "" } else { self.screen.mark() };
        start + &self.screen.headings(first, !self.open) + mark
    }

    fn row(&mut self, seen: Seen<'_>, moment: Moment, wall: Wall<'_>, admitted: Option<&Admitted>) -> String {
        let tick = self.tick(seen, wall);
        let marks = moment.marks(self.from.as_ref(), seen.look, "");
        if self.is_vmstat() {
            let marks: String = marks.iter().map(|mark| format!(" {mark}")).collect();
            return vmstat::row(&tick) + &marks + "\n";
        }
        let marked: usize = marks.iter().map(|mark| mark.chars().count() + 1).sum();
        let room = self.columns.map(|columns| columns.saturating_sub(self.screen.width() + marked + BESIDE.len()));
        let beside = admitted.map_or_else(String::new, |admitted| admitted.text(room));
        let row = self.screen.row(&tick, moment.fixed, &marks) + &self.behind(&beside);
        if self.meant.updates { row } else { row + "\n" }
    }

    /// A text behind the row; one that is drawn over a longer one covers it.
    fn behind(&mut self, text: &str) -> String {
        let columns = text.chars().count();
        let covered = if self.open { self.behind.max(columns) } else { columns };
        self.behind = covered;
        if covered == 0 { String::new() } else { format!("{BESIDE}{text:covered$}") }
    }

    fn tick<'t>(&'t self, seen: Seen<'t>, wall: Wall<'t>) -> Tick<'t> {
        let sight = |look: &'t Look| Sight { reading: &look.reading, devices: &look.devices };
        // Only the first row tells of the time since the machine was started.
        let has_span = self.from.is_none() || self.from_processes.is_some();
        Tick {
            from: self.from.as_ref().map(sight),
            to: sight(seen.look),
            roster: &self.meant.watch.devices,
            page_bytes: self.machine.page_bytes,
            epoch: wall.epoch,
            clock: wall.clock,
            processes: seen.processes.filter(|_| has_span).map(|to| ProcessSpan {
                from: self.from_processes.as_ref(),
                to,
                uptime_s: seen.look.reading.get(Column::Uptime).map_or(0.0, |hundredths| hundredths as f64 / 100.0),
                cpus: self.machine.cpus,
            }),
        }
    }

    pub(super) fn is_vmstat(&self) -> bool {
        self.meant.layout == Layout::Vmstat
    }
}
