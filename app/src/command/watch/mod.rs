//! `webdyno watch`, and webdyno under the name of `dstat`: the machine's numbers, row by row, and no second lost.
//!
//! The sampler's process reads them into a ring; this one waits for each look, draws it as a row and writes it into the file.
//! When a terminal takes no rows for a while, they are still in the ring and come later, each with its own numbers.

mod about;
mod admitted;
mod alias;
mod beat;
mod beside;
mod csv_file;
mod explain;
mod feed;
mod full;
mod lines;
mod meant;
mod metrics;
mod place;
mod record;
mod replay;
mod rows;
mod said;
mod seek;

#[cfg(test)]
mod tests;

use crate::command::report::language;
use crate::exit::{self, Exit};
use crate::flags::LangFlag;
use crate::flags::watch::extras::Extras;
use crate::flags::watch::{Layout, Name, Refusal, WatchFlags, parse};
use crate::interrupt;
use crate::say::{count, print, put, say, say_part, tell, with_causes};
use admitted::Admitted;
use beat::Beat;
use beside::{Beside, Prepared};
use csv_file::CsvFile;
use explain::Explain;
use feed::{Feed, Following, Heard};
use lines::Lines;
use meant::{Meant, meant};
pub(crate) use metrics::Refusal as NoPort;
use model::Nanos;
use model::process::Processes;
use model::reading::{Column, Look};
use monitor::processes;
use place::Clock;
use report::watch::{Compat, Module, csv};
use rows::{Machine, Rows, Seen, Wall};
use seek::Seeker;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// dstat's exit code when there is nothing that it could show.
const NOTHING: Exit = Exit::Code(8);
/// How long a wait for a look goes on before it is begun anew: longer than the second between two of them, so that it is not
/// begun anew for each.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Between a signal's arrival and the flag that tells of it.
const SIGNAL: Duration = Duration::from_millis(5);

/// Watches, as those words say behind that name.
pub(crate) fn run(name: Name, words: &[OsString]) -> Exit {
    let asked = words_of(name, words).and_then(|words| Asked::read(name, &words));
    asked.map_or_else(
        |refusal| said::say(name, &refusal),
        |asked| {
            let done = if asked.extras.replay.is_some() { replay::run(&asked) } else { watch(&asked) };
            match (name, done) {
                // Its contract knows 1 for all trouble, that of a standard output that takes nothing included.
                (Name::Dstat, Ok(Exit::Done)) => Exit::Code(0),
                (_, Ok(done)) => done,
                (name, Err(error)) => {
                    tell(with_causes(&error));
                    if name == Name::Dstat { Exit::Code(1) } else { exit::of(&error) }
                }
            }
        },
    )
}

/// What was asked for.
struct Asked {
    name: Name,
    /// What dstat has, too.
    flags: WatchFlags,
    /// What it has not.
    extras: Extras,
    /// What was typed, without what dstat has not.
    words: Vec<String>,
}

impl Asked {
    fn read(name: Name, words: &[String]) -> Result<Asked, Refusal> {
        let (extras, words) = Extras::take(words)?;
        let mut flags = parse(name, &words)?;
        if extras.screen {
            flags.said = "";
        }
        if extras.json {
            // Lines that are drawn anew are no lines; and a program asked, that is told nothing else.
            (flags.updates, flags.said) = (Some(false), "");
        }
        Ok(Asked { name, flags, extras, words })
    }
}

/// What was typed, behind what dstat's users have in the environment.
fn words_of(name: Name, typed: &[OsString]) -> Result<Vec<String>, Refusal> {
    let always = if name == Name::Dstat { std::env::var("DSTAT_OPTS").unwrap_or_default() } else { String::new() };
    let plain = |word: &OsString| word.clone().into_string();
    let typed: Result<Vec<String>, OsString> = typed.iter().map(plain).collect();
    let typed = typed.map_err(|word| Refusal::Mistake(format!("{} is no plain text", word.display())))?;
    Ok(always.split_whitespace().map(str::to_owned).chain(typed).collect())
}

