//! A private FPM master with one pool: configured as distributions do, tested by FPM itself, started, and asked how it fares.

use super::ini::{written, wrong};
use super::queue::Queue;
use super::{FPM, Prepared, fastcgi};
use crate::account::Account;
use crate::control::{Logs, POLL};
use crate::program::{ask, asking};
use crate::running::Door;
use crate::{Place, ServerError};
use host::{Child, Launch};
use model::plan::PhpSettings;
use model::status::FpmStatus;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A socket's path may have 107 bytes.
const SOCKET_MOST: usize = 107;
/// Where a pool tells its status; on a socket of its own, so that no process of the pool is taken for it.
const STATUS: &str = "/fpm-status";
/// A pool that does not answer in this time does not tell.
const PATIENCE: Duration = Duration::from_millis(500);

/// The one pool of a private FPM.
#[derive(Debug)]
pub(crate) struct Pool {
    program: PathBuf,
    dir: PathBuf,
    file: PathBuf,
    env: Vec<(OsString, OsString)>,
    /// Where it listens.
    pub(crate) socket: PathBuf,
    status: PathBuf,
    /// Its settings as they were written, ours included.
    pub(crate) values: BTreeMap<String, String>,
}

/// A running master with its workers. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Master {
    pub(crate) child: Child,
    pub(crate) log: PathBuf,
    pub(crate) status: FpmStatusSource,
}

/// Where a pool can be asked how it fares.
#[derive(Debug)]
pub(crate) struct FpmStatusSource {
    door: Door,
    path: String,
    queue: Option<Queue>,
    /// Whether requests come by TCP: of these FPM itself knows who waits.
    by_tcp: bool,
}

impl Pool {
    /// Writes the configuration of an instance in `dir`.
    pub(super) fn write(
        program: PathBuf,
        dir: &Path,
        account: Option<&Account>,
        settings: &PhpSettings,
        env: Vec<(OsString, OsString)>,
    ) -> Result<Pool, ServerError> {
        let [file, socket, status] = ["php/fpm.conf", "run/fpm.sock", "run/fpm-status.sock"].map(|name| dir.join(name));
        let over = status.as_os_str().as_bytes().len().saturating_sub(SOCKET_MOST);
        if over > 0 {
            let most = dir.as_os_str().as_bytes().len() - over;
            return Err(ServerError::LongPath { folder: dir.to_owned(), most });
        }
        let values = values(settings);
        let text = render(dir, &socket, &status, account, &values);
        fs::write(&file, text).map_err(ServerError::io("write", &file))?;
        Ok(Pool { program, dir: dir.to_owned(), file, env, socket, status, values })
    }

    /// Lets FPM read it; its warnings are failures.
    pub(super) fn test(&self, prepared: &Prepared) -> Result<(), ServerError> {
        let mut test = asking(&self.program);
        test.envs(self.env.iter().map(|(name, value)| (name, value)));
        test.arg("-t").args(self.args());
        let output = ask(&mut test)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let Some(message) = complaint(&said, output.status.success(), &prepared.allowed) else { return Ok(()) };
        let settings = prepared.settings.pool.iter().chain(&prepared.settings.ini);
        let named = |name: &str| {
            let name = name.strip_prefix("php_admin_value[").map_or(name, |name| name.trim_end_matches(']'));
            message.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_'))).any(|word| word == name)
        };
        // Of several that are named the longest name says most.
        let set = settings.filter(|(name, _)| named(name)).max_by_key(|(name, _)| name.len()).map(|(_, set)| set);
        Err(match set {
            Some(set) => wrong(prepared, set, message),
            None => ServerError::Died { server: FPM, log: message },
        })
    }

    /// Its file, and its folder, where relative paths of its settings lie.
    fn args(&self) -> [OsString; 4] {
        ["-p".into(), self.dir.clone().into(), "-y".into(), self.file.clone().into()]
    }

