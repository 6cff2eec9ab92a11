//! The live screen of `webdyno load`: a thread of its own that draws what has been seen, and the keys.
//!
//! The load tells it events by the second and never waits for it: what is shared is locked for as long as it takes to add to it
//! or to word it, not while a terminal takes its time. A terminal that goes away ends the drawing and nothing else.

mod terminal;

pub(crate) use terminal::{cook, give_back};

use crate::command::report::language;
use crate::flags::load::LoadFlags;
use crate::progress::Progress;
use experiment::{Event, Phase};
use load::monotonic_ns;
use model::plan::{Plan, ServerSpec};
use report::Language;
use report::screen::{Doing, Painter, Seen};
use rustix::event::{EventfdFlags, eventfd};
use std::io::IsTerminal;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use terminal::{Heard, Terminal};

/// Between two drawings.
const ROUND: Duration = Duration::from_millis(200);
/// Time itself passes on the screen even when nothing else does.
const CLOCK: Duration = Duration::from_secs(1);
/// How long the end waits for a terminal that takes nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// How a load shows its progress.
pub(crate) enum Shown {
    /// Line by line.
    Lines(Progress),
    /// On the whole terminal.
    Screen(Screen),
}

impl Shown {
    /// A screen, when there is a terminal for it and the user wants neither plain output nor a form for programs.
    pub(crate) fn of(flags: &LoadFlags, plan: &Plan, interrupted: &Arc<AtomicBool>) -> Shown {
        let for_people = !(flags.plain || flags.json || flags.csv || flags.openmetrics);
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let terminals = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let fits = for_people && terminals && !dumb && matches!(terminal::in_front(), Ok(true));
        let screen = fits.then(|| Screen::start(seen(plan), language(&flags.lang), Arc::clone(interrupted)));
        match screen {
            Some(Ok(screen)) => Shown::Screen(screen),
            // Without a thread or a descriptor to spare there is still a line.
            Some(Err(_)) | None => Shown::Lines(Progress::new(flags.plain, Arc::clone(interrupted))),
        }
    }

    pub(crate) fn show(&mut self, event: &Event<'_>) {
        match self {
            Shown::Lines(progress) => progress.show(event),
            Shown::Screen(screen) => screen.tell(event),
        }
    }

    /// Gives the terminal back.
    pub(crate) fn finish(&mut self) {
        match self {
            Shown::Lines(progress) => progress.finish(),
            Shown::Screen(screen) => screen.finish(),
        }
    }
}

fn seen(plan: &Plan) -> Seen {
    let (spec, now) = (plan.load(plan.baseline()), monotonic_ns());
    match &plan.server {
        ServerSpec::Url(url) if !url.is_here() => Seen::of_remote(spec, &url.url, now),
        ServerSpec::Url(url) => Seen::of_local(spec, &url.url, now),
        ServerSpec::Apache(_) | ServerSpec::Embedded(_) => Seen::of_local(spec, &plan.name, now),
    }
}

/// A screen and the thread that draws it.
pub(crate) struct Screen {
    shared: Arc<Shared>,
    drawing: Option<JoinHandle<()>>,
}

struct Shared {
    news: Mutex<News>,
    over: AtomicBool,
    // Wakes the thread at the end.
    wake: OwnedFd,
    interrupted: Arc<AtomicBool>,
}

struct News {
    seen: Seen,
    fresh: bool,
}

impl Shared {
    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Screen {
    fn start(seen: Seen, language: Language, interrupted: Arc<AtomicBool>) -> std::io::Result<Screen> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let news = Mutex::new(News { seen, fresh: true });
        let shared = Arc::new(Shared { news, over: AtomicBool::new(false), wake, interrupted });
        let theirs = Arc::clone(&shared);
        let drawing = std::thread::Builder::new().name("screen".to_owned()).spawn(move || draw(&theirs, language))?;
        Ok(Screen { shared, drawing: Some(drawing) })
    }

    fn tell(&self, event: &Event<'_>) {
        let mut news = self.shared.news();
        match event {
            Event::Trial { phase, .. } => news.seen.begin(doing(*phase), monotonic_ns()),
            Event::Preflight(found) => news.seen.preflight(found),
            Event::Interval { interval, .. } => news.seen.interval(interval),
            Event::Reading(reading) => news.seen.reading(reading),
            Event::Building(_) | Event::Started { .. } | Event::Ended { .. } => return,
        }
        news.fresh = true;
    }

    fn finish(&mut self) {
        let Some(drawing) = self.drawing.take() else { return };
        self.shared.over.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
        let deadline = Instant::now() + PATIENCE;
        while !drawing.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        give_back();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.finish();
    }
}

fn doing(phase: Phase) -> Doing {
    match phase {
        Phase::CoolDown | Phase::Start => Doing::Starting,
        Phase::Preflight => Doing::Preflight,
        Phase::WarmUp => Doing::WarmUp,
        Phase::Measure => Doing::Measuring,
    }
}

/// Draws until the load is over or the terminal is gone.
fn draw(shared: &Shared, language: Language) {
    let (painter, mut drawn) = (Painter::new(language), None::<Instant>);
    // What is over at once, such as a refused connection, needs no screen.
    terminal::listen(&shared.wake, ROUND, terminal::Keys::Ignored);
    if shared.over.load(Ordering::Relaxed) {
        return;
    }
    let Ok(mut terminal) = Terminal::take() else { return };
    while !shared.over.load(Ordering::Relaxed) {
        let Ok(keys) = terminal.keys() else { return };
        if keys != terminal::Keys::Ignored && drawn.is_none_or(|at| at.elapsed() >= ROUND) {
            let mut news = shared.news();
            if shared.interrupted.load(Ordering::Relaxed) {
                news.seen.begin(Doing::Ending, monotonic_ns());
            }
            let due = news.fresh || terminal.is_stale() || drawn.is_none_or(|at| at.elapsed() >= CLOCK);
            let view = due.then(|| painter.view(&news.seen, monotonic_ns()));
            news.fresh = false;
            drop(news);
            if let Some(view) = view {
                drawn = Some(Instant::now());
                if terminal.paint(&view).is_err() {
                    return;
                }
            }
        }
        match terminal::listen(&shared.wake, ROUND, keys) {
            Heard::Quit => {
                shared.interrupted.store(true, Ordering::Relaxed);
                shared.news().fresh = true;
            }
            Heard::Nothing => {}
            Heard::Gone => return,
        }
    }
}
