//! `--explain`: what limits the machine, by the last seconds, told whenever it changes.
//!
//! A verdict is told once it has stood for a few looks: at the border between two of them it would be told again and again.

use super::rows::Machine;
use diagnosis::Evidence;
use model::reading::{Look, Reading, Readings};
use model::{Nanos, SECOND};
use monitor::GroupDirs;
use report::Language;
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
    language: Language,
    window: VecDeque<Reading>,
    /// What the last looks came to, and how many of them.
    standing: Option<(&'static str, u32)>,
    /// What was told last.
    told: Option<&'static str>,
    /// What is to be told with the next row.
    next: Option<Explained>,
}

impl Explain {
    /// Of this machine.
    pub(super) fn new(machine: Machine, group: &GroupDirs, language: Language) -> Explain {
        let grouped = group.memory.is_some() || group.unified.is_some();
        let machine = diagnosis::evidence::Machine::watched(machine.cpus as f64, grouped);
        Explain { machine, language, window: VecDeque::new(), standing: None, told: None, next: None }
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::reading::Column;

    /// What is told with each look of so many seconds, in which the CPUs work for such a share.
    fn told(shares: &[(u64, u64)]) -> Vec<(usize, String)> {
        let machine = Machine { page_bytes: 4096, cpus: 2 };
        let mut explain = Explain::new(machine, &GroupDirs::default(), Language::English);
        let (mut busy, mut idle, mut found) = (0, 0, Vec::new());
        let each = shares.iter().flat_map(|&(seconds, percent)| (0..seconds).map(move |_| percent));
        for (second, percent) in each.enumerate() {
            (busy, idle) = (busy + 2 * percent, idle + 2 * (100 - percent));
            let mut reading = Reading::empty(second as u64 * SECOND);
            let counted = [(Column::CpuUser, busy), (Column::CpuSystem, 0), (Column::CpuIdle, idle)];
            counted.into_iter().for_each(|(column, value)| reading.set(column, value));
            explain.hear(&Look { reading, devices: Vec::new() });
            found.extend(explain.told().map(|told| (second, told.headline)));
        }
        found
    }

    #[test]
    fn a_verdict_is_told_once_it_stands_and_once() {
        let free = "What limits it now: nothing is used up: there is room.";
        let full = "What limits it now: CPU-bound: the CPUs the server may use are busy with work (sure).";
        assert_eq!(told(&[(5, 10)]), []);
        assert_eq!(told(&[(60, 10)]), [(6, free.to_owned())]);
        // A burst is no verdict; a stretch is one, and so is its end.
        assert_eq!(told(&[(30, 10), (3, 100), (30, 10)]), [(6, free.to_owned())]);
        let all = told(&[(30, 10), (40, 100), (40, 10)]);
        let headlines: Vec<&str> = all.iter().map(|(_, headline)| headline.as_str()).collect();
        assert_eq!((headlines[0], headlines[headlines.len() - 1]), (free, free), "{headlines:?}");
        assert!(headlines.iter().any(|headline| headline.contains("CPU-bound")), "{headlines:?}");
        assert_eq!(told(&[(40, 100)]), [(6, full.to_owned())]);
    }
}
