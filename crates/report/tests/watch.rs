//! The screen of dstat 0.7.2 against the rows that the first document printed: every number read back and drawn again.
//!
//! `watch/document.txt` is every row of the document, and the line of headings above them.

use model::SECOND;
use model::device::Roster;
use model::reading::{Column, Reading};
use report::watch::{Compat, Module, Screen, Shown, Sight, Style, Tick};

const DOCUMENT: &str = include_str!("watch/document.txt");

/// As many seconds as a sector has bytes, so that any number of bytes per second is a whole number of sectors.
const SECONDS: u64 = 512;

fn screen() -> Screen {
    let modules = [Module::Cpu, Module::Mem, Module::Swap, Module::Disk, Module::Load, Module::Net, Module::Io];
    Screen::new(&modules.map(Shown::total), Style::of(Compat::Dstat07), "")
}

/// `34.8M` as a number.
fn value(text: &str) -> f64 {
    let (number, unit) = match text.char_indices().last() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => (&text[..at], letter),
        _ => (text, 'B'),
    };
    let power = "BkMG".find(unit).unwrap_or_else(|| panic!("a unit in {text:?}"));
    number.parse::<f64>().unwrap_or_else(|_| panic!("a number in {text:?}")) * 1024f64.powi(power as i32)
}

/// The cells of each module of a row.
fn cells(row: &str) -> Vec<Vec<f64>> {
    row.split('|').map(|module| module.split_whitespace().map(value).collect()).collect()
}

/// Counters that come to these cells over the span.
fn counters(modules: &[Vec<f64>]) -> Reading {
    use Column as C;
    let [cpu, memory, swap, disk, load, net, io] = modules else { panic!("seven modules") };
    let mut row = Reading::empty(SECONDS * SECOND);
    let mut set = |columns: &[Column], values: &[f64], times: f64| {
        assert_eq!(columns.len(), values.len());
        columns.iter().zip(values).for_each(|(&column, value)| row.set(column, (value * times).round() as u64));
    };
    // Percentages are rounded, so they add up to 99 or 101; what is missing or too much is spread over those that are not 0.
    let busy = cpu.iter().filter(|&&share| share > 0.0).count() as f64;
    let spare = (100.0 - cpu.iter().sum::<f64>()) / busy;
    let ticks: Vec<f64> = cpu.iter().map(|&share| if share > 0.0 { share + spare } else { 0.0 }).collect();
    set(&[C::CpuUser, C::CpuSystem, C::CpuIdle, C::CpuIowait, C::CpuIrq, C::CpuSoftirq], &ticks, 1e6);
    let kib = 1.0 / 1024.0;
    set(&[C::MemBuffers, C::MemCached, C::MemFree], &memory[1..], kib);
    set(&[C::MemTotal], &[memory.iter().map(|bytes| (bytes * kib).round()).sum()], 1.0);
    set(&[C::SwapFree], &swap[1..], kib);
    set(&[C::SwapTotal], &[swap[0] + swap[1]], kib);
    set(&[C::DiskReadSectors, C::DiskWriteSectors], disk, 1.0);
    set(&[C::Load1, C::Load5, C::Load15], load, 100.0);
    set(&[C::NetRxBytes, C::NetTxBytes], net, SECONDS as f64);
    set(&[C::DiskReads, C::DiskWrites], io, SECONDS as f64);
    row
}

#[test]
fn every_row_of_the_document_is_drawn_again() {
    let screen = screen();
    let mut start = Reading::empty(0);
    Column::ALL.iter().for_each(|&column| start.set(column, 0));
    let mut rows = 0;
    for line in DOCUMENT.lines().filter(|line| !line.starts_with("usr")) {
        let line = line.split("  missed").next().unwrap_or(line).trim_end();
        let to = counters(&cells(line));
        let sight = |reading| Sight { reading, devices: &[] };
        let tick = Tick {
            from: Some(sight(&start)),
            to: sight(&to),
            roster: &Roster::default(),
            page_bytes: 4096,
            epoch: 0.0,
            clock: "",
            processes: None,
        };
        assert_eq!(screen.row(&tick, true, &[]).trim_end(), line);
        rows += 1;
    }
    assert!(rows > 70, "{rows}");
}

#[test]
fn headings_are_those_of_the_document() {
    let titles = "----total-cpu-usage---- ------memory-usage----- ----swap--- -dsk/total- ---load-avg--- -net/total- --io/total-";
    let nicks = DOCUMENT.lines().next().unwrap_or_default();
    let headings = screen().headings(true, true);
    let headings: Vec<&str> = headings.lines().map(str::trim_end).collect();
    assert_eq!(headings, [titles, nicks]);
}

#[test]
fn what_does_not_fit_is_cut_and_marked() {
    let mut screen = screen();
    assert_eq!(screen.headings(true, true).lines().map(str::len).collect::<Vec<_>>(), [110, 110]);
    screen.fit(80);
    assert!(screen.is_trimmed());
    let headings = screen.headings(true, true);
    assert_eq!(
        headings.lines().next(),
        Some("----total-cpu-usage---- ------memory-usage----- ----swap--- -dsk/total->")
    );
    screen.fit(111);
    assert!(!screen.is_trimmed());
}

#[test]
fn a_late_row_says_so_and_divides_by_the_time_that_passed() {
    let shown = [Shown::total(Module::Disk)];
    let screen = Screen::new(&shown, Style::of(Compat::Dstat07), "");
    let look = |at_ns, sectors| {
        let mut reading = Reading::empty(at_ns);
        reading.set(Column::DiskReadSectors, sectors);
        reading.set(Column::DiskWriteSectors, 0);
        reading
    };
    let (from, to) = (look(SECOND, 0), look(5 * SECOND, 4 * 2048));
    let sight = |reading| Sight { reading, devices: &[] };
    let roster = Roster::default();
    let tick = Tick {
        from: Some(sight(&from)),
        to: sight(&to),
        roster: &roster,
        page_bytes: 4096,
        epoch: 0.0,
        clock: "",
        processes: None,
    };
    assert_eq!(screen.row(&tick, true, &["late 3.0s".to_owned()]), "1024k    0  late 3.0s");
}
