//! A watch for programs: JSON lines and OpenMetrics text, against what their formats promise.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml excepts only test functions")]

use expect_test::{expect, expect_file};
use model::SECOND;
use model::device::{Device, DeviceKind, Roster};
use model::reading::{Column, Kind, Look};
use model::run::HostFacts;
use report::watch::openmetrics::{self, About};
use report::watch::{Sight, Tick, json};
use serde_json::Value;
use std::collections::HashSet;

fn roster() -> Roster {
    let device = |kind, name: &str| Device { kind, name: name.to_owned() };
    Roster {
        devices: vec![
            device(DeviceKind::Cpu, "0"),
            device(DeviceKind::Disk, "sda"),
            device(DeviceKind::Interface, "eth0"),
            device(DeviceKind::Swap, "/dev/\"dm\\0\""),
            device(DeviceKind::Interrupt, "24"),
            device(DeviceKind::Listener, "80"),
        ],
    }
}

/// Every counter grows by 100 a second, every level is 7; but for the server's group, of which nothing is known.
fn look(at_ms: u64) -> Look {
    let mut look = Look::empty(at_ms * SECOND / 1000, roster().numbers());
    for &column in Column::ALL.iter().filter(|column| !column.name().starts_with("group.")) {
        look.reading.set(column, if column.kind() == Kind::Counter { 1000 + at_ms / 10 } else { 7 });
    }
    look.devices.iter_mut().for_each(|number| *number = 5000 + at_ms / 10);
    look
}

fn row(from: Option<&Look>, to: &Look) -> Value {
    let roster = roster();
    fn sight(look: &Look) -> Sight<'_> {
        Sight { reading: &look.reading, devices: &look.devices }
    }
    let tick = Tick {
        from: from.map(sight),
        to: sight(to),
        roster: &roster,
        page_bytes: 4096,
        epoch: 1_763_000_000.25,
        clock: "",
        processes: None,
    };
    let line = json::row(&tick, &["no PSI".to_owned()]);
    assert_eq!(line.matches('\n').count(), 1, "one line");
    serde_json::from_str(&line).unwrap()
}

fn check_schema(row: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(&json::schema()).unwrap();
    validator.iter_errors(row).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_schema_is_published() {
    let text = format!("{:#}\n", json::schema());
    expect_file!["../../../docs/schemas/watch.schema.json"].assert_eq(&text);
}

#[test]
fn rows_keep_to_the_schema() {
    for row in [row(None, &look(0)), row(Some(&look(0)), &look(4000)), row(Some(&look(0)), &Look::empty(9, 0))] {
        assert_eq!(check_schema(&row), Vec::<String>::new());
    }
    let mut broken = row(Some(&look(0)), &look(1000));
    broken["memory"]["free_bytes"] = "many".into();
    broken["cpu"].as_object_mut().unwrap().remove("user_percent");
    assert_eq!(check_schema(&broken).len(), 2);
}

#[test]
fn rates_are_over_the_time_that_passed() {
    // Four seconds late.
    let row = row(Some(&look(1000)), &look(5000));
    let at = |pointer: &str| row.pointer(pointer).unwrap_or_else(|| panic!("{pointer}")).clone();
    assert_eq!((at("/elapsed_s"), at("/monotonic_s"), at("/epoch_s")), (4.into(), 5.into(), 1_763_000_000.25.into()));
    assert_eq!(at("/disk/read_bytes_per_s"), 100 * 512);
    assert_eq!(at("/swap/in_bytes_per_s"), 100 * 4096);
    assert_eq!(at("/system/context_switches_per_s"), 100);
    // 100 microseconds a second; 100 ms a second; eight equal shares.
    assert_eq!(
        (at("/pressure/memory_full_percent"), at("/disk/busy_percent"), at("/disk/weighted_queue")),
        (0.01.into(), 10.into(), 0.1.into())
    );
    assert_eq!(at("/cpu/iowait_percent"), 12.5);
    assert_eq!((at("/memory/free_bytes"), at("/loadavg/5m")), ((7 * 1024).into(), 0.07.into()));
    assert_eq!(at("/devices/disk/sda/written_bytes_per_s"), 100 * 512);
    assert_eq!((at("/devices/disk/sda/busy_percent"), at("/devices/disk/sda/weighted_queue")), (10.into(), 0.1.into()));
    assert_eq!((at("/devices/cpu/0/user_percent"), at("/devices/port/80/limit")), (12.5.into(), 5500.into()));
    assert_eq!((at("/cgroup"), at("/notes/0")), (Value::Null, "no PSI".into()));
}

#[test]
fn what_is_not_known_is_null() {
    let first = row(None, &look(1000));
    assert_eq!((&first["elapsed_s"], &first["disk"]["reads_per_s"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&first["memory"]["free_bytes"], &first["devices"]["cpu"]["0"]["user_percent"]),
        (&7168.into(), &Value::Null)
    );
    // A counter that went backwards, and one CPU's counter that did.
    let mut back = look(2000);
    back.reading.set(Column::Forks, 3);
    back.reading.set(Column::CpuIowait, 3);
    let row = row(Some(&look(1000)), &back);
    assert_eq!((&row["system"]["forks_per_s"], &row["cpu"]["iowait_percent"]), (&Value::Null, &Value::Null));
    assert!(row["cpu"]["user_percent"].as_f64().is_some_and(|share| share > 14.0 && share < 15.0));
}

fn metrics(look: &Look) -> String {
    let host = HostFacts { name: "web1".into(), kernel: "6.1".into(), ..HostFacts::default() };
    let about = About { host: &host, version: "0.1.0", roster: &roster(), page_bytes: 4096, epoch: 1_763_000_000.25 };
    openmetrics::render(look, about)
}

/// The rules of OpenMetrics 1.0 that a collector trips over.
fn check_metrics(text: &str) -> usize {
    let (mut families, mut samples) = (HashSet::new(), HashSet::new());
    let mut current: Option<(String, String)> = None;
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(families.insert(name.to_owned()), "{name} twice");
            current = Some((name.to_owned(), kind.to_owned()));
            continue;
        }
        let (family, kind) = current.as_ref().expect("a family");
        if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(name == family && name.ends_with(&format!("_{unit}")), "{line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.strip_prefix(family.as_str()).is_some_and(|rest| rest.starts_with(' ')), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let end = match kind.as_str() {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            assert_eq!(name, format!("{family}{end}"), "{line}");
            assert!(value.parse::<f64>().is_ok() && samples.insert(series.to_owned()), "{line}");
        }
    }
    samples.len()
}

