//! The panels, worded: what the last two looks say, and charts of those before.

use super::history::columns;
use super::{COLUMNS, FullView, PanelView, Scene, State};
use crate::language::{Catalogue, Language};
use fluent_bundle::FluentValue;
use model::reading::{Column as C, Look, Reading, Span};
use model::{Nanos, SECOND};

/// Words what is to be shown, in one language.
pub struct Painter {
    words: Catalogue,
}

impl Painter {
    /// Of that language.
    #[must_use]
    pub fn new(language: Language) -> Painter {
        Painter { words: Catalogue::of(language) }
    }

    /// What is to be shown.
    #[must_use]
    pub fn view(&self, scene: &Scene<'_>) -> FullView {
        let say = Teller { words: &self.words, scene };
        FullView {
            host: say.host(),
            state: say.state(),
            keys: say.word("watch-keys"),
            notes: say.notes(),
            panels: say.panels(),
            help: if scene.help { HELP.map(|id| say.word(id)).to_vec() } else { Vec::new() },
        }
    }
}

const HELP: [&str; 8] = [
    "watch-help",
    "watch-help-end",
    "watch-help-pause",
    "watch-help-step",
    "watch-help-ends",
    "watch-help-zoom",
    "watch-help-speed",
    "watch-help-colours",
];

/// A gap this many times as long as it should be is told.
const BLIND: Nanos = 2;
/// Charts of traffic are not higher than so many bytes per second: a trickle is to look like one.
const TRICKLE: f64 = 65_536.0;

/// How high a chart is.
#[derive(Clone, Copy)]
enum Height {
    /// A share of something whole.
    Whole,
    /// Bytes per second, as high as the highest.
    Traffic,
    /// So many of something.
    Most(f64),
}

struct Teller<'a> {
    words: &'a Catalogue,
    scene: &'a Scene<'a>,
}

type Pair = Option<[f64; 2]>;

