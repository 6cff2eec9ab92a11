//! Each threshold from both sides, and each line of the table against those it silences.

use super::*;
use crate::rules::RULES;
use crate::{Evidence, Finding, thresholds as t};
use model::reading::Column;

fn causes(scene: &Scene) -> Vec<Cause> {
    let (head, trial) = scene.build();
    diagnose(&head, &head.plan.cells[0], &trial).causes().collect()
}

/// `cause` is found just above the threshold and not just below it.
fn check_from(cause: Cause, threshold: f64, scene: impl Fn(f64) -> Scene) {
    let [below, above] = [0.98, 1.02].map(|part| causes(&scene(part * threshold)));
    assert!(!below.contains(&cause), "below {threshold}: {below:?}");
    assert!(above.contains(&cause), "above {threshold}: {above:?}");
}

/// `cause` is found just below the threshold and not just above it.
fn check_until(cause: Cause, threshold: f64, scene: impl Fn(f64) -> Scene) {
    let [below, above] = [0.98, 1.02].map(|part| causes(&scene(part * threshold)));
    assert!(below.contains(&cause), "below {threshold}: {below:?}");
    assert!(!above.contains(&cause), "above {threshold}: {above:?}");
}

/// Shares of the two CPUs' time, in ticks per second.
fn cpus(user: f64, system: f64, iowait: f64) -> [(model::reading::Column, f64); 4] {
    let idle = 200.0 * (1.0 - user - system - iowait);
    [(CpuUser, 200.0 * user), (CpuSystem, 200.0 * system), (CpuIowait, 200.0 * iowait), (CpuIdle, idle)]
}

/// More is asked for than there are workers; the CPUs' use is `used`, the server's own part most of it.
fn queueing(used: f64) -> Scene {
    let scene = calm().load(40, 500.0).limit(4).levels(&[(AcceptQueue, 36)]);
    scene.counters(&cpus(used, 0.0, 0.0)).counters(&[(GroupCpuNs, used * 1.9e9)])
}

/// Refaults of so many bytes per good answer.
fn refaults(scene: Scene, per_second: f64, bytes: f64) -> Scene {
    scene.counters(&[(GroupRefaultAnon, per_second * bytes / 4096.0)])
}

#[test]
fn thresholds_of_memory() {
    check_from(Cause::MemoryThrash, t::THRASH_FULL, |x| {
        calm().counters(&[(GroupPsiMemSome, x * 1e6), (GroupPsiMemFull, x * 1e6)])
    });
    check_from(Cause::MemoryThrash, t::THRASH_SOME, |x| {
        refaults(calm(), 500.0, 4e6).counters(&[(GroupPsiMemSome, x * 1e6)])
    });
    check_from(Cause::MemoryThrash, t::THRASH_SOME, |x| {
        refaults(calm(), 500.0, 4e6).counters(&[(GroupPsiIoSome, x * 1e6)])
    });
    check_from(Cause::MemoryThrash, t::REFAULT_PER_REQUEST, |x| {
        refaults(calm(), 500.0, x).counters(&[(GroupPsiMemSome, 0.2e6)])
    });
    // Swap's part of what is read back, and files': 10 000 pages a second.
    let reading_back = |part: f64| {
        let refaults = [(GroupRefaultAnon, part * 1e4), (GroupRefaultFile, (1.0 - part) * 1e4)];
        calm().counters(&[(GroupPsiMemSome, 0.2e6), (GroupPsiMemFull, 0.2e6)]).counters(&refaults)
    };
    check_from(Cause::MemoryThrash, t::READ_BACK_PART, reading_back);
    check_until(Cause::FileCacheThrash, 1.0 - t::READ_BACK_PART, reading_back);
    check_from(Cause::FileCacheThrash, t::THRASH_FULL, |x| {
        calm().counters(&[(GroupPsiMemFull, x * 1e6), (GroupPsiMemSome, x * 1e6), (GroupRefaultFile, 1e4)])
    });
    let old_kernel = |faults: f64, user: f64| {
        let swapping = [(SwapIn, 100.0), (SwapOut, 900.0), (MajorFaults, faults)];
        Scene::new(2).load(10, 5.0).counters(&cpus(user, 0.3, 0.0)).counters(&swapping)
    };
    check_from(Cause::MemoryThrash, t::MAJOR_FAULTS, |x| old_kernel(x, 0.1));
    check_until(Cause::MemoryThrash, t::THRASH_USER, |x| old_kernel(100.0, x));
    check_from(Cause::WorkerLimitRight, t::MEMORY_QUIET, |x| {
        queueing(0.3).counters(&[(GroupPsiMemSome, x * 1e6), (GroupPsiMemFull, x * 1e6)])
    });
}

