//! Memory, swap and disks.

use super::{cpu_is_full, failures, room, worker_numbers};
use crate::evidence::{Evidence, Pressure, Whose};
use crate::number::{Numbers, Quantity};
use crate::thresholds::{
    BOTH_WAYS, DISK_BUSY, DISK_FULL, DISK_OVER_MEMORY, DISK_SWAP_SHARE, HOST_PLENTY, MAJOR_FAULTS, PRESSURE_BUILDS,
    PRESSURE_MOVES, READ_BACK_PART, REFAULT_PER_REQUEST, THRASH_FULL, THRASH_SOME, THRASH_USER,
};
use model::trial::Stop;

/// With a group, the guard that watches the host's swap-in counts what the group reads back as the server's. Without one, and without a limit
/// of its service's or container's, a server can only be short of memory when the host is: where plenty is available, somebody else has a limit
/// and runs into it.
pub(super) fn host_disturbed(e: &Evidence) -> Option<Numbers> {
    let disturbed = if e.grouped {
        e.stopped == Some(Stop::HostSwapIn)
    } else {
        let plenty = e.memory.host_available.is_some_and(|available| available >= HOST_PLENTY);
        plenty && e.bounded != Some(true) && (thrashing(e) || stalls(e))
    };
    disturbed.then(|| e.memory.traffic())
}

pub(super) fn memory_thrash(e: &Evidence) -> Option<Numbers> {
    thrashing(e).then(|| e.memory.traffic())
}

pub(super) fn out_of_memory(e: &Evidence) -> Option<Numbers> {
    let kills = e.memory.oom_kills.filter(|&kills| kills > 0)?;
    Some(Numbers::default().with(Quantity::OomKills, kills as f64).and(e.memory.swap_numbers()).and(failures(e)))
}

/// Only beside its effect: that memory would not hold all workers is no harm while they do not all work.
pub(super) fn worker_limit_too_high(e: &Evidence) -> Option<Numbers> {
    let harm = thrashing(e) || e.memory.oom_kills.is_some_and(|kills| kills > 0);
    let fit = e.memory.workers_that_fit()?;
    // A server without a limit accepts whatever is offered.
    let accepted = e.workers.binding_limit().unwrap_or(e.offered.connections);
    (harm && accepted > fit).then(|| worker_numbers(e).and(room(e)))
}

pub(super) fn file_cache_thrash(e: &Evidence) -> Option<Numbers> {
    let files = e.memory.read_back().is_some_and(|(_, files)| files >= READ_BACK_PART);
    (stalls(e) && files).then(|| e.memory.rereading())
}

pub(super) fn disk_bound(e: &Evidence) -> Option<Numbers> {
    let waited = match e.disk.pressure {
        Some(io) => {
            let memory = e.memory.pressure.filter(|memory| memory.whose == io.whose).map_or(0.0, |memory| memory.full);
            io.full >= DISK_FULL && memory < io.full * DISK_OVER_MEMORY && !cpu_is_full(e)
        }
        None => e.disk.busy.is_some_and(|busy| busy >= DISK_BUSY) && e.disk.queue.is_some_and(|queue| queue > 1.0),
    };
    // The host's disks are waited for by anybody, were it for its own log. Where the server's processes are looked at, some wait as well.
    let of_host = e.disk.pressure.is_none_or(|io| io.whose == Whose::Host);
    let server_waits = !of_host || e.disk.asleep.is_none_or(|part| part >= DISK_FULL);
    // One request at a time leaves the disk alone whenever it does something else: the disk could take more.
    let many = !e.offered.ours || e.offered.concurrency > 1.0;
    (waited && server_waits && many && !swaps_mostly(e)).then(|| e.disk.numbers().and(e.cpu.shares()))
}

/// Some waiting for memory, while pages that were taken away come back or more are being taken. The page cache takes all there is, and a
/// full one is none of this.
pub(super) fn pressure_building(e: &Evidence) -> Option<Numbers> {
    let some = e.memory.pressure?.some;
    let file_refaults = e.memory.file_refaults.map_or(0.0, |size| size.bytes);
    let moved = e.memory.swap_refaults.unwrap_or(0.0) + file_refaults;
    let swaps = e.memory.swap_out.is_some_and(|bytes| bytes >= PRESSURE_MOVES);
    (some >= PRESSURE_BUILDS && (moved >= PRESSURE_MOVES || swaps))
        .then(|| e.memory.traffic().and(e.memory.rereading()).with(Quantity::HostAvailable, e.memory.host_available))
}

/// Whether everything waited for memory so long that little else can be judged; the guard for thrash measures just that.
pub(super) fn stalls(e: &Evidence) -> bool {
    e.stopped == Some(Stop::Thrash) || e.memory.pressure.is_some_and(|memory| memory.full >= THRASH_FULL)
}

/// Whether swapped memory is fetched back all the time. Swap in use, or pages leaving for good, is not that.
///
/// Waiting for memory does not tell by itself what came back: pages of files that are read again count as well. Where the kernel
/// does not count the two apart, swap is what is thought of.
fn thrashing(e: &Evidence) -> bool {
    let some = |pressure: Option<Pressure>| pressure.is_some_and(|p| p.some >= THRASH_SOME);
    let swaps = e.memory.read_back().is_none_or(|(swap, _)| swap >= READ_BACK_PART);
    let refaults = e.memory.refault_per_request.is_some_and(|bytes| bytes >= REFAULT_PER_REQUEST);
    let shows = match e.memory.pressure {
        Some(_) => refaults && (some(e.memory.pressure) || some(e.disk.pressure)),
        None => refaults || host_thrashes(e),
    };
    let swapped_in = e.stopped == Some(Stop::HostSwapIn) && !e.grouped;
    swapped_in || shows || (stalls(e) && swaps)
}

/// The judgement from vmstat alone, for kernels without PSI. Busy CPUs do not speak against it: on fast swap it is the kernel's own
/// reclaim that fills them.
fn host_thrashes(e: &Evidence) -> bool {
    let both_ways = e.memory.swapped_both_ways.is_some_and(|share| share >= BOTH_WAYS);
    let faults = e.memory.major_faults.is_some_and(|(_, rate)| rate >= MAJOR_FAULTS);
    let little_work = e.cpu.host.is_some_and(|cpu| cpu.user < THRASH_USER);
    both_ways && faults && little_work
}

/// Whether swap is most of what the disks are busy with, as far as is known.
pub(crate) fn swaps_mostly(e: &Evidence) -> bool {
    e.disk.swap_share.is_some_and(|share| share >= DISK_SWAP_SHARE)
}
