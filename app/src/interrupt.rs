//! Ctrl-C and its kin: the first lets the run finish cleanly, the second leaves at once and the guardian puts things back.

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What `webdyno` ends with when it leaves at once.
const INTERRUPTED: i32 = 130;

/// A flag that is set when the user wants to end.
///
/// A signal that was ignored when we started stays ignored: that is what `nohup` and a shell's `&` are for.
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if ignored & (1 << (signal - 1)) == 0 {
            // In this order: the second signal finds the flag set by the first.
            signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&flag))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
                .context("cannot listen for Ctrl-C")?;
        }
    }
    Ok(flag)
}

/// The mask of ignored signals in the text of `/proc/PID/status`.
fn ignored(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        // As `nohup` leaves it: SIGHUP is signal 1.
        assert_eq!(ignored("Name:\twebdyno\nSigIgn:\t0000000000000001\nSigCgt:\t0\n"), 1 << (SIGHUP - 1));
        assert_eq!(ignored("no such line"), 0);
    }
}
