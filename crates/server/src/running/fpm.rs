//! PHP-FPM: its pools, their directives, and the processes of each.

use super::files::{Files, expand};
use super::processes::{Process, memory, words};
use model::check::{Pool, Setting};
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
        for (name, settings) in read(Path::new(file), files) {
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

/// `9000` and `127.0.0.1:9000` are the same place.
fn is_same(to: &str, listen: &str) -> bool {
    let port = |text: &str| text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    to == listen || (port(to).is_some() && port(to) == port(listen))
}

/// Pools with their directives, in the order of the files.
fn read(file: &Path, files: &mut Files) -> Vec<(String, Vec<Setting>)> {
    let mut pools = Vec::new();
    let mut section = String::new();
    read_file(file, files, &mut section, &mut pools, 0);
    pools
}

fn read_file(
    file: &Path,
    files: &mut Files,
    section: &mut String,
    pools: &mut Vec<(String, Vec<Setting>)>,
    depth: usize,
) {
    let Some(text) = files.text(file).filter(|_| depth < 8) else { return };
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
            for path in expand(&file.parent().unwrap_or(Path::new("/")).join(&value), false) {
                read_file(&path, files, section, pools, depth + 1);
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
        let found = read(&main, &mut Files::default());
        assert_eq!(found.len(), 1);
        let told: Vec<_> = found[0].1.iter().map(|s| format!("{}={}:{}", s.name, s.value, s.line)).collect();
        assert_eq!(
            (found[0].0.as_str(), told.join(" ").as_str()),
            ("www", "listen=/run/www.sock:4 pm=dynamic:5 pm.max_children=5:6")
        );
    }

    #[test]
    fn places() {
        assert!(is_same("127.0.0.1:9000", "9000") && is_same("/run/a.sock", "/run/a.sock"));
        assert!(!is_same("/run/a.sock", "/run/b.sock") && !is_same("127.0.0.1:9000", "9001"));
    }
}
