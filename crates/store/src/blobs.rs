//! What of a trial does not fit JSON: its readings, its series of intervals and its histograms, each one packed blob.
//!
//! A stream's packing has its own version. A reader takes every version up to its own; what it does not know is an error, since
//! a newer schema version would have refused the file before.

use crate::columns::{self, Table};
use model::device::Roster;
use model::latency::{Latency, Packed};
use model::load::{Counts, Failure, LoadInterval, LoadResult, OpenLoop, Sessions, Unanswered};
use model::reading::{ABSENT, COLUMNS, Column, Look, Reading, Readings};
use model::trial::Trial;
use std::collections::{BTreeMap, HashMap};
use std::io;

/// One packed stream of a trial.
#[derive(Debug)]
pub(crate) struct Blob {
    pub(crate) stream: String,
    pub(crate) version: i64,
    pub(crate) data: Vec<u8>,
}

/// The packing written today, of every stream.
const VERSION: i64 = 1;

const READINGS: &str = "readings";
const READING_NOTES: &str = "readings.notes";
const INTERVALS: &str = "intervals";
const INTERVAL_LATENCIES: &str = "intervals.latency";
const AT: &str = "at_ns";

const TOTAL: &str = "latency.total";
const FIRST_BYTE: &str = "latency.first_byte";
const CONNECT: &str = "latency.connect";
const HANDSHAKE: &str = "latency.handshake";
const SERVICE: &str = "latency.service";
const FIRST_BYTE_AT_LEAST: &str = "latency.first_byte_at_least";
const SERVICE_AT_LEAST: &str = "latency.service_at_least";
const AT_LEAST: &str = "latency.at_least";
const LATENESS: &str = "latency.lateness";
const PAGE: &str = "latency.page";
const PAGE_AT_LEAST: &str = "latency.page_at_least";

/// Before the names of the streams of what the visitor saw.
const PROBE: &str = "probe.";
/// Before the names of the streams of a load beside the cell's own, with its place among them and a dot behind.
const BESIDE: &str = "beside.";

/// A trial's streams, those that others rest on first.
pub(crate) fn of(trial: &Trial) -> io::Result<Vec<Blob>> {
    let mut blobs = Vec::new();
    let mut push = |stream: &str, data: Vec<u8>| blobs.push(Blob { stream: stream.to_owned(), version: VERSION, data });
    push(READINGS, readings_table(&trial.readings).pack()?);
    push(READING_NOTES, serde_json::to_vec(&trial.readings.notes)?);
    let own = [("", &trial.load), (PROBE, &trial.probe)];
    let own = own.into_iter().filter_map(|(prefix, load)| Some((prefix.to_owned(), load.as_ref()?)));
    let beside = trial.beside.iter().enumerate().map(|(place, beside)| (format!("{BESIDE}{place}."), &beside.load));
    for (prefix, load) in own.chain(beside) {
        let mut push = |stream: &str, data| push(&format!("{prefix}{stream}"), data);
        push(INTERVALS, intervals_table(&load.intervals).pack()?);
        push(INTERVAL_LATENCIES, pack_latencies(&load.intervals)?);
        // HDR's own V2 bytes: compact already, and readable by every HDR library.
        push(TOTAL, load.total.encode());
        push(FIRST_BYTE, load.first_byte.encode());
        push(CONNECT, load.connect.encode());
        push(HANDSHAKE, load.handshake.encode());
        let Unanswered { latency, first_byte, service } = &load.unanswered;
        for (stream, times) in [(AT_LEAST, latency), (FIRST_BYTE_AT_LEAST, first_byte), (SERVICE_AT_LEAST, service)] {
            // Most loads have none.
            if !times.is_empty() {
                push(stream, times.encode());
            }
        }
        if let Some(open) = &load.open {
            push(SERVICE, open.service.encode());
            push(LATENESS, open.lateness.encode());
        }
        if let Some(sessions) = &load.sessions {
            push(PAGE, sessions.page.encode());
            push(PAGE_AT_LEAST, sessions.page_at_least.encode());
            if load.open.is_none() {
                push(LATENESS, sessions.lateness.encode());
            }
        }
    }
    Ok(blobs)
}

