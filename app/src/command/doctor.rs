//! `webdyno doctor`: what this machine allows, what that means for measuring, and how to allow the rest.
//!
//! Each answer comes from whoever will need it: the sampler is really started, groups are really looked for. Nothing is changed.

use super::report::store_path;
use crate::exit::Exit;
use crate::flags::DoctorFlags;
use crate::say::{print, without_numbers};
use host::Reach;
use model::SECOND;
use model::plan::{Confinement, IoLimits};
use model::run::HostFacts;
use monitor::{Sampler, Watch};
use rustix::process::{Resource, getrlimit};
use server::{Installed, OwnApache, OwnNginx, ServerError};
use std::fs;
use std::path::{Path, PathBuf};

/// One thing about the machine.
#[derive(Debug)]
struct Finding {
    topic: &'static str,
    state: State,
    /// What there is, or is missing.
    says: String,
    /// What to do for more; nothing where all is well.
    remedy: Option<String>,
}

/// How good it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Limited,
    Missing,
}

/// Connections that a load test with a thousand browsers takes, with room for the rest.
const FILES: u64 = 4096;
/// Bytes that a store, its reports and a swap file of the usual size take.
const ROOM: u64 = 3 << 30;

pub(crate) fn run(flags: &DoctorFlags) -> anyhow::Result<Exit> {
    let mut findings = machine(&host::facts());
    findings.extend([groups(), swap(), covering(), files(), ports()]);
    findings.extend(sampler());
    findings.push(found("Apache", server::installed_apache()));
    findings.extend(own_apache(server::own_apache()));
    findings.push(found("nginx", server::installed_nginx()));
    findings.extend(own_nginx(server::own_nginx()));
    findings.extend(selinux(Path::new("/")));
    findings.push(store(flags));
    findings.push(left_behind());
    let text = if flags.json { as_json(&findings) } else { as_text(&findings) };
    print(&text);
    Ok(Exit::Done)
}

fn as_text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.topic.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { topic, state, says, remedy } in findings {
        text += &format!("{:<7}  {topic:<width$}  {says}\n", state.name());
        if let Some(remedy) = remedy {
            text += &format!("{:7}  {:width$}  -> {remedy}\n", "", "");
        }
    }
    text
}

fn as_json(findings: &[Finding]) -> String {
    let object = |Finding { topic, state, says, remedy }: &Finding| serde_json::json!({ "topic": topic, "state": state.name(), "says": says, "remedy": remedy });
    format!("{:#}\n", findings.iter().map(object).collect::<serde_json::Value>())
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        }
    }
}

impl Finding {
    fn ok(topic: &'static str, says: impl Into<String>) -> Finding {
        Finding { topic, state: State::Ok, says: says.into(), remedy: None }
    }

    fn limited(topic: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { topic, state: State::Limited, says: says.into(), remedy: Some(remedy.into()) }
    }

    fn missing(topic: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { topic, state: State::Missing, says: says.into(), remedy: Some(remedy.into()) }
    }
}

fn machine(facts: &HostFacts) -> Vec<Finding> {
    let HostFacts { cpus, cpu_model, memory, kernel, psi, .. } = facts;
    let cpus = match cpus {
        0 | 1 => Finding::limited(
            "CPUs",
            format!("{cpus} ({cpu_model}): the load generator takes what the server could have had"),
            "measure from a machine with two or more, or take the share of the generator in the report into account",
        ),
        _ => Finding::ok("CPUs", format!("{cpus} ({cpu_model}): server and load generator are kept apart")),
    };
    let psi = if *psi {
        Finding::ok("pressure", "the kernel tells who waits for what (PSI)")
    } else {
        Finding::limited(
            "pressure",
            "the kernel does not tell pressure (PSI): thrash is told from swap traffic and faults",
            "boot with psi=1 (Linux 4.20 or later)",
        )
    };
    vec![
        Finding::ok("kernel", format!("Linux {kernel}")),
        cpus,
        Finding::ok("memory", units::short_bytes(*memory)),
        psi,
    ]
}

fn groups() -> Finding {
    const TOPIC: &str = "groups";
    let reach = match host::reach() {
        Ok(reach) => reach,
        Err(error) => {
            return Finding::missing(TOPIC, error.to_string(), "plans with [confine] need it; all others do without");
        }
    };
    let version = match reach.hierarchies().version {
        host::Version::V1 => "v1",
        host::Version::V2 => "v2",
    };
    let of_whom = if let Reach::Scope(_) = reach { ", in a scope of this user's own systemd" } else { "" };
    let limits = reach.hierarchies().limits().join(", ");
    let says = format!("a server can be confined in {limits} (cgroup {version}{of_whom})");
    match reach.hierarchies().allow(&everything()) {
        Ok(()) => Finding::ok(TOPIC, says),
        Err(error) => Finding::limited(TOPIC, says, error.to_string()),
    }
}

