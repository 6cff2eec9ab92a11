//! The verdicts that a table of rules must come to, and those it must not, as they were drawn up before any of them was written: each
//! fact alone, and what looks like it. The first document's own rows are in `dstat`.

use super::*;
use crate::evidence::{Evidence, Machine};
use model::SECOND;
use model::reading::{Column, Reading, Readings};
use model::status::WebStatus;

fn causes(scene: &Scene) -> Vec<Cause> {
    let (head, trial) = scene.build();
    let diagnosis = diagnose(&head, &head.plan.cells[0], &trial);
    thresholds_are_told(&trial, &diagnosis);
    diagnosis.causes().collect()
}

// ---- held back, stolen ----------------------------------------------------------------------------------------------

#[test]
fn a_limit_of_cpu_time_is_not_a_busy_cpu() {
    let half =
        calm().load(4, 20.0).counters(&[(GroupCpuNs, 1.96e9), (CpuUser, 190.0), (CpuIdle, 0.0), (CpuSystem, 10.0)]);
    check(&half, &expect!["cpu-bound |  | "]);
    let held = half.counters(&[(Column::GroupPeriods, 10.0), (Column::GroupThrottledPeriods, 9.0)]);
    let numbers = check(&held, &expect!["throttled |  | "]).primary.numbers;
    assert_eq!(numbers.get(Quantity::ThrottledPeriods), Some(0.9));
    // Once in a while is no limit that is in the way.
    check(&held.counters(&[(Column::GroupThrottledPeriods, 1.0)]), &expect!["cpu-bound |  | "]);
    // A kernel that counts no periods tells the time.
    let time = calm().counters(&[(Column::GroupThrottledNs, 0.5e9)]);
    check(&time, &expect!["throttled |  | "]);
    check(&calm().counters(&[(Column::GroupThrottledNs, 0.05e9)]), &expect!["offered-concurrency |  | "]);
}

#[test]
fn what_the_hypervisor_takes_is_not_work() {
    let taken = |steal: f64| {
        let host = [(CpuUser, 110.0), (CpuSystem, 30.0), (Column::CpuSteal, steal), (CpuIdle, 60.0 - steal)];
        calm().load(10, 50.0).counters(&host).counters(&[(GroupCpuNs, 1.4e9)])
    };
    check(&taken(50.0), &expect!["stolen -> cpu-bound | cpu-bound | "]);
    check(&taken(24.0), &expect!["stolen |  | "]);
    check(&taken(4.0), &expect!["unexplained |  | "]);
}

// ---- the network ----------------------------------------------------------------------------------------------------

#[test]
fn what_is_lost_or_finds_no_room_is_the_network() {
    let losing = |again: f64| calm().counters(&[(Column::TcpOutSegments, 2000.0), (Column::TcpRetransmits, again)]);
    check(&losing(60.0), &expect!["network |  | "]);
    check(&losing(10.0), &expect!["offered-concurrency |  | "]);
    // One of ten is a tenth, and nothing.
    let few = calm().counters(&[(Column::TcpOutSegments, 10.0), (Column::TcpRetransmits, 1.0)]);
    check(&few, &expect!["offered-concurrency |  | "]);
    check(&calm().counters(&[(Column::NetLinkNs, 0.9e9)]), &expect!["network |  | "]);
    check(&calm().counters(&[(Column::NetLinkNs, 0.5e9)]), &expect!["offered-concurrency |  | "]);
}

#[test]
fn answers_that_wait_to_be_sent_say_so_only_while_nobody_is_busy() {
    let waiting = calm().levels(&[(TcpSending, 3)]);
    let diagnosis = check(&waiting, &expect!["network |  | "]);
    assert_eq!(diagnosis.primary.numbers.get(Quantity::Sending), Some(3.0));
    check(&waiting.clone().levels(&[(TcpSending, 1)]), &expect!["offered-concurrency |  | "]);
    // Their processes wait for a disk, each in the midst of a write.
    check(&waiting.clone().levels(&[(TreeDiskSleep, 3)]), &expect!["offered-concurrency |  | "]);
    // The client may be what is slow to take them, or the server to send.
    check(&waiting.clone().generator(0.8), &expect!["offered-concurrency |  | "]);
    check(&waiting.clone().generator(0.95), &expect!["generator-saturated |  | "]);
    // Others' work keeps the kernel from delivering them.
    check(&waiting.counters(&[(CpuUser, 190.0), (CpuIdle, 10.0)]), &expect!["offered-concurrency |  | "]);
    let full = calm().load(4, 20.0).counters(&[(GroupCpuNs, 1.96e9), (CpuUser, 196.0), (CpuIdle, 4.0)]);
    check(&full.levels(&[(TcpSending, 4)]), &expect!["cpu-bound |  | "]);
    // Workers that wait for the network are not too few.
    let workers = calm().load(10, 20.0).limit(4).levels(&[(AcceptQueue, 6), (TcpSending, 6)]);
    check(&workers, &expect!["network -> worker-limit-too-low | worker-limit-too-low | "]);
}

