//! What lies around the server: the network, the client, others, and the monitor itself.

use super::{at_once, cpu_used, failures, is_calm, offered, thread_wait, worker_numbers};
use crate::evidence::Evidence;
use crate::number::{Numbers, Quantity};
use crate::thresholds::{
    AT_ONCE_PART, CPU_FULL, CPU_ROOM, FAILURES, FOREIGN, GENERATOR_FULL, LINK_FULL, LONGEST_GAP, NO_THREAD,
    NOBODY_BUSY, ONE_CORE, OUT_OF_PORTS, RETRANSMITS, RETRANSMITS_EACH_SECOND, SENDING, SINGLE_CORE, THREAD_WAIT,
    UNWATCHED,
};

pub(super) fn failures_dominate(e: &Evidence) -> Option<Numbers> {
    (e.offered.failed_share() >= FAILURES).then(|| failures(e).with(Quantity::Goodput, e.offered.goodput))
}

/// All that was sent was still in flight at the end. What the server was busy with meanwhile others say, or nobody.
pub(super) fn no_answers(e: &Evidence) -> Option<Numbers> {
    let sent = e.offered.ours && e.offered.own_concurrency > 0.0;
    (sent && e.offered.good + e.offered.failed == 0)
        .then(|| worker_numbers(e).and(offered(e)).and(e.cpu.of_server()).with(Quantity::CpuUsed, cpu_used(e)))
}

/// Nothing was used up, and nobody waits for anything: the earlier lines speak for memory, disk and workers, this one for the CPU and the
/// generator, the door, and what stands behind the server.
pub(super) fn offered_concurrency(e: &Evidence) -> Option<Numbers> {
    let used = cpu_used(e).filter(|_| e.offered.ours && e.offered.good > 0)?;
    // A request keeps about one CPU busy at most, so fewer requests than CPUs leave some to spare, whatever others do with them.
    let fewer_than_cpus = e.offered.connections < e.cpu.server_cpus
        && e.cpu.server_cores.is_none_or(|cores| cores <= e.offered.connections * ONE_CORE.end());
    // One CPU's worth of work from several requests is a server that cannot use two.
    let single = e.in_work() > 1.0 && e.cpu.server_cores.is_some_and(|cores| SINGLE_CORE.contains(&cores));
    let idle_generator = e.offered.generator_share < GENERATOR_FULL;
    // Who waits for a thread, at the door or behind the server was asked for.
    let asks_no_more = thread_wait(e).is_none() && !waits_at_the_door(e) && (!e.behind || nobody_waits_behind(e));
    (idle_generator && is_calm(e) && !single && asks_no_more && (used < CPU_ROOM || fewer_than_cpus))
        .then(|| worker_numbers(e).and(offered(e)).and(e.cpu.of_server()).with(Quantity::CpuUsed, used))
}

/// Whether a good part of the requests wait at the server's door, for longer than it takes a server to come to it.
fn waits_at_the_door(e: &Evidence) -> bool {
    let many = |queue: f64| queue >= 1.0 && queue >= NO_THREAD * e.offered.concurrency;
    e.offered.connections > 1.0
        && e.workers.queue.is_some_and(|queue| many(queue) && queue / e.offered.goodput >= THREAD_WAIT)
}

/// Whether requests take no longer than a page takes alone, so that none waits for another in servers that nobody looks into; of one request
/// at a time that is so.
fn nobody_waits_behind(e: &Evidence) -> bool {
    let in_flight = e.offered.concurrency;
    let waits_for = |alone: f64| in_flight / e.offered.goodput - alone;
    let is_served = |alone: f64| at_once(e, alone) > AT_ONCE_PART * in_flight || waits_for(alone) < THREAD_WAIT;
    in_flight <= 1.0 || e.offered.alone.is_some_and(is_served)
}

pub(super) fn generator_saturated(e: &Evidence) -> Option<Numbers> {
    (e.offered.generator_share >= GENERATOR_FULL)
        .then(|| offered(e).with(Quantity::GeneratorShare, e.offered.generator_share).and(e.cpu.of_server()))
}

pub(super) fn monitor_unfit(e: &Evidence) -> Option<Numbers> {
    let blind = e.observed.readings < 2;
    let gaps = e.observed.unwatched > UNWATCHED || e.observed.gap_share > LONGEST_GAP;
    (blind || gaps || e.observed.faults > 0).then(|| e.observed.numbers())
}

/// Requests that never left this machine.
pub(super) fn out_of_ports(e: &Evidence) -> Option<Numbers> {
    let ended = e.offered.good + e.offered.failed;
    let many = e.offered.local_failures > 0 && e.offered.local_failures as f64 >= OUT_OF_PORTS * ended as f64;
    many.then(|| failures(e).with(Quantity::LocalFailures, e.offered.local_failures as f64))
}

/// What is lost on the way is sent again; what finds no room waits. Where a CPU is busy, of the server, of its client or of others, it may be
/// that one which is waited for, as the kernel needs one to deliver, and a connection that is caught while it sends says nothing.
pub(super) fn network(e: &Evidence) -> Option<Numbers> {
    let of_net = &e.network;
    let used = cpu_used(e).filter(|&used| used < CPU_FULL)?;
    if e.offered.generator_share >= GENERATOR_FULL {
        return None;
    }
    let often = of_net.retransmits_each_second.is_some_and(|rate| rate >= RETRANSMITS_EACH_SECOND);
    let lost = often && of_net.retransmits.is_some_and(|share| share >= RETRANSMITS);
    let full = of_net.link_use.is_some_and(|used| used >= LINK_FULL);
    let host_busy = e.cpu.host.is_some_and(|cpu| cpu.busy() >= NOBODY_BUSY);
    let nobody_busy = used < NOBODY_BUSY && !host_busy && e.offered.generator_share < NOBODY_BUSY;
    let in_flight = e.offered.concurrency.max(1.0);
    let waiting = nobody_busy && of_net.stuck.is_some_and(|stuck| stuck >= SENDING * in_flight);
    (lost || full || waiting).then(|| of_net.numbers().and(offered(e)).with(Quantity::CpuUsed, used))
}

/// Others asked, too.
pub(super) fn foreign_traffic(e: &Evidence) -> Option<Numbers> {
    let weight = e.foreign.filter(|&weight| weight >= FOREIGN)?;
    Some(offered(e).with(Quantity::ForeignWeight, weight).with(Quantity::Goodput, e.offered.goodput))
}
