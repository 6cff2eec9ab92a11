//! PHP-FPM: its pools, their directives, and the processes of each.

use super::files::{Files, expand};
use super::is_here;
use super::processes::{Process, memory, words};
use model::check::{Pool, Setting};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const MASTER: &str = "php-fpm: master process (";
const OF_POOL: &str = "php-fpm: pool ";

/// The places that a server passes requests to by FastCGI.
#[derive(Debug)]
pub(super) struct Passed<'a> {
    /// The first process of the server: it sees socket files below its own root.
    pub(super) by: u32,
    pub(super) to: &'a [String],
}

/// Where connections to a socket of a pool's are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Door {
    /// A socket file, as it is seen from here.
    File(PathBuf),
    Address(SocketAddr),
}

/// The door that PHP-FPM with that first process calls so; `None` of a name that would have to be looked up.
pub(super) fn door(proc_root: &Path, root: u32, listen: &str) -> Option<Door> {
    let Some((host, port)) = place(listen) else {
        return Some(Door::File(within(&root_of(proc_root, root), Path::new(listen))));
    };
    let ip = addresses(host).into_iter().next()?;
    let here = if ip.is_ipv4() { IpAddr::from(Ipv4Addr::LOCALHOST) } else { Ipv6Addr::LOCALHOST.into() };
    Some(Door::Address(SocketAddr::new(if ip.is_unspecified() { here } else { ip }, port)))
}

/// The pools that listen where requests are passed to, and the places at which none was found; none of these where somebody has another
/// root, whose links and names cannot always be followed.
pub(super) fn pools(
    proc_root: &Path,
    all: &[Process],
    passed: &Passed<'_>,
    files: &mut Files,
) -> (Vec<Pool>, Vec<String>) {
    // Whose files could not be read is then of no interest.
    if passed.to.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let server = root_of(proc_root, passed.by);
    let mut is_ours = server == Path::new("/");
    let mut missing: Vec<String> = passed.to.to_vec();
    missing.sort_unstable();
    missing.dedup();
    let named = all.iter().filter(|process| process.name.starts_with("php-fpm"));
    let mut found = Vec::new();
    for master in named {
        let title = words(proc_root, master.pid).concat();
        let Some((_, rest)) = title.split_once(MASTER) else { continue };
        let Some((file, _)) = rest.rsplit_once(')') else { continue };
        let root = root_of(proc_root, master.pid);
        is_ours &= root == Path::new("/");
        for (name, settings) in read(&root, Path::new(file), files) {
            let listen = settings.iter().rfind(|setting| setting.name == "listen").map(|setting| setting.value.clone());
            let Some(listen) = listen else { continue };
            let comes_here = |to: &&String| is_same((&server, to), (&root, &listen));
            let here: Vec<&String> = passed.to.iter().filter(comes_here).collect();
            if here.is_empty() {
                continue;
            }
            missing.retain(|to| !here.contains(&to));
            let workers = members(proc_root, all, master.pid, &name);
            let workers = memory(proc_root, &workers);
            found.push(Pool { name, listen, settings, root: master.pid, workers });
        }
    }
    tell_apart(&mut found);
    (found, if is_ours { missing } else { Vec::new() })
}

/// Two PHP-FPM often have a pool `www` each: what is said and counted by a pool's name must mean one of them.
fn tell_apart(pools: &mut [Pool]) {
    let names: Vec<String> = pools.iter().map(|pool| pool.name.clone()).collect();
    for pool in pools {
        if names.iter().filter(|name| **name == pool.name).count() > 1 {
            pool.name.push_str(&of_master(pool.root));
        }
    }
}

fn of_master(root: u32) -> String {
    format!(" (master {root})")
}

/// The workers of a pool that was found.
pub(super) fn workers(proc_root: &Path, all: &[Process], pool: &Pool) -> Vec<u32> {
    let name = pool.name.strip_suffix(&of_master(pool.root)).unwrap_or(&pool.name);
    members(proc_root, all, pool.root, name)
}

fn members(proc_root: &Path, all: &[Process], root: u32, pool: &str) -> Vec<u32> {
    let is_ours = |process: &&Process| {
        process.parent == root
            && words(proc_root, process.pid).concat().strip_prefix(OF_POOL).map(str::trim_end) == Some(pool)
    };
    all.iter().filter(is_ours).map(|process| process.pid).collect()
}