#[test]
fn thresholds_of_the_disk() {
    let waiting =
        |io: f64, memory: f64| calm().counters(&[(GroupPsiIoFull, io * 1e6), (GroupPsiMemFull, memory * 1e6)]);
    check_from(Cause::DiskBound, t::DISK_FULL, |x| waiting(x, 0.0));
    check_until(Cause::DiskBound, t::DISK_OVER_MEMORY, |x| waiting(0.2, x * 0.2));
    let old_kernel = |busy: f64, swap_share: f64| {
        let traffic = [(DiskReadSectors, 80_000.0), (DiskWriteSectors, 0.0), (SwapIn, swap_share * 10_000.0)];
        let disk = [(DiskIoMs, busy * 1e3), (DiskWeightedMs, 3000.0), (SwapOut, 0.0)];
        Scene::new(2).load(10, 5.0).counters(&cpus(0.1, 0.1, 0.0)).counters(&traffic).counters(&disk)
    };
    check_from(Cause::DiskBound, t::DISK_BUSY, |x| old_kernel(x, 0.0));
    check_until(Cause::DiskBound, t::DISK_SWAP_SHARE, |x| old_kernel(0.9, x));
}

/// A few connections turned away at the start of a load are not what it is about.
#[test]
fn thresholds_of_the_door() {
    let turned_away = |load: (u32, f64), each_second: f64| {
        calm()
            .load(load.0, load.1)
            .limit(2000)
            .levels(&[(AcceptLimit, 8)])
            .counters(&[(TcpListenOverflows, each_second)])
    };
    // Of the requests, and of their time.
    check_from(Cause::AcceptQueueOverflow, t::OVERFLOWS, |x| turned_away((1000, 500.0), x * 500.0));
    check_from(Cause::AcceptQueueOverflow, t::OVERFLOWS, |x| turned_away((500, 20_000.0), x * 500.0 / t::RETRY));
}

#[test]
fn a_generator_that_is_full_needs_no_more_workers() {
    check_until(Cause::WorkerLimitTooLow, t::GENERATOR_FULL, |x| queueing(0.3).generator(x));
    assert_eq!(causes(&queueing(0.3).generator(0.95)), [Cause::GeneratorSaturated]);
}

#[test]
fn thresholds_of_the_cpu() {
    check_from(Cause::CpuBound, t::CPU_FULL, queueing);
    check_from(Cause::WorkerLimitRight, t::CPU_FULL, queueing);
    check_from(Cause::WorkerLimitReached, t::CPU_ROOM, queueing);
    check_until(Cause::WorkerLimitTooLow, t::CPU_ROOM, queueing);
    check_until(Cause::OfferedConcurrency, t::IOWAIT_QUIET, |x| calm().counters(&cpus(0.1, 0.1, x)));
    let own = |x: f64| calm().load(10, 20.0).counters(&cpus(0.9, 0.08, 0.0)).counters(&[(GroupCpuNs, x * 2e9)]);
    check_from(Cause::CpuBound, t::OWN_PART, own);
    // The reader of the number is one of them.
    check_from(Cause::CpuBound, 200.0 * t::RUN_QUEUE, |x| {
        let busy = [(CpuUser, 8000.0), (CpuSystem, 8000.0), (CpuIdle, 4000.0), (TreeCpuTicks, 16_000.0)];
        Scene::new(200).load(1000, 20.0).counters(&busy).levels(&[(Column::Runnable, x.round() as u64 + 1)])
    });
    let cores = |x: f64| calm().load(1, 20.0).counters(&[(GroupCpuNs, x * 1e9)]);
    check_from(Cause::OneCoreBusy, *t::ONE_CORE.start(), cores);
    check_until(Cause::OneCoreBusy, *t::ONE_CORE.end(), cores);
    let shared = |x: f64| calm().load(20, 20.0).counters(&[(GroupCpuNs, x * 1e9)]);
    check_until(Cause::OfferedConcurrency, *t::SINGLE_CORE.start(), shared);
    check_from(Cause::OfferedConcurrency, *t::SINGLE_CORE.end(), shared);
}

