//! This machine while a load goes on, in words: the load generator itself, and the host's counters when the server is here.

use super::FactsView;
use super::seen::Seen;
use crate::language::Catalogue;
use crate::load::FactView;
use fluent_bundle::FluentValue;
use model::reading::{Column, Span};

/// Bytes of a page that the kernel swaps.
const PAGE: f64 = 4096.0;

pub(super) fn machine(seen: &Seen, words: &Catalogue) -> FactsView {
    let say = Teller { words };
    let generator = seen
        .generator
        .map(|cpus| say.fact("screen-generator", "screen-generator-text", &[("share", share(cpus).into())]));
    let mut facts: Vec<FactView> = generator.into_iter().collect();
    if let Some(span) = seen.span() {
        let of_host = [say.cpu(&span), say.memory(&span), say.swap(&span), say.tasks(&span), say.pressure(&span)];
        facts.extend(of_host.into_iter().flatten());
    }
    FactsView { title: words.word("screen-machine"), facts }
}

struct Teller<'a> {
    words: &'a Catalogue,
}

impl Teller<'_> {
    fn fact(&self, label: &str, id: &str, arguments: &[(&'static str, FluentValue<'_>)]) -> FactView {
        FactView { label: self.words.word(label), text: self.words.say(id, arguments).text }
    }

    fn cpu(&self, span: &Span<'_>) -> Option<FactView> {
        let cpu = span.cpu()?;
        let arguments = [
            ("busy", share(cpu.busy()).into()),
            ("iowait", share(cpu.iowait).into()),
            ("steal", share(cpu.steal).into()),
        ];
        Some(self.fact("screen-cpu", "screen-cpu-text", &arguments))
    }

    fn memory(&self, span: &Span<'_>) -> Option<FactView> {
        let (available, total) = (kib(span, Column::MemAvailable)?, kib(span, Column::MemTotal)?);
        let arguments =
            [("available", units::short_bytes(available).into()), ("total", units::short_bytes(total).into())];
        Some(self.fact("screen-memory", "screen-memory-text", &arguments))
    }

    fn swap(&self, span: &Span<'_>) -> Option<FactView> {
        let total = kib(span, Column::SwapTotal)?;
        if total == 0 {
            return Some(self.fact("screen-swap", "screen-swap-none", &[]));
        }
        let mib = |column| span.rate(column).unwrap_or(0.0) * PAGE / f64::from(1 << 20);
        let printed =
            |column| if mib(column) < 10.0 { format!("{:.1}", mib(column)) } else { format!("{:.0}", mib(column)) };
        let used = total.saturating_sub(kib(span, Column::SwapFree)?);
        let arguments = [
            ("used", units::short_bytes(used).into()),
            ("in", printed(Column::SwapIn).into()),
            ("out", printed(Column::SwapOut).into()),
            ("unit", "MiB/s".into()),
        ];
        Some(self.fact("screen-swap", "screen-swap-text", &arguments))
    }

    fn tasks(&self, span: &Span<'_>) -> Option<FactView> {
        let (runnable, blocked) = (span.to.get(Column::Runnable)?, span.to.get(Column::Blocked)?);
        let arguments = [("runnable", runnable.to_string().into()), ("blocked", blocked.to_string().into())];
        Some(self.fact("screen-tasks", "screen-tasks-text", &arguments))
    }

    /// Only of kernels that tell it.
    fn pressure(&self, span: &Span<'_>) -> Option<FactView> {
        let some = |column| span.share_of_time(column).map(share);
        let arguments = [
            ("cpu", some(Column::PsiCpuSome)?.into()),
            ("memory", some(Column::PsiMemSome)?.into()),
            ("io", some(Column::PsiIoSome)?.into()),
        ];
        Some(self.fact("screen-pressure", "screen-pressure-text", &arguments))
    }
}

fn kib(span: &Span<'_>, column: Column) -> Option<u64> {
    span.to.get(column).map(|kib| kib * 1024)
}

/// A whole percentage, as nobody reads more of a number that changes every second.
fn share(of_one: f64) -> String {
    format!("{:.0}", of_one * 100.0)
}
