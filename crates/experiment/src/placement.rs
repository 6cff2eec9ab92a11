//! Who runs on which CPU: server and generator apart when there are two, so that neither takes the other's time.

use rustix::thread::{CpuSet, sched_getaffinity};

/// CPUs of the server and of the generator; both empty when they share what there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// The server's.
    pub server: Vec<u32>,
    /// The generator's.
    pub load: Vec<u32>,
}

impl Placement {
    /// The CPUs this process may use, divided: the generator gets the last quarter, at least one.
    #[must_use]
    pub fn split() -> Placement {
        Placement::of(&allowed())
    }

    fn of(cpus: &[u32]) -> Placement {
        if cpus.len() < 2 {
            return Placement::default();
        }
        let load = (cpus.len() / 4).max(1);
        let (server, load) = cpus.split_at(cpus.len() - load);
        Placement { server: server.to_vec(), load: load.to_vec() }
    }
}

fn allowed() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cpus: &[u32], server: &[u32], load: &[u32]) {
        assert_eq!(Placement::of(cpus), Placement { server: server.to_vec(), load: load.to_vec() });
    }

    #[test]
    fn apart_when_there_are_two() {
        check(&[0], &[], &[]);
        check(&[0, 1], &[0], &[1]);
        check(&[2, 3, 5, 7, 8, 9, 10, 11], &[2, 3, 5, 7, 8, 9], &[10, 11]);
    }
}