#[test]
fn thresholds_of_threads() {
    let lying = |connections: u32, good: f64, unread: f64| {
        calm().load(connections, good).limit(2000).levels(&[(TcpUnread, unread.round() as u64)])
    };
    check_from(Cause::TooFewThreads, t::NO_THREAD, |x| lying(1000, 5000.0, x * 1000.0));
    check_from(Cause::TooFewThreads, t::THREAD_WAIT, |x| lying(50, 40.0 / x, 40.0));
    check_until(Cause::TooFewThreads, t::CPU_WAITED_FOR, |x| {
        lying(50, 500.0, 40.0).counters(&[(GroupPsiCpuSome, x * 1e6)])
    });
    check_until(Cause::TooFewThreads, t::CPU_ROOM, |x| {
        lying(50, 500.0, 40.0).counters(&cpus(x, 0.0, 0.0)).counters(&[(GroupCpuNs, x * 1.9e9)])
    });
    check_until(Cause::TooFewThreads, t::IOWAIT_QUIET, |x| lying(50, 500.0, 40.0).counters(&cpus(0.1, 0.1, x)));
}

#[test]
fn thresholds_of_servers_behind_and_of_processes_that_end() {
    check_from(Cause::HeldInFront, t::THREAD_WAIT, |x| passing_on(0, 8).load(24, 16.0 / x));
    check_until(Cause::HeldInFront, t::NOBODY_BUSY, |x| passing_on(0, 8).generator(x));
    check_until(Cause::HeldInFront, t::NOBODY_BUSY, |x| passing_on(0, 8).counters(&[(GroupCpuNs, x * 1e9)]));
    let held = |connections: u32, accepted: u64| {
        causes(&passing_on(0, accepted).load(connections, 140.0)).contains(&Cause::HeldInFront)
    };
    // Half of 24, and two at least.
    assert!(held(24, 12) && !held(24, 13));
    assert!(held(3, 1) && !held(2, 1));
    let ending = |connects: f64, least: u64| {
        let levels = [(AcceptQueue, 26), (TreeWorkers, 6)];
        calm().load(50, 6000.0).ending(1000, connects).levels(&levels).dips(&[(TreeWorkers, least)])
    };
    check_from(Cause::ProcessesEnding, t::ENDING, |x| ending(6000.0 * x, 0));
    check_until(Cause::ProcessesEnding, t::CPU_FULL, |x| {
        ending(6000.0, 0).counters(&cpus(x, 0.0, 0.0)).counters(&[(GroupCpuNs, x * 1.9e9)])
    });
    let is_found = |scene: &Scene| causes(scene).contains(&Cause::ProcessesEnding);
    assert!(is_found(&ending(6000.0, 3)) && !is_found(&ending(6000.0, 4)));
    // Connections of a load beside it count.
    assert!(is_found(&ending(1000.0, 0).beside(8)) && !is_found(&ending(1000.0, 0)));
}

#[test]
fn other_thresholds() {
    check_from(Cause::FailuresDominate, t::FAILURES, |x| calm().load(4, 500.0 * (1.0 - x)).failed(500.0 * x));
    check_from(Cause::GeneratorSaturated, t::GENERATOR_FULL, |x| calm().generator(x));
    // 10 requests in work beside the one that holds the lock: five waiting are half, four are not.
    let locked = |waiters: u64| causes(&calm().load(11, 30.0).levels(&[(TreeLockWaiters, waiters)]));
    assert!(locked(5).contains(&Cause::LockSerialised) && !locked(4).contains(&Cause::LockSerialised));
    // 40 s of load, a reading each second. A gap of 4 s is a tenth of it, 5 s are more; two gaps of 4 s are a fifth, three are more.
    let unfit = |missing: &[u64]| {
        let (head, mut trial) = calm().seconds(40).build();
        trial.readings.rows.retain(|row| !missing.contains(&(row.at_ns / model::SECOND)));
        diagnose(&head, &head.plan.cells[0], &trial).causes().any(|cause| cause == Cause::MonitorUnfit)
    };
    assert!(unfit(&[10, 11, 12, 13]) && !unfit(&[10, 11, 12]));
    assert!(unfit(&[10, 11, 12, 20, 21, 22, 30, 31, 32]) && !unfit(&[10, 11, 12, 20, 21, 22]));
}

