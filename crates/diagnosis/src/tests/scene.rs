//! A trial built from a few numbers: idle readings, a load with steady counters and levels, idle readings again.

use model::SECOND;
use model::check::{Check, Door, Kind, Running, Summit};
use model::latency::Latency;
use model::load::{Counts, Failure, Generator, LoadInterval, LoadResult};
use model::plan::{Options, parse};
use model::reading::{Column, Reading, Readings};
use model::run::{Anchor, HostFacts, RunEnd, RunHead};
use model::status::{Around, FpmStatus, ServerStatus, WebStatus};
use model::trial::{Beside, EffectiveSettings, Outcome, Share, Trial};
use std::collections::BTreeMap;
use std::path::Path;

/// Seconds of idle readings before and after the load.
const IDLE: u64 = 3;

/// See [`Scene::build`].
#[derive(Clone)]
pub(super) struct Scene {
    cpus: u32,
    server_cpus: u32,
    connections: u32,
    good: f64,
    failed: f64,
    generator: f64,
    limit: Option<u64>,
    group_mib: Option<u64>,
    seconds: u64,
    outcome: Outcome,
    counters: BTreeMap<Column, f64>,
    levels: BTreeMap<Column, u64>,
    dips: BTreeMap<Column, u64>,
    first: Option<(u64, Column, u64)>,
    before: BTreeMap<Column, u64>,
    rows: Option<(Vec<Reading>, std::ops::Range<u64>)>,
    held: u64,
    pool: Option<(u64, u64, u64, u64)>,
    beside: u32,
    fastest_us: Option<u64>,
    queue_is_jumped: bool,
    unsent: f64,
    others: f64,
    kept: Option<(u64, u64)>,
    behind: &'static str,
    quota: Option<f64>,
    ending: Option<(u64, f64)>,
    in_flight: Option<u64>,
    idle: u64,
    share: Share,
}

impl Scene {
    /// A host of so many CPUs; an ungrouped server under 10 s of one connection.
    pub(super) fn new(cpus: u32) -> Scene {
        Scene {
            cpus,
            server_cpus: 0,
            connections: 1,
            good: 0.0,
            failed: 0.0,
            generator: 0.1,
            limit: None,
            group_mib: None,
            seconds: 10,
            outcome: Outcome::Complete,
            counters: BTreeMap::new(),
            levels: BTreeMap::new(),
            dips: BTreeMap::new(),
            first: None,
            before: BTreeMap::new(),
            rows: None,
            held: 0,
            pool: None,
            beside: 0,
            fastest_us: None,
            queue_is_jumped: false,
            unsent: 0.0,
            others: 0.0,
            kept: None,
            behind: "",
            quota: None,
            ending: None,
            in_flight: None,
            idle: 0,
            share: Share::default(),
        }
    }

    /// The server is pinned to so many CPUs.
    pub(super) fn pinned(self, server_cpus: u32) -> Scene {
        Scene { server_cpus, ..self }
    }

    /// Connections, all of them always with a request in flight, and good answers per second.
    pub(super) fn load(self, connections: u32, good: f64) -> Scene {
        Scene { connections, good, ..self }
    }

    /// Another load beside it, of so many connections that always have a request in flight.
    pub(super) fn beside(self, beside: u32) -> Scene {
        Scene { beside, ..self }
    }

    /// Failed requests per second.
    pub(super) fn failed(self, failed: f64) -> Scene {
        Scene { failed, ..self }
    }

    /// The generator's share of its one thread.
    pub(super) fn generator(self, generator: f64) -> Scene {
        Scene { generator, ..self }
    }

    /// The worker limit in force.
    pub(super) fn limit(self, limit: u64) -> Scene {
        Scene { limit: Some(limit), ..self }
    }

    /// The server lives in a group of so many MiB.
    pub(super) fn grouped(self, mib: u64) -> Scene {
        Scene { group_mib: Some(mib), ..self }
    }

    /// Seconds of load, a reading each; 0 leaves no reading at all.
    pub(super) fn seconds(self, seconds: u64) -> Scene {
        Scene { seconds, ..self }
    }

