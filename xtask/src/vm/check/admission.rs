//! mod_admission in a unit of systemd's, cgroup v2: `adaptive=memory` follows the unit's own bounds and those of the slice above it, and what the
//! kernel says of tasks that wait for memory, while the machine as a whole has plenty.

use super::{OURS, SHORT, Seen};
use crate::root;
use crate::vm::guest::{Going, Guest};
use crate::vm::machine::Machine;
use crate::vm::places::Places;
use anyhow::{Context, bail, ensure};
use serde_json::Value;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// MiB that the unit, or the slice around it, may use.
const BOUND: u64 = 300;
/// MiB of it that are left. Less than a permit's cost and the twentieth of all memory that is kept free.
const LEFT: u64 = 40;

/// The server: four requests may run, each of which is said to cost 60 MiB, and up to six in the best of times.
const SERVER: &str = "\
ServerRoot /root
ServerName localhost
DefaultRuntimeDir /run/admission
PidFile /run/admission/pid
ErrorLog /run/admission/error.log
Listen 127.0.0.1:8080
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule alias_module /usr/lib/apache2/modules/mod_alias.so
LoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so
LoadModule admission_module OURS/mod_admission.so
User www-data
Group www-data
StartServers 8
MaxRequestWorkers 12
ScriptAlias /wait OURS/wait
AdmissionEngine on
AdmissionGroup cgi limit=4 adaptive=memory min=1 max=6 cost=60M queue=6 timeout=600s
AdmissionQueueWorkers 6
AdmissionUse cgi
";

/// A program that ends when it is let.
const WAIT: &str = "\
#!/bin/sh
printf 'Content-Type: text/plain\\n\\n'
while [ ! -e /run/admission/open ]; do sleep 0.2; done
echo done
";

/// Starts it as a unit with PROPERTIES.
const START: &str = "\
rm -rf /run/admission; mkdir /run/admission
systemd-run --quiet --collect --unit=admission PROPERTIES apache2 -f OURS/admission.conf -DFOREGROUND
";

/// Takes so many MiB of memory, in the group that is named, and holds them.
const TAKE: &str = "\
[ -z \"$2\" ] || echo $$ > \"$2/cgroup.procs\"
exec python3 -c \"
import time
x = b'x' * ($1 << 20)
open('/run/taken', 'w').close()
time.sleep(1000)\"
";

/// As much as leaves LEFT MiB of BOUND in the server's unit. PLACE: taken there, or, if empty, outside of it.
const HOG: &str = "\
group=/sys/fs/cgroup$(systemctl show -P ControlGroup admission)
size=$((BOUND - LEFT - $(cat $group/memory.current) / 1048576))
systemd-run --quiet --collect --unit=hog sh OURS/take $size PLACE
";

/// A unit that waits for its own memory all the time.
const STALLED: &str = "\
systemd-run --quiet --collect --unit=hog -p MemoryHigh=60M python3 -c '
x = bytearray(160 << 20)
open(\"/run/taken\", \"w\").close()
while True:
    for i in range(0, len(x), 4096): x[i] = 1
'
";

/// Files of nearly BOUND MiB, read in the server's unit again and again: the kernel keeps them as long as nothing else needs the room.
const READ: &str = "\
echo $$ > \"$1/cgroup.procs\"
cat /var/tmp/large > /dev/null; cat /var/tmp/large > /dev/null; cat /var/tmp/large > /dev/null
touch /run/taken
sleep 1000
";
const FILES: &str = "\
dd if=/dev/zero of=/var/tmp/large bs=1M count=$((BOUND - LEFT)) 2> /dev/null
sync; echo 3 > /proc/sys/vm/drop_caches
systemd-run --quiet --collect --unit=hog sh OURS/read /sys/fs/cgroup$(systemctl show -P ControlGroup admission)
";

/// Until it has what it takes.
const TAKEN: &str = "while [ ! -e /run/taken ]; do systemctl -q is-active hog || exit 1; sleep 0.1; done";

/// Whoever took the memory.
const END_HOG: &str = "systemctl kill -s KILL hog; while systemctl -q is-active hog; do sleep 0.1; done";

/// One bound, or none.
struct Case {
    what: &'static str,
    properties: String,
    /// Before the server starts.
    before: String,
    hog: String,
    /// Whether the limit must follow.
    falls: bool,
}

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let guest = machine.guest();
    install(&guest)?;
    let sized =
        |text: &str| text.replace("BOUND", &BOUND.to_string()).replace("LEFT", &LEFT.to_string()).replace("OURS", OURS);
    let hog = sized(HOG);
    let (inside, outside) = (hog.replace("PLACE", "$group"), hog.replace("PLACE", ""));
    let none = String::new;
    let cases = [
        Case {
            what: "no bound, the same memory taken in the unit",
            properties: none(),
            before: none(),
            hog: inside.clone(),
            falls: false,
        },
        Case {
            what: "the unit's memory.max, the memory taken outside of it",
            properties: format!("-p MemoryMax={BOUND}M"),
            before: none(),
            hog: outside,
            falls: false,
        },
        Case {
            what: "the unit's memory.max, full of files",
            properties: format!("-p MemoryMax={BOUND}M"),
            before: none(),
            hog: sized(FILES),
            falls: false,
        },
        Case {
            what: "the unit's memory.max",
            properties: format!("-p MemoryMax={BOUND}M"),
            before: none(),
            hog: inside.clone(),
            falls: true,
        },
        Case {
            what: "the unit's memory.high",
            properties: format!("-p MemoryHigh={BOUND}M"),
            before: none(),
            hog: inside.clone(),
            falls: true,
        },
        Case {
            what: "memory.max of the slice around it",
            properties: "-p Slice=small.slice".to_owned(),
            before: format!("systemctl set-property --runtime small.slice MemoryMax={BOUND}M"),
            hog: inside,
            falls: true,
        },
        Case {
            what: "no bound, another unit waits for memory (PSI)",
            properties: none(),
            before: none(),
            hog: STALLED.to_owned(),
            falls: true,
        },
    ];
    let mut seen = Seen::titled("A limit that follows the memory, under cgroup v2");
    seen.say("\n`limit=4 adaptive=memory min=1 max=6 cost=60M`, four programs at work, the fifth waits.\n");
    seen.say("| what is short | available in the machine | in the unit | limit before | then | when it is over |");
    seen.say("|---|---:|---:|---:|---:|---:|");
    for case in &cases {
        follow(&mut seen, &guest, case).with_context(|| case.what.to_owned())?;
    }
    Ok(seen)
}

