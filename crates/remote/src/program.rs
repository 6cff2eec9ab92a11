//! This program as it is copied: only what the kernel loads of it, and a name that is its content's.

use aws_lc_rs::digest::{SHA256, digest};
use std::fs;
use std::io;
use std::path::Path;

/// A program to be copied.
pub(crate) struct Program {
    pub(crate) bytes: Vec<u8>,
    /// SHA-256 of the bytes, in hexadecimal digits.
    pub(crate) sum: String,
}

impl Program {
    /// Reads a program's file.
    pub(crate) fn read(exe: &Path) -> io::Result<Program> {
        let mut bytes = fs::read(exe)?;
        if let Some(loaded) = loaded(&bytes) {
            bytes.truncate(loaded);
            // Nor is there a table of sections any more: its place, its entries and its names.
            bytes[0x28..0x30].fill(0);
            bytes[0x3c..0x40].fill(0);
        }
        let sum = digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Program { bytes, sum })
    }
}

/// How much of a 64-bit ELF file of this machine's byte order is loaded: behind it are symbols, which make up most of it. `None` for
/// everything else.
fn loaded(elf: &[u8]) -> Option<usize> {
    const LITTLE: u8 = 1;
    let order = if cfg!(target_endian = "little") { LITTLE } else { 2 };
    if elf.get(..6)? != [0x7f, b'E', b'L', b'F', 2, order] {
        return None;
    }
    let word = |at: usize| usize::try_from(u64::from_ne_bytes(elf.get(at..at + 8)?.try_into().ok()?)).ok();
    let half = |at: usize| Some(usize::from(u16::from_ne_bytes(elf.get(at..at + 2)?.try_into().ok()?)));
    let (table, each, count) = (word(0x20)?, half(0x36)?, half(0x38)?);
    let mut end = table.checked_add(each.checked_mul(count)?)?;
    for segment in (0..count).map(|i| table + i * each) {
        end = end.max(word(segment + 0x08)?.checked_add(word(segment + 0x20)?)?);
    }
    (end >= 0x40 && end <= elf.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn a_program_without_its_symbols_runs_and_is_smaller() {
        let exe = std::env::current_exe().unwrap();
        let program = Program::read(&exe).unwrap();
        assert!(program.bytes.len() < fs::metadata(&exe).unwrap().len() as usize);
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        fs::write(&copy, &program.bytes).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
        let out = Command::new(&copy).arg("--list").output().unwrap();
        assert!(
            out.status.success() && String::from_utf8_lossy(&out.stdout).contains("runs_and_is_smaller"),
            "{out:?}"
        );
    }

    #[test]
    fn the_sum_is_sha256_and_what_is_no_program_stays_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "abc").unwrap();
        let program = Program::read(file.path()).unwrap();
        assert_eq!(program.bytes, b"abc");
        assert_eq!(program.sum, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(loaded(&[0x7f, b'E', b'L', b'F', 2, 1, 0]), None);
    }
}
