//! Who listens at an address: the sockets, their owners, and the root of the processes that hold them.

use super::processes::{Process, roots};
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// A socket that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listening {
    address: SocketAddr,
    pub(super) inode: u64,
}

/// The sockets that take connections to `address`: those bound to it, else those bound to every address.
pub(super) fn listening(proc_root: &Path, address: SocketAddr) -> Vec<Listening> {
    let table = |name: &str| fs::read_to_string(proc_root.join("net").join(name)).unwrap_or_default();
    let all: Vec<Listening> = ["tcp", "tcp6"].iter().flat_map(|name| parse(&table(name))).collect();
    let at = |wanted: &dyn Fn(IpAddr) -> bool| -> Vec<Listening> {
        let fits = |one: &&Listening| one.address.port() == address.port() && wanted(one.address.ip());
        all.iter().filter(fits).cloned().collect()
    };
    let exactly = at(&|ip| ip.to_canonical() == address.ip().to_canonical());
    if exactly.is_empty() { at(&|ip| ip.is_unspecified()) } else { exactly }
}

/// Lines of /proc/net/tcp in state 0A.
fn parse(table: &str) -> Vec<Listening> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (ip, port) = fields.get(1)?.split_once(':')?;
        (*fields.get(3)? == "0A").then_some(())?;
        let address = SocketAddr::new(ip_of(ip)?, u16::from_str_radix(port, 16).ok()?);
        Some(Listening { address, inode: fields.get(9)?.parse().ok()? })
    };
    table.lines().skip(1).filter_map(line).collect()
}

/// Words of 32 bits in the machine's own order.
fn ip_of(hex: &str) -> Option<IpAddr> {
    let words = hex.as_bytes().chunks(8).map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok());
    let bytes: Vec<u8> = words.collect::<Option<Vec<u32>>>()?.into_iter().flat_map(u32::to_ne_bytes).collect();
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some(Ipv4Addr::from(four).into());
    }
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).into())
}

/// The roots of the processes that hold one of the sockets; none where none may be seen.
pub(super) fn owners(proc_root: &Path, sockets: &[Listening], all: &[Process]) -> Vec<u32> {
    let names: Vec<String> = sockets.iter().map(|socket| format!("socket:[{}]", socket.inode)).collect();
    let holds = |process: &&Process| {
        let files = fs::read_dir(proc_root.join(process.pid.to_string()).join("fd")).into_iter().flatten().flatten();
        files
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|link| names.iter().any(|name| link == Path::new(name)))
    };
    let mut holders: BTreeSet<u32> = all.iter().filter(holds).map(|process| process.pid).collect();
    // systemd keeps the sockets that it made for others, and is no server; the first process of a container can be one.
    if all.iter().any(|process| process.pid == 1 && ["systemd", "init"].contains(&process.name.as_str())) {
        holders.remove(&1);
    }
    roots(all, &holders)
}

#[cfg(test)]
mod tests {
    use super::super::processes;
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn our_own_socket_is_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proc = Path::new("/proc");
        let sockets = listening(proc, listener.local_addr().unwrap());
        assert_eq!(sockets.len(), 1, "{sockets:?}");
        assert!(owners(proc, &sockets, &processes::all(proc)).contains(&std::process::id()));
    }

    #[test]
    fn a_socket_that_systemd_made_is_its_servers() {
        let folder = tempfile::tempdir().unwrap();
        let process = |pid: u32, parent: u32, name: &str| Process {
            pid,
            parent,
            session: 0,
            name: name.to_owned(),
            threads: 1,
            ticks: 0,
            started: 0,
        };
        let socket = Listening { address: "127.0.0.1:80".parse().unwrap(), inode: 7 };
        let check = |all: &[Process], holding: &[u32], expected: &[u32]| {
            for process in all {
                let files = folder.path().join(process.pid.to_string()).join("fd");
                let _ = fs::remove_dir_all(&files);
                fs::create_dir_all(&files).unwrap();
                if holding.contains(&process.pid) {
                    std::os::unix::fs::symlink("socket:[7]", files.join("3")).unwrap();
                }
            }
            assert_eq!(owners(folder.path(), std::slice::from_ref(&socket), all), expected);
        };
        let all = [process(1, 0, "systemd"), process(5, 1, "gunicorn"), process(6, 5, "gunicorn")];
        check(&all, &[1, 5, 6], &[5]);
        // Nobody has come for it yet.
        check(&all, &[1], &[]);
        // The first process of a container is the server itself.
        let contained = [process(1, 0, "nginx"), process(5, 1, "nginx")];
        check(&contained, &[1, 5], &[1]);
    }

    #[test]
    fn a_socket_for_every_address_takes_what_no_other_does() {
        let folder = tempfile::tempdir().unwrap();
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let line = |address: &str, state: &str, inode: u64| {
            format!(
                "   0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1\n"
            )
        };
        fs::create_dir(folder.path().join("net")).unwrap();
        let four = [line("00000000:0050", "0A", 7), line("0100007F:0050", "01", 8), line("0200007F:0050", "0A", 9)];
        fs::write(folder.path().join("net/tcp"), format!("{head}{}", four.concat())).unwrap();
        let six = line("00000000000000000000000000000000:1F90", "0A", 11);
        fs::write(folder.path().join("net/tcp6"), format!("{head}{six}")).unwrap();
        let check = |address: &str, expected: &[u64]| {
            let found = listening(folder.path(), address.parse().unwrap());
            assert_eq!(found.iter().map(|socket| socket.inode).collect::<Vec<_>>(), expected, "{address}");
        };
        check("127.0.0.1:80", &[7]);
        check("127.0.0.2:80", &[9]);
        check("127.0.0.1:8080", &[11]);
        check("127.0.0.1:81", &[]);
    }
}