/// Half of a second's periods ended early.
const HELD_BACK: [(Column, f64); 3] =
    [(Column::GroupPeriods, 10.0), (Column::GroupThrottledPeriods, 5.0), (Column::GroupThrottledNs, 0.4e9)];

/// One segment of twenty is sent again.
const LOSING: [(Column, f64); 2] = [(Column::TcpOutSegments, 1000.0), (Column::TcpRetransmits, 50.0)];

/// Ten requests in work of a page that takes 20 ms alone, 50 good answers a second, idle CPUs: one at a time.
fn serialised() -> Scene {
    calm().load(10, 50.0).fastest(20_000)
}

/// Three of the sixteen workers that there may be, all busy, and a queue at the door.
fn begun() -> Scene {
    calm().load(12, 40.0).limit(16).kept(3, 0).levels(&[(AcceptQueue, 9)])
}

/// So many connections have a request that nobody has read.
fn unread(scene: Scene, connections: u64) -> Scene {
    scene.levels(&[(TcpUnread, connections)])
}

/// Pages are read back from swap, and nobody waits long for it.
fn refaulting(scene: Scene, per_second: f64) -> Scene {
    refaults(scene, per_second, 4e6).counters(&[(GroupPsiMemSome, 0.2e6), (GroupPsiMemFull, 0.0)])
}

/// Four requests on eight CPUs, two workers; somebody else fills the host as far as `used`.
fn eight(used: f64) -> Scene {
    Scene::new(8).load(4, 20.0).limit(2).levels(&[(AcceptQueue, 2)]).counters(&[
        (CpuUser, 800.0 * used),
        (CpuIdle, 800.0 * (1.0 - used)),
        (TreeCpuTicks, 240.0),
    ])
}

/// More of them: few requests, or none, wait at the door.
fn overlaps_with_few_at_the_door() -> Vec<Scene> {
    let (overflows, few_wait) = ([(TcpListenOverflows, 50.0)], [(AcceptQueue, 1)]);
    let all_busy = [(AcceptQueue, 0), (TreeWorkers, 2), (TreeBusyWorkers, 2)];
    vec![
        refaulting(calm(), 500.0),
        calm().load(1000, 500.0).limit(2000).levels(&[(AcceptQueue, 3), (AcceptLimit, 511)]).counters(&overflows),
        queueing(0.3).load(40, 200.0).held(4).levels(&few_wait),
        queueing(0.3).load(40, 200.0).levels(&few_wait),
        eight(0.8).levels(&all_busy),
        eight(0.95).levels(&all_busy),
        begun().levels(&few_wait),
    ]
}

/// The same of a server that passes eight requests on at once.
fn overlaps_of_held_in_front() -> Vec<Scene> {
    let busy = passing_on(0, 8).limit(20).levels(&[(TreeWorkers, 20), (TreeBusyWorkers, 20)]);
    vec![
        passing_on(0, 8),
        busy.clone(),
        busy.clone().counters(&cpus(0.8, 0.0, 0.0)),
        busy.counters(&[(GroupPsiMemSome, 0.02e6), (GroupPsiMemFull, 0.02e6)]),
        passing_on(0, 8).limit(64).kept(3, 0).levels(&[(AcceptQueue, 1)]),
        unread(passing_on(0, 4), 5),
        passing_on(0, 1).load(4, 500.0).fastest(3500),
        passing_on(0, 8).counters(&[(GroupPsiIoSome, 0.9e6), (GroupPsiIoFull, 0.6e6)]),
        passing_on(0, 8).counters(&LOSING),
        passing_on(0, 8).levels(&[(TreeLockWaiters, 20)]),
        passing_on(0, 8).counters(&HELD_BACK),
    ]
}

