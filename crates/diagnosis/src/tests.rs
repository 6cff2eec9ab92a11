//! Trials in, causes out. `scene` builds a trial whose readings are steady; `dstat` replays the first document's own rows; `lab` has
//! the rows that were measured with a private Apache; the negative cases are here.

mod check;
mod dstat;
mod edges;
mod lab;
mod scene;
mod vectors;

use crate::{Cause, Confidence, Diagnosis, Quantity, cleared, diagnose, doubts, message_ids, over_trials, rules};
use expect_test::{Expect, expect};
use model::load::Generator;
use model::reading::Column::{
    AcceptLimit, AcceptQueue, BehindAccepted, BehindQueue, CpuIdle, CpuIowait, CpuSystem, CpuUser, DiskIoMs,
    DiskReadSectors, DiskWeightedMs, DiskWriteSectors, GroupAnon, GroupCpuNs, GroupOomKills, GroupPsiCpuSome,
    GroupPsiIoFull, GroupPsiIoSome, GroupPsiMemFull, GroupPsiMemSome, GroupRefaultAnon, GroupRefaultFile, GroupSwap,
    GroupUsage, ListenQueue, Load1, MajorFaults, MemAvailable, MemTotal, OomKills, PsiIoFull, PsiIoSome, PsiMemFull,
    PsiMemSome, RefaultAnon, RefaultFile, SamplerFaults, SwapFree, SwapIn, SwapOut, SwapTotal, TcpListenOverflows,
    TcpSending, TcpUnread, TreeBehindCpuNs, TreeBusyWorkers, TreeCpuNs, TreeCpuTicks, TreeDiskSleep, TreeLockWaiters,
    TreeProcesses, TreeRssLargest, TreeWorkers,
};
use model::trial::{Outcome, Share, Stop};
use model::workers::{Crew, Held, WorkersHeld};
use scene::Scene;
use std::collections::BTreeSet;

/// Primary cause; contributing ones; reasons that clear a suspect. An arrow says what a finding leads to.
fn shown(diagnosis: &Diagnosis) -> String {
    let cause = |id: &str| id.trim_start_matches("cause-").to_string();
    let finding = |finding: &crate::Finding| {
        let effect = finding.leads_to.map(|effect| format!(" -> {}", cause(effect.id())));
        format!("{}{}", cause(finding.id), effect.unwrap_or_default())
    };
    let list = |findings: &[crate::Finding]| findings.iter().map(finding).collect::<Vec<_>>().join(", ");
    let parts = [finding(&diagnosis.primary), list(&diagnosis.contributing), list(&diagnosis.ruled_out)];
    parts.join(" | ")
}

/// The one door.
fn check(scene: &Scene, expected: &Expect) -> Diagnosis {
    let (head, trial) = scene.build();
    let diagnosis = diagnose(&head, &head.plan.cells[0], &trial);
    expected.assert_eq(&shown(&diagnosis));
    thresholds_are_told(&trial, &diagnosis);
    diagnosis
}

/// Whoever rests on a threshold says which one was crossed; only a guard that ended the trial is a threshold of its own.
fn thresholds_are_told(trial: &model::trial::Trial, diagnosis: &Diagnosis) {
    let guarded = matches!(trial.outcome, Outcome::EndedEarly(_));
    for finding in std::iter::once(&diagnosis.primary).chain(&diagnosis.contributing) {
        let Some(rule) = rules::of(finding.cause).filter(|rule| !rule.limits.is_empty() && !guarded) else { continue };
        // Memory alone can make a limit right, a queue that is full does not say how often it was, fewer requests than CPUs
        // cannot fill them whoever else does, and connections that hold what they could not send are half of those there are.
        let other = matches!(
            rule.cause,
            Cause::WorkerLimitRight
                | Cause::AcceptQueueOverflow
                | Cause::HostDisturbed
                | Cause::OfferedConcurrency
                | Cause::Network
        );
        let told = finding.numbers.values().any(|(quantity, _)| finding.limit(quantity).is_some());
        assert!(told || other, "{:?} names no threshold: {:?}", rule.cause, finding.numbers);
    }
}

// ---- the embedded server --------------------------------------------------------------------------------------------

/// The newcomer's plan: 4 ms of sleep per request, server and generator on a CPU each, no group.
fn sleeping(workers: u64, per_second: f64) -> Scene {
    Scene::new(2)
        .pinned(1)
        .load(8, per_second)
        .limit(workers)
        .counters(&[(CpuUser, 12.0), (CpuSystem, 20.0), (CpuIdle, 168.0), (TreeCpuTicks, 10.0)])
        .levels(&[(TreeProcesses, 1), (TreeWorkers, 0), (TreeBusyWorkers, 0), (AcceptLimit, 1024)])
}

#[test]
fn a_pool_of_php_that_is_too_small_is_the_worker_limit() {
    let apache = sleeping(150, 480.0).levels(&[(AcceptQueue, 0)]);
    check(&apache.clone().pool(2, 2, 6, 0), &expect!["worker-limit-too-low |  | "]);
    let numbers = check(&apache.clone().pool(2, 1, 3, 4), &expect!["worker-limit-too-low |  | "]).primary.numbers;
    assert_eq!((numbers.get(Quantity::PoolLimit), numbers.get(Quantity::PoolLimitReached)), (Some(2.0), Some(4.0)));
    // One with processes to spare is not.
    check(&apache.pool(20, 8, 0, 0), &expect!["offered-concurrency |  | "]);
}