/// Whether what is passed to one place comes to who listens at the other, each with the root of whom it belongs to: `9000` is that port of
/// every address of this machine.
fn is_same((server, to): (&Path, &str), (root, listen): (&Path, &str)) -> bool {
    let (Some((to_host, to_port)), Some((host, port))) = (place(to), place(listen)) else {
        let files = identity(server, to).zip(identity(root, listen));
        return files.map_or(to == listen, |(to, listening)| to == listening);
    };
    let (reached, listening) = (addresses(to_host), addresses(host));
    let is_reached = |at: &IpAddr| reached.iter().any(|to| to == at || at.is_unspecified() && is_here(*to));
    to_port == port && (to_host.eq_ignore_ascii_case(host) || listening.iter().any(is_reached))
}

/// Which file it is that somebody with that root calls so: by whatever links it is reached, it is one. `None` where it may not be seen.
fn identity(root: &Path, name: &str) -> Option<(u64, u64)> {
    let name = Path::new(name).strip_prefix("/").ok()?;
    if root == Path::new("/") {
        return std::fs::metadata(root.join(name)).map(|facts| (facts.dev(), facts.ino())).ok();
    }
    // Links such as /var/run -> /run lead to where they lead below that root, not below ours.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let folder = rustix::fs::open(root, flags, Mode::empty()).ok()?;
    let file = rustix::fs::openat2(folder, name, flags, Mode::empty(), ResolveFlags::IN_ROOT).ok()?;
    rustix::fs::fstat(file).map(|facts| (facts.st_dev, facts.st_ino)).ok()
}

/// Host and port of `9000`, `localhost:9000` or `[::1]:9000`; `None` of a socket file.
fn place(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    Some((host.trim_start_matches('[').trim_end_matches(']'), port.parse().ok()?))
}

/// The addresses of a host; none of a name, which would have to be asked for.
fn addresses(host: &str) -> Vec<IpAddr> {
    match host {
        "" | "*" => vec![Ipv4Addr::UNSPECIFIED.into()],
        "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        host => host.parse::<IpAddr>().into_iter().collect(),
    }
}

/// What a process has as its root, where it may be looked into: two masters in containers have other files by the same name.
fn root_of(proc_root: &Path, pid: u32) -> PathBuf {
    let (root, ours) = (proc_root.join(pid.to_string()).join("root"), PathBuf::from("/"));
    let place = |path: &Path| std::fs::metadata(path).map(|facts| (facts.dev(), facts.ino())).ok();
    if place(&root).is_some_and(|found| Some(found) != place(&ours)) { root } else { ours }
}

/// Pools with their directives, in the order of the files.
fn read(root: &Path, file: &Path, files: &mut Files) -> Vec<(String, Vec<Setting>)> {
    let mut pools = Vec::new();
    let mut section = String::new();
    read_file((root, file), files, &mut section, &mut pools, 0);
    pools
}

/// Where a file of somebody's with that root is for us.
fn within(root: &Path, file: &Path) -> PathBuf {
    root.join(file.strip_prefix("/").unwrap_or(file))
}

/// The files of an `include`. What begins without a slash is meant from PHP-FPM's prefix on, some folder above the file.
fn included(root: &Path, file: &Path, value: &str) -> Vec<PathBuf> {
    let there = |folder: &Path| -> Vec<PathBuf> {
        expand(&within(root, &folder.join(value)), false).into_iter().filter(|path| path.exists()).collect()
    };
    file.ancestors().skip(1).map(there).find(|found| !found.is_empty()).unwrap_or_default()
}

