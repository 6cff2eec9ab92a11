//! Confinement under cgroup v2, by webdyno itself as root: the kernel holds the server to the memory, the swap, the CPU time and the disk
//! traffic that the plan says, and nothing of it is left afterwards, also when the run was killed.

use super::killed::{gone, killed};
use super::limits::{self, By, Version};
use super::{OURS, SHORT, Seen};
use crate::vm::guest::Guest;
use crate::vm::machine::Machine;
use std::collections::BTreeMap;
use std::time::Duration;

/// Where the groups of root's runs are.
const GROUPS: &str = "/sys/fs/cgroup/webdyno-*";
/// A run of a plan, on a processor that is imitated.
const RUN: Duration = Duration::from_secs(2400);

/// Runs a plan and writes down what the groups' files say meanwhile.
const WATCH: &str = "\
cd /root
rm -f run.* groups.txt
OURS/webdyno run --plain --json --store /root/store.sqlite OPTIONS > run.json 2> run.err &
run=$!
while kill -0 $run 2> /dev/null; do
  for group in /sys/fs/cgroup/webdyno-*; do
    [ -d $group ] && for file in memory.max memory.swap.max memory.current memory.swap.current; do
      echo \"$file $(cat $group/$file 2> /dev/null)\"
    done && sed 's/^/event./' $group/memory.events
  done >> groups.txt 2> /dev/null
  sleep 0.3
done
wait $run
echo code $?
";

/// One request needs more than memory and swap together.
const TOO_LARGE: &str = r#"
about = "A program of 300 MB in 200 MB of memory and 40 MB of swap"
blocks = 2
[[build]]
command = ["make", "-s", "-C", "../sites/memhog", "BIN=${run}/scripts"]
[server]
kind = "apache"
mpm = "prefork"
scripts = "${run}/scripts"
directives = "SetEnv MEMHOG_BYTES 300M"
[confine]
memory = "200M"
swap = "40M"
[placement]
split = false
[variant.only]
[load.one]
path = "/cgi-bin/memhog"
connections = 1
requests = 4
keep_alive = false
timeout = "60s"
"#;

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let guest = machine.guest();
    let mut seen = Seen::titled("Confinement under cgroup v2");
    seen.say("\n| plan | file | as limited | largest seen |\n|---|---|---|---|");
    let before = controllers(&guest)?;
    cliff(&mut seen, &guest)?;
    too_large(&mut seen, &guest)?;
    let by = By { who: "as root", prefix: "", groups: GROUPS, io: true, version: Version::V2 };
    limits::bind(&mut seen, &guest, &by)?;
    killed(&mut seen, &guest, "as root", "", GROUPS)?;
    let after = controllers(&guest)?;
    seen.say(format!("\nControllers that groups have: `{}` before and `{}` afterwards.", before.trim(), after.trim()));
    seen.expect(before == after, || format!("groups had {before:?} before and {after:?} afterwards"));
    let left = gone(&guest, 0)?;
    seen.expect(left.is_none(), || format!("left behind: {left:?}"));
    Ok(seen)
}

/// The plan memory-cliff in its small sizes: thrashing inside 200 MB, in a machine that has 1 GB.
fn cliff(seen: &mut Seen, guest: &Guest) -> anyhow::Result<()> {
    let found = watched(guest, &format!("--quick {OURS}/plans/memory-cliff.toml"))?;
    limits(seen, "memory-cliff", &found, 200 << 20, 1 << 30);
    seen.expect(found.largest("event.max") > 0, || "memory-cliff never met its limit".to_owned());
    seen.expect(found.largest("memory.swap.current") > 0, || "memory-cliff never swapped".to_owned());
    seen.expect(found.code == "0", || format!("memory-cliff ended with {}: {}", found.code, found.err));
    let thrashes = primary(&found.report, "10 at once");
    seen.expect(thrashes == "cause-memory-thrash", || format!("the diagnosis of ten at once is {thrashes}"));
    let right = primary(&found.report, "10, MaxRequestWorkers 4");
    seen.say(format!("\nmemory-cliff: ten at once is diagnosed as {thrashes}, with MaxRequestWorkers 4 as {right}.\n"));
    Ok(())
}

