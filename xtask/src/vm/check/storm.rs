//! The first document's storm, whole and in its own sizes: ten CGI programs that fill 200 MB once and end, at once in 1 GB, for two minutes, under
//! Apache with MaxRequestWorkers 256; files and swap on one disk, and that as fast as the document's own dstat shows it.
//!
//! The guest's processor is imitated, and many times slower than the document's; a disk in the same proportion makes a machine that waits
//! for its disk as the document's did. The sampler and `webdyno watch` must lose no second, and totals must be the kernel's. Debian's dstat runs beside them; there are up to
//! two storms, until it has lost something, and when it has not the page says so.

use super::dstat::{self, Rows};
use super::table::{Table, diskstats, vmstat};
use super::{OURS, SHORT, Seen};
use crate::vm::guest::Guest;
use crate::vm::machine::Machine;
use anyhow::Context;
use std::ops::Range;
use std::time::Duration;

/// Seconds of load.
const STORM: u64 = 120;
/// How many storms there are at most: dstat does not lose seconds in each.
const STORMS: usize = 2;
/// Seconds the sampler watches: the storm, and calm before and after it.
const WATCHED: u64 = 220;
/// What a machine that thrashes may take for it.
const PATIENCE: Duration = Duration::from_secs(900);
/// How far totals may lie apart: the two are not taken in the same millisecond.
const APART: f64 = 0.005;
/// ... and what a calm machine does in the seconds that only one of the two has seen: pages and operations,
const CALM: u64 = 256;
/// and sectors, 8 MiB of them.
const CALM_SECTORS: u64 = 16_384;
/// How far sums of rows may lie apart, each rounded to its four characters.
const ROUNDED: f64 = 0.02;

/// What the document's disk did at most in a second: bytes (252M written to swap) and operations (2637 read back, of a page each).
const DISK: (f64, f64) = (252.0 * 1048576.0, 2637.0);
/// Seconds of one request alone in the document, nearly all of it CPU time.
const ALONE: f64 = 0.0877;
/// Of the CPU's time while the document's storm is shown: user, system, waiting for disks.
const DOCUMENT: &str = "4 %, 39 % and 57 %";
/// Rows of the readings in the midst of the storm.
const MIDST: Range<usize> = 20..120;

const PREPARE: &str = "\
set -e
make -s -C OURS/sites/memhog BIN=/usr/lib/cgi-bin
printf 'SetEnv MEMHOG_BYTES 200M\\nServerName vm\\nMaxRequestWorkers 256\\n' > /etc/apache2/conf-available/storm.conf
sed -i '/MaxRequestWorkers/d' /etc/apache2/mods-available/mpm_prefork.conf
a2enconf -q storm
systemctl start apache2
swapoff -a
swapon -a
ab -q -n 1 -s 300 http://127.0.0.1/cgi-bin/memhog | grep -q 'Complete requests: *1'
ab -q -n 3 -s 300 http://127.0.0.1/cgi-bin/memhog | sed -n 's/^Time per request: *\\([0-9.]*\\).*(mean)$/\\1/p'
";

