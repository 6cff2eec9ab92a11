//! What one trial shows, extracted once: the numbers that rules look at, each from the best source there is.
//!
//! Counters are taken over the whole window, because a total stays exact however late a reading came; levels are the median of
//! the readings inside the window (of one or two readings, their mean). The server's own group is preferred; where it or its
//! pressure is missing, the host's number stands in and says so ([`Whose`]). Nothing is judged here, and what could not be read
//! is `None`, never 0.

mod alone;
mod behind;
mod ending;
mod machine;
mod memory;
mod pool;
mod watched;
mod window;

pub use behind::Behind;
pub use ending::Ending;
pub use machine::Machine;
pub use memory::{Memory, Size};
pub use pool::{Pool, Shut};

use crate::number::{Numbers, Quantity};
use crate::thresholds::{RETRY, SWAP_ON_DISK};
use alone::Paces;
use model::load::{Failure, LoadResult};
use model::plan::{Cell, LoadSpec};
use model::reading::{Column, CpuShares};
use model::run::RunHead;
use model::trial::{Stop, Trial};
use window::Window;

/// Clock ticks per second in /proc, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Bytes in a sector of /proc/diskstats.
const SECTOR: f64 = 512.0;

/// Periods from which the time between two readings is a gap: one appointment missed is two, and a little jitter.
const GAP_PERIODS: f64 = 2.5;

/// Whose counters a number was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The server's own group.
    Group,
    /// The whole host.
    Host,
}

/// Shares of time in which tasks waited for a resource (PSI).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pressure {
    /// Whose tasks.
    pub whose: Whose,
    /// At least one waited.
    pub some: f64,
    /// All that were not idle waited.
    pub full: f64,
}

/// What one trial shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// How well it was watched.
    pub observed: Observed,
    /// Whether the server has a group of its own, so that what it does is told from what the host does.
    pub grouped: bool,
    /// Whether something around the server that is none of ours limits its memory; `None` where nobody looked.
    pub bounded: Option<bool>,
    /// Whether the plan has other servers behind it or beside it, for which a request may wait where nobody sees it.
    pub behind: bool,
    /// The guard that ended it, if one did.
    pub stopped: Option<Stop>,
    /// What was asked of the server, and what came back.
    pub offered: Offered,
    /// The processors.
    pub cpu: Processors,
    /// Memory and swap.
    pub memory: Memory,
    /// The disks.
    pub disk: Disks,
    /// The server's workers and its door.
    pub workers: Workers,
    /// The network, as the kernel tells of it.
    pub network: Network,
    /// Requests or connections of others for each one of ours, where there were enough to doubt the window.
    pub foreign: Option<f64>,
}

/// How well the trial was watched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// Readings in the window.
    pub readings: u32,
    /// Seconds they span.
    pub seconds: f64,
    /// Share of the load's time in gaps between readings that were too long.
    pub unwatched: f64,
    /// Share of the load's time in the longest of these gaps.
    pub gap_share: f64,
    /// Seconds of the load between two readings, at most.
    pub longest_gap: f64,
    /// Major faults of the sampler in the window.
    pub faults: u64,
}

/// What was asked of the server, and what came back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offered {
    /// Whether it was a load of ours; what is only watched has what was seen at the door instead, and no answers are counted.
    pub ours: bool,
    /// Connections of all loads of the trial, each with one request at a time: they meet one limit.
    pub connections: f64,
    /// Those of the cell's own load alone: what is answered, and what an answer takes, is of it.
    pub own_connections: f64,
    /// Requests of the cell's own load in flight, mean.
    pub own_concurrency: f64,
    /// Requests of all loads in flight, mean.
    pub concurrency: f64,
    /// Good answers per second.
    pub goodput: f64,
    /// Good answers.
    pub good: u64,
    /// Failed requests.
    pub failed: u64,
    /// Those of them that never left this machine.
    pub local_failures: u64,
    /// Seconds that a page takes alone, where the load's first answers show it.
    pub alone: Option<f64>,
    /// Seconds that the typical answer takes longer than the fastest of these, where that is most of what it takes.
    pub longer: Option<f64>,
    /// The generator's CPU time over what its threads can have, 0 to 1.
    pub generator_share: f64,
}