/// Puts one stream back into the trial it belongs to.
pub(crate) fn restore(trial: &mut Trial, blob: &Blob) -> Result<(), String> {
    let name = blob.stream.as_str();
    let damaged = |what: String| format!("stream {name}: {what}");
    if blob.version > VERSION {
        return Err(damaged(format!("packed as version {}, this webdyno knows {VERSION}", blob.version)));
    }
    match name {
        READINGS => trial.readings.rows = readings(&Table::unpack(&blob.data).map_err(damaged)?),
        READING_NOTES => {
            trial.readings.notes = serde_json::from_slice(&blob.data).map_err(|error| damaged(error.to_string()))?;
        }
        _ => {
            let (load, stream) = load_of(trial, name);
            let load = load.ok_or_else(|| damaged("the trial has no load".to_owned()))?;
            restore_load(load, stream, &blob.data).map_err(damaged)?;
        }
    }
    Ok(())
}

/// Whose stream it is, and its name among the streams of that load.
fn load_of<'a>(trial: &'a mut Trial, name: &'a str) -> (Option<&'a mut LoadResult>, &'a str) {
    if let Some(stream) = name.strip_prefix(PROBE) {
        return (trial.probe.as_mut(), stream);
    }
    match name.strip_prefix(BESIDE).and_then(|rest| rest.split_once('.')) {
        Some((place, stream)) => {
            let beside = place.parse::<usize>().ok().and_then(|place| trial.beside.get_mut(place));
            (beside.map(|beside| &mut beside.load), stream)
        }
        None => (trial.load.as_mut(), name),
    }
}

fn restore_load(load: &mut LoadResult, stream: &str, data: &[u8]) -> Result<(), String> {
    let latency = || Latency::decode(data).map_err(|error| error.to_string());
    match stream {
        INTERVALS => load.intervals = intervals(&Table::unpack(data)?)?,
        INTERVAL_LATENCIES => unpack_latencies(&mut load.intervals, data)?,
        TOTAL => load.total = latency()?,
        FIRST_BYTE => load.first_byte = latency()?,
        CONNECT => load.connect = latency()?,
        HANDSHAKE => load.handshake = latency()?,
        SERVICE => open_account(load)?.service = latency()?,
        AT_LEAST => load.unanswered.latency = latency()?,
        FIRST_BYTE_AT_LEAST => load.unanswered.first_byte = latency()?,
        SERVICE_AT_LEAST => load.unanswered.service = latency()?,
        LATENESS => match (&mut load.open, &mut load.sessions) {
            (Some(open), _) => open.lateness = latency()?,
            (None, Some(sessions)) => sessions.lateness = latency()?,
            (None, None) => return Err("nothing in the load was due at a time of its own".to_owned()),
        },
        PAGE => users(load)?.page = latency()?,
        PAGE_AT_LEAST => users(load)?.page_at_least = latency()?,
        other => return Err(format!("there is no stream `{other}`")),
    }
    Ok(())
}

fn users(load: &mut LoadResult) -> Result<&mut Sessions, String> {
    load.sessions.as_mut().ok_or_else(|| "the load has no users".to_owned())
}

fn open_account(load: &mut LoadResult) -> Result<&mut OpenLoop, String> {
    load.open.as_mut().ok_or_else(|| "the load has no timetable".to_owned())
}

fn readings_table(readings: &Readings) -> Table {
    table_of(readings.rows.len(), || readings.rows.iter())
}

/// A column for each column of the readings, of which there are `count`.
fn table_of<'r, R: Iterator<Item = &'r Reading>>(count: usize, rows: impl Fn() -> R) -> Table {
    let mut table = Table::new(count);
    table.push(AT, rows().map(|row| Some(row.at_ns)));
    for &column in Column::ALL {
        table.push(column.name(), rows().map(|row| row.get(column)));
    }
    table
}

