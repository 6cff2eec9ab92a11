//! `webdyno admission watch`: one look each second, drawn over the one before on a terminal, below it elsewhere.

use super::find::{self, Found};
use crate::command::report::{language, look};
use crate::exit::Exit;
use crate::flags::admission::WatchFlags;
use crate::interrupt;
use crate::say::{put, tell, with_causes};
use jiff::Zoned;
use model::admission::Admission;
use report::AdmissionView;
use report::admission::{Looked, is_stale, row, text};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two looks: the controller writes each second, and at once after a change, which may wait for the next row.
const PERIOD: Duration = Duration::from_millis(900);
/// After so long a look is told although nothing new was written.
const PATIENCE: Duration = Duration::from_millis(2500);
/// How often the file is read for something new.
const STEP: Duration = Duration::from_millis(50);
/// To the beginning of the terminal, and what is left below a text that was drawn over another.
const HOME: &str = "\x1b[H";
const REST: &str = "\x1b[J";

pub(super) fn run(flags: &WatchFlags) -> anyhow::Result<Exit> {
    let mut now = find::one(flags.file.file.as_deref())?;
    let interrupted = interrupt::flag_of_a_watch()?;
    let plain = flags.plain || !std::io::stdout().is_terminal();
    let began = Instant::now();
    let mut before: Option<Admission> = None;
    // The screen says so itself.
    let (mut looks, mut told_stale, mut told_gone) = (0, false, !plain);
    if !plain {
        put("\x1b[2J");
    }
    loop {
        let drawn = if plain { rows(&now, before.as_ref(), looks == 0) } else { screen(&now, before.as_ref(), flags) };
        let stale = is_stale(&now.status, find::now());
        if plain && stale && !told_stale {
            let what = match now.status.age_s(find::now()) {
                age if age < 0.0 => "was written ahead of this machine's clock",
                _ => "was not written for 5 s",
            };
            tell(format!("{} {what}: the server is gone, or its controller", now.file.display()));
        }
        told_stale = stale;
        looks += 1;
        if !put(&drawn) || flags.count == Some(looks) {
            return Ok(Exit::Done);
        }
        let end = flags.duration.map(|length| began + Duration::from_nanos(length));
        let Some(next) = next(&now, end, &interrupted, plain, &mut told_gone) else { return Ok(Exit::Done) };
        // Without anything new there is no time for rates to be of. A clock may be set back.
        if is_new(&next, &now) {
            before = Some(std::mem::replace(&mut now, next).status);
        }
    }
}

/// The next look: something new, or the same once more when nothing new comes; `None` at the end.
fn next(last: &Found, end: Option<Instant>, interrupted: &AtomicBool, plain: bool, told: &mut bool) -> Option<Found> {
    let since = Instant::now();
    loop {
        if interrupted.load(Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end) {
            return None;
        }
        std::thread::sleep(STEP);
        if since.elapsed() < PERIOD {
            continue;
        }
        match find::read(&last.file) {
            Ok(found) if is_new(&found, last) => {
                *told = !plain;
                return Some(found);
            }
            // While a server is started again there is no file for a moment.
            Err(error) if since.elapsed() >= PATIENCE && !std::mem::replace(told, true) => {
                tell(with_causes(&error));
            }
            _ => {}
        }
        if since.elapsed() >= PATIENCE {
            return Some(last.clone());
        }
    }
}

fn is_new(found: &Found, last: &Found) -> bool {
    found.status.written.to_bits() != last.status.written.to_bits()
}

fn rows(now: &Found, before: Option<&Admission>, first: bool) -> String {
    let headings = if first { row::headings(&now.status) } else { String::new() };
    headings + &row::rows(&now.status, before, &Zoned::now().strftime("%H:%M:%S").to_string())
}

fn screen(now: &Found, before: Option<&Admission>, flags: &WatchFlags) -> String {
    let file = now.file.display().to_string();
    let looked = Looked { now: &now.status, before, file: &file, clock: find::now(), entries: flags.entries };
    let text = text::render(&AdmissionView::of(&looked, language(&flags.lang)), look());
    // What does not fit would scroll the rest away. Each line goes to its end, or longer ones of the look before would stick out.
    let lines = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(usize::MAX, |size| usize::from(size.ws_row));
    let text: String =
        text.lines().take(lines.saturating_sub(1).max(1)).map(|line| format!("{line}\x1b[K\n")).collect();
    format!("{HOME}{text}{REST}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_clock_that_is_set_back_does_not_end_the_looks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("status.json");
        let look = |written: f64| {
            let text = include_str!("../../../../modules/mod_admission/tests/golden/status.json");
            let mut facts: Value = serde_json::from_str(text).unwrap();
            facts["written"] = written.into();
            std::fs::write(&file, facts.to_string()).unwrap();
            find::read(&file).unwrap()
        };
        let never = AtomicBool::new(false);
        let last = look(5000.0);
        let earlier = look(1400.0);
        for plain in [false, true] {
            // Where there is a screen, nothing is printed onto it: it counts as told from the beginning, and stays so.
            let mut told = true;
            let began = Instant::now();
            let found = next(&last, None, &never, plain, &mut told).unwrap();
            assert!(began.elapsed() < PATIENCE && !is_new(&found, &earlier));
            assert_eq!(told, !plain);
        }
        std::fs::remove_file(&file).unwrap();
        let mut told = true;
        assert!(!is_new(&next(&last, None, &never, false, &mut told).unwrap(), &last));
        assert!(told);
    }
}