// ---- a backend ------------------------------------------------------------------------------------------------------

/// Ten at once, a page that takes 20 ms alone.
fn behind(good: f64) -> Scene {
    calm().load(10, good).fastest(20_000)
}

#[test]
fn few_at_once_of_many_in_work_are_let_in_by_somebody_else() {
    let diagnosis = check(&behind(50.0), &expect!["backend-serialised |  | "]);
    assert_eq!(diagnosis.primary.numbers.get(Quantity::AtOnce), Some(1.0));
    assert_eq!(diagnosis.primary.confidence(), Confidence::Likely);
    // Four connections to a database.
    check(&behind(200.0), &expect!["backend-serialised |  | "]);
    // All ten side by side.
    check(&behind(480.0), &expect!["offered-concurrency |  | "]);
    // A lock that can be seen is what it is.
    check(&behind(50.0).levels(&[(TreeLockWaiters, 9)]), &expect!["lock-serialised |  | "]);
    // More workers would only wait there.
    check(&behind(50.0).limit(8).levels(&[(AcceptQueue, 2)]), &expect!["backend-serialised |  | "]);
    // Too few workers are no backend: all of them are at work.
    check(&behind(98.0).limit(2).levels(&[(AcceptQueue, 8)]), &expect!["worker-limit-too-low |  | "]);
    // A page that computes, and one that is over at once.
    check(&behind(50.0).counters(&[(GroupCpuNs, 0.95e9)]), &expect!["one-core-busy |  | "]);
    check(&calm().load(10, 2000.0).fastest(500), &expect!["offered-concurrency |  | "]);
    // One lucky answer from a cache does not make the others wait for a backend.
    check(&behind(10.0), &expect!["offered-concurrency |  | "]);
}

#[test]
fn who_stands_behind_has_not_accepted_them() {
    // HAProxy with four at a time for each of two.
    let numbers = check(&passing_on(0, 8), &expect!["held-in-front |  | "]).primary.numbers;
    assert_eq!(numbers.get(Quantity::HeldInFront), Some(16.0));
    // nginx, which lets them wait at both doors; and some here and some there.
    let numbers = check(&passing_on(16, 8), &expect!["backend-serialised |  | "]).primary.numbers;
    assert_eq!(numbers.get(Quantity::QueueBehind), Some(16.0));
    check(&passing_on(8, 8), &expect!["backend-serialised |  | "]);
    // The CPUs are busy, and not full: what is seen there is there; of a door of which no more is known a CPU may be the reason.
    let busy = [(CpuUser, 160.0), (CpuSystem, 0.0), (CpuIdle, 40.0)];
    check(&passing_on(16, 8).counters(&busy), &expect!["backend-serialised |  | "]);
    let next_door = passing_on(0, 8).database().levels(&[(Column::ListenQueue, 16)]);
    check(&next_door, &expect!["backend-serialised |  | "]);
    check(&next_door.counters(&busy), &expect!["unexplained |  | "]);
    // Those who are let in may wait for others that let in few.
    check(&passing_on(20, 28), &expect!["backend-serialised |  | "]);
    // The files beside the pages are none of these.
    assert!(!causes(&passing_on(0, 13).beside(8)).contains(&Cause::HeldInFront));
    // A backend whose own door overflows; or it is not known whose.
    let overflows = |queue: u64, accepted: u64| {
        passing_on(queue, accepted).levels(&[(AcceptLimit, 511)]).counters(&[(TcpListenOverflows, 5.0)])
    };
    check(&overflows(9, 4), &expect!["accept-queue-overflow | backend-serialised | "]);
    check(&overflows(0, 8), &expect!["unexplained |  | "]);
}