const STORM_SCRIPT: &str = "\
rm -rf /root/storm
mkdir /root/storm
cd /root/storm
instant() { read up rest < /proc/uptime; echo $up > $1.uptime; }
counters() { instant $1; cat /proc/vmstat > $1.vmstat; cat /proc/diskstats > $1.diskstats; cat /proc/pressure/memory > $1.pressure; }
dstat -T -d -c -m -s -l -n -r 1 > dstat.txt 2> dstat.err &
dstat=$!
OURS/webdyno watch -T -d -c -m -s -l -n -r 1 > watch.txt 2> watch.err &
watch=$!
OURS/record OURS/webdyno WATCHED > readings.csv 2> notes.txt &
record=$!
until grep -q . notes.txt; do sleep 0.2; done
instant ready
sleep 5
counters before
date +%s > began
timeout -s INT STORM ab -q -c 10 -n 1000 -s 600 http://127.0.0.1/cgi-bin/memhog > ab.txt 2>&1
date +%s > ended
systemctl kill -s KILL apache2
systemctl stop apache2
killall -q -9 memhog
sleep 15
counters after
kill -0 $record && echo yes > watched
kill -INT $dstat $watch
wait $record
echo done
";

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let guest = machine.guest();
    let fill = |script: &str| {
        let script = script.replace("OURS", OURS).replace("WATCHED", &WATCHED.to_string());
        script.replace("STORM", &STORM.to_string())
    };
    let mut seen =
        Seen::titled("A storm of the whole machine, two minutes: ten CGI programs of 200 MB at once in 1 GB");
    for n in 1..=STORMS {
        machine.slow_disks(0, 0)?;
        let alone = guest.sh(&fill(PREPARE), SHORT)?;
        let alone = alone.lines().last().unwrap_or_default();
        let alone: f64 = alone.parse::<f64>().with_context(|| format!("one request took `{alone}`"))? / 1000.0;
        let slower = (alone / ALONE).max(1.0);
        let (bytes, operations) = (DISK.0 / slower, DISK.1 / slower);
        machine.slow_disks(bytes as u64, operations as u64)?;
        let host = machine.ran_and_waited();
        guest.sh(&fill(STORM_SCRIPT), PATIENCE)?;
        let now = machine.ran_and_waited();
        // Threads that have ended meanwhile take their time along.
        let (ran, waited) = (now.0.saturating_sub(host.0) as f64 / 1e9, now.1.saturating_sub(host.1) as f64 / 1e9);
        machine.slow_disks(0, 0)?;
        seen.say(format!(
            "\n## Storm {n}\n\nOne request alone takes {alone:.2} s, {:.0} times the document's. The disk, of files and swap: {:.1} MiB and {operations:.0} \
             operations a second at most, the document's divided by {slower:.0}. \
             On the host's CPUs QEMU ran for {ran:.0} s, and waited for them for {waited:.0} s, which nobody in the guest is told.",
            alone / ALONE,
            bytes / f64::from(1 << 20),
        ));
        if judge(&mut seen, &guest)? {
            return Ok(seen);
        }
    }
    seen.say(format!("\nIn {STORMS} storms dstat lost nothing either."));
    Ok(seen)
}

/// Writes down one storm; whether dstat lost something in it.
fn judge(seen: &mut Seen, guest: &Guest) -> anyhow::Result<bool> {
    let readings = Table::parse(&file(guest, "readings.csv")?)?;
    let watch = dstat::parse(&file(guest, "watch.txt")?);
    let rows = dstat::parse(&file(guest, "dstat.txt")?);
    let kernel = Kernel::of(guest)?;
    setting(seen, guest, &kernel)?;
    depth(seen, &readings);
    seconds(seen, &readings, &watch, &rows);
    totals(seen, &readings, &watch, &rows, &kernel);
    let notes = file(guest, "notes.txt")?.replace("ready\n", "");
    if !notes.is_empty() {
        seen.say(format!("\nNotes of the sampler:\n\n```\n{notes}```"));
    }
    let watched = file(guest, "watched").is_ok();
    seen.expect(watched, || format!("the sampler's {WATCHED} s were over before the storm was"));
    Ok(rows.gaps + rows.missed > 0)
}

fn file(guest: &Guest, name: &str) -> anyhow::Result<String> {
    guest.sh(&format!("cat /root/storm/{name}"), SHORT)
}

/// What the kernel counted over the storm.
struct Kernel {
    disk: [u64; 4],
    swap_in: u64,
    swap_out: u64,
    major_faults: u64,
    /// Milliseconds from the first reading to the first and the last look at the kernel's counters.
    looks: (u64, u64),
    oom_kills: u64,
    /// Microseconds in which nobody could go on for want of memory.
    full_us: u64,
    seconds: u64,
}