    /// Starts the master and waits until its workers answer.
    pub(crate) fn start(&self, place: &Place<'_>) -> Result<Master, ServerError> {
        let (log, stderr) = (self.dir.join("logs/fpm.log"), self.dir.join("logs/fpm.stderr"));
        let mut env = self.env.clone();
        env.push(("LC_ALL".into(), "C".into()));
        let launch = Launch {
            program: self.program.clone(),
            args: ["-F".into()].into_iter().chain(self.args()).collect(),
            env,
            dir: self.dir.clone(),
            cpus: place.cpus.to_vec(),
            stdout: stderr.clone(),
            stderr: stderr.clone(),
        };
        let since = Instant::now();
        let mut child = place.host.spawn(&launch, place.group)?;
        let (door, path) = (Door::File(self.status.clone()), STATUS.to_owned());
        let mut source = FpmStatusSource { door, path, queue: None, by_tcp: false };
        let logs = Logs(vec![stderr, log.clone()]);
        loop {
            if !child.is_alive() {
                return Err(ServerError::Died { server: FPM, log: logs.brief() });
            }
            match source.pool() {
                Ok(_) => break,
                Err(_) if place.interrupted.load(Ordering::Relaxed) => return Err(ServerError::Interrupted),
                Err(error) if since.elapsed() >= place.ready_timeout => {
                    let (asked, why) = (format!("GET {STATUS}"), error.to_string());
                    let seconds = since.elapsed().as_secs_f64();
                    return Err(ServerError::NotReady { server: FPM, seconds, asked, why, log: logs.brief() });
                }
                Err(_) => std::thread::sleep(POLL),
            }
        }
        source.queue = Queue::of(&self.socket);
        Ok(Master { child, log, status: source })
    }
}

impl FpmStatusSource {
    /// Of a pool of the machine's that listens there, and tells its status at `door`.
    pub(super) fn of_the_machine(door: Door, path: String, listen: &str) -> FpmStatusSource {
        let queue = Queue::of(Path::new(listen));
        FpmStatusSource { door, path, queue, by_tcp: !listen.starts_with('/') }
    }

    /// How the pool fares; `None` when it does not tell.
    pub(crate) fn look(&self) -> Option<FpmStatus> {
        let mut status = self.pool().ok()?;
        if !self.by_tcp {
            let waiting = self.queue.as_ref().and_then(|queue| queue.ask().ok());
            (status.queue, status.queue_limit) = waiting.map(|waiting| (waiting.now, waiting.limit)).unzip();
        }
        Some(status)
    }

    pub(super) fn pool(&self) -> std::io::Result<FpmStatus> {
        let page = fastcgi::get(&self.door, &self.path, PATIENCE)?;
        parse(&page).ok_or_else(|| std::io::Error::other("its status page is not understood"))
    }
}

/// What the master complains about in its log although it runs.
pub(crate) fn complaints(log: &str) -> Vec<String> {
    let bad = |line: &&str| ["] WARNING: ", "] ERROR: ", "] ALERT: "].iter().any(|level| line.contains(level));
    log.lines().filter(bad).map(|line| format!("{FPM}'s log: {line}")).collect()
}

/// The pool's settings: those of the plan, and Debian's where it says nothing, which fit below the plan's `pm.max_children`.
fn values(settings: &PhpSettings) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, String> =
        settings.pool.iter().map(|(name, set)| (name.clone(), set.value.clone())).collect();
    let most = values.get("pm.max_children").and_then(|value| value.parse::<u32>().ok()).unwrap_or(5);
    let mut usual = vec![("pm", "dynamic".to_owned()), ("pm.max_children", "5".to_owned())];
    if values.get("pm").is_none_or(|pm| pm == "dynamic") {
        let number = |name: &str| values.get(name).and_then(|value| value.parse::<u32>().ok());
        let least_spare = number("pm.min_spare_servers").unwrap_or(1);
        let most_spare = number("pm.max_spare_servers").unwrap_or(3.max(least_spare)).min(most);
        let start = (least_spare + (most_spare.saturating_sub(least_spare)) / 2).max(1);
        usual.push(("pm.min_spare_servers", least_spare.to_string()));
        usual.push(("pm.max_spare_servers", most_spare.to_string()));
        usual.push(("pm.start_servers", start.to_string()));
    }
    for (name, value) in usual {
        values.entry(name.to_owned()).or_insert(value);
    }
    values
}

