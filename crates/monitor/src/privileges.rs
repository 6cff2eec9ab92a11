//! What the sampler asks of the kernel for itself, and the sentence for each thing it was refused.
//!
//! Nothing here is needed for readings to be right; all of it is for them to be on time. So a refusal is never an error.
//!
//! Memory is locked page by page as it is touched (`MCL_ONFAULT`), after two readings have touched everything a reading needs:
//! some hundred kilobytes instead of the whole program with its libraries, on a host that may have no memory to spare.

use rustix::io::Errno;
use rustix::mm::MlockAllFlags;
use rustix::process::{Resource, Rlimit};
use std::hint::black_box;
use std::path::Path;

/// The lowest real-time priority: before every ordinary process, behind every other real-time one.
const FIFO_PRIORITY: libc::c_int = 1;

/// How long the sampler may compute at real-time priority without waiting once, in microseconds, before the kernel ends it.
/// A reading takes a thousandth of that; this only keeps a mistake of ours from taking a CPU away.
const FIFO_LIMIT_US: u64 = 500_000;

/// How much of the stack is touched before memory is locked; more than any reading uses.
const STACK: usize = 64 * 1024;

/// How the sentences about refusals begin.
const REFUSALS: [&str; 3] =
    ["real-time priority", "locked memory was refused", "protection from the out-of-memory killer was refused"];

/// Whether a note of a sampler is about something that it was refused for itself: no number is wrong for that, but some may be late.
#[must_use]
pub fn is_refusal(note: &str) -> bool {
    REFUSALS.iter().any(|refusal| note.starts_with(refusal))
}

/// Asks for as many open files as the hard limit allows: one is kept for each process of the server.
pub(crate) fn many_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // Refused or not, the limit in force shows where it matters: when a process cannot be followed.
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Asks for real-time priority, or else for the best ordinary one; threads started later inherit what was given.
pub(crate) fn priority(notes: &mut Vec<String>) {
    let limit = Rlimit { current: Some(FIFO_LIMIT_US), maximum: Some(FIFO_LIMIT_US) };
    let Err(error) = rustix::process::setrlimit(Resource::Rttime, limit).and_then(|()| set_fifo()) else { return };
    let instead = match rustix::process::setpriority_process(None, -20) {
        Ok(()) => "real-time priority was refused, the sampler runs at nice -20",
        Err(_) => "real-time priority and nice -20 were refused",
    };
    notes.push(format!("{instead} ({error}): readings may be late when every CPU is busy"));
}

/// Locks in memory what has been touched and what will be.
pub(crate) fn lock_memory(notes: &mut Vec<String>) {
    touch_stack();
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    if let Err(error) = rustix::mm::mlockall(flags) {
        notes.push(format!(
            "locked memory was refused ({error}; it needs root or a higher `ulimit -l`): readings may be late when memory is short"
        ));
    }
}

/// Asks not to be killed when memory runs out.
pub(crate) fn survive_oom(proc_root: &Path, notes: &mut Vec<String>) {
    if let Err(error) = std::fs::write(proc_root.join("self/oom_score_adj"), "-1000") {
        notes
            .push(format!("protection from the out-of-memory killer was refused ({error}): the sampler may be killed"));
    }
}

fn set_fifo() -> Result<(), Errno> {
    let parameters = libc::sched_param { sched_priority: FIFO_PRIORITY };
    // SAFETY: 0 is the calling thread and `parameters` lives until the call returns.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)
}

#[inline(never)]
fn touch_stack() {
    let mut stack = [0u8; STACK];
    stack.iter_mut().step_by(1024).for_each(|byte| *byte = 1);
    black_box(&stack);
}
