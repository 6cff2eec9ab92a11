//! Every threshold of the rules, with its source.
//!
//! Sources. `PSI`: the kernel's documentation of pressure stall information ("full" is time in which nothing productive happens).
//! `USE`: Gregg's USE method for Linux (si/so and the run queue as saturation). `lab`: measured with a private Apache, 40 MB CGIs in
//! a 200 MB group. `seed`: the first document's own dstat rows. `own`: chosen, to be calibrated.

use std::ops::RangeInclusive;

/// Time in which every task of the server waited for memory, from which it thrashes. `PSI`, `lab`: 50 to 61 %, on throttled
/// disks 10 %; all other rows 0.
pub const THRASH_FULL: f64 = 0.10;
/// Time in which some waited for memory or a disk, which makes refaults count. `own`.
pub const THRASH_SOME: f64 = 0.10;
/// Bytes read back from swap per good answer, from which work is done twice. `lab`: 10 to 104 MB in collapse, 0 otherwise.
pub const REFAULT_PER_REQUEST: f64 = 1024.0 * 1024.0;
/// Part of what is read back, from swap or from files, from which it is what memory is waited for. `own`; `lab`: swap has 94 % and
/// more in collapse.
pub const READ_BACK_PART: f64 = 0.25;
/// Without PSI and group: share of intervals in which the host swaps both ways. `USE`; `seed`: all of them.
pub const BOTH_WAYS: f64 = 0.5;
/// Without PSI and group: major faults per second. `own`; `seed`: about 80 disk reads a second, each at least one.
pub const MAJOR_FAULTS: f64 = 50.0;
/// Without PSI and group: programs themselves get less than this of the CPU, the rest is waiting or reclaim. `seed`: 1 to 14 %,
/// `lab`: 6 %.
pub const THRASH_USER: f64 = 0.5;

/// Time in which every task waited for a disk. `own`, as for memory.
pub const DISK_FULL: f64 = 0.10;
/// Waiting for memory must be below this part of waiting for a disk, or the disk is only memory's messenger. `own`.
pub const DISK_OVER_MEMORY: f64 = 1.0 / 3.0;
/// Swap must be less than this part of the disk's traffic. `own`.
pub const DISK_SWAP_SHARE: f64 = 0.5;
/// Without PSI: busy time of the busiest disk (`USE`: above 60 % waits grow), with more than one operation under way.
pub const DISK_BUSY: f64 = 0.6;

/// Use of the server's CPUs from which they are full. `USE`.
pub const CPU_FULL: f64 = 0.90;
/// Waiting for a CPU from which they are full at a lower use too, when it is not below [`CPU_ROOM`]: processes that come and go
/// leave gaps that none of them could have filled. `own`; `lab`: 0.44 to 0.49 with four CGIs on two CPUs at a use of
/// 0.85, where Apache sleeps 47 ms whenever a CGI is not quite gone; 0.03 to 0.1 with one at a time.
pub const CPU_WAITED_FOR: f64 = 0.3;
/// Runnable tasks for each CPU of the server, from which one is waited for where the kernel does not tell how long. `own`, after `USE`, by
/// which more than one are saturation: the generator's threads may be among them, and requests that come by chance meet now and then. `lab`:
/// 149 with a hundred connections.
pub const RUN_QUEUE: f64 = 4.0;
/// Use below which they have room. `own`.
pub const CPU_ROOM: f64 = 0.70;
/// Idle time spent waiting for a disk, from which the client cannot be all that limits. `own`.
pub const IOWAIT_QUIET: f64 = 0.2;
/// CPUs kept busy that count as "about one". `own`; `lab`: 0.8 to 1.0 with one request at a time, process starts included.
pub const ONE_CORE: RangeInclusive<f64> = 0.7..=1.2;
/// CPUs kept busy by several requests at once that are one CPU and no coincidence. `own`.
pub const SINGLE_CORE: RangeInclusive<f64> = 0.9..=1.1;
/// Part of its CPUs that a server must use itself for the host's full CPUs to be what limits it: one that asks for CPU gets its
/// turn beside others, one that sleeps is not held up by them. `own`.
pub const OWN_PART: f64 = 0.25;

/// Times the requests asked for or allowed at once, beyond which the workers that fit are not named: what so few requests cost, no
/// more than the unrest of the rest of memory perhaps, says nothing of so many. `own`.
pub const FIT_IN_SIGHT: f64 = 100.0;
/// Waiting for memory below which raising a worker limit is safe as far as that goes. `own`; `lab`: 0 in all good rows.
pub const MEMORY_QUIET: f64 = 0.01;
/// Part of the requests in work, less the one that holds it, that wait for a lock. `own`; `seed`: 9 of 10 processes sleep.
pub const LOCKED: f64 = 0.5;
/// Part of the workers that idle connections hold, from which it is they that others wait for. `own`.
pub const HELD_PART: f64 = 0.2;
/// Part of the readings in which somebody waits for workers that idle connections hold, from which it is a matter of more than one burst.
/// `own`; `lab`: in the third document's case 0.48 of them with a timeout of 5 s, 0.36 with 3 s, 0.24 with 2 s, 0.05 with 0.5 s.
pub const HELD_TIME: f64 = 0.3;
/// Part of the looks, one in a second, at which all workers are taken and a good part of them held so. `own`; between two requests of a busy
/// client a connection is kept for a moment, too, which a look now and then meets.
pub const SHUT_TIME: f64 = 0.15;
/// Part of the workers that there may be, below which a server that begins them one after another is far from its limit. `own`.
pub const NEAR_LIMIT: f64 = 0.5;
/// Part of its processes that end in each second because they have had their connections, from which it may be they that are missing. Apache
/// looks once a second whether others are to be begun, and begins one, then two and so on: where it stays at one, of two processes that end at
/// once half do in a second. `own`; `lab`: 1.0 with the third document's settings, which gave 0.6 of the rate.
pub const ENDING: f64 = 0.25;
/// Part of them that is missing at times. `own`; `lab`: all of them.
pub const MISSING: f64 = 0.5;
/// Connections turned away at a full accept queue, of all requests that ended, from which they are more than the burst at the beginning of a
/// load; and the same of the time that all requests were in flight, where each is turned away for [`RETRY`]. `own`.
pub const OVERFLOWS: f64 = 0.01;
/// Seconds until who was turned away asks again, the first time: TCP_TIMEOUT_INIT of the kernel.
pub const RETRY: f64 = 1.0;
/// Failed requests, of all that ended, from which the rate of good ones says little: the share at which the guard ends a trial.
pub const FAILURES: f64 = 0.2;
/// Share of its threads' CPU time from which the generator is the limit. `USE`.
pub const GENERATOR_FULL: f64 = 0.9;
/// Share of the load's time in gaps, above which the monitor is unfit. `own`.
pub const UNWATCHED: f64 = 0.2;
/// The same for a single gap. `own`.
pub const LONGEST_GAP: f64 = 0.1;

