//! `--top-*`: the one process that had the most of something, in the words and widths of dstat's plugins.
//!
//! Names are those the kernel has: dstat means to look at command lines, too, and never does.

use super::cell::{Format, Kind};
use model::SECOND;
use model::process::{ProcessNumbers, Processes};

/// What a process can have the most of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Top {
    /// Block operations: bytes that disks moved for it.
    Bio,
    /// The same with its number and CPU time.
    BioAdv,
    /// CPU time of its children.
    Childwait,
    /// CPU time, in percent of all CPUs.
    Cpu,
    /// The same with its number and bytes.
    CpuAdv,
    /// CPU time, as the scheduler counts it.
    Cputime,
    /// The same, for each time it was given a CPU.
    CputimeAvg,
    /// Bytes read and written by system calls.
    Io,
    /// The same with its number and CPU time.
    IoAdv,
    /// Time waiting for a CPU.
    Latency,
    /// The same, for each time it was given a CPU.
    LatencyAvg,
    /// Resident memory.
    Mem,
    /// The kernel's score for when memory has run out.
    Oom,
}

/// Every kind with the name of its module.
pub(super) const NAMES: [(Top, &str); 13] = [
    (Top::Bio, "top-bio"),
    (Top::BioAdv, "top-bio-adv"),
    (Top::Childwait, "top-childwait"),
    (Top::Cpu, "top-cpu"),
    (Top::CpuAdv, "top-cpu-adv"),
    (Top::Cputime, "top-cputime"),
    (Top::CputimeAvg, "top-cputime-avg"),
    (Top::Io, "top-io"),
    (Top::IoAdv, "top-io-adv"),
    (Top::Latency, "top-latency"),
    (Top::LatencyAvg, "top-latency-avg"),
    (Top::Mem, "top-mem"),
    (Top::Oom, "top-oom"),
];

/// All processes at the ends of a row.
#[derive(Debug, Clone, Copy)]
pub struct ProcessSpan<'a> {
    /// Where rates begin; `None` for averages since the machine started.
    pub from: Option<&'a Processes>,
    /// Where they end.
    pub to: &'a Processes,
    /// Seconds since the machine started, for the first row.
    pub uptime_s: f64,
    /// How many CPUs there are.
    pub cpus: usize,
}

/// A part of the text of such a module.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// A text in so many characters.
    Text(String, usize),
    /// The number of a process.
    Pid(String),
    /// A number.
    Number(f64, Format),
    /// What belongs to a number.
    Unit(&'static str),
}

/// What such a module shows: the pieces of a row, and a field of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Shown {
    pub(super) pieces: Vec<Piece>,
    pub(super) csv: String,
}

const CPU: Format = Format::new(Kind::Decimal, 3, 34.0);
const TRAFFIC: Format = Format::new(Kind::Whole, 5, 1024.0);

impl Top {
    /// Title, column and width.
    pub(super) fn layout(self) -> (&'static str, &'static str, usize) {
        match self {
            Top::Bio => ("most expensive", "block i/o process", 22),
            Top::BioAdv => ("most expensive block i/o process", "process              pid  read write cpu", 40),
            Top::Childwait => ("most waiting for", "child process", 16),
            Top::Cpu => ("most expensive", "cpu process", 16),
            Top::CpuAdv => ("most expensive cpu process", "process              pid  cpu read write", 40),
            Top::Cputime => ("highest total", "cputime process", 17),
            Top::CputimeAvg => ("highest average", "cputime process", 17),
            Top::Io => ("most expensive", "i/o process", 22),
            Top::IoAdv => ("most expensive i/o process", "process              pid  read write cpu", 40),
            Top::Latency => ("highest total", "latency process", 17),
            Top::LatencyAvg => ("highest average", "latency process", 17),
            Top::Mem => ("most expensive", "memory process", 17),
            Top::Oom => ("out of memory", "kill score", 18),
        }
    }

    /// The process that has the most, and what is shown of it; nothing when none has any.
    pub(super) fn shown(self, span: ProcessSpan<'_>, page_bytes: u64) -> Shown {
        let mut best: Option<(&ProcessNumbers, f64)> = None;
        for process in &span.to.list {
            let has = self.has(span, process, page_bytes);
            // Among equals dstat takes the first one, and the last one for CPU time.
            let more = |(_, most): (_, f64)| has > most || (has == most && self == Top::Cpu);
            if has > 0.0 && best.is_none_or(more) {
                best = Some((process, has));
            }
        }
        best.map(|(process, has)| self.draw(span, process, has)).unwrap_or_default()
    }

    fn has(self, span: ProcessSpan<'_>, process: &ProcessNumbers, page_bytes: u64) -> f64 {
        let rate = |of: fn(&ProcessNumbers) -> u64| span.rate(process, of);
        let each = |ns: f64| {
            let slices = span.growth(process, |process| process.slices);
            // dstat divides this average by the time, too; kept, because the numbers would be others.
            if slices > 0.0 { ns / slices } else { 0.0 }
        };
        match self {
            Top::Bio | Top::BioAdv => rate(|process| process.bytes_read) + rate(|process| process.bytes_written),
            Top::Childwait => rate(|process| process.child_ticks) / span.cpus as f64,
            Top::Cpu | Top::CpuAdv => span.cpu(process),
            Top::Cputime => rate(|process| process.run_ns),
            Top::CputimeAvg => each(rate(|process| process.run_ns)),
            Top::Io | Top::IoAdv => rate(|process| process.chars_read) + rate(|process| process.chars_written),
            Top::Latency => rate(|process| process.wait_ns),
            Top::LatencyAvg => each(rate(|process| process.wait_ns)),
            Top::Mem => (process.resident_pages * page_bytes) as f64,
            Top::Oom => process.oom_score as f64,
        }
    }

