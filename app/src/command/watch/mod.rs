//! `webdyno watch`, and webdyno under the name of `dstat`: the machine's numbers, row by row, and no second lost.
//!
//! The sampler's process reads them into a ring; this one waits for each look, draws it as a row and writes it into the file.
//! When a terminal takes no rows for a while, they are still in the ring and come later, each with its own numbers.

mod about;
mod beat;
mod csv_file;
mod meant;
mod place;
mod rows;
mod said;

#[cfg(test)]
mod tests;

use crate::exit::{self, Exit};
use crate::flags::watch::{Layout, Name, Refusal, WatchFlags, parse};
use crate::interrupt;
use crate::say::{print, say, say_part, tell, with_causes};
use anyhow::Context;
use beat::Beat;
use csv_file::CsvFile;
use meant::{Meant, meant};
use model::reading::Look;
use monitor::{Awaited, Sampler, Watch};
use place::Clock;
use report::watch::{Compat, csv};
use rows::{Rows, Wall};
use std::ffi::OsString;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// dstat's exit code when there is nothing that it could show.
const NOTHING: Exit = Exit::Code(8);
/// How long a wait for a look goes on before it is begun anew.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between a signal's arrival and the flag that tells of it.
const SIGNAL: Duration = Duration::from_millis(5);

