//! Swap emptied: what was moved to it comes back into memory, so that nobody begins the next trial swapped out.
//!
//! The kernel does so when an area is taken out of use; it is taken into use again as it was. Areas without a priority of their own get
//! theirs by the order in which they come, so they all go and come back together.

use super::{Turn, is_swapped_to, meminfo, swaps, turn};
use crate::HostError;
use crate::handle::Host;
use crate::journal::Undo;
use crate::mounts::unescape;
use crate::undo::marker;
use std::path::{Path, PathBuf};

/// How the name of everything begins that some run made.
const OF_A_RUN: &str = "webdyno-";

/// Whether this user may do that at all.
///
/// # Errors
/// [`HostError::NotRoot`] when not.
pub fn may_reset_swap() -> Result<(), HostError> {
    let root = rustix::process::geteuid().is_root();
    if root { Ok(()) } else { Err(HostError::NotRoot("only root may take swap out of use".to_owned())) }
}

/// An area that the kernel swaps to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Area {
    path: PathBuf,
    used: u64,
    priority: i32,
}

/// Empties the areas that hold something. Says how many bytes they held.
pub(crate) fn reset(host: &Host) -> Result<u64, HostError> {
    may_reset_swap()?;
    let areas = to_reset(areas(&swaps().map_err(HostError::NoSwap)?), &marker(host.run()));
    let used = areas.iter().map(|area| area.used).sum();
    enough_memory(used, meminfo("MemAvailable").unwrap_or(0))?;
    // The last recorded is undone first, by whomever: the one with the highest priority comes back first.
    let recorded =
        areas.iter().rev().map(|area| host.record(Undo::SwapOn { file: area.path.clone(), priority: area.priority }));
    let recorded = recorded.collect::<Result<Vec<u64>, HostError>>()?;
    let taken = areas.iter().try_for_each(|area| match turn(&area.path, Turn::Off) {
        Err(error) if is_swapped_to(&area.path).unwrap_or(true) => Err((area, error)),
        // Or somebody else was faster.
        _ => Ok(()),
    });
    recorded.into_iter().rev().try_for_each(|id| host.put_back(id))?;
    match taken {
        Ok(()) => Ok(used),
        Err((area, error)) => {
            Err(HostError::NoSwap(format!("cannot take the swap area {} out of use: {error}", area.path.display())))
        }
    }
}

/// What comes back must have room, or the kernel would end somebody for it.
fn enough_memory(used: u64, available: u64) -> Result<(), HostError> {
    if used <= available {
        return Ok(());
    }
    Err(HostError::NoSwap(format!(
        "swap cannot be reset: it holds {} MiB and {} MiB of memory are available to take it; end something first",
        used >> 20,
        available >> 20
    )))
}

/// Takes an area into use as it was. `Ok(None)` when it is, or is no more.
pub(crate) fn on(file: &Path, priority: i32) -> Result<Option<String>, String> {
    if is_swapped_to(file)? || !file.exists() {
        return Ok(None);
    }
    turn(file, Turn::On { priority: u16::try_from(priority).ok() })
        .map_err(|error| format!("cannot take the swap area {} into use again: {error}", file.display()))?;
    Ok(Some(format!("took the swap area {} into use again", file.display())))
}

/// Those that hold something, and with one of the kernel's own order all of that order; the highest priority first. Another run's file
/// is that run's, and what has no name any more could not be taken into use again.
fn to_reset(mut areas: Vec<Area>, marker: &str) -> Vec<Area> {
    areas.retain(|area| {
        let name = area.path.file_name().unwrap_or_default().to_string_lossy();
        let of_another = name.starts_with(OF_A_RUN) && !name.starts_with(marker);
        !of_another && !name.ends_with(" (deleted)")
    });
    let in_order = areas.iter().any(|area| area.priority < 0 && area.used > 0);
    areas.retain(|area| area.used > 0 || (area.priority < 0 && in_order));
    areas.sort_by_key(|area| std::cmp::Reverse(area.priority));
    areas
}

/// The areas of a text of `/proc/swaps`' form.
fn areas(swaps: &str) -> Vec<Area> {
    let area = |line: &str| {
        let mut words = line.split_whitespace();
        let path = unescape(words.next()?);
        let (used, priority) = (words.nth(2)?.parse::<u64>().ok()? << 10, words.next()?.parse().ok()?);
        Some(Area { path, used, priority })
    };
    swaps.lines().skip(1).filter_map(area).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWAPS: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
        /dev/vda2                               partition\t65532\t\t12\t\t-2\n\
        /my\\040swap                         file\t\t65532\t\t0\t\t-3\n\
        /dev/zram0                              partition\t65532\t\t0\t\t100\n\
        /dev/zram1                              partition\t65532\t\t3\t\t100\n\
        /tmp/webdyno-r1-7                       file\t\t65532\t\t4\t\t-4\n\
        /tmp/webdyno-r2-7                       file\t\t65532\t\t5\t\t-5\n\
        /gone\\040(deleted)                  file\t\t65532\t\t5\t\t-6\n";

    fn check(swaps: &str, expected: &[(&str, u64, i32)]) {
        let found = to_reset(areas(swaps), "webdyno-r1-");
        let found: Vec<_> = found.iter().map(|it| (it.path.to_str().unwrap(), it.used >> 10, it.priority)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_memory_cannot_take_stays_in_swap() {
        let check =
            |used: u64, available: u64| enough_memory(used << 20, available << 20).map_err(|why| why.to_string());
        assert_eq!(check(5, 5), Ok(()));
        let refused =
            "swap cannot be reset: it holds 6 MiB and 5 MiB of memory are available to take it; end something first";
        assert_eq!(check(6, 5), Err(refused.to_owned()));
    }

    #[test]
    fn areas_with_something_in_them_and_their_order() {
        check(
            SWAPS,
            &[("/dev/zram1", 3, 100), ("/dev/vda2", 12, -2), ("/my swap", 0, -3), ("/tmp/webdyno-r1-7", 4, -4)],
        );
        let quiet = SWAPS.replace("\t12\t", "\t0\t").replace("\t4\t", "\t0\t");
        check(&quiet, &[("/dev/zram1", 3, 100)]);
        check("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n", &[]);
    }
}
