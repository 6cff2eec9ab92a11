//! Which devices a module shows: those that were named, all of them, or their total.
//!
//! What there is, is told by the caller. Names that are not there are left out, as dstat does it.

use super::{Compat, Module, TOTAL};

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// Names, in the order given.
    pub named: Option<&'a [String]>,
    /// All of them where none are named.
    pub full: bool,
}

/// Interrupts of the oldest devices, which nobody wants to see.
const DULL: [&str; 4] = ["0", "1", "2", "8"];
/// How many interrupts fit beside other modules.
const INTERRUPTS: usize = 3;

/// The devices of a module. `present` are all there are; `whole` are those of them that are disks, and no parts of one.
#[must_use]
pub fn devices(module: Module, compat: Compat, wish: Wish<'_>, present: &[String], whole: &[String]) -> Vec<String> {
    let total = || vec![TOTAL.to_owned()];
    // From 0.8 on, `-f` does not mean CPUs, and `all` does.
    let all_cpus = match compat {
        Compat::Dstat07 => wish.full,
        Compat::Dstat08 | Compat::Dool => wish.named.is_some_and(|names| names.iter().any(|name| name == "all")),
    };
    let names = match (module, wish.named) {
        (Module::Cpu, _) if all_cpus => present.to_vec(),
        (Module::Disk | Module::DiskQueue | Module::Io, Some(names)) => {
            names.iter().map(|name| bare(name).to_owned()).collect()
        }
        (_, Some(names)) => names.to_vec(),
        (Module::Int, None) => return interrupts(present, wish.full),
        (Module::Cpu, None) => total(),
        (_, None) if !wish.full => total(),
        (Module::Disk | Module::DiskQueue | Module::Io, None) => sorted(whole),
        // In the order of their numbers, which are no words.
        (Module::Listen, None) => present.to_vec(),
        (Module::Net, None) => sorted(present).into_iter().filter(|name| name != "lo").collect(),
        (_, None) => sorted(present),
    };
    names.into_iter().filter(|name| name == TOTAL || present.contains(name)).collect()
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

fn bare(disk: &str) -> &str {
    disk.strip_prefix("/dev/").unwrap_or(disk)
}

/// The last few, apart from the dull ones. dstat removes those while it walks along the list, and so passes over the one that
/// follows each of them: kept, because it decides which columns there are.
fn interrupts(present: &[String], full: bool) -> Vec<String> {
    let mut names = present.to_vec();
    let mut at = 0;
    while at < names.len() {
        if DULL.contains(&names[at].as_str()) {
            names.remove(at);
        }
        at += 1;
    }
    let kept = if full { names.len() } else { INTERRUPTS.min(names.len()) };
    names.split_off(names.len() - kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(module: Module, compat: Compat, named: Option<&str>, full: bool, present: &str, expected: &str) {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (named, present) = (named.map(list), list(present));
        let whole: Vec<_> = present.iter().filter(|name| !name.ends_with('1')).cloned().collect();
        let found = devices(module, compat, Wish { named: named.as_deref(), full }, &present, &whole);
        assert_eq!(found.join(" "), expected, "{module:?} {named:?}");
    }

    #[test]
    fn names_totals_or_all() {
        let disks = "sdb sda sda1";
        check(Module::Disk, Compat::Dstat08, None, false, disks, "total");
        check(Module::Disk, Compat::Dstat08, None, true, disks, "sda sdb");
        check(Module::Io, Compat::Dstat08, Some("total /dev/sda1 sdc sdb"), true, disks, "total sda1 sdb");
        check(Module::Net, Compat::Dstat08, None, true, "lo eth1 eth0", "eth0 eth1");
        check(Module::Net, Compat::Dstat08, Some("lo total"), false, "lo eth0", "lo total");
        check(Module::Swap, Compat::Dstat08, None, true, "/swap", "/swap");
    }

    #[test]
    fn cpus_differ_by_version() {
        check(Module::Cpu, Compat::Dstat07, None, true, "0 1", "0 1");
        check(Module::Cpu, Compat::Dstat08, None, true, "0 1", "total");
        check(Module::Cpu, Compat::Dstat08, Some("all"), false, "0 1", "0 1");
        check(Module::Cpu, Compat::Dstat08, Some("1 7 total"), false, "0 1", "1 total");
    }

    #[test]
    fn interrupts_are_the_last_ones() {
        check(Module::Int, Compat::Dstat08, None, false, "4 8 9 14 24 25", "14 24 25");
        check(Module::Int, Compat::Dstat08, None, true, "0 1 4 8", "1 4");
        check(Module::Int, Compat::Dstat08, Some("9 total"), true, "4 9", "9 total");
    }
}
