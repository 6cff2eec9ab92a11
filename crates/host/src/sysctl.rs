//! Settings of the kernel that a variant has other values of.

use crate::HostError;
use crate::claim::claim;
use crate::handle::Host;
use crate::journal::Undo;
use std::fs;
use std::path::{Path, PathBuf};

/// A setting that can be given other values, and back its own. It gets back its own when the run ends, however it ends.
#[derive(Debug)]
pub struct BorrowedSysctl {
    name: String,
    before: String,
}

impl BorrowedSysctl {
    /// Keeps other runs from it and journals the value that it has.
    pub(crate) fn new(host: &Host, name: &str) -> Result<BorrowedSysctl, HostError> {
        // Two runs would take each other's value for its own.
        claim(host, &place(name).map_err(|why| HostError::Sysctl { name: name.to_owned(), why })?)?;
        let before = value(name).map_err(|why| HostError::Sysctl { name: name.to_owned(), why })?;
        // It is asked for now and not in the middle of a run: who may write the value that it has may write another.
        write(name, &before).map_err(|why| HostError::Sysctl { name: name.to_owned(), why })?;
        host.record(Undo::Sysctl { name: name.to_owned(), value: before.clone() })?;
        Ok(BorrowedSysctl { name: name.to_owned(), before })
    }

    /// Gives it a value, or the one that it had before.
    ///
    /// # Errors
    /// When the kernel refuses the value, or takes another one for it.
    pub fn put(&self, wanted: Option<&str>) -> Result<(), HostError> {
        let failed = |why: String| HostError::Sysctl { name: self.name.clone(), why };
        let wanted = wanted.unwrap_or(&self.before);
        write(&self.name, wanted).map_err(failed)?;
        let now = value(&self.name).map_err(failed)?;
        if same(&now, wanted) { Ok(()) } else { Err(failed(format!("the kernel made {now} of {wanted}"))) }
    }
}

/// Gives a setting its value back. `Ok(None)` when it has it.
pub(crate) fn give_back(name: &str, before: &str) -> Result<Option<String>, String> {
    match value(name) {
        Ok(now) if same(&now, before) => Ok(None),
        _ => {
            write(name, before).map_err(|why| format!("cannot give back {name} = {before}: {why}"))?;
            Ok(Some(format!("gave back {name} = {before}")))
        }
    }
}

/// Whether it has another value than before.
pub(crate) fn is_changed(name: &str, before: &str) -> bool {
    value(name).is_ok_and(|now| !same(&now, before))
}

/// Blanks between several numbers are the kernel's affair.
fn same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

fn place(name: &str) -> Result<PathBuf, String> {
    let plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !name.split('.').all(plain) {
        return Err("no such setting".to_owned());
    }
    Ok(Path::new("/proc/sys").join(name.replace('.', "/")))
}

fn value(name: &str) -> Result<String, String> {
    let text = fs::read_to_string(place(name)?).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "this kernel has no such setting".to_owned(),
        _ => error.to_string(),
    })?;
    Ok(text.trim().to_owned())
}

fn write(name: &str, value: &str) -> Result<(), String> {
    fs::write(place(name)?, value).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => "only root may change it: run webdyno as root".to_owned(),
        _ => format!("the kernel refuses {value}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_places() {
        assert!(same("1024\t65000", "1024 65000") && !same("1", "2"));
        assert_eq!(place("net.core.somaxconn"), Ok("/proc/sys/net/core/somaxconn".into()));
        for name in ["net..core", "../x", "net/core", "", "a.$b"] {
            assert!(place(name).is_err(), "{name}");
        }
        assert!(value("net.core.none").is_err_and(|why| why == "this kernel has no such setting"));
    }
}