#[test]
fn a_full_pool_outside_of_the_servers_limits_is_judged_by_what_it_uses() {
    let group = [(GroupCpuNs, 0.1e9)];
    let scene = |behind: f64| {
        let host = [(CpuUser, 50.0 + 100.0 * behind), (CpuSystem, 10.0), (CpuIdle, 140.0 - 100.0 * behind)];
        let tree = [(TreeCpuNs, (0.1 + behind) * 1e9), (TreeBehindCpuNs, behind * 1e9)];
        let pool = sleeping(150, 480.0).levels(&[(AcceptQueue, 0)]).pool(4, 4, 12, 0);
        pool.counters(&host).counters(&tree)
    };
    // Half of the CPUs, where the server itself has one of two.
    for scene in [scene(0.8), scene(0.8).grouped(300).counters(&group)] {
        let cpu = check(&scene, &expect!["worker-limit-too-low |  | "]).primary.numbers;
        assert_eq!(cpu.get(Quantity::CpuUsed), Some(0.45));
    }
    for scene in [scene(1.3), scene(1.3).grouped(300).counters(&group)] {
        check(&scene, &expect!["worker-limit-right | cpu-bound | "]);
    }
}

#[test]
fn few_workers_that_sleep_are_too_few() {
    check(&sleeping(2, 480.0).levels(&[(AcceptQueue, 6)]), &expect!["worker-limit-too-low |  | "]);
    // Without a view of the accept queue, more requests in flight than workers is the same thing.
    check(&sleeping(2, 480.0), &expect!["worker-limit-too-low |  | "]);
}

#[test]
fn enough_workers_leave_it_to_the_client() {
    check(&sleeping(8, 1900.0).levels(&[(AcceptQueue, 0)]), &expect!["offered-concurrency |  | "]);
    // A connection caught on its way in is no queue as long as there is a worker for everyone.
    check(&sleeping(8, 1900.0).levels(&[(AcceptQueue, 1)]), &expect!["offered-concurrency |  | "]);
}

#[test]
fn who_waits_at_the_door_was_asked_for() {
    let many = |queue: u64| sleeping(512, 900.0).load(100, 900.0).levels(&[(AcceptQueue, queue)]);
    check(&many(19), &expect!["offered-concurrency |  | "]);
    check(&many(20), &expect!["unexplained |  | "]);
    // Caught on their way in: 2 of 10, each for 1 ms.
    let quick = sleeping(512, 2000.0).load(10, 2000.0).levels(&[(AcceptQueue, 2)]);
    check(&quick, &expect!["offered-concurrency |  | "]);
    check(&sleeping(512, 10.0).load(1, 10.0).levels(&[(AcceptQueue, 1)]), &expect!["offered-concurrency |  | "]);
}

/// What stands behind a server is not looked into: who waits there looks as if he was being served.
#[test]
fn a_server_with_others_behind_it() {
    let front = |connections: u32| sleeping(150, 80.0).load(connections, 80.0).levels(&[(AcceptQueue, 0)]);
    check(&front(24), &expect!["offered-concurrency |  | "]);
    check(&front(24).behind(), &expect!["unexplained |  | "]);
    check(&front(1).behind(), &expect!["offered-concurrency |  | "]);
    // A page that takes 200 ms alone, 16 of 24 at once; or 50 ms, 4 of 24.
    check(&front(24).behind().fastest(200_000), &expect!["offered-concurrency |  | "]);
    check(&front(24).behind().fastest(50_000), &expect!["backend-serialised |  | "]);
    // Quick ones, that wait for less than anybody minds: 0.3 ms beside 0.1.
    let quick = sleeping(150, 20_000.0).load(6, 20_000.0).levels(&[(AcceptQueue, 0)]).behind().fastest(100);
    check(&quick, &expect!["offered-concurrency |  | "]);
    // At the door of somebody else's server.
    check(&front(24).behind().levels(&[(ListenQueue, 20)]), &expect!["backend-serialised |  | "]);
    // Its only CPU is full, by what is done behind it, whatever room there is on the generator's.
    let own = [(CpuUser, 80.0), (CpuSystem, 30.0), (CpuIdle, 90.0)];
    let diagnosis = check(&front(24).behind().counters(&own), &expect!["cpu-bound |  | "]);
    assert!(diagnosis.primary.doubts.contains(&"unsure-others"), "others are not told from services");
    // A quota holds the server alone: 0.1 of half a CPU, and the database has the other half of one.
    let half = Scene::new(2).pinned(1).quota(0.5).load(1, 20.0).levels(&[(AcceptQueue, 0)]).behind();
    let used = [(CpuUser, 50.0), (CpuSystem, 0.0), (CpuIdle, 150.0), (GroupCpuNs, 0.1e9)];
    check(&half.clone().counters(&used), &expect!["offered-concurrency |  | "]);
    let all = [(CpuUser, 98.0), (CpuSystem, 0.0), (CpuIdle, 102.0), (GroupCpuNs, 0.49e9)];
    check(&half.load(8, 20.0).counters(&all), &expect!["cpu-bound |  | "]);
    let full = [(CpuUser, 160.0), (CpuSystem, 30.0), (CpuIdle, 10.0)];
    check(&front(24).behind().counters(&full), &expect!["cpu-bound |  | "]);
}

