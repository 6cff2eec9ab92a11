//! Programs that have nothing to do with a measurement and keep the CPUs busy beside it.
//!
//! What a database does for the server looks, in the measured window, like what a compiler does for somebody else. They are told apart by
//! the time before anything was sent: what a program used then it uses for somebody else.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// Clock ticks per second in /proc, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Part of the host's CPU time from which others' work is in the way: without them the server could do a sixth more, which is as much as
/// windows on a calm machine differ by; and a CPU that is full for the server and them alike is said to be the server's limit.
const IN_THE_WAY: f64 = 0.15;
/// Whoever has less than this part of what all others together used is not named.
const NAMED: f64 = 0.1;
/// Nothing is told by a shorter look: clock ticks are of 10 ms.
const SHORTEST: Nanos = 80_000_000;

/// CPU time of programs other than the server, the generator and webdyno, while nothing was sent and in the measured window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// CPUs of the host.
    pub cpus: u32,
    /// How long they were looked at while nothing was sent.
    pub calm_ns: Nanos,
    /// How long in the window.
    pub window_ns: Nanos,
    /// Those that used most in the window, first the largest.
    pub programs: Vec<Program>,
}

/// A program with all that it started in its session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Name of the process that used most.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// Clock ticks used while nothing was sent.
    pub calm_ticks: u64,
    /// Clock ticks used in the window.
    pub ticks: u64,
}

/// Others that were in the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Crowd {
    /// Part of the host's CPU time that they used in the window, 0 to 1.
    pub share: f64,
    /// Who, first the largest, three at most: `name (number)`.
    pub names: Vec<String>,
}

impl Others {
    /// Those that were in the way: what each used in the window, but no more than it did while nothing was sent, is enough to doubt what
    /// was measured.
    #[must_use]
    pub fn crowd(&self) -> Option<Crowd> {
        if self.calm_ns < SHORTEST || self.window_ns == 0 || self.cpus == 0 {
            return None;
        }
        let cores = |ticks: u64, ns: Nanos| ticks as f64 / TICKS_PER_SECOND / (ns as f64 / 1e9);
        let own = |it: &Program| cores(it.calm_ticks, self.calm_ns).min(cores(it.ticks, self.window_ns));
        let all: f64 = self.programs.iter().map(own).sum();
        let share = all / f64::from(self.cpus);
        let mut crowd: Vec<&Program> = self.programs.iter().filter(|it| own(it) >= NAMED * all).collect();
        crowd.sort_by(|a, b| own(b).total_cmp(&own(a)));
        let names = crowd.iter().take(3).map(|it| format!("{} ({})", it.name, it.pid)).collect();
        (share >= IN_THE_WAY).then_some(Crowd { share, names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SECOND;

    fn program(name: &str, calm_ticks: u64, ticks: u64) -> Program {
        Program { name: name.to_owned(), pid: 7, calm_ticks, ticks }
    }

    /// Of two CPUs, a second without a load and ten with one.
    fn check(programs: &[Program], expected: Option<(f64, &[&str])>) {
        let others = Others { cpus: 2, calm_ns: SECOND, window_ns: 10 * SECOND, programs: programs.to_vec() };
        let found = others.crowd().map(|crowd| (format!("{:.3}", crowd.share), crowd.names));
        let expected = expected.map(|(share, names)| {
            (format!("{share:.3}"), names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        });
        assert_eq!(found, expected, "{programs:?}");
    }

    #[test]
    fn what_was_used_before_anything_was_sent_is_used_for_somebody_else() {
        check(&[], None);
        check(&[program("make", 100, 1000)], Some((0.5, &["make (7)"])));
        // The load left it half a CPU.
        check(&[program("make", 100, 500)], Some((0.25, &["make (7)"])));
        // A database that has something to do only while the server has.
        check(&[program("mariadbd", 1, 1500)], None);
        check(&[program("mariadbd", 1, 1500), program("make", 50, 300)], Some((0.155, &["make (7)"])));
        // Too little to matter, alone.
        check(&[program("agent", 30, 290)], None);
        check(&[program("agent", 30, 290), program("backup", 20, 50)], Some((0.17, &["agent (7)", "backup (7)"])));
        check(&vec![program("little", 6, 60); 6], Some((0.18, &["little (7)"; 3])));
        // It ended before the load.
        check(&[program("make", 200, 0)], None);
    }

    #[test]
    fn nothing_is_told_by_a_short_look() {
        let programs = vec![program("make", 100, 1000)];
        let look = |calm_ns, window_ns| Others { cpus: 2, calm_ns, window_ns, programs: programs.clone() }.crowd();
        assert_eq!((look(SHORTEST - 1, SECOND), look(SHORTEST, 0)), (None, None));
        assert!(look(SHORTEST, SECOND).is_some());
    }
}
