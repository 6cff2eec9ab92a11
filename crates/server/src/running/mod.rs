//! A server that runs already, of which nobody told us anything: who listens, which server it is, and how it is set.
//!
//! Everything is read from /proc and from the files of the configuration, as far as this user may; what may not be seen is named.
//! Nothing is asked of the server, and no program is run.

mod apache;
mod bounds;
mod census;
mod cpus;
mod files;
mod fpm;
mod group;
mod nginx;
pub(crate) mod processes;
mod program;
mod socket;

use crate::lossy::read_lossy;
pub(crate) use apache::flags;
pub use bounds::Bounds;
pub use census::{Between, Census, others};
pub(crate) use cpus::online;
use files::Files;
pub(crate) use files::expand;
pub(crate) use fpm::Door;
use host::{Host, HostError, variables};
use model::check::{Found, Kind, Measure, Running, Unseen, WorkerMemory};
use processes::{Process, all, memory, tree, words};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Clock ticks per second in /proc, the same on every Linux.
const TICKS_PER_SECOND: u64 = 100;
/// Where a distribution has it, when the command line does not say.
const APACHE_FILES: [(&str, &str); 3] = [
    ("/etc/apache2/apache2.conf", "/etc/apache2"),
    ("/etc/httpd/conf/httpd.conf", "/etc/httpd"),
    ("/usr/local/apache2/conf/httpd.conf", "/usr/local/apache2"),
];
const NGINX_FILES: [&str; 2] = ["/etc/nginx/nginx.conf", "/usr/local/nginx/conf/nginx.conf"];
/// Places without a pool that are named; more would only be a long line.
const MOST_PLACES: usize = 3;

/// Where the kernel tells of processes and groups: /proc and /sys.
pub(crate) const PROC: &str = "/proc";
const SYS: &str = "/sys";

/// Looks who answers at an address of this machine; `says` is what it calls itself in its answers (`Server`).
///
/// It takes the time of reading some files, about a millisecond for a hundred processes.
#[must_use]
pub fn look(address: SocketAddr, says: Option<&str>) -> Running {
    let (proc_root, sys_root) = (Path::new(PROC), Path::new(SYS));
    let mut running = Running { server: says.map(str::to_owned), ..Running::default() };
    if !is_here(address.ip()) {
        running.unseen.push(Unseen::Elsewhere);
        return running;
    }
    let somaxconn = std::fs::read_to_string(proc_root.join("sys/net/core/somaxconn"));
    running.somaxconn = somaxconn.ok().and_then(|text| text.trim().parse().ok());
    let everybody = all(proc_root);
    let sockets = socket::listening(proc_root, address);
    let owners = socket::owners(proc_root, &sockets, &everybody);
    (running.root, running.found) = match owners[..] {
        [owner, ..] => (Some(owner), Found::Socket),
        [] => match by_name(&everybody, says, address.port(), proc_root) {
            Some(root) => (Some(root), Found::Name),
            None => (None, Found::Not),
        },
    };
    if running.found != Found::Socket {
        running.unseen.push(Unseen::Owner);
    }
    let Some(root) = running.root else { return running };
    describe(&mut running, root, &everybody, proc_root);
    running.group = group::of(proc_root, sys_root, root);
    running.cpus = cpus_of(proc_root, sys_root, &running, root);
    running
}

/// What the groups around the server with that first process leave it, where none of them is ours.
#[must_use]
pub fn bounds(root: u32) -> Bounds {
    bounds::of(Path::new(PROC), Path::new(SYS), root, std::process::id())
}

/// The pools of PHP-FPM to which the server with that first process passes requests, and what of that is not known.
pub(crate) fn pools_of(root: u32) -> (Vec<model::check::Pool>, Vec<Unseen>) {
    let (mut running, proc_root) = (Running::default(), Path::new(PROC));
    describe(&mut running, root, &all(proc_root), proc_root);
    running.unseen.retain(|it| matches!(it, Unseen::File(_) | Unseen::Pool(_)));
    (running.pools, running.unseen)
}

/// Where connections to a socket are made that PHP-FPM with that first process calls so.
pub(crate) fn door(root: u32, listen: &str) -> Option<Door> {
    fpm::door(Path::new(PROC), root, listen)
}

/// An error when a run other than `own` has the server in place that takes connections to an address: it changes what would be measured there.
///
/// # Errors
/// When it has.
pub fn not_taken(address: SocketAddr, own: Option<&Host>) -> Result<(), HostError> {
    if is_here(address.ip()) { host::door_not_taken(address, own) } else { Ok(()) }
}

