//! The numbers a finding shows: named, each with its unit, one line per name.
//!
//! Whose number it is stands in the name: `group-` is the server's own group, `host-` the whole machine, also where the latter
//! only stands in because the former could not be read.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// How a number is to be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// 0 to 1, of the whole that the name says.
    Share,
    /// Bytes, or bytes per what the name says.
    Bytes,
    /// How many, or how many per what the name says; not always whole, as a median or a mean may not be.
    Count,
    /// Seconds.
    Seconds,
}

/// A value and its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Number {
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// What a number is held against.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// So much or more.
    AtLeast(f64),
    /// More than so much.
    Above(f64),
    /// Less than so much.
    Below(f64),
}

impl Limit {
    /// Whether a number has crossed it.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Limit::AtLeast(limit) => value >= limit,
            Limit::Above(limit) => value > limit,
            Limit::Below(limit) => value < limit,
        }
    }

    /// The threshold itself.
    #[must_use]
    pub fn value(self) -> f64 {
        let (Limit::AtLeast(limit) | Limit::Above(limit) | Limit::Below(limit)) = self;
        limit
    }
}

macro_rules! quantities {
    ($($variant:ident $name:literal $unit:ident $about:literal;)*) => {
        /// What a number is of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Quantity { $(#[doc = $about] $variant),* }

        impl Quantity {
            /// Every quantity.
            pub const ALL: &'static [Quantity] = &[$(Quantity::$variant),*];

            /// Its name in [`Numbers`]; with `number-` before it, its label's message in the catalogue.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Quantity::$variant => $name),* }
            }

            /// Its unit.
            #[must_use]
            pub fn unit(self) -> Unit {
                match self { $(Quantity::$variant => Unit::$unit),* }
            }
        }
    };
}

