//! Ctrl-C and its kin, a key of the screen among them: the first lets the run finish cleanly, the second says so and leaves at once, and the guardian puts things back.

use crate::say::say;
use crate::screen;
use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What `webdyno` ends with when it leaves at once.
const INTERRUPTED: i32 = 130;

/// The same signal again is a second wish to end no sooner than this after the first: `timeout` signals a process and then its
/// group.
const SECOND_WISH: Duration = Duration::from_millis(500);

/// A flag that is set when the user wants to end.
///
/// A signal that was ignored when we started stays ignored: that is what `nohup` and a shell's `&` are for.
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    heeding(0, leave)
}

/// The same for `webdyno watch`, which has nothing to put back.
pub(crate) fn flag_of_a_watch() -> anyhow::Result<Arc<AtomicBool>> {
    heeding(0, || signal_hook::low_level::exit(INTERRUPTED))
}

/// The same for `webdyno ab`: as in ab, SIGINT ends it even if it was ignored, as for whatever a script starts with `&`.
pub(crate) fn flag_as_ab() -> anyhow::Result<Arc<AtomicBool>> {
    heeding(1 << (SIGINT - 1), leave)
}

/// `always` are signals that are heeded though they were ignored; `leave` is what a second wish to end leads to.
fn heeding(always: u64, leave: fn() -> !) -> anyhow::Result<Arc<AtomicBool>> {
    let (flag, leaving) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status)) & !always;
    let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let heeded: Vec<i32> = heeded.collect();
    for &signal in &heeded {
        // Should the last words not get through to a terminal that takes none, a third signal needs nobody's help.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&leaving))
            .context("cannot listen for Ctrl-C")?;
    }
    let mut signals = Signals::new(heeded).context("cannot listen for Ctrl-C")?;
    let first = Arc::clone(&flag);
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut heard: Option<(i32, Instant)> = None;
            for signal in signals.forever() {
                if heard.is_some_and(|(before, since)| before == signal && since.elapsed() < SECOND_WISH) {
                    continue;
                }
                heard.get_or_insert_with(|| (signal, Instant::now()));
                if first.load(Ordering::Relaxed) {
                    leaving.store(true, Ordering::Relaxed);
                }
                if first.swap(true, Ordering::Relaxed) {
                    leave();
                }
            }
        })
        .context("cannot listen for Ctrl-C")?;
    Ok(flag)
}

/// The user wants to end: the first time cleanly, the second time at once.
pub(crate) fn heed(flag: &AtomicBool) {
    if flag.swap(true, Ordering::Relaxed) {
        leave();
    }
}

/// Ends the process without any clean-up of its own: the guardian sees to that.
fn leave() -> ! {
    let _ = screen::give_back();
    // The moving line of the progress, if there is one, must not stick out behind this one.
    let clear = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    say(&format!("{clear}webdyno: stopping now, without waiting for the trial; the guardian puts the machine back"));
    signal_hook::low_level::exit(INTERRUPTED)
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
