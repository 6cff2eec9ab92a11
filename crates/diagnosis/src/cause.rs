//! What a diagnosis can find. One line per cause; the order is the one in which equals are listed.

use serde::{Serialize, Serializer};

macro_rules! causes {
    ($($variant:ident $id:literal $about:literal;)*) => {
        /// What limited a trial.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause { $(#[doc = $about] $variant),* }

        impl Cause {
            /// Every cause.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant),*];

            /// Its message in the catalogue.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self { $(Cause::$variant => $id),* }
            }
        }
    };
}

causes! {
    HostDisturbed "cause-host-disturbed" "The host itself swapped, and not for the server, which has a group of its own; the trial says nothing about the server.";
    MemoryThrash "cause-memory-thrash" "The server's memory does not hold what it works on: pages are written to swap and read back instead of work being done.";
    OutOfMemory "cause-out-of-memory" "The kernel killed processes because memory (and swap) was exhausted.";
    WorkerLimitTooHigh "cause-worker-limit-too-high" "More requests are accepted at once than memory holds; brings memory thrash or killed processes about.";
    FileCacheThrash "cause-file-cache-thrash" "The server's memory does not hold the files it works with: they are dropped and read again and again.";
    AcceptQueueOverflow "cause-accept-queue-overflow" "Connections were turned away because the accept queue was full; clients see delays of 1, 3, 7 seconds.";
    DiskBound "cause-disk-bound" "Requests waited for the disk, and not because of swap.";
    Throttled "cause-throttled" "The server used up its limit of CPU time and was held back until the next period.";
    Network "cause-network" "Answers wait for the network, or for clients that take them slowly.";
    LockSerialised "cause-lock-serialised" "Most requests waited for one lock, so that about one is worked on at a time.";
    HeldInFront "cause-held-in-front" "Requests wait inside the server, which passes only so many at once on to the servers behind it.";
    BackendSerialised "cause-backend-serialised" "Few requests are worked on at once though many are in work and nothing of this machine is used up: something behind the server lets only so many in.";
    KeepAliveHeld "cause-keep-alive-held" "Idle connections, kept open, hold workers that requests wait for.";
    ProcessesEnding "cause-processes-ending" "Processes end when they have had their connections, so many at once that requests queue at the door until the server has begun others.";
    WorkerLimitTooLow "cause-worker-limit-too-low" "All workers are busy and requests queue at the door while CPU and memory have room.";
    WorkerLimitReached "cause-worker-limit-reached" "All workers are busy; whether more would help cannot be told, as the CPU is neither full nor free.";
    WorkerLimitRight "cause-worker-limit-right" "All workers are busy and requests queue at the door by design: the CPU is full, or memory holds no more workers.";
    WorkersStarting "cause-workers-starting" "All workers that are there are busy and requests queue at the door, though more are allowed: the server starts them one after another.";
    TooFewThreads "cause-too-few-threads" "Requests wait that nobody has read while the CPUs have room: the server has no thread for them.";
    OutOfPorts "cause-out-of-ports" "The client's machine had no ports or file descriptors left to send with.";
    FailuresDominate "cause-failures-dominate" "So many requests failed that the rate of good answers says little.";
    NoAnswers "cause-no-answers" "Nothing that was asked for was answered in the window, and nothing failed: all of it was still in flight.";
    ForeignTraffic "cause-foreign-traffic" "Others asked the server as well, so that the numbers are not of this load alone.";
    OfferedConcurrency "cause-offered-concurrency" "The client asked for no more: with more requests at once the server would have answered more.";
    Stolen "cause-stolen" "The hypervisor gave CPU time to others that this machine asked for.";
    CpuBound "cause-cpu-bound" "The CPUs the server may use were busy with work nearly all the time.";
    GeneratorSaturated "cause-generator-saturated" "The load generator itself ran out of CPU time; the server may be able to do more.";
    OneCoreBusy "cause-one-core-busy" "The server keeps about one CPU busy and leaves the others idle.";
    PressureBuilding "cause-pressure-building" "Memory is getting short: some waiting for it, and pages that were taken away are read again.";
    MonitorUnfit "cause-monitor-unfit" "The readings are too few, or have gaps too long, to judge by.";
    Unexplained "cause-unexplained" "No rule fired.";
    NotMeasured "cause-not-measured" "The trial has no load that counts.";
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}