/// CPUs that it may use, if not all. Nothing is said where server and pools live in different groups: quotas of their own would add up, that of
/// a group around both would not.
fn cpus_of(proc_root: &Path, sys_root: &Path, running: &Running, root: u32) -> Option<f64> {
    let group = |pid: u32| read_lossy(proc_root.join(pid.to_string()).join("cgroup")).ok();
    let of_root = group(root);
    let together = running.pools.iter().all(|pool| group(pool.root) == of_root);
    if together { cpus::of(proc_root, sys_root, root) } else { None }
}

/// Looks again what its workers hold: the server's own under its own name, and those of each pool.
#[must_use]
pub fn memory_of(running: &Running) -> Vec<(String, WorkerMemory)> {
    let proc_root = Path::new(PROC);
    let everybody = all(proc_root);
    let own = running.root.and_then(|root| Some((String::new(), memory(proc_root, &workers(&everybody, root))?)));
    let of_pool = |pool: &model::check::Pool| {
        let members = fpm::workers(proc_root, &everybody, pool);
        Some((pool.name.clone(), memory(proc_root, &members)?))
    };
    own.into_iter().chain(running.pools.iter().filter_map(of_pool)).collect()
}

/// Clock ticks that its processes and those of its pools have used so far; `None` when they are not known.
#[must_use]
pub fn ticks(running: &Running) -> Option<u64> {
    let roots: BTreeSet<u32> = running.pools.iter().map(|pool| pool.root).chain([running.root?]).collect();
    let everybody = all(Path::new(PROC));
    Some(roots.iter().flat_map(|&root| tree(&everybody, root)).map(|process| process.ticks).sum())
}

/// Clock ticks that the workers of each pool that are there now have used so far.
#[must_use]
pub fn pool_ticks(running: &Running) -> Vec<(String, u64)> {
    if running.pools.is_empty() {
        return Vec::new();
    }
    let everybody = all(Path::new(PROC));
    let of_pool = |pool: &model::check::Pool| {
        let members = fpm::workers(Path::new(PROC), &everybody, pool);
        let used = everybody.iter().filter(|process| members.contains(&process.pid)).map(|process| process.ticks);
        (pool.name.clone(), used.sum())
    };
    running.pools.iter().map(of_pool).collect()
}

fn is_here(ip: IpAddr) -> bool {
    // A socket can be bound to the addresses of this machine only.
    ip.is_loopback() || std::net::UdpSocket::bind((ip, 0)).is_ok()
}

/// The one master of the server that the answers name whose configuration listens on that port; of a single one whose
/// configuration cannot be read the name is enough.
fn by_name(everybody: &[Process], says: Option<&str>, port: u16, proc_root: &Path) -> Option<u32> {
    let says = says?.to_ascii_lowercase();
    let names: &[&str] = match () {
        () if says.starts_with("apache") => &["apache2", "httpd"],
        () if says.starts_with("nginx") => &["nginx"],
        () => return None,
    };
    let named = everybody.iter().filter(|process| names.contains(&process.name.as_str())).map(|process| process.pid);
    let masters = processes::roots(everybody, &named.collect());
    let read = |&root: &u32| {
        let mut running = Running::default();
        describe(&mut running, root, everybody, proc_root);
        running
    };
    let listening: Vec<u32> = masters.iter().copied().filter(|root| listens(&read(root), port)).collect();
    match (&listening[..], &masters[..]) {
        ([one], _) => Some(*one),
        ([], [only]) if !read(only).is_read() => Some(*only),
        _ => None,
    }
}

/// Whether a configuration says that the server listens there: `Listen 127.0.0.1:80`, `Listen 80 http`, `listen [::]:80 backlog=5`.
fn listens(running: &Running, port: u16) -> bool {
    let said = running.settings.iter().filter(|setting| setting.name.eq_ignore_ascii_case("listen"));
    let port_of = |value: &str| value.split_ascii_whitespace().next()?.rsplit(':').next()?.parse::<u16>().ok();
    said.filter_map(|setting| port_of(&setting.value)).any(|said| said == port)
}

fn workers(everybody: &[Process], root: u32) -> Vec<u32> {
    let children = everybody.iter().filter(|process| process.parent == root).map(|process| process.pid);
    let children: Vec<u32> = children.collect();
    if children.is_empty() { vec![root] } else { children }
}

