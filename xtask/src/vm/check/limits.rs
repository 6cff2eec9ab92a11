//! Limits of memory, swap, CPU time and disk traffic at work under cgroup v2, and v1: what the kernel's files say while a server that would take all it
//! gets is measured, for root and for an ordinary user in a scope of systemd's.

use super::{OURS, SHORT, Seen};
use crate::vm::guest::Guest;
use anyhow::Context;
use std::collections::BTreeMap;
use std::time::Duration;

/// A run of a plan, on a processor that is imitated.
const RUN: Duration = Duration::from_secs(900);
/// Seconds that the group of a trial lives at least.
const TRIAL: f64 = 12.0;
/// What part of its limit a counter may grow by at most over most of a trial: the kernel settles in pieces.
const MOST: f64 = 1.05;
/// What part of it CPU time must be at least.
const LEAST_CPU: f64 = 0.95;
/// What part bytes must be: they come in requests of up to a megabyte, and programs begin and end in between.
const LEAST_IO: f64 = 0.9;

/// CGI programs: one takes CPU time, one memory (`tail` keeps a line as long as its input), one writes past the page cache, one leaves the
/// writing to the kernel. Those that write start as few processes as they can, for much: on a processor that is imitated, starting them would
/// be what limits the rate.
const PREPARE: &str = "\
mkdir -p OURS/sites/limits
cd OURS/sites/limits
cat > busy <<'END'
#!/bin/sh
n=0
while [ $n -lt 4000 ]; do n=$((n + 1)); done
printf 'Content-Type: text/plain\\n\\nOK\\n'
END
cat > hungry <<'END'
#!/bin/sh
head -c 80M /dev/zero | tail -n 1 > /dev/null
printf 'Content-Type: text/plain\\n\\nOK\\n'
END
cat > direct <<'END'
#!/bin/sh
dd if=/dev/zero of=/var/tmp/limits.$$ bs=512k count=8 oflag=direct 2> /dev/null
rm /var/tmp/limits.$$
printf 'Content-Type: text/plain\\n\\nOK\\n'
END
sed 's/oflag=direct/conv=fsync/' direct > buffered
chmod 755 busy hungry direct buffered
";

const PLAN: &str = r#"
about = "A server that takes all it gets"
blocks = 2
aa = false
[server]
kind = "KIND"
LINES
[confine]
LIMIT
[placement]
split = false
[variant.only]
[load.one]
path = "PATH"
connections = CLIENTS
duration = "DURATION"
keep_alive = false
timeout = "60s"
"#;

/// Runs a plan and writes down what the groups' files say meanwhile, in memory: the disk is what a server has been limited in. GROUPS is
/// where they are.
const WATCH: &str = "\
mkdir -p WHERE
chmod 777 WHERE
rm -f SEEN
WHO OURS/webdyno run --plain --json --store WHERE/store.sqlite OURS/plans/limits.toml > WHERE/run.json 2> WHERE/run.err &
run=$!
while kill -0 $run 2> /dev/null; do
  for group in GROUPS; do
    [ -d $group ] && {
      echo group $group
      read up rest < /proc/uptime; echo at $up
      LOOK
    }
  done >> SEEN 2> /dev/null
  sleep 0.5
done
wait $run
echo code $?
";

/// What v2 says of the group in `$group`.
const V2: &str = "\
for file in cpu.max io.max memory.max memory.peak memory.swap.max memory.swap.current; do sed \"s/^/$file /\" $group/$file; done
cat $group/cpu.stat
sed 's/^/io.stat /' $group/io.stat";

/// What v1 says of it, in the words of v2; the other controllers have groups of the same name, which may be gone already.
const V1: &str = "\
name=${group##*/}
sed 's/^/cpu.max /' /sys/fs/cgroup/cpu/$name/cpu.cfs_quota_us
sed 's/^/io.max /' /sys/fs/cgroup/blkio/$name/blkio.throttle.write_bps_device
sed 's/^/memory.max /' $group/memory.limit_in_bytes
sed 's/^/memory.peak /' $group/memory.max_usage_in_bytes
sed 's/^/memory.memsw.max /' $group/memory.memsw.limit_in_bytes
sed -n 's/^swap /memory.swap.current /p' $group/memory.stat
usage=$(cat /sys/fs/cgroup/cpuacct/$name/cpuacct.usage) && echo usage_usec $((usage / 1000))
sed -n 's/^\\([0-9:]*\\) Write /io.stat \\1 wbytes=/p' /sys/fs/cgroup/blkio/$name/blkio.throttle.io_service_bytes";

