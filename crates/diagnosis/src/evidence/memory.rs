//! Memory and swap as one trial shows them, and what one request in work costs.

use super::window::Window;
use super::{Machine, Offered, Pressure, Whose, Workers};
use crate::number::{Numbers, Quantity};
use model::reading::{Column, Reading};
use model::workers::WorkersHeld;

/// Bytes in a page of the counters of /proc/vmstat and memory.stat, on the machines we run on.
const PAGE: f64 = 4096.0;

/// Of the largest process that the readings saw, what the largest has to have that was looked at, to be one like it.
const LARGEST_SEEN: f64 = 0.9;

/// Bytes in a KiB of /proc/meminfo.
const KIB: f64 = 1024.0;

/// A size, or bytes per second, and whose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Whose.
    pub whose: Whose,
    /// Bytes.
    pub bytes: f64,
}

/// Memory and swap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// Time spent waiting for memory.
    pub pressure: Option<Pressure>,
    /// Bytes the group read back from swap per good answer; per second's worth of them when there was none.
    pub refault_per_request: Option<f64>,
    /// Bytes per second of swapped pages read back: the group's, without one the host's.
    pub swap_refaults: Option<f64>,
    /// Bytes per second of files read again because their pages had been dropped.
    pub file_refaults: Option<Size>,
    /// Major faults per second, of the group, else of the host.
    pub major_faults: Option<(Whose, f64)>,
    /// Bytes per second the host read from swap.
    pub swap_in: Option<f64>,
    /// Bytes per second the host wrote to swap.
    pub swap_out: Option<f64>,
    /// Share of the intervals in which the host did both.
    pub swapped_both_ways: Option<f64>,
    /// Most swap held.
    pub swap_peak: Option<Size>,
    /// Least of the host's memory that was available, 0 to 1.
    pub host_available: Option<f64>,
    /// What there is: the group's limit, else the host's memory.
    pub limit: Option<Size>,
    /// In use, swap included, before the load began.
    pub base: Option<f64>,
    /// Most in use, swap included.
    pub peak: Option<f64>,
    /// Bytes one request in work takes.
    pub cost: Option<f64>,
    /// Bytes that are taken whatever the number of workers is, where they were looked at and `cost` is what one has alone.
    pub shared: Option<f64>,
    /// Bytes that are to stay free beside all workers.
    pub spare: f64,
    /// Times the group ran into its limit.
    pub limit_hits: Option<u64>,
    /// Processes killed: of the group, else of the host.
    pub oom_kills: Option<u64>,
}

/// Share of the host's memory that is not available.
fn host_taken(row: &Reading) -> Option<f64> {
    let total = row.get(Column::MemTotal).filter(|&kib| kib > 0)?;
    Some(1.0 - row.get(Column::MemAvailable)? as f64 / total as f64)
}

impl Memory {
    /// `held`: what the server's processes had, where they were looked at.
    pub(super) fn of(
        machine: &Machine,
        window: &Window<'_>,
        offered: &Offered,
        workers: &Workers,
        held: Option<&WorkersHeld>,
    ) -> Memory {
        let grouped = window.most_ever(Column::GroupUsage).is_some();
        let in_use = if grouped { group_in_use } else { host_in_use };
        let (base, peak) = (window.least_before(in_use), window.most_of(in_use));
        let cost = cost(window, base, peak, workers, workers.in_work(offered), held);
        let refaults = |of_group: Column, of_host: Column| {
            let (whose, column) = if grouped { (Whose::Group, of_group) } else { (Whose::Host, of_host) };
            Some(Size { whose, bytes: window.rate(column)? * PAGE })
        };
        let refault_rate = window.rate(Column::GroupRefaultAnon).map(|pages| pages * PAGE);
        let of_group = window.rate(Column::GroupMajorFaults).map(|rate| (Whose::Group, rate));
        // The host's count includes what was killed elsewhere; a server that answers everything lost nobody.
        let host_kills = || window.delta(Column::OomKills).filter(|_| offered.failed > 0);
        Memory {
            pressure: window
                .pressure([Column::GroupPsiMemSome, Column::GroupPsiMemFull], [Column::PsiMemSome, Column::PsiMemFull]),
            refault_per_request: refault_rate
                .map(|bytes| if offered.goodput > 0.0 { bytes / offered.goodput } else { bytes }),
            swap_refaults: refaults(Column::GroupRefaultAnon, Column::RefaultAnon).map(|size| size.bytes),
            file_refaults: refaults(Column::GroupRefaultFile, Column::RefaultFile),
            major_faults: of_group.or_else(|| Some((Whose::Host, window.rate(Column::MajorFaults)?))),
            swap_in: window.rate(Column::SwapIn).map(|pages| pages * PAGE),
            swap_out: window.rate(Column::SwapOut).map(|pages| pages * PAGE),
            swapped_both_ways: window.growing_together([Column::SwapIn, Column::SwapOut]),
            swap_peak: swap_peak(window),
            host_available: window.most_of(host_taken).map(|taken| 1.0 - taken),
            limit: limit(machine, window, grouped),
            base,
            peak,
            cost: cost.map(|cost| cost.each),
            shared: cost.and_then(|cost| cost.shared),
            spare: 0.0,
            limit_hits: window.delta(Column::GroupLimitHits),
            oom_kills: window.delta(Column::GroupOomKills).or_else(host_kills),
        }
    }

