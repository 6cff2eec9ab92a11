//! A few requests, one at a time, to see what comes back.

use crate::engine::{Control, LoadError, Target, run_witnessed};
use crate::sink::{Answered, Ending, Record, Witness};
use model::load::Failure;
use model::plan::LoadSpec;
use model::trial::Preflight;
use std::sync::atomic::AtomicBool;

/// Sends a load of few requests and says what came back. It ends early with the first request that waited in vain.
///
/// # Errors
/// As [`crate::run`].
pub fn look(spec: &LoadSpec, target: &Target, cpus: &[u32], stop: &AtomicBool) -> Result<Preflight, LoadError> {
    let mut control = Control { stop, on_interval: &mut |_| {} };
    let (_, looked) = run_witnessed(spec, target, cpus, &mut control, stop, &FirstLook::default)?;
    Ok(summary(&looked.iter().flat_map(|look| look.records.iter().copied()).collect::<Vec<_>>()))
}

/// Keeps what became of the first requests, until one of them has waited in vain: nobody waits ten times for a silent server.
#[derive(Default)]
struct FirstLook {
    records: Vec<Record>,
}

impl Witness for FirstLook {
    fn saw(&mut self, record: &Record) {
        self.records.push(*record);
    }

    fn is_enough(&self) -> bool {
        self.records.last().is_some_and(|record| record.ending == Ending::Failed(Failure::Timeout))
    }
}

/// What became of a few requests.
#[must_use]
pub fn summary(records: &[Record]) -> Preflight {
    let mut found = Preflight { requests: records.len() as u64, ..Preflight::default() };
    let widen = |range: &mut Option<(u64, u64)>, value: u64| {
        *range = Some(range.map_or((value, value), |(least, most)| (least.min(value), most.max(value))));
    };
    for record in records {
        if let Some(Answered { status, .. }) = record.answer {
            *found.statuses.entry(status).or_default() += 1;
            widen(&mut found.bytes, record.bytes_in);
            widen(&mut found.total_us, (record.end_ns - record.start_ns) / 1000);
        } else if let Ending::Failed(cause) = record.ending {
            *found.failed.entry(cause).or_default() += 1;
        }
    }
    found
}