/// The packing of looks written today.
pub(crate) const LOOKS_VERSION: i64 = 1;

/// Looks as bytes. The numbers of devices have the device's kind, their position and its name, so that a kind may get more
/// numbers later.
pub(crate) fn pack_looks(roster: &Roster, looks: &[Look]) -> io::Result<Vec<u8>> {
    let mut table = table_of(looks.len(), || looks.iter().map(|look| &look.reading));
    for (name, at) in device_columns(roster) {
        let value = |look: &Look| look.devices.get(at).copied().filter(|&value| value != ABSENT);
        table.push(name, looks.iter().map(value));
    }
    table.pack()
}

/// The inverse of [`pack_looks`].
pub(crate) fn looks(roster: &Roster, version: i64, data: &[u8]) -> Result<Vec<Look>, String> {
    if version > LOOKS_VERSION {
        return Err(format!("looks packed as version {version}, this webdyno knows {LOOKS_VERSION}"));
    }
    let table = Table::unpack(data)?;
    let columns = table.by_name();
    let known: Vec<_> = device_columns(roster).map(|(name, _)| columns.get(name.as_str()).copied()).collect();
    let devices =
        |row: usize| known.iter().map(|column| column.and_then(|column| column[row]).unwrap_or(ABSENT)).collect();
    Ok((0..).zip(readings(&table)).map(|(row, reading)| Look { reading, devices: devices(row) }).collect())
}

/// The columns of the devices, with the place of each number in a look.
fn device_columns(roster: &Roster) -> impl Iterator<Item = (String, usize)> {
    roster.placed().flat_map(|(first, device)| {
        (0..device.kind.numbers()).map(move |number| {
            let kind = serde_json::to_value(device.kind).unwrap_or_default();
            (format!("{}.{number}.{}", kind.as_str().unwrap_or_default(), device.name), first + number)
        })
    })
}

fn readings(table: &Table) -> Vec<Reading> {
    let columns = table.by_name();
    let known: Vec<_> = Column::ALL.iter().map(|column| columns.get(column.name()).copied()).collect();
    (0..table.rows())
        .map(|row| {
            let mut values = [ABSENT; COLUMNS];
            for (value, column) in values.iter_mut().zip(&known) {
                *value = column.and_then(|column| column[row]).unwrap_or(ABSENT);
            }
            Reading { at_ns: cell(&columns, AT, row), values }
        })
        .collect()
}

fn cell(columns: &HashMap<&str, &[Option<u64>]>, name: &str, row: usize) -> u64 {
    columns.get(name).and_then(|column| column[row]).unwrap_or(0)
}

const FAILED: &str = "failed.";
const STATUS: &str = "status.";

fn intervals_table(intervals: &[LoadInterval]) -> Table {
    let mut table = Table::new(intervals.len());
    table.push("start_ns", intervals.iter().map(|i| Some(i.start_ns)));
    table.push("length_ns", intervals.iter().map(|i| Some(i.length_ns)));
    table.push("good", intervals.iter().map(|i| Some(i.counts.good)));
    table.push("bytes_in", intervals.iter().map(|i| Some(i.counts.bytes_in)));
    table.push("bytes_out", intervals.iter().map(|i| Some(i.counts.bytes_out)));
    table.push("connects", intervals.iter().map(|i| Some(i.counts.connects)));
    table.push("retries", intervals.iter().map(|i| Some(i.counts.retries)));
    let mut maps: BTreeMap<String, Vec<Option<u64>>> = BTreeMap::new();
    for (row, interval) in intervals.iter().enumerate() {
        let failed = interval.counts.failed.iter().map(|(cause, &n)| (format!("{FAILED}{}", failure_name(*cause)), n));
        let statuses = interval.counts.statuses.iter().map(|(status, &n)| (format!("{STATUS}{status}"), n));
        for (name, n) in failed.chain(statuses) {
            maps.entry(name).or_insert_with(|| vec![None; intervals.len()])[row] = Some(n);
        }
    }
    maps.into_iter().for_each(|(name, values)| table.push(name, values.into_iter()));
    table
}