    /// How the trial ended.
    pub(super) fn outcome(self, outcome: Outcome) -> Scene {
        Scene { outcome, ..self }
    }

    /// Growth per second during the load; nothing grows outside it.
    pub(super) fn counters(mut self, counters: &[(Column, f64)]) -> Scene {
        self.counters.extend(counters.iter().copied());
        self
    }

    /// Levels during the load, and outside it unless `before` says otherwise.
    pub(super) fn levels(mut self, levels: &[(Column, u64)]) -> Scene {
        self.levels.extend(levels.iter().copied());
        self
    }

    /// Levels in one second of two of the load.
    pub(super) fn dips(mut self, levels: &[(Column, u64)]) -> Scene {
        self.dips.extend(levels.iter().copied());
        self
    }

    /// A level in the first so many seconds of the load.
    pub(super) fn first(self, seconds: u64, column: Column, level: u64) -> Scene {
        Scene { first: Some((seconds, column, level)), ..self }
    }

    /// Levels before the load.
    pub(super) fn before(mut self, levels: &[(Column, u64)]) -> Scene {
        self.before.extend(levels.iter().copied());
        self
    }

    /// A check of a prefork of which idle connections hold so many workers.
    pub(super) fn held(self, held: u64) -> Scene {
        Scene { held, ..self }
    }

    /// Processes of the pool that do not work.
    pub(super) fn idle(self, idle: u64) -> Scene {
        Scene { idle, ..self }
    }

    /// PHP-FPM in every second: the most processes, those at work, requests that wait, how often the most was reached.
    pub(super) fn pool(self, limit: u64, active: u64, queue: u64, reached: u64) -> Scene {
        Scene { pool: Some((limit, active, queue, reached)), ..self }
    }

    /// What the first good answer took, in microseconds; all others took as long as requests in flight and answers per second give.
    pub(super) fn fastest(self, us: u64) -> Scene {
        Scene { fastest_us: Some(us), ..self }
    }

    /// The plan has another server behind it.
    pub(super) fn behind(self) -> Scene {
        Scene { behind: "[service.b]\nkind = \"nginx\"\n", ..self }
    }

    /// The server's group may use so many CPUs.
    pub(super) fn quota(self, cpus: f64) -> Scene {
        Scene { quota: Some(cpus), ..self }
    }

    /// The plan has something behind it that speaks no HTTP.
    pub(super) fn database(self) -> Scene {
        Scene { behind: "[service.b]\nkind = \"command\"\ncommand = [\"db\"]\nready = [\"db-ping\"]\n", ..self }
    }

    /// What the groups around the server leave it, which are none of ours.
    pub(super) fn share(self, share: Share) -> Scene {
        Scene { share, ..self }
    }

    /// Requests in flight, where there are more connections than a timetable needs at a time.
    pub(super) fn in_flight(self, requests: u64) -> Scene {
        Scene { in_flight: Some(requests), ..self }
    }

    /// An Apache whose processes end after so many connections, and connections per second.
    pub(super) fn ending(self, after: u64, connects: f64) -> Scene {
        Scene { ending: Some((after, connects)), ..self }
    }

    /// One answer of each second is as fast as the first.
    pub(super) fn jumped(self) -> Scene {
        Scene { queue_is_jumped: true, ..self }
    }

    /// Requests per second that never left this machine.
    pub(super) fn unsent(self, unsent: f64) -> Scene {
        Scene { unsent, ..self }
    }

    /// Requests per second that the server counted and nobody of ours sent.
    pub(super) fn others(self, others: f64) -> Scene {
        Scene { others, ..self }
    }

    /// An Apache prefork that tells so many workers writing and so many that keep a connection.
    pub(super) fn kept(self, writing: u64, kept: u64) -> Scene {
        Scene { kept: Some((writing, kept)), ..self }
    }

    /// Readings as they are, and the seconds in which the load was on.
    pub(super) fn rows(self, rows: Vec<Reading>, load: std::ops::Range<u64>) -> Scene {
        Scene { rows: Some((rows, load)), ..self }
    }