/// The processors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Processors {
    /// Where the host's CPU time went.
    pub host: Option<CpuShares>,
    /// CPUs of the host.
    pub host_cpus: f64,
    /// CPUs the server may run on.
    pub server_cpus: f64,
    /// Those of the host that it is pinned to, whatever its group may use of them.
    pub pinned_cpus: f64,
    /// CPUs the server kept busy, from its group, else from its processes; what stands behind it outside of that included.
    pub server_cores: Option<f64>,
    /// Those of them that what stands behind it kept busy, which may run on any.
    pub behind_cores: f64,
    /// CPUs kept busy by neither server nor generator.
    pub other_cores: Option<f64>,
    /// Largest one-minute load average.
    pub load_average: Option<f64>,
    /// Runnable tasks, median.
    pub runnable: Option<f64>,
    /// Share of the time in which a task of the server's group could have run and found no CPU.
    pub pressure: Option<f64>,
    /// Periods in which its limit of CPU time was used up, of those in which there was work, 0 to 1.
    pub throttled_periods: Option<f64>,
    /// Seconds in a second for which it was held back by that limit.
    pub throttled_time: Option<f64>,
}

/// The network.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Network {
    /// Segments sent again of all that were sent, 0 to 1.
    pub retransmits: Option<f64>,
    /// Segments sent again in a second.
    pub retransmits_each_second: Option<f64>,
    /// Use of the fullest link, 0 to 1.
    pub link_use: Option<f64>,
    /// Connections of the server that hold bytes the other end has not received, median.
    pub sending: Option<f64>,
    /// The same without as many as there are processes of the server at a disk in the same reading. Who waits for one in the midst of a write
    /// holds the socket, and that its bytes have arrived is not seen until the write goes on.
    pub stuck: Option<f64>,
}

/// The disks of the host, and the pressure they put on the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disks {
    /// Time spent waiting for them.
    pub pressure: Option<Pressure>,
    /// Bytes per second, both directions.
    pub bytes: Option<f64>,
    /// Share of time the busiest was busy.
    pub busy: Option<f64>,
    /// Operations under way, mean.
    pub queue: Option<f64>,
    /// Swap traffic of all traffic, 0 to 1.
    pub swap_share: Option<f64>,
    /// Readings in which a process of the server waited for one, of all, 0 to 1.
    pub asleep: Option<f64>,
}

/// The server's workers and its door.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workers {
    /// Requests it works on at once at most, from the effective settings.
    pub limit: Option<f64>,
    /// Most worker processes seen.
    pub most: Option<f64>,
    /// Busy worker processes, median.
    pub busy: Option<f64>,
    /// Workers of Apache that had nothing to do, median of what it told.
    pub ready: Option<f64>,
    /// Connections waiting to be accepted, median.
    pub queue: Option<f64>,
    /// Most of them seen.
    pub queue_most: Option<f64>,
    /// How many may wait.
    pub queue_limit: Option<f64>,
    /// Connections the host turned away in the window.
    pub overflows: Option<u64>,
    /// Them over the requests that ended, or over the seconds that requests were in flight, as each waits for [`RETRY`]: the larger.
    pub turned_away: Option<f64>,
    /// Each is one too many: those who asked were visitors, who come in bursts, and nobody knows of how many it is a part.
    pub each_counts: bool,
    /// Processes waiting for a file lock, median.
    pub lock_waiters: Option<f64>,
    /// Workers held by idle connections of others, median; only where somebody looked and a connection holds one.
    pub held: Option<f64>,
    /// When all were taken, a good part of them by connections that were only kept open; only where such a connection holds one.
    pub shut: Option<Shut>,
    /// Readings in which connections waited to be accepted, of all, 0 to 1.
    pub queued: Option<f64>,
    /// Accepted connections with a request that the server has not read, median; only where a request is no more than its head.
    pub unread: Option<f64>,
    /// Connections waiting to be accepted by another socket of the host, the fullest, median.
    pub queue_elsewhere: Option<f64>,
    /// How far requests have come in servers behind it, where that can be told.
    pub behind: Option<Behind>,
    /// How its processes end when they have had their connections, where they do.
    pub ending: Option<Ending>,
    /// PHP's processes behind it, when they told how they fared.
    pub pool: Option<Pool>,
}

