//! A mean latency split into what it went to. The parts and the remainder make up the mean, always; what was counted beyond it is told.
//!
//! By the client's clock a request is unsent, connecting, before the server's own clock, under it, and behind it. What happens under it is
//! taken from the kernel's accounts: on a CPU, waiting for one, blocked. Blocked time is split as processes were seen in it; the kernel's
//! own counters of causes overlap each other and the time on a CPU, so they stand in only where nobody looked.

use super::{Delays, Front, Looks, Told, WorkersTold};
use serde::Serialize;

/// What a request's time goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// No connection of the client was free.
    Unsent,
    /// The connection came up.
    Connect,
    /// The server had not yet accepted the connection.
    AcceptQueue,
    /// Runnable, and another process had the CPU.
    CpuWait,
    /// On a CPU, in the program or in the kernel.
    OnCpu,
    /// Blocked while making room in memory.
    Reclaim,
    /// Blocked while a page came back from swap.
    Swap,
    /// Blocked on a disk.
    Disk,
    /// Blocked on anything else: a lock, a backend.
    Lock,
    /// From the end of the server's clock to the client's last byte.
    Sending,
}

impl Part {
    /// All, in the order of a request's life.
    pub const ALL: [Part; 10] = [
        Part::Unsent,
        Part::Connect,
        Part::AcceptQueue,
        Part::CpuWait,
        Part::OnCpu,
        Part::Reclaim,
        Part::Swap,
        Part::Disk,
        Part::Lock,
        Part::Sending,
    ];
    /// What is shortened first where more was counted than there is time for: waits first, since processes that work on the same request
    /// wait at the same time, and idle ones wait for a CPU before they find that there is nothing to do.
    const SHORTENED: [Part; 6] = [Part::CpuWait, Part::Lock, Part::Disk, Part::Swap, Part::Reclaim, Part::OnCpu];

    /// Its name in documents: `on-cpu`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Unsent => "unsent",
            Part::Connect => "connect",
            Part::AcceptQueue => "accept-queue",
            Part::CpuWait => "cpu-wait",
            Part::OnCpu => "on-cpu",
            Part::Reclaim => "reclaim",
            Part::Swap => "swap",
            Part::Disk => "disk",
            Part::Lock => "lock",
            Part::Sending => "sending",
        }
    }
}

/// What blocked time is split into.
const CAUSES: [Part; 4] = [Part::Reclaim, Part::Swap, Part::Disk, Part::Lock];
/// So many looks at workers in their requests say more than the kernel's sums, which have their time between requests too.
const ENOUGH: u64 = 20;

/// A mean latency, split; microseconds per request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Budget {
    /// Requests that it is the mean of.
    pub requests: u64,
    /// The client's mean: the parts and the remainder together.
    pub mean_us: f64,
    /// Every part, in the order of [`Part::ALL`].
    pub parts: [f64; Part::ALL.len()],
    /// What no part has.
    pub remainder_us: f64,
    /// What was counted beyond the mean and taken off the waits.
    pub left_out_us: f64,
    /// What reclaim took in all by the kernel's counter, on a CPU or not; it is in other parts, too.
    pub reclaim_in_all_us: f64,
    /// Whether the lock part was counted. Otherwise it is what of the server's own time nothing else explains.
    pub lock_is_counted: bool,
}