#[test]
fn a_short_window_is_enough() {
    let short = sleeping(2, 480.0).levels(&[(AcceptQueue, 6)]).seconds(1);
    let diagnosis = check(&short, &expect!["worker-limit-too-low |  | "]);
    assert_eq!(diagnosis.readings, 2);
    let numbers = &diagnosis.primary.numbers;
    assert_eq!(numbers.get(Quantity::AcceptQueue), Some(6.0));
    assert_eq!(numbers.get(Quantity::WorkerLimit), Some(2.0));
    assert!((numbers.get(Quantity::CpuUsed).unwrap() - 0.1).abs() < 1e-9);
}

#[test]
fn a_full_cpu_is_named_and_so_is_a_full_generator() {
    let busy = |server: f64, generator: f64| {
        Scene::new(2)
            .pinned(1)
            .load(64, 20_000.0)
            .limit(512)
            .generator(generator)
            .counters(&[
                (CpuUser, 100.0 * (server + generator) - 40.0),
                (CpuSystem, 40.0),
                (CpuIdle, 200.0 - 100.0 * (server + generator)),
                (TreeCpuTicks, 100.0 * server),
            ])
            .levels(&[(AcceptQueue, 0)])
    };
    check(&busy(0.97, 0.7), &expect!["cpu-bound |  | "]);
    check(&busy(0.97, 0.97), &expect!["cpu-bound | generator-saturated | "]);
    check(&busy(0.6, 0.98), &expect!["generator-saturated |  | "]);
    check(&busy(0.8, 0.6), &expect!["unexplained |  | "]);
    // One that never sleeps is always full.
    let (mut head, trial) = busy(0.6, 0.98).build();
    head.plan.loads[0].busy_poll = true;
    assert_eq!(shown(&diagnose(&head, &head.plan.cells[0], &trial)), "offered-concurrency |  | ");
}

/// Clients of all loads of a trial stand before the same workers.
#[test]
fn a_limit_is_met_by_all_loads_together() {
    let scene = |own: u32, beside: u32, queue: u64| {
        Scene::new(2)
            .load(own, 40.0)
            .beside(beside)
            .limit(4)
            .counters(&[(CpuUser, 20.0), (CpuSystem, 10.0), (CpuIdle, 170.0), (TreeCpuTicks, 20.0)])
            .levels(&[(AcceptQueue, queue), (TreeWorkers, 4), (TreeBusyWorkers, 4)])
    };
    check(&scene(10, 0, 3), &expect!["worker-limit-too-low |  | "]);
    check(&scene(3, 0, 0), &expect!["offered-concurrency |  | "]);
    check(&scene(3, 8, 3), &expect!["worker-limit-too-low |  | "]);
    let numbers = |scene: &Scene| {
        let (head, trial) = scene.build();
        let offered = crate::Evidence::of(&head, &head.plan.cells[0], &trial, trial.load.as_ref().unwrap()).offered;
        (offered.connections, offered.own_connections, offered.concurrency, offered.goodput)
    };
    assert_eq!(numbers(&scene(3, 8, 3)), (11.0, 3.0, 11.0, 40.0));
}

#[test]
fn one_busy_core_of_several() {
    let scene = Scene::new(8).load(50, 3000.0).counters(&[
        (CpuUser, 90.0),
        (CpuSystem, 30.0),
        (CpuIdle, 680.0),
        (TreeCpuTicks, 99.0),
    ]);
    check(&scene, &expect!["one-core-busy |  | "]);
    // By the clocks, which win over ticks, it keeps two busy.
    check(&scene.clone().counters(&[(TreeCpuNs, 2e9)]), &expect!["offered-concurrency |  | "]);
    check(&scene.clone().generator(0.95), &expect!["generator-saturated | one-core-busy | "]);
}

// ---- what must not fire ---------------------------------------------------------------------------------------------

/// A proxy with 24 pages in flight: so many wait at the doors behind it, and so many are accepted there.
fn passing_on(queue: u64, accepted: u64) -> Scene {
    let behind = [(BehindQueue, queue), (BehindAccepted, accepted)];
    let own = [(AcceptQueue, 0), (TcpUnread, 0), (TcpSending, 0)];
    calm().load(24, 140.0).behind().levels(&behind).levels(&own)
}