/// The module, built here: the guest is of the same release. Without Lua, which the guest has not.
fn install(guest: &Guest) -> anyhow::Result<()> {
    let folder = Places::here().folder().join("admission");
    std::fs::create_dir_all(&folder)?;
    let mut make = Command::new("make");
    make.args(["-s", "LUA=", "all", "-C"]).arg(root().join("modules/mod_admission"));
    let status = make.arg(format!("BUILD={}", folder.display())).status().context("cannot run make")?;
    ensure!(status.success(), "mod_admission does not build; the compiler's own message stands above");
    guest.put(&folder.join("mod_admission.so"), &format!("{OURS}/mod_admission.so"))?;
    std::fs::remove_dir_all(&folder)?;
    for (name, text) in [("admission.conf", SERVER), ("wait", WAIT), ("take", TAKE), ("read", READ)] {
        let text = text.replace("OURS", OURS);
        guest.sh(&format!("cat > {OURS}/{name} <<'END'\n{text}END\nchmod 755 {OURS} {OURS}/{name}"), SHORT)?;
    }
    Ok(())
}

fn follow(seen: &mut Seen, guest: &Guest, case: &Case) -> anyhow::Result<()> {
    let start = START.replace("PROPERTIES", &case.properties).replace("OURS", OURS);
    guest.sh(&format!("{}\n{start}", case.before), SHORT)?;
    until(guest, "it runs", |status| limit(status) == Some(4))?;
    let holders = ask(guest, 4)?;
    until(guest, "four are held", |status| status["groups"][0]["held"] == 4)?;
    guest.sh(&format!("rm -f /run/taken\n{}{TAKEN}", case.hog), SHORT)?;
    let waiter = ask(guest, 1)?;
    // Where it need not follow, the fifth gets a permit of its own, as nothing is against it, and keeps it.
    let then = if case.falls { 1 } else { 5 };
    let changed = until(guest, "the limit follows", |status| limit(status) == Some(then))?;
    let memory = guest.sh(MEMORY, SHORT)?;
    let mut mib = memory.lines().map(|line| line.parse::<u64>().map(|bytes| bytes >> 20));
    let mut next = || mib.next().context("no number")?.context("not a number");
    let (available, used) = (next()?, next()?);
    let over = if case.falls {
        guest.sh(END_HOG, SHORT)?;
        until(guest, "it rises when that is over", |status| limit(status) == Some(5))?;
        "5"
    } else {
        let later = written(&changed) + 5.0;
        let stayed = until(guest, "rounds go by", |status| written(status) > later)?;
        seen.expect(limit(&stayed) == Some(5), || format!("{}: the limit is {:?} later", case.what, limit(&stayed)));
        guest.sh(END_HOG, SHORT)?;
        "–"
    };
    guest.sh("touch /run/admission/open", SHORT)?;
    for asked in [holders, waiter] {
        let said = asked.finish(SHORT)?;
        seen.expect(said.status.success(), || {
            format!("{}: not all were answered: {}{}", case.what, said.out, said.err)
        });
    }
    guest.sh("systemctl stop admission", SHORT)?;
    seen.say(format!("| {} | {available} MiB | {used} MiB taken | 4 | {then} | {over} |", case.what));
    Ok(())
}

/// The limit in force.
fn limit(status: &Value) -> Option<u64> {
    status["groups"][0]["limit"].as_u64()
}

/// When it was written, in seconds since 1970.
fn written(status: &Value) -> f64 {
    status["written"].as_f64().unwrap_or_default()
}

/// Bytes that the machine has left, and that the unit has taken.
const MEMORY: &str = "\
awk '/^MemAvailable/ { print $2 * 1024 }' /proc/meminfo
cat /sys/fs/cgroup$(systemctl show -P ControlGroup admission)/memory.current
";

/// So many requests at once, every one of which must be answered.
fn ask(guest: &Guest, requests: u32) -> anyhow::Result<Going> {
    guest.begin(&format!(
        "{OURS}/webdyno ab -q -s 300 -n {requests} -c {requests} --expect 'failed = 0' http://127.0.0.1:8080/wait"
    ))
}

/// status.json, as soon as something holds of it.
fn until(guest: &Guest, what: &str, holds: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    let end = Instant::now() + SHORT;
    loop {
        let said = guest.run("cat /run/admission/admission/status.json", SHORT)?;
        let status: Value = serde_json::from_str(&said.out).unwrap_or_default();
        if holds(&status) {
            return Ok(status);
        }
        if Instant::now() > end {
            let log = guest.run("cat /run/admission/error.log; journalctl --no-pager -u admission -u hog", SHORT)?;
            bail!("not within {} s that {what}: {}{}{}", SHORT.as_secs(), said.out, said.err, log.out);
        }
        thread::sleep(Duration::from_millis(500));
    }
}
