//! One request whose answer is kept, to be looked at before a load: sent as the load itself sends it.

use crate::checks::Checks;
use crate::engine::{Engine, LoadError, Target};
use crate::sink::{Ending, Records};
use model::plan::{LoadSpec, Pace};
use std::sync::atomic::AtomicBool;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its status.
    pub status: u16,
    /// Its whole body.
    pub body: Vec<u8>,
}

/// No answer that could be kept.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The request could not be made.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It was not answered.
    #[error("no complete answer: {0}")]
    Failed(String),
    /// It is longer than anybody looks at.
    #[error("the body is longer than the {MOST} bytes that are kept of one")]
    TooLong,
}

/// The most bytes of a body that are kept.
const MOST: usize = 8 << 20;

/// Sends the first request of a load and keeps its answer.
///
/// # Errors
/// When there is no complete answer, or one too long.
pub fn fetch(spec: &LoadSpec, target: &Target, stop: &AtomicBool) -> Result<Fetched, FetchError> {
    let one = one(spec);
    let (engine, dialers) = Engine::ready(&one, target, &[], stop)?;
    let engine = engine.looking(Checks::keeping(MOST));
    let mut workers = engine.drive(dialers, vec![Records::default], || {})?;
    let finished = workers.swap_remove(0);
    match finished.summary.first() {
        Some(record) if record.ending == Ending::Good => match finished.kept {
            // One more byte than is kept would not be there.
            body if body.len() < MOST => Ok(Fetched { status: record.answer.map_or(0, |answer| answer.status), body }),
            _ => Err(FetchError::TooLong),
        },
        _ => {
            let why = finished.examples.into_values().next();
            Err(FetchError::Failed(why.unwrap_or_else(|| "it was stopped".to_owned())))
        }
    }
}

/// Sends the first request of a load and gives back the address that its answer points to, if it does: a redirect's.
///
/// # Errors
/// When the request cannot be made.
pub fn location(spec: &LoadSpec, target: &Target, stop: &AtomicBool) -> Result<Option<String>, LoadError> {
    let one = one(spec);
    let (engine, dialers) = Engine::ready(&one, target, &[], stop)?;
    let engine = engine.looking(Checks::pointing());
    let kept = engine.drive(dialers, vec![Records::default], || {})?.swap_remove(0).kept;
    Ok((!kept.is_empty()).then(|| kept.escape_ascii().to_string()))
}

fn one(spec: &LoadSpec) -> LoadSpec {
    LoadSpec {
        pace: Pace::WhenFree,
        session: None,
        connections: 1,
        pipeline: 1,
        threads: Some(1),
        requests: Some(1),
        duration_ns: None,
        ..spec.clone()
    }
}
