//! `kill -9` of a run whose server is confined under cgroup v2: of webdyno, and of webdyno with its guardian.

use super::{OURS, SHORT, Seen, put_back};
use crate::vm::guest::Guest;

/// A plan that is not over before it is killed.
const PLAN: &str = r#"
about = "A server that is killed at work"
blocks = 2
aa = false
[server]
kind = "apache"
mpm = "prefork"
[confine]
memory = "100M"
cpu = 0.3
[variant.only]
[load.one]
path = "/"
connections = 2
duration = "300s"
"#;

/// Begins it, and waits until requests are answered in a group of its own. Says who is who.
const BEGIN: &str = "\
WHO setsid OURS/webdyno run --plain OURS/plans/killed.toml > /var/tmp/killed.log 2>&1 < /dev/null &
for n in $(seq 600); do
  for group in GROUPS; do
    if [ $(sed -n 's/^usage_usec //p' $group/cpu.stat 2> /dev/null || echo 0) -gt 1500000 ] 2> /dev/null; then
      ps -e -o pid=,args= | sed -n 's|^ *\\([0-9]*\\) [^ ]*webdyno @guardian.*|guardian \\1|p; s|^ *\\([0-9]*\\) [^ ]*webdyno run --plain.*|run \\1|p'
      exit 0
    fi
  done
  sleep 0.1
done
cat /var/tmp/killed.log
exit 1
";

/// Waits for at most so many tenths of a second until nothing is left; says after how many, and what is.
const GONE: &str = "\
left() {
  find /sys/fs/cgroup -depth -name 'webdyno-*'
  find /var/lib/webdyno /home/*/.local/state/webdyno -name '*.journal' 2> /dev/null
  find /tmp /var/tmp -maxdepth 1 -name 'webdyno-2*'
  ps -e -o comm= | grep -x -e webdyno -e apache2 -e nginx
}
for n in $(seq 0 TENTHS); do
  left > /var/tmp/left
  [ -s /var/tmp/left ] || { echo after $n; exit 0; }
  sleep 0.1
done
cat /var/tmp/left
";

/// Seconds in which the guardian must have put everything back.
const PROMISE: u64 = 5;

/// Kills runs that `prefix` begins and whose groups are at `groups`.
pub(super) fn killed(seen: &mut Seen, guest: &Guest, who: &str, prefix: &str, groups: &str) -> anyhow::Result<()> {
    seen.say(format!("\n## Killed, {who}\n\n| killed | then |\n|---|---|"));
    guest.sh(&format!("cat > {OURS}/plans/killed.toml <<'END'\n{PLAN}END"), SHORT)?;
    let begin = BEGIN.replace("OURS", OURS).replace("WHO", prefix).replace("GROUPS", groups);
    let pids = |names: &[&str]| -> anyhow::Result<String> {
        let out = guest.sh(&begin, SHORT)?;
        let found = names.iter().flat_map(|name| out.lines().filter_map(move |line| line.strip_prefix(name)));
        Ok(found.collect::<Vec<_>>().join(" "))
    };

    let run = pids(&["run "])?;
    guest.sh(&format!("kill -9 {run}"), SHORT)?;
    let left = gone(guest, PROMISE * 10)?;
    seen.say(format!("| webdyno | {} |", left.as_deref().unwrap_or("nothing is left within 5 s")));
    seen.expect(left.is_none(), || format!("{who}: left by the guardian: {left:?}"));

    // The guardian first: it must not begin.
    let both = pids(&["guardian ", "run "])?;
    seen.expect(both.split(' ').count() == 2, || format!("{who}: these are not two: {both}"));
    guest.sh(&format!("kill -9 {both}"), SHORT)?;
    let left = gone(guest, 0)?;
    seen.expect(left.is_some(), || format!("{who}: with the guardian killed nothing was left to put back"));
    let said = guest.run(&format!("{prefix} {OURS}/webdyno restore"), SHORT)?;
    let finally = gone(guest, PROMISE * 10)?;
    seen.say(format!(
        "| webdyno and its guardian | left: {}; `webdyno restore`: {}; {} |",
        left.unwrap_or_default(),
        put_back(&said).join("; "),
        finally.as_deref().unwrap_or("nothing is left"),
    ));
    seen.expect(said.status.success() && finally.is_none(), || {
        format!("{who}: left for good: {finally:?} {}", said.err)
    });
    Ok(())
}

/// What is left once the time is over; `None` when nothing is.
pub(super) fn gone(guest: &Guest, tenths: u64) -> anyhow::Result<Option<String>> {
    let said = guest.sh(&GONE.replace("TENTHS", &tenths.to_string()), SHORT)?;
    Ok((!said.starts_with("after ")).then(|| said.trim().replace('\n', ", ")))
}
