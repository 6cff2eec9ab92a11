//! `--screen`: a watch, or a recording, on the whole terminal. A thread draws and listens to keys; the caller ends it.
//!
//! A terminal that takes nothing, or that is gone, holds up nobody: a recording and a port for metrics follow the sampler themselves.

mod live;
mod recorded;

use super::Asked;
use super::feed::Feed;
use crate::command::report::language;
use crate::exit::Exit;
use crate::flags::LangFlag;
use crate::say::{hold, kept_back, let_go, put, without_numbers};
use crate::screen::{Heard, Key, LEAVE, Terminal, give_back, give_back_on_panic, has_screen};
use anyhow::{Context, bail};
use live::Live;
use model::Nanos;
use model::SECOND;
use model::reading::Look;
use model::run::HostFacts;
use recorded::Tape;
use report::Language;
use report::watch::full::{Painter, Scene, State, ZOOMS, first_needed};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two drawings.
const ROUND: Duration = Duration::from_millis(200);
/// Between two looks at whether the user wants to end.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the end waits for the thread that draws.
const PATIENCE: Duration = Duration::from_secs(1);
/// Page Up and Page Down go so many columns far.
const PAGE: i64 = 30;
/// The length of a column at first: minutes in 80 columns.
const ZOOM: usize = 2;

/// What is shown: looks that come, or that came.
trait Film: Send {
    /// Goes on by what has come since; true when it looks different now.
    fn go_on(&mut self) -> anyhow::Result<bool>;
    /// Whether there is nothing more to come.
    fn is_over(&self) -> bool;
    /// Stops, or goes on.
    fn pause(&mut self);
    /// Goes so much time back, or forth.
    fn step(&mut self, by_ns: i64);
    /// Goes to the first look, or to the last.
    fn leap(&mut self, last: bool);
    /// Twice as fast, or half as fast.
    fn speed(&mut self, faster: bool);
    /// What there is to be seen, in columns of that length.
    fn still(&mut self, column_ns: Nanos) -> anyhow::Result<Still<'_>>;
}

/// What is to be seen at a moment.
struct Still<'a> {
    looks: &'a [Look],
    state: State,
    when: String,
    host: &'a HostFacts,
    page_bytes: u64,
    period_ns: Nanos,
    notes: Vec<String>,
}

/// Watches this machine until the user ends it, or until so many looks have come.
pub(super) fn live(
    feed: &Arc<Feed>,
    asked: &Asked,
    period_ns: Nanos,
    interrupted: &AtomicBool,
) -> anyhow::Result<Exit> {
    show(Live::new(feed, period_ns, asked.flags.count), asked, interrupted)
}

/// Shows a recording until the user ends it.
pub(super) fn recorded(store: &Path, asked: &Asked, interrupted: &AtomicBool) -> anyhow::Result<Exit> {
    let id = asked.extras.replay.as_deref().unwrap_or(store::LATEST);
    show(Tape::open(store, id, asked.extras.speed.unwrap_or(1.0))?, asked, interrupted)
}

/// A full screen needs a terminal: said before anything is started.
pub(super) fn check() -> anyhow::Result<()> {
    if !has_screen() {
        bail!("--screen needs a terminal; without it there are rows");
    }
    Ok(())
}

fn show(film: impl Film + 'static, asked: &Asked, interrupted: &AtomicBool) -> anyhow::Result<Exit> {
    let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).context("no descriptor to spare")?);
    let over = Arc::new(AtomicBool::new(false));
    let (theirs, told) = (Arc::clone(&wake), Arc::clone(&over));
    let language = language(&LangFlag { lang: asked.extras.lang });
    give_back_on_panic();
    hold();
    let draw = move || Player::new(film, language).run(&theirs, &told);
    let drawing =
        std::thread::Builder::new().name("screen".to_owned()).spawn(draw).context("cannot start the screen")?;
    while !interrupted.load(Ordering::Relaxed) && !drawing.is_finished() {
        std::thread::sleep(PAUSE);
    }
    over.store(true, Ordering::Relaxed);
    let _ = rustix::io::write(&*wake, &1_u64.to_ne_bytes());
    let deadline = Instant::now() + PATIENCE;
    while !drawing.is_finished() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    OWED.store(!give_back(), Ordering::Relaxed);
    if drawing.is_finished() {
        // A panic was told by its own words.
        drawing.join().unwrap_or(Ok(()))?;
    }
    Ok(Exit::Done)
}

