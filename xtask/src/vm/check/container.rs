//! A watch inside a container under cgroup v2: namespaces of mounts, processes, network and groups, a limit of memory and half a CPU,
//! no capability, as root and as an ordinary user.

use super::{OURS, SHORT, Seen};
use crate::vm::guest::Guest;
use crate::vm::machine::Machine;
use crate::vm::recipe::USER;
use anyhow::Context;
use serde_json::Value;

/// MiB that the container may use.
const LIMIT: u64 = 100;

/// What is done in it: something that takes all the CPU time it gets, and two watches.
const INSIDE: &str = "\
(while :; do :; done) &
loop=$!
OURS/webdyno watch --json --cgroup . --tree 1 1 4 > WHERE/rows.json
echo code $?
OURS/webdyno watch -cm --cgroup . --tree 1 --psi --top-cpu 1 2
echo code $?
kill $loop
";

/// A container: systemd makes its group, unshare its namespaces. WHO is what becomes of its rights.
const CONTAINER: &str = "\
rm -rf WHERE; mkdir -m 777 WHERE
cat > WHERE/inside
systemd-run --quiet --pipe --wait -p MemoryMax=LIMITM -p MemorySwapMax=0 -p CPUQuota=50% \
    unshare -m -p -n -i -C --fork --mount-proc \
    sh -c 'umount -l /sys/fs/cgroup; mount -t cgroup2 -o ro cgroup2 /sys/fs/cgroup; exec setpriv WHO --no-new-privs --bounding-set=-all --inh-caps=-all sh WHERE/inside'
";

const WHERE: &str = "/var/tmp/container";

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let guest = machine.guest();
    let mut seen = Seen::titled("A watch inside a container, cgroup v2");
    seen.say(format!("\n{LIMIT} MiB and half a CPU are allowed, and a loop takes what it gets."));
    let user = format!("--reuid={USER} --regid={USER} --clear-groups");
    for (name, who) in [("root without capabilities", ""), ("an ordinary user", user.as_str())] {
        watch(&guest, name, who, &mut seen)?;
    }
    Ok(seen)
}

fn watch(guest: &Guest, name: &str, who: &str, seen: &mut Seen) -> anyhow::Result<()> {
    let inside = INSIDE.replace("OURS", OURS).replace("WHERE", WHERE);
    let container = CONTAINER.replace("WHERE", WHERE).replace("LIMIT", &LIMIT.to_string()).replace("WHO", who);
    let said = guest.run(&format!("({}) << 'END'\n{inside}END\n", container.trim_end()), SHORT * 2)?;
    let rows = guest.sh(&format!("cat {WHERE}/rows.json"), SHORT)?;
    let rows: Result<Vec<Value>, _> = rows.lines().map(serde_json::from_str).collect();
    let rows = rows.context("a row is no JSON")?;
    seen.say(format!("\n## As {name}\n\n```\n{}{}```", said.out, said.err));
    seen.expect(said.out.matches("code 0").count() == 2, || format!("{name}: a watch did not end with 0"));
    seen.expect(!said.err.contains("panicked"), || format!("{name}: a watch panicked"));
    seen.expect(rows.len() == 4, || format!("{name}: {} rows of 4", rows.len()));
    let number = |path: &str| rows.last().and_then(|row| row.pointer(path)?.as_f64());
    let limit = number("/cgroup/limit_bytes");
    seen.expect(limit == Some((LIMIT << 20) as f64), || format!("{name}: the limit is {limit:?}"));
    let cpus: Vec<f64> = rows.iter().filter_map(|row| row.pointer("/cgroup/cpu_percent")?.as_f64()).collect();
    let cpu = cpus.iter().sum::<f64>() / cpus.len().max(1) as f64;
    seen.say(format!("\n{cpu:.1} % of a CPU on average, {} processes.", number("/tree/processes").unwrap_or(0.0)));
    seen.expect((40.0..60.0).contains(&cpu), || format!("{name}: {cpu:.1} % of a CPU, where half of one is allowed"));
    let pressure = number("/cgroup/pressure_memory_full_percent");
    seen.expect(pressure.is_some(), || format!("{name}: no pressure of the group"));
    Ok(())
}