/// A server in a group with room to spare in every respect.
fn calm() -> Scene {
    Scene::new(2)
        .load(4, 500.0)
        .limit(256)
        .grouped(200)
        .counters(&[
            (CpuUser, 20.0),
            (CpuSystem, 20.0),
            (CpuIdle, 160.0),
            (GroupCpuNs, 0.3e9),
            (GroupPsiMemSome, 0.0),
            (GroupPsiMemFull, 0.0),
            (GroupPsiIoSome, 0.0),
            (GroupPsiIoFull, 0.0),
            (GroupRefaultAnon, 0.0),
        ])
        .levels(&[(AcceptQueue, 0), (GroupAnon, 60 << 20), (GroupUsage, 80 << 20), (GroupSwap, 0)])
}

#[test]
fn swap_in_use_without_traffic_is_harmless() {
    let scene = calm().levels(&[(GroupSwap, 500 << 20)]);
    check(&scene, &expect!["offered-concurrency |  | not-memory-swap-resident"]);
    // Cold pages leaving are no thrash either, and without a group the host's own swap is looked at.
    let ungrouped = Scene::new(2)
        .load(4, 500.0)
        .counters(&[(CpuUser, 20.0), (CpuIdle, 180.0), (SwapIn, 0.0), (SwapOut, 5000.0), (MajorFaults, 80.0)])
        .levels(&[(SwapTotal, 4 << 20), (SwapFree, 3 << 20)]);
    check(&ungrouped, &expect!["offered-concurrency |  | not-memory-swap-resident"]);
}

/// Whoever asks for one page at a time, and a CPU that is full, leave the disk something to spare.
#[test]
fn a_disk_that_is_waited_for_now_and_then() {
    let waiting = [(GroupPsiIoSome, 0.2e6), (GroupPsiIoFull, 0.15e6)];
    check(&calm().counters(&waiting), &expect!["disk-bound |  | "]);
    check(&calm().load(1, 20.0).counters(&waiting), &expect!["offered-concurrency |  | "]);
    let full = [(CpuUser, 150.0), (CpuSystem, 10.0), (CpuIdle, 40.0), (GroupCpuNs, 1.55e9), (GroupPsiCpuSome, 0.5e6)];
    check(&calm().counters(&waiting).counters(&full), &expect!["cpu-bound |  | "]);
}

/// A disk of the host's is waited for by anybody: where no process of the server sleeps at it, it is not what its requests wait for.
#[test]
fn a_disk_that_others_wait_for() {
    let io = [(PsiIoSome, 0.3e6), (PsiIoFull, 0.2e6), (PsiMemSome, 0.0), (PsiMemFull, 0.0)];
    let busy = [(CpuUser, 20.0), (CpuSystem, 20.0), (CpuIdle, 160.0)];
    let waiting = |asleep| {
        Scene::new(2).load(4, 500.0).limit(256).counters(&io).counters(&busy).levels(&[(TreeDiskSleep, asleep)])
    };
    check(&waiting(1), &expect!["disk-bound |  | "]);
    check(&waiting(0), &expect!["offered-concurrency |  | "]);
}

/// What hangs says nothing of what it would do with more.
#[test]
fn nothing_was_answered() {
    let hanging = calm().load(40, 0.0);
    check(&hanging, &expect!["no-answers |  | "]);
    check(&hanging.clone().limit(4).levels(&[(AcceptQueue, 36)]), &expect!["no-answers |  | "]);
    check(
        &hanging.counters(&[(GroupCpuNs, 1.95e9), (CpuUser, 190.0), (CpuIdle, 10.0)]),
        &expect!["no-answers | cpu-bound | "],
    );
}

/// What is in no group of ours may have a limit by its service or container: then it is not somebody else who swaps, and the host's CPUs are
/// not its own.
#[test]
fn limits_that_are_not_ours() {
    let plenty = [(MemTotal, 64 << 20), (MemAvailable, 60 << 20)];
    let swapping = Scene::new(32).load(8, 50.0).levels(&plenty).counters(&[(SwapIn, 3000.0), (SwapOut, 3000.0)]);
    let swapping = swapping.outcome(Outcome::EndedEarly(Stop::HostSwapIn));
    check(&swapping, &expect!["host-disturbed |  | "]);
    let memory = Some(512 << 20);
    check(&swapping.clone().share(Share { memory, ..Share::default() }), &expect!["memory-thrash |  | "]);
    check(&swapping.share(Share { memory, is_watched: true, cpus: None }), &expect!["host-disturbed |  | "]);
    let busy = Scene::new(32).load(300, 500.0).limit(150).levels(&[(AcceptQueue, 150)]).counters(&[
        (CpuUser, 160.0),
        (CpuIdle, 3040.0),
        (TreeCpuTicks, 195.0),
    ]);
    check(&busy, &expect!["worker-limit-too-low |  | "]);
    check(&busy.share(Share { cpus: Some(2.0), ..Share::default() }), &expect!["worker-limit-right | cpu-bound | "]);
}