/// A program that fits into the machine and not into its group is killed in its group, and nothing else is.
fn too_large(seen: &mut Seen, guest: &Guest) -> anyhow::Result<()> {
    guest.sh(&format!("cat > {OURS}/plans/too-large.toml <<'END'\n{TOO_LARGE}END"), SHORT)?;
    let found = watched(guest, &format!("{OURS}/plans/too-large.toml"))?;
    seen.say("| plan | file | as limited | largest seen |\n|---|---|---|---|");
    limits(seen, "too-large", &found, 200 << 20, 40 << 20);
    let killed = found.largest("event.oom_kill");
    seen.expect(killed > 0, || format!("nothing was killed in the group too small for it ({})", found.err));
    seen.say(format!(
        "\ntoo-large: {killed} processes killed within the group; it ended with exit code {}: {}",
        found.code, found.err
    ));
    Ok(())
}

/// What a watched run showed.
struct Watched {
    /// Every value seen, by file.
    values: BTreeMap<String, Vec<u64>>,
    code: String,
    report: serde_json::Value,
    err: String,
}

impl Watched {
    fn largest(&self, file: &str) -> u64 {
        self.values.get(file).into_iter().flatten().max().copied().unwrap_or(0)
    }
}

fn watched(guest: &Guest, options: &str) -> anyhow::Result<Watched> {
    let out = guest.sh(&WATCH.replace("OURS", OURS).replace("OPTIONS", options), RUN)?;
    let code = out.lines().find_map(|line| line.strip_prefix("code ")).unwrap_or("none").to_owned();
    let report = serde_json::from_str(&guest.sh("cat /root/run.json", SHORT)?).unwrap_or_default();
    let err = guest.sh("tail -n 3 /root/run.err", SHORT)?.trim().to_owned();
    let mut values: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in guest.sh("cat /root/groups.txt", SHORT)?.lines() {
        // A group that vanishes while it is looked at has empty files.
        if let Some((file, Ok(value))) = line.split_once(' ').map(|(file, value)| (file, value.parse())) {
            values.entry(file.to_owned()).or_default().push(value);
        }
    }
    Ok(Watched { values, code, report, err })
}

/// Whether the kernel's files say what the plan says, and whether the kernel kept to it.
fn limits(seen: &mut Seen, plan: &str, found: &Watched, memory: u64, swap: u64) {
    for (limit, used, wanted) in
        [("memory.max", "memory.current", memory), ("memory.swap.max", "memory.swap.current", swap)]
    {
        let set = found.values.get(limit).cloned().unwrap_or_default();
        let largest = found.largest(used);
        seen.say(format!("| {plan} | {limit} | {} MiB | {} MiB |", wanted >> 20, largest >> 20));
        // Set right after the group is made: the first look may come before.
        let settled = set.last() == Some(&wanted) && set.iter().filter(|value| **value != wanted).count() <= 2;
        seen.expect(settled, || format!("{plan}: {limit} was {set:?}"));
        seen.expect(largest <= wanted, || format!("{plan}: {used} rose to {largest}"));
    }
}

fn primary(report: &serde_json::Value, cell: &str) -> String {
    let cells = report["cells"].as_array().into_iter().flatten();
    let found = cells.into_iter().find(|found| found["name"] == cell);
    let id = found.and_then(|cell| cell["diagnosis"]["primary"]["title"]["id"].as_str());
    id.unwrap_or("not known").to_owned()
}

fn controllers(guest: &Guest) -> anyhow::Result<String> {
    guest.sh("cat /sys/fs/cgroup/cgroup.subtree_control", SHORT)
}