impl Evidence {
    /// What `trial`, with its `load`, shows.
    ///
    /// # Panics
    /// Never when `cell` is one of the head's own plan.
    #[must_use]
    pub fn of(head: &RunHead, cell: &Cell, trial: &Trial, load: &LoadResult) -> Evidence {
        let window = Window::of(&trial.readings, load.started_ns, load.ended_ns);
        let spec = head.plan.load(cell);
        let beside = || trial.beside.iter().map(|beside| &beside.load);
        // Who else is there takes turns with it.
        let paces = Paces::of(spec, load).filter(|_| trial.beside.is_empty());
        let offered = Offered {
            ours: true,
            local_failures: load.counts.failed.get(&Failure::Local).copied().unwrap_or(0),
            alone: paces.as_ref().and_then(Paces::alone),
            longer: paces.as_ref().and_then(Paces::longer),
            connections: beside().map(|load| f64::from(load.connections)).sum::<f64>() + f64::from(spec.connections),
            own_connections: f64::from(spec.connections),
            own_concurrency: load.concurrency(),
            concurrency: beside().map(LoadResult::concurrency).sum::<f64>() + load.concurrency(),
            goodput: load.goodput(),
            good: load.counts.good,
            failed: load.counts.failures(),
            // Whoever never sleeps uses all it can have, and that says nothing of how much it had to do.
            generator_share: if spec.busy_poll { 0.0 } else { load.generator_share() },
        };
        let load_ns = load.ended_ns.saturating_sub(load.started_ns);
        // One on another machine takes nothing of this one's.
        let generator_cores = if load_ns == 0 || load.generator.away.is_some() {
            0.0
        } else {
            beside().chain([load]).map(|load| load.generator.cpu_ns as f64).sum::<f64>() / load_ns as f64
        };
        let holds = head.check.as_ref().is_some_and(|check| check.running.kind.holds_workers());
        let held = trial.door.filter(|_| holds).map(|door| door.idle.min(door.others) as f64);
        let behind = Behind::of((&head.plan, cell), &window, (spec, load));
        let workers = Workers { held, unread: unread(&window, spec), behind, ..Workers::of(&window, trial, load) };
        let ended = || beside().chain([load]).map(|load| load.counts.good + load.counts.failures()).sum::<u64>() as f64;
        let in_flight = offered.concurrency * load.seconds();
        let turned_away = workers.overflows.map(|times| turned_away(times as f64, ended(), in_flight));
        let workers = Workers { turned_away, ..workers };
        let machine = Machine::of(head, trial.share);
        let memory = Memory::of(&machine, &window, &offered, &workers, trial.workers.as_ref());
        Evidence {
            observed: Observed::of(&window),
            grouped: machine.grouped,
            bounded: trial.share.map(|share| share.memory.is_some()),
            behind: head.plan.services_of(head.plan.variant(cell)).next().is_some(),
            stopped: match trial.outcome {
                model::trial::Outcome::EndedEarly(stop) => Some(stop),
                _ => None,
            },
            cpu: Processors::of(&machine, &window, generator_cores),
            disk: Disks::of(&window, &memory),
            network: Network::of(&window),
            foreign: trial.foreign().map(|foreign| foreign.weight()),
            offered,
            memory,
            workers,
        }
    }

