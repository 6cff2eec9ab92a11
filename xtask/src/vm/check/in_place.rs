//! The machine's own Apache and its own nginx, services of systemd's, changed in place: by a run to its end, by one that is killed, by a unit
//! that is killed with its guardian, and by one that a reset cuts off. Afterwards every file of the configuration is as it was, times included,
//! and the service runs.
//!
//! Six numbers of Apache's workers are six full restarts one after the other in the rehearsal: more than systemd lets a service have in ten
//! seconds.

use super::{OURS, SHORT, Seen, put_back, remains};
use crate::vm::guest::Guest;
use crate::vm::machine::Machine;

/// A server that Debian's package makes a service of.
struct Service {
    /// Of the unit, and of the folder below /etc.
    name: &'static str,
    /// What a plan calls it.
    kind: &'static str,
    /// The first file of its configuration.
    main: &'static str,
    /// Where the number of its first process stands.
    pid: &'static str,
    /// A file of the folder that every variant changes.
    changed: &'static str,
    /// Beside one that leaves the directives alone.
    variants: &'static str,
}

const SERVICES: [Service; 2] = [
    Service {
        name: "apache2",
        kind: "apache",
        main: "/etc/apache2/apache2.conf",
        pid: "/run/apache2/apache2.pid",
        changed: "/etc/apache2/magic",
        variants: r#"
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
"#,
    },
    Service {
        name: "nginx",
        kind: "nginx",
        main: "/etc/nginx/nginx.conf",
        pid: "/run/nginx.pid",
        changed: "/etc/nginx/mime.types",
        variants: r#"
[variant.close]
directives = "keepalive_timeout 0"
[variant."1"]
directives = "worker_processes 1"
[variant.zone]
directives = "limit_conn_zone $server_name zone=own:1m"
"#,
    },
];

const PLAN: &str = r#"
blocks = 2
aa = false

[server]
kind = "KIND"
in_place = true

[[server.files]]
path = "CHANGED"
append = "\n# of a variant\n"

[[server.files]]
path = "/etc/NAME/extra"
content = "of a variant\n"

[variant.as-is]
VARIANTS
[load.a]
path = "/"
connections = 2
requests = 50

[cooldown]
limit = "0s"
"#;

/// The run; its folder lies where neither the service's own /tmp nor a boot hides it.
const RUN: &str = "env TMPDIR=/var/lib OURS/webdyno run --plain --i-operate MAIN /root/in-place.toml";

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
find /etc/NAME -printf '%p %y %m %u %g %T@ %l\\n' | sort
find /etc/NAME -type f -exec sha256sum {} + | sort -k 2
";

/// What the service and its door say. Variants answer without keeping connections, or with fewer workers.
const SERVICE: &str = "\
systemctl is-active NAME
test \"$(systemctl show -p MainPID --value NAME)\" = \"$(cat PIDFILE)\" && echo its main process
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

impl Service {
    /// The text with this service's words in it.
    fn fill(&self, text: &str) -> String {
        let words = [
            ("RUN", RUN),
            ("OURS", OURS),
            ("KIND", self.kind),
            ("NAME", self.name),
            ("MAIN", self.main),
            ("PIDFILE", self.pid),
            ("CHANGED", self.changed),
            ("VARIANTS", self.variants),
        ];
        words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    }
}

pub(super) fn run(machine: &mut Machine) -> anyhow::Result<Seen> {
    let mut seen = Seen::titled("The services apache2.service and nginx.service, changed in place");
    for service in &SERVICES {
        let guest = machine.guest();
        guest.sh(&service.fill("systemctl enable --quiet --now NAME"), SHORT)?;
        guest.sh(&format!("cat > /root/in-place.toml << 'E'\n{}E\nsync", service.fill(PLAN)), SHORT)?;
        let before = State::of(&guest, service)?;
        seen.say(format!(
            "\n## {}\n\nThe service before, and what its door says:\n\n```\n{}```",
            service.name, before.says
        ));
        to_its_end(&guest, &before, &mut seen)?;
        for end in &ENDS {
            cut_off(machine, end, &before, &mut seen)?;
        }
        machine.guest().sh(&service.fill("systemctl disable --quiet --now NAME; sync"), SHORT)?;
    }
    Ok(seen)
}