quantities! {
    Readings "readings" Count "Readings in the window.";
    Observed "observed" Seconds "Time the readings of the window span.";
    Connections "connections" Count "Requests the client was asked to keep in flight.";
    Concurrency "concurrency" Count "Requests in flight, mean.";
    Goodput "goodput" Count "Good answers per second.";
    Failures "failures" Count "Failed requests.";
    FailedShare "failed-share" Share "Failed requests, of all that ended.";
    CpuUser "host-cpu-user" Share "CPU time in programs, of all CPUs of the host.";
    CpuSystem "host-cpu-system" Share "CPU time in the kernel, interrupts included.";
    CpuIdle "host-cpu-idle" Share "CPU time without anything to do.";
    CpuIowait "host-cpu-iowait" Share "CPU time without anything to do while a disk was waited for: not work.";
    CpuSteal "host-cpu-steal" Share "CPU time the hypervisor took.";
    CpuBusy "host-cpu-busy" Share "User and system: work. Never 1 minus idle.";
    CpuUsed "cpu-used" Share "Use of the CPUs the server may run on.";
    CpuPressure "cpu-pressure" Share "Time in which a task of the server waited for a CPU.";
    ThrottledPeriods "throttled-periods" Share "Periods of the limit of CPU time in which the server's group had used it up before they ended, of those in which it had work.";
    ThrottledTime "throttled-time" Count "Seconds per second for which CPUs of the server's group were held back by that limit.";
    HostCpus "host-cpus" Count "CPUs of the host.";
    ServerCpus "server-cpus" Count "CPUs the server may run on.";
    ServerCores "server-cores" Count "CPUs the server kept busy, mean.";
    OtherCores "other-cores" Count "CPUs kept busy by neither the server nor the generator, mean.";
    LoadAverage "load-average" Count "Largest one-minute load average; counts tasks waiting for a disk, too.";
    Runnable "runnable" Count "Runnable tasks of the host, median.";
    RunQueue "run-queue" Count "Runnable tasks for each CPU of the server, without the one that counts them and one for each other CPU, median.";
    GroupMemorySome "group-memory-some" Share "Time in which some task of the server's group waited for memory (PSI).";
    GroupMemoryFull "group-memory-full" Share "Time in which all of them waited: nothing was done (PSI).";
    HostAvailable "host-available" Share "Least of the host's memory that was available.";
    HostMemorySome "host-memory-some" Share "The same for the whole host.";
    HostMemoryFull "host-memory-full" Share "The same for the whole host.";
    GroupIoSome "group-io-some" Share "Time in which some task of the server's group waited for a disk (PSI).";
    GroupIoFull "group-io-full" Share "Time in which all of them waited for a disk (PSI).";
    HostIoSome "host-io-some" Share "The same for the whole host.";
    HostIoFull "host-io-full" Share "The same for the whole host.";
    RefaultPerRequest "group-refault-per-request" Bytes "Bytes the server's group read back from swap, per good answer.";
    GroupFileRefaults "group-file-refaults" Bytes "Bytes per second of files that the server's group read again.";
    HostFileRefaults "host-file-refaults" Bytes "The same for the whole host.";
    GroupMajorFaults "group-major-faults" Count "Page faults per second that had to wait for a disk, in the server's group.";
    HostMajorFaults "host-major-faults" Count "The same for the whole host.";
    GroupSwapPeak "group-swap-peak" Bytes "Most swap the server's group held.";
    HostSwapPeak "host-swap-peak" Bytes "Most swap in use on the host.";
    SwapIn "host-swap-in" Bytes "Bytes per second the host read from swap.";
    SwapOut "host-swap-out" Bytes "Bytes per second the host wrote to swap.";
    GroupLimit "group-memory-limit" Bytes "Memory the server's group may have.";
    HostMemory "host-memory" Bytes "Memory of the host.";
    MemoryBase "memory-base" Bytes "Memory in use before the load began.";
    WorkerCost "worker-cost" Bytes "Memory one request in work takes, the most seen; a lower bound when it was never resident as a whole.";
    WorkersThatFit "workers-that-fit" Count "Workers that memory holds at that cost, rounded down to two digits: the most to allow.";
    LimitHits "group-limit-hits" Count "Times the group ran into its memory limit.";
    OomKills "oom-kills" Count "Processes killed for lack of memory.";
    DiskBytes "host-disk-bytes" Bytes "Bytes per second read and written on the host's disks.";
    DiskBusy "host-disk-busy" Share "Time in which the busiest disk had something to do.";
    DiskQueue "host-disk-queue" Count "Operations under way on the host's disks, mean.";
    SwapShareOfDisk "swap-share-of-disk" Share "Swap traffic, of all disk traffic.";
    HeldWorkers "held-workers" Count "Workers that only kept an idle connection open.";
    AtOnce "at-once" Count "Requests worked on at once: good answers per second times the time a page takes alone (Little's law).";
    PageAlone "page-alone" Seconds "What a page takes alone: the fastest good answer.";
    CpuPerAnswer "cpu-per-answer" Seconds "CPU time of the server for one good answer.";
    MemoryRoom "memory-room" Bytes "Memory that workers can have beside all else, with a tenth to spare.";
    AllWorkers "all-workers" Bytes "Memory that as many workers as are allowed take at that cost.";
    ConnectionsEach "connections-each" Count "Connections after which a process of the server ends: MaxConnectionsPerChild.";
    ProcessesEnding "processes-ending" Count "Processes of the server that end in a second: connections per second over what each may have.";
    LeastWorkers "least-workers" Count "Fewest worker processes seen.";
    WorkerLimit "worker-limit" Count "Requests the server works on at once at most.";
    Workers "workers" Count "Most worker processes seen.";
    BusyWorkers "busy-workers" Count "Busy worker processes, median.";
    PoolLimit "pool-limit" Count "Processes that PHP-FPM may have: pm.max_children.";
    PoolActive "pool-active" Count "Processes of PHP-FPM that worked, median.";
    PoolQueue "pool-queue" Count "Requests that waited for a process of PHP-FPM, median.";
    PoolLimitReached "pool-limit-reached" Count "Times PHP-FPM wanted more processes than it may have.";
    AcceptQueue "accept-queue" Count "Connections waiting to be accepted, median.";
    AcceptQueueMost "accept-queue-most" Count "Most connections seen waiting to be accepted.";
    AcceptQueueLimit "accept-queue-limit" Count "Connections that may wait there.";
    Unread "unread" Count "Connections that the server has accepted and whose request it has not read, median.";
    ThreadWait "thread-wait" Seconds "How long a request waits for a thread of the server's: those that do over good answers per second (Little's law).";
    FullestQueue "host-fullest-queue" Count "Connections waiting to be accepted by another listening socket of the host, the fullest, median.";
    QueueBehind "queue-behind" Count "Connections waiting to be accepted by the servers behind it, all together, median.";
    AcceptedBehind "accepted-behind" Count "Connections that the servers behind it have accepted, median.";
    HeldInFront "held-in-front" Count "Requests in flight that wait neither at a door nor to be read or sent, and that no server behind it has accepted.";
    ListenOverflows "host-listen-overflows" Count "Connections the host turned away because an accept queue was full.";
    TurnedAway "turned-away" Share "Them over the requests that ended, or over the seconds that requests were in flight, a second for each: the larger.";
    LockWaiters "lock-waiters" Count "Processes of the server waiting for a file lock, median.";
    GeneratorShare "generator-share" Share "CPU time the generator used, of what its threads can have.";
    LocalFailures "unsent" Count "Requests that this machine could not send: no free port, no file descriptor.";
    Retransmits "retransmits" Share "Segments of TCP that were sent again, of all that were sent.";
    LinkUse "link-use" Share "Use of the fullest link, in its fuller direction, at the speed that it tells.";
    Sending "sending" Count "Connections of the server that hold more bytes than the other end may have without saying so, median.";
    ForeignWeight "foreign-weight" Count "Requests or connections of others for each one of ours.";
    Unwatched "unwatched" Share "Time of the load in gaps between readings that were too long.";
    LongestGap "longest-gap" Seconds "The longest time between two readings.";
    MonitorFaults "monitor-faults" Count "Times the sampler itself had to wait for a page from disk.";
}

/// Numbers by what they are of, in the order of [`Quantity`]. Serialises as a map from name to value and unit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Numbers(BTreeMap<Quantity, f64>);

impl Numbers {
    /// Adds a number; nothing when it is not known.
    #[must_use]
    pub fn with(mut self, quantity: Quantity, value: impl Into<Option<f64>>) -> Numbers {
        if let Some(value) = value.into() {
            self.0.insert(quantity, value);
        }
        self
    }

    /// Adds all of `more`.
    #[must_use]
    pub fn and(mut self, more: Numbers) -> Numbers {
        self.0.extend(more.0);
        self
    }

    /// The value of a quantity.
    #[must_use]
    pub fn get(&self, quantity: Quantity) -> Option<f64> {
        self.0.get(&quantity).copied()
    }

    /// Quantities and values.
    pub fn values(&self) -> impl Iterator<Item = (Quantity, f64)> + '_ {
        self.0.iter().map(|(&quantity, &value)| (quantity, value))
    }

    /// Names and numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Number)> + '_ {
        self.values().map(|(quantity, value)| (quantity.name(), Number { value, unit: quantity.unit() }))
    }
}

impl FromIterator<(Quantity, f64)> for Numbers {
    fn from_iter<I: IntoIterator<Item = (Quantity, f64)>>(numbers: I) -> Numbers {
        Numbers(numbers.into_iter().collect())
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