impl Budget {
    /// Splits the mean; `None` without a request, or without a line of the server's log.
    #[must_use]
    pub fn of(told: &Told) -> Option<Budget> {
        let server = told.server.filter(|server| server.requests > 0 && told.requests > 0)?;
        let each = |ns: u64| ns as f64 / 1e3 / told.requests as f64;
        let line = |ns: f64| (ns / 1e3 / server.requests as f64).max(0.0);
        let mut split = Split { left: each(told.total_ns), parts: [0.0; Part::ALL.len()] };
        split.take(Part::Unsent, each(told.unsent_ns));
        split.take(Part::Connect, each(told.connect_ns));
        split.take(Part::Sending, line(server.after_ns as f64));
        split.take(Part::AcceptQueue, queued(told, line((server.before_ns - server.before_kept_ns) as f64)));
        let own = line(server.own_ns as f64).min(split.left);
        let after_queue = line(server.before_ns as f64) - split.parts[Part::AcceptQueue as usize];
        let unheld = line(told.workers.map_or(0, |workers| workers.unheld_ns) as f64);
        let times = Times { own, held: (own - unheld).max(0.0), before: after_queue.min(split.left - own).max(0.0) };
        let (kernel, lock_is_counted) = kernels(told, times);
        let counted: f64 = kernel.iter().map(|(_, us)| us).sum();
        let left_out_us = (counted - split.left).max(0.0);
        for (part, us) in shortened(kernel, left_out_us) {
            split.take(part, us);
        }
        let reclaim = told.ended.delays.reclaim_ns + told.workers.map_or(0, |workers| workers.delays.reclaim_ns);
        Some(Budget {
            requests: told.requests,
            mean_us: each(told.total_ns),
            parts: split.parts,
            remainder_us: split.left,
            left_out_us,
            reclaim_in_all_us: each(reclaim),
            lock_is_counted,
        })
    }

    /// One part.
    #[must_use]
    pub fn part(&self, part: Part) -> f64 {
        self.parts[part as usize]
    }

    /// What is not known, the remainder and what was left out, as a share of all that was counted: the mean, and what was left out of it.
    #[must_use]
    pub fn unknown(&self) -> f64 {
        let counted = self.mean_us + self.left_out_us;
        if counted > 0.0 { (self.remainder_us + self.left_out_us) / counted } else { 0.0 }
    }
}

/// A mean that is being split.
struct Split {
    left: f64,
    parts: [f64; Part::ALL.len()],
}

impl Split {
    /// Gives a part so much, or what is left.
    fn take(&mut self, part: Part, us: f64) {
        let us = us.clamp(0.0, self.left.max(0.0));
        self.parts[part as usize] += us;
        self.left -= us;
    }
}

/// The time in the accept queue, which is before the server's clock. Where the queue was looked at, it is what Little's law makes of its
/// length: an account of its own. Connections that were turned away there come again later, and are in no queue meanwhile.
fn queued(told: &Told, before: f64) -> f64 {
    match told.queued_ns {
        Some(queued) if told.turned_away == 0 => (queued as f64 / 1e3 / told.requests as f64).min(before),
        _ => before,
    }
}

/// What is split by the kernel's accounts, in microseconds per request.
#[derive(Clone, Copy)]
struct Times {
    /// The server's own time.
    own: f64,
    /// Of that, in which it is known who had the request.
    held: f64,
    /// Between the queue and the server's own clock.
    before: f64,
}

