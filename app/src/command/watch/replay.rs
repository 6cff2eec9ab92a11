//! `--replay ID`: a recording, or the readings of a run, as rows, in any layout: at once into a pipe, as fast as it was on a terminal.

use super::meant::{There, meant_of};
use super::rows::Machine;
use super::{Asked, Follower, NOTHING, full, place};
use crate::command::report::store_path;
use crate::exit::Exit;
use crate::flags::StoreFlag;
use crate::flags::watch::{Layout, parse, split};
use crate::interrupt;
use crate::say::{count, say, tell};
use anyhow::Context;
use model::device::Roster;
use model::reading::Look;
use model::recording::RecordingHead;
use model::run::Run;
use model::{Nanos, SECOND};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::{Kept, Recorded, Store};

/// Nobody wants to wait for longer than this, whatever happened then.
const LONGEST: Duration = Duration::from_secs(10);
/// How long a signal waits for the flag to be looked at.
const ROUND: Duration = Duration::from_millis(50);

/// Shows a recording.
pub(super) fn run(asked: &Asked) -> anyhow::Result<Exit> {
    let path = store_path(&StoreFlag { path: asked.extras.store.clone() })?;
    if asked.extras.screen {
        full::check()?;
        let interrupted = interrupt::flag_of_a_watch()?;
        let done = full::recorded(&path, asked, &interrupted);
        full::part();
        return done;
    }
    let store = Store::open_existing(&path)?;
    let id = asked.extras.replay.as_deref().unwrap_or(store::LATEST);
    // The newest is the newest recording: whoever means a run says which.
    if let (true, Ok(Kept::Run(run))) = (id != store::LATEST, store.kept(id)) {
        return readings_of(&run, asked);
    }
    let recorded = store.recorded(id)?;
    let asked = as_recorded(asked, &recorded)?;
    let roster = &recorded.head.roster;
    let mut meant = meant_of(asked.name, &asked.flags, place::terminal(), &There::Recorded(roster))?;
    meant.updates = false;
    meant.watch.devices = roster.clone();
    meant.watch.period_ns = recorded.head.period_ns;
    introduce(&recorded);
    meant.notes.iter().for_each(tell);
    if meant.shown.is_empty() && meant.layout != Layout::Vmstat {
        say("None of the stats you selected are available.");
        return Ok(NOTHING);
    }
    let interrupted = interrupt::flag_of_a_watch()?;
    let RecordingHead { page_bytes, host, .. } = &recorded.head;
    let machine = Machine { page_bytes: *page_bytes, cpus: usize::try_from(host.cpus).unwrap_or(1).max(1) };
    let mut follower = Follower::new(&meant, &asked, machine)?;
    follower.every(recorded.head.period_ns.max(u64::from(asked.flags.delay) * SECOND), asked.flags.count);
    follower.start(&recorded.head.notes);
    let mut pace = Pace::new(asked.extras.speed, place::terminal_size().is_some());
    for piece in &recorded.pieces {
        let mut chunk = store.chunk(&recorded, piece)?;
        if chunk.lost > 0 {
            tell(format!("{} missing here", count(chunk.lost, "reading")));
        }
        chunk.notes.iter().for_each(tell);
        follower.recorded = std::mem::take(&mut chunk.processes).into();
        for look in &chunk.looks {
            let at_ns = look.at_ns();
            let epoch = chunk.anchor_at(at_ns).epoch_s(at_ns);
            if !pace.wait(look, &interrupted) || follower.hear(look, epoch).is_break() {
                follower.end();
                return Ok(Exit::Done);
            }
        }
    }
    follower.end();
    Ok(Exit::Done)
}

/// What dstat was asked for in the first document.
const USUAL_WORDS: &str = "-cmsdlnr";

/// Shows what was read during the trials of a run, each under headings of its own.
fn readings_of(run: &Run, asked: &Asked) -> anyhow::Result<Exit> {
    let head = head_of(run);
    let recorded = Recorded { head, end: run.head.end.clone(), pieces: Vec::new() };
    let asked = as_recorded(asked, &recorded)?;
    let RecordingHead { page_bytes, host, roster, period_ns, .. } = &recorded.head;
    let mut meant = meant_of(asked.name, &asked.flags, place::terminal(), &There::Recorded(roster))?;
    meant.updates = false;
    meant.watch.period_ns = *period_ns;
    meant.notes.iter().for_each(tell);
    let interrupted = interrupt::flag_of_a_watch()?;
    let machine = Machine { page_bytes: *page_bytes, cpus: usize::try_from(host.cpus).unwrap_or(1).max(1) };
    for (number, trial) in (1..).zip(&run.trials).filter(|(_, trial)| !trial.readings.rows.is_empty()) {
        tell(format!("trial {number} of {}, block {}: {}", run.trials.len(), trial.block + 1, trial.cell));
        let mut follower = Follower::new(&meant, &asked, machine)?;
        follower.every((*period_ns).max(u64::from(asked.flags.delay) * SECOND), asked.flags.count);
        follower.start(&trial.readings.notes);
        let mut pace = Pace::new(asked.extras.speed, place::terminal_size().is_some());
        for reading in &trial.readings.rows {
            let look = Look { reading: reading.clone(), devices: Vec::new() };
            let anchor = reading.anchor().unwrap_or(run.head.anchor);
            let epoch = anchor.epoch_s(reading.at_ns);
            if !pace.wait(&look, &interrupted) {
                follower.end();
                return Ok(Exit::Done);
            }
            if follower.hear(&look, epoch).is_break() {
                break;
            }
        }
        follower.end();
    }
    Ok(Exit::Done)
}

