//! webdyno as a unit of systemd's: stopped, it puts everything back itself; killed with its guardian in one blow, `webdyno restore` does.
//!
//! systemd ends a whole group at once, guardian and all, which nothing else does.

use super::{OURS, SHORT, Seen, put_back, remains};
use crate::vm::machine::Machine;

/// A run in a unit, at work in swap.
const BEGIN: &str = "\
systemd-run --quiet --unit=run --collect -E HOME=/root -E TMPDIR=/var/tmp OURS/webdyno run --plain --make-swap 256M OURS/plans/memory-cliff.toml
for n in $(seq 600); do
  if grep -q '^[1-9]' /sys/fs/cgroup/webdyno-*/memory.swap.current 2> /dev/null; then exit 0; fi
  sleep 0.2
done
journalctl --no-pager -u run
exit 1
";

/// How a unit ends, and whether everything must be back by then.
const ENDS: [(&str, &str, bool); 2] = [
    ("systemctl stop run", "systemctl stop run", true),
    (
        "systemctl kill -s KILL run",
        "systemctl kill -s KILL run; while systemctl -q is-active run; do sleep 0.1; done",
        false,
    ),
];

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let guest = machine.guest();
    let mut seen = Seen::titled("A run as a unit of systemd's");
    seen.say("\n| ended by | left then | `webdyno restore` said | left then |\n|---|---|---|---|");
    for (how, script, all_back) in ENDS {
        guest.sh(&BEGIN.replace("OURS", OURS), SHORT * 2)?;
        guest.sh(script, SHORT)?;
        let at_once = remains(&guest)?;
        let said = guest.run(&format!("{OURS}/webdyno restore"), SHORT)?;
        let left = remains(&guest)?;
        let told = put_back(&said);
        seen.say(format!("| `{how}` | {} | {} | {} |", at_once.join("; "), told.join("; "), left.join("; ")));
        seen.expect(said.status.success(), || format!("{how}: restore ended with {}: {}", said.status, said.err));
        seen.expect(left.is_empty(), || format!("{how}: left for good: {}", left.join("; ")));
        seen.expect(at_once.is_empty() == all_back, || {
            format!("{how}: left until the restore: {}", at_once.join("; "))
        });
    }
    Ok(seen)
}
