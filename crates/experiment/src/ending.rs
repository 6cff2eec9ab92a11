//! The end of a trial's server, where the plan wants it to begin while the load is still sent.

use crate::ExperimentError;
use model::plan::{Cell, Plan};
use server::Running;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The processes that the server had when it was told to begin anew; `None` when it was not told yet.
type Before = Result<Option<Vec<u32>>, ExperimentError>;

/// Does `work`, and has the server begin anew meanwhile at the time that the plan says, unless the work is over by then.
pub(crate) fn meanwhile<T>(plan: &Plan, cell: &Cell, running: &Running, work: impl FnOnce() -> T) -> (T, Before) {
    let end = plan.end(cell);
    let Some(after_ns) = end.after_ns else { return (work(), Ok(None)) };
    let server = plan.server_of(plan.variant(cell));
    std::thread::scope(|scope| {
        let (over, is_over) = channel::<()>();
        let told = scope.spawn(move || match is_over.recv_timeout(Duration::from_nanos(after_ns)) {
            Err(RecvTimeoutError::Timeout) => running.begin_anew(server, end.how).map(Some),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(None),
        });
        let done = work();
        drop(over);
        let told = told.join().expect("nothing in it panics");
        (done, told.map_err(ExperimentError::from))
    })
}