fn intervals(table: &Table) -> Result<Vec<LoadInterval>, String> {
    let columns = table.by_name();
    let mut intervals = Vec::with_capacity(table.rows());
    for row in 0..table.rows() {
        let number = |name| cell(&columns, name, row);
        let mut counts = Counts {
            good: number("good"),
            bytes_in: number("bytes_in"),
            bytes_out: number("bytes_out"),
            connects: number("connects"),
            retries: number("retries"),
            ..Counts::default()
        };
        for (name, values) in &columns {
            let Some(n) = values[row] else { continue };
            if let Some(cause) = name.strip_prefix(FAILED) {
                counts.failed.insert(failure(cause)?, n);
            } else if let Some(status) = name.strip_prefix(STATUS) {
                counts.statuses.insert(status.parse().map_err(|_| format!("`{status}` is not a status"))?, n);
            }
        }
        intervals.push(LoadInterval {
            start_ns: number("start_ns"),
            length_ns: number("length_ns"),
            counts,
            total: Packed::default(),
        });
    }
    Ok(intervals)
}

/// A failure by the name JSON gives it, so that there is one spelling in the whole store.
fn failure_name(cause: Failure) -> String {
    match serde_json::to_value(cause) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("a failure is written as its name, not {other:?}"),
    }
}

fn failure(name: &str) -> Result<Failure, String> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).map_err(|error| error.to_string())
}

/// HDR V2 histograms one after the other, each behind its length, compressed together: neighbours resemble each other.
fn pack_latencies(intervals: &[LoadInterval]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for interval in intervals {
        let histogram = interval.total.bytes();
        columns::write(&mut bytes, histogram.len() as u64);
        bytes.extend_from_slice(histogram);
    }
    columns::compress(&bytes)
}

fn unpack_latencies(intervals: &mut [LoadInterval], packed: &[u8]) -> Result<(), String> {
    let bytes = columns::decompress(packed)?;
    let mut rest = bytes.as_slice();
    for interval in intervals {
        let length = columns::read_len(&mut rest)?;
        let histogram = rest.split_off(..length).ok_or("a packed histogram is cut short")?;
        interval.total = Latency::decode(histogram).map_err(|error| error.to_string())?.pack();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a webdyno with other columns wrote, read by this one.
    fn check(written: &[(&str, u64)], expected: &[(Column, u64)]) {
        let mut table = Table::new(1);
        written.iter().for_each(|&(name, value)| table.push(name, std::iter::once(Some(value))));
        let rows = readings(&Table::unpack(&table.pack().unwrap()).unwrap());
        let mut reading = Reading::empty(5);
        expected.iter().for_each(|&(column, value)| reading.set(column, value));
        assert_eq!(rows, [reading]);
    }

    #[test]
    fn columns_may_come_and_go() {
        check(&[(AT, 5), ("cpu.user", 7)], &[(Column::CpuUser, 7)]);
        check(&[("a.column.of.later", 1), (AT, 5), ("swap.free", 9)], &[(Column::SwapFree, 9)]);
        check(&[(AT, 5)], &[]);
    }

    #[test]
    fn a_later_packing_is_refused() {
        let mut trial: Trial = serde_json::from_str(
            r#"{"block":0,"position":0,"cell":"a","outcome":{"kind":"complete"},"began_ns":0,
                "settings":{"server":"","values":{},"worker_limit":null},"load":null,"notes":[],"log_tail":""}"#,
        )
        .unwrap();
        let blob = Blob { stream: READINGS.into(), version: 9, data: vec![] };
        let told = restore(&mut trial, &blob).unwrap_err();
        assert_eq!(told, "stream readings: packed as version 9, this webdyno knows 1");
    }
}
