//! The cool-down gate: a trial begins when the one before no longer echoes in the host, or after the plan's limit.

use model::Nanos;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One look at the host lasts this long.
const LOOK: Duration = Duration::from_millis(100);
/// Above this share of busy CPU time over one look, somebody still works.
const BUSY: f64 = 0.25;
/// Above this share of stalled time over one look, memory is still being sorted out.
const STALLED: f64 = 0.01;

/// Waits until the host is calm or the limit is over. `None` when it became calm, else one sentence for the trial's notes.
pub(crate) fn cool_down(proc_root: &Path, limit_ns: Nanos, interrupted: &AtomicBool) -> Option<String> {
    let began = Instant::now();
    let limit = Duration::from_nanos(limit_ns);
    let mut before = Look::take(proc_root);
    loop {
        std::thread::sleep(LOOK);
        let now = Look::take(proc_root);
        let restless = now.restless_since(&before);
        if restless.is_none() || interrupted.load(Ordering::Relaxed) {
            return None;
        }
        if began.elapsed() >= limit {
            return restless.map(|why| format!("the host did not calm down within {} s: {why}", limit.as_secs_f64()));
        }
        before = now;
    }
}

/// What the gate needs to know of the host at one instant.
struct Look {
    at: Instant,
    busy_ticks: u64,
    all_ticks: u64,
    memory_full_us: u64,
}

impl Look {
    fn take(proc_root: &Path) -> Look {
        let read = |name: &str| std::fs::read_to_string(proc_root.join(name)).unwrap_or_default();
        let stat = read("stat");
        let ticks: Vec<u64> =
            stat.lines().next().unwrap_or_default().split_whitespace().skip(1).map_while(|t| t.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is already in user.
        let all: u64 = ticks.iter().take(8).sum();
        let resting: u64 = ticks.iter().skip(3).take(2).sum();
        let memory_full_us = read("pressure/memory")
            .lines()
            .find(|line| line.starts_with("full"))
            .and_then(|line| line.rsplit_once("total=")?.1.parse().ok())
            .unwrap_or(0);
        Look { at: Instant::now(), busy_ticks: all - resting, all_ticks: all, memory_full_us }
    }

    fn restless_since(&self, before: &Look) -> Option<&'static str> {
        let ticks = self.all_ticks.saturating_sub(before.all_ticks).max(1);
        let busy = self.busy_ticks.saturating_sub(before.busy_ticks) as f64 / ticks as f64;
        let elapsed = self.at.duration_since(before.at).as_secs_f64().max(1e-6);
        let stalled = self.memory_full_us.saturating_sub(before.memory_full_us) as f64 / 1e6 / elapsed;
        if stalled > STALLED {
            Some("memory is still short")
        } else if busy > BUSY {
            Some("something else keeps its CPUs busy")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_and_stalled_hosts_are_restless() {
        let look = |ms, busy, all, full| Look {
            at: Instant::now() + Duration::from_millis(ms),
            busy_ticks: busy,
            all_ticks: all,
            memory_full_us: full,
        };
        let before = look(0, 0, 0, 0);
        assert_eq!(look(1000, 10, 200, 0).restless_since(&before), None);
        assert_eq!(look(1000, 100, 200, 0).restless_since(&before), Some("something else keeps its CPUs busy"));
        assert_eq!(look(1000, 0, 200, 500_000).restless_since(&before), Some("memory is still short"));
    }
}