#[test]
fn metrics_keep_to_the_format() {
    let all = check_metrics(&metrics(&look(1000)));
    let host = Column::ALL.iter().filter(|column| !column.name().starts_with("group.")).count();
    assert_eq!(all, 2 + host + roster().numbers());
    assert_eq!(check_metrics(&metrics(&Look::empty(0, 0))), 2, "what is not known is not there");
}

#[test]
fn metrics_are_the_kernels_counters_in_base_units() {
    let mut look = look(1000);
    look.reading.set(Column::DiskReadSectors, u64::MAX / 700);
    let text = metrics(&look);
    let wanted = [
        "webdyno_cpu_seconds",
        "webdyno_disk_read_bytes",
        "webdyno_pressure_memory_full",
        "webdyno_device_swap_used",
        "_watch_",
    ];
    let found: Vec<_> = text.lines().filter(|line| wanted.iter().any(|name| line.contains(name))).collect();
    expect![[r#"
        webdyno_watch_info{version="0.1.0",host="web1",kernel="6.1"} 1
        # TYPE webdyno_watch_read_seconds gauge
        # UNIT webdyno_watch_read_seconds seconds
        # HELP webdyno_watch_read_seconds When the numbers were read, in seconds since 1970.
        webdyno_watch_read_seconds 1763000000.25
        # TYPE webdyno_cpu_seconds counter
        # UNIT webdyno_cpu_seconds seconds
        # HELP webdyno_cpu_seconds CPU time over all CPUs, from /proc/stat.
        webdyno_cpu_seconds_total{mode="user"} 11.0
        webdyno_cpu_seconds_total{mode="nice"} 11.0
        webdyno_cpu_seconds_total{mode="system"} 11.0
        webdyno_cpu_seconds_total{mode="idle"} 11.0
        webdyno_cpu_seconds_total{mode="iowait"} 11.0
        webdyno_cpu_seconds_total{mode="irq"} 11.0
        webdyno_cpu_seconds_total{mode="softirq"} 11.0
        webdyno_cpu_seconds_total{mode="steal"} 11.0
        # TYPE webdyno_disk_read_bytes counter
        # UNIT webdyno_disk_read_bytes bytes
        # HELP webdyno_disk_read_bytes /proc/diskstats, 512-byte sectors. Here in base units.
        webdyno_disk_read_bytes_total 13492475665341843456
        # TYPE webdyno_pressure_memory_full_seconds counter
        # UNIT webdyno_pressure_memory_full_seconds seconds
        # HELP webdyno_pressure_memory_full_seconds /proc/pressure/memory, us. Here in base units.
        webdyno_pressure_memory_full_seconds_total 0.0011
        # TYPE webdyno_device_swap_used_bytes gauge
        # UNIT webdyno_device_swap_used_bytes bytes
        # HELP webdyno_device_swap_used_bytes The same of each swap that is watched.
        webdyno_device_swap_used_bytes{swap="/dev/\"dm\\0\""} 5222400"#]]
    .assert_eq(&found.join("\n"));
}
