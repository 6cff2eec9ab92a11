//! The next step of a check, from a few numbers: a server, what a climb brought, and what the machine did meanwhile.

use super::scene::Scene;
use crate::cause::Cause;
use crate::check::{Checked, check as judge};
use crate::number::Quantity;
use model::SECOND;
use model::check::{
    Check, Door, Kind, Measure, MemoryGroup, Page, Pool, PoolQueue, PoolWork, Running, Setting, Summit, WorkerMemory,
};
use model::latency::Latency;
use model::others::{Others, Program};
use model::plan::{Cell, LoadSpec, Role};
use model::reading::Column;
use model::run::Run;

/// A server that waits 20 ms for each request, on two CPUs and without anything wrong.
#[derive(Clone)]
struct Server {
    kind: Kind,
    settings: Vec<(&'static str, &'static str, &'static str)>,
    /// Workers of PHP-FPM.
    children: Option<&'static str>,
    /// Requests it can work on at once.
    at_once: u32,
    /// CPUs it keeps busy when all are.
    cores: f64,
    /// Bytes of a worker at work.
    worker: u64,
    /// Bytes of it that may be its parent's, too.
    inherited: u64,
    group: Option<u64>,
    /// Connections that wait at the door, and how many can.
    queue: (u64, u64),
    /// Whether those that it does not work on wait inside, unread.
    takes_in: bool,
    overflows: f64,
    held: u64,
    /// Connections of others before anything was sent, if they are more than those that are held.
    others: u64,
    processes: u64,
    summit: Summit,
    somaxconn: Option<u64>,
    /// CPUs that it may use.
    cpus: Option<f64>,
    work: Option<PoolWork>,
    /// What waits for PHP-FPM.
    waiting: Option<PoolQueue>,
    status: u16,
    is_static: bool,
    /// Clock ticks of another program in a second before anything was sent, and in ten seconds of load.
    others_ticks: Option<(u64, u64)>,
    /// Bytes of programs that are started for requests, before anything is sent and while all work.
    programs: (u64, u64),
    /// Of those never more are there than these.
    programs_at_once: u32,
    /// MiB that are available before anything is sent, and while all work.
    available: (u64, u64),
}

impl Default for Server {
    fn default() -> Server {
        Server {
            kind: Kind::ApachePrefork,
            settings: vec![("MaxRequestWorkers", "MaxRequestWorkers", "150")],
            children: None,
            at_once: 16,
            cores: 0.2,
            worker: 10 << 20,
            inherited: 0,
            group: None,
            queue: (0, 511),
            takes_in: false,
            overflows: 0.0,
            held: 0,
            others: 0,
            processes: 10,
            summit: Summit::Plateau,
            somaxconn: None,
            cpus: None,
            work: None,
            waiting: None,
            status: 200,
            is_static: false,
            others_ticks: None,
            programs: (0, 0),
            programs_at_once: u32::MAX,
            available: (6 << 10, 6 << 10),
        }
    }
}

fn setting(&(name, written, value): &(&str, &str, &str)) -> Setting {
    let file = "/etc/apache2/x.conf".into();
    Setting { name: name.into(), written: written.into(), value: value.into(), file, line: 3, section: None }
}

impl Server {
    fn run(&self) -> Run {
        let mut head = None;
        let mut trials = Vec::new();
        let steps = [("c1", 1), ("c4", 4), ("c16", 16), ("c64", 64)];
        for (name, connections) in steps {
            let working = connections.min(self.at_once);
            let ticks = self.cores * f64::from(working) / f64::from(self.at_once) * 100.0;
            let of_others = self.others_ticks.map_or(0.0, |(calm, loaded)| (calm as f64).min(loaded as f64 / 10.0));
            let (of_scene, mut trial) = Scene::new(2)
                .load(connections, f64::from(working) * 50.0)
                .counters(&[
                    (Column::CpuUser, (ticks + of_others).min(200.0)),
                    (Column::CpuIdle, (200.0 - ticks - of_others).max(0.0)),
                    (Column::TreeCpuTicks, ticks),
                    (Column::TcpListenOverflows, if connections > self.at_once { self.overflows } else { 0.0 }),
                ])
                .levels(&[
                    (Column::MemTotal, 8 << 20),
                    (Column::MemAvailable, self.available.1 << 10),
                    (Column::AcceptQueue, if connections > self.at_once { self.queue.0 } else { 0 }),
                    (Column::AcceptLimit, self.queue.1),
                    (Column::TcpUnread, if self.takes_in { u64::from(connections - working) } else { 0 }),
                    (Column::TreeWorkers, self.processes),
                    (Column::TreeBusyWorkers, 0),
                    (Column::TreeProgramLargest, self.programs.1),
                    (
                        Column::GroupAnon,
                        (20 << 20) + self.programs.1 * u64::from(connections.min(self.programs_at_once)) / 2,
                    ),
                ])
                .before(&[
                    (Column::MemAvailable, self.available.0 << 10),
                    (Column::TreeProgramLargest, self.programs.0),
                    (Column::GroupAnon, 20 << 20),
                ])
                .build();
            trial.cell = name.to_owned();
            trial.door = Some(Door {
                others: self.held,
                idle: self.held,
                ticks: Some((ticks * 10.0) as u64),
                ..Door::default()
            });
            let load = trial.load.as_mut().unwrap();
            let mut total = Latency::new();
            (0..100).for_each(|_| total.record(20_000 * u64::from(connections.div_ceil(self.at_once))));
            load.total = total;
            trials.push(trial);
            head = Some(of_scene);
        }
        let mut head = head.unwrap();
        let (load, variant) = (head.plan.loads[0].clone(), head.plan.cells[0].variant.clone());
        let spec = |&(name, connections): &(&str, u32)| LoadSpec { name: name.into(), connections, ..load.clone() };
        let cell = |&(name, _): &(&str, u32)| Cell {
            name: name.into(),
            variant: variant.clone(),
            load: name.into(),
            role: Role::Baseline,
        };
        head.plan.loads = steps.iter().map(spec).collect();
        head.plan.cells = steps.iter().map(cell).collect();
        head.check = Some(Box::new(self.seen(steps.iter().map(|&(name, c)| (name.to_owned(), c)).collect())));
        let limit = head.check.as_ref().and_then(|check| check.running.limit(2)).map(|limit| limit.value);
        trials.iter_mut().for_each(|trial| trial.settings.worker_limit = limit.filter(|_| self.kind != Kind::Nginx));
        Run { head, trials }
    }