#[test]
fn what_is_nowhere_else_need_not_be_held_in_front() {
    // All are let in; what takes its time there is not seen. Idle connections that are kept there are more than there are requests.
    check(&passing_on(0, 22), &expect!["unexplained |  | "]);
    check(&passing_on(0, 40), &expect!["unexplained |  | "]);
    // Nobody is: the server itself has them. Or it is known to.
    check(&passing_on(0, 0), &expect!["unexplained |  | "]);
    check(&passing_on(0, 8).fastest(160_000), &expect!["offered-concurrency |  | "]);
    // A page that waits for a database may call another server, too.
    check(&passing_on(0, 8).database(), &expect!["unexplained |  | "]);
    // Answers that the client has no time to take, or the one thread of a proxy.
    check(&passing_on(0, 8).generator(0.6), &expect!["unexplained |  | "]);
    check(&passing_on(0, 1).load(100, 9000.0).generator(0.85), &expect!["unexplained |  | "]);
    check(&passing_on(0, 8).counters(&[(GroupCpuNs, 0.95e9)]), &expect!["one-core-busy |  | "]);
    let full = [(CpuUser, 190.0), (CpuIdle, 0.0), (CpuSystem, 10.0)];
    check(&passing_on(0, 8).counters(&full), &expect!["cpu-bound |  | "]);
    // They wait at its own door, to be read, or for a client that does not take the answer: 10 of 24 are left.
    for seen in [AcceptQueue, TcpUnread, TcpSending] {
        check(&passing_on(0, 8).levels(&[(seen, 3)]), &expect!["held-in-front |  | "]);
        assert!(!causes(&passing_on(0, 8).levels(&[(seen, 6)])).contains(&Cause::HeldInFront), "{seen:?}");
    }
    // Each reading has all of them, in one place after the other.
    let (head, mut trial) = passing_on(0, 8).build();
    for (at, row) in trial.readings.rows.iter_mut().enumerate() {
        let places = [AcceptQueue, TcpUnread, BehindAccepted];
        places.iter().enumerate().for_each(|(place, &column)| row.set(column, 1 + 21 * u64::from(at % 3 == place)));
    }
    assert_eq!(shown(&diagnose(&head, &head.plan.cells[0], &trial)), "unexplained |  | ");
    // What is sent may be worked on while it lies there.
    let (mut head, trial) = passing_on(0, 8).build();
    head.plan.loads[0].pipeline = 4;
    assert_eq!(shown(&diagnose(&head, &head.plan.cells[0], &trial)), "unexplained |  | ");
}

#[test]
fn another_door_with_a_queue_is_named() {
    let queueing = behind(50.0).levels(&[(Column::ListenQueue, 9)]);
    let numbers = check(&queueing, &expect!["backend-serialised |  | "]).primary.numbers;
    assert_eq!(numbers.get(Quantity::FullestQueue), Some(9.0));
    // The server's own is not another's.
    let own = queueing.limit(4).levels(&[(AcceptQueue, 6)]);
    assert_eq!(check(&own, &expect!["backend-serialised |  | "]).primary.numbers.get(Quantity::FullestQueue), None);
}

// ---- threads of its own ---------------------------------------------------------------------------------------------

/// Fifty kept connections, of which so many have said something that nobody has read.
fn lying(good: f64, unread: u64) -> Scene {
    calm().load(50, good).levels(&[(TcpUnread, unread)])
}