impl Kernel {
    fn of(guest: &Guest) -> anyhow::Result<Kernel> {
        let pair = |kind: &str| -> anyhow::Result<(String, String)> {
            Ok((file(guest, &format!("before.{kind}"))?, file(guest, &format!("after.{kind}"))?))
        };
        let (before, after) = pair("vmstat")?;
        let grew = |name: &str| {
            let of = |text: &str| vmstat(text, name).with_context(|| format!("no {name} in /proc/vmstat"));
            anyhow::Ok(of(&after)? - of(&before)?)
        };
        let (old, new) = pair("diskstats")?;
        let (old, new) = (diskstats(&old), diskstats(&new));
        let (calm, stalled) = pair("pressure")?;
        let instant = |name: &str| -> anyhow::Result<u64> { Ok(file(guest, name)?.trim().parse()?) };
        let ms =
            |name: &str| -> anyhow::Result<u64> { Ok((file(guest, name)?.trim().parse::<f64>()? * 1000.0) as u64) };
        let ready = ms("ready.uptime")?;
        let since = |instant: u64| instant.saturating_sub(ready);
        Ok(Kernel {
            looks: (since(ms("before.uptime")?), since(ms("after.uptime")?)),
            disk: std::array::from_fn(|at| new[at] - old[at]),
            swap_in: grew("pswpin")?,
            swap_out: grew("pswpout")?,
            major_faults: grew("pgmajfault")?,
            oom_kills: grew("oom_kill")?,
            full_us: full(&stalled) - full(&calm),
            seconds: instant("ended")? - instant("began")?,
        })
    }
}

/// `total` of the line `full` of a pressure file.
fn full(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("full "));
    line.and_then(|line| line.split_once("total=")?.1.trim().parse().ok()).unwrap_or(0)
}

fn setting(seen: &mut Seen, guest: &Guest, kernel: &Kernel) -> anyhow::Result<()> {
    let ab = file(guest, "ab.txt")?;
    let told = |what: &str| {
        ab.lines().find_map(|line| line.strip_prefix(what)).map_or("-".to_owned(), |rest| rest.trim().to_owned())
    };
    let share = kernel.full_us as f64 / 1e4 / kernel.seconds.max(1) as f64;
    seen.say(format!(
        "\nOne CPU (QEMU without KVM), 1 GB and 2 GB of swap; Apache with prefork, MaxRequestWorkers 256; `ab -c 10` in the guest itself \
         for {} s: {} requests answered, {} of them badly. Nobody could go on for want of memory in {share:.0} % of the time; {} MiB were \
         written to swap and {} MiB read back, {} major faults, {} processes killed for want of memory.\n",
        kernel.seconds,
        told("Complete requests:"),
        told("Failed requests:"),
        kernel.swap_out >> 8,
        kernel.swap_in >> 8,
        kernel.major_faults,
        kernel.oom_kills,
    ));
    seen.expect(kernel.seconds + 1 >= STORM, || format!("the storm lasted only {} s", kernel.seconds));
    seen.expect(kernel.swap_in > 0 && share >= 10.0, || {
        "there was no storm: nothing was read back from swap".to_owned()
    });
    Ok(())
}

/// What the CPU and the disks did in the midst of it.
fn depth(seen: &mut Seen, readings: &Table) {
    let grew = |name: &str| readings.growth_within(name, MIDST).unwrap_or(0) as f64;
    let [user, system, idle, wait] = [
        ["cpu.user", "cpu.nice"].as_slice(),
        &["cpu.system", "cpu.irq", "cpu.softirq"],
        &["cpu.idle", "cpu.steal"],
        &["cpu.iowait"],
    ]
    .map(|names| names.iter().map(|name| grew(name)).sum::<f64>());
    let all = (user + system + idle + wait).max(1.0);
    let seconds = grew("at_ms") / 1000.0;
    let mib = |pages: f64| pages / 256.0 / seconds.max(1.0);
    seen.say(format!(
        "The CPU's time in the midst of it: user {:.0} %, system {:.0} %, waiting for disks {:.0} % (the document's: {DOCUMENT}), idle {:.0} %. Swap: {:.1} MiB/s \
         written and {:.1} MiB/s read back; {:.0} operations of disks a second.\n",
        100.0 * user / all,
        100.0 * system / all,
        100.0 * wait / all,
        100.0 * idle / all,
        mib(grew("vm.pswpout")),
        mib(grew("vm.pswpin")),
        (grew("disk.reads") + grew("disk.writes")) / seconds.max(1.0),
    ));
}