/// Watches, as those words say behind that name.
pub(crate) fn run(name: Name, words: &[OsString]) -> Exit {
    let words = words_of(name, words);
    match words.as_ref().map_err(Clone::clone).and_then(|words| parse(name, words)) {
        Err(refusal) => said::say(name, &refusal),
        Ok(flags) => watch(name, &flags, &words.unwrap_or_default()).unwrap_or_else(|error| {
            tell(with_causes(&error));
            if name == Name::Dstat { Exit::Code(1) } else { exit::of(&error) }
        }),
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

fn watch(name: Name, flags: &WatchFlags, words: &[String]) -> anyhow::Result<Exit> {
    let meant = meant(name, flags, place::terminal(), Path::new("/proc"), Path::new("/sys"))?;
    print(flags.said);
    meant.notes.iter().for_each(tell);
    if meant.shown.is_empty() && meant.layout != Layout::Vmstat {
        say("None of the stats you selected are available.");
        return Ok(NOTHING);
    }
    let interrupted = interrupt::flag_of_a_watch()?;
    let mut follower = Follower::new(&meant, flags, words)?;
    if flags.count == Some(0) && meant.layout != Layout::Modules(Compat::Dstat07) {
        return Ok(Exit::Done);
    }
    let mut source = Source::start(&meant.watch)?;
    meant.concerning(&source.sampler.notes()).for_each(tell);
    follow(&mut source, &mut follower, &interrupted)
}

/// Hands every look to the follower, until the last row, the user or the sampler's end.
fn follow(source: &mut Source<'_>, follower: &mut Follower<'_>, interrupted: &AtomicBool) -> anyhow::Result<Exit> {
    while !interrupted.load(Ordering::Relaxed) {
        let since = Instant::now();
        match source.sampler.wait(source.next, PATIENCE) {
            Awaited::Look => {}
            Awaited::Nothing => {
                // What ended the wait early was a signal, whose flag is set by another thread.
                if since.elapsed() < PATIENCE {
                    std::thread::sleep(SIGNAL);
                }
                continue;
            }
            Awaited::Ended => {
                source.start_anew()?;
                follower.beat.shift();
                continue;
            }
        }
        for look in &source.news() {
            if follower.hear(look).is_break() {
                return Ok(Exit::Done);
            }
        }
    }
    follower.end();
    Ok(Exit::Done)
}

/// Where looks come from.
struct Source<'a> {
    watch: &'a Watch,
    program: PathBuf,
    sampler: Sampler,
    /// The look that comes next.
    next: u64,
}

/// A sampler that ended before so many looks will not do better the next time.
const HOPEFUL: u64 = 3;

impl<'a> Source<'a> {
    fn start(watch: &'a Watch) -> anyhow::Result<Source<'a>> {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let sampler = start(&program, watch)?;
        Ok(Source { watch, program, sampler, next: 0 })
    }

    /// The looks since the last time.
    fn news(&mut self) -> Vec<Look> {
        let news = self.sampler.looks_from(self.next);
        self.next = news.next;
        if news.lost > 0 {
            tell(format!("{} readings were overwritten before they could be shown", news.lost));
        }
        news.looks
    }

    /// Replaces a sampler that has ended. The counters went on meanwhile: the next row tells of that time, too.
    fn start_anew(&mut self) -> anyhow::Result<()> {
        let why = self.sampler.stop().ok().and_then(|mut notes| notes.pop());
        let why = why.unwrap_or_else(|| "the sampler has ended".to_owned());
        if self.next < HOPEFUL {
            return Err(std::io::Error::other(why).into());
        }
        tell(format!("{why}; another one goes on"));
        self.sampler = start(&self.program, self.watch)?;
        self.next = 0;
        Ok(())
    }
}

fn start(program: &Path, watch: &Watch) -> anyhow::Result<Sampler> {
    // What keeps it from starting is the environment's fault, and so tells the exit code.
    Sampler::start(program, watch).map_err(|error| std::io::Error::other(error).into())
}

/// Turns looks into rows, and rows into output.
struct Follower<'a> {
    beat: Beat,
    rows: Rows<'a>,
    clock: Clock,
    csv: Option<CsvFile>,
}

impl<'a> Follower<'a> {
    fn new(meant: &'a Meant, flags: &WatchFlags, words: &[String]) -> anyhow::Result<Follower<'a>> {
        let clock = Clock::new(meant.layout);
        let rows = Rows::new(meant, rustix::param::page_size() as u64, &clock.text(place::epoch()));
        let csv = match &flags.output {
            Some(path) => Some(begin_file(path, &rows, meant, words)?),
            None => None,
        };
        print(rows.opening());
        let (periods, last) = appointments(meant, flags);
        Ok(Follower { beat: Beat::new(meant.watch.period_ns, periods, last), rows, clock, csv })
    }

    /// Shows a look, if it is a row; `Break` when it was the last one, or nobody is there to see more.
    fn hear(&mut self, look: &Look) -> ControlFlow<()> {
        let Some(moment) = self.beat.take(look.at_ns()) else { return ControlFlow::Continue(()) };
        let epoch = place::epoch_of(look.at_ns());
        let clock = self.clock.text(epoch);
        let drawn = self.rows.draw(look, moment, Wall { epoch, clock: &clock }, place::terminal_size());
        if drawn.trimmed {
            say_part("Terminal width too small, trimming output.\n");
        }
        if let (Some(row), Some(file)) = (&drawn.csv, &mut self.csv) {
            file.append(row).iter().for_each(tell);
        }
        if !is_taken(&drawn.text) {
            return ControlFlow::Break(());
        }
        if self.beat.is_done() {
            self.end();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn end(&self) {
        print(self.rows.ending());
    }
}

/// Periods from row to row, and the appointment of the last row.
fn appointments(meant: &Meant, flags: &WatchFlags) -> (u64, Option<u64>) {
    let periods = if meant.updates { u64::from(flags.delay) } else { 1 };
    // dstat 0.7.2 did not count the row of the time before.
    let uncounted = u64::from(meant.layout == Layout::Modules(Compat::Dstat07));
    let last = flags.count.map(|count| (u64::from(count) + uncounted).saturating_sub(1) * periods);
    (periods, last)
}

/// Opens the file and writes what comes before its rows.
fn begin_file(path: &str, rows: &Rows<'_>, meant: &Meant, words: &[String]) -> anyhow::Result<CsvFile> {
    let (mut file, appended) = CsvFile::open(path)?;
    let (host, user, date, words) = (place::host(), place::user(), place::date(), words.join(" "));
    let origin = csv::Origin { host: &host, user: &user, words: &words, date: &date, appended };
    file.append(&(csv::opening(meant.style.compat, &origin) + &rows.csv_headings())).iter().for_each(tell);
    Ok(file)
}

/// Writes a row at once; false when the terminal or the pipe is gone.
fn is_taken(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}
