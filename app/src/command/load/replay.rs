//! `--replay`: an access log becomes requests and their times, and one line says what of it is used.

use crate::flags::load::LoadFlags;
use crate::say;
use accesslog::{Format, Methods, Reader, Replay, Timetable, TimetableBuilder, Unused};
use anyhow::{Context, bail, ensure};
use flate2::read::MultiGzDecoder;
use model::plan::{LOGGED_PATH, LeftOut, Log, Recording, RequestSpec};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// A log and the kinds of requests that are in it: one for each method.
pub(super) struct Replayed {
    pub(super) mix: Vec<RequestSpec>,
    pub(super) log: Log,
}

/// So many lines are looked at to guess a format.
const GUESSED_BY: usize = 100;
/// What of a line is read; no server writes longer ones.
const LONGEST_LINE: usize = 64 * 1024;

/// Reads the log that the flags name, and says what is used of it.
pub(super) fn read(file: &Path, flags: &LoadFlags, seed: u64) -> anyhow::Result<Replayed> {
    let shown = file.display();
    let speed = flags.speed.unwrap_or(1.0);
    let methods = if flags.unsafe_methods { Methods::All } else { Methods::Safe };
    let builder = TimetableBuilder::new(Replay { seed, speed, methods }).context("--speed")?;
    let mut lines = Lines { input: open(file)? };
    let failed = || format!("cannot read the log {shown}");
    let first = lines.first(GUESSED_BY).with_context(failed)?;
    ensure!(!first.is_empty(), "the log {shown} is empty; there is nothing to replay");
    let format = match &flags.log_format {
        Some(text) => Format::parse(text).context("--log-format")?,
        None => Format::guess(first.iter().map(Vec::as_slice)).with_context(|| {
            format!("the format of {shown} is not one that can be guessed; give --log-format, as the server writes it")
        })?,
    };
    let mut taking = Taking { reader: Reader::new(format), builder, left_out: BTreeMap::new() };
    first.iter().for_each(|line| taking.take(line));
    let mut line = Vec::new();
    while lines.next(&mut line).with_context(failed)? {
        taking.take(&line);
    }
    let replayed = taking.done(file, speed);
    let summary = summary(&replayed.log);
    if replayed.log.used == 0 {
        bail!("nothing in the log {shown} can be replayed: {summary}");
    }
    say::say(&format!("replaying {shown} {summary}"));
    Ok(replayed)
}

fn open(file: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let opened = File::open(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!("there is no log {}; check its name and folder", file.display()),
        kind => anyhow::anyhow!("cannot read the log {}: {kind}", file.display()),
    })?;
    ensure!(!opened.metadata().is_ok_and(|about| about.is_dir()), "{} is a folder; name a log in it", file.display());
    let mut input = BufReader::with_capacity(LONGEST_LINE, opened);
    let packed = input.fill_buf().is_ok_and(|bytes| bytes.starts_with(&[0x1f, 0x8b]));
    Ok(if packed { Box::new(BufReader::new(MultiGzDecoder::new(input))) } else { Box::new(input) })
}

/// Lines of bounded length.
struct Lines {
    input: Box<dyn BufRead>,
}

impl Lines {
    /// Puts the next line into `line`, cut where it is longer than any; false at the end.
    fn next(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        self.input.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', line)?;
        if line.len() == LONGEST_LINE && !line.ends_with(b"\n") {
            self.input.skip_until(b'\n')?;
        }
        Ok(!line.is_empty())
    }

    fn first(&mut self, most: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut first = Vec::new();
        let mut line = Vec::new();
        while first.len() < most && self.next(&mut line)? {
            first.push(line.clone());
        }
        Ok(first)
    }
}

/// A log on its way into a timetable.
struct Taking {
    reader: Reader,
    builder: TimetableBuilder,
    // By reason: how many lines, and the first one.
    left_out: BTreeMap<String, (u64, u64)>,
}

impl Taking {
    fn take(&mut self, line: &[u8]) {
        let Some(entry) = self.reader.read(line) else {
            let why = if line.trim_ascii().is_empty() { "with nothing in them" } else { "of another format" };
            return self.leave_out(why.to_owned());
        };
        let why = match self.builder.add(&entry) {
            None => return,
            Some(Unused::NoRequest(why)) => why.to_string(),
            Some(Unused::NoTime) => "without a time".to_owned(),
            Some(Unused::UnsafeMethod) => match &entry.request {
                Ok(request) => format!("with {}", request.method),
                Err(why) => why.to_string(),
            },
            Some(Unused::NoPath) => "that ask for no path".to_owned(),
        };
        self.leave_out(why);
    }

    fn leave_out(&mut self, why: String) {
        let number = self.reader.tally().lines();
        self.left_out.entry(why).or_insert((0, number)).0 += 1;
    }

    fn done(self, file: &Path, speed: f64) -> Replayed {
        let timetable = self.builder.build();
        let (mix, recording) = recorded(&timetable);
        let left_out = self.left_out.into_iter();
        let log = Log {
            file: file.to_owned(),
            format: self.reader.format().text().to_owned(),
            speed,
            lines: self.reader.tally().lines(),
            used: timetable.len() as u64,
            span_ns: timetable.span_ns(),
            left_out: left_out.map(|(why, (lines, first_line))| LeftOut { why, lines, first_line }).collect(),
            recording: Arc::new(recording),
        };
        Replayed { mix, log }
    }
}

/// One kind of request for each method, and all requests with their times.
fn recorded(timetable: &Timetable) -> (Vec<RequestSpec>, Recording) {
    let mut mix: Vec<RequestSpec> = Vec::new();
    let mut recording = Recording::with_capacity(timetable.len());
    for asked in timetable.distinct() {
        let known = mix.iter().position(|request| request.method == asked.method);
        let kind = known.unwrap_or_else(|| {
            mix.push(RequestSpec { method: asked.method.to_owned(), ..RequestSpec::get(LOGGED_PATH) });
            mix.len() - 1
        });
        recording.add_target(u32::try_from(kind).unwrap_or(u32::MAX), asked.target);
    }
    for arrival in timetable.arrivals() {
        recording.add(arrival.offset_ns, u32::try_from(arrival.index).unwrap_or(u32::MAX));
    }
    (mix, recording)
}

/// Format and counts.
fn summary(log: &Log) -> String {
    let format = if log.format.contains(['%', '$']) { "the format given" } else { &log.format };
    let span = units::short_duration(log.span_ns as f64);
    let mut line = format!("({format}): {} of {} lines, over {span}", log.used, log.lines);
    for (n, LeftOut { why, lines, first_line }) in log.left_out.iter().enumerate() {
        let before = if n == 0 { "; left out: " } else { ", " };
        line.push_str(&format!("{before}{lines} {why} (first in line {first_line})"));
    }
    let unsafe_ones = log.left_out.iter().any(|left| left.why.strip_prefix("with ").is_some_and(is_method));
    if unsafe_ones {
        line.push_str("; --unsafe-methods sends those with other methods than GET, HEAD and OPTIONS too");
    }
    line
}

fn is_method(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_uppercase())
}