/// What the kernel's accounts make of these; and whether waiting for locks and backends is among what was counted.
fn kernels(told: &Told, Times { own, held, before }: Times) -> (Vec<(Part, f64)>, bool) {
    let each = |ns: f64| ns / 1e3 / told.requests as f64;
    let (ended, workers) = (&told.ended, told.workers.unwrap_or_default());
    let after_life = ended.cpu_by_parents_ns.map_or(0, |by_parents| by_parents.saturating_sub(ended.delays.on_cpu_ns));
    let life = ended.elapsed_ns.saturating_sub(ended.delays.on_cpu_ns).saturating_sub(ended.delays.cpu_wait_ns);
    let mut parts = vec![
        (Part::OnCpu, each((ended.delays.on_cpu_ns + after_life) as f64)),
        (Part::CpuWait, each(ended.delays.cpu_wait_ns as f64)),
    ];
    parts.extend(CAUSES.into_iter().zip(of_lives(life as f64, ended.looks, ended.delays).map(each)));
    // Where each request has a process of its own, all that one waited for was counted, and its worker waited for it.
    let has_programs = ended.processes * 2 >= told.requests;
    let seen = workers.in_requests.filter(|looks| looks.runnable + looks.blocked() >= ENOUGH);
    if let Some(looks) = seen {
        let share = |of: u64| held * of as f64 / (looks.runnable + looks.blocked()) as f64;
        // Accounts are of requests that nobody is known to have had, too.
        let of_held = |ns: u64| each(ns as f64) * if own > 0.0 { held / own } else { 0.0 };
        // What workers do between requests is on the same CPUs and nobody's latency.
        let on_cpu = of_held(workers.delays.on_cpu_ns).min(share(looks.runnable));
        let cpu_wait = share(looks.runnable) - on_cpu;
        // A worker that has been woken up waits for a CPU before it can look at its clock; so do those who find nothing to do.
        let Delays { on_cpu_ns, cpu_wait_ns, .. } = workers.delays;
        let front = workers.front.unwrap_or(Front { on_cpu_ns, cpu_wait_ns, runnable: looks.runnable });
        let in_requests = (share(front.runnable) - of_held(front.on_cpu_ns)).max(0.0);
        let woken = (each(front.cpu_wait_ns as f64) - in_requests).clamp(0.0, before);
        parts.extend([(Part::OnCpu, on_cpu), (Part::CpuWait, cpu_wait + woken)]);
        // Who waits for a program waits for what that waits for, and beyond its life for whoever starts it.
        let other = (share(looks.other) - of_held(ended.elapsed_ns)).max(0.0);
        let [reclaim, swap, disk] = [looks.reclaim, looks.swap, looks.disk].map(share);
        parts.extend(CAUSES.into_iter().zip([reclaim, swap, disk, other]));
        return (parts, true);
    }
    parts.extend([
        (Part::OnCpu, each(workers.delays.on_cpu_ns as f64)),
        (Part::CpuWait, each(workers.delays.cpu_wait_ns as f64)),
    ]);
    parts.extend(CAUSES.into_iter().zip(of_workers(workers).map(each)));
    if !has_programs && told.workers.is_some() {
        let known: f64 = parts.iter().map(|(_, us)| us).sum();
        parts.push((Part::Lock, (held - known).max(0.0)));
    }
    (parts, has_programs)
}

/// Blocked time of processes that ended as reclaim, swap, disk, other: as they were seen, or by the kernel's causes where nobody looked.
fn of_lives(blocked: f64, seen: Looks, delays: Delays) -> [f64; 4] {
    let looks = seen.blocked();
    if looks > 0 {
        return [seen.reclaim, seen.swap, seen.disk, seen.other].map(|of| blocked * of as f64 / looks as f64);
    }
    let mut left = blocked;
    let mut take = |ns: u64| {
        let taken = (ns as f64).min(left);
        left -= taken;
        taken
    };
    let reclaim = take(delays.reclaim_ns + delays.compaction_ns);
    let swap = take(delays.thrashing_ns.max(delays.swap_in_ns));
    let disk = take(delays.disk_ns.saturating_sub((reclaim + swap) as u64));
    [reclaim, swap, disk, left]
}

/// The same of workers: each look stands for the time until the next.
fn of_workers(workers: WorkersTold) -> [f64; 4] {
    let (seen, look) = (workers.blocked, workers.look_ns as f64);
    // One that waits for something else may have nothing to do.
    [seen.reclaim as f64 * look, seen.swap as f64 * look, seen.disk as f64 * look, 0.0]
}