/// Who measures, and where his groups are.
pub(super) struct By<'a> {
    pub(super) who: &'a str,
    /// What stands before the command.
    pub(super) prefix: &'a str,
    pub(super) groups: &'a str,
    /// Whether he may limit disk traffic.
    pub(super) io: bool,
    /// Of which kind the groups are.
    pub(super) version: Version,
}

/// The two generations of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

/// What takes what, under which limit.
struct Case {
    name: &'static str,
    kind: &'static str,
    lines: &'static str,
    limit: &'static str,
    path: &'static str,
    file: &'static str,
    /// What the file must hold for each disk, or once.
    held: &'static str,
    /// CPUs, or MiB/s written to a disk.
    most: f64,
    /// Only v2 counts what the kernel writes later.
    later: bool,
}

const APACHE: &str = "mpm = \"prefork\"\nscripts = \"../sites/limits\"";
const IO_LIMIT: &str = "io_write = \"4M\"";
const IO_HELD: &str = "4194304";

const CASES: [Case; 4] = [
    Case {
        name: "Apache, CGI that computes",
        kind: "apache",
        lines: APACHE,
        limit: "cpu = 0.3",
        path: "/cgi-bin/busy",
        file: "cpu.max",
        held: "30000",
        most: 0.3,
        later: false,
    },
    Case {
        name: "nginx, small files",
        kind: "nginx",
        lines: "",
        // The load has to come from the same CPU.
        limit: "cpu = 0.1",
        path: "/",
        file: "cpu.max",
        held: "10000",
        most: 0.1,
        later: false,
    },
    Case {
        name: "Apache, CGI that writes directly",
        kind: "apache",
        lines: APACHE,
        limit: IO_LIMIT,
        path: "/cgi-bin/direct",
        file: "io.max",
        held: IO_HELD,
        most: 4.0,
        later: false,
    },
    Case {
        name: "Apache, CGI that writes through the page cache",
        kind: "apache",
        lines: APACHE,
        limit: IO_LIMIT,
        path: "/cgi-bin/buffered",
        file: "io.max",
        held: IO_HELD,
        most: 4.0,
        later: true,
    },
];

/// Runs all cases that `by` may and writes down what the kernel's files said.
pub(super) fn bind(seen: &mut Seen, guest: &Guest, by: &By<'_>) -> anyhow::Result<()> {
    guest.sh(&PREPARE.replace("OURS", OURS), SHORT)?;
    seen.say(format!("\n## Limits at work, {}\n", by.who));
    seen.say("| server | limit, as the kernel holds it | over | used | of the limit | memory peak |\n|---|---|---|---|---|---|");
    for case in CASES.iter().filter(|case| by.io || case.file != "io.max") {
        if case.later && by.version == Version::V1 {
            continue;
        }
        one(seen, guest, by, case)?;
    }
    swaps(seen, guest, by)
}

fn one(seen: &mut Seen, guest: &Guest, by: &By<'_>, case: &Case) -> anyhow::Result<()> {
    let plan = PLAN.replace("KIND", case.kind).replace("LINES", case.lines).replace("CLIENTS", "8");
    let plan = plan.replace("DURATION", "15s");
    let plan = plan.replace("LIMIT", &format!("memory = \"200M\"\n{}", case.limit)).replace("PATH", case.path);
    for group in trials(seen, guest, by, case.name, &plan)? {
        let (unit, least, used) = match case.file {
            "cpu.max" => ("CPU", LEAST_CPU, group.rate(|look| look.cpu_us / 1e6)),
            _ => ("MiB/s", LEAST_IO, group.rate(|look| look.written / f64::from(1 << 20))),
        };
        let (seconds, used) = used.with_context(|| format!("{}: too few looks", case.name))?;
        let share = used / case.most;
        seen.say(format!(
            "| {} | `{}`: `{}` | {seconds:.1} s | {used:.3} {unit} | {:.1} % | {:.1} MiB |",
            case.name,
            case.file,
            group.held(case.file),
            share * 100.0,
            group.peak / f64::from(1 << 20),
        ));
        seen.expect((least..=MOST).contains(&share), || format!("{}: {:.1} % of the limit", case.name, share * 100.0));
        seen.expect(group.has(case.file, case.held), || format!("{}: {}", case.name, group.held(case.file)));
        seen.expect(group.has("memory.max", "209715200"), || format!("{}: memory is not limited", case.name));
        seen.expect(group.peak > 0.0, || format!("{}: no memory peak", case.name));
    }
    Ok(())
}