fn watch(asked: &Asked) -> anyhow::Result<Exit> {
    let Asked { name, flags, extras, .. } = asked;
    let mut meant = meant(*name, flags, place::terminal(), Path::new("/proc"), Path::new("/sys"))?;
    print(flags.said);
    meant.notes.iter().for_each(tell);
    if meant.shown.is_empty() && meant.layout != Layout::Vmstat {
        say("None of the stats you selected are available.");
        return Ok(NOTHING);
    }
    beside::widen(&mut meant.watch, extras);
    let interrupted = interrupt::flag_of_a_watch()?;
    if extras.screen {
        return whole_screen(asked, &meant, &interrupted);
    }
    let prepared = Prepared::of(extras)?;
    let mut follower = Follower::new(&meant, asked, place::machine())?;
    if flags.count == Some(0) && meant.layout != Layout::Modules(Compat::Dstat07) {
        return Ok(Exit::Done);
    }
    let feed = Feed::start(&meant.watch)?;
    let notes = feed.notes();
    let (now, when_it_matters) = meant.concerning(&notes, extras);
    now.iter().for_each(tell);
    let beside = Beside::start(&feed, asked, &meant.watch, prepared)?;
    (follower.held_back, follower.seen) = (when_it_matters, beside.seen());
    let _seeker = seek(&feed, &meant)?;
    follower.start(&notes);
    let done = follow(&mut feed.follow(), &mut follower, &interrupted)?;
    Ok(beside.finish(done))
}

/// Looks for the server of the tree, if it was named.
fn seek(feed: &Arc<Feed>, meant: &Meant) -> anyhow::Result<Option<Seeker>> {
    let watch = &meant.watch;
    meant.server.map(|server| Seeker::start(feed, server, watch.root_pid, &watch.proc_root)).transpose()
}

/// The whole terminal instead of rows.
fn whole_screen(asked: &Asked, meant: &Meant, interrupted: &AtomicBool) -> anyhow::Result<Exit> {
    full::check()?;
    let prepared = Prepared::of(&asked.extras)?;
    let feed = Feed::start(&meant.watch)?;
    let beside = Beside::start(&feed, asked, &meant.watch, prepared)?;
    let _seeker = seek(&feed, meant)?;
    let done = full::live(&feed, asked, meant.watch.period_ns, interrupted);
    let done = done.map(|done| beside.finish(done));
    full::part();
    done
}

/// Hands every look to the follower, until the last row, the user or the sampler's end.
fn follow(following: &mut Following, follower: &mut Follower<'_>, interrupted: &AtomicBool) -> anyhow::Result<Exit> {
    while !interrupted.load(Ordering::Relaxed) {
        let since = Instant::now();
        match following.hear(PATIENCE)? {
            Heard::Looks { looks, lost } => {
                if lost > 0 {
                    tell(format!("{} overwritten before being shown", count(lost, "reading")));
                }
                follower.newest_ns = looks.last().map_or(0, Look::at_ns);
                for look in &looks {
                    if follower.hear(look, place::epoch_of(look)).is_break() {
                        return Ok(Exit::Done);
                    }
                }
            }
            // What ended the wait early was a signal, whose flag is set by another thread.
            Heard::Nothing if since.elapsed() < PATIENCE => std::thread::sleep(SIGNAL),
            Heard::Nothing => {}
            Heard::Anew => {
                follower.tell_held_back();
                follower.beat.shift();
            }
        }
    }
    follower.end();
    Ok(Exit::Done)
}