fn describe(running: &mut Running, root: u32, everybody: &[Process], proc_root: &Path) {
    let members = tree(everybody, root);
    running.processes = members.len() as u64;
    running.threads = members.iter().map(|process| process.threads).sum();
    running.workers = memory(proc_root, &workers(everybody, root));
    if running.workers.is_some_and(|workers| workers.measure != Measure::Unshared) {
        running.unseen.push(Unseen::Shares);
    }
    let Some(first) = members.iter().find(|process| process.pid == root) else { return };
    let mut files = Files::default();
    let fcgi = match first.name.as_str() {
        "apache2" | "httpd" => read_apache(running, root, proc_root, &mut files),
        "nginx" => read_nginx(running, root, proc_root, &mut files),
        _ => return,
    };
    let passed = fpm::Passed { by: root, to: &fcgi };
    let (pools, missing) = fpm::pools(proc_root, everybody, &passed, &mut files);
    running.pools = pools;
    // What was not read may be the pool's file, and is named below.
    running.unseen.extend(no_pool(missing).filter(|_| files.unread.is_empty()));
    running.unseen.extend(files.unread.iter().cloned().map(Unseen::File));
    if let Some((changed, path)) = files.youngest
        && started_at(proc_root, first).is_some_and(|started| changed > started + 1)
    {
        running.unseen.push(Unseen::Changed(path.display().to_string()));
    }
}

/// Places at which no pool was found, in one sentence, the first few by name.
fn no_pool(mut places: Vec<String>) -> Option<Unseen> {
    // A variable is another place with each request.
    places.retain(|place| !place.contains('$'));
    if places.len() > MOST_PLACES {
        places.truncate(MOST_PLACES);
        places.push("...".to_owned());
    }
    (!places.is_empty()).then(|| Unseen::Pool(places.join(", ")))
}

fn read_apache(running: &mut Running, root: u32, proc_root: &Path, files: &mut Files) -> Vec<String> {
    let started = apache::Started::of(&words(proc_root, root));
    let usual = APACHE_FILES.iter().find(|(file, _)| Path::new(file).exists());
    let server_root = started.root.clone().or_else(|| match &started.file {
        Some(file) => file.parent().map(Path::to_owned),
        None => usual.map(|(_, root)| PathBuf::from(root)),
    });
    let server_root = server_root.unwrap_or_else(|| PathBuf::from("/"));
    let of_root =
        || ["conf/httpd.conf", "apache2.conf"].iter().map(|name| server_root.join(name)).find(|file| file.exists());
    let named = started.file.as_ref().map(|file| server_root.join(file));
    let found = named.or_else(|| started.root.as_ref().and_then(|_| of_root()));
    running.kind = Kind::Apache;
    let Some(file) = found.or_else(|| usual.map(|(file, _)| PathBuf::from(file))) else { return Vec::new() };
    let program = program::Program::of(proc_root, root, running.server.as_deref());
    let variables = environment(proc_root, root, &server_root);
    let read = apache::read(&file, &server_root, &started, &program, variables, files);
    running.kind = read.kind;
    // Of a file that cannot be opened nothing is known, least of all that everything is as by default.
    running.file =
        (!files.unread.iter().any(|unread| unread.starts_with(&format!("{}:", file.display())))).then_some(file);
    running.settings = read.settings;
    read.fcgi
}

/// What stands in the process's own environment, else in the file that Debian's scripts read.
fn environment(proc_root: &Path, pid: u32, server_root: &Path) -> BTreeMap<String, String> {
    if let Ok(bytes) = std::fs::read(proc_root.join(pid.to_string()).join("environ"))
        && !bytes.is_empty()
    {
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        return variables(&bytes).into_iter().filter_map(text).collect();
    }
    apache::variables(&read_lossy(server_root.join("envvars")).unwrap_or_default())
}

fn read_nginx(running: &mut Running, root: u32, proc_root: &Path, files: &mut Files) -> Vec<String> {
    running.kind = Kind::Nginx;
    let (named, prefix) = nginx::file_of(&words(proc_root, root));
    let named = named.map(|file| prefix.clone().unwrap_or_default().join(file));
    let of_prefix = || prefix.as_ref().map(|prefix| prefix.join("conf/nginx.conf"));
    let usual = || NGINX_FILES.iter().map(PathBuf::from).find(|file| file.exists());
    let Some(file) = named.or_else(of_prefix).or_else(usual) else { return Vec::new() };
    let read = nginx::read(&file, files);
    running.file =
        (!files.unread.iter().any(|unread| unread.starts_with(&format!("{}:", file.display())))).then_some(file);
    running.settings = read.settings;
    read.fcgi
}

/// When a process started, in seconds since 1970.
fn started_at(proc_root: &Path, process: &Process) -> Option<u64> {
    let stat = std::fs::read_to_string(proc_root.join("stat")).ok()?;
    let boot: u64 = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(boot + process.started / TICKS_PER_SECOND)
}
