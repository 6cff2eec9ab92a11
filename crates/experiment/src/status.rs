//! The server's own status beside a load: asked about once a second, from a thread of its own, without taking a measured worker.

use model::status::ServerStatus;
use server::StatusSource;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// Does `work`, and asks meanwhile; gives what it gave, and what was told.
pub(crate) fn beside<T>(source: &StatusSource, work: impl FnOnce() -> T) -> (T, Vec<ServerStatus>) {
    if source.is_empty() {
        return (work(), Vec::new());
    }
    thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        let ask = move || {
            let mut told = Vec::new();
            loop {
                let status = source.look();
                if status.web.is_some() || status.fpm.is_some() {
                    told.push(status);
                }
                // The sender is dropped when the work is done, also by its panic.
                if is_done.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                    return told;
                }
            }
        };
        // Without the thread a trial is told of as those of a server that tells nothing.
        let started = thread::Builder::new().name("status".to_owned()).spawn_scoped(scope, ask);
        let result = work();
        drop(done);
        let told = started.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (result, told.unwrap_or_default())
    })
}
