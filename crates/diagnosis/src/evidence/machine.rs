//! The machine that a server runs on, and the part of it that the server may have.

use model::plan::Confinement;
use model::run::RunHead;
use model::trial::Share;

/// What a window's numbers are held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// CPUs of the host.
    pub host_cpus: f64,
    /// CPUs the server may have: those it is pinned to, or its limit of CPU time.
    pub server_cpus: f64,
    /// Those that it is pinned to, whatever its group may use of them.
    pub pinned_cpus: f64,
    /// Bytes of memory of the host, where the readings do not tell.
    pub memory: Option<f64>,
    /// Whether the server has a group of its own.
    pub grouped: bool,
    /// Bytes of memory that its group may have, where the readings do not tell.
    pub group_memory: Option<f64>,
    /// Whether a limit of memory lies around it of whose group there are no readings.
    pub limit_is_unseen: bool,
}

impl Machine {
    /// One of so many CPUs that is only watched; a group that is watched stands for the server.
    #[must_use]
    pub fn watched(cpus: f64, grouped: bool) -> Machine {
        let [host_cpus, server_cpus, pinned_cpus] = [cpus; 3];
        Machine {
            host_cpus,
            server_cpus,
            pinned_cpus,
            memory: None,
            grouped,
            group_memory: None,
            limit_is_unseen: false,
        }
    }

    /// That of a run, for a server that may have that share of it.
    #[must_use]
    pub fn of(head: &RunHead, share: Option<Share>) -> Machine {
        let host_cpus = f64::from(head.host.cpus.max(1));
        let pinned = if head.server_cpus.is_empty() { host_cpus } else { head.server_cpus.len() as f64 };
        let confine = head.plan.confine.as_ref();
        let limit_is_unseen = share.is_some_and(|share| share.memory.is_some() && !share.is_watched);
        let quota = confine.and_then(Confinement::cpus).or(share.and_then(|share| share.cpus));
        Machine {
            host_cpus,
            server_cpus: quota.map_or(pinned, |quota| quota.min(pinned)),
            pinned_cpus: pinned,
            memory: (head.host.memory > 0 && !limit_is_unseen).then_some(head.host.memory as f64),
            grouped: confine.is_some() || share.is_some_and(|share| share.is_watched),
            group_memory: confine.and_then(|confine| confine.memory).map(|bytes| bytes as f64),
            limit_is_unseen,
        }
    }
}