#[test]
fn requests_that_nobody_reads_have_no_thread() {
    // Ten threads, and a page that waits 20 ms.
    let diagnosis = check(&lying(500.0, 40), &expect!["too-few-threads |  | "]);
    let numbers = &diagnosis.primary.numbers;
    assert_eq!((numbers.get(Quantity::Unread), numbers.get(Quantity::ThreadWait)), (Some(40.0), Some(0.08)));
    assert_eq!(diagnosis.primary.confidence(), Confidence::Likely);
    // All ten are at work, be what a page takes alone known or hidden by those who jump the queue: it is no backend that lets in ten.
    check(&lying(500.0, 40).fastest(20_000), &expect!["too-few-threads |  | "]);
    check(&lying(500.0, 40).fastest(20_000).jumped(), &expect!["too-few-threads |  | "]);
    // The ten wait for one who lets in one: more of them would, too.
    check(&lying(50.0, 40).fastest(20_000), &expect!["backend-serialised |  | "]);
    // A limit that is known is called by its name.
    check(&lying(500.0, 10).limit(10).levels(&[(AcceptQueue, 30)]), &expect!["worker-limit-too-low |  | "]);
    // Workers that accept one connection after the other leave the others at the door.
    let idle = [(CpuUser, 20.0), (CpuSystem, 20.0), (CpuIdle, 160.0), (TreeCpuTicks, 30.0)];
    let at_door = |queue: u64| Scene::new(2).load(50, 500.0).counters(&idle).levels(&[(AcceptQueue, queue)]);
    check(&at_door(40), &expect!["too-few-threads |  | "]);
    check(&at_door(3), &expect!["offered-concurrency |  | "]);
    // Threads that cannot get rid of their answers.
    let slow = lying(500.0, 20).levels(&[(TcpSending, 30)]);
    check(&slow, &expect!["network -> too-few-threads | too-few-threads | "]);
}

#[test]
fn what_is_read_at_once_has_a_thread() {
    let no_more = expect!["offered-concurrency |  | "];
    check(&lying(2500.0, 0), &no_more);
    check(&calm().load(50, 2500.0), &no_more);
    // Some are caught on their way in; one alone finds nobody before it; the sampler itself was in the way for 2 ms.
    check(&lying(500.0, 3), &no_more);
    check(&lying(20.0, 1).load(1, 20.0), &no_more);
    check(&lying(3200.0, 6).load(16, 3200.0), &no_more);
    // As many as are in flight: some must be others'.
    check(&lying(500.0, 50), &no_more);
    // Of two loads it is not told whose they are, and of several requests on one connection the next may lie while one is worked on.
    check(&lying(500.0, 40).beside(8), &no_more);
    let (mut head, trial) = lying(500.0, 40).build();
    head.plan.loads[0].pipeline = 4;
    assert_eq!(shown(&diagnose(&head, &head.plan.cells[0], &trial)), "offered-concurrency |  | ");
    // There is a thread, and no CPU for it: its own, or of those that others leave.
    let full = [(CpuUser, 190.0), (CpuIdle, 0.0), (CpuSystem, 10.0), (GroupCpuNs, 1.96e9)];
    check(&lying(500.0, 40).counters(&full), &expect!["cpu-bound |  | "]);
    check(&lying(500.0, 40).counters(&[(GroupPsiCpuSome, 0.4e6)]), &expect!["unexplained |  | "]);
    let crowded = [(CpuUser, 160.0), (CpuSystem, 0.0), (CpuIdle, 40.0), (TreeCpuTicks, 20.0)];
    let ungrouped = Scene::new(2).load(50, 500.0).counters(&crowded).levels(&[(TcpUnread, 40)]);
    check(&ungrouped, &expect!["unexplained |  | "]);
    let beside = [(CpuUser, 100.0), (CpuSystem, 0.0), (CpuIdle, 100.0), (TreeCpuTicks, 30.0)];
    let pinned = Scene::new(2).pinned(1).load(50, 500.0).counters(&beside).levels(&[(TcpUnread, 40)]);
    check(&pinned, &expect!["unexplained |  | "]);
    // One thread that computes.
    check(&lying(500.0, 40).counters(&[(GroupCpuNs, 0.98e9)]), &expect!["one-core-busy |  | "]);
}

/// More workers help only if who stands behind them lets more in.
#[test]
fn a_limit_before_something_else_leaves_a_doubt() {
    let few = calm().load(10, 98.0).limit(2).levels(&[(AcceptQueue, 8)]);
    let doubts = |scene: &Scene| check(scene, &expect!["worker-limit-too-low |  | "]).primary.doubts;
    assert_eq!(doubts(&few), Vec::<&str>::new());
    assert_eq!(doubts(&few.clone().database()), ["unsure-behind"]);
    let levels = [(BehindQueue, 0), (BehindAccepted, 2), (TcpUnread, 0), (TcpSending, 0)];
    assert_eq!(doubts(&few.behind().levels(&levels)), Vec::<&str>::new());
}

