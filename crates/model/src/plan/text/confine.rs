//! What a plan says of the limits a server lives in, and what that means.

use super::PlanError;
use super::measure::{Rate, Size};
use super::source::Source;
use crate::plan::{Confinement, IoLimits};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// A server of ours wants as much to start.
const LEAST_MEMORY: u64 = 16 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfineText {
    memory: Option<Spanned<Size>>,
    swap: Option<Spanned<Size>>,
    cpu: Option<Spanned<f64>>,
    io_read: Option<Spanned<Size>>,
    io_write: Option<Spanned<Size>>,
    io_read_ops: Option<Spanned<Rate>>,
    io_write_ops: Option<Spanned<Rate>>,
}

impl ConfineText {
    /// Where the first of its limits stands, if it has one.
    pub(super) fn place(&self) -> Option<Range<usize>> {
        let spans = [
            self.memory.as_ref().map(Spanned::span),
            self.swap.as_ref().map(Spanned::span),
            self.cpu.as_ref().map(Spanned::span),
            self.io_read.as_ref().map(Spanned::span),
            self.io_write.as_ref().map(Spanned::span),
            self.io_read_ops.as_ref().map(Spanned::span),
            self.io_write_ops.as_ref().map(Spanned::span),
        ];
        spans.into_iter().flatten().min_by_key(|span| span.start)
    }
}

/// The limits; none when the table is empty.
pub(super) fn confine_meant(source: &Source<'_>, confine: &ConfineText) -> Result<Option<Confinement>, PlanError> {
    if confine.place().is_none() {
        return Ok(None);
    }
    let memory = confine.memory.as_ref().map(|text| source.bytes(text, "confine.memory")).transpose()?;
    if let Some(text) = confine.memory.as_ref().filter(|_| memory.is_some_and(|bytes| bytes < LEAST_MEMORY)) {
        return Err(source.at(text.span(), "confine.memory", "no server starts in less than 16M"));
    }
    if let (None, Some(swap)) = (memory, &confine.swap) {
        return Err(source.at(swap.span(), "confine.swap", "nobody swaps who has all the memory; give `memory`, too"));
    }
    let swap = confine.swap.as_ref().map(|text| source.bytes(text, "confine.swap")).transpose()?.unwrap_or(0);
    let cpu_thousandths = confine.cpu.as_ref().map(|cpu| cpu_meant(source, cpu)).transpose()?;
    let bytes =
        |text: &Option<Spanned<Size>>, key: &str| text.as_ref().map(|text| bytes(source, text, key)).transpose();
    let ops =
        |text: &Option<Spanned<Rate>>, key: &str| text.as_ref().map(|text| operations(source, text, key)).transpose();
    let io = IoLimits {
        read: bytes(&confine.io_read, "confine.io_read")?,
        write: bytes(&confine.io_write, "confine.io_write")?,
        read_ops: ops(&confine.io_read_ops, "confine.io_read_ops")?,
        write_ops: ops(&confine.io_write_ops, "confine.io_write_ops")?,
    };
    Ok(Some(Confinement { memory, swap, cpu_thousandths, io }))
}

/// The kernel gives at least a millisecond in each tenth of a second.
fn cpu_meant(source: &Source<'_>, cpu: &Spanned<f64>) -> Result<u64, PlanError> {
    let cpus = *cpu.get_ref();
    if (0.01..=10_000.0).contains(&cpus) {
        Ok((cpus * 1000.0).round() as u64)
    } else {
        Err(source.at(cpu.span(), "confine.cpu", "is a number of CPUs, at least 0.01, such as 0.5 or 2.0"))
    }
}

/// A rate of less stops a server from being read from its disk.
fn bytes(source: &Source<'_>, text: &Spanned<Size>, key: &str) -> Result<u64, PlanError> {
    let plain = text.get_ref().0.strip_suffix("/s").unwrap_or(&text.get_ref().0);
    match units::bytes(plain) {
        Ok(bytes) if bytes >= 64 << 10 => Ok(bytes),
        Ok(_) => Err(source.at(text.span(), key, "must be at least 64K a second: with less, no program would start")),
        Err(error) => Err(source.at(text.span(), key, &error.to_string())),
    }
}

fn operations(source: &Source<'_>, text: &Spanned<Rate>, key: &str) -> Result<u64, PlanError> {
    let rate = source.rate(text, key)?.round();
    if (1.0..=4e9).contains(&rate) {
        Ok(rate as u64)
    } else {
        Err(source.at(text.span(), key, "must be between 1/s and 4e9/s"))
    }
}