    /// What the pool told: at the start of each second, and that nothing had happened before.
    fn told(&self, load: &std::ops::Range<u64>) -> Vec<ServerStatus> {
        let Some((_, active, queue, reached)) = self.pool else { return vec![] };
        let look = |second: u64, reached| {
            let fpm = FpmStatus {
                active,
                idle: self.idle,
                queue: Some(queue),
                queue_limit: Some(511),
                accepted: 0,
                limit_reached: reached,
            };
            ServerStatus { at_ns: second * SECOND, took_ns: 0, web: None, fpm: Some(fpm) }
        };
        let before = look(load.start.saturating_sub(1), 0);
        [before].into_iter().chain(load.clone().map(|second| look(second, reached))).collect()
    }

    /// Apache's scoreboard in each second.
    fn scoreboards(&self, load: &std::ops::Range<u64>) -> Vec<ServerStatus> {
        let Some((writing, kept)) = self.kept else { return vec![] };
        let web = WebStatus::Apache { places: [('W', writing), ('K', kept)].into(), served: None };
        let look = |second| ServerStatus { at_ns: second * SECOND, web: Some(web.clone()), ..ServerStatus::default() };
        load.clone().map(look).collect()
    }

    /// What the server counted, others' requests included.
    fn counted(&self, load: &std::ops::Range<u64>) -> Around {
        let length = (load.end - load.start) as f64;
        let look = |second, served| {
            let web = Some(WebStatus::Embedded { served });
            ServerStatus { at_ns: second * SECOND, web, ..ServerStatus::default() }
        };
        let served = ((self.good + self.failed + self.others) * length) as u64;
        Around { before: look(load.start, 0), after: look(load.end, served), left: 0 }
    }

    /// Head and trial.
    pub(super) fn build(&self) -> (RunHead, Trial) {
        let (rows, load) = self.rows.clone().unwrap_or_else(|| self.steady());
        let readings = Readings { rows, notes: vec![] };
        let mut settings = EffectiveSettings { worker_limit: self.limit, ..EffectiveSettings::default() };
        settings.values.extend(self.kept.map(|_| ("MPM".to_owned(), "prefork".to_owned())));
        settings.values.extend(self.pool.map(|(limit, ..)| ("pm.max_children".to_owned(), limit.to_string())));
        let after = self.ending.map(|(after, _)| ("MaxConnectionsPerChild".to_owned(), after.to_string()));
        settings.values.extend(after);
        let trial = Trial {
            block: 0,
            position: 0,
            cell: String::new(),
            outcome: self.outcome.clone(),
            began_ns: 0,
            settings,
            share: Some(self.share).filter(|_| self.group_mib.is_none()),
            preflight: None,
            load: Some(self.load_result(&load)),
            rate: None,
            probe: None,
            beside: (self.beside > 0).then(|| self.other_load(&load)).into_iter().collect(),
            others: None,
            door: (self.held > 0).then(|| Door { others: self.held, idle: self.held, ..Door::default() }),
            readings,
            notes: vec![],
            status: [self.told(&load), self.scoreboards(&load)].concat(),
            around: (self.others > 0.0).then(|| self.counted(&load)),
            accounts: None,
            log_tail: String::new(),
            logged: None,
            workers: None,
        };
        (self.head(), trial)
    }

    fn steady(&self) -> (Vec<Reading>, std::ops::Range<u64>) {
        let load = IDLE..IDLE + self.seconds.max(1);
        if self.seconds == 0 {
            return (vec![], load);
        }
        let row = |second: u64| {
            let mut row = Reading::empty(second * SECOND);
            let loaded = second.clamp(load.start, load.end) - load.start;
            self.counters.iter().for_each(|(&column, rate)| row.set(column, (rate * loaded as f64) as u64));
            self.levels.iter().for_each(|(&column, &level)| row.set(column, level));
            if load.contains(&second) && second.is_multiple_of(2) {
                self.dips.iter().for_each(|(&column, &level)| row.set(column, level));
            }
            if let Some((_, column, level)) =
                self.first.filter(|&(seconds, ..)| load.contains(&second) && second < load.start + seconds)
            {
                row.set(column, level);
            }
            if second < load.start {
                self.before.iter().for_each(|(&column, &level)| row.set(column, level));
            }
            if let Some(mib) = self.group_mib {
                row.set(Column::GroupLimit, mib << 20);
            }
            row
        };
        ((0..=load.end + IDLE).map(row).collect(), load)
    }

