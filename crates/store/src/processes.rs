//! Every process at several instants as bytes: all of them once, then those that are others than before.
//!
//! Most processes of a machine sleep from one look to the next, so that what changes is little.

use crate::columns::{compress, decompress};
use model::Nanos;
use model::process::{ProcessNumbers, Processes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// What an instant has that the one before had not.
#[derive(Debug, Serialize, Deserialize)]
struct Step {
    look_ns: Nanos,
    at_ns: Nanos,
    #[serde(default)]
    gone: Vec<u32>,
    #[serde(default)]
    others: Vec<ProcessNumbers>,
}

/// Packs them; `None` when there are none.
pub(crate) fn pack(seen: &[(Nanos, Processes)]) -> io::Result<Option<Vec<u8>>> {
    if seen.is_empty() {
        return Ok(None);
    }
    let mut before: BTreeMap<u32, &ProcessNumbers> = BTreeMap::new();
    let mut steps = Vec::new();
    for (look_ns, processes) in seen {
        let now: BTreeMap<u32, &ProcessNumbers> = processes.list.iter().map(|process| (process.pid, process)).collect();
        let gone = before.keys().filter(|pid| !now.contains_key(pid)).copied().collect();
        let others = now.values().filter(|process| before.get(&process.pid) != Some(process));
        let others = others.map(|&process| process.clone()).collect();
        steps.push(Step { look_ns: *look_ns, at_ns: processes.at_ns, gone, others });
        before = now;
    }
    compress(&serde_json::to_vec(&steps)?).map(Some)
}

/// The inverse of [`pack`]; the processes come in the order of their numbers, which is that of /proc.
pub(crate) fn unpack(data: &[u8]) -> Result<Vec<(Nanos, Processes)>, String> {
    let steps: Vec<Step> = serde_json::from_slice(&decompress(data)?).map_err(|error| error.to_string())?;
    let mut now: BTreeMap<u32, ProcessNumbers> = BTreeMap::new();
    let mut seen = Vec::new();
    for Step { look_ns, at_ns, gone, others } in steps {
        now.retain(|pid, _| !gone.contains(pid));
        now.extend(others.into_iter().map(|process| (process.pid, process)));
        seen.push((look_ns, Processes { at_ns, list: now.values().cloned().collect() }));
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let process = |pid, ticks| ProcessNumbers { pid, ticks, name: format!("p{pid}"), ..ProcessNumbers::default() };
        let at = |at_ns: Nanos, list: &[(u32, u64)]| {
            (at_ns - 1, Processes { at_ns, list: list.iter().map(|&(pid, ticks)| process(pid, ticks)).collect() })
        };
        let seen = [at(5, &[(1, 7), (20, 9)]), at(9, &[(1, 7), (3, 1), (20, 10)]), at(11, &[(3, 1)]), at(12, &[])];
        let packed = pack(&seen).unwrap().unwrap();
        assert_eq!(unpack(&packed).unwrap(), seen);
        assert_eq!(pack(&[]).unwrap(), None);
        assert!(unpack(&packed[..packed.len() / 2]).is_err());
    }

    #[test]
    fn who_sleeps_costs_nothing() {
        let process = |pid| ProcessNumbers { pid, chars_read: u64::from(pid * pid), ..ProcessNumbers::default() };
        let list: Vec<_> = (1..=300).map(process).collect();
        let packed = |count: u64| {
            let seen: Vec<_> = (0..count).map(|at_ns| (at_ns, Processes { at_ns, list: list.clone() })).collect();
            pack(&seen).unwrap().unwrap().len()
        };
        assert!(packed(60) < packed(1) + 1000, "{} {}", packed(1), packed(60));
    }
}