/// Whether the terminal took nothing when it was to be given back.
static OWED: AtomicBool = AtomicBool::new(false);

/// Says what was kept back, when all is kept: this may wait for the terminal.
pub(super) fn part() {
    if OWED.swap(false, Ordering::Relaxed) {
        put(LEAVE);
    }
    let_go();
}

/// Draws a film and does what keys say.
struct Player<F> {
    film: F,
    painter: Painter,
    zoom: usize,
    help: bool,
}

impl<F: Film> Player<F> {
    fn new(film: F, language: Language) -> Player<F> {
        Player { film, painter: Painter::new(language), zoom: ZOOM, help: false }
    }

    /// Until it is over, the user wants to end, or the terminal is gone.
    fn run(mut self, wake: &OwnedFd, over: &AtomicBool) -> anyhow::Result<()> {
        // A terminal that is gone is no error: there is nobody to tell.
        let Ok(mut terminal) = Terminal::take() else { return Ok(()) };
        let mut fresh = true;
        while !over.load(Ordering::Relaxed) && !self.film.is_over() {
            fresh |= self.film.go_on()?;
            let Ok(in_front) = terminal.is_in_front() else { return Ok(()) };
            if in_front && (fresh || terminal.is_resized()) {
                fresh = false;
                let column_ns = ZOOMS[self.zoom] * SECOND;
                let still = self.film.still(column_ns)?;
                let view = self.painter.view(&Scene {
                    looks: &still.looks[first_needed(still.looks, column_ns)..],
                    page_bytes: still.page_bytes,
                    host: still.host,
                    period_ns: still.period_ns,
                    when: &still.when,
                    state: still.state,
                    notes: &still.notes,
                    help: self.help,
                    column_ns,
                });
                if terminal.paint(&view, wake).is_err() {
                    return Ok(());
                }
            }
            match terminal.listen(wake, ROUND, in_front) {
                Heard::Gone => return Ok(()),
                Heard::Keys(keys) => {
                    for key in keys {
                        fresh = true;
                        match key {
                            Key::Quit => return Ok(()),
                            Key::Redraw if terminal.redraw().is_err() => return Ok(()),
                            key => self.key(key),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn key(&mut self, key: Key) {
        let column = (ZOOMS[self.zoom] * SECOND).cast_signed();
        match key {
            Key::Letter(b'p' | b' ') => self.film.pause(),
            Key::Letter(b'?' | b'h') => self.help = !self.help,
            Key::Letter(b'+' | b'=') => self.zoom = self.zoom.saturating_sub(1),
            Key::Letter(b'-') => self.zoom = (self.zoom + 1).min(ZOOMS.len() - 1),
            Key::Letter(b'<' | b',') => self.film.speed(false),
            Key::Letter(b'>' | b'.') => self.film.speed(true),
            Key::Left => self.film.step(-column),
            Key::Right => self.film.step(column),
            Key::PageUp => self.film.step(-PAGE * column),
            Key::PageDown => self.film.step(PAGE * column),
            Key::Home => self.film.leap(false),
            Key::End => self.film.leap(true),
            Key::Letter(_) | Key::Quit | Key::Redraw => {}
        }
    }
}

/// What was said beside the screen, the newest first, before what was said at the beginning.
fn with_news(notes: &[String]) -> Vec<String> {
    let mut all = kept_back();
    all.reverse();
    all.extend(notes.iter().map(|note| without_numbers(note)));
    all
}
