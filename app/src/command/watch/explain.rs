//! `--explain`: what limits the machine, by the last seconds, told whenever it changes.
//!
//! A verdict is told once it has stood for a few looks: at the border between two of them it would be told again and again.

use super::meant::Meant;
use super::rows::Machine;
use crate::flags::{Lang, LangFlag};
use diagnosis::Evidence;
use model::reading::{Look, Reading, Readings};
use model::{Nanos, SECOND};
use report::watch::Explained;
use std::collections::VecDeque;

/// How wide lines are where nobody tells.
pub(super) const COLUMNS: usize = 100;
/// So much of the past is looked at.
const WINDOW: Nanos = 15 * SECOND;
/// With less there is nothing to be said.
const LEAST: Nanos = 4 * SECOND;
/// A verdict is told when so many looks in a row came to it.
const STEADY: u32 = 3;

/// Who explains.
pub(super) struct Explain {
    machine: diagnosis::evidence::Machine,
    language: report::Language,
    window: VecDeque<Reading>,
    /// What the last looks came to, and how many of them.
    standing: Option<(&'static str, u32)>,
    /// What was told last.
    told: Option<&'static str>,
    /// What is to be told with the next row.
    next: Option<Explained>,
}

impl Explain {
    /// Of this machine; a group that is watched stands for the server.
    pub(super) fn new(machine: Machine, meant: &Meant, lang: Option<Lang>) -> Explain {
        let cpus = machine.cpus as f64;
        let group = &meant.watch.group;
        let machine = diagnosis::evidence::Machine {
            host_cpus: cpus,
            server_cpus: cpus,
            memory: None,
            grouped: group.memory.is_some() || group.unified.is_some(),
            group_memory: None,
        };
        Explain {
            machine,
            language: crate::command::report::language(&LangFlag { lang }),
            window: VecDeque::new(),
            standing: None,
            told: None,
            next: None,
        }
    }

    /// Judges anew.
    pub(super) fn hear(&mut self, look: &Look) {
        let now = look.at_ns();
        self.window.push_back(look.reading.clone());
        while self.window.front().is_some_and(|first| now.saturating_sub(first.at_ns) > WINDOW) && self.window.len() > 2
        {
            self.window.pop_front();
        }
        if self.window.front().is_none_or(|first| now.saturating_sub(first.at_ns) < LEAST) {
            return;
        }
        let readings = Readings { rows: self.window.iter().cloned().collect(), notes: Vec::new() };
        let diagnosis = diagnosis::judge(&Evidence::watched(&self.machine, &readings));
        let id = diagnosis.primary.id;
        let looks = self.standing.filter(|(standing, _)| *standing == id).map_or(0, |(_, looks)| looks) + 1;
        self.standing = Some((id, looks));
        if looks >= STEADY && self.told != Some(id) {
            self.told = Some(id);
            self.next = Some(Explained::of(&diagnosis, self.language));
        }
    }

    /// What is new, once.
    pub(super) fn told(&mut self) -> Option<Explained> {
        self.next.take()
    }
}
