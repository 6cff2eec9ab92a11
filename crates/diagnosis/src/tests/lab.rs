//! The four rows of the memory cliff as they were measured with a private Apache: 40 MB CGIs that touch their memory twice, in a
//! group of 200 MB, prefork with 12 children, 2 CPUs. Rates, pressures and swap are the measured ones.

use super::*;

/// Prefork with its 12 children in a 200 MB group; host and generator share both CPUs.
fn cliff() -> Scene {
    Scene::new(2).limit(256).grouped(200).before(&[(GroupAnon, 12 << 20), (GroupSwap, 0)]).levels(&[
        (TreeWorkers, 12),
        (AcceptQueue, 0),
        (AcceptLimit, 511),
        (TreeLockWaiters, 0),
        (GroupSwap, 0),
        (GroupUsage, 180 << 20),
        (TreeRssLargest, 41 << 20),
    ])
}

/// No pressure, no refaults: what all rows but the second have.
const QUIET: [(model::reading::Column, f64); 5] = [
    (GroupPsiMemSome, 0.0),
    (GroupPsiMemFull, 0.0),
    (GroupPsiIoSome, 0.0),
    (GroupPsiIoFull, 0.0),
    (GroupRefaultAnon, 0.0),
];

#[test]
fn one_at_a_time_is_limited_by_the_client() {
    let scene = cliff()
        .load(1, 20.0)
        .counters(&QUIET)
        .counters(&[(CpuUser, 25.0), (CpuSystem, 85.0), (CpuIdle, 90.0), (GroupCpuNs, 0.95e9)])
        .levels(&[(TreeProcesses, 14), (TreeBusyWorkers, 1), (GroupAnon, 52 << 20)]);
    let diagnosis = check(&scene, &expect!["offered-concurrency -> one-core-busy | one-core-busy | "]);
    assert_eq!(diagnosis.primary.numbers.get(Quantity::Connections), Some(1.0));
}

/// Row 2: 22 MB read back per request, all tasks waiting more than half of the time.
fn collapse() -> Scene {
    cliff()
        .load(10, 7.1)
        .counters(&[
            (GroupPsiMemSome, 0.75e6),
            (GroupPsiMemFull, 0.55e6),
            (GroupPsiIoSome, 0.1e6),
            (GroupPsiIoFull, 0.06e6),
            (GroupRefaultAnon, 7.1 * 22.0 * 256.0),
            (GroupRefaultFile, 7.1 * 22.0 * 256.0 * 0.06),
            (SwapIn, 7.1 * 22.0 * 256.0),
            (SwapOut, 7.1 * 30.0 * 256.0),
            (DiskReadSectors, 7.1 * 22.0 * 2048.0),
            (DiskWriteSectors, 7.1 * 30.0 * 2048.0),
            (CpuUser, 12.0),
            (CpuSystem, 184.0),
            (CpuIowait, 4.0),
            (CpuIdle, 0.0),
            (GroupCpuNs, 1.7e9),
        ])
        .levels(&[
            (TreeProcesses, 23),
            (TreeBusyWorkers, 10),
            (GroupAnon, 195 << 20),
            (GroupUsage, 200 << 20),
            (GroupSwap, 209 << 20),
            (TreeRssLargest, 33 << 20),
            (Load1, 290),
        ])
}