/// A confinement of all kinds.
fn everything() -> Confinement {
    let io = IoLimits { write: Some(1), ..IoLimits::default() };
    Confinement { memory: Some(1), cpu_thousandths: Some(1000), io, ..Confinement::default() }
}

fn swap() -> Finding {
    let free = host::swap_free();
    let there = format!("{} free of {}", units::short_bytes(free), units::short_bytes(host::swap_total()));
    match host::may_make_swap() {
        _ if free >= 1 << 30 => Finding::ok("swap", there),
        Ok(()) => Finding::ok("swap", format!("{there}; `webdyno run --make-swap 2G` makes a file for the run")),
        Err(_) => Finding::limited(
            "swap",
            format!("{there}: plans about thrashing need some"),
            "add swap, or run them as root with --make-swap 2G",
        ),
    }
}

fn covering() -> Finding {
    const TOPIC: &str = "[[files]]";
    let says = "php.ini and other files can be part of a variant";
    if host::may_mount() {
        Finding::ok(
            TOPIC,
            format!("{says}; after a crash of the machine they are as they were, where nobody else has them mounted"),
        )
    } else {
        Finding::limited(
            TOPIC,
            format!("{says}; after a crash of the machine they stay changed"),
            "run as root (in a container with CAP_SYS_ADMIN), or have each boot run `webdyno restore`",
        )
    }
}

fn files() -> Finding {
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) if limit < FILES => Finding::limited(
            "open files",
            format!("at most {limit}: fewer connections than that"),
            "ulimit -Hn 65536 before, or LimitNOFILE= in a unit, or /etc/security/limits.conf",
        ),
        Some(limit) => Finding::ok("open files", format!("at most {limit}, each connection takes one")),
        None => Finding::ok("open files", "as many as there is memory for"),
    }
}

fn ports() -> Finding {
    let numbers = |file: &str| -> Vec<u64> {
        let text = fs::read_to_string(Path::new("/proc/sys/net/ipv4").join(file)).unwrap_or_default();
        text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let ports = match numbers("ip_local_port_range")[..] {
        [first, last] if last >= first => last - first + 1,
        _ => return Finding::ok("local ports", "the kernel does not tell; its default is 28232"),
    };
    let reused = match numbers("tcp_tw_reuse").first() {
        Some(1) => Some("everywhere"),
        Some(2) => Some("on loopback"),
        _ => None,
    };
    let says = format!("{ports} for each address");
    if let Some(place) = reused {
        Finding::ok("local ports", format!("{says}, taken again {place} a second after a connection is closed"))
    } else {
        Finding::limited(
            "local ports",
            format!(
                "{says}, each for a minute after its connection is closed: {} new connections a second",
                ports / 60
            ),
            "sysctl net.ipv4.tcp_tw_reuse=1 net.ipv4.ip_local_port_range='1024 65000'",
        )
    }
}

/// What the sampler is refused: it is started for two readings.
fn sampler() -> Vec<Finding> {
    let watch = Watch { period_ns: SECOND / 100, capacity: 8, ..Watch::default() };
    let notes = std::env::current_exe().map_err(|error| error.to_string()).and_then(|exe| {
        let sampler = Sampler::start(&exe, &watch).map_err(|error| error.to_string())?;
        sampler.finish().map(|readings| readings.notes).map_err(|error| error.to_string())
    });
    match notes {
        Ok(notes) if notes.is_empty() => {
            vec![Finding::ok(
                "sampler",
                "in locked memory, at real-time priority, protected from the out-of-memory killer",
            )]
        }
        Ok(notes) => {
            let remedy = if rustix::process::geteuid().is_root() {
                "this root is not given everything: run outside the container or service that limits it"
            } else {
                "run as root, or with CAP_IPC_LOCK, CAP_SYS_NICE and CAP_SYS_RESOURCE"
            };
            notes.iter().map(|note| Finding::limited("sampler", without_numbers(note), remedy)).collect()
        }
        Err(error) => vec![Finding::missing("sampler", error, "nothing can be watched until this is mended")],
    }
}

/// What can be done with the machine's own configuration; nothing where there is no Apache, which is said already.
fn own_apache(found: Result<Option<OwnApache>, ServerError>) -> Option<Finding> {
    const TOPIC: &str = "own Apache";
    let OwnApache { main, ports, is_running, held } = match found {
        Ok(found) => found?,
        Err(error) => {
            return Some(unread(TOPIC, &error));
        }
    };
    let says = copied(&main, &ports);
    Some(match (is_running, rustix::process::geteuid().is_root()) {
        (true, _) if held.is_some() => {
            Finding::ok(TOPIC, format!("{says}; not as it runs: {}", held.unwrap_or_default()))
        }
        (true, true) => Finding::ok(TOPIC, format!("{says}; or as it runs: in_place = true")),
        (true, false) => Finding::limited(TOPIC, says, "root can measure the running server, too: in_place = true"),
        (false, _) => Finding::ok(TOPIC, format!("{says}; it does not run now")),
    })
}

/// What SELinux means for servers; nothing where it does not enforce.
fn selinux(root: &Path) -> Option<Finding> {
    server::selinux_enforces(root).then(|| {
        Finding::limited(
            "SELinux",
            "in force: a server that systemd starts listens only on ports labelled http_port_t and reads only files labelled for it (httpd_sys_content_t)",
            "for in_place keep a port of `semanage port -l | grep http_port_t` free (8008 ...), and documents out of /tmp; label others by \
             semanage port -a -t http_port_t -p tcp PORT, chcon -R -t httpd_sys_content_t FOLDER; what was refused: ausearch -m AVC -ts recent",
        )
    })
}

/// A configuration that the server refuses, or that this user may not read.
fn unread(topic: &'static str, error: &ServerError) -> Finding {
    let remedy = "correct it, or run as a user who may read it: plans with `from` or `in_place` need it";
    Finding::limited(topic, error.to_string(), remedy)
}

/// That a copy of it can be measured.
fn copied(main: &Path, ports: &[u16]) -> String {
    let (main, ports) = (main.display(), ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", "));
    format!("{main} (ports {ports}) can be measured as a private copy: from = \"{main}\"")
}

