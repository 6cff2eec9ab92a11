//! The machine's own Apache, a service of systemd's, changed in place: by a run to its end, by one that is killed, by a unit that is killed with
//! its guardian, and by one that a reset cuts off. Afterwards every file of its configuration is as it was, times included, and the service runs.
//!
//! Six numbers of workers are six full restarts one after the other in the rehearsal: more than systemd lets a service have in ten seconds.

use super::{OURS, SHORT, Seen, put_back, remains};
use crate::vm::guest::Guest;
use crate::vm::machine::Machine;

/// A file that every variant changes.
const CHANGED_FILE: &str = "/etc/apache2/magic";

const PLAN: &str = r#"
blocks = 2
aa = false

[server]
kind = "apache"
in_place = true

[[server.files]]
path = "/etc/apache2/magic"
append = "\n# of a variant\n"

[[server.files]]
path = "/etc/apache2/extra"
content = "of a variant\n"

[variant.as-is]
[variant.close]
directives = "KeepAlive Off"
[variant."10"]
directives = "MaxRequestWorkers 10"
[variant."12"]
directives = "MaxRequestWorkers 12"
[variant."14"]
directives = "MaxRequestWorkers 14"
[variant."16"]
directives = "MaxRequestWorkers 16"
[variant."18"]
directives = "MaxRequestWorkers 18"
[variant."20"]
directives = "MaxRequestWorkers 20"

[load.a]
path = "/"
connections = 2
requests = 50

[cooldown]
limit = "0s"
"#;

/// The run; its folder lies where neither the service's own /tmp nor a boot hides it.
const RUN: &str =
    "env TMPDIR=/var/lib OURS/webdyno run --plain --i-operate /etc/apache2/apache2.conf /root/in-place.toml";

/// Waits until the server has been changed: until the second trial after the rehearsal of all variants has begun.
const CHANGED: &str = "\
for n in $(seq 900); do
  if grep -q 'block 1' /root/in-place.log; then exit 0; fi
  sleep 0.2
done
cat /root/in-place.log
exit 1
";

/// Everything there is to know about the configuration.
const CONFIGURATION: &str = "\
find /etc/apache2 -printf '%p %y %m %u %g %T@ %l\\n' | sort
find /etc/apache2 -type f -exec sha256sum {} + | sort -k 2
";

/// What the service and its door say. Variants answer without keeping connections, or with fewer workers.
const SERVICE: &str = "\
systemctl is-active apache2
test \"$(systemctl show -p MainPID --value apache2)\" = \"$(cat /run/apache2/apache2.pid)\" && echo its main process
ab -q -k -n 2 http://127.0.0.1/ 2>&1 | grep 'Keep-Alive requests'
ls /run/webdyno-in-place-* 2> /dev/null
true
";

/// How a run ends, and by what everything is put back then.
struct End {
    name: &'static str,
    begin: &'static str,
    end: &'static str,
    restore: bool,
}

const ENDS: [End; 3] = [
    End {
        name: "`kill -9`",
        begin: "setsid RUN > /root/in-place.log 2>&1 < /dev/null & echo $! > /root/in-place.pid",
        end: "kill -9 $(cat /root/in-place.pid)",
        restore: false,
    },
    End {
        name: "`systemctl kill -s KILL`, the guardian with it",
        begin: "systemd-run --quiet --unit=run --collect -E HOME=/root -p StandardOutput=file:/root/in-place.log -p StandardError=file:/root/in-place.log RUN",
        end: "systemctl kill -s KILL run; while systemctl -q is-active run; do sleep 0.1; done",
        restore: true,
    },
    End {
        name: "A reset of the machine",
        begin: "setsid RUN > /root/in-place.log 2>&1 < /dev/null &",
        end: "",
        restore: true,
    },
];

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let mut seen = Seen::titled("The service apache2.service, changed in place");
    let guest = machine.guest();
    guest.sh("systemctl enable --quiet --now apache2", SHORT)?;
    guest.sh(&format!("cat > /root/in-place.toml << 'E'\n{PLAN}E\nsync"), SHORT)?;
    let before = State::of(&guest)?;
    seen.say(format!("\nThe service before, and what its door says:\n\n```\n{}```", before.service));
    to_its_end(&guest, &before, &mut seen)?;
    for end in &ENDS {
        cut_off(machine, end, &before, &mut seen)?;
    }
    Ok(seen)
}