/// The parts without so much of them.
fn shortened(mut parts: Vec<(Part, f64)>, mut by: f64) -> Vec<(Part, f64)> {
    for first in Part::SHORTENED {
        for (_, us) in parts.iter_mut().filter(|(part, _)| *part == first) {
            let off = us.min(by);
            *us -= off;
            by -= off;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::{EndedTold, ServerTold};
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn check(told: &Told, expected: &Expect) {
        let budget = Budget::of(told).expect("there is a log");
        let parts = Part::ALL.iter().zip(budget.parts).filter(|(_, us)| *us > 0.0);
        let parts: String = parts.map(|(part, us)| format!("{} {:.2} ms\n", part.name(), us / 1e3)).collect();
        let (mean, remainder) = (budget.mean_us / 1e3, budget.remainder_us / 1e3);
        let out = budget.left_out_us / 1e3;
        expected.assert_eq(&format!("{parts}= {mean:.2} ms, remainder {remainder:.2} ms, left out {out:.2} ms\n"));
    }

    /// Ten requests at once of CGI programs that thrash: as seen on row 2 of `plans/memory-cliff.toml`, by hundredths.
    fn thrashing() -> Told {
        let delays = Delays { on_cpu_ns: 20 * MS, cpu_wait_ns: 279 * MS, reclaim_ns: 138 * MS, ..Delays::default() };
        let looks = Looks { runnable: 0, reclaim: 80, swap: 318, disk: 0, other: 2 };
        let ended = EndedTold {
            processes: 10,
            elapsed_ns: 5199 * MS,
            delays: delays.times(10.0),
            looks,
            cpu_by_parents_ns: Some(220 * MS),
        };
        let server = ServerTold {
            requests: 10,
            before_ns: 3 * MS as i64,
            before_kept_ns: 0,
            own_ns: 5210 * MS,
            after_ns: 2 * MS as i64,
        };
        Told {
            requests: 10,
            total_ns: 5230 * MS,
            connect_ns: 10 * MS,
            server: Some(server),
            queued_ns: Some(0),
            ended,
            ..Told::default()
        }
    }

    #[test]
    fn programs_that_thrash() {
        check(
            &thrashing(),
            &expect![[r#"
            connect 1.00 ms
            cpu-wait 278.90 ms
            on-cpu 22.00 ms
            reclaim 44.18 ms
            swap 175.62 ms
            lock 1.10 ms
            sending 0.20 ms
            = 523.00 ms, remainder 0.00 ms, left out 0.10 ms
        "#]],
        );
    }

    #[test]
    fn nobody_looked_at_them() {
        let mut told = thrashing();
        told.ended.looks = Looks::default();
        check(
            &told,
            &expect![[r#"
            connect 1.00 ms
            cpu-wait 278.90 ms
            on-cpu 22.00 ms
            reclaim 138.00 ms
            lock 82.90 ms
            sending 0.20 ms
            = 523.00 ms, remainder 0.00 ms, left out 0.10 ms
        "#]],
        );
    }

    #[test]
    fn a_full_accept_queue() {
        let mut told = thrashing();
        told.total_ns += 6000 * MS;
        told.queued_ns = Some(5900 * MS);
        told.server.as_mut().unwrap().before_ns += 6000 * MS as i64;
        check(
            &told,
            &expect![[r#"
            connect 1.00 ms
            accept-queue 590.00 ms
            cpu-wait 279.00 ms
            on-cpu 22.00 ms
            reclaim 44.18 ms
            swap 175.62 ms
            lock 1.10 ms
            sending 0.20 ms
            = 1123.00 ms, remainder 9.90 ms, left out 0.00 ms
        "#]],
        );
        // Those who were turned away came again.
        told.turned_away = 1;
        check(
            &told,
            &expect![[r#"
            connect 1.00 ms
            accept-queue 600.30 ms
            cpu-wait 278.60 ms
            on-cpu 22.00 ms
            reclaim 44.18 ms
            swap 175.62 ms
            lock 1.10 ms
            sending 0.20 ms
            = 1123.00 ms, remainder 0.00 ms, left out 0.40 ms
        "#]],
        );
    }

    #[test]
    fn kept_connections_are_in_no_accept_queue() {
        let mut told = thrashing();
        let wait = 1800 * MS;
        told.total_ns += wait;
        told.queued_ns = None;
        let server = told.server.as_mut().unwrap();
        (server.before_ns, server.before_kept_ns) = (server.before_ns + wait as i64, wait as i64);
        check(
            &told,
            &expect![[r#"
            connect 1.00 ms
            accept-queue 0.30 ms
            cpu-wait 279.00 ms
            on-cpu 22.00 ms
            reclaim 44.18 ms
            swap 175.62 ms
            lock 1.10 ms
            sending 0.20 ms
            = 703.00 ms, remainder 179.60 ms, left out 0.00 ms
        "#]],
        );
    }

    /// Ten requests that wait for a backend most of the time.
    fn behind_a_backend() -> (Told, WorkersTold) {
        let delays = Delays { on_cpu_ns: 10 * MS, cpu_wait_ns: 5 * MS, ..Delays::default() };
        let blocked = Looks { disk: 3, other: 1000, ..Looks::default() };
        let server = ServerTold { requests: 10, own_ns: 200 * MS, ..ServerTold::default() };
        let workers = WorkersTold { delays, blocked, look_ns: 10 * MS, ..WorkersTold::default() };
        let told = Told {
            requests: 10,
            total_ns: 205 * MS,
            connect_ns: MS,
            server: Some(server),
            workers: Some(workers),
            ..Told::default()
        };
        (told, workers)
    }

    /// What they were seen doing in their requests.
    const SEEN: Looks = Looks { runnable: 50, reclaim: 0, swap: 0, disk: 25, other: 25 };

    #[test]
    fn workers_that_wait_for_a_backend() {
        let (told, workers) = behind_a_backend();
        check(
            &told,
            &expect![[r#"
            connect 0.10 ms
            cpu-wait 0.50 ms
            on-cpu 1.00 ms
            disk 3.00 ms
            lock 15.50 ms
            = 20.50 ms, remainder 0.40 ms, left out 0.00 ms
        "#]],
        );
        // They were seen in their requests: it is counted what they waited for.
        let seen = WorkersTold { in_requests: Some(SEEN), ..workers };
        check(
            &Told { workers: Some(seen), ..told.clone() },
            &expect![[r#"
            connect 0.10 ms
            cpu-wait 9.00 ms
            on-cpu 1.00 ms
            disk 5.00 ms
            lock 5.00 ms
            = 20.50 ms, remainder 0.40 ms, left out 0.00 ms
        "#]],
        );
        // Idle ones wait for CPUs too, longer than there is time for.
        let delays = Delays { cpu_wait_ns: 500 * MS, ..workers.delays };
        let busy = WorkersTold { delays, ..workers };
        check(
            &Told { workers: Some(busy), ..told },
            &expect![[r#"
            connect 0.10 ms
            cpu-wait 16.40 ms
            on-cpu 1.00 ms
            disk 3.00 ms
            = 20.50 ms, remainder 0.00 ms, left out 33.60 ms
        "#]],
        );
    }

    #[test]
    fn workers_that_are_known_for_a_part_or_wait_for_programs() {
        let (told, workers) = behind_a_backend();
        let seen = WorkersTold { in_requests: Some(SEEN), ..workers };
        let server = told.server.map(|server| ServerTold { before_ns: 60 * MS as i64, ..server });
        let queued = Told { server, total_ns: 265 * MS, queued_ns: Some(40 * MS), ..told.clone() };
        // For a part of the time nobody is known to have had them; who had taken them had waited for a CPU before, of which as much
        // counts as lies between the queue and the server's clock.
        let front = Front { on_cpu_ns: 4 * MS, cpu_wait_ns: 900 * MS, runnable: 10 };
        let woken = WorkersTold { front: Some(front), unheld_ns: 100 * MS, ..seen };
        check(
            &Told { workers: Some(woken), ..queued.clone() },
            &expect![[r#"
                connect 0.10 ms
                accept-queue 4.00 ms
                cpu-wait 6.50 ms
                on-cpu 0.50 ms
                disk 2.50 ms
                lock 2.50 ms
                = 26.50 ms, remainder 10.40 ms, left out 0.00 ms
            "#]],
        );
        // It waited in requests for most of that, as PHP-FPM behind it did not.
        let front = Front { on_cpu_ns: 4 * MS, cpu_wait_ns: 26 * MS, runnable: 30 };
        let waits = WorkersTold { front: Some(front), ..seen };
        check(
            &Told { workers: Some(waits), ..queued },
            &expect![[r#"
                connect 0.10 ms
                accept-queue 4.00 ms
                cpu-wait 9.00 ms
                on-cpu 1.00 ms
                disk 5.00 ms
                lock 5.00 ms
                = 26.50 ms, remainder 2.40 ms, left out 0.00 ms
            "#]],
        );
        // Nobody looked: what is not known to be anybody's is no lock either.
        let unheld = WorkersTold { unheld_ns: 100 * MS, ..workers };
        check(
            &Told { workers: Some(unheld), ..told.clone() },
            &expect![[r#"
            connect 0.10 ms
            cpu-wait 0.50 ms
            on-cpu 1.00 ms
            disk 3.00 ms
            lock 5.50 ms
            = 20.50 ms, remainder 10.40 ms, left out 0.00 ms
        "#]],
        );
        // A third of them were programs, for which their workers waited.
        let ended = EndedTold {
            processes: 3,
            elapsed_ns: 40 * MS,
            looks: Looks { other: 4, ..Looks::default() },
            ..EndedTold::default()
        };
        check(
            &Told { ended, workers: Some(seen), ..told },
            &expect![[r#"
            connect 0.10 ms
            cpu-wait 9.00 ms
            on-cpu 1.00 ms
            disk 5.00 ms
            lock 5.00 ms
            = 20.50 ms, remainder 0.40 ms, left out 0.00 ms
        "#]],
        );
    }

    #[test]
    fn without_a_log_there_is_no_budget() {
        assert_eq!(Budget::of(&Told { server: None, ..thrashing() }), None);
        assert_eq!(Budget::of(&Told::default()), None);
    }

    fn delays() -> impl Strategy<Value = Delays> {
        prop::array::uniform7(0..10_000_000_000u64).prop_map(|[a, b, c, d, e, f, g]| Delays {
            on_cpu_ns: a,
            cpu_wait_ns: b,
            disk_ns: c,
            swap_in_ns: d,
            reclaim_ns: e,
            thrashing_ns: f,
            compaction_ns: g,
        })
    }

    fn blocked() -> impl Strategy<Value = Looks> {
        prop::array::uniform5(0..100u64).prop_map(|[runnable, reclaim, swap, disk, other]| Looks {
            runnable,
            reclaim,
            swap,
            disk,
            other,
        })
    }

    proptest! {
        #[test]
        fn parts_and_remainder_make_up_the_mean(
            (requests, total_ns, unsent_ns, connect_ns) in (1..1000u64, 0..10_000_000_000u64, 0..1_000_000_000u64, 0..1_000_000_000u64),
            (lines, before_ns, own_ns, after_ns) in (1..1000u64, -1_000_000_000..9_000_000_000i64, 0..9_000_000_000u64, -1_000_000_000..9_000_000_000i64),
            (queued_ns, turned_away) in (prop::option::of(0..9_000_000_000u64), 0..2u64),
            (processes, elapsed_ns, of_ended, blocked_ended) in (0..1000u64, 0..20_000_000_000u64, delays(), blocked()),
            (of_workers, blocked_workers, by_parents, in_requests) in (delays(), blocked(), prop::option::of(0..9_000_000_000u64), prop::option::of(blocked())),
            (front, unheld_ns) in (prop::option::of((delays(), 0..100u64)), 0..9_000_000_000u64),
        ) {
            let server = Some(ServerTold { requests: lines, before_ns, before_kept_ns: before_ns / 2, own_ns, after_ns });
            let ended = EndedTold { processes, elapsed_ns, delays: of_ended, looks: blocked_ended, cpu_by_parents_ns: by_parents };
            let (delays, blocked, look_ns) = (of_workers, blocked_workers, 1_000_000);
            let front = front.map(|(Delays { on_cpu_ns, cpu_wait_ns, .. }, runnable)| Front { on_cpu_ns, cpu_wait_ns, runnable });
            let workers = Some(WorkersTold { delays, front, blocked, look_ns, in_requests, unheld_ns });
            let told = Told { requests, total_ns, unsent_ns, connect_ns, server, queued_ns, turned_away, ended, workers };
            let budget = Budget::of(&told).expect("there is a log");
            let sum: f64 = budget.parts.iter().sum::<f64>() + budget.remainder_us;
            prop_assert!((sum - budget.mean_us).abs() <= 1e-6 * budget.mean_us.max(1.0), "{budget:?}");
            let all = budget.parts.iter().chain([&budget.remainder_us, &budget.left_out_us]);
            prop_assert!(all.clone().all(|us| *us >= -1e-6 && us.is_finite()), "{budget:?}");
            prop_assert!(budget.left_out_us < 1e-6 || budget.remainder_us < 1e-6 * budget.mean_us.max(1.0), "{budget:?}");
        }
    }
}
