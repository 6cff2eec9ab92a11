//! Settings of the kernel that a variant has other values of.

use crate::HostError;
use crate::claim::claim;
use crate::handle::Host;
use crate::journal::Undo;
use std::fs;
use std::path::{Path, PathBuf};

/// Settings of which the kernel keeps one: it sets the other to 0, and 0 put there does not bring it back (Documentation/admin-guide/sysctl/vm.rst).
const PAIRS: [[&str; 2]; 3] = [
    ["vm.dirty_bytes", "vm.dirty_ratio"],
    ["vm.dirty_background_bytes", "vm.dirty_background_ratio"],
    ["vm.overcommit_kbytes", "vm.overcommit_ratio"],
];

/// A setting that can be given other values, and back its own. It gets back its own when the run ends, however it ends.
#[derive(Debug)]
pub struct BorrowedSysctl {
    name: String,
    before: String,
    ours: Vec<String>,
}

impl BorrowedSysctl {
    /// Keeps other runs from it and journals the value that it has. `values` are all that it will get.
    pub(crate) fn new(host: &Host, name: &str, values: &[String]) -> Result<BorrowedSysctl, HostError> {
        let failed = |why: String| HostError::Sysctl { name: name.to_owned(), why };
        // Two runs would take each other's value for its own.
        claim(host, &place(name).map_err(failed)?)?;
        let before = value(name).map_err(failed)?;
        if let Some(other) = partner(name).filter(|other| value(other).is_ok_and(|other| other != "0")) {
            return Err(failed(format!(
                "{other} is set, and the kernel would forget it over this one; set {other} instead"
            )));
        }
        // It is asked for now and not in the middle of a run: who may write the value that it has may write another.
        write(name, &before).map_err(failed)?;
        let ours = values.to_vec();
        host.record(Undo::Sysctl { name: name.to_owned(), value: before.clone(), ours: ours.clone() })?;
        Ok(BorrowedSysctl { name: name.to_owned(), before, ours })
    }

    /// Gives it a value, or the one that it had before.
    ///
    /// # Errors
    /// When the kernel refuses the value or takes another one for it, or when somebody else has set it meanwhile.
    pub fn put(&self, wanted: Option<&str>) -> Result<(), HostError> {
        let failed = |why: String| HostError::Sysctl { name: self.name.clone(), why };
        let now = value(&self.name).map_err(failed)?;
        if is_of_others(&now, &self.before, &self.ours) {
            return Err(failed(format!(
                "somebody else set it to {now} while webdyno worked with it; that is kept, and the run ends"
            )));
        }
        let wanted = wanted.unwrap_or(&self.before);
        write(&self.name, wanted).map_err(failed)?;
        let now = value(&self.name).map_err(failed)?;
        if same(&now, wanted) {
            return Ok(());
        }
        // Nobody would know later that this value is not somebody else's.
        write(&self.name, &self.before).map_err(failed)?;
        Err(failed(format!("the kernel made {now} of {wanted}")))
    }
}

/// Gives a setting its value back, unless somebody else has set it meanwhile. `Ok(None)` when it has it.
pub(crate) fn give_back(name: &str, before: &str, ours: &[String]) -> Result<Option<String>, String> {
    match value(name) {
        Ok(now) if same(&now, before) => Ok(None),
        Ok(now) if is_of_others(&now, before, ours) => {
            Ok(Some(format!("{name} was set to {now} by somebody else and stays so; it was {before}")))
        }
        then => {
            let failed = |why: String| format!("cannot give back {name} = {before}: {why}");
            write(name, before).map_err(failed)?;
            match (value(name), then) {
                (Ok(now), Ok(then)) if !same(&now, before) => {
                    // As in `put`: the next attempt would take this value for somebody else's.
                    write(name, &then).map_err(failed)?;
                    Err(failed(format!("the kernel made {now} of it")))
                }
                _ => Ok(Some(format!("gave back {name} = {before}"))),
            }
        }
    }
}

/// What giving it back would do.
pub(crate) fn foresee(name: &str, before: &str, ours: &[String]) -> Option<String> {
    let now = value(name).ok().filter(|now| !same(now, before))?;
    Some(match is_of_others(&now, before, ours) {
        true => format!("would leave {name} = {now}, which somebody else has set"),
        false => format!("would give back {name} = {before}"),
    })
}

/// Whether a value is neither the one of before nor one of the run's. Journals of before do not know the run's.
fn is_of_others(now: &str, before: &str, ours: &[String]) -> bool {
    !ours.is_empty() && !ours.iter().map(String::as_str).chain([before]).any(|known| same(now, known))
}

/// The setting that the kernel forgets over this one.
fn partner(name: &str) -> Option<&'static str> {
    PAIRS.iter().find_map(|[one, other]| match () {
        () if *one == name => Some(*other),
        () if *other == name => Some(*one),
        () => None,
    })
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
    fn what_the_kernel_makes_of_a_value_is_looked_at() {
        let name = "net.ipv4.tcp_keepalive_probes";
        let Ok(now) = value(name) else { return testkit::skip::not_here("there is no such setting") };
        if write(name, &now).is_err() {
            return testkit::skip::not_here("it cannot be written");
        }
        // It takes such a number and tells it otherwise.
        let before = format!("0x{:x}", now.parse::<u32>().unwrap());
        let expected = format!("cannot give back {name} = {before}: the kernel made {now} of it");
        assert_eq!(give_back(name, &before, std::slice::from_ref(&now)), Err(expected));
        assert_eq!(value(name), Ok(now));
    }

    #[test]
    fn values_and_places() {
        assert!(same("1024\t65000", "1024 65000") && !same("1", "2"));
        assert_eq!(place("net.core.somaxconn"), Ok("/proc/sys/net/core/somaxconn".into()));
        for name in ["net..core", "../x", "net/core", "", "a.$b"] {
            assert!(place(name).is_err(), "{name}");
        }
        let ours = ["7".to_owned(), "4 5".to_owned()];
        for (now, expected) in [("3", false), ("7", false), ("4\t5", false), ("6", true)] {
            assert_eq!(is_of_others(now, "3", &ours), expected, "{now}");
        }
        assert!(!is_of_others("6", "3", &[]));
        assert_eq!((partner("vm.dirty_ratio"), partner("vm.swappiness")), (Some("vm.dirty_bytes"), None));
        assert!(value("net.core.none").is_err_and(|why| why == "this kernel has no such setting"));
    }
}