    fn load_result(&self, load: &std::ops::Range<u64>) -> LoadResult {
        let length = load.end - load.start;
        let good = (self.good * length as f64) as u64;
        let failed = (self.failed * length as f64) as u64;
        let unsent = (self.unsent * length as f64) as u64;
        let typical = (f64::from(self.connections) / self.good.max(1.0) * 1e6) as u64;
        let second = |second: u64| {
            let mut total = Latency::new();
            (0..3).for_each(|_| total.record(typical));
            let is_fast = self.queue_is_jumped || second == load.start;
            self.fastest_us.filter(|_| is_fast).into_iter().for_each(|us| total.record(us));
            LoadInterval {
                start_ns: second * SECOND,
                length_ns: SECOND,
                counts: Counts::default(),
                total: total.pack(),
            }
        };
        LoadResult {
            intervals: load.clone().map(second).filter(|_| self.fastest_us.is_some()).collect(),
            connections: self.connections,
            started_ns: load.start * SECOND,
            ended_ns: load.end * SECOND,
            counts: Counts {
                good,
                failed: BTreeMap::from([(Failure::Status, failed), (Failure::Local, unsent)]),
                connects: self.ending.map_or(0, |(_, connects)| (connects * length as f64) as u64),
                ..Counts::default()
            },
            in_flight_ns: self.in_flight.unwrap_or(self.connections.into()) * length * SECOND,
            generator: Generator {
                threads: 1,
                cpu_ns: (self.generator * length as f64 * SECOND as f64) as u64,
                cpus: vec![],
                away: None,
            },
            ..LoadResult::empty()
        }
    }

    fn other_load(&self, load: &std::ops::Range<u64>) -> Beside {
        let generator = Generator { cpu_ns: 0, ..LoadResult::empty().generator };
        let other = Scene { connections: self.beside, ..self.clone() };
        Beside { name: "static".to_owned(), load: LoadResult { generator, ..other.load_result(load) } }
    }

    fn head(&self) -> RunHead {
        let memory = self.group_mib.map(|mib| format!("memory = \"{mib}M\"\n"));
        let quota = self.quota.map(|cpus| format!("cpu = {cpus}\n"));
        let kept: String = memory.into_iter().chain(quota).collect();
        let confine = if kept.is_empty() { kept } else { format!("[confine]\n{kept}") };
        let service = self.behind;
        let text = format!(
            "{confine}[server]\nkind = \"embedded\"\n{service}[load.a]\npath = \"/\"\nconnections = {}\nduration = \"1s\"\n",
            self.connections
        );
        let (plan, plan_text) = parse(&text, Path::new("scene.toml"), &Options::default()).unwrap();
        RunHead {
            id: String::new(),
            plan,
            plan_text,
            seed: 0,
            anchor: Anchor::default(),
            host: HostFacts { cpus: self.cpus, ..HostFacts::default() },
            version: String::new(),
            end: RunEnd::Complete,
            server_cpus: (0..self.server_cpus).collect(),
            load_cpus: (self.server_cpus..self.cpus).filter(|_| self.server_cpus > 0).collect(),
            check: (self.held > 0).then(|| {
                let running = Running { kind: Kind::ApachePrefork, ..Running::default() };
                let summit = Summit::Plateau;
                Box::new(Check {
                    budget_ns: 0,
                    took_ns: 0,
                    running,
                    page: None,
                    before: None,
                    after: vec![],
                    work: vec![],
                    queues: vec![],
                    others: None,
                    summit,
                    climb: vec![],
                })
            }),
        }
    }
}
