//! Ctrl-C while something of ours must first be tidied up.

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// While it lives, Ctrl-C and its kin are only noted; afterwards they end this program as ever.
///
/// A child in our process group gets Ctrl-C from the terminal too, so whoever waits for one has not long to wait.
pub(crate) struct HeldSignals {
    caught: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl HeldSignals {
    pub(crate) fn begin() -> anyhow::Result<HeldSignals> {
        let held = HeldSignals { caught: Arc::default(), over: Arc::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, Arc::clone(&held.caught), signal as usize)
                .and_then(|_| signal_hook::flag::register_conditional_default(signal, Arc::clone(&held.over)))
                .context("cannot listen for Ctrl-C")?;
        }
        Ok(held)
    }

    /// Whether one has come: what is under way should end early.
    pub(crate) fn came(&self) -> bool {
        self.caught.load(Ordering::SeqCst) != 0
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let caught = self.caught.load(Ordering::SeqCst);
        if caught != 0 {
            // Ends the program; it fails only for what is not a signal.
            let _ = signal_hook::low_level::emulate_default_handler(caught as i32);
        }
    }
}
