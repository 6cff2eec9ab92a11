//! Control groups beyond the server's own, each with a few numbers of its own in the roster.
//!
//! They are read as `group` reads the server's, into a row that is nobody's, of which the numbers are taken.

use super::{Kept, Probes, group};
use crate::source::Buffer;
use crate::watch::Watch;
use model::device::DeviceKind;
use model::reading::{ABSENT, Column, Look};

/// The numbers of a group, in the order of [`DeviceKind::Group`].
const NUMBERS: [Column; 6] = [
    Column::GroupUsage,
    Column::GroupLimit,
    Column::GroupSwap,
    Column::GroupCpuNs,
    Column::GroupPsiMemFull,
    Column::GroupPsiIoFull,
];

/// One group.
pub(super) struct Group {
    /// Where its first number stands.
    at: usize,
    files: Vec<Kept>,
    row: Look,
}

/// Opens the groups that the roster names and the watch knows.
pub(super) fn open(probes: &mut Probes, watch: &Watch) {
    for (at, device) in watch.devices.placed().filter(|(_, device)| device.kind == DeviceKind::Group) {
        let Some(named) = watch.groups.iter().find(|named| named.name == device.name) else { continue };
        let mut own = Probes::none();
        group::open(&mut own, &named.dirs, &|column| NUMBERS.contains(&column));
        probes.notes.append(&mut own.notes);
        probes.groups.push(Group { at, files: own.files, row: Look::empty(0, 0) });
    }
}

impl Group {
    /// Fills the numbers of the group.
    pub(super) fn read(&mut self, look: &mut Look, buffer: &mut Buffer) {
        self.row.reading.values.fill(ABSENT);
        for file in &mut self.files {
            file.read(&mut self.row, buffer);
        }
        for (place, column) in look.devices[self.at..].iter_mut().zip(NUMBERS) {
            *place = self.row.reading.values[column as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{GroupDirs, NamedGroup};
    use model::device::{Device, Roster};
    use testkit::fake_proc::FakeTree;

    #[test]
    fn each_group_has_numbers_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let fake = FakeTree::new(dir.path());
        fake.file("a/cgroup.controllers", "");
        fake.file("a/memory.current", "1000\n");
        fake.file("a/memory.max", "max\n");
        fake.file("b/cgroup.controllers", "");
        fake.file("b/memory.current", "2000\n");
        fake.file("b/memory.max", "4000\n");
        fake.file("b/cpu.stat", "usage_usec 7\n");
        fake.file("b/memory.pressure", "some avg10=0.00 total=8\nfull avg10=0.00 total=9\n");
        let named = |name: &str| {
            let dir = Some(dir.path().join(name));
            let dirs = GroupDirs { memory: dir.clone(), cpuacct: dir.clone(), cpu: dir.clone(), unified: dir };
            NamedGroup { name: name.to_owned(), dirs }
        };
        let device = |name: &str| Device { kind: DeviceKind::Group, name: name.to_owned() };
        let watch = Watch {
            groups: vec![named("a"), named("b")],
            devices: Roster { devices: vec![device("b"), device("gone"), device("a")] },
            ..Watch::default()
        };
        let mut probes = Probes::none();
        open(&mut probes, &watch);
        let mut look = Look::empty(0, watch.devices.numbers());
        probes.read(&mut look);
        assert_eq!(look.devices[..6], [2000, 4000, ABSENT, 7000, 9, ABSENT], "{:?}", probes.notes);
        assert_eq!(look.devices[6..12], [ABSENT; 6]);
        assert_eq!(look.devices[12..], [1000, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT]);
    }
}
