//! Recording a watch into the store, by a thread of its own: a slow or full disk holds up neither the screen nor the sampler.

mod tape;

pub(crate) use tape::{Keeping, Tape};

use super::feed::{Following, Heard};
use crate::say::tell;
use anyhow::Context;
use model::Nanos;
use model::process::Processes;
use model::recording::RecordingHead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::Store;

/// How long the thread sleeps at most before it looks whether the watch is over.
const ROUND: Duration = Duration::from_millis(200);
/// How long the end of a watch waits for its last chunk.
const PATIENCE: Duration = Duration::from_secs(10);

/// A recording under way.
pub(crate) struct Recording {
    id: String,
    seen: Sender<(Nanos, Processes)>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<bool>>,
}

/// Begins to record what the sampler sees from now on, and says where; the old recordings that are to be forgotten go first.
pub(super) fn start(
    mut following: Following,
    store: Store,
    head: RecordingHead,
    keeping: Keeping,
) -> anyhow::Result<Recording> {
    let id = head.id.clone();
    let mut tape = Tape::start(store, head, keeping, crate::command::id::now)?;
    let over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&over);
    let (seen, shown) = channel();
    let follow = move || {
        loop {
            // In this order: what was read before the end is not to be overlooked.
            let last = told.load(Ordering::Relaxed);
            let heard = if last { Ok(following.news()) } else { following.hear(ROUND) };
            shown.try_iter().for_each(|(look_ns, processes)| tape.take_processes(look_ns, processes));
            match heard {
                Ok(Heard::Looks { looks, lost }) => tape.take(looks, lost).iter().for_each(tell),
                Ok(Heard::Nothing | Heard::Anew) => {}
                // The screen tells why there is no other sampler.
                Err(_) => break,
            }
            if last {
                break;
            }
        }
        let (told, has_its_end) = tape.end();
        told.iter().for_each(tell);
        has_its_end
    };
    let thread = std::thread::Builder::new()
        .name("recorder".to_owned())
        .spawn(follow)
        .context("cannot start the thread that records")?;
    Ok(Recording { id, seen, over, thread: Some(thread) })
}

impl Recording {
    /// The identifier of its first part.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Where every process at a look goes that was shown.
    pub(super) fn seen(&self) -> Sender<(Nanos, Processes)> {
        self.seen.clone()
    }

    /// Writes what is left, and waits for it, but not for ever. Returns whether the recording has its end.
    pub(crate) fn finish(&mut self) -> bool {
        let Some(thread) = self.thread.take() else { return true };
        self.over.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + PATIENCE;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        if !thread.is_finished() {
            tell(format!("the disk takes nothing: the last minute of recording {} may be missing", self.id));
            return false;
        }
        thread.join().unwrap_or(false)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.finish();
    }
}