/// A server that reads at once and has its queue inside shows nothing of it but the time that answers take.
#[test]
fn who_waits_unseen_leaves_a_doubt() {
    let doubts = |scene: &Scene| check(scene, &expect!["offered-concurrency |  | "]).primary.doubts;
    let pool = calm().load(50, 500.0).fastest(20_000).jumped();
    assert_eq!(doubts(&pool), ["unsure-concluded", "unsure-longer"]);
    assert_eq!(doubts(&pool.load(50, 2400.0)), ["unsure-concluded"]);
    // Twice as long, but short.
    assert_eq!(doubts(&calm().load(4, 1000.0).fastest(1000).jumped()), ["unsure-concluded"]);
}

// ---- keep-alive, in a run -------------------------------------------------------------------------------------------

#[test]
fn a_scoreboard_full_of_kept_connections() {
    let prefork =
        |writing: u64, kept: u64| calm().load(10, 50.0).limit(20).kept(writing, kept).levels(&[(AcceptQueue, 7)]);
    let numbers = check(&prefork(2, 18), &expect!["keep-alive-held |  | "]).primary.numbers;
    assert_eq!(numbers.get(Quantity::HeldWorkers), Some(18.0));
    // Some are idle; or nobody waits; or few are held.
    assert!(!causes(&prefork(1, 12)).contains(&Cause::KeepAliveHeld));
    assert!(!causes(&prefork(2, 18).levels(&[(AcceptQueue, 0)])).contains(&Cause::KeepAliveHeld));
    assert!(!causes(&prefork(18, 2)).contains(&Cause::KeepAliveHeld));
    // They wait for two seconds of ten, or for four.
    let rests = |seconds| prefork(2, 18).levels(&[(AcceptQueue, 0)]).seconds(10).first(seconds, AcceptQueue, 7);
    assert!(!causes(&rests(2)).contains(&Cause::KeepAliveHeld));
    assert!(causes(&rests(4)).contains(&Cause::KeepAliveHeld));
    // A look now and then meets a connection between two requests.
    let seldom = |shut: usize| {
        let (head, mut trial) = prefork(2, 18).seconds(10).build();
        let at_work = WebStatus::Apache { places: [('W', 20)].into(), served: None };
        trial.status.iter_mut().skip(shut).for_each(|look| look.web = Some(at_work.clone()));
        diagnose(&head, &head.plan.cells[0], &trial).causes().any(|cause| cause == Cause::KeepAliveHeld)
    };
    assert!(!seldom(1) && seldom(4));
    // Between two requests of a busy client every connection is kept for a moment.
    assert!(!causes(&prefork(2, 18).generator(0.95)).contains(&Cause::KeepAliveHeld));
}

/// prefork begins with a few processes and starts more while some are asked for: the client did ask for more.
#[test]
fn workers_that_are_not_there_yet() {
    let begun = |writing: u64| calm().load(12, 40.0).limit(16).kept(writing, 0).levels(&[(AcceptQueue, 9)]);
    check(&begun(3), &expect!["workers-starting |  | "]);
    // All are there, or nobody waits, or the CPU has no room for more, or the limit itself is nearly reached.
    check(&begun(3).levels(&[(AcceptQueue, 0)]), &expect!["offered-concurrency |  | "]);
    assert!(!causes(&begun(16)).contains(&Cause::WorkersStarting));
    let full = [(CpuUser, 190.0), (CpuIdle, 0.0), (CpuSystem, 10.0), (GroupCpuNs, 1.96e9)];
    assert!(!causes(&begun(3).counters(&full)).contains(&Cause::WorkersStarting));
    check(&begun(6).limit(8), &expect!["worker-limit-too-low |  | "]);
    check(&begun(3).limit(8), &expect!["workers-starting |  | "]);
    // 34 of 256 have not reached their limit, however busy the CPU is; prefork begins workers slowly where it is full.
    let used =
        |ticks: f64| [(CpuUser, ticks), (CpuIdle, 200.0 - ticks), (CpuSystem, 0.0), (GroupCpuNs, ticks * 0.98e7)];
    let asked = |writing: u64, ticks: f64| {
        calm().load(400, 40.0).limit(256).kept(writing, 0).levels(&[(AcceptQueue, 103)]).counters(&used(ticks))
    };
    check(&asked(34, 200.0), &expect!["cpu-bound |  | "]);
    check(&asked(34, 160.0), &expect!["workers-starting |  | "]);
    check(&asked(34, 100.0), &expect!["workers-starting |  | "]);
    check(&asked(200, 200.0), &expect!["worker-limit-right | cpu-bound | "]);
    check(&asked(200, 160.0), &expect!["worker-limit-reached |  | "]);
}