    /// Requests of the cell's own load that are in work at once: as many as asked for, no more than there are workers. A timetable has more
    /// connections than it uses in the mean.
    #[must_use]
    pub fn in_work(&self) -> f64 {
        self.workers.in_work(&self.offered).min(self.offered.own_concurrency.ceil()).max(1.0)
    }
}

impl Observed {
    fn of(window: &Window<'_>) -> Observed {
        // A reading may be late without harm, as counters lose nothing; what happened between two that are far apart is not known.
        let between = window.between();
        let longest = |gaps: &[f64]| gaps.iter().copied().fold(0.0, f64::max);
        let limit = window.period().map_or(f64::INFINITY, |period| period * GAP_PERIODS);
        let gaps: Vec<f64> = between.iter().copied().filter(|&seconds| seconds > limit).collect();
        let load: f64 = between.iter().sum();
        let of_load = |seconds: f64| if load > 0.0 { seconds / load } else { 0.0 };
        Observed {
            readings: u32::try_from(window.rows().len()).unwrap_or(u32::MAX),
            seconds: window.span().map_or(0.0, |span| span.seconds()),
            unwatched: of_load(gaps.iter().sum()),
            gap_share: of_load(longest(&gaps)),
            longest_gap: longest(&between),
            faults: window.delta(Column::SamplerFaults).unwrap_or(0),
        }
    }

    /// Its numbers, for a finding.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        Numbers::default()
            .with(Quantity::Readings, f64::from(self.readings))
            .with(Quantity::Observed, self.seconds)
            .with(Quantity::Unwatched, self.unwatched)
            .with(Quantity::LongestGap, self.longest_gap)
            .with(Quantity::MonitorFaults, self.faults as f64)
    }
}

impl Offered {
    /// Failed requests of all that ended, 0 to 1.
    #[must_use]
    pub fn failed_share(&self) -> f64 {
        let ended = self.good + self.failed;
        if ended == 0 { 0.0 } else { self.failed as f64 / ended as f64 }
    }
}

impl Processors {
    fn of(machine: &Machine, window: &Window<'_>, generator_cores: f64) -> Processors {
        let Machine { host_cpus, server_cpus, pinned_cpus, .. } = *machine;
        let host = window.span().and_then(|span| span.cpu());
        let of_group = window.rate(Column::GroupCpuNs).map(|ns| ns / 1e9);
        let of_ticks = || window.rise(Column::TreeCpuTicks).map(|ticks| ticks / TICKS_PER_SECOND);
        let of_tree = || window.rise(Column::TreeCpuNs).map(|ns| ns / 1e9).or_else(of_ticks);
        let behind_cores = window.rate(Column::TreeBehindCpuNs).map_or(0.0, |ns| ns / 1e9);
        let server_cores = of_group.map(|cores| cores + behind_cores).or_else(of_tree);
        let others = |cpu: CpuShares| Some((cpu.busy() * host_cpus - server_cores? - generator_cores).max(0.0));
        Processors {
            host,
            host_cpus,
            server_cpus,
            pinned_cpus,
            server_cores,
            behind_cores,
            other_cores: host.and_then(others),
            load_average: window.most(Column::Load1).map(|hundredths| hundredths / 100.0),
            runnable: window.median(Column::Runnable),
            pressure: window.span().and_then(|span| span.share_of_time(Column::GroupPsiCpuSome)),
            throttled_periods: window.part(Column::GroupThrottledPeriods, Column::GroupPeriods),
            throttled_time: window.rate(Column::GroupThrottledNs).map(|ns| ns / 1e9),
        }
    }

