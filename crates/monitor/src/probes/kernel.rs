//! How long the kernel has been up, and what it holds open: /proc/uptime and /proc/sys/fs.

use super::Probes;
use super::cpu::hundredths;
use crate::text::{fields, number};
use model::reading::{Column, Reading};
use std::path::Path;

/// Opens /proc/uptime.
pub(super) fn open_uptime(probes: &mut Probes, proc_root: &Path) {
    probes.keep(&proc_root.join("uptime"), |text, row| {
        fields(text).next().and_then(hundredths).into_iter().for_each(|uptime| row.set(Column::Uptime, uptime));
    });
}

/// Opens the two files of open files and inodes.
pub(super) fn open_files(probes: &mut Probes, proc_root: &Path) {
    let fs = proc_root.join("sys/fs");
    probes.keep(&fs.join("file-nr"), |text, row| in_order(text, &[Column::FilesOpen], row));
    probes.keep(&fs.join("inode-nr"), |text, row| in_order(text, &[Column::Inodes, Column::InodesFree], row));
}

/// Numbers that have no names.
fn in_order(text: &[u8], columns: &[Column], row: &mut Reading) {
    for (&column, field) in columns.iter().zip(fields(text)) {
        number(field).into_iter().for_each(|value| row.set(column, value));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    fn open(probes: &mut Probes, proc_root: &Path) {
        open_uptime(probes, proc_root);
        open_files(probes, proc_root);
    }

    #[test]
    fn numbers_by_position() {
        use Column::*;
        let files = [
            ("uptime", "41823.51 60123.40\n"),
            ("sys/fs/file-nr", "1504\t0\t9223372036854775807\n"),
            ("sys/fs/inode-nr", "71210\t912\n"),
        ];
        check(&files, open, &[(Uptime, 4_182_351), (FilesOpen, 1504), (Inodes, 71_210), (InodesFree, 912)]);
    }

    #[test]
    fn what_is_no_number_fills_nothing() {
        check(
            &[("uptime", "up\n"), ("sys/fs/file-nr", ""), ("sys/fs/inode-nr", "- 5")],
            open,
            &[(Column::InodesFree, 5)],
        );
    }
}
