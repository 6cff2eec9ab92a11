//! Confinement where systemd was booted with v1's controllers beside a v2 hierarchy that has none: as root it works as under v1, and an
//! ordinary user is told why it does not for him.

use super::killed::gone;
use super::limits::{self, By, Version};
use super::{OURS, SHORT, Seen};
use crate::vm::machine::Machine;
use crate::vm::recipe::USER;

/// What the kernel is told for it; systemd 258 knows it no more.
pub(super) const BOOT: &str = "systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=0";

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let guest = machine.guest();
    let mut seen = Seen::titled("Confinement in a hybrid hierarchy");
    let mounts = guest.sh("sed -n 's/^[^ ]* \\([^ ]*\\) \\(cgroup2*\\) .*/\\2 \\1/p' /proc/mounts", SHORT)?;
    seen.say(format!("\nBooted with `{BOOT}`:\n\n```\n{mounts}```\n"));
    let hybrid = mounts.contains("cgroup2 ")
        && mounts.lines().any(|line| line.starts_with("cgroup ") && line.ends_with("/memory"));
    seen.expect(hybrid, || format!("this is no hybrid hierarchy: {mounts}"));
    for (who, prefix, code) in [("root", String::new(), 0), ("an ordinary user", format!("runuser -u {USER} --"), 0)] {
        let said = guest.run(&format!("{prefix} {OURS}/webdyno doctor"), SHORT)?;
        let line = said.out.lines().find(|line| line.contains("  groups  ")).unwrap_or_default();
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        seen.say(format!("- `webdyno doctor` as {who}: `{words}`"));
        seen.expect(said.status.code() == Some(code) && words.contains("v1"), || format!("{who}: {words}"));
    }
    let by =
        By { who: "as root", prefix: "", groups: "/sys/fs/cgroup/memory/webdyno-*", io: true, version: Version::V1 };
    limits::bind(&mut seen, &guest, &by)?;
    let left = gone(&guest, 0)?;
    seen.expect(left.is_none(), || format!("left behind: {left:?}"));
    Ok(seen)
}