fn to_its_end(guest: &Guest, before: &State, seen: &mut Seen) -> anyhow::Result<()> {
    let said = guest.run(&RUN.replace("OURS", OURS), SHORT * 4)?;
    let left = before.differences(guest)?;
    seen.say(format!(
        "\n## Its end\n\nExit code {}. Different then: {}.",
        said.status.code().unwrap_or(-1),
        listed(&left)
    ));
    seen.expect(matches!(said.status.code(), Some(0 | 1 | 3)), || {
        format!("the run ended with {}: {}", said.status, said.err)
    });
    seen.expect(left.is_empty(), || format!("after its end: {}", left.join("; ")));
    Ok(())
}

fn cut_off(machine: &mut Machine, end: &End, before: &State, seen: &mut Seen) -> anyhow::Result<()> {
    let guest = machine.guest();
    let begin = end.begin.replace("RUN", RUN).replace("OURS", OURS);
    guest.sh(&format!("rm -f /root/in-place.log; touch /root/in-place.log; {begin}"), SHORT)?;
    guest.sh(CHANGED, SHORT * 4)?;
    if end.end.is_empty() {
        machine.reset()?;
    } else {
        guest.sh(end.end, SHORT)?;
    }
    let guest = machine.guest();
    let at_once = before.differences(&guest)?;
    let is_changed = at_once.iter().any(|line| line.contains(CHANGED_FILE));
    let is_reset = end.end.is_empty();
    // What lies over a file ends with the machine. The guardian may have been faster than we looked.
    seen.expect(!(is_reset && is_changed), || format!("{}: {CHANGED_FILE} is still changed", end.name));
    seen.expect(is_reset || !end.restore || is_changed, || format!("{}: {CHANGED_FILE} was not changed", end.name));
    let mut by = "the guardian".to_owned();
    if end.restore {
        let said = guest.run(&format!("{OURS}/webdyno restore"), SHORT)?;
        by = format!("`webdyno restore`: {}", put_back(&said).join("; "));
        seen.expect(said.status.success(), || {
            format!("{}: restore ended with {}: {}", end.name, said.status, said.err)
        });
    }
    let (seconds, left) = before.until_back(&guest)?;
    seen.say(format!("\n## {}\n\nStill changed then:\n\n```\n{}\n```\n", end.name, at_once.join("\n")));
    seen.say(format!("Put back by {by}. Seen {seconds} s later; different then: {}.", listed(&left)));
    seen.expect(!end.restore || !at_once.is_empty(), || format!("{}: nothing was left to put back", end.name));
    seen.expect(left.is_empty(), || format!("{}: {}", end.name, left.join("; ")));
    Ok(())
}

fn listed(differences: &[String]) -> String {
    if differences.is_empty() { "nothing".to_owned() } else { differences.join("; ") }
}

/// How the server's files and its service are.
struct State {
    files: String,
    service: String,
}

impl State {
    fn of(guest: &Guest) -> anyhow::Result<State> {
        Ok(State { files: guest.sh(CONFIGURATION, SHORT)?, service: guest.sh(SERVICE, SHORT)? })
    }

    /// The lines that are others now, and what else is left of runs.
    fn differences(&self, guest: &Guest) -> anyhow::Result<Vec<String>> {
        let now = State::of(guest)?;
        let mut found = Vec::new();
        for (was, is) in [(&self.files, &now.files), (&self.service, &now.service)] {
            found.extend(
                was.lines().filter(|line| !is.lines().any(|other| other == *line)).map(|line| format!("-{line}")),
            );
            found.extend(
                is.lines().filter(|line| !was.lines().any(|other| other == *line)).map(|line| format!("+{line}")),
            );
        }
        found.extend(remains(guest)?);
        Ok(found)
    }

    /// Looks until all is as it was, at most half a minute: the guest is many times slower than a machine. Seconds, and what still differs.
    fn until_back(&self, guest: &Guest) -> anyhow::Result<(u64, Vec<String>)> {
        let began = std::time::Instant::now();
        loop {
            let left = self.differences(guest)?;
            let seconds = began.elapsed().as_secs();
            if left.is_empty() || seconds > 30 {
                return Ok((seconds, left));
            }
        }
    }
}
