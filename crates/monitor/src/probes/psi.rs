//! How much time was lost for want of CPU, memory or disk: pressure stall information, of the host or of a group.
//!
//! Only the totals, in microseconds: the kernel's averages are over ten seconds and more, and would smear over trials.

use super::Probes;
use super::group::Wants;
use crate::text::{fields, lines, number};
use model::reading::{Column, Reading};
use std::path::Path;

/// Opens the host's pressure.
pub(super) fn open_host(probes: &mut Probes, proc_root: &Path) {
    let dir = proc_root.join("pressure");
    keep(probes, &dir.join("cpu"), Column::PsiCpuSome, None);
    keep(probes, &dir.join("memory"), Column::PsiMemSome, Some(Column::PsiMemFull));
    keep(probes, &dir.join("io"), Column::PsiIoSome, Some(Column::PsiIoFull));
}

/// Opens the pressure of a group of the unified tree.
pub(super) fn open_group(probes: &mut Probes, unified: &Path, wants: Wants<'_>) {
    let files = [
        ("cpu.pressure", Column::GroupPsiCpuSome, None),
        ("memory.pressure", Column::GroupPsiMemSome, Some(Column::GroupPsiMemFull)),
        ("io.pressure", Column::GroupPsiIoSome, Some(Column::GroupPsiIoFull)),
    ];
    for (name, some, full) in files.into_iter().filter(|&(_, some, full)| wants(some) || full.is_some_and(wants)) {
        keep(probes, &unified.join(name), some, full);
    }
}

fn keep(probes: &mut Probes, path: &Path, some: Column, full: Option<Column>) {
    probes.keep(path, move |text, row| totals(text, some, full, row));
}

fn totals(text: &[u8], some: Column, full: Option<Column>, row: &mut Reading) {
    for line in lines(text) {
        let column = match fields(line).next() {
            Some(b"some") => Some(some),
            Some(b"full") => full,
            _ => None,
        };
        let total = fields(line).find_map(|field| field.strip_prefix(b"total=")).and_then(number);
        if let (Some(column), Some(total)) = (column, total) {
            row.set(column, total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    const CPU: &str =
        "some avg10=0.88 avg60=1.09 avg300=0.47 total=18991413\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
    const MEMORY: &str =
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=20\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=10\n";
    const IO: &str = "some avg10=0.00 avg60=0.00 avg300=0.00 total=4\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n";

    #[test]
    fn the_host() {
        use Column::*;
        check(
            &[("pressure/cpu", CPU), ("pressure/memory", MEMORY), ("pressure/io", IO)],
            open_host,
            &[(PsiCpuSome, 18_991_413), (PsiMemSome, 20), (PsiMemFull, 10), (PsiIoSome, 4), (PsiIoFull, 3)],
        );
    }

    #[test]
    fn a_group() {
        use Column::*;
        check(
            &[("cpu.pressure", CPU), ("memory.pressure", MEMORY), ("io.pressure", IO)],
            |probes, root| open_group(probes, root, &|_| true),
            &[
                (GroupPsiCpuSome, 18_991_413),
                (GroupPsiMemSome, 20),
                (GroupPsiMemFull, 10),
                (GroupPsiIoSome, 4),
                (GroupPsiIoFull, 3),
            ],
        );
    }
}