/// A program that needs more than the server's memory, and no more than that and its swap: it ends well, and takes neither more of the one
/// nor more of the other.
fn swaps(seen: &mut Seen, guest: &Guest, by: &By<'_>) -> anyhow::Result<()> {
    let name = "Apache, CGI that needs 80 MiB";
    let plan = PLAN.replace("KIND", "apache").replace("LINES", APACHE).replace("CLIENTS", "1");
    // An answer takes some seconds here, and several times as long where others are at work beside the machine.
    let plan = plan.replace("DURATION", "45s");
    let plan = plan.replace("LIMIT", "memory = \"48M\"\nswap = \"100M\"").replace("PATH", "/cgi-bin/hungry");
    // v1 limits memory and swap together.
    let (file, held) = match by.version {
        Version::V1 => ("memory.memsw.max", "155189248"),
        Version::V2 => ("memory.swap.max", "104857600"),
    };
    seen.say("\n| server | limits, as the kernel holds them | largest memory | largest swap |\n|---|---|---|---|");
    for group in trials(seen, guest, by, name, &plan)? {
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        seen.say(format!(
            "| {name} | `memory.max`: `{}`; `{file}`: `{}` | {:.1} MiB | {:.1} MiB |",
            group.held("memory.max"),
            group.held(file),
            mib(group.peak),
            mib(group.swap),
        ));
        seen.expect(group.has("memory.max", "50331648"), || format!("{name}: {}", group.held("memory.max")));
        seen.expect(group.has(file, held), || format!("{name}: {}", group.held(file)));
        seen.expect((44.0..=48.1).contains(&mib(group.peak)), || format!("{name}: it took {} bytes", group.peak));
        seen.expect((16.0..=100.0).contains(&mib(group.swap)), || format!("{name}: {} bytes in swap", group.swap));
    }
    let report: serde_json::Value = serde_json::from_str(&guest.sh(&format!("cat {WHERE}/run.json"), SHORT)?)?;
    let rates: Vec<f64> =
        report["trials"].as_array().into_iter().flatten().filter_map(|trial| trial["good_per_s"].as_f64()).collect();
    seen.expect(!rates.is_empty() && rates.iter().all(|rate| *rate > 0.0), || {
        format!("{name}: good answers a second: {rates:?}")
    });
    Ok(())
}

/// The groups of the two trials of a plan.
fn trials(seen: &mut Seen, guest: &Guest, by: &By<'_>, name: &str, plan: &str) -> anyhow::Result<Vec<Group>> {
    guest.sh(&format!("cat > {OURS}/plans/limits.toml <<'END'\n{plan}END"), SHORT)?;
    let look = if by.version == Version::V1 { V1 } else { V2 };
    let script = WATCH.replace("LOOK", look).replace("WHO", by.prefix).replace("GROUPS", by.groups);
    let out = guest.sh(&script.replace("OURS", OURS).replace("WHERE", WHERE).replace("SEEN", SEEN), RUN)?;
    let err = guest.sh(&format!("tail -n 3 {WHERE}/run.err"), SHORT)?;
    seen.expect(out.contains("code 0") || out.contains("code 3"), || format!("{name}: {out}{err}"));
    let groups = groups(&guest.sh(&format!("cat {SEEN}"), SHORT)?);
    let lives: Vec<f64> = groups.values().map(Group::seconds).collect();
    // Every variant is started once before anything is measured.
    let trials: Vec<Group> = groups.into_values().filter(|group| group.seconds() >= TRIAL).collect();
    seen.expect(trials.len() == 2, || format!("{name}: 2 groups of {TRIAL} s expected, seen: {lives:?} s; {err}"));
    Ok(trials)
}

