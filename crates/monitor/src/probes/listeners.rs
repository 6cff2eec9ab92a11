//! The accept queues of every listening TCP socket: the fullest one of the host, and those of ports that a roster names.
//!
//! Asked of the kernel as `accept` does it, without walking its connections. Sockets that share a port are added up under their
//! port; the fullest is one socket, because each has a queue and a limit of its own.

use super::Probes;
use super::accept::{Listening, listening};
use crate::sock_diag::SockDiag;
use crate::source::Buffer;
use crate::watch::Watch;
use model::device::DeviceKind;
use model::reading::{ABSENT, Column, Look};

/// Opens the socket to the kernel, if the watch asks for it.
pub(super) fn open(probes: &mut Probes, watch: &Watch) {
    let ports = watch.devices.placed().filter(|(_, device)| device.kind == DeviceKind::Listener);
    let wanted: Vec<Wanted> =
        ports.filter_map(|(at, device)| Some(Wanted { port: device.name.parse().ok()?, at })).collect();
    if !watch.listeners && wanted.is_empty() {
        return;
    }
    let opened = SockDiag::open().and_then(|mut kernel| {
        listening(&mut kernel, 0, &mut probes.buffer, &mut |_| {})?;
        Ok(Listeners { kernel, wanted })
    });
    match opened {
        Ok(listeners) => probes.listeners = Some(listeners),
        Err(error) => {
            probes
                .notes
                .push(format!("the kernel does not tell accept queues ({error} from sock_diag): they are absent"));
        }
    }
}

/// The ports that are listened on now, ascending.
pub(super) fn ports() -> Vec<u16> {
    let mut ports = Vec::new();
    // Where the kernel does not tell, there are none to be shown.
    let _ = SockDiag::open()
        .and_then(|mut kernel| listening(&mut kernel, 0, &mut Buffer::new(), &mut |socket| ports.push(socket.port)));
    ports.sort_unstable();
    ports.dedup();
    ports
}

pub(super) struct Listeners {
    kernel: SockDiag,
    wanted: Vec<Wanted>,
}

/// A port, and where its first number stands.
struct Wanted {
    port: u16,
    at: usize,
}

impl Listeners {
    /// Fills the columns of the fullest queue and the numbers of the ports; a port that nobody listens on has none.
    pub(super) fn read(&mut self, look: &mut Look, buffer: &mut Buffer) {
        let Listeners { kernel, wanted } = self;
        let numbers = &mut look.devices;
        wanted.iter().for_each(|port| numbers[port.at..port.at + 2].fill(ABSENT));
        let mut fullest: Option<Listening> = None;
        let asked = listening(kernel, 0, buffer, &mut |socket| {
            if fullest.is_none_or(|before| is_fuller(socket, before)) {
                fullest = Some(socket);
            }
            for port in wanted.iter().filter(|wanted| wanted.port == socket.port) {
                for (at, more) in [(port.at, socket.waiting), (port.at + 1, socket.limit)] {
                    numbers[at] = if numbers[at] == ABSENT { more } else { numbers[at].saturating_add(more) };
                }
            }
        });
        if let (Ok(()), Some(fullest)) = (asked, fullest) {
            look.reading.set(Column::ListenQueue, fullest.waiting);
            look.reading.set(Column::ListenLimit, fullest.limit);
        }
    }
}

/// By the share of its limit; among equals the longer one, which is rather a server's.
fn is_fuller(socket: Listening, before: Listening) -> bool {
    let share = |socket: Listening, other: Listening| socket.waiting.saturating_mul(other.limit.max(1));
    let (this, that) = (share(socket, before), share(before, socket));
    this > that || (this == that && socket.limit > before.limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::device::{Device, Roster};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    #[test]
    fn a_port_and_the_fullest_of_all() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        let address = listener.local_addr().unwrap();
        let devices = vec![Device { kind: DeviceKind::Listener, name: address.port().to_string() }];
        assert!(ports().contains(&address.port()));
        let watch = Watch { devices: Roster { devices }, ..Watch::default() };
        let mut probes = Probes::none();
        open(&mut probes, &watch);
        assert!(probes.notes.is_empty(), "{:?}", probes.notes);
        // The kernel lets in one more than the limit: no queue can be fuller.
        let waiting: Vec<_> = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let mut look = Look::empty(0, 2);
            probes.read(&mut look);
            let fullest = [Column::ListenQueue, Column::ListenLimit].map(|column| look.reading.get(column));
            if look.devices == [2, 1] && fullest == [Some(2), Some(1)] {
                break;
            }
            assert!(Instant::now() < deadline, "{look:?}");
        }
        drop((listener, waiting));
        let mut look = Look::empty(0, 2);
        probes.read(&mut look);
        assert_eq!(look.devices, [ABSENT; 2]);
    }

    #[test]
    fn the_fullest_is_so_by_its_share() {
        let socket = |waiting, limit| Listening { port: 1, waiting, limit };
        assert!(is_fuller(socket(3, 5), socket(100, 511)));
        assert!(!is_fuller(socket(100, 511), socket(3, 5)));
        assert!(is_fuller(socket(0, 511), socket(0, 5)));
        assert!(is_fuller(socket(1, 0), socket(1, 5)));
    }
}
