//! PHP-FPM: its pools, their directives, and the processes of each.

use super::files::{Files, expand};
use super::is_here;
use super::processes::{Process, memory, words};
use model::check::{Pool, Setting};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const MASTER: &str = "php-fpm: master process (";
const OF_POOL: &str = "php-fpm: pool ";

/// The pools that listen where `fcgi` says requests are passed to.
pub(super) fn pools(proc_root: &Path, all: &[Process], fcgi: &[String], files: &mut Files) -> Vec<Pool> {
    let named = all.iter().filter(|process| process.name.starts_with("php-fpm"));
    let mut found = Vec::new();
    for master in named {
        let title = words(proc_root, master.pid).concat();
        let Some((_, rest)) = title.split_once(MASTER) else { continue };
        let Some((file, _)) = rest.rsplit_once(')') else { continue };
        for (name, settings) in read(&root_of(proc_root, master.pid), Path::new(file), files) {
            let listen = settings.iter().rfind(|setting| setting.name == "listen").map(|setting| setting.value.clone());
            let Some(listen) = listen.filter(|listen| fcgi.iter().any(|to| is_same(to, listen))) else { continue };
            let workers = members(proc_root, all, master.pid, &name);
            let workers = memory(proc_root, &workers);
            found.push(Pool { name, listen, settings, root: master.pid, workers });
        }
    }
    found
}

/// The workers of a pool.
pub(super) fn members(proc_root: &Path, all: &[Process], root: u32, pool: &str) -> Vec<u32> {
    let is_ours = |process: &&Process| {
        process.parent == root
            && words(proc_root, process.pid).concat().strip_prefix(OF_POOL).map(str::trim_end) == Some(pool)
    };
    all.iter().filter(is_ours).map(|process| process.pid).collect()
}

/// Whether what is passed to one place comes to who listens at the other: `9000` is that port of every address of this machine.
fn is_same(to: &str, listen: &str) -> bool {
    let (Some((to_host, to_port)), Some((host, port))) = (place(to), place(listen)) else { return to == listen };
    let (reached, listening) = (addresses(to_host), addresses(host));
    let is_reached = |at: &IpAddr| reached.iter().any(|to| to == at || at.is_unspecified() && is_here(*to));
    to_port == port && (to_host.eq_ignore_ascii_case(host) || listening.iter().any(is_reached))
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
            for path in expand(&within(root, &file.parent().unwrap_or(Path::new("/")).join(&value)), false) {
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
    fn each_master_has_its_own_files() {
        let proc = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = proc.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (pid, socket, children) in [(10, "/run/a.sock", 5), (20, "/run/b.sock", 7)] {
            put(&format!("{pid}/cmdline"), "php-fpm: master process (/etc/php/fpm.conf)\0");
            put(&format!("{pid}/root/etc/php/fpm.conf"), "[global]\ninclude=/etc/php/pool.d/*.conf\n");
            let pool = format!("[www]\nlisten = {socket}\npm.max_children = {children}\n");
            put(&format!("{pid}/root/etc/php/pool.d/www.conf"), &pool);
        }
        let process = |pid| Process {
            pid,
            parent: 1,
            name: "php-fpm8.2".to_owned(),
            threads: 1,
            ticks: 0,
            started: 0,
            session: 1,
        };
        let all = [process(10), process(20)];
        let told = |to: &str| {
            let found = pools(proc.path(), &all, &[to.to_owned()], &mut Files::default());
            let of = |pool: &Pool| {
                let limit = pool.setting("pm.max_children").unwrap();
                format!("{} {} {}", pool.root, limit.value, limit.place())
            };
            found.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(told("/run/a.sock"), ["10 5 /etc/php/pool.d/www.conf:3"]);
        assert_eq!(told("/run/b.sock"), ["20 7 /etc/php/pool.d/www.conf:3"]);
    }

    #[test]
    fn places() {
        let check = |to: &str, listen: &str, expected: bool| assert_eq!(is_same(to, listen), expected, "{to} {listen}");
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