    fn seen(&self, climb: Vec<(String, u32)>) -> Check {
        let held = WorkerMemory {
            measure: if self.inherited == 0 { Measure::Unshared } else { Measure::Anonymous },
            workers: 10,
            largest: self.worker,
            total: 10 * self.worker,
            inherited: self.inherited,
        };
        let pools = self.children.map(|children| Pool {
            name: "www".into(),
            listen: "/run/x".into(),
            settings: vec![setting(&("pm.max_children", "pm.max_children", children))],
            root: 9,
            workers: Some(held),
        });
        let of_pool = self.children.map(|_| ("www".to_owned(), held));
        Check {
            budget_ns: 1,
            took_ns: 1,
            running: Running {
                kind: self.kind,
                root: Some(7),
                file: Some("/etc/apache2/apache2.conf".into()),
                workers: Some(held),
                somaxconn: self.somaxconn,
                cpus: self.cpus,
                settings: self.settings.iter().map(setting).collect(),
                pools: pools.into_iter().collect(),
                group: self.group.map(|limit| MemoryGroup {
                    directory: "/g".into(),
                    v2: true,
                    limit,
                    used: Some(10 * self.worker),
                }),
                ..Running::default()
            },
            page: Some(Page { status: self.status, time_us: 20_000, is_static: self.is_static, ..Page::default() }),
            before: Some(Door { others: self.held.max(self.others), idle: self.held, ..Door::default() }),
            after: std::iter::once((String::new(), held)).chain(of_pool).collect(),
            work: self.work.map(|work| ("www".to_owned(), work)).into_iter().collect(),
            queues: self.waiting.map(|queue| ("www".to_owned(), queue)).into_iter().collect(),
            others: self.others_ticks.map(|(calm_ticks, ticks)| Others {
                cpus: 2,
                calm_ns: SECOND,
                window_ns: 10 * SECOND,
                programs: vec![Program { name: "make".into(), pid: 3, calm_ticks, ticks }],
            }),
            summit: self.summit,
            climb,
        }
    }
}

/// The next step, what it is about, and the value to try.
#[track_caller]
fn check(server: &Server, id: &str, name: Option<&str>, to: Option<&str>) {
    let checked = judge(&server.run()).unwrap();
    let change = &checked.step.change;
    assert_eq!((checked.step.id, change.name.as_deref(), change.to.as_deref()), (id, name, to), "{change:?}");
}

/// A pause of the machine in the last window, too, in which next to nothing was answered, says nothing about the limit.
#[test]
fn one_window_with_a_pause_decides_nothing() {
    let few = vec![("MaxRequestWorkers", "MaxClients", "16")];
    let low = Server { settings: few, queue: (48, 511), processes: 16, summit: Summit::Time, ..Server::default() };
    let mut run = low.run();
    let same = run.trials[3].clone();
    run.trials.extend([same.clone(), same]);
    let pause = run.trials.last_mut().and_then(|trial| trial.load.as_mut()).unwrap();
    pause.counts.good /= 20;
    assert_eq!(judge(&run).unwrap().step.id, "step-raise");
}

/// All processes end after some connections, and none is there in one second of two.
#[test]
fn processes_that_end_are_let_live() {
    let few = vec![("MaxConnectionsPerChild", "MaxRequestsPerChild", "100")];
    let server = Server { settings: few, queue: (20, 511), processes: 4, summit: Summit::Time, ..Server::default() };
    let mut run = server.run();
    for trial in &mut run.trials {
        trial.settings.values.insert("MaxConnectionsPerChild".to_owned(), "100".to_owned());
        let load = trial.load.as_mut().unwrap();
        let window = load.started_ns..load.ended_ns;
        load.counts.connects = 400 * ((window.end - window.start) / SECOND);
        let loaded = trial.readings.rows.iter_mut().filter(|row| window.contains(&row.at_ns)).skip(1).step_by(2);
        loaded.for_each(|row| row.set(Column::TreeWorkers, 0));
    }
    let step = judge(&run).unwrap().step;
    let change = step.change;
    let said = (step.id, change.name.as_deref(), change.from.as_deref(), change.to.as_deref());
    let expected =
        ("step-processes-ending", Some("MaxRequestsPerChild (= MaxConnectionsPerChild)"), Some("100"), Some("0"));
    assert_eq!(said, expected);
}

/// Whoever had the CPUs before anything was sent comes before all that the CPUs have to do with.
#[test]
fn where_others_have_the_cpus_it_cannot_be_told() {
    let busy = || Server { others_ticks: Some((150, 1300)), ..Server::default() };
    let few = vec![("MaxRequestWorkers", "MaxClients", "16")];
    for server in [
        busy(),
        Server { cores: 1.9, ..busy() },
        Server { at_once: 64, summit: Summit::Ceiling, ..busy() },
        Server { summit: Summit::Time, ..busy() },
        Server { settings: few.clone(), queue: (20, 511), processes: 16, ..busy() },
    ] {
        check(&server, "step-others", None, None);
        // A database has nothing to do before the server has; a little is in nobody's way.
        for ticks in [(0, 1500), (10, 1500), (100, 290)] {
            let quiet = judge(&Server { others_ticks: Some(ticks), ..server.clone() }.run()).unwrap();
            let without = judge(&Server { others_ticks: None, ..server.clone() }.run()).unwrap();
            let said = |checked: &Checked| (checked.step.id, checked.step.change.to.clone());
            assert_eq!(said(&quiet), said(&without));
            assert_ne!(quiet.step.id, "step-others");
        }
    }
    // They have a third of the CPUs, and the rest lies idle: a limit is a limit.
    let room = || Server { others_ticks: Some((70, 700)), ..Server::default() };
    let low = Server { settings: few, queue: (48, 511), processes: 16, ..room() };
    check(&low, "step-raise", Some("MaxClients (= MaxRequestWorkers)"), Some("64"));
    check(&room(), "step-not-found", None, None);
    // Memory is as small whoever has the CPUs.
    let large = Server { worker: 100 << 20, ..busy() };
    assert_eq!(judge(&large.run()).unwrap().step.id, "step-memory");
}

#[test]
fn a_server_that_is_well_is_not_accused() {
    check(&Server { at_once: 64, summit: Summit::Ceiling, ..Server::default() }, "step-ceiling", None, None);
    check(&Server { at_once: 64, summit: Summit::Files, ..Server::default() }, "step-files", None, None);
    check(&Server { cores: 1.9, ..Server::default() }, "step-cpu", None, None);
    // All that a quota leaves it.
    check(&Server { cores: 0.49, cpus: Some(0.5), ..Server::default() }, "step-cpu", None, None);
    check(&Server { cores: 0.49, ..Server::default() }, "step-not-found", None, None);
    check(&Server::default(), "step-not-found", None, None);
    assert!(!judge(&Server { cores: 1.9, ..Server::default() }.run()).unwrap().step.is_fault);
}

#[test]
fn a_limit_that_is_too_low() {
    let low = || Server {
        settings: vec![("MaxRequestWorkers", "MaxClients", "16")],
        queue: (48, 511),
        processes: 16,
        ..Server::default()
    };
    check(&low(), "step-raise", Some("MaxClients (= MaxRequestWorkers)"), Some("64"));
    // The CPU leaves room for no more than twice as many, and memory for fewer still.
    check(&Server { cores: 0.9, ..low() }, "step-raise", Some("MaxClients (= MaxRequestWorkers)"), Some("32"));
    let tight = Server { group: Some(300 << 20), ..low() };
    check(&tight, "step-raise", Some("MaxClients (= MaxRequestWorkers)"), Some("27"));
    // A queue before processes that are still being started is no proof.
    check(&Server { processes: 9, at_once: 9, ..low() }, "step-not-found", None, None);
    // With a full CPU the same limit is right.
    check(&Server { cores: 1.95, ..low() }, "step-cpu", None, None);
    let pool = Server { kind: Kind::ApacheEvent, children: Some("16"), settings: vec![], ..Server::default() };
    check(&pool, "step-raise-pool", Some("pm.max_children"), Some("64"));
}

#[test]
fn threads_that_nobody_counts() {
    let server = |kind| Server { kind, settings: vec![], takes_in: true, ..Server::default() };
    check(&server(Kind::Other), "step-threads", None, None);
    let ceiling = Server { summit: Summit::Ceiling, ..server(Kind::Other) };
    check(&ceiling, "step-threads", None, None);
    check(&Server { at_once: 64, ..ceiling }, "step-ceiling", None, None);
    // Where the limit is known it has a name, and a pool behind the server has one, too.
    let settings = vec![("MaxRequestWorkers", "MaxClients", "16")];
    let apache = Server { settings, processes: 16, ..server(Kind::ApachePrefork) };
    check(&apache, "step-raise", Some("MaxClients (= MaxRequestWorkers)"), Some("64"));
    assert!(judge(&apache.run()).unwrap().others.is_empty());
    let pool = Server { children: Some("16"), ..server(Kind::Nginx) };
    check(&pool, "step-raise-pool", Some("pm.max_children"), Some("64"));
    assert!(judge(&pool.run()).unwrap().others.is_empty());
}

/// The server's own limit has nothing to do with a pool that is full.
#[test]
fn what_is_said_of_a_pool_is_said_of_no_other_limit() {
    let pool = |kind| Server { kind, children: Some("16"), settings: vec![], ..Server::default() };
    let others =
        |server: &Server| judge(&server.run()).unwrap().others.iter().map(|other| other.id).collect::<Vec<_>>();
    assert_eq!(others(&pool(Kind::ApacheEvent)), Vec::<&str>::new());
    // Also where the climb ended for another reason than that more brought nothing.
    let ceiling = Server { summit: Summit::Ceiling, ..pool(Kind::ApacheEvent) };
    check(&ceiling, "step-raise-pool", Some("pm.max_children"), Some("64"));
    assert_eq!(others(&ceiling), Vec::<&str>::new());
    // A limit that is as it should be is the pool's, of nginx as well.
    for kind in [Kind::ApacheEvent, Kind::Nginx] {
        check(&Server { cores: 1.6, ..pool(kind) }, "step-limit-reached", Some("pm.max_children"), None);
        let right = judge(&Server { cores: 1.95, ..pool(kind) }.run()).unwrap();
        assert_eq!((right.step.id, right.others), ("step-cpu", vec![]));
    }
}

/// nginx has two programs behind it, and only one of them makes this page; that both have 16 workers is chance.
#[test]
fn a_pool_that_does_nothing_is_not_accused() {
    let pool = |work| Server { kind: Kind::Nginx, children: Some("16"), settings: vec![], work, ..Server::default() };
    let work = |most, ticks| pool(Some(PoolWork { most, ticks }));
    check(&work(16, 400), "step-raise-pool", Some("pm.max_children"), Some("64"));
    check(&work(16, 3), "step-not-found", None, None);
    check(&work(2, 400), "step-not-found", None, None);
    check(&Server { is_static: true, ..pool(None) }, "step-not-found", None, None);
}

#[test]
fn a_limit_that_memory_does_not_hold() {
    let high = Server { group: Some(300 << 20), summit: Summit::Memory, ..Server::default() };
    check(&high, "step-memory", Some("MaxRequestWorkers"), Some("27"));
    let pool = Server { kind: Kind::ApacheEvent, children: Some("100"), settings: vec![], worker: 10 << 20, ..high };
    check(&pool, "step-pool-memory", Some("pm.max_children"), Some("27"));
    // 8 GiB, of which 6 are free.
    check(&Server { worker: 60 << 20, ..Server::default() }, "step-memory", Some("MaxRequestWorkers"), Some("98"));
    // A worker is small, and the program that it starts is not; one that runs in any case is no part of a request.
    let starting = Server { worker: 1 << 20, programs: (0, 39 << 20), ..high.clone() };
    check(&starting, "step-memory", Some("MaxRequestWorkers"), Some("6"));
    check(&Server { programs: (39 << 20, 39 << 20), ..starting.clone() }, "step-not-found", None, None);
    // Those that wait for a lock, or are let in four at a time, take no memory.
    check(&Server { programs_at_once: 4, ..starting.clone() }, "step-not-found", None, None);
    check(&Server { is_static: true, ..starting }, "step-not-found", None, None);
    // Who may not see what is shared accuses nobody of what may be counted twice, and names the number that fits in any case.
    let unseen = Server { inherited: 9 << 20, settings: vec![], ..high.clone() };
    check(&unseen, "step-not-found", None, None);
    check(&Server { inherited: 4 << 20, ..unseen }, "step-memory", Some("MaxRequestWorkers"), Some("27"));
    // What its own workers take while they work is nobody else's: 80 fit into 8 GiB, also where half of it was in use then.
    let working = Server {
        settings: vec![("MaxRequestWorkers", "MaxRequestWorkers", "80")],
        worker: 60 << 20,
        available: (6 << 10, 4 << 10),
        ..Server::default()
    };
    check(&working, "step-not-found", None, None);
}

#[test]
fn doors_that_are_held_or_too_narrow() {
    let held = Server {
        settings: vec![("MaxRequestWorkers", "MaxRequestWorkers", "40")],
        held: 24,
        queue: (48, 511),
        processes: 40,
        ..Server::default()
    };
    check(&held, "step-keep-alive", Some("KeepAlive"), None);
    // Kept connections beside free workers are what KeepAlive is for; where no worker is free they are in the way.
    let kept = Server { held: 45, ..Server::default() };
    check(&kept, "step-not-found", None, None);
    assert!(judge(&kept.run()).unwrap().others.is_empty());
    check(&Server { held: 45, others: 150, ..Server::default() }, "step-keep-alive", Some("KeepAlive"), None);
    let all = Server { held: 150, summit: Summit::NoAnswer, ..Server::default() };
    check(&all, "step-held-all", Some("KeepAlive"), None);
    // Said once.
    assert!(judge(&all.run()).unwrap().others.is_empty());
    // Threads do not wait for clients that say nothing.
    let event = Server { kind: Kind::ApacheEvent, held: 100, ..Server::default() };
    check(&event, "step-not-found", None, None);
    let narrow = Server { queue: (2, 1), overflows: 5.0, ..Server::default() };
    check(&narrow, "step-backlog", Some("ListenBacklog"), Some("511"));
    // Of how many visitors nobody knows.
    let step = judge(&narrow.run()).unwrap().step;
    assert_eq!(step.change.numbers.get(Quantity::TurnedAway), None);
    let overflowing = |kind, limit, somaxconn| Server {
        kind,
        queue: (limit + 1, limit),
        overflows: 5.0,
        somaxconn: Some(somaxconn),
        ..Server::default()
    };
    // The kernel allows less than Apache asks for by default.
    let kernel = overflowing(Kind::ApachePrefork, 40, 40);
    check(&kernel, "step-backlog", Some("net.core.somaxconn"), Some("511"));
    let old = overflowing(Kind::ApachePrefork, 128, 128);
    check(&old, "step-queue-full", Some("net.core.somaxconn"), Some("511"));
    // Twice what did not suffice.
    let full = overflowing(Kind::ApachePrefork, 511, 4096);
    check(&full, "step-queue-full", Some("ListenBacklog"), Some("1022"));
    // A program of one's own that asks for less than the kernel allows.
    check(&overflowing(Kind::Other, 5, 4096), "step-backlog", Some("listen(2) backlog"), Some("511"));
}

#[test]
fn a_full_queue_before_php() {
    let waiting = |limit, most, full| {
        let queue = PoolQueue { limit, most, looks: 20, full };
        let children = Some("16");
        Server { kind: Kind::ApacheEvent, children, waiting: Some(queue), overflows: 5.0, ..Server::default() }
    };
    let short = waiting(1, 2, 20);
    check(&short, "step-pool-queue", Some("listen.backlog"), Some("511"));
    // The server's own queue is not accused: it fills up behind the other.
    let checked = judge(&short.run()).unwrap();
    assert_ne!(checked.diagnosis.unwrap().primary.cause, Cause::AcceptQueueOverflow);
    check(&waiting(511, 512, 20), "step-pool-queue", Some("pm.max_children"), Some("64"));
    // Said once.
    assert!(judge(&waiting(511, 512, 20).run()).unwrap().others.is_empty());
    // No more workers fit.
    let small = Server { worker: 700 << 20, ..waiting(511, 512, 20) };
    let checked = judge(&small.run()).unwrap();
    let mut all = std::iter::once(&checked.step).chain(&checked.others);
    let named = all.find(|advice| advice.id == "step-pool-queue").unwrap();
    assert_eq!(named.change.name.as_deref(), Some("listen.backlog"));
    // One look in twenty, and a queue that never was full.
    check(&waiting(511, 512, 1), "step-raise-pool", Some("pm.max_children"), Some("64"));
    check(&waiting(511, 300, 0), "step-raise-pool", Some("pm.max_children"), Some("64"));
    // A server that waits there answers nothing, one that is turned away says 502.
    let silent = Server { summit: Summit::NoAnswer, ..waiting(1, 2, 6) };
    check(&silent, "step-pool-queue", Some("listen.backlog"), Some("511"));
    check(&Server { status: 502, ..waiting(1, 2, 6) }, "step-pool-queue", Some("listen.backlog"), Some("511"));
    check(&Server { status: 404, ..waiting(1, 2, 6) }, "step-status", None, None);
    // The kernel allows no more.
    let kernel = Server { somaxconn: Some(40), ..waiting(40, 41, 20) };
    check(&kernel, "step-pool-queue", Some("net.core.somaxconn"), Some("511"));
}

/// Visitors with slow lines are no matter of the server's.
#[test]
fn answers_that_visitors_take_slowly() {
    let mut run = Server::default().run();
    let rows = run.trials.iter_mut().flat_map(|trial| &mut trial.readings.rows);
    rows.for_each(|row| row.set(Column::TcpSending, 40));
    let found = judge(&run).unwrap().diagnosis.unwrap();
    assert_ne!(found.primary.cause, Cause::Network);
}