    /// The host's shares, for a finding.
    #[must_use]
    pub fn shares(&self) -> Numbers {
        let share = |of: fn(&CpuShares) -> f64| self.host.as_ref().map(of);
        Numbers::default()
            .with(Quantity::CpuUser, share(|cpu| cpu.user))
            .with(Quantity::CpuSystem, share(|cpu| cpu.system))
            .with(Quantity::CpuIdle, share(|cpu| cpu.idle))
            .with(Quantity::CpuIowait, share(|cpu| cpu.iowait))
            .with(Quantity::CpuSteal, share(|cpu| cpu.steal))
            .with(Quantity::CpuBusy, share(CpuShares::busy))
    }

    /// What the server had of them, for a finding.
    #[must_use]
    pub fn of_server(&self) -> Numbers {
        Numbers::default()
            .with(Quantity::ServerCpus, if self.behind_cores > 0.0 { self.host_cpus } else { self.server_cpus })
            .with(Quantity::ServerCores, self.server_cores)
            .with(Quantity::OtherCores, self.other_cores)
            .with(Quantity::CpuPressure, self.pressure)
    }
}

impl Network {
    fn of(window: &Window<'_>) -> Network {
        Network {
            retransmits: window.part(Column::TcpRetransmits, Column::TcpOutSegments),
            retransmits_each_second: window.rate(Column::TcpRetransmits),
            // A link may be told slower than it is.
            link_use: window.rate(Column::NetLinkNs).map(|ns| (ns / 1e9).min(1.0)),
            sending: window.median(Column::TcpSending),
            stuck: window.median_of(|row| {
                Some(row.get(Column::TcpSending)?.saturating_sub(row.get(Column::TreeDiskSleep).unwrap_or(0)))
            }),
        }
    }

    /// Their numbers, for a finding.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        Numbers::default()
            .with(Quantity::Retransmits, self.retransmits)
            .with(Quantity::LinkUse, self.link_use)
            .with(Quantity::Sending, self.sending)
    }
}

impl Disks {
    fn of(window: &Window<'_>, memory: &Memory) -> Disks {
        let swap_bytes = memory.swap_in.zip(memory.swap_out).map(|(read, written)| read + written);
        let sectors = |column| window.rate(column);
        let bytes = sectors(Column::DiskReadSectors)
            .zip(sectors(Column::DiskWriteSectors))
            .map(|(read, written)| (read + written) * SECTOR);
        // Swap that is more than the disks moved is on none of them, but in compressed memory (zram).
        let share = |(swap, all): (f64, f64)| {
            (swap <= SWAP_ON_DISK * all).then(|| if all > 0.0 { (swap / all).min(1.0) } else { 0.0 })
        };
        Disks {
            pressure: window
                .pressure([Column::GroupPsiIoSome, Column::GroupPsiIoFull], [Column::PsiIoSome, Column::PsiIoFull]),
            bytes,
            // io_ticks can exceed the time there was.
            busy: window.rate(Column::DiskIoMs).map(|ms| (ms / 1e3).min(1.0)),
            queue: window.rate(Column::DiskWeightedMs).map(|ms| ms / 1e3),
            swap_share: swap_bytes.zip(bytes).and_then(share),
            asleep: some_of(window, Column::TreeDiskSleep),
        }
    }

    /// Their numbers, for a finding.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let [some, full] = match self.pressure.map(|pressure| pressure.whose) {
            Some(Whose::Group) => [Quantity::GroupIoSome, Quantity::GroupIoFull],
            _ => [Quantity::HostIoSome, Quantity::HostIoFull],
        };
        Numbers::default()
            .with(some, self.pressure.map(|pressure| pressure.some))
            .with(full, self.pressure.map(|pressure| pressure.full))
            .with(Quantity::DiskBytes, self.bytes)
            .with(Quantity::DiskBusy, self.busy)
            .with(Quantity::DiskQueue, self.queue)
            .with(Quantity::SwapShareOfDisk, self.swap_share)
    }
}