#[test]
fn ten_at_once_thrash_and_the_cpu_only_looks_busy() {
    let diagnosis = check(
        &collapse(),
        &expect![[r#"
            memory-thrash | worker-limit-too-high -> memory-thrash | not-cpu-reclaim, not-cpu-load-average, not-disk-swap"#]],
    );
    let primary = &diagnosis.primary.numbers;
    let per_request = primary.get(Quantity::RefaultPerRequest).unwrap() / f64::from(1 << 20);
    assert!((per_request - 22.0).abs() < 0.1, "{per_request}");
    assert_eq!(primary.get(Quantity::GroupMemoryFull), Some(0.55));
    assert_eq!(primary.get(Quantity::HostMemoryFull), None);
    assert_eq!(primary.get(Quantity::GroupSwapPeak), Some(f64::from(209 << 20)));
    let cause = &diagnosis.contributing[0].numbers;
    assert_eq!(cause.get(Quantity::WorkerLimit), Some(256.0));
    // (200 - 12) / 39.2: no process was ever resident as a whole, but group memory and swap over ten show what one takes.
    assert_eq!(cause.get(Quantity::WorkersThatFit), Some(4.0));
}

#[test]
fn throttled_disks_show_the_same_as_waiting() {
    // Memory PSI 15/10 %, IO PSI 76 to 78 %, wai 33 to 38 %, 10 MB read back per request.
    let scene = collapse().load(10, 2.8).counters(&[
        (GroupPsiMemSome, 0.15e6),
        (GroupPsiMemFull, 0.095e6),
        (GroupPsiIoSome, 0.85e6),
        (GroupPsiIoFull, 0.77e6),
        (GroupRefaultAnon, 2.8 * 10.0 * 256.0),
        (CpuUser, 6.0),
        (CpuSystem, 34.0),
        (CpuIowait, 70.0),
        (CpuIdle, 90.0),
        (GroupCpuNs, 0.4e9),
    ]);
    check(
        &scene,
        &expect![[r#"
            memory-thrash | worker-limit-too-high -> memory-thrash | not-cpu-waiting, not-cpu-load-average, not-disk-swap"#]],
    );
}

#[test]
fn without_pressure_the_groups_refaults_still_tell() {
    let (head, mut trial) = collapse().build();
    for row in &mut trial.readings.rows {
        for column in [GroupPsiMemSome, GroupPsiMemFull, GroupPsiIoSome, GroupPsiIoFull] {
            row.set(column, model::reading::ABSENT);
        }
    }
    let diagnosis = diagnose(&head, &head.plan.cells[0], &trial);
    assert_eq!(diagnosis.causes().collect::<Vec<_>>(), [Cause::MemoryThrash, Cause::WorkerLimitTooHigh]);
}

#[test]
fn a_limit_still_too_high_is_not_called_right() {
    // Eight workers of 40 MB do not fit into 200 MB either: the queue at the door and the busy CPU change nothing.
    let scene = collapse().limit(8).levels(&[(AcceptQueue, 2), (TreeBusyWorkers, 8), (TreeProcesses, 17)]);
    check(
        &scene,
        &expect![[r#"
            memory-thrash | worker-limit-too-high -> memory-thrash | not-cpu-reclaim, not-cpu-load-average, not-disk-swap"#]],
    );
}

#[test]
fn four_workers_fill_the_cpu() {
    let scene = cliff()
        .load(10, 47.8)
        .limit(4)
        .counters(&QUIET)
        .counters(&[(CpuUser, 45.0), (CpuSystem, 150.0), (CpuIdle, 5.0), (GroupCpuNs, 1.8e9)])
        .levels(&[
            (TreeWorkers, 4),
            (TreeProcesses, 9),
            (TreeBusyWorkers, 4),
            (AcceptQueue, 6),
            (GroupAnon, 150 << 20),
        ]);
    let diagnosis = check(&scene, &expect!["worker-limit-right | cpu-bound | "]);
    assert_eq!(diagnosis.primary.numbers.get(Quantity::AcceptQueue), Some(6.0));
    check(&scene.seconds(1), &expect!["worker-limit-right | cpu-bound | "]);
}

#[test]
fn gaps_between_processes_are_no_room() {
    // The same four on a quiet host: each CGI's end and the next one's beginning leave the CPUs idle for 15 % of the time.
    let busy = |waited_us: f64| {
        cliff()
            .load(10, 62.7)
            .limit(4)
            .counters(&QUIET)
            .counters(&[(CpuUser, 18.0), (CpuSystem, 152.0), (CpuIdle, 30.0), (GroupCpuNs, 1.7e9)])
            .counters(&[(GroupPsiCpuSome, waited_us)])
            .levels(&[(TreeWorkers, 4), (TreeProcesses, 9), (TreeBusyWorkers, 4), (AcceptQueue, 6)])
    };
    check(&busy(800_000.0), &expect!["worker-limit-right | cpu-bound | "]);
    // Memory alone makes the limit right here; without waiting tasks nothing more is said of the CPU.
    check(&busy(100_000.0), &expect!["worker-limit-right |  | "]);
}

#[test]
fn a_lock_lets_one_work() {
    let locked = cliff()
        .load(10, 29.1)
        .counters(&QUIET)
        .counters(&[(CpuUser, 30.0), (CpuSystem, 90.0), (CpuIdle, 80.0), (GroupCpuNs, 1.05e9)])
        .levels(&[(TreeProcesses, 23), (TreeBusyWorkers, 10), (TreeLockWaiters, 9), (GroupAnon, 60 << 20)]);
    let diagnosis = check(&locked, &expect!["lock-serialised -> one-core-busy | one-core-busy | "]);
    assert_eq!(diagnosis.primary.numbers.get(Quantity::LockWaiters), Some(9.0));
    // Four workers that wait for the same lock are not too few.
    let few = locked.limit(4).levels(&[(TreeLockWaiters, 3), (TreeBusyWorkers, 4), (AcceptQueue, 6)]);
    check(&few, &expect!["lock-serialised -> one-core-busy | one-core-busy | "]);
}

#[test]
fn without_swap_there_is_no_slowness_but_death() {
    // memsw = limit + 10 %: half of the requests answer 500, fast.
    let scene = collapse().load(10, 5.5).failed(5.5).counters(&QUIET).counters(&[
        (SwapIn, 0.0),
        (SwapOut, 0.0),
        (GroupOomKills, 1.0),
        (CpuUser, 40.0),
        (CpuSystem, 80.0),
        (CpuIowait, 0.0),
        (CpuIdle, 80.0),
    ]);
    check(
        &scene.levels(&[(GroupSwap, 20 << 20), (TreeRssLargest, 41 << 20)]),
        &expect!["out-of-memory -> failures-dominate | worker-limit-too-high -> out-of-memory, failures-dominate | "],
    );
}

#[test]
fn a_server_that_answers_only_errors_fails_before_anything_else() {
    let scene = cliff().load(10, 0.0).failed(500.0).limit(4).counters(&QUIET).counters(&[
        (CpuUser, 45.0),
        (CpuSystem, 150.0),
        (CpuIdle, 5.0),
        (GroupCpuNs, 1.8e9),
    ]);
    check(
        &scene.levels(&[(TreeWorkers, 4), (TreeBusyWorkers, 4), (AcceptQueue, 6)]),
        &expect!["failures-dominate | cpu-bound | "],
    );
}