/// The third document's settings: processes of worker end after a thousand connections, and are begun anew once a second.
#[test]
fn processes_that_end_faster_than_they_are_begun() {
    let ending = |connects: f64| {
        let levels = [(AcceptQueue, 26), (TreeWorkers, 6)];
        calm().load(50, 6000.0).limit(150).ending(1000, connects).levels(&levels).dips(&[(TreeWorkers, 2)])
    };
    let numbers = check(&ending(6000.0), &expect!["processes-ending |  | "]).primary.numbers;
    let [after, rate] = [Quantity::ConnectionsEach, Quantity::ProcessesEnding].map(|quantity| numbers.get(quantity));
    assert_eq!((after, rate), (Some(1000.0), Some(6.0)));
    // Half of the time none is there, and the CPU is full for the rest.
    let used = |share: f64| {
        let ticks = 200.0 * share;
        ending(6000.0).counters(&[(CpuUser, ticks), (CpuIdle, 200.0 - ticks), (GroupCpuNs, share * 2e9)])
    };
    check(&used(0.75).counters(&[(GroupPsiCpuSome, 0.5e6)]), &expect!["processes-ending |  | "]);
    check(&used(0.95), &expect!["cpu-bound |  | "]);
    // More is asked than there may be workers; a higher limit would help no more than more processes do.
    check(&ending(6000.0).load(200, 6000.0), &expect!["processes-ending |  | "]);
    // They end so fast that no reading meets one.
    check(&ending(6000.0).levels(&[(TreeWorkers, 0)]).dips(&[(TreeWorkers, 0)]), &expect!["processes-ending |  | "]);
    // Others are there in time.
    assert!(!causes(&ending(6000.0).dips(&[(TreeWorkers, 5)])).contains(&Cause::ProcessesEnding));
    // Kept connections are few; nobody waits; processes do not end.
    assert!(!causes(&ending(60.0)).contains(&Cause::ProcessesEnding));
    assert!(!causes(&ending(6000.0).levels(&[(AcceptQueue, 0)])).contains(&Cause::ProcessesEnding));
    assert!(!causes(&ending(6000.0).ending(0, 6000.0)).contains(&Cause::ProcessesEnding));
}

/// Many connections on an Apache without a group of its own: its CPU is waited for, if not used to the last.
#[test]
fn a_run_queue_where_no_group_tells_who_waits() {
    let used = [(CpuUser, 100.0), (CpuSystem, 72.0), (CpuIdle, 28.0), (TreeCpuTicks, 160.0)];
    let queue = |runnable: u64| Scene::new(2).load(100, 6000.0).counters(&used).levels(&[(Column::Runnable, runnable)]);
    let diagnosis = check(&queue(151), &expect!["cpu-bound |  | "]);
    assert_eq!(diagnosis.primary.doubts, ["unsure-host-numbers"]);
    let right =
        check(&queue(151).limit(50).levels(&[(AcceptQueue, 50)]), &expect!["worker-limit-right | cpu-bound | "]);
    assert_eq!(right.primary.doubts, ["unsure-host-numbers"]);
    // Others are busy, and the kernel does not say whose tasks they are.
    let crowded = [(CpuUser, 120.0), (CpuSystem, 50.0), (CpuIdle, 30.0), (TreeCpuTicks, 75.0)];
    let beside = Scene::new(2).pinned(1).load(100, 600.0).counters(&crowded).levels(&[(Column::Runnable, 20)]);
    check(&beside, &expect!["unexplained |  | "]);
    check(&queue(4), &expect!["unexplained |  | "]);
    // A group tells better: its tasks did not wait, whoever else did.
    let told = Scene::new(2).load(100, 6000.0).grouped(400).counters(&used).levels(&[(Column::Runnable, 151)]);
    check(&told.counters(&[(GroupCpuNs, 1.6e9), (GroupPsiCpuSome, 0.1e6)]), &expect!["unexplained |  | "]);
}

// ---- around it ------------------------------------------------------------------------------------------------------