/// Idle time below which a reader may take the CPUs for busy. `own`; `seed`: 0.
pub const NO_IDLE: f64 = 0.05;
/// Share of the CPU spent in the kernel from which it, not the application, is what is busy. `own`; `lab`: 92 % in collapse.
pub const RECLAIM: f64 = 0.5;
/// Work below which the sentence fits that the rest was waiting. `own`; `seed`: 26 to 66 %.
pub const MOSTLY_WAITING: f64 = 0.8;
/// Available part of the host's memory with which nothing that has no limit of its own can be short of it. `own`.
pub const HOST_PLENTY: f64 = 0.2;

/// Periods of a limit of CPU time in which it was used up, from which it is what the server waits for. `own`; the kernel's
/// documentation of the CFS bandwidth controller says what is counted.
pub const THROTTLED: f64 = 0.2;
/// The same where the kernel counts no periods: seconds held back in a second. `own`.
pub const THROTTLED_TIME: f64 = 0.1;
/// CPU time taken by the hypervisor from which it is felt. `own`; common practice is 5 to 10 %.
pub const STOLEN: f64 = 0.05;
/// The same of the time that was asked for, work and stolen together: what is taken from an idle machine holds nobody up. `own`.
pub const STOLEN_PART: f64 = 0.1;

/// Segments sent again from which the network loses what is sent. `own`; on a link without loss there are none.
pub const RETRANSMITS: f64 = 0.01;
/// Fewer in a second are somebody else's, or chance. `own`.
pub const RETRANSMITS_EACH_SECOND: f64 = 5.0;
/// Use of a link from which it is full. `USE`.
pub const LINK_FULL: f64 = 0.8;
/// Part of the requests in flight whose answers wait to be sent. `own`.
pub const SENDING: f64 = 0.5;
/// Use of the CPUs, by the server or by all, and of the generator, below which none of them is what holds the others up. `own`.
pub const NOBODY_BUSY: f64 = 0.5;

/// A page that takes less than this alone, in seconds, does not wait for a backend. `own`.
pub const ALONE: f64 = 0.001;
/// Part of the time that a page takes alone which may be CPU time. `own`.
pub const ALONE_WORK: f64 = 0.5;
/// Part of the requests in work that are worked on at once, up to which something lets only so many in; and the least that
/// there can be, as one always is. `Little`, `own`.
pub const AT_ONCE_PART: f64 = 0.5;
/// See [`AT_ONCE_PART`].
pub const AT_ONCE_LEAST: f64 = 0.7;

/// The least of the requests in flight that wait in front of servers behind or at their doors. `own`.
pub const WAIT_BEHIND: f64 = 2.0;

/// Part of the requests in flight that nobody has read, from which threads are what they wait for. `own`.
pub const NO_THREAD: f64 = 0.2;
/// Seconds for which they wait for a thread, in the mean, or for which a typical answer takes longer than the fastest, below which it may be
/// chance. `Little`, `own`; `lab`: a reading of the sampler's takes about 1 ms, and a server on the same CPU reads nothing meanwhile.
pub const THREAD_WAIT: f64 = 0.005;

/// Others' requests or connections for each one of ours, from which the numbers are not of this load alone. `own`.
pub const FOREIGN: f64 = 0.1;
/// Requests that could not be sent, of all that ended, from which the client's machine is what is short of something. `own`.
pub const OUT_OF_PORTS: f64 = 0.01;
/// Time in which some waited for memory, from which it is getting short. `own`, with what moves meanwhile; [`THRASH_FULL`] is thrash.
pub const PRESSURE_BUILDS: f64 = 0.01;
/// Bytes per second read back or written to swap, below which that waiting is the ordinary work of a full page cache. `own`.
pub const PRESSURE_MOVES: f64 = 1024.0 * 1024.0;

/// Readings with which a window is short. `own`.
pub const FEW_READINGS: u32 = 4;
/// How far past its threshold a number may still be there by chance. `own`.
pub const NEAR: f64 = 1.1;
/// CPUs kept busy by others from which they may have had a part in it. `own`.
pub const OTHERS_BUSY: f64 = 0.5;
/// Bytes of swap over those of the disks, from which on it is not on them. Both are read within a reading, and not at one instant. `own`.
pub const SWAP_ON_DISK: f64 = 1.5;