#[test]
fn iowait_alone_is_no_slow_disk() {
    let waiting = calm().counters(&[(CpuIdle, 60.0), (CpuIowait, 100.0)]);
    check(&waiting, &expect!["unexplained |  | not-cpu-waiting, not-disk-iowait"]);
    let slow = waiting.clone().counters(&[(GroupPsiIoSome, 0.8e6), (GroupPsiIoFull, 0.6e6)]);
    check(&slow, &expect!["disk-bound |  | not-cpu-waiting"]);
    // Without PSI it takes a busy disk with a queue, and the traffic must not be swap.
    let old = Scene::new(2).load(4, 50.0).counters(&[
        (CpuUser, 20.0),
        (CpuIdle, 80.0),
        (CpuIowait, 100.0),
        (DiskIoMs, 950.0),
        (DiskWeightedMs, 3000.0),
        (DiskReadSectors, 200_000.0),
        (DiskWriteSectors, 0.0),
        (SwapIn, 0.0),
        (SwapOut, 0.0),
    ]);
    check(&old, &expect!["disk-bound |  | not-cpu-waiting"]);
    check(
        &old.clone().counters(&[(DiskWeightedMs, 500.0)]),
        &expect!["unexplained |  | not-cpu-waiting, not-disk-iowait"],
    );
    check(&old.counters(&[(SwapIn, 20_000.0)]), &expect!["unexplained |  | not-cpu-waiting, not-disk-iowait"]);
}

#[test]
fn load_average_alone_is_no_shortage_of_cpu() {
    let scene = calm().levels(&[(Load1, 1600)]);
    check(&scene, &expect!["offered-concurrency |  | "]);
}

#[test]
fn others_that_fill_the_cpus_do_not_fill_the_servers_only_client() {
    // One request at a time on two CPUs, while somebody else keeps the other one busy.
    let scene =
        calm().load(1, 20.0).counters(&[(CpuUser, 150.0), (CpuSystem, 45.0), (CpuIdle, 5.0), (GroupCpuNs, 0.8e9)]);
    check(&scene, &expect!["offered-concurrency -> one-core-busy | one-core-busy | "]);
    // A server that sleeps is not held up by them either.
    check(&sleeping(2, 480.0).counters(&[(CpuUser, 175.0), (CpuIdle, 5.0)]), &expect!["worker-limit-too-low |  | "]);
    // With ten, the host's CPUs are short for them, whoever takes them.
    let diagnosis = check(&scene.load(10, 20.0), &expect!["cpu-bound |  | "]);
    let others = diagnosis.primary.numbers.get(Quantity::OtherCores).unwrap();
    assert!((others - 1.15).abs() < 0.11, "{others}");
}

// ---- the door, failures, the monitor --------------------------------------------------------------------------------

#[test]
fn a_full_accept_queue() {
    let flooded = calm().load(1000, 500.0).counters(&[(TcpListenOverflows, 40.0)]);
    let flooded = flooded.levels(&[(AcceptQueue, 512), (AcceptLimit, 511), (TreeWorkers, 256), (TreeBusyWorkers, 256)]);
    check(&flooded, &expect!["accept-queue-overflow | worker-limit-too-low -> accept-queue-overflow | "]);
    check(
        &flooded.counters(&[(TcpListenOverflows, 0.0)]),
        &expect!["accept-queue-overflow | worker-limit-too-low -> accept-queue-overflow | "],
    );
}

#[test]
fn somebody_elses_full_queue() {
    // The counter is the host's; four connections cannot fill a queue of 511.
    let scene = calm().counters(&[(TcpListenOverflows, 40.0)]).levels(&[(AcceptLimit, 511)]);
    check(&scene, &expect!["offered-concurrency |  | "]);
    // Nor is a process killed elsewhere on the host ours, as long as every request is answered.
    let ungrouped = sleeping(8, 1900.0).counters(&[(OomKills, 1.0)]);
    check(&ungrouped, &expect!["offered-concurrency |  | "]);
    check(&ungrouped.failed(10.0), &expect!["out-of-memory | offered-concurrency | "]);
}

#[test]
fn failures_that_nothing_explains() {
    check(&calm().failed(400.0), &expect!["failures-dominate |  | "]);
    check(&calm().failed(50.0), &expect!["offered-concurrency |  | "]);
}

#[test]
fn between_full_and_free_nobody_can_tell() {
    let queueing = calm().load(40, 500.0).limit(4).levels(&[(AcceptQueue, 36)]);
    let used = |ticks: f64| {
        let server = (GroupCpuNs, ticks * 0.9e7);
        queueing.clone().counters(&[(CpuUser, ticks - 20.0), (CpuIdle, 200.0 - ticks), server])
    };
    check(&used(80.0), &expect!["worker-limit-too-low |  | "]);
    check(&used(160.0), &expect!["worker-limit-reached |  | "]);
    check(&used(190.0), &expect!["worker-limit-right | cpu-bound | "]);
}

#[test]
fn a_limit_that_memory_dictates_is_right() {
    // 4 workers of 42 MB in 200 MB beside 20 MB: no fifth fits, however idle the CPU is.
    let scene = calm()
        .load(10, 20.0)
        .limit(4)
        .levels(&[(AcceptQueue, 6), (GroupAnon, 188 << 20), (TreeProcesses, 9), (TreeRssLargest, 42 << 20)])
        .before(&[(GroupAnon, 20 << 20)]);
    let diagnosis = check(&scene, &expect!["worker-limit-right |  | "]);
    assert_eq!(diagnosis.primary.numbers.get(Quantity::WorkersThatFit), Some(4.0));
}