#[test]
fn a_client_without_ports_and_others_at_the_server() {
    check(&calm().unsent(50.0), &expect!["out-of-ports |  | "]);
    check(&calm().unsent(2.0), &expect!["offered-concurrency |  | "]);
    check(&calm().others(400.0), &expect!["foreign-traffic | offered-concurrency | "]);
    check(&calm().others(20.0), &expect!["offered-concurrency |  | "]);
    // They took part in whatever else is found.
    let both = check(&calm().others(20.0), &expect!["offered-concurrency |  | "]);
    assert!(both.primary.doubts.contains(&"unsure-others"), "{:?}", both.primary.doubts);
}

#[test]
fn pressure_builds_before_it_is_thrash() {
    let some = |share: f64, pages: f64| {
        calm().counters(&[(GroupPsiMemSome, share * 1e6), (GroupRefaultFile, pages), (GroupPsiMemFull, 0.0)])
    };
    check(&some(0.05, 2000.0), &expect!["offered-concurrency | pressure-building | "]);
    // A page cache that is full, and one that is read again without anybody waiting.
    check(&some(0.05, 10.0), &expect!["offered-concurrency |  | "]);
    check(&some(0.001, 20_000.0), &expect!["offered-concurrency |  | "]);
}

// ---- how sure -------------------------------------------------------------------------------------------------------

#[test]
fn what_speaks_against_it_is_told() {
    let sure = |scene: &Scene| {
        let (head, trial) = scene.build();
        let primary = diagnose(&head, &head.plan.cells[0], &trial).primary;
        (primary.confidence(), primary.doubts)
    };
    let full = |used: f64| {
        calm().load(10, 20.0).counters(&[(GroupCpuNs, used * 2e9), (CpuUser, 196.0 * used), (CpuSystem, 0.0)])
    };
    assert_eq!(sure(&full(0.999)), (Confidence::Sure, vec![]));
    assert_eq!(sure(&full(0.92)), (Confidence::Likely, vec!["unsure-near"]));
    assert_eq!(sure(&full(0.92).seconds(2)), (Confidence::Possible, vec!["unsure-near", "unsure-short"]));
    assert_eq!(sure(&calm()), (Confidence::Likely, vec!["unsure-concluded"]));
    // Trials that came to something else are a reason, too.
    let diagnosed = |scene: Scene| {
        let (head, trial) = scene.build();
        diagnose(&head, &head.plan.cells[0], &trial)
    };
    let cell = over_trials(&[diagnosed(full(0.999)), diagnosed(full(0.999)), diagnosed(calm())]);
    assert_eq!(cell.primary.doubts, ["unsure-trials-disagree"]);
}

// ---- the page -------------------------------------------------------------------------------------------------------

#[test]
fn every_cause_is_documented_with_its_source() {
    let page = include_str!("../../../../docs/diagnosis.md");
    for rule in rules::RULES {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", rule.cause.id())));
        let cells: Vec<&str> = row.map(|row| row.split('|').map(str::trim).collect()).unwrap_or_default();
        assert_eq!(cells.get(4), Some(&rule.source), "the source of {} in docs/diagnosis.md", rule.cause.id());
    }
}

// ---- only watched ---------------------------------------------------------------------------------------------------

/// Ten seconds of a machine of two CPUs that is only watched.
fn watched(counters: &[(Column, f64)], levels: &[(Column, u64)]) -> String {
    let row = |second: u64| {
        let mut row = Reading::empty(second * SECOND);
        counters.iter().for_each(|&(column, rate)| row.set(column, (rate * second as f64) as u64));
        levels.iter().for_each(|&(column, level)| row.set(column, level));
        row
    };
    let readings = Readings { rows: (0..=10).map(row).collect(), notes: vec![] };
    shown(&crate::judge(&Evidence::watched(&Machine::watched(2.0, false), &readings)))
}

