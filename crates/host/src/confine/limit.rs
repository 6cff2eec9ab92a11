//! One limit: a value for a file of a group, written, read back, and told as the kernel holds it.

use crate::HostError;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Which controller's directory a file lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Memory,
    Cpu,
    Io,
}

/// What to write into which file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) of: Of,
    pub(super) file: &'static str,
    pub(super) value: String,
}

impl Limit {
    pub(super) fn new(of: Of, file: &'static str, value: impl Into<String>) -> Limit {
        Limit { of, file, value: value.into() }
    }

    /// Writes it to a file of the kernel's in `dir`, which is never made, and tells what the kernel has from then on.
    pub(super) fn apply(&self, dir: &Path) -> Result<(String, String), HostError> {
        let file = dir.join(self.file);
        set(&file, &self.value)?;
        let held = fs::read_to_string(&file).map_err(HostError::io("read", &file))?;
        if !self.is_held(&held) {
            return Err(HostError::NoConfinement(format!(
                "{} was to be `{}`, and the kernel made it `{}`; another value, or another limit of an outer group, is needed",
                file.display(),
                self.value,
                held.trim().replace('\n', "; ")
            )));
        }
        Ok((self.file.to_owned(), held.trim().replace('\n', "; ")))
    }

    /// Whether the kernel's text says what was written. Memory is counted in pages; a device has a line of its own.
    fn is_held(&self, held: &str) -> bool {
        let mut words = self.value.split_whitespace();
        match (self.of, words.next()) {
            (Of::Io, Some(device)) => {
                let line = held.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' '));
                let of_line: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
                words.all(|word| of_line.contains(&word))
            }
            (Of::Memory, Some(value)) => match (value.parse::<u64>(), held.trim().parse::<u64>()) {
                (Ok(written), Ok(held)) => written.abs_diff(held) < 64 << 10,
                _ => held.trim() == value,
            },
            _ => held.split_whitespace().eq(self.value.split_whitespace()),
        }
    }
}

/// Writes to a file of the kernel's; never makes one.
pub(super) fn set(file: &Path, value: &str) -> Result<(), HostError> {
    let written = OpenOptions::new().write(true).open(file).and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(HostError::io("write", file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_holds_is_compared() {
        let check = |of, value: &str, held: &str, expected| {
            assert_eq!(Limit::new(of, "f", value).is_held(held), expected, "{value} {held}");
        };
        check(Of::Memory, "100000000", "99999744\n", true);
        check(Of::Memory, "100000000", "50000000\n", false);
        check(Of::Cpu, "50000 100000", "50000 100000\n", true);
        check(Of::Cpu, "50000", "-1\n", false);
        check(Of::Io, "254:0 1048576", "8:0 5\n254:0 1048576\n", true);
        check(Of::Io, "254:0 1048576", "254:00 1048576\n", false);
        check(Of::Io, "254:0 rbps=1 wiops=3", "254:0 rbps=1 wbps=max riops=max wiops=3\n", true);
        check(Of::Io, "254:0 rbps=1", "254:0 rbps=max wbps=max riops=max wiops=max\n", false);
        check(Of::Io, "254:0 rbps=1", "", false);
    }
}