    /// How many workers memory holds: what is left beside the base, over the cost of one, rounded down to two digits, as the cost is
    /// not known to more. `None` when one of the three is not known.
    #[must_use]
    pub fn workers_that_fit(&self) -> Option<f64> {
        let (limit, base, cost) = (self.limit?.bytes, self.base?, self.cost?);
        let taken = self.shared.map_or(base, |shared| shared.max(base));
        (cost > 0.0).then(|| two_digits((limit - self.spare - taken) / cost))
    }

    /// The parts that swap and files have in what was taken away and read back, both 0 when nothing was; `None` when the kernel does
    /// not count them apart.
    #[must_use]
    pub fn read_back(&self) -> Option<(f64, f64)> {
        let (swap, files) = (self.swap_refaults?, self.file_refaults?.bytes);
        let all = swap + files;
        Some(if all > 0.0 { (swap / all, files / all) } else { (0.0, 0.0) })
    }

    /// Pressure and faults, for a finding.
    #[must_use]
    pub fn pressures(&self) -> Numbers {
        let [some, full] = match self.pressure.map(|pressure| pressure.whose) {
            Some(Whose::Group) => [Quantity::GroupMemorySome, Quantity::GroupMemoryFull],
            _ => [Quantity::HostMemorySome, Quantity::HostMemoryFull],
        };
        let faults = match self.major_faults {
            Some((Whose::Group, _)) => Quantity::GroupMajorFaults,
            _ => Quantity::HostMajorFaults,
        };
        Numbers::default()
            .with(some, self.pressure.map(|pressure| pressure.some))
            .with(full, self.pressure.map(|pressure| pressure.full))
            .with(faults, self.major_faults.map(|(_, rate)| rate))
    }

    /// Pressure and the files read again, for a finding.
    #[must_use]
    pub fn rereading(&self) -> Numbers {
        let quantity = match self.file_refaults {
            Some(Size { whose: Whose::Group, .. }) => Quantity::GroupFileRefaults,
            _ => Quantity::HostFileRefaults,
        };
        self.pressures().with(quantity, self.file_refaults.map(|size| size.bytes))
    }

    /// Pressure and traffic of swap, for a finding.
    #[must_use]
    pub fn traffic(&self) -> Numbers {
        self.pressures()
            .with(Quantity::RefaultPerRequest, self.refault_per_request)
            .with(Quantity::SwapIn, self.swap_in)
            .with(Quantity::SwapOut, self.swap_out)
            .with(Quantity::LimitHits, self.limit_hits.map(|hits| hits as f64))
            .and(self.swap_numbers())
    }

    /// The most swap held, for a finding.
    #[must_use]
    pub fn swap_numbers(&self) -> Numbers {
        let quantity = match self.swap_peak {
            Some(Size { whose: Whose::Group, .. }) => Quantity::GroupSwapPeak,
            _ => Quantity::HostSwapPeak,
        };
        Numbers::default().with(quantity, self.swap_peak.map(|size| size.bytes))
    }

    /// What there is and what a worker takes, for a finding.
    #[must_use]
    pub fn room(&self) -> Numbers {
        let quantity = match self.limit {
            Some(Size { whose: Whose::Group, .. }) => Quantity::GroupLimit,
            _ => Quantity::HostMemory,
        };
        Numbers::default()
            .with(quantity, self.limit.map(|size| size.bytes))
            .with(Quantity::MemoryBase, self.base)
            .with(Quantity::WorkerCost, self.cost)
    }
}

/// Rounded down to a whole number of at most two digits before its zeros.
fn two_digits(value: f64) -> f64 {
    let step = 10_f64.powf((value.max(1.0).log10().floor() - 1.0).max(0.0));
    ((value / step).floor() * step).max(0.0)
}

/// What the group's processes hold, resident and swapped; its page cache can be dropped and is left out.
fn group_in_use(row: &Reading) -> Option<f64> {
    let resident = row.get(Column::GroupAnon).or_else(|| row.get(Column::GroupUsage))?;
    Some((resident + row.get(Column::GroupSwap).unwrap_or(0)) as f64)
}

