//! A port for an instance, which a server can listen on a moment later.
//!
//! The kernel gives client connections ports of one range, and a load uses up thousands of them in a second. A port that was free when it
//! was chosen there is taken when the server has read its configuration; outside that range only another server can take it.

use crate::ServerError;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// How many ports to try when others take them between choosing and listening.
const TRIES: usize = 16;
/// Below, only root may listen.
const FIRST: u16 = 1024;

/// Calls `start` with a port that is free, and with others as long as it says that somebody else has taken it.
pub(crate) fn with_free_port<T>(start: impl FnMut(u16) -> Result<T, ServerError>) -> Result<T, ServerError> {
    first_free(all(), start)
}

/// The same with several ports at once, each another.
pub(crate) fn with_free_ports<T>(
    count: usize,
    mut start: impl FnMut(&[u16]) -> Result<T, ServerError>,
) -> Result<T, ServerError> {
    with_free_port(|first| {
        let mut ports = vec![first];
        ports.extend(all().filter(|&port| port != first && listen(port).is_ok()).take(count.saturating_sub(1)));
        if ports.len() < count {
            return Err(ServerError::io("find so many free ports on", Path::new("127.0.0.1"))(
                io::ErrorKind::AddrInUse.into(),
            ));
        }
        match start(&ports) {
            // Whichever of them was taken, all of them are chosen anew.
            Err(ServerError::PortInUse(taken)) if ports.contains(&taken.port()) => {
                Err(ServerError::PortInUse((Ipv4Addr::LOCALHOST, first).into()))
            }
            done => done,
        }
    })
}

/// All ports that no client gets, from a random one on.
fn all() -> impl Iterator<Item = u16> {
    // Without /proc nothing is known, and the kernel chooses.
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut bytes = [0; 4];
    // Should the kernel have no randomness, instances meet, and go on to the next port.
    let _ = getrandom(&mut bytes[..], GetRandomFlags::empty());
    candidates(&range, u32::from_ne_bytes(bytes) as usize)
}

fn first_free<T>(
    candidates: impl Iterator<Item = u16>,
    mut start: impl FnMut(u16) -> Result<T, ServerError>,
) -> Result<T, ServerError> {
    let free = candidates.filter(|&port| listen(port).is_ok()).map(Ok).take(TRIES);
    // All of them are taken, or clients may have any port.
    let chosen = std::iter::repeat_with(|| listen(0)).take(TRIES);
    let mut last = None;
    for port in free.chain(chosen) {
        let port = port.map_err(ServerError::io("find a free port on", Path::new("127.0.0.1")))?;
        match start(port) {
            Err(ServerError::PortInUse(taken)) if taken.port() == port => last = Some(taken),
            done => return done,
        }
    }
    Err(ServerError::PortInUse(last.expect("the kernel was asked at least once")))
}

/// Ports that no client gets, each once, beginning at a random one. `range` is the first and the last port for clients, as the kernel
/// writes them.
fn candidates(range: &str, random: usize) -> impl Iterator<Item = u16> + use<> {
    let mut ends = range.split_whitespace().map(str::parse::<u16>);
    let ports: Vec<u16> = match (ends.next(), ends.next()) {
        (Some(Ok(low)), Some(Ok(high))) => (FIRST..=u16::MAX).filter(|port| !(low..=high).contains(port)).collect(),
        _ => Vec::new(),
    };
    let count = ports.len();
    (0..count).map(move |i| ports[(random % count + i) % count])
}

/// The port that was free just now; 0 lets the kernel choose one.
fn listen(port: u16) -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::SocketAddr;

    fn in_use(port: u16) -> ServerError {
        ServerError::PortInUse(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    #[test]
    fn no_client_gets_these() {
        let check = |range: &str, random: usize, expected: &[u16]| {
            assert_eq!(candidates(range, random).collect::<Vec<_>>(), expected, "{range}");
        };
        check("1026\t65533\n", 0, &[1024, 1025, 65534, 65535]);
        check("1026\t65533\n", 7, &[65535, 1024, 1025, 65534]);
        check("1026\t65535\n", 1, &[1025, 1024]);
        check("1024\t65535\n", 1, &[]);
        check("", 1, &[]);
        let usual: BTreeSet<u16> = candidates("32768\t60999\n", 12_345).collect();
        assert_eq!(usual.len(), 32_768 - 1024 + 65_535 - 60_999);
        assert!(usual.iter().all(|port| !(32_768..=60_999).contains(port)));
    }

    #[test]
    fn another_port_is_tried_while_they_are_taken() {
        let mut seen = Vec::new();
        let got = with_free_port(|port| {
            seen.push(port);
            if seen.len() <= 12 { Err(in_use(port)) } else { Ok(port) }
        });
        assert_eq!(got.unwrap(), seen[12]);
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 13, "each once: {seen:?}");
        // A port that the plan names is not ours to change.
        let mut tries = 0;
        let error = with_free_port::<()>(|_| {
            tries += 1;
            Err(in_use(1))
        });
        assert!(matches!(error, Err(ServerError::PortInUse(taken)) if taken.port() == 1 && tries == 1));
    }

    #[test]
    fn several_ports_are_chosen_anew_when_one_is_taken() {
        let mut seen: Vec<Vec<u16>> = Vec::new();
        let got = with_free_ports(3, |ports| {
            seen.push(ports.to_vec());
            if seen.len() == 1 { Err(in_use(ports[2])) } else { Ok(ports.to_vec()) }
        });
        assert_eq!(got.unwrap(), seen[1]);
        assert!(seen.iter().all(|ports| ports.iter().collect::<BTreeSet<_>>().len() == 3), "{seen:?}");
        assert_ne!(seen[0], seen[1]);
    }

    #[test]
    fn a_port_that_is_taken_is_not_offered() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let got = first_free([port].into_iter(), Ok).unwrap();
        assert_ne!(got, port, "the kernel chose another");
    }

    #[test]
    fn it_ends_when_all_are_taken() {
        let error = first_free::<()>(std::iter::empty(), |port| Err(in_use(port)));
        assert!(matches!(error, Err(ServerError::PortInUse(_))));
    }
}