fn render(
    dir: &Path,
    socket: &Path,
    status: &Path,
    account: Option<&Account>,
    values: &BTreeMap<String, String>,
) -> String {
    let path = |path: &Path| format!("\"{}\"", path.display());
    let mut lines = vec![
        "[global]".to_owned(),
        format!("error_log = {}", path(&dir.join("logs/fpm.log"))),
        "daemonize = no".to_owned(),
        "[www]".to_owned(),
        format!("listen = {}", path(socket)),
        format!("pm.status_path = {STATUS}"),
        format!("pm.status_listen = {}", path(status)),
    ];
    if let Some(Account { name, group, .. }) = account {
        lines.push(format!("user = {name}\ngroup = {group}\nlisten.owner = {name}\nlisten.group = {group}"));
    }
    lines.extend(values.iter().map(|(name, value)| format!("{name} = {}", written(value))));
    lines.join("\n") + "\n"
}

/// The first error, or the first warning that nobody allowed, without the time and the level.
fn complaint(said: &str, accepted: bool, allowed: &[String]) -> Option<String> {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains("NOTICE: "));
    let message = |line: &str| line.split_once("] ").map_or(line, |(_, message)| message).to_owned();
    let refused = |line: &&str| !allowed.iter().any(|part| line.contains(part.as_str()));
    let first = lines().find(|line| !accepted || refused(line)).map(message);
    first.or_else(|| (!accepted).then(|| "the configuration is refused without a reason".to_owned()))
}

fn parse(page: &str) -> Option<FpmStatus> {
    let number =
        |key: &str| page.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse::<u64>().ok());
    Some(FpmStatus {
        active: number("active processes")?,
        idle: number("idle processes")?,
        // Of a socket file it says 0.
        queue: number("listen queue"),
        queue_limit: number("listen queue len"),
        accepted: number("accepted conn")?,
        limit_reached: number("max children reached")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::PhpSetting;

    #[test]
    fn what_the_plan_does_not_say_fits_to_what_it_says() {
        let check = |written: &[(&str, &str)], expected: &str| {
            let set = |(name, value): &(&str, &str)| {
                let value = PhpSetting { value: (*value).to_owned(), key: String::new(), line: 1 };
                ((*name).to_owned(), value)
            };
            let settings = PhpSettings { pool: written.iter().map(set).collect(), ini: BTreeMap::new() };
            let told: Vec<String> =
                values(&settings).iter().map(|(k, v)| format!("{}={v}", k.trim_start_matches("pm."))).collect();
            assert_eq!(told.join(" "), expected);
        };
        check(&[], "pm=dynamic max_children=5 max_spare_servers=3 min_spare_servers=1 start_servers=2");
        check(
            &[("pm.max_children", "2")],
            "pm=dynamic max_children=2 max_spare_servers=2 min_spare_servers=1 start_servers=1",
        );
        check(&[("pm", "static"), ("pm.max_children", "8")], "pm=static max_children=8");
        check(&[("pm", "ondemand")], "pm=ondemand max_children=5");
    }

    #[test]
    fn what_fpm_says_is_read() {
        let check = |said: &str, accepted, allowed: &[&str], expected: Option<&str>| {
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            assert_eq!(complaint(said, accepted, &allowed).as_deref(), expected);
        };
        let fine = "[21-Nov-2026 17:00:00] NOTICE: configuration file /x test is successful\n";
        let warning = "[21-Nov-2026 17:00:00] WARNING: [pool www] something odd\n";
        check(fine, true, &[], None);
        check(&format!("{warning}{fine}"), true, &[], Some("WARNING: [pool www] something odd"));
        check(&format!("{warning}{fine}"), true, &["something odd"], None);
        check("", false, &[], Some("the configuration is refused without a reason"));
    }

    #[test]
    fn a_status_page() {
        let page = "pool:                 www\naccepted conn:        12\nlisten queue:         0\nidle processes:       1\n\
                    active processes:     2\ntotal processes:      3\nmax active processes: 3\nmax children reached: 4\n\
                    listen queue len:     511\n";
        let (queue, queue_limit) = (Some(0), Some(511));
        let expected = FpmStatus { active: 2, idle: 1, queue, queue_limit, accepted: 12, limit_reached: 4 };
        assert_eq!(parse(page), Some(expected));
        assert_eq!(parse("File not found.\n"), None);
    }
}
