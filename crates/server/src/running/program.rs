//! Apache's program: what is built into it, and its version as it tells it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// No program is longer; httpd with everything built in is a few megabytes.
const LONGEST: u64 = 64 << 20;

/// What is known of the program that reads a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Program {
    /// Major, minor and patch; 2.4 without more where it is not told.
    pub(super) version: Option<[u32; 3]>,
    /// Symbols of modules, such as `mpm_event_module`.
    pub(super) built_in: BTreeSet<String>,
}

impl Program {
    /// Of a process, and of what it says in its answers (`Server: Apache/2.4.71 (Debian)`).
    pub(super) fn of(proc_root: &Path, pid: u32, says: Option<&str>) -> Program {
        let mut bytes = Vec::new();
        let file = File::open(proc_root.join(pid.to_string()).join("exe"));
        // Of a program that may not be read nothing is known.
        let _ = file.and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
        Program { version: says.and_then(version_in), built_in: built_in(&bytes) }
    }

    /// Whether a condition of `<IfVersion>` holds: an operator and a version, of which what is left out counts as 0. A regular expression does.
    pub(super) fn is(&self, condition: &str) -> bool {
        let version = self.version.unwrap_or([2, 4, u32::MAX]);
        let (operator, than) = condition.split_once(char::is_whitespace).unwrap_or(("=", condition));
        let mut numbers = than.trim().split('.').map(|number| number.parse().unwrap_or(0));
        let than = [(); 3].map(|()| numbers.next().unwrap_or(0));
        match operator {
            "=" | "==" => condition.contains('/') || version == than,
            ">" => version > than,
            ">=" => version >= than,
            "<" => version < than,
            "<=" => version <= than,
            _ => true,
        }
    }
}

/// The list of what is linked into httpd (`ap_prelinked_module_symbols`) has names, each between zero bytes.
fn built_in(program: &[u8]) -> BTreeSet<String> {
    let names = program.split(|&byte| byte == 0).filter(|name| name.ends_with(b"_module"));
    let plain =
        |name: &&[u8]| name.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_');
    let text = names.filter(plain).map(|name| String::from_utf8_lossy(name).into_owned());
    text.filter(|name| !name.starts_with("ap_")).collect()
}

fn version_in(says: &str) -> Option<[u32; 3]> {
    let rest = says.strip_prefix("Apache/")?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.split('.').map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared() {
        let check = |says: Option<&str>, conditions: &str, expected: bool| {
            let program = Program { version: says.and_then(version_in), built_in: BTreeSet::new() };
            for condition in conditions.split(", ") {
                assert_eq!(program.is(condition), expected, "{says:?} {condition}");
            }
        };
        let debian = Some("Apache/2.4.71 (Debian)");
        check(debian, ">= 2.4, > 2.4.70, < 2.5, 2.4.71, == 2.4.71, ~ ^2.4, /^2.4/", true);
        check(debian, "< 2.4, <= 2.4.70, 2.4, = 2.2.3", false);
        check(Some("Apache/2.2.15"), "< 2.4", true);
        check(Some("Apache"), ">= 2.4.10", true);
        check(None, "< 2.4", false);
    }

    #[test]
    fn what_is_built_in_stands_in_the_program() {
        let found =
            built_in(b"\x7fELF\0core_module\0mpm_event_module\0ap_top_module\0a _module\0core_module\0_module.c\0");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["core_module", "mpm_event_module"]);
        let Ok(bytes) = std::fs::read("/usr/sbin/apache2") else {
            return testkit::skip::skipped("there is no Debian apache2");
        };
        let found = built_in(&bytes);
        assert!(found.contains("so_module") && !found.iter().any(|name| name.starts_with("mpm_")), "{found:?}");
    }
}