#[test]
fn a_machine_that_is_only_watched() {
    let idle = [(CpuUser, 10.0), (CpuSystem, 10.0), (CpuIdle, 180.0)];
    let with = |more: &[(Column, f64)]| [&idle[..], more].concat();
    expect!["unexplained |  | "].assert_eq(&watched(&idle, &[]));
    expect!["cpu-bound |  | "].assert_eq(&watched(&[(CpuUser, 150.0), (CpuSystem, 45.0), (CpuIdle, 5.0)], &[]));
    let swaps = [(PsiMemSome, 0.5e6), (PsiMemFull, 0.3e6), (SwapIn, 9e3), (SwapOut, 9e3), (RefaultAnon, 9e3)];
    let short = [(MemTotal, 1 << 20), (MemAvailable, 50 << 10)];
    expect!["memory-thrash |  | not-cpu-waiting"].assert_eq(&watched(&with(&swaps), &short));
    // Every worker is busy and connections wait; or one is not; or nobody waits.
    let door = |busy: u64, queue: u64| {
        watched(&idle, &[(TreeWorkers, 4), (TreeBusyWorkers, busy), (Column::ListenQueue, queue)])
    };
    expect!["worker-limit-too-low |  | "].assert_eq(&door(4, 6));
    expect!["unexplained |  | "].assert_eq(&door(3, 6));
    expect!["unexplained |  | "].assert_eq(&door(4, 0));
    let disk = [(PsiIoSome, 0.8e6), (PsiIoFull, 0.6e6), (PsiMemSome, 0.0), (PsiMemFull, 0.0)];
    expect!["disk-bound |  | "].assert_eq(&watched(&with(&disk), &[]));
}

/// A timetable has more connections than it needs: what is in flight is what the server was asked for.
#[test]
fn connections_that_are_not_in_use() {
    let few = calm().load(1000, 500.0).limit(256).levels(&[(AcceptQueue, 1)]);
    check(&few.clone().in_flight(5), &expect!["offered-concurrency |  | "]);
    check(&few.in_flight(300), &expect!["worker-limit-too-low |  | "]);
    let lock = calm().load(200, 20.0).levels(&[(Column::TreeLockWaiters, 9)]).in_flight(10);
    check(&lock, &expect!["lock-serialised |  | "]);
}

/// A look at a pool meets now and then who has just come; who waits while all that are there work, and more may be, waits for others to be
/// begun.
#[test]
fn a_pool_of_which_a_part_works() {
    let pool = |limit, active, idle, queue, reached| {
        let scene = calm().load(64, 4000.0).levels(&[(AcceptQueue, 0)]);
        causes(&scene.pool(limit, active, queue, reached).idle(idle))
    };
    assert_eq!(pool(20, 6, 14, 2, 0), [Cause::OfferedConcurrency]);
    assert_eq!(pool(50, 20, 0, 8, 0), [Cause::WorkersStarting]);
    assert!(pool(20, 6, 0, 2, 1).contains(&Cause::WorkerLimitTooLow));
    assert!(pool(20, 10, 10, 2, 0).contains(&Cause::WorkerLimitTooLow));
}

/// Swap in compressed memory is no traffic of the disks.
#[test]
fn swap_that_is_on_no_disk() {
    let shares = |sectors: f64| {
        let disks =
            [(SwapIn, 6000.0), (SwapOut, 6000.0), (Column::DiskReadSectors, sectors), (Column::DiskWriteSectors, 0.0)];
        let (head, trial) = calm().counters(&disks).build();
        let load = trial.load.as_ref().expect("a load");
        Evidence::of(&head, &head.plan.cells[0], &trial, load).disk.swap_share
    };
    assert_eq!(shares(192_000.0), Some(0.5));
    assert_eq!(shares(80_000.0), Some(1.0));
    assert_eq!(shares(50_000.0), None);
}

/// Looks between the appointments, in a storm, do not make gaps of what is between these.
#[test]
fn a_storm_is_looked_at_more_often() {
    let at = (0..=120u64).step_by(10).chain(121..=150);
    let row = |tenth: u64| {
        let mut row = Reading::empty(tenth * SECOND / 10);
        let extra = u64::from(!tenth.is_multiple_of(10));
        [(CpuUser, tenth), (CpuSystem, tenth), (CpuIdle, 18 * tenth), (Column::SamplerExtra, extra)]
            .into_iter()
            .for_each(|(column, value)| row.set(column, value));
        row
    };
    let readings = Readings { rows: at.map(row).collect(), notes: vec![] };
    let evidence = Evidence::watched(&Machine::watched(2.0, false), &readings);
    expect!["unexplained |  | "].assert_eq(&shown(&crate::judge(&evidence)));
}