/// The same of processes that end faster than they are begun.
fn overlaps_of_processes_ending() -> Vec<Scene> {
    let ending = calm().load(50, 6000.0).limit(150).ending(1000, 6000.0).levels(&[(AcceptQueue, 26), (TreeWorkers, 6)]);
    let ending = ending.dips(&[(TreeWorkers, 2)]);
    let many = |used: f64| {
        let busy = [(GroupCpuNs, used * 1.9e9)];
        ending.clone().load(200, 6000.0).counters(&cpus(used, 0.0, 0.0)).counters(&busy)
    };
    let waited_for = [(GroupPsiCpuSome, 0.5e6)];
    vec![
        ending.clone(),
        many(0.3),
        many(0.8),
        many(0.8).counters(&waited_for),
        many(0.8).load(50, 6000.0).counters(&waited_for),
        ending.clone().kept(3, 0),
        unread(ending.clone().load(50, 500.0), 20),
        ending.clone().counters(&[(GroupCpuNs, 1.0e9)]),
    ]
}

/// Scenes in which a line and one it silences are both true.
fn overlaps() -> Vec<Scene> {
    let thrash = [(GroupPsiMemSome, 0.5e6), (GroupPsiMemFull, 0.3e6)];
    let rereads = [(GroupPsiMemSome, 0.5e6), (GroupPsiMemFull, 0.3e6), (GroupRefaultFile, 20_000.0)];
    let host_rereads = [(PsiMemSome, 0.5e6), (PsiMemFull, 0.3e6), (RefaultAnon, 0.0), (RefaultFile, 20_000.0)];
    let slow_disk = [(GroupPsiIoSome, 0.9e6), (GroupPsiIoFull, 0.6e6)];
    let locked = [(TreeLockWaiters, 9)];
    let one_core = [(GroupCpuNs, 1.0e9)];
    let mut scenes = vec![
        calm().counters(&thrash),
        calm().counters(&[(GroupPsiMemFull, 0.12e6)]).counters(&slow_disk),
        calm().counters(&thrash).counters(&one_core),
        calm().load(1, 20.0).counters(&thrash).counters(&one_core),
        refaulting(queueing(0.3), 500.0),
        refaulting(queueing(0.8), 500.0),
        refaulting(queueing(0.95), 500.0),
        calm().load(1000, 500.0).limit(2000).levels(&[(AcceptQueue, 512), (AcceptLimit, 511)]),
        queueing(0.3).counters(&slow_disk),
        calm().counters(&slow_disk),
        queueing(0.3).levels(&locked),
        queueing(0.8).levels(&locked),
        queueing(0.95).levels(&locked),
        calm().load(10, 20.0).levels(&locked),
        queueing(0.3),
        eight(0.8),
        eight(0.95),
        queueing(0.3).counters(&[(GroupCpuNs, 1.0e9)]),
        calm().failed(400.0),
        calm().load(1, 20.0).counters(&cpus(0.9, 0.08, 0.0)).counters(&one_core),
        calm().load(10, 20.0).counters(&cpus(0.9, 0.08, 0.0)).counters(&one_core),
        eight(0.3).counters(&host_rereads),
        eight(0.8).counters(&host_rereads),
        queueing(0.95).counters(&rereads),
        calm().counters(&one_core).counters(&rereads),
        calm(),
        queueing(0.3).held(4),
        queueing(0.8).held(4),
        queueing(0.95).held(4),
        queueing(0.3).counters(&[(GroupCpuNs, 1.0e9)]).held(4),
        calm().load(10, 20.0).counters(&thrash).before(&[(GroupAnon, 12 << 20)]).levels(&[(GroupAnon, 195 << 20)]),
        calm().counters(&rereads).counters(&[(SwapOut, 3000.0)]),
        calm().counters(&thrash).counters(&[(SwapOut, 3000.0), (GroupRefaultAnon, 3000.0)]),
        queueing(0.95).counters(&HELD_BACK),
        calm().counters(&HELD_BACK),
        queueing(0.3).load(40, 200.0).counters(&HELD_BACK).limit(256).levels(&[(AcceptQueue, 0)]).counters(&one_core),
        calm().load(1000, 500.0).limit(2000).levels(&[(AcceptQueue, 512), (AcceptLimit, 511)]).counters(&LOSING),
        serialised().counters(&slow_disk),
        serialised().levels(&locked),
        serialised().counters(&LOSING),
        serialised(),
        serialised().limit(8).levels(&[(AcceptQueue, 2)]),
        serialised()
            .limit(8)
            .levels(&[(AcceptQueue, 2)])
            .counters(&[(GroupPsiMemSome, 0.02e6), (GroupPsiMemFull, 0.02e6)]),
        calm().counters(&LOSING),
        calm().unsent(50.0),
        begun(),
        begun().counters(&one_core),
        begun().counters(&slow_disk),
        begun().levels(&locked),
        begun().fastest(20_000),
        unread(calm().load(50, 500.0), 40),
        refaulting(unread(calm().load(50, 500.0), 40), 500.0),
        unread(calm().load(50, 500.0), 40).counters(&slow_disk),
        unread(calm().load(50, 500.0), 40).counters(&HELD_BACK),
        unread(calm().load(50, 500.0), 40).levels(&[(TreeLockWaiters, 30)]),
        unread(calm().load(50, 50.0).fastest(20_000), 40),
        unread(calm().load(60, 50.0).limit(20).kept(2, 18).levels(&[(AcceptQueue, 7)]), 30),
        unread(queueing(0.3), 20),
        unread(begun(), 3),
    ];
    scenes.extend(overlaps_with_few_at_the_door());
    scenes
}