/// A run's readings as a recording: of the whole machine and of no single device.
fn head_of(run: &Run) -> RecordingHead {
    let rows = run.trials.iter().map(|trial| &trial.readings.rows).find(|rows| rows.len() > 1);
    let period_ns = rows.map_or(SECOND, |rows| rows[1].at_ns.saturating_sub(rows[0].at_ns));
    RecordingHead {
        id: run.head.id.clone(),
        anchor: run.head.anchor,
        host: run.head.host.clone(),
        version: run.head.version.clone(),
        words: vec![USUAL_WORDS.to_owned()],
        period_ns,
        // Runs do not keep it; it is the same for all machines of a kind.
        page_bytes: rustix::param::page_size() as u64,
        roster: Roster::default(),
        notes: Vec::new(),
        continues: None,
    }
}

/// What is shown when nothing is asked for: what was shown when it was recorded.
fn as_recorded(asked: &Asked, recorded: &Recorded) -> anyhow::Result<Asked> {
    let (options, times) = split(&asked.words);
    let (their_options, their_times) = split(&recorded.head.words);
    let words = match (options, times) {
        ([], []) => [their_options, their_times].concat(),
        ([], times) => [their_options, times].concat(),
        _ => asked.words.clone(),
    };
    let mut flags = parse(asked.name, &words).ok().with_context(|| {
        format!("recording {} was made by a webdyno with other options: say which modules to show", recorded.head.id)
    })?;
    flags.said = "";
    if options.is_empty() {
        // The file that was written then has its rows.
        flags.output = None;
    }
    if times.is_empty() && !options.is_empty() {
        // As dense as it was, and not a row a second.
        flags.delay = u32::try_from(recorded.head.period_ns / SECOND).unwrap_or(1).max(1);
    }
    Ok(Asked { name: asked.name, flags, extras: asked.extras.clone(), words })
}

fn introduce(recorded: &Recorded) {
    let head = &recorded.head;
    let began = place::date_of(head.anchor.wall_ns);
    let looks: u64 = recorded.pieces.iter().map(|piece| piece.extent.looks).sum();
    let after = head.continues.as_ref().map_or_else(String::new, |id| format!(", goes on from {id}"));
    tell(format!(
        "recording {} of {} (Linux {}), {} from {began} on{after}",
        head.id,
        head.host.name,
        head.host.kernel,
        count(looks, "reading")
    ));
}

/// How fast a recording goes by.
struct Pace {
    /// Times faster than it was; at once if `None`.
    speed: Option<f64>,
    last: Option<Nanos>,
}

impl Pace {
    fn new(speed: Option<f64>, on_terminal: bool) -> Pace {
        Pace { speed: speed.or(on_terminal.then_some(1.0)), last: None }
    }

    /// Waits until it is time for the look; false when the user wants to end.
    fn wait(&mut self, look: &Look, interrupted: &AtomicBool) -> bool {
        let since = self.last.replace(look.at_ns()).map_or(0, |last| look.at_ns().saturating_sub(last));
        let length = self.speed.map_or(Duration::ZERO, |speed| after(since, speed));
        let until = Instant::now() + length;
        while !interrupted.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(ROUND));
        }
        false
    }
}

/// How long so much time of a recording takes.
fn after(recorded_ns: Nanos, speed: f64) -> Duration {
    Duration::try_from_secs_f64(recorded_ns as f64 / 1e9 / speed).unwrap_or(LONGEST).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_by_as_it_was_or_faster() {
        let check = |ns, speed, expected| assert_eq!(after(ns, speed), Duration::from_millis(expected));
        check(SECOND, 1.0, 1000);
        check(SECOND, 4.0, 250);
        check(3600 * SECOND, 1.0, 10_000);
        check(SECOND, 1e-300, 10_000);
    }
}
