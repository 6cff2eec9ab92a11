//! The power goes in the middle of a run: what the run had made must be gone after the next start, or after `webdyno restore`.

use super::{OURS, SHORT, Seen, put_back, remains};
use crate::vm::machine::Machine;

/// A moment to pull the plug: its name, and a command that succeeds from then on.
const MOMENTS: [(&str, &str); 4] = [
    ("the journal exists", "ls /var/lib/webdyno/*.journal"),
    ("the swap file is in use", "grep -q /webdyno- /proc/swaps"),
    ("the server's group exists", "ls -d /sys/fs/cgroup/webdyno-*"),
    ("the server works in swap", "grep -q '^[1-9]' /sys/fs/cgroup/webdyno-*/memory.swap.current"),
];

/// Begins a run that makes swap, a group, a folder and a server. Its folder lies where a boot does not clear it away.
const BEGIN: &str = "\
rm -f /root/run.log
TMPDIR=/var/tmp setsid OURS/webdyno run --plain --make-swap 256M OURS/plans/memory-cliff.toml > /root/run.log 2>&1 < /dev/null &
for n in $(seq 600); do
  if MOMENT > /dev/null 2>&1; then exit 0; fi
  sleep 0.2
done
cat /root/run.log
exit 1
";

/// Who puts things back.
const BY: [(&str, &str); 2] = [
    ("`webdyno restore`", "OURS/webdyno restore"),
    ("the next run", "TMPDIR=/var/tmp OURS/webdyno run --plain --quick OURS/plans/first-look.toml > /root/next.out"),
];

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let mut seen = Seen::titled("The machine is reset in the middle of a run");
    seen.say("\n| when | by whom | left after the boot | said | left then |\n|---|---|---|---|---|");
    for (n, (when, moment)) in MOMENTS.iter().enumerate() {
        let (who, command) = BY[n % BY.len()];
        let guest = machine.guest();
        guest.sh(&BEGIN.replace("OURS", OURS).replace("MOMENT", moment), SHORT * 2)?;
        machine.reset()?;
        let guest = machine.guest();
        let after_boot = remains(&guest)?;
        let said = guest.run(&command.replace("OURS", OURS), SHORT)?;
        // A run may end without a winner; what it may not do is fail.
        let fine = matches!(said.status.code(), Some(0 | 1 | 3));
        let left = remains(&guest)?;
        let told = put_back(&said);
        seen.say(format!("| {when} | {who} | {} | {} | {} |", after_boot.join("; "), told.join("; "), left.join("; ")));
        seen.expect(fine, || format!("{when}: {who} ended with {}: {}", said.status, said.err));
        seen.expect(left.is_empty(), || format!("{when}: {who} left {}", left.join("; ")));
        seen.expect(!after_boot.is_empty(), || {
            format!("{when}: the reset left nothing to put back, so nothing was shown")
        });
    }
    let stored = machine.guest().run(&format!("{OURS}/webdyno runs"), SHORT)?;
    seen.say(format!("\nThe store after four resets:\n\n```\n{}{}```", stored.out, stored.err));
    seen.expect(stored.status.success(), || format!("the store cannot be read: {}", stored.err));
    Ok(seen)
}