/// Turns looks into rows, and rows into output.
struct Follower<'a> {
    meant: &'a Meant,
    /// What is shown happens now: processes can be looked at.
    live: bool,
    /// The newest look that has come, which may be several rows later than the one that is shown.
    newest_ns: Nanos,
    /// It has a size, which may change.
    on_terminal: bool,
    /// Processes at looks that are still to come, where it does not.
    recorded: VecDeque<(Nanos, Processes)>,
    /// Who records the processes that are shown.
    seen: Option<Sender<(Nanos, Processes)>>,
    /// What the sampler was refused, to be told when it matters.
    held_back: Vec<String>,
    beat: Beat,
    rows: Rows<'a>,
    /// JSON instead of rows.
    lines: Option<Lines<'a>>,
    clock: Clock,
    /// What the server tells of its admission, where its processes are watched.
    admitted: Option<Admitted>,
    csv: Option<CsvFile>,
    /// Who says what limits the machine, if that is asked for.
    explain: Option<Explain>,
}

impl<'a> Follower<'a> {
    fn new(meant: &'a Meant, asked: &Asked, machine: Machine) -> anyhow::Result<Follower<'a>> {
        let Asked { flags, words, extras, .. } = asked;
        let clock = Clock::new(meant.layout);
        let rows = Rows::new(meant, machine, &clock.text(place::epoch()));
        let csv = match &flags.output {
            Some(path) => Some(begin_file(path, &rows, meant, words)?),
            None => None,
        };
        let (periods, last) = appointments(meant, flags);
        let lines = extras.json.then(|| Lines::new(&meant.watch.devices, machine.page_bytes));
        let beat = Beat::new(meant.watch.period_ns, periods, last);
        let on_terminal = place::terminal_size().is_some();
        Ok(Follower {
            meant,
            live: true,
            newest_ns: 0,
            on_terminal,
            recorded: VecDeque::new(),
            seen: None,
            held_back: Vec::new(),
            beat,
            rows,
            lines,
            clock,
            admitted: meant.shown.iter().any(|shown| shown.module == Module::Tree).then(Admitted::default),
            csv,
            explain: extras.explain.then(|| {
                let language = language(&LangFlag { lang: extras.lang });
                Explain::new(machine, &meant.watch.group, language)
            }),
        })
    }

    /// A row after so much time, and so many rows at most: a recording has looks of its own.
    fn every(&mut self, period_ns: Nanos, count: Option<u32>) {
        self.live = false;
        self.admitted = None;
        self.beat = Beat::new(period_ns, 1, count.map(|count| u64::from(count).saturating_sub(1)));
    }

    /// What comes before the first row.
    fn start(&mut self, notes: &[String]) {
        match &mut self.lines {
            Some(lines) => lines.note(notes),
            None => print(self.rows.opening()),
        }
    }

    /// Shows a look of that time, if it is a row; `Break` when it was the last one, or nobody is there to see more.
    fn hear(&mut self, look: &Look, epoch: f64) -> ControlFlow<()> {
        let late_ns = look.reading.get(Column::SamplerLateNs).unwrap_or(0);
        if let Some(explain) = &mut self.explain {
            explain.hear(look);
        }
        let Some(moment) = self.beat.take(look.at_ns(), late_ns) else { return ControlFlow::Continue(()) };
        // What nobody will see is not made: it would be a good part of what a second of watching costs.
        let clock = if self.rows.show_the_clock() { self.clock.text(epoch) } else { String::new() };
        if moment.late_s.is_some() {
            self.tell_held_back();
        }
        let processes = self.processes_at(look.at_ns());
        if let Some(admitted) = self.admitted.as_mut().filter(|_| self.lines.is_none()) {
            admitted.look(look);
        }
        let (seen, wall) = (Seen { look, processes: processes.as_ref() }, Wall { epoch, clock: &clock });
        if let Some(file) = self.csv.as_mut().filter(|_| moment.fixed) {
            file.append(&self.rows.csv_line(seen, wall)).iter().for_each(tell);
        }
        let text = match &mut self.lines {
            Some(lines) => {
                self.rows.pass(seen, moment);
                lines.draw(look, moment, epoch)
            }
            None => {
                let size = if self.on_terminal { place::terminal_size() } else { None };
                let drawn = self.rows.draw(seen, moment, wall, size, self.admitted.as_ref());
                if drawn.trimmed {
                    say_part("Terminal width too small, trimming output.\n");
                }
                drawn.text
            }
        };
        let explained = self.explained(moment.fixed);
        if !put(text + &explained) {
            return ControlFlow::Break(());
        }
        if self.beat.is_done() {
            self.end();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// What limits the machine, below a row that is final, when that has changed.
    fn explained(&mut self, fixed: bool) -> String {
        let Some(told) = self.explain.as_mut().filter(|_| fixed).and_then(Explain::told) else { return String::new() };
        if let Some(lines) = &mut self.lines {
            lines.note(&[told.headline]);
            return String::new();
        }
        let columns = place::terminal_size().filter(|_| self.on_terminal).map_or(explain::COLUMNS, |size| size.columns);
        let text = told.lines(columns).join("\n");
        // A row that may be drawn anew has no end of line yet, and the next one begins with it.
        if self.meant.updates && !self.rows.is_vmstat() { format!("\n{text}") } else { format!("{text}\n") }
    }

    /// Every process but our own, as dstat leaves itself out. None for a row that comes when the next one is there already: what the
    /// processes do now says nothing about that row, and between two such rows pass milliseconds.
    fn processes_at(&mut self, look_ns: Nanos) -> Option<Processes> {
        let files = self.meant.process_files.as_ref()?;
        if !self.live {
            let before = self.recorded.partition_point(|(at, _)| *at < look_ns);
            drop(self.recorded.drain(..before));
            let is_here = self.recorded.front().is_some_and(|(at, _)| *at == look_ns);
            return is_here.then(|| self.recorded.pop_front()).flatten().map(|(_, processes)| processes);
        }
        if is_held_up(look_ns, self.newest_ns, self.meant.watch.period_ns) {
            return None;
        }
        let found = processes(&self.meant.watch.proc_root, files, &[std::process::id()]);
        if let Some(seen) = &self.seen {
            // Once the recorder has ended there is nobody to tell.
            let _ = seen.send((look_ns, found.clone()));
        }
        Some(found)
    }

    /// What the sampler was refused is told once something has come of it.
    fn tell_held_back(&mut self) {
        self.held_back.drain(..).for_each(tell);
    }

    fn end(&self) {
        if self.lines.is_none() {
            print(self.rows.ending());
        }
    }
}

/// Whether the look after that one, about a period later, has come as well.
fn is_held_up(look_ns: Nanos, newest_ns: Nanos, period_ns: Nanos) -> bool {
    newest_ns.saturating_sub(look_ns) > period_ns / 4 * 3
}

/// Periods from row to row, and the appointment of the last row.
fn appointments(meant: &Meant, flags: &WatchFlags) -> (u64, Option<u64>) {
    let periods = if meant.updates { u64::from(flags.delay) } else { 1 };
    // dstat 0.7.2 did not count the row of the time before.
    let uncounted = u64::from(meant.layout == Layout::Modules(Compat::Dstat07));
    let last = flags.count.map(|count| (u64::from(count) + uncounted).saturating_sub(1) * periods);
    (periods, last)
}

/// Opens the file; what comes before its rows is written with the first one.
fn begin_file(path: &str, rows: &Rows<'_>, meant: &Meant, words: &[String]) -> anyhow::Result<CsvFile> {
    let (mut file, appended) = CsvFile::open(path)?;
    let (host, user, date, words) = (place::host(), place::user(), place::date(), words.join(" "));
    let origin = csv::Origin { host: &host, user: &user, words: &words, date: &date, appended };
    file.head(csv::opening(meant.style.compat, &origin) + &rows.csv_headings());
    Ok(file)
}
