//! The screen of procps' vmstat, which has one set of columns: memory in KiB, traffic in KiB per second, shares of CPU time.
//!
//! Columns grow when a number needs it, as those of vmstat do.

use super::Tick;
use model::reading::Column;

/// The two lines of headings.
pub const HEADINGS: &str = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n \
r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n";

const WIDTHS: [usize; 17] = [2, 2, 6, 6, 6, 6, 4, 4, 5, 5, 4, 4, 2, 2, 2, 2, 2];

/// A row without its line end. What is not known is a dash.
#[must_use]
pub fn row(tick: &Tick<'_>) -> String {
    use Column as C;
    let page_kib = tick.page_bytes as f64 / 1024.0;
    let swapped = tick.gauge(C::SwapTotal).zip(tick.gauge(C::SwapFree)).map(|(size, free)| size - free);
    let cache = tick.gauge(C::MemCached).map(|cached| cached + tick.gauge(C::MemReclaimable).unwrap_or(0.0));
    let mut numbers = vec![
        tick.gauge(C::Runnable),
        tick.gauge(C::Blocked),
        swapped,
        tick.gauge(C::MemFree),
        tick.gauge(C::MemBuffers),
        cache,
        tick.rate(C::SwapIn).map(|pages| pages * page_kib),
        tick.rate(C::SwapOut).map(|pages| pages * page_kib),
        tick.rate(C::PagedIn),
        tick.rate(C::PagedOut),
        tick.rate(C::Interrupts),
        tick.rate(C::ContextSwitches),
    ];
    numbers.extend(cpu(tick));
    let fields = numbers.into_iter().zip(WIDTHS).map(|(number, width)| match number {
        // A half is rounded up, as the whole numbers of vmstat's own arithmetic do it.
        Some(number) if number >= 0.0 => format!("{:>width$.0}", (number + 0.5).floor()),
        _ => format!("{:>width$}", "-"),
    });
    fields.collect::<Vec<_>>().join(" ")
}

/// User and nice, system with interrupts, idle, waiting, stolen.
fn cpu(tick: &Tick<'_>) -> [Option<f64>; 5] {
    use Column as C;
    let grown = |columns: &[Column]| -> f64 {
        // A counter of idle time may go back a little; vmstat takes that for nothing.
        columns.iter().filter_map(|&column| tick.growth(column)).map(|ticks| ticks.max(0.0)).sum()
    };
    let times = [
        grown(&[C::CpuUser, C::CpuNice]),
        grown(&[C::CpuSystem, C::CpuIrq, C::CpuSoftirq]),
        grown(&[C::CpuIdle]),
        grown(&[C::CpuIowait]),
        grown(&[C::CpuSteal]),
    ];
    let sum: f64 = times.iter().sum();
    times.map(|time| (sum > 0.0).then(|| 100.0 * time / sum))
}