/// The same for nginx.
fn own_nginx(found: Result<Option<OwnNginx>, ServerError>) -> Option<Finding> {
    const TOPIC: &str = "own nginx";
    let OwnNginx { main, ports, is_running } = match found {
        Ok(found) => found?,
        Err(error) => {
            return Some(unread(TOPIC, &error));
        }
    };
    let says = copied(&main, &ports);
    Some(match (is_running, rustix::process::geteuid().is_root()) {
        (true, true) => Finding::ok(TOPIC, format!("{says}; or as it runs: in_place = true")),
        (true, false) => Finding::limited(TOPIC, says, "root can measure the running server, too: in_place = true"),
        (false, _) => Finding::ok(TOPIC, format!("{says}; it does not run now")),
    })
}

fn found(topic: &'static str, found: Result<Installed, ServerError>) -> Finding {
    match found {
        Ok(Installed { version, program, mpms }) => {
            let mpms = if mpms.is_empty() { String::new() } else { format!(", with {}", mpms.join(", ")) };
            Finding::ok(topic, format!("{version} at {}{mpms}", program.display()))
        }
        Err(error) => Finding::missing(topic, error.to_string(), "plans for other servers do without"),
    }
}

/// Whether the store's folder, or the one that it will be made in, can be written, and how much fits.
fn store(flags: &DoctorFlags) -> Finding {
    let path = match store_path(&flags.store) {
        Ok(path) => path,
        Err(error) => return Finding::missing("store", error.to_string(), "give --store FILE"),
    };
    let there = |folder: &&Path| folder.is_dir();
    let parent = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    let Some(folder) = parent.ancestors().find(there) else {
        return Finding::missing("store", format!("no folder for {}", path.display()), "give --store FILE");
    };
    if rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_err() {
        let remedy = "give --store FILE in a folder of your own";
        return Finding::missing("store", format!("{} cannot be written", folder.display()), remedy);
    }
    let free = rustix::fs::statvfs(folder).map_or(u64::MAX, |facts| facts.f_bavail.saturating_mul(facts.f_frsize));
    let says = format!("{}, with {} of room", path.display(), units::short_bytes(free));
    if free < ROOM {
        Finding::limited("store", says, "make room, or give --store FILE elsewhere")
    } else {
        Finding::ok("store", says)
    }
}

fn left_behind() -> Finding {
    let left = super::state_dir().and_then(|dir| Ok(host::left_behind(&dir)?));
    match left {
        Ok(left) if left.is_empty() => Finding::ok("left behind", "nothing, by any run"),
        Ok(left) => {
            Finding::limited("left behind", format!("by runs that were killed: {}", left.join("; ")), "webdyno restore")
        }
        Err(error) => Finding::limited("left behind", format!("{error:#}"), "look there as the user who ran it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selinux_is_told_where_it_enforces() {
        let root = tempfile::tempdir().expect("a folder");
        assert!(selinux(root.path()).is_none());
        let folder = root.path().join("sys/fs/selinux");
        fs::create_dir_all(&folder).expect("our own folder");
        fs::write(folder.join("enforce"), "1").expect("our own file");
        let text = as_text(&selinux(root.path()).into_iter().collect::<Vec<_>>());
        assert!(text.starts_with("limited  SELinux  in force") && text.contains("semanage port -a"), "{text}");
    }
}
