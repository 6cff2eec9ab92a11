//! Readings taken in this very process: one look at the machine, now.
//!
//! For what happens once or at leisure. Whoever must lose no reading starts a [`Sampler`](crate::Sampler) instead.

use crate::appointments::now;
use crate::probes::Probes;
use crate::watch::Watch;
use model::reading::Look;

/// Everything a watch asks for, opened.
pub struct Reader {
    probes: Probes,
    devices: usize,
    notes: Vec<String>,
}

impl Reader {
    /// Opens what the watch asks for; what cannot be opened costs a note.
    #[must_use]
    pub fn open(watch: &Watch) -> Self {
        let mut probes = Probes::open(watch);
        let notes = std::mem::take(&mut probes.notes);
        Reader { probes, devices: watch.devices.numbers(), notes }
    }

    /// The counters of the machine now, and those of the single devices in the order of the roster.
    pub fn read(&mut self) -> Look {
        let mut look = Look::empty(now(), self.devices);
        self.probes.read(&mut look);
        look
    }

    /// One sentence for each source that is missing.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("notes", &self.notes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::device::{Device, DeviceKind, Roster};
    use model::reading::{ABSENT, Column};

    #[test]
    fn the_live_machine() {
        let device = |kind, name: &str| Device { kind, name: name.to_owned() };
        let devices = vec![device(DeviceKind::Cpu, "0"), device(DeviceKind::Interface, "no such")];
        let mut reader = Reader::open(&Watch { devices: Roster { devices }, ..Watch::default() });
        let Look { reading, devices: numbers } = reader.read();
        assert!(reading.get(Column::MemTotal).is_some());
        assert_eq!(numbers.len(), 10);
        assert!(numbers[0] != ABSENT && numbers[8..] == [ABSENT; 2], "{numbers:?} {:?}", reader.notes());
    }
}