/// What is found in each scene, a line each.
fn remains(scenes: Vec<Scene>) -> String {
    let line = |scene: Scene| {
        let (head, trial) = scene.build();
        shown(&diagnose(&head, &head.plan.cells[0], &trial)) + "\n"
    };
    scenes.into_iter().map(line).collect()
}

#[test]
fn what_remains_of_an_overlap() {
    expect![[r#"
        memory-thrash |  | not-cpu-waiting
        memory-thrash |  | not-cpu-waiting
        memory-thrash |  | not-cpu-waiting
        memory-thrash |  | not-cpu-waiting
        memory-thrash |  | not-cpu-waiting
        memory-thrash |  | 
        memory-thrash |  | 
        accept-queue-overflow |  | 
        disk-bound |  | 
        disk-bound |  | 
        lock-serialised |  | 
        lock-serialised |  | 
        lock-serialised | cpu-bound | 
        lock-serialised |  | 
        worker-limit-too-low |  | 
        worker-limit-reached |  | 
        worker-limit-right | cpu-bound | 
        worker-limit-too-low |  | 
        failures-dominate |  | 
        offered-concurrency -> one-core-busy | one-core-busy | 
        cpu-bound |  | 
        file-cache-thrash |  | 
        file-cache-thrash |  | 
        file-cache-thrash |  | 
        file-cache-thrash |  | 
        offered-concurrency |  | 
        keep-alive-held |  | 
        keep-alive-held |  | 
        keep-alive-held | cpu-bound | 
        keep-alive-held |  | 
        memory-thrash | worker-limit-too-high -> memory-thrash | not-cpu-waiting
        file-cache-thrash |  | 
        memory-thrash |  | not-cpu-waiting
        throttled | worker-limit-right | 
        throttled |  | 
        throttled |  | 
        accept-queue-overflow |  | 
        disk-bound |  | 
        lock-serialised |  | 
        network |  | 
        backend-serialised |  | 
        backend-serialised |  | 
        backend-serialised |  | 
        network |  | 
        out-of-ports |  | 
        workers-starting |  | 
        workers-starting |  | 
        disk-bound |  | 
        lock-serialised |  | 
        backend-serialised |  | 
        too-few-threads |  | 
        memory-thrash |  | not-cpu-waiting
        disk-bound |  | 
        throttled |  | 
        lock-serialised |  | 
        backend-serialised |  | 
        keep-alive-held |  | 
        worker-limit-too-low |  | 
        workers-starting |  | 
        memory-thrash |  | not-cpu-waiting
        accept-queue-overflow |  | 
        keep-alive-held |  | 
        worker-limit-too-low |  | 
        worker-limit-reached |  | 
        worker-limit-right | cpu-bound | 
        workers-starting |  | 
    "#]]
    .assert_eq(&remains(overlaps()));
}

#[test]
fn what_remains_beside_servers_in_front_and_processes_that_end() {
    expect![[r#"
        held-in-front |  | 
        held-in-front |  | 
        held-in-front |  | 
        held-in-front |  | 
        held-in-front |  | 
        held-in-front |  | 
        held-in-front |  | 
        disk-bound |  | 
        network |  | 
        lock-serialised |  | 
        throttled |  | 
        processes-ending |  | 
        processes-ending |  | 
        processes-ending |  | 
        processes-ending |  | 
        processes-ending |  | 
        processes-ending |  | 
        processes-ending |  | 
        processes-ending |  | 
    "#]]
    .assert_eq(&remains([overlaps_of_held_in_front(), overlaps_of_processes_ending()].concat()));
}

#[test]
fn what_is_silenced_was_true() {
    let disturbed = |scene: Scene| scene.outcome(Outcome::EndedEarly(Stop::HostSwapIn));
    let more = [overlaps_of_held_in_front(), overlaps_of_processes_ending()].concat();
    let calm = [overlaps(), more].concat();
    let disturbed = calm.iter().cloned().map(disturbed).collect();
    let scenes: Vec<(Evidence, Vec<Cause>)> = [calm, disturbed]
        .concat()
        .iter()
        .map(|scene| {
            let (head, trial) = scene.build();
            let load = trial.load.as_ref().unwrap();
            (Evidence::of(&head, &head.plan.cells[0], &trial, load), causes(scene))
        })
        .collect();
    let mut missing = Vec::new();
    for rule in RULES {
        for silenced in rule.excludes {
            let line = RULES.iter().find(|line| line.cause == *silenced).unwrap();
            // The line alone must silence it: nothing else that was found does.
            let alone = |found: &[Cause]| {
                let others = RULES.iter().filter(|other| other.cause != rule.cause && found.contains(&other.cause));
                !others.into_iter().any(|other| other.excludes.contains(silenced))
            };
            let shown = scenes.iter().any(|(evidence, found)| {
                found.contains(&rule.cause)
                    && alone(found)
                    && (line.when)(evidence).is_some()
                    && !found.contains(silenced)
            });
            if !shown {
                missing.push((rule.cause, *silenced));
            }
        }
    }
    assert_eq!(missing, [], "no scene shows the first silencing the second");
}

#[test]
fn effects_are_named() {
    let links = |scene: Scene| {
        let (head, trial) = scene.build();
        let diagnosis = diagnose(&head, &head.plan.cells[0], &trial);
        let link = |finding: &Finding| Some((finding.cause, finding.leads_to?));
        std::iter::once(&diagnosis.primary).chain(&diagnosis.contributing).filter_map(link).collect::<Vec<_>>()
    };
    let thrash = calm().failed(400.0).counters(&[(GroupPsiMemFull, 0.3e6)]);
    assert_eq!(links(thrash.clone()), [(Cause::MemoryThrash, Cause::FailuresDominate)]);
    let flooded = |scene: Scene| scene.load(1000, 100.0).levels(&[(AcceptQueue, 512), (AcceptLimit, 511)]);
    let both =
        [(Cause::MemoryThrash, Cause::AcceptQueueOverflow), (Cause::AcceptQueueOverflow, Cause::FailuresDominate)];
    assert_eq!(links(flooded(thrash)), both);
    let rereading = calm().counters(&[(GroupPsiMemFull, 0.12e6), (GroupRefaultFile, 20_000.0)]);
    let slow = rereading.counters(&[(GroupPsiIoSome, 0.9e6), (GroupPsiIoFull, 0.6e6)]);
    assert_eq!(links(slow), [(Cause::FileCacheThrash, Cause::DiskBound)]);
}