impl Teller<'_> {
    fn word(&self, id: &str) -> String {
        self.words.word(id)
    }

    fn say(&self, id: &str, name: &'static str, text: impl Into<String>) -> String {
        self.words.say(id, &[(name, FluentValue::from(text.into()))]).text
    }

    fn host(&self) -> String {
        let host = self.scene.host;
        let arguments = [
            ("name", host.name.clone().into()),
            ("kernel", host.kernel.clone().into()),
            ("cpus", host.cpus.to_string().into()),
        ];
        self.words.say("watch-host", &arguments).text
    }

    fn state(&self) -> String {
        let state = match self.scene.state {
            State::Live => self.word("watch-live"),
            State::Back(by) => {
                format!("{}, {}", self.word("watch-paused"), self.say("watch-back", "length", length(by)))
            }
            State::Playing(speed) => self.say("watch-playing", "speed", format!("{speed}")),
            State::Stopped => self.word("watch-stopped"),
            State::Over => self.word("watch-over"),
        };
        format!("{}  {}  {state}", self.say("watch-column", "length", length(self.scene.column_ns)), self.scene.when)
    }

    /// What is wrong with the last look comes before what was said at the beginning.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(span) = self.span() {
            let passed = span.to.at_ns.saturating_sub(span.from.at_ns);
            let late = span.to.get(C::SamplerLateNs).unwrap_or(0);
            if passed >= BLIND * self.scene.period_ns {
                notes.push(self.say("watch-blind", "length", length(passed)));
            } else if late >= SECOND / 2 {
                notes.push(self.say("watch-late", "length", length(late)));
            }
            let jumps = span.jumps();
            let seconds = |seconds: f64| length((seconds.abs() * 1e9) as u64);
            if let Some(slept) = jumps.suspended_s {
                notes.push(self.say("watch-suspended", "length", seconds(slept)));
            }
            if let Some(by) = jumps.set_by_s {
                let sentence = if by < 0.0 { "watch-clock-back" } else { "watch-clock-forward" };
                notes.push(self.say(sentence, "length", seconds(by)));
            }
        }
        notes.extend(self.scene.notes.iter().cloned());
        notes
    }

    fn now(&self) -> Option<&Reading> {
        self.scene.looks.last().map(|look| &look.reading)
    }

    /// The last two looks.
    fn span(&self) -> Option<Span<'_>> {
        let [.., from, to] = self.scene.looks else { return None };
        Some(Span { from: &from.reading, to: &to.reading })
    }

    fn panels(&self) -> Vec<PanelView> {
        let panels = [
            Some(self.cpu()),
            Some(self.disks()),
            Some(self.memory()),
            Some(self.network()),
            Some(self.swap()),
            Some(self.accept()),
            Some(self.pressure()),
            self.tree(),
            self.group(),
        ];
        panels.into_iter().flatten().collect()
    }

    fn panel(
        &self,
        title: &str,
        height: Height,
        value: impl Fn(&Span<'_>) -> Pair,
        drawn: Vec<Option<String>>,
        others: Vec<Option<String>>,
    ) -> PanelView {
        let raw = columns(self.scene.looks, self.scene.column_ns, COLUMNS, value);
        let highest = raw.iter().flatten().map(|[a, b]| a + b).fold(0.0, f64::max);
        let (whole, scale) = match height {
            Height::Whole => (1.0, "100 %".to_owned()),
            Height::Most(most) => {
                let most = most.max(highest).max(1.0);
                (most, format!("{most:.0}"))
            }
            Height::Traffic => {
                let round = round_up(highest.max(TRICKLE));
                (round, traffic(round))
            }
        };
        let share = |pair: Pair| pair.map(|[a, b]| [(a / whole).clamp(0.0, 1.0), (b / whole).clamp(0.0, 1.0)]);
        PanelView {
            title: self.word(title),
            scale,
            drawn: drawn.into_iter().flatten().collect(),
            others: others.into_iter().flatten().collect(),
            chart: raw.into_iter().map(share).collect(),
            alarm: false,
        }
    }

    fn cpu(&self) -> PanelView {
        let shares = self.span().and_then(|span| span.cpu());
        let part =
            |id, of: fn(model::reading::CpuShares) -> f64| shares.map(|cpu| self.say(id, "share", percent(of(cpu))));
        let steal =
            shares.filter(|cpu| cpu.steal >= 0.005).map(|cpu| self.say("watch-steal", "share", percent(cpu.steal)));
        let load = [C::Load1, C::Load5, C::Load15].map(|column| self.now().and_then(|now| now.get(column)));
        let load =
            load.iter().flatten().map(|&load| format!("{:.2}", load as f64 / 100.0)).collect::<Vec<_>>().join(" ");
        let load = (!load.is_empty()).then(|| self.say("watch-load", "load", load));
        self.panel(
            "watch-cpu",
            Height::Whole,
            |span| span.cpu().map(|cpu| [cpu.busy(), cpu.iowait]),
            vec![part("watch-busy", |cpu| cpu.busy()), part("watch-iowait", |cpu| cpu.iowait)],
            vec![
                steal,
                load,
                self.level("watch-runnable", "n", C::Runnable, |n| n.to_string()),
                self.level("watch-blocked", "n", C::Blocked, |n| n.to_string()),
            ],
        )
    }

    fn memory(&self) -> PanelView {
        let parts = |now: &Reading| {
            let total = now.get(C::MemTotal)?;
            let free = now.get(C::MemFree)?;
            let cache = now.get(C::MemBuffers).unwrap_or(0).saturating_add(now.get(C::MemCached).unwrap_or(0));
            // Kernels before 3.14 do not estimate what can be had.
            let available = now.get(C::MemAvailable).unwrap_or(free.saturating_add(cache));
            Some([total, total.saturating_sub(available), available.saturating_sub(free), available])
        };
        let now = self.now().and_then(parts);
        let size =
            |id, at: usize| now.map(|parts| self.say(id, "size", units::short_bytes(parts[at].saturating_mul(1024))));
        self.panel(
            "watch-memory",
            Height::Whole,
            |span| {
                parts(span.to).map(|[total, used, cache, _]| {
                    [used as f64 / total.max(1) as f64, cache as f64 / total.max(1) as f64]
                })
            },
            vec![size("watch-used", 1), size("watch-cache", 2)],
            vec![size("watch-available", 3), size("watch-of", 0)],
        )
    }

    fn swap(&self) -> PanelView {
        let page = self.scene.page_bytes as f64;
        let rates = move |span: &Span<'_>| Some([span.rate(C::SwapIn)? * page, span.rate(C::SwapOut)? * page]);
        let total = self.now().and_then(|now| now.get(C::SwapTotal)).unwrap_or(0);
        let used = self.now().and_then(|now| Some(total.saturating_sub(now.get(C::SwapFree)?)));
        let faults = self.rate("watch-faults", "n", C::MajorFaults, count);
        let others = if total == 0 {
            vec![Some(self.word("watch-no-swap")), faults]
        } else {
            let size = |kib: u64| units::short_bytes(kib.saturating_mul(1024));
            vec![
                used.map(|used| self.say("watch-used", "size", size(used))),
                Some(self.say("watch-of", "size", size(total))),
                faults,
            ]
        };
        let drawn = self.pair(rates, ["watch-in", "watch-out"]);
        self.panel("watch-swap", Height::Traffic, rates, drawn, others)
    }

    fn disks(&self) -> PanelView {
        let rates =
            |span: &Span<'_>| Some([span.rate(C::DiskReadSectors)? * 512.0, span.rate(C::DiskWriteSectors)? * 512.0]);
        let operations = self.span().and_then(|span| Some(span.rate(C::DiskReads)? + span.rate(C::DiskWrites)?));
        let under_way = self.span().and_then(|span| span.rate(C::DiskWeightedMs)).map(|ms| ms / 1000.0);
        let others = vec![
            operations.map(|n| self.say("watch-operations", "n", count(n))),
            under_way.map(|n| self.say("watch-under-way", "n", format!("{n:.1}"))),
        ];
        self.panel("watch-disks", Height::Traffic, rates, self.pair(rates, ["watch-read", "watch-written"]), others)
    }

    fn network(&self) -> PanelView {
        let rates = |span: &Span<'_>| Some([span.rate(C::NetRxBytes)?, span.rate(C::NetTxBytes)?]);
        let others = vec![self.rate("watch-loopback", "rate", C::LoopbackBytes, traffic)];
        self.panel("watch-network", Height::Traffic, rates, self.pair(rates, ["watch-received", "watch-sent"]), others)
    }

    fn pressure(&self) -> PanelView {
        let shares = |span: &Span<'_>| Some([span.share_of_time(C::PsiMemSome)?, span.share_of_time(C::PsiIoSome)?]);
        let share = |id, column| {
            let share = self.span()?.share_of_time(column)?;
            Some(self.say(id, "share", percent(share)))
        };
        let told = self.now().is_some_and(|now| now.get(C::PsiMemSome).is_some());
        let others = if told {
            vec![
                share("watch-on-cpu", C::PsiCpuSome),
                share("watch-all-on-memory", C::PsiMemFull),
                share("watch-all-on-io", C::PsiIoFull),
            ]
        } else {
            vec![Some(self.word("watch-no-pressure"))]
        };
        let drawn = vec![share("watch-on-memory", C::PsiMemSome), share("watch-on-io", C::PsiIoSome)];
        self.panel("watch-pressure", Height::Whole, shares, drawn, others)
    }

    fn accept(&self) -> PanelView {
        // The one port that is watched, or else the fullest queue of all.
        let of_port = self.now().is_some_and(|now| now.get(C::AcceptQueue).is_some());
        let (queue, limit) = if of_port { (C::AcceptQueue, C::AcceptLimit) } else { (C::ListenQueue, C::ListenLimit) };
        let room = self.now().and_then(|now| now.get(limit)).unwrap_or(0) as f64;
        let overflows = self.span().and_then(|span| span.rate(C::TcpListenOverflows)).unwrap_or(0.0);
        let mut panel = self.panel(
            "watch-accept",
            Height::Most(room),
            |span| Some([span.to.get(queue)? as f64, 0.0]),
            vec![self.level("watch-queued", "n", queue, |n| n.to_string())],
            vec![
                self.level("watch-room", "n", limit, |n| n.to_string()),
                self.rate("watch-overflows", "n", C::TcpListenOverflows, count),
                self.rate("watch-retransmits", "n", C::TcpRetransmits, count),
                self.level("watch-time-wait", "n", C::TcpTimeWait, |n| n.to_string()),
            ],
        );
        panel.alarm = overflows > 0.0;
        panel
    }

    fn group(&self) -> Option<PanelView> {
        let now = self.now()?;
        let usage = now.get(C::GroupUsage)?;
        let limit = now.get(C::GroupLimit);
        // Without a limit a group may have the whole machine.
        let whole = limit.or(now.get(C::MemTotal).map(|kib| kib.saturating_mul(1024))).unwrap_or(usage).max(1) as f64;
        let cpu = self
            .span()
            .and_then(|span| span.rate(C::GroupCpuNs))
            .map(|ns| self.say("watch-on-cpu", "share", percent(ns / 1e9)));
        let mut panel = self.panel(
            "watch-group",
            Height::Whole,
            |span| Some([span.to.get(C::GroupAnon)? as f64 / whole, span.to.get(C::GroupFile)? as f64 / whole]),
            vec![
                self.level("watch-own", "size", C::GroupAnon, units::short_bytes),
                self.level("watch-files", "size", C::GroupFile, units::short_bytes),
            ],
            vec![
                limit.map(|limit| self.say("watch-of", "size", units::short_bytes(limit))),
                self.level("watch-swapped", "size", C::GroupSwap, units::short_bytes),
                cpu,
            ],
        );
        let killed = self.span().and_then(|span| span.delta(C::GroupOomKills));
        panel.alarm = killed.is_some_and(|killed| killed > 0);
        Some(panel)
    }

    fn tree(&self) -> Option<PanelView> {
        let workers = |now: &Reading| {
            let (all, busy) = (now.get(C::TreeWorkers)?, now.get(C::TreeBusyWorkers)?);
            Some([busy as f64, all.saturating_sub(busy) as f64])
        };
        // A server that has ended, and may come again, keeps its place.
        if !self.scene.looks.iter().rev().any(|look| workers(&look.reading).is_some()) {
            return None;
        }
        let [busy, idle] = workers(self.now()?).map_or([None; 2], |[busy, idle]| [Some(busy), Some(idle)]);
        Some(self.panel(
            "watch-tree",
            Height::Most(0.0),
            |span| workers(span.to),
            vec![
                busy.map(|busy| self.say("watch-workers-busy", "n", count(busy))),
                idle.map(|idle| self.say("watch-workers-idle", "n", count(idle))),
            ],
            vec![
                self.level("watch-processes", "n", C::TreeProcesses, |n| n.to_string()),
                self.level("watch-resident", "size", C::TreeRss, units::short_bytes),
            ],
        ))
    }

    /// The two rates of traffic that a chart has.
    fn pair(&self, rates: impl Fn(&Span<'_>) -> Pair, ids: [&str; 2]) -> Vec<Option<String>> {
        let now = self.span().and_then(|span| rates(&span));
        [0, 1].map(|at| now.map(|rates| self.say(ids[at], "rate", traffic(rates[at])))).to_vec()
    }

    fn level(&self, id: &str, name: &'static str, column: C, text: fn(u64) -> String) -> Option<String> {
        Some(self.say(id, name, text(self.now()?.get(column)?)))
    }

    fn rate(&self, id: &str, name: &'static str, column: C, text: fn(f64) -> String) -> Option<String> {
        Some(self.say(id, name, text(self.span()?.rate(column)?)))
    }
}

/// Whole percent: nobody reads more of a number that changes every second.
fn percent(of_one: f64) -> String {
    format!("{:.0}", of_one * 100.0)
}

fn count(n: f64) -> String {
    if n > 0.0 && n < 10.0 && n.fract() > 0.05 { format!("{n:.1}") } else { format!("{n:.0}") }
}

fn traffic(bytes: f64) -> String {
    format!("{}/s", units::short_bytes(bytes.round() as u64))
}

/// The next of 1, 2, 5, 10, 20, 50, 100, 200 or 500 bytes, KiB and so on.
fn round_up(bytes: f64) -> f64 {
    let mut unit = 1.0;
    loop {
        for step in [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0] {
            if bytes <= step * unit {
                return step * unit;
            }
        }
        if bytes <= 1024.0 * unit || unit > 1e18 {
            return 1024.0 * unit;
        }
        unit *= 1024.0;
    }
}

/// A length of time, short: `1.5 s`, `50 s`, `3:20`, `1:02:03`.
fn length(ns: Nanos) -> String {
    let tenths = (ns + SECOND / 20) / (SECOND / 10);
    let seconds = tenths / 10;
    match seconds {
        0..60 if tenths.is_multiple_of(10) => format!("{seconds} s"),
        0..60 => format!("{seconds}.{} s", tenths % 10),
        60..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

/// The first look that charts need whose columns are so long: those before are in none.
#[must_use]
pub fn first_needed(looks: &[Look], column_ns: Nanos) -> usize {
    let Some(last) = looks.last() else { return 0 };
    let oldest = (last.at_ns() / column_ns.max(1)).saturating_sub(COLUMNS as u64) * column_ns;
    looks.partition_point(|look| look.at_ns() < oldest).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_round() {
        let check = |bytes: f64, expected: &str| assert_eq!(traffic(round_up(bytes)), expected, "{bytes}");
        check(0.0, "1 B/s");
        check(70_000.0, "100 KiB/s");
        check(600.0 * 1024.0, "1.00 MiB/s");
        check(3.1 * 1048576.0, "5.00 MiB/s");
        check(1e9, "1.00 GiB/s");
    }

    #[test]
    fn lengths_are_short() {
        let check = |ns, expected: &str| assert_eq!(length(ns), expected);
        check(5 * SECOND, "5 s");
        check(SECOND / 10 * 32, "3.2 s");
        check(SECOND * 11 + 400_000, "11 s");
        check(200 * SECOND, "3:20");
        check(3723 * SECOND, "1:02:03");
    }

    #[test]
    fn old_looks_are_not_needed() {
        let looks: Vec<Look> = (0..1000).map(|at| Look::empty(at * SECOND, 0)).collect();
        let first = first_needed(&looks, SECOND);
        assert!((755..762).contains(&first), "{first}");
        assert_eq!((first_needed(&looks, 10 * SECOND), first_needed(&[], SECOND)), (0, 0));
    }
}