impl Workers {
    fn of(window: &Window<'_>, trial: &Trial, load: &LoadResult) -> Workers {
        let limit = trial.settings.worker_limit.map(|limit| limit as f64);
        Workers {
            limit,
            most: window.most(Column::TreeWorkers),
            // Processes are not threads, and one that waits for PHP seems idle: the server itself knows better.
            busy: pool::occupied(trial, load).or_else(|| window.median(Column::TreeBusyWorkers)),
            ready: pool::ready(trial, load),
            queue: window.median(Column::AcceptQueue),
            queue_most: window.most(Column::AcceptQueue),
            queue_limit: window.median(Column::AcceptLimit),
            overflows: window.delta(Column::TcpListenOverflows),
            turned_away: None,
            each_counts: false,
            lock_waiters: window.median(Column::TreeLockWaiters),
            held: None,
            shut: limit.and_then(|limit| pool::shut(trial, load, limit)),
            queued: some_of(window, Column::AcceptQueue),
            unread: None,
            queue_elsewhere: queue_elsewhere(window),
            behind: None,
            ending: Ending::of(window, trial, load),
            pool: Pool::of(trial, load),
        }
    }

    /// Requests it works on at once at most beside those workers that idle connections hold.
    #[must_use]
    pub fn free_limit(&self) -> Option<f64> {
        self.limit.map(|limit| (limit - self.held.unwrap_or(0.0)).max(0.0))
    }

    fn in_work(&self, offered: &Offered) -> f64 {
        self.binding_limit().map_or(offered.own_connections, |limit| offered.own_connections.min(limit)).max(1.0)
    }

    /// The limit that requests meet: that of a pool that is full comes first.
    #[must_use]
    pub fn binding_limit(&self) -> Option<f64> {
        self.full_pool().and_then(|pool| pool.limit).or(self.limit)
    }

    /// PHP's processes, when there are too few of them for what is asked.
    #[must_use]
    pub fn full_pool(&self) -> Option<Pool> {
        self.pool.filter(Pool::is_full)
    }

    /// Their numbers, for a finding.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        Numbers::default()
            .with(Quantity::WorkerLimit, self.limit)
            .with(Quantity::HeldWorkers, self.held.filter(|&held| held > 0.0))
            .with(Quantity::Workers, self.most.filter(|&workers| workers > 0.0))
            .with(Quantity::BusyWorkers, self.busy.filter(|_| self.most.is_some_and(|workers| workers > 0.0)))
            .with(Quantity::AcceptQueue, self.queue)
            .and(self.pool.map(|pool| pool.numbers()).unwrap_or_default())
    }
}

/// How many of those who asked were turned away at the door so many times: by their number, or by the seconds that they waited for it.
fn turned_away(times: f64, ended: f64, in_flight: f64) -> f64 {
    let part = |of: f64, all: f64| if of > 0.0 { of / all } else { 0.0 };
    part(times, ended).max(part(times * RETRY, in_flight)).min(1.0)
}

/// In how many readings, of all that have it, a level was not nothing, 0 to 1.
fn some_of(window: &Window<'_>, column: Column) -> Option<f64> {
    let (all, some) = window.levels(column).fold((0, 0), |(all, some), level| (all + 1, some + u32::from(level > 0)));
    (all > 0).then(|| f64::from(some) / f64::from(all))
}

/// Connections whose request lies unread.
fn unread(window: &Window<'_>, spec: &LoadSpec) -> Option<f64> {
    window.median(Column::TcpUnread).filter(|_| shows_unread(spec))
}

/// Whether bytes that lie unread are a request that nobody works on. Of one with a body, and of several sent at once, the server may work on
/// one while it leaves the rest where it is.
fn shows_unread(spec: &LoadSpec) -> bool {
    spec.pipeline == 1 && spec.mix.iter().all(|request| request.body.is_none())
}

/// Connections that wait at another door of the host than the server's: where none waits at its own, the fullest is another's.
fn queue_elsewhere(window: &Window<'_>) -> Option<f64> {
    window.median(Column::ListenQueue).filter(|_| window.median(Column::AcceptQueue) == Some(0.0))
}