/// The same for the host.
fn host_in_use(row: &Reading) -> Option<f64> {
    let resident = row.get(Column::MemTotal)?.saturating_sub(row.get(Column::MemAvailable)?);
    Some((resident + host_swap(row).unwrap_or(0)) as f64 * KIB)
}

/// Swap in use on the host, KiB.
fn host_swap(row: &Reading) -> Option<u64> {
    Some(row.get(Column::SwapTotal)?.saturating_sub(row.get(Column::SwapFree)?))
}

fn swap_peak(window: &Window<'_>) -> Option<Size> {
    let of_group = window.most(Column::GroupSwap).map(|bytes| Size { whose: Whose::Group, bytes });
    let of_host = || window.most_of(|row| Some(host_swap(row)? as f64 * KIB));
    of_group.or_else(|| Some(Size { whose: Whose::Host, bytes: of_host()? }))
}

/// The group's limit, as the kernel tells or as the plan asked for; the host's memory without a limited group. `None` where another limit lies
/// around it, of whose use nothing is known.
fn limit(machine: &Machine, window: &Window<'_>, grouped: bool) -> Option<Size> {
    let planned = machine.group_memory.filter(|_| grouped);
    if let Some(bytes) = window.most_ever(Column::GroupLimit).or(planned) {
        return Some(Size { whose: Whose::Group, bytes });
    }
    let told = window.most_ever(Column::MemTotal).filter(|_| !machine.limit_is_unseen).map(|kib| kib * KIB);
    let bytes = told.or(machine.memory)?;
    Some(Size { whose: Whose::Host, bytes })
}

/// What a request in work takes, and what they take together whatever their number is.
#[derive(Clone, Copy)]
struct Cost {
    each: f64,
    shared: Option<f64>,
}

/// What one request in work takes, from below: the growth of memory over the requests in work, or the largest process when there
/// is a process for every request (a CGI, a prefork child). Neither sees the whole while requests do not peak together or parts
/// are swapped out, so the larger one is taken, and the warm-up, where one was alone, counts. Where it is a pool of PHP-FPM that lets no
/// more in, a further request takes one of its processes, of which the largest of all, its master, is none.
fn cost(
    window: &Window<'_>,
    base: Option<f64>,
    peak: Option<f64>,
    workers: &Workers,
    in_work: f64,
    held: Option<&WorkersHeld>,
) -> Option<Cost> {
    let growth = base.zip(peak).map(|(base, peak)| ((peak - base) / in_work).max(0.0));
    let process_each = window.most(Column::TreeProcesses).is_some_and(|processes| processes > in_work);
    // The largest may be one of those that no limit of the server's holds.
    let limited = window.most(Column::GroupUsage).is_none() || window.most(Column::TreeBehindCpuNs).is_none();
    let largest = window.most_ever(Column::TreeRssLargest).filter(|_| process_each && limited);
    let largest = match workers.full_pool() {
        Some(_) => held.and_then(of_pool),
        None => largest.map(|resident| alone(resident, held).unwrap_or(Cost { each: resident, shared: None })),
    };
    let each = growth.into_iter().chain(largest.map(|cost| cost.each)).reduce(f64::max)?;
    Some(Cost { each, shared: largest.and_then(|cost| cost.shared) })
}

/// What the largest process of the pool has for itself; `None` where the pool is not the server's own to look at.
fn of_pool(held: &WorkersHeld) -> Option<Cost> {
    let crew = held.crews.iter().find(|crew| crew.name.starts_with(FPM))?;
    let each = crew.workers.iter().map(|worker| worker.alone()).max()?;
    Some(Cost { each: each as f64, shared: Some(held.without(crew) as f64) })
}

/// How the name of PHP-FPM begins, before its version.
const FPM: &str = "php-fpm";

/// What the largest worker has for itself: what it has as others do (libraries, what its parent read) no further one takes, and is counted
/// once. `None` where the largest was gone when somebody looked, or is a program that was started for the request: it has nearly all of its
/// memory to itself, and others like it are nothing that is always there.
fn alone(resident: f64, held: Option<&WorkersHeld>) -> Option<Cost> {
    let held = held?;
    let (crew, seen) = held.largest()?;
    let is_it = crew.workers.contains(&seen) && seen.resident as f64 >= LARGEST_SEEN * resident;
    let as_others = seen.resident.saturating_sub(seen.own) as f64;
    is_it.then(|| Cost { each: resident - as_others + seen.swapped as f64, shared: Some(held.without(crew) as f64) })
}
