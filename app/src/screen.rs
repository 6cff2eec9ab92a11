//! The live screen of `webdyno load`: a thread of its own that draws what has been seen, and the keys.
//!
//! The load tells it events by the second and never waits for it: what is shared is locked for as long as it takes to add to it
//! or to word it, not while a terminal takes its time. A terminal that goes away ends the drawing and nothing else.

mod terminal;

pub(crate) use terminal::{Heard, Key, LEAVE, Terminal, give_back};

use crate::command::report::language;
use crate::flags::load::LoadFlags;
use crate::interrupt;
use crate::progress::Progress;
use crate::say::{put, say};
use experiment::{Event, Phase};
use load::monotonic_ns;
use model::plan::Plan;
use model::{Nanos, SECOND};
use report::Language;
use report::screen::{Doing, Painter, Seen};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, clock_gettime};
use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two drawings.
const ROUND: Duration = Duration::from_millis(200);
/// Time itself passes on the screen even when nothing else does.
const CLOCK: Duration = Duration::from_secs(1);
/// How long the end waits for the thread that draws.
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
        if for_people && has_screen() {
            // Without a thread or a descriptor to spare there is still a line.
            if let Ok(screen) = Screen::start(seen(plan), language(&flags.lang), Arc::clone(interrupted)) {
                return Shown::Screen(screen);
            }
        }
        Shown::Lines(Progress::new(flags.plain, Arc::clone(interrupted)))
    }

    pub(crate) fn show(&mut self, event: &Event<'_>) {
        match self {
            Shown::Lines(progress) => progress.show(event),
            Shown::Screen(screen) => screen.tell(event),
        }
    }

    /// Gives the terminal back, and says what must not vanish with the screen.
    pub(crate) fn finish(&mut self) {
        match self {
            Shown::Lines(progress) => progress.finish(),
            Shown::Screen(screen) => {
                screen.finish();
                screen.shared.news().seen.remarks().for_each(|what| say(&format!("note: {what}")));
            }
        }
    }
}

/// Whether there is a terminal that can show more than lines.
pub(crate) fn has_screen() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let stdout = std::io::stdout();
    !dumb && stdout.is_terminal() && std::io::stderr().is_terminal() && terminal::in_front(stdout.as_fd())
}

fn seen(plan: &Plan) -> Seen {
    let target = plan.server.url().map_or(&plan.name, |url| &url.url);
    Seen::new(target, plan.load(plan.baseline()), plan.server.is_here(), monotonic_ns())
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

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

impl Screen {
    fn start(seen: Seen, language: Language, interrupted: Arc<AtomicBool>) -> std::io::Result<Screen> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let news = Mutex::new(News { seen, fresh: true });
        let shared = Arc::new(Shared { news, over: AtomicBool::new(false), wake, interrupted });
        let theirs = Arc::clone(&shared);
        give_back_on_panic();
        let draw = move || {
            // An error is a terminal that is gone: there is nobody to tell.
            let _ = draw(&theirs, language);
        };
        let drawing = std::thread::Builder::new().name("screen".to_owned()).spawn(draw)?;
        Ok(Screen { shared, drawing: Some(drawing) })
    }

    fn tell(&self, event: &Event<'_>) {
        let (now, mut news) = (monotonic_ns(), self.shared.news());
        match event {
            Event::Trial { phase, .. } => news.seen.begin(doing(*phase), now),
            Event::Sending(spec) => news.seen.sending(spec),
            Event::Preflight(found) => news.seen.preflight(found),
            Event::Remark(what) => news.seen.remark(what),
            Event::Reading(reading) => {
                news.seen.reading(reading);
                news.seen.cpu(cpu_ns(), now);
            }
            Event::Visits { visitor, interval } => news.seen.visits(visitor, interval),
            Event::Interval { interval, .. } => news.seen.interval(interval),
            Event::Step(step) => news.seen.step(step),
            Event::Searching { head } => {
                let goals = head.plan.search.as_ref().map(|search| search.goals.as_slice());
                news.seen.searching(goals.unwrap_or_default());
            }
            // A screen is for one load; these are of runs of many trials.
            Event::Building(_)
            | Event::Started { .. }
            | Event::Ended { .. }
            | Event::Pilot { .. }
            | Event::Looked { .. }
            | Event::BudgetSpent { .. } => return,
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
        if !give_back() {
            // The report would wait for the terminal, too, and all is kept by now.
            put(terminal::LEAVE);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A panic gives the terminal back before it says what it has to say.
pub(crate) fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _ = give_back();
            others(panic);
        }));
    });
}

fn doing(phase: Phase) -> Doing {
    match phase {
        Phase::CoolDown | Phase::Start => Doing::Beginning,
        Phase::Preflight => Doing::Preflight,
        Phase::WarmUp => Doing::WarmUp,
        Phase::Measure => Doing::Measuring,
    }
}

/// CPU time of this process until now.
fn cpu_ns() -> Nanos {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as Nanos * SECOND + used.tv_nsec as Nanos
}

/// Draws until the load is over or the terminal is gone.
fn draw(shared: &Shared, language: Language) -> std::io::Result<()> {
    // What is over at once, such as a refused connection, needs no screen.
    terminal::pause(&shared.wake, ROUND)?;
    if shared.is_over() {
        return Ok(());
    }
    let (painter, mut drawn) = (Painter::new(language), None::<Instant>);
    let mut terminal = Terminal::take()?;
    while !shared.is_over() {
        let in_front = terminal.is_in_front()?;
        if in_front && drawn.is_none_or(|at| at.elapsed() >= ROUND) {
            let mut news = shared.news();
            if shared.interrupted.load(Ordering::Relaxed) {
                news.seen.begin(Doing::Ending, monotonic_ns());
            }
            let due = news.fresh || terminal.is_resized() || drawn.is_none_or(|at| at.elapsed() >= CLOCK);
            let view = due.then(|| painter.view(&news.seen, monotonic_ns()));
            news.fresh = false;
            drop(news);
            if let Some(view) = view {
                drawn = Some(Instant::now());
                terminal.paint(&view, &shared.wake)?;
            }
        }
        match terminal.listen(&shared.wake, ROUND, in_front) {
            Heard::Keys(keys) => {
                for key in keys {
                    match key {
                        Key::Quit => interrupt::heed(&shared.interrupted),
                        Key::Redraw => terminal.redraw()?,
                        _ => continue,
                    }
                    shared.news().fresh = true;
                }
            }
            Heard::Gone => return Ok(()),
        }
    }
    Ok(())
}