/// The workers that fit beside 20 MiB in `memory` MiB when four workers, of ten asked for, take 5 MiB each.
fn fitting(memory: u64) -> Option<f64> {
    let scene = calm()
        .load(10, 20.0)
        .limit(4)
        .grouped(memory)
        .levels(&[(AcceptQueue, 6), (GroupAnon, 40 << 20), (TreeProcesses, 1)])
        .before(&[(GroupAnon, 20 << 20)]);
    let (head, trial) = scene.build();
    diagnose(&head, &head.plan.cells[0], &trial).primary.numbers.get(Quantity::WorkersThatFit)
}

#[test]
fn workers_that_fit_are_told_as_well_as_they_are_known() {
    assert_eq!(fitting(200), Some(36.0));
    assert_eq!(fitting(1000), Some(190.0));
    assert_eq!(fitting(4000), Some(790.0));
    assert_eq!(fitting(24_000), None, "far out of sight of ten requests");
}

/// Fifteen processes of prefork in 192 MiB, of whose 27 MiB each has 10 alone: not six fit, as their size would say.
#[test]
fn what_processes_share_costs_once() {
    let scene = calm().load(40, 25.0).limit(15).grouped(192).before(&[(GroupAnon, 8 << 20)]).levels(&[
        (AcceptQueue, 25),
        (TreeBusyWorkers, 15),
        (TreeProcesses, 16),
        (TreeRssLargest, 27 << 20),
        (GroupAnon, 158 << 20),
        (GroupUsage, 160 << 20),
    ]);
    let scene = scene.counters(&[(CpuUser, 195.0), (CpuSystem, 0.0), (CpuIdle, 0.0), (GroupCpuNs, 1.9e9)]);
    let (head, mut trial) = scene.build();
    let mut fitting = |resident: u64, are_workers: bool| {
        // 17 MiB are the same in all of them.
        let proportional = (10 << 20) + (17 << 20) / 15;
        let held = Held { resident: resident << 20, own: 10 << 20, proportional, ..Held::default() };
        let (workers, others) = if are_workers { (vec![held; 15], vec![]) } else { (vec![], vec![held; 15]) };
        let crew = Crew { workers, others, ..Crew::default() };
        trial.workers = Some(WorkersHeld { crews: vec![crew], ..WorkersHeld::default() });
        let diagnosis = diagnose(&head, &head.plan.cells[0], &trial);
        assert_eq!(diagnosis.primary.id, "cause-worker-limit-right");
        // Of fifteen that are let in.
        let fit = diagnosis.primary.numbers.get(Quantity::WorkersThatFit);
        assert_eq!(diagnosis.primary.doubts.contains(&"unsure-fewer"), fit < Some(13.0), "{fit:?}");
        fit
    };
    assert_eq!(fitting(27, true), Some(17.0), "(192 - 17) / 10");
    // Programs that are started for a request share little that counts, and are not there before.
    assert_eq!(fitting(27, false), Some(6.0));
    // Who was looked at when the large ones were gone tells nothing of them.
    assert_eq!(fitting(12, true), Some(6.0));
}

/// Eleven processes of PHP-FPM in 96 MiB, of 6 MiB each; the master has more resident, and is no worker.
#[test]
fn of_a_pool_its_workers_cost() {
    let scene = calm().load(100, 25.0).pool(11, 11, 80, 2).grouped(96).before(&[(GroupAnon, 12 << 20)]).levels(&[
        (TreeProcesses, 14),
        (TreeRssLargest, 27 << 20),
        (GroupAnon, 78 << 20),
        (GroupUsage, 80 << 20),
    ]);
    let scene = scene.counters(&[(CpuUser, 195.0), (CpuSystem, 0.0), (CpuIdle, 0.0), (GroupCpuNs, 1.9e9)]);
    let (head, mut trial) = scene.build();
    let held = |resident: u64, own: u64| Held {
        resident: resident << 20,
        own: own << 20,
        proportional: own << 20,
        ..Held::default()
    };
    let web = Crew { workers: vec![held(4, 2)], others: vec![held(6, 1)], ..Crew::default() };
    let name = "php-fpm8.2".to_owned();
    let pool = Crew { name, workers: vec![held(13, 6); 11], others: vec![held(27, 21)], ..Crew::default() };
    let mut fitting = |crews: &[&Crew]| {
        let crews = crews.iter().map(|crew| (*crew).clone()).collect();
        trial.workers = Some(WorkersHeld { crews, ..WorkersHeld::default() });
        let diagnosis = diagnose(&head, &head.plan.cells[0], &trial);
        assert_eq!(diagnosis.primary.id, "cause-worker-limit-right");
        diagnosis.primary.numbers.get(Quantity::WorkersThatFit)
    };
    assert_eq!(fitting(&[&web, &pool]), Some(12.0), "(96 - 2 - 1 - 21) / 6");
    // A web server with large workers has none for each page.
    let large = Crew { workers: vec![held(40, 12)], ..Crew::default() };
    assert_eq!(fitting(&[&large, &pool]), Some(10.0), "(96 - 12 - 21) / 6");
    // Of a pool that is not there to be looked at, the growth of the group is all that is known: 66 MiB over eleven.
    assert_eq!(fitting(&[&web]), Some(14.0), "(96 - 12) / 6");
}