fn read_file(
    (root, file): (&Path, &Path),
    files: &mut Files,
    section: &mut String,
    pools: &mut Vec<(String, Vec<Setting>)>,
    depth: usize,
) {
    let Some(text) = files.text(&within(root, file)).filter(|_| depth < 8) else { return };
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            name.clone_into(section);
            if name != "global" && !pools.iter().any(|(known, _)| known == name) {
                pools.push((name.to_owned(), Vec::new()));
            }
            continue;
        }
        let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with([';', '#'])) else { continue };
        let value = value.split(" ;").next().unwrap_or_default().trim().trim_matches('"').replace("$pool", section);
        let name = name.trim();
        if name == "include" {
            for path in included(root, file, &value) {
                // As its owner calls it.
                let path = path.strip_prefix(root).map_or(path.clone(), |path| Path::new("/").join(path));
                read_file((root, &path), files, section, pools, depth + 1);
            }
        } else if (name == "listen" || name == "listen.backlog" || name.starts_with("pm"))
            && let Some((_, settings)) = pools.iter_mut().find(|(known, _)| known == section)
        {
            settings.push(Setting {
                name: name.to_owned(),
                written: name.to_owned(),
                value,
                file: PathBuf::from(file),
                line: number,
                section: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_of_included_files() {
        let folder = tempfile::tempdir().unwrap();
        let (main, pool) = (folder.path().join("php-fpm.conf"), folder.path().join("pool.d/www.conf"));
        std::fs::create_dir(folder.path().join("pool.d")).unwrap();
        std::fs::write(&main, "[global]\npid = /x\ninclude=pool.d/*.conf\n").unwrap();
        let text =
            "; pm = no\n[www]\nuser = www-data\nlisten = /run/$pool.sock ; here\npm = dynamic\npm.max_children = 5\n";
        std::fs::write(&pool, text).unwrap();
        let found = read(Path::new("/"), &main, &mut Files::default());
        assert_eq!(found.len(), 1);
        let told: Vec<_> = found[0].1.iter().map(|s| format!("{}={}:{}", s.name, s.value, s.line)).collect();
        assert_eq!(
            (found[0].0.as_str(), told.join(" ").as_str()),
            ("www", "listen=/run/www.sock:4 pm=dynamic:5 pm.max_children=5:6")
        );
    }

    #[test]
    fn a_name_without_a_slash_is_meant_from_the_prefix_on() {
        let folder = tempfile::tempdir().unwrap();
        let (main, pool) = (folder.path().join("etc/php-fpm.conf"), folder.path().join("etc/php-fpm.d/www.conf"));
        std::fs::create_dir_all(pool.parent().unwrap()).unwrap();
        std::fs::write(&main, "include=etc/php-fpm.d/*.conf\n").unwrap();
        std::fs::write(&pool, "[www]\nlisten = 9000\n").unwrap();
        assert_eq!(read(Path::new("/"), &main, &mut Files::default()).len(), 1);
    }

    /// Two masters with a pool `www` each, and a root of their own; `1` is the server.
    fn two_masters() -> (tempfile::TempDir, Vec<Process>) {
        let proc = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = proc.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (pid, socket, children) in [(10, "/run/a.sock", 5), (20, "/run/b.sock", 7)] {
            put(&format!("{pid}/cmdline"), "php-fpm: master process (/etc/php/fpm.conf)\0");
            put(&format!("{}/cmdline", pid + 1), "php-fpm: pool www\0");
            put(&format!("{pid}/root/etc/php/fpm.conf"), "[global]\ninclude=/etc/php/pool.d/*.conf\n");
            let pool = format!("[www]\nlisten = {socket}\npm.max_children = {children}\n");
            put(&format!("{pid}/root/etc/php/pool.d/www.conf"), &pool);
        }
        let name = || "php-fpm8.2".to_owned();
        let process = |pid, parent| Process { pid, parent, name: name(), threads: 1, ticks: 0, started: 0, session: 1 };
        (proc, vec![process(10, 1), process(11, 10), process(20, 1), process(21, 20)])
    }

    fn found(proc: &Path, all: &[Process], to: &[&str]) -> (Vec<Pool>, Vec<String>) {
        let to: Vec<String> = to.iter().map(|&to| to.to_owned()).collect();
        pools(proc, all, &Passed { by: 1, to: &to }, &mut Files::default())
    }

    #[test]
    fn each_master_has_its_own_files() {
        let (proc, all) = two_masters();
        let told = |to: &str| {
            let of = |pool: &Pool| {
                let limit = pool.setting("pm.max_children").unwrap();
                format!("{} {} {} {}", pool.name, pool.root, limit.value, limit.place())
            };
            found(proc.path(), &all, &[to]).0.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(told("/run/a.sock"), ["www 10 5 /etc/php/pool.d/www.conf:3"]);
        assert_eq!(told("/run/b.sock"), ["www 20 7 /etc/php/pool.d/www.conf:3"]);
    }

    #[test]
    fn pools_of_one_name_are_told_apart() {
        let (proc, all) = two_masters();
        let (pools, missing) = found(proc.path(), &all, &["/run/a.sock", "/run/b.sock"]);
        let told: Vec<_> = pools.iter().map(|pool| (&*pool.name, workers(proc.path(), &all, pool))).collect();
        assert_eq!(told, [("www (master 10)", vec![11]), ("www (master 20)", vec![21])]);
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_door_is_seen_from_here() {
        let (proc, _) = two_masters();
        let check = |root: u32, listen: &str, expected: Option<Door>| {
            assert_eq!(door(proc.path(), root, listen), expected, "{listen}");
        };
        let at = |address: &str| Some(Door::Address(address.parse().unwrap()));
        check(10, "9001", at("127.0.0.1:9001"));
        check(10, "*:9001", at("127.0.0.1:9001"));
        check(10, "[::]:9001", at("[::1]:9001"));
        check(10, "localhost:9001", at("127.0.0.1:9001"));
        check(10, "192.0.2.1:9001", at("192.0.2.1:9001"));
        check(10, "php:9001", None);
        check(10, "/run/s.sock", Some(Door::File(proc.path().join("10/root/run/s.sock"))));
        check(9, "/run/s.sock", Some(Door::File("/run/s.sock".into())));
    }

    #[test]
    fn where_nobody_listens() {
        let (proc, all) = two_masters();
        let places = ["php:9000", "/run/a.sock", "/run/c.sock", "php:9000"];
        let nobody = vec!["/run/a.sock".to_owned(), "/run/c.sock".to_owned(), "php:9000".to_owned()];
        assert_eq!(found(proc.path(), &[], &places).1, nobody);
        // Masters with roots of their own may listen there after all.
        let (pools, missing) = found(proc.path(), &all, &places);
        assert_eq!((pools.len(), missing), (1, Vec::<String>::new()));
    }

    /// A folder with a link to a folder, and one to a file: `run/a.sock` is `var/run/a.sock` and `run/php.sock`, too.
    #[test]
    fn a_socket_file_is_one_by_whatever_links() {
        use std::os::unix::fs::symlink;
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for root in [own.path(), other.path()] {
            std::fs::create_dir_all(root.join("run")).unwrap();
            std::fs::create_dir_all(root.join("var")).unwrap();
            std::fs::write(root.join("run/a.sock"), "").unwrap();
            std::fs::write(root.join("run/b.sock"), "").unwrap();
            // As distributions make them: from the root, whose that ever is.
            symlink("/run", root.join("var/run")).unwrap();
            symlink("/var/run/a.sock", root.join("run/php.sock")).unwrap();
        }
        let check = |to: &str, listen: &str, expected: bool| {
            assert_eq!(is_same((own.path(), to), (own.path(), listen)), expected, "{to} {listen}");
        };
        check("/var/run/a.sock", "/run/a.sock", true);
        check("/run/php.sock", "/run/a.sock", true);
        check("/run/a.sock", "/var/run/a.sock", true);
        check("/run/php.sock", "/run/b.sock", false);
        // One that is not there has only its name.
        check("/run/c.sock", "/run/c.sock", true);
        check("/run/c.sock", "/run/a.sock", false);
        assert!(!is_same((own.path(), "/run/a.sock"), (other.path(), "/run/a.sock")), "another root, another file");
        // With our own root.
        let path = |name: &str| own.path().join(name).display().to_string();
        symlink("a.sock", own.path().join("run/alternative.sock")).unwrap();
        let root = Path::new("/");
        assert!(is_same((root, &path("run/alternative.sock")), (root, &path("run/a.sock"))));
    }

    #[test]
    fn places() {
        let check = |to: &str, listen: &str, expected: bool| {
            let root = Path::new("/");
            assert_eq!(is_same((root, to), (root, listen)), expected, "{to} {listen}");
        };
        check("/run/a.sock", "/run/a.sock", true);
        check("/run/a.sock", "/run/b.sock", false);
        for listen in ["9000", "*:9000", "0.0.0.0:9000", "[::]:9000", "127.0.0.1:9000", "localhost:9000"] {
            check("127.0.0.1:9000", listen, true);
            check("localhost:9000", listen, true);
            check("127.0.0.1:9001", listen, false);
            // An address for documents: no machine has it.
            check("192.0.2.1:9000", listen, false);
        }
        check("[::1]:9000", "[::1]:9000", true);
        check("[::1]:9000", "127.0.0.1:9000", false);
        check("127.0.0.2:9000", "127.0.0.1:9000", false);
        check("192.0.2.1:9000", "192.0.2.1:9000", true);
        check("php:9000", "php:9000", true);
        check("php:9000", "127.0.0.1:9000", false);
    }
}
