//! Confinement for an ordinary user under cgroup v2: what he is told as long as systemd has nothing for him, limits at work in a scope of his own
//! systemd's, more of them once root delegates more, and nothing left however a run ends.

use super::killed::{gone, killed};
use super::limits::{self, By, Version};
use super::{OURS, SHORT, Seen};
use crate::vm::guest::Guest;
use crate::vm::machine::Machine;
use crate::vm::recipe::USER;

/// Where the groups of his runs are.
const GROUPS: &str = "/sys/fs/cgroup/user.slice/user-*.slice/user@*.service/app.slice/webdyno-*.scope/webdyno-*";

/// His own systemd, without a login.
const LINGER: &str = "\
loginctl enable-linger USER
for n in $(seq 600); do [ -S /run/user/$(id -u USER)/systemd/private ] && exit 0; sleep 0.1; done
exit 1
";

/// What `webdyno doctor` says to do for the rest.
const DELEGATE: &str = "\
mkdir -p /etc/systemd/system/user@.service.d
printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' > /etc/systemd/system/user@.service.d/override.conf
systemctl daemon-reload
systemctl restart user@$(id -u USER)
";

/// Plans that never get as far as a server.
const ASKS_IO: &str = "io_write = \"4M\"";
const WRONG: &str = "\n[variant.other]\ndirectives = \"NoSuchDirective on\"";

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let guest = machine.guest();
    let prefix = format!("runuser -u {USER} --");
    let mut seen = Seen::titled("Confinement for an ordinary user under cgroup v2");
    seen.say("\n## What he is told\n");

    refused(&mut seen, &guest, &prefix, "without a login", "", 5, "loginctl enable-linger")?;
    doctor(&mut seen, &guest, &prefix, "without a login", "missing")?;
    let session = format!("systemd-run --quiet --pipe --wait -p PAMName=login -p User={USER}");
    doctor(&mut seen, &guest, &session, "in a session of his", "limited")?;
    guest.sh(&LINGER.replace("USER", USER), SHORT)?;
    doctor(&mut seen, &guest, &prefix, "with `loginctl enable-linger`", "limited")?;
    refused(&mut seen, &guest, &prefix, "who limits disk traffic", ASKS_IO, 5, "does not delegate the io controller")?;
    refused(&mut seen, &guest, &prefix, "with a directive that does not exist", WRONG, 2, "NoSuchDirective")?;

    let by = By {
        who: "as Debian's systemd delegates to users",
        prefix: &prefix,
        groups: GROUPS,
        io: false,
        version: Version::V2,
    };
    limits::bind(&mut seen, &guest, &by)?;
    nothing_left(&mut seen, &guest, "runs that ended")?;
    killed(&mut seen, &guest, "as an ordinary user", &prefix, GROUPS)?;

    guest.sh(&DELEGATE.replace("USER", USER), SHORT)?;
    guest.sh(&LINGER.replace("USER", USER), SHORT)?;
    seen.say("\n## What he is told when all is delegated\n");
    doctor(&mut seen, &guest, &prefix, "with the drop-in", "ok")?;
    let by = By { who: "with all delegated", io: true, ..by };
    limits::bind(&mut seen, &guest, &by)?;
    nothing_left(&mut seen, &guest, "runs with all delegated")?;
    Ok(seen)
}

/// A run that must end at once, with `code` and one line that has `word`.
fn refused(
    seen: &mut Seen,
    guest: &Guest,
    prefix: &str,
    how: &str,
    lines: &str,
    code: i32,
    word: &str,
) -> anyhow::Result<()> {
    let plan = format!(
        "blocks = 2\n[server]\nkind = \"apache\"\n[confine]\nmemory = \"100M\"\n{lines}\n[load.one]\npath = \"/\"\nconnections = 1\nrequests = 10\n"
    );
    guest.sh(&format!("cat > {OURS}/plans/refused.toml <<'END'\n{plan}END"), SHORT)?;
    let said = guest.run(&format!("{prefix} {OURS}/webdyno run --plain {OURS}/plans/refused.toml"), SHORT)?;
    let err = said.err.trim();
    seen.say(format!("- `webdyno run`, {how}: exit code {}, `{err}`", said.status.code().unwrap_or(-1)));
    let fits = said.status.code() == Some(code) && err.contains(word);
    seen.expect(fits, || format!("{how}: {} {err}", said.status));
    nothing_left(seen, guest, how)
}

/// What `webdyno doctor` says of groups.
fn doctor(seen: &mut Seen, guest: &Guest, prefix: &str, how: &str, state: &str) -> anyhow::Result<()> {
    let out = guest.sh(&format!("{prefix} {OURS}/webdyno doctor"), SHORT)?;
    let mut lines = out.lines().skip_while(|line| !line.contains("  groups  ")).take(2);
    let first = lines.next().unwrap_or_default();
    let remedy = lines.next().filter(|line| line.trim_start().starts_with("->")).unwrap_or_default();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    seen.say(format!("- `webdyno doctor`, {how}: `{}` `{}`", words(first), words(remedy)));
    seen.expect(first.starts_with(state), || format!("{how}: webdyno doctor says {first}"));
    Ok(())
}

fn nothing_left(seen: &mut Seen, guest: &Guest, by: &str) -> anyhow::Result<()> {
    let left = gone(guest, 50)?;
    seen.expect(left.is_none(), || format!("left by {by}: {left:?}"));
    Ok(())
}