#[test]
fn a_monitor_that_saw_little_says_so() {
    check(&calm().seconds(0), &expect!["monitor-unfit |  | "]);
    check(&calm().counters(&[(SamplerFaults, 2.0)]), &expect!["offered-concurrency | monitor-unfit | "]);
}

#[test]
fn a_monitor_that_stood_still_is_unfit_however_punctual_its_other_readings() {
    let without = |gap: std::ops::Range<u64>| {
        let (head, mut trial) = calm().seconds(30).build();
        trial.readings.rows.retain(|row| !gap.contains(&(row.at_ns / model::SECOND)));
        diagnose(&head, &head.plan.cells[0], &trial)
    };
    // The load lasts from second 3 to second 33.
    for blackout in [8..27, 4..23, 14..34, 14..99] {
        let diagnosis = without(blackout);
        assert_eq!(shown(&diagnosis), "offered-concurrency | monitor-unfit | ");
        assert!(diagnosis.contributing[0].numbers.get(Quantity::LongestGap).unwrap() >= 19.0);
    }
    let unwatched = without(8..27).contributing[0].numbers.get(Quantity::Unwatched).unwrap();
    assert!((unwatched - 2.0 / 3.0).abs() < 1e-9, "{unwatched}");
    // Nothing is missed when the monitor pauses beside the load, or for one appointment.
    assert_eq!(shown(&without(0..2)), "offered-concurrency |  | ");
    assert_eq!(shown(&without(10..11)), "offered-concurrency |  | ");
}

#[test]
fn what_the_generator_uses_is_not_what_others_use() {
    // Four threads share one CPU and use half of it; the server uses 0.8 of 1.95 busy CPUs.
    let scene = calm().load(10, 20.0).counters(&[(CpuUser, 150.0), (CpuSystem, 45.0), (CpuIdle, 5.0)]);
    let (head, mut trial) = scene.counters(&[(GroupCpuNs, 0.8e9)]).build();
    trial.load.as_mut().unwrap().generator =
        Generator { threads: 4, cpu_ns: 5 * model::SECOND, cpus: vec![1], away: None };
    let diagnosis = diagnose(&head, &head.plan.cells[0], &trial);
    let others = diagnosis.primary.numbers.get(Quantity::OtherCores).unwrap();
    assert!((others - 0.65).abs() < 1e-9, "{others}");
}

#[test]
fn a_trial_without_a_load_is_not_judged() {
    check(&calm().outcome(Outcome::Invalid("died".into())), &expect!["not-measured |  | "]);
}

#[test]
fn a_trial_that_a_guard_ended_for_thrashing_thrashed() {
    let diagnosis = check(
        &calm().outcome(Outcome::EndedEarly(Stop::Thrash)).seconds(0),
        &expect!["memory-thrash | monitor-unfit | "],
    );
    assert_eq!(diagnosis.readings, 0);
    check(&calm().outcome(Outcome::EndedEarly(Stop::TimeLimit)), &expect!["offered-concurrency |  | "]);
}

#[test]
fn a_host_that_swaps_for_others_says_nothing_about_a_server_in_a_group() {
    let swapping = [(SwapIn, 30_000.0), (SwapOut, 30_000.0), (GroupRefaultAnon, 3000.0), (GroupPsiMemFull, 0.3e6)];
    let scene = calm().counters(&swapping).levels(&[(GroupSwap, 20 << 20)]);
    let stopped = scene.outcome(Outcome::EndedEarly(Stop::HostSwapIn));
    let diagnosis = check(&stopped, &expect!["host-disturbed |  | "]);
    assert_eq!(diagnosis.primary.numbers.get(Quantity::SwapIn), Some(30_000.0 * 4096.0));
    // Without a group there is no telling them apart, and the host's memory is the server's.
    let ungrouped = sleeping(8, 500.0).counters(&[(SwapIn, 3000.0), (SwapOut, 3000.0)]);
    check(&ungrouped.outcome(Outcome::EndedEarly(Stop::HostSwapIn)), &expect!["memory-thrash |  | not-cpu-waiting"]);
}

#[test]
fn a_host_with_plenty_of_memory_swaps_for_somebody_else() {
    let swapping =
        [(SwapIn, 30_000.0), (SwapOut, 30_000.0), (RefaultAnon, 30_000.0), (PsiMemSome, 0.5e6), (PsiMemFull, 0.3e6)];
    let host = |available: u64| {
        let memory = [(MemTotal, 24 << 20), (MemAvailable, available)];
        sleeping(8, 500.0).counters(&swapping).levels(&memory)
    };
    check(&host(20 << 20), &expect!["host-disturbed |  | "]);
    check(&host(1 << 20), &expect!["memory-thrash |  | not-cpu-waiting"]);
}