    fn draw(self, span: ProcessSpan<'_>, process: &ProcessNumbers, has: f64) -> Shown {
        let ProcessNumbers { name, .. } = process;
        let (_, _, width) = self.layout();
        let text = |room: usize| Piece::Text(name.clone(), width - room);
        let alone = |format: Format| vec![text(format.width), Piece::Number(has, format)];
        let rate = |of: fn(&ProcessNumbers) -> u64| span.rate(process, of);
        let (read, written) = match self {
            Top::Bio | Top::BioAdv => (rate(|process| process.bytes_read), rate(|process| process.bytes_written)),
            _ => (rate(|process| process.chars_read), rate(|process| process.chars_written)),
        };
        let both = [Piece::Number(read, TRAFFIC), Piece::Number(written, TRAFFIC)];
        let pid = process.pid.to_string();
        // As wide as the heading, which dstat's is only while numbers of processes have five digits.
        let named = || vec![text(14 + pid.len().max(5)), Piece::Pid(format!("{pid:<5}"))];
        let percent = [Piece::Number(span.cpu(process), CPU), Piece::Unit("%")];
        match self {
            Top::Bio | Top::Io => {
                let [read_piece, written_piece] = both;
                Shown {
                    pieces: vec![text(11), read_piece, Piece::Unit(" "), written_piece],
                    csv: format!("{name} / {}:{}", read as u64, written as u64),
                }
            }
            Top::CpuAdv => Shown {
                pieces: named().into_iter().chain(percent).chain(both).collect(),
                csv: self.adv_csv(name, [span.cpu(process), read, written]),
            },
            Top::BioAdv | Top::IoAdv => Shown {
                pieces: named().into_iter().chain(both).chain(percent).collect(),
                csv: self.adv_csv(name, [read, written, span.cpu(process)]),
            },
            Top::Cpu => Shown { pieces: alone(CPU), csv: format!("{name} / {}%", has as u64) },
            Top::Childwait => {
                Shown { pieces: alone(Format::new(Kind::Percent, 3, 34.0)), csv: format!("{name} / {}%", has as u64) }
            }
            Top::Mem => {
                Shown { pieces: alone(Format::new(Kind::Decimal, 5, 1024.0)), csv: format!("{name} / {}%", has as u64) }
            }
            Top::Oom => {
                Shown { pieces: alone(Format::new(Kind::Decimal, 4, 1000.0)), csv: format!("{name} / {}%", has as u64) }
            }
            Top::Cputime | Top::Latency => {
                Shown { pieces: alone(Format::new(Kind::Whole, 4, 100.0)), csv: format!("{name} / {has:.4}") }
            }
            Top::CputimeAvg | Top::LatencyAvg => {
                Shown { pieces: alone(Format::new(Kind::Decimal, 4, 100.0)), csv: format!("{name} / {has:.4}") }
            }
        }
    }

    fn adv_csv(self, name: &str, [first, second, third]: [f64; 3]) -> String {
        let (_, _, width) = self.layout();
        let name: String = name.chars().take(width - 20).collect();
        format!("Top: {name}\t{first:?}\t{second:?}\t{third:?}")
    }
}

impl ProcessSpan<'_> {
    fn seconds(&self) -> f64 {
        match self.from {
            Some(from) => self.to.at_ns.saturating_sub(from.at_ns) as f64 / SECOND as f64,
            None => self.uptime_s,
        }
    }

    /// How much a counter of a process grew; of one that was not there before, all of it.
    fn growth(&self, process: &ProcessNumbers, of: fn(&ProcessNumbers) -> u64) -> f64 {
        let before = self.from.and_then(|from| from.of(process.pid)).map_or(0, of);
        // A number that was used again has smaller counters.
        of(process).saturating_sub(before) as f64
    }

    fn rate(&self, process: &ProcessNumbers, of: fn(&ProcessNumbers) -> u64) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { self.growth(process, of) / seconds } else { 0.0 }
    }

    /// Percent of all CPUs: a hundred clock ticks are a second.
    fn cpu(&self, process: &ProcessNumbers) -> f64 {
        self.rate(process, |process| process.ticks) / self.cpus as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_given_to_another_process_is_no_jump() {
        let at = |at_ns, ticks| Processes {
            at_ns,
            list: vec![ProcessNumbers { pid: 7, name: "x".to_owned(), ticks, ..ProcessNumbers::default() }],
        };
        let shown = |before, now| {
            let (from, to) = (at(0, before), at(SECOND, now));
            Top::Cpu.shown(ProcessSpan { from: Some(&from), to: &to, uptime_s: 9.0, cpus: 1 }, 4096).csv
        };
        assert_eq!(shown(100, 150), "x / 50%");
        assert_eq!(shown(100_000, 5), "");
    }
}