fn seconds(seen: &mut Seen, readings: &Table, watch: &Rows, rows: &Rows) {
    let mut late = readings.column("sampler.late_ns");
    late.sort_unstable();
    let ms = |ns: u64| ns as f64 / 1e6;
    let rank = |share: f64| late.get(((late.len() as f64 * share).ceil() as usize).max(1) - 1).copied().unwrap_or(0);
    let cost = readings.column("sampler.cost_ns").into_iter().max().unwrap_or(0);
    seen.say("| | rows | seconds without a row |\n|---|---|---|");
    seen.say(format!("| webdyno's sampler | {} | {} |", readings.len(), readings.missing()));
    seen.say(format!("| `webdyno watch` | {} | {} ({} rows marked late) |", watch.rows, watch.gaps, watch.late));
    seen.say(format!(
        "| Debian's dstat | {} | {} (it owns up to {} missed ticks) |",
        rows.rows, rows.gaps, rows.missed
    ));
    seen.say(format!(
        "\nThe sampler was late by {:.2} ms (median), {:.1} ms (p99), {:.1} ms (at most); a reading took at most {:.1} ms; \
         {} major faults of its own.\n",
        ms(rank(0.5)),
        ms(rank(0.99)),
        ms(rank(1.0)),
        ms(cost),
        readings.growth("sampler.major_faults").unwrap_or(0),
    ));
    seen.expect(readings.missing() == 0, || format!("the sampler lost {} seconds", readings.missing()));
    seen.expect(watch.gaps == 0 && watch.rows > 0, || format!("webdyno watch lost {} seconds", watch.gaps));
}

fn totals(seen: &mut Seen, readings: &Table, watch: &Rows, rows: &Rows, kernel: &Kernel) {
    seen.say("| over the whole storm | kernel | readings | apart |\n|---|---|---|---|");
    let around = readings.rows_around(kernel.looks.0, kernel.looks.1);
    let pairs = [
        ("pages read from swap", kernel.swap_in, "vm.pswpin"),
        ("pages written to swap", kernel.swap_out, "vm.pswpout"),
        ("reads of disks", kernel.disk[0], "disk.reads"),
        ("sectors read", kernel.disk[1], "disk.read_sectors"),
        ("writes to disks", kernel.disk[2], "disk.writes"),
        ("sectors written", kernel.disk[3], "disk.write_sectors"),
    ];
    for (what, truth, column) in pairs {
        let calm = if what.starts_with("sectors") { CALM_SECTORS } else { CALM };
        let told = readings.growth_within(column, around.clone()).unwrap_or(0);
        let apart = (told as f64 - truth as f64) / truth.max(1) as f64;
        seen.say(format!("| {what} | {truth} | {told} | {:+.3} % |", apart * 100.0));
        seen.expect(apart.abs() <= APART || told.abs_diff(truth) <= calm, || {
            format!("{what}: {told} instead of {truth}")
        });
    }
    let written = kernel.disk[3] as f64 / 2048.0;
    let apart = (watch.written_mib - written) / written.max(1.0);
    seen.say("\n| written | MiB, as the rows add up | MiB/s in the largest row |\n|---|---|---|");
    seen.say(format!("| the kernel | {written:.0} | |"));
    for (who, rows) in [("`webdyno watch`", watch), ("Debian's dstat", rows)] {
        seen.say(format!("| {who} | {:.0} | {:.0} |", rows.written_mib, rows.peak_mib));
    }
    seen.expect(apart.abs() <= ROUNDED, || {
        format!("the rows of webdyno watch add up to {:.0} MiB written, and {written:.0} were", watch.written_mib)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_is_not_some() {
        let text = "some avg10=1.00 avg60=0.00 avg300=0.00 total=17\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!((full(text), full("")), (9, 0));
    }
}