#[test]
fn waiting_for_files_is_not_swapping() {
    let waiting = |swap: f64, files: f64| {
        let refaults = [(GroupRefaultAnon, swap), (GroupRefaultFile, files)];
        calm().counters(&[(GroupPsiMemSome, 0.5e6), (GroupPsiMemFull, 0.3e6)]).counters(&refaults)
    };
    let diagnosis = check(&waiting(0.0, 20_000.0), &expect!["file-cache-thrash |  | "]);
    let reread = diagnosis.primary.numbers.get(Quantity::GroupFileRefaults);
    assert_eq!(reread, Some(20_000.0 * 4096.0));
    check(&waiting(18_800.0, 1200.0), &expect!["memory-thrash |  | not-cpu-waiting"]);
    check(&waiting(10_000.0, 10_000.0), &expect!["memory-thrash | file-cache-thrash | not-cpu-waiting"]);
    // The guard cannot tell the two apart either.
    let stopped = waiting(0.0, 20_000.0).outcome(Outcome::EndedEarly(Stop::Thrash));
    check(&stopped, &expect!["file-cache-thrash |  | "]);
    // Something else is waited for, such as pages that are written out: neither, but not the client.
    check(&waiting(0.0, 0.0), &expect!["unexplained |  | "]);
    // Without a group, the host's counters.
    let host = sleeping(8, 500.0).counters(&[(PsiMemSome, 0.5e6), (PsiMemFull, 0.3e6), (RefaultAnon, 0.0)]);
    let diagnosis = check(&host.counters(&[(RefaultFile, 20_000.0)]), &expect!["file-cache-thrash |  | "]);
    assert!(diagnosis.primary.numbers.get(Quantity::HostFileRefaults).is_some());
}

#[test]
fn killed_processes_are_named_before_their_failures() {
    let scene = calm().load(10, 5.0).failed(5.0).counters(&[(GroupOomKills, 2.0)]);
    let scene = scene.levels(&[(GroupAnon, 199 << 20), (TreeProcesses, 23), (TreeRssLargest, 41 << 20)]);
    check(
        &scene.before(&[(GroupAnon, 12 << 20)]),
        &expect!["out-of-memory -> failures-dominate | worker-limit-too-high -> out-of-memory, failures-dominate | "],
    );
}

// ---- the tables and the cell ----------------------------------------------------------------------------------------

#[test]
fn every_cause_has_one_line_and_every_message_one_meaning() {
    let mut listed: Vec<Cause> = rules::RULES.iter().map(|rule| rule.cause).collect();
    listed.extend([Cause::Unexplained, Cause::NotMeasured]);
    assert_eq!(listed, Cause::ALL, "the table's order is the order of precedence of `Cause`");
    let ids: BTreeSet<&str> = message_ids().collect();
    let others = doubts::ids().count() + Confidence::ALL.len();
    assert_eq!(ids.len(), Cause::ALL.len() + cleared::CLEARED.len() + others);
    let names: BTreeSet<&str> = Quantity::ALL.iter().map(|quantity| quantity.name()).collect();
    assert_eq!(names.len(), Quantity::ALL.len());
    let kebab = |id: &str| id.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    assert!(ids.iter().chain(&names).all(|id| kebab(id)));
}

#[test]
fn a_rule_only_silences_what_comes_after_it() {
    for (place, rule) in rules::RULES.iter().enumerate() {
        for excluded in rule.excludes {
            let other = rules::RULES.iter().position(|rule| rule.cause == *excluded).unwrap();
            assert!(other > place, "{:?} excludes {excluded:?}", rule.cause);
        }
    }
}

#[test]
fn a_cell_is_what_most_of_its_trials_are() {
    let diagnosed = |scene: Scene| {
        let (head, trial) = scene.build();
        diagnose(&head, &head.plan.cells[0], &trial)
    };
    let low = |queue: u64| diagnosed(sleeping(2, 480.0).levels(&[(AcceptQueue, queue)]));
    let cell = over_trials(&[
        low(6),
        diagnosed(sleeping(8, 1900.0)),
        low(4),
        diagnosed(calm().outcome(Outcome::Invalid("died".into()))),
        low(5),
    ]);
    assert_eq!(shown(&cell), "worker-limit-too-low |  | ");
    assert_eq!((cell.agreement.agree, cell.agreement.of), (3, 4));
    assert_eq!(cell.primary.numbers.get(Quantity::AcceptQueue), Some(5.0));
    // Of equals the one that takes precedence; of nothing, nothing.
    assert_eq!(shown(&over_trials(&[diagnosed(calm()), low(6)])), "worker-limit-too-low |  | ");
    assert_eq!(shown(&over_trials(&[])), "not-measured |  | ");
}

#[test]
fn what_half_the_trials_share_is_kept() {
    let diagnosed = |scene: Scene| {
        let (head, trial) = scene.build();
        diagnose(&head, &head.plan.cells[0], &trial)
    };
    let resting = || diagnosed(calm().levels(&[(GroupSwap, 20 << 20)]).counters(&[(GroupRefaultAnon, 0.0)]));
    let faulting = || diagnosed(calm().counters(&[(SamplerFaults, 2.0)]));
    assert_eq!(
        shown(&over_trials(&[resting(), faulting(), resting()])),
        "offered-concurrency |  | not-memory-swap-resident"
    );
}