fn to_its_end(guest: &Guest, before: &State<'_>, seen: &mut Seen) -> anyhow::Result<()> {
    let said = guest.run(&before.service.fill("RUN"), SHORT * 4)?;
    let left = before.differences(guest)?;
    seen.say(format!(
        "\n### Its end\n\nExit code {}. Different then: {}.",
        said.status.code().unwrap_or(-1),
        listed(&left)
    ));
    seen.expect(matches!(said.status.code(), Some(0 | 1 | 3)), || {
        format!("{}: the run ended with {}: {}", before.service.name, said.status, said.err)
    });
    seen.expect(left.is_empty(), || format!("{}, after its end: {}", before.service.name, left.join("; ")));
    Ok(())
}

fn cut_off(machine: &mut Machine, end: &End, before: &State<'_>, seen: &mut Seen) -> anyhow::Result<()> {
    let guest = machine.guest();
    let changed = before.service.changed;
    let name = format!("{}, {}", before.service.name, end.name);
    let begin = before.service.fill(end.begin);
    guest.sh(&format!("rm -f /root/in-place.log; touch /root/in-place.log; {begin}"), SHORT)?;
    guest.sh(CHANGED, SHORT * 4)?;
    if end.end.is_empty() {
        machine.reset()?;
    } else {
        guest.sh(end.end, SHORT)?;
    }
    let guest = machine.guest();
    let at_once = before.differences(&guest)?;
    let is_changed = at_once.iter().any(|line| line.contains(changed));
    let is_reset = end.end.is_empty();
    // What lies over a file ends with the machine. The guardian may have been faster than we looked.
    seen.expect(!(is_reset && is_changed), || format!("{name}: {changed} is still changed"));
    seen.expect(is_reset || !end.restore || is_changed, || format!("{name}: {changed} was not changed"));
    let mut by = "the guardian".to_owned();
    if end.restore {
        let said = guest.run(&format!("{OURS}/webdyno restore"), SHORT)?;
        by = format!("`webdyno restore`: {}", put_back(&said).join("; "));
        seen.expect(said.status.success(), || format!("{name}: restore ended with {}: {}", said.status, said.err));
    }
    let (seconds, left) = before.until_back(&guest)?;
    seen.say(format!("\n### {}\n\nStill changed then:\n\n```\n{}\n```\n", end.name, at_once.join("\n")));
    seen.say(format!("Put back by {by}. Seen {seconds} s later; different then: {}.", listed(&left)));
    seen.expect(!end.restore || !at_once.is_empty(), || format!("{name}: nothing was left to put back"));
    seen.expect(left.is_empty(), || format!("{name}: {}", left.join("; ")));
    Ok(())
}

fn listed(differences: &[String]) -> String {
    if differences.is_empty() { "nothing".to_owned() } else { differences.join("; ") }
}

/// How the server's files and its service are.
struct State<'a> {
    service: &'a Service,
    files: String,
    says: String,
}

impl<'a> State<'a> {
    fn of(guest: &Guest, service: &'a Service) -> anyhow::Result<State<'a>> {
        let files = guest.sh(&service.fill(CONFIGURATION), SHORT)?;
        Ok(State { service, files, says: guest.sh(&service.fill(SERVICE), SHORT)? })
    }

    /// The lines that are others now, and what else is left of runs.
    fn differences(&self, guest: &Guest) -> anyhow::Result<Vec<String>> {
        let now = State::of(guest, self.service)?;
        let mut found = Vec::new();
        for (was, is) in [(&self.files, &now.files), (&self.says, &now.says)] {
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