/// Where a check writes in the guest.
const WHERE: &str = "/var/tmp/limits";
/// Where it writes what it saw.
const SEEN: &str = "/run/limits-seen.txt";

/// One look at a group's counters.
#[derive(Debug, Default, Clone, Copy)]
struct Look {
    at: f64,
    cpu_us: f64,
    /// Bytes written to all disks.
    written: f64,
}

/// What was seen of one group.
#[derive(Debug, Default)]
struct Group {
    looks: Vec<Look>,
    /// The last content of its limits, by file; a line for each disk.
    limits: BTreeMap<String, Vec<String>>,
    /// Bytes of memory.
    peak: f64,
    /// The most bytes of swap in any look.
    swap: f64,
}

impl Group {
    /// How long it was seen.
    fn seconds(&self) -> f64 {
        self.looks.last().map_or(0.0, |last| last.at) - self.looks.first().map_or(0.0, |first| first.at)
    }

    /// Seconds and growth a second of a counter, from a third of the looks to shortly before the last: the trial's load is on then.
    fn rate(&self, counter: impl Fn(&Look) -> f64) -> Option<(f64, f64)> {
        let (first, last) = (self.looks.get(self.looks.len() / 3)?, self.looks.get(self.looks.len().checked_sub(4)?)?);
        let seconds = last.at - first.at;
        (seconds >= 4.0).then(|| (seconds, (counter(last) - counter(first)) / seconds))
    }

    fn held(&self, file: &str) -> String {
        self.limits.get(file).map(|lines| lines.join("; ")).unwrap_or_default()
    }

    fn has(&self, file: &str, text: &str) -> bool {
        self.limits.get(file).is_some_and(|lines| !lines.is_empty() && lines.iter().all(|line| line.contains(text)))
    }
}

/// The groups in what a watch wrote, by directory.
fn groups(text: &str) -> BTreeMap<String, Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for look in text.split("group ").skip(1) {
        let mut lines = look.lines();
        let group = groups.entry(lines.next().unwrap_or_default().to_owned()).or_default();
        let (mut found, mut limits) = (Look::default(), BTreeMap::<String, Vec<String>>::new());
        let mut whole = false;
        for (name, value) in lines.filter_map(|line| line.split_once(' ')) {
            let number = || value.trim().parse().unwrap_or(0.0);
            match name {
                "at" => found.at = number(),
                "usage_usec" => (found.cpu_us, whole) = (number(), true),
                "memory.peak" => group.peak = group.peak.max(number()),
                "memory.swap.current" => group.swap = group.swap.max(number()),
                "io.stat" => found.written += written(value),
                _ if name.ends_with(".max") => limits.entry(name.to_owned()).or_default().push(value.to_owned()),
                _ => {}
            }
        }
        // A group that vanishes while it is looked at has empty files.
        if whole {
            group.looks.push(found);
            group.limits = limits;
        }
    }
    groups
}

/// `wbytes` of a disk's line.
fn written(line: &str) -> f64 {
    line.split_whitespace().find_map(|word| word.strip_prefix("wbytes=")?.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rates() {
        let look = |at: u32| {
            let (cpu, bytes) = (at * 500_000, at * 4_194_304);
            format!(
                "group /g\nat {at}.00\ncpu.max 50000 100000\nio.max 254:0 x\nio.max 254:16 x\nmemory.peak {at}\n\
                 memory.swap.current {at}\nusage_usec {cpu}\nio.stat 254:0 rbytes=1 wbytes={bytes} rios=2\nio.stat 254:16 rbytes=1 wbytes=0\n"
            )
        };
        let text: String = (0..20).map(look).collect::<String>() + "group /gone\nat 3.00\n";
        let groups = groups(&text);
        let group = &groups["/g"];
        assert_eq!((groups.len(), group.seconds(), groups["/gone"].seconds()), (2, 19.0, 0.0));
        assert_eq!((group.rate(|look| look.cpu_us / 1e6), group.peak, group.swap), (Some((10.0, 0.5)), 19.0, 19.0));
        assert_eq!(group.rate(|look| look.written), Some((10.0, 4_194_304.0)));
        assert!(group.has("io.max", "x") && !group.has("io.max", "254:0 x") && !group.has("memory.max", ""));
        assert_eq!(Group::default().rate(|look| look.written), None);
    }
}
