//! Where a configuration listens, and which of its servers answers there.

use super::tree::{Statement, level};
use crate::own::Door;
use std::net::IpAddr;

/// A `server` block.
#[derive(Debug)]
pub(crate) struct Server<'a> {
    pub(crate) block: &'a Statement,
    listens: Vec<Listen>,
    names: Vec<&'a str>,
}

/// One `listen` of it that is no socket file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listen {
    /// `None` is all of IPv4.
    pub(crate) address: Option<String>,
    pub(crate) port: u16,
    tls: bool,
    is_default: bool,
    /// Whether clients must begin with a line of the PROXY protocol, which ours do not.
    proxied: bool,
}

impl Listen {
    /// `80`, `*:80`, `127.0.0.1`, `[::]:443 ssl`, `localhost:80 default_server`; `None` for a socket file, and for what is no TCP.
    pub(crate) fn parse(args: &[String]) -> Option<Listen> {
        let (first, rest) = args.split_first()?;
        if first.starts_with("unix:") || rest.iter().any(|word| word == "quic") {
            return None;
        }
        let (address, port) = match first.rsplit_once(':') {
            Some((address, port)) if !port.contains(']') => (address, port.parse().ok()?),
            _ if first.bytes().all(|byte| byte.is_ascii_digit()) => ("*", first.parse().ok()?),
            _ => (first.as_str(), 80),
        };
        let bare = address.trim_matches(['[', ']']).to_ascii_lowercase();
        let any = matches!(bare.as_str(), "*" | "0.0.0.0");
        let has = |names: &[&str]| rest.iter().any(|word| names.contains(&word.as_str()));
        let is_default = has(&["default_server", "default"]);
        let (tls, proxied) = (has(&["ssl"]), has(&["proxy_protocol"]));
        Some(Listen { address: (!any).then_some(bare), port, tls, is_default, proxied })
    }

    /// Whether it is a door.
    pub(crate) fn is_of(&self, door: &Door) -> bool {
        self.port == door.port && self.address == door.address
    }
}

/// The servers of a configuration, in order.
pub(crate) fn servers(tree: &[Statement]) -> Vec<Server<'_>> {
    let http = level(tree).into_iter().filter(|it| it.is("http")).flat_map(|http| level(&http.inside));
    let server = |block: &'_ Statement| {
        let lines = level(&block.inside);
        let everywhere_tls = lines.iter().any(|it| it.is("ssl") && it.value() == "on");
        let mut listens: Vec<Listen> =
            lines.iter().filter(|it| it.is("listen")).filter_map(|it| Listen::parse(&it.args)).collect();
        if !lines.iter().any(|it| it.is("listen")) {
            listens.push(Listen { address: None, port: 80, tls: false, is_default: false, proxied: false });
        }
        listens.iter_mut().for_each(|listen| listen.tls |= everywhere_tls);
        listens
    };
    http.filter(|it| it.is("server"))
        .map(|block| {
            let names = level(&block.inside).into_iter().filter(|it| it.is("server_name"));
            let names = names.flat_map(|it| it.args.iter().map(String::as_str)).collect();
            Server { block, listens: server(block), names }
        })
        .collect()
}

/// The doors of its servers that a client of ours can come through, each once.
pub(crate) fn doors(servers: &[Server<'_>]) -> Vec<Door> {
    let mut doors: Vec<Door> = Vec::new();
    let listens = || servers.iter().flat_map(|server| &server.listens);
    for listen in listens() {
        let Listen { address, port, tls, .. } = listen.clone();
        match doors.iter_mut().find(|door| listen.is_of(door)) {
            // TLS of one server is TLS of the socket.
            Some(door) => door.tls |= tls,
            None => doors.push(Door { address, port, listed: true, protocol: String::new(), tls }),
        }
    }
    // And so is the PROXY protocol.
    doors.retain(|door| !listens().any(|listen| listen.proxied && listen.is_of(door)));
    doors
}

/// The server that answers a request for `name` which comes to a door at `ip`.
pub(crate) fn answering<'a, 'b>(
    servers: &'b [Server<'a>],
    door: &Door,
    ip: IpAddr,
    name: Option<&str>,
) -> Option<&'b Server<'a>> {
    let at = |address: Option<&str>| -> Vec<(&Server<'a>, bool)> {
        let here = |listen: &&Listen| listen.port == door.port && listen.address.as_deref() == address;
        servers.iter().filter_map(|server| Some((server, server.listens.iter().find(here)?.is_default))).collect()
    };
    let ip = ip.to_string();
    // A socket of that very address takes what others for all addresses would.
    let found = Some(at(Some(&ip))).filter(|found| !found.is_empty()).unwrap_or_else(|| at(door.address.as_deref()));
    let name = name.unwrap_or(&ip).to_ascii_lowercase();
    let called = |rank: u8| found.iter().find(|(server, _)| server.rank(&name) == Some(rank));
    let default = || found.iter().find(|(_, is_default)| *is_default).or(found.first());
    (0..3).find_map(called).or_else(default).map(|(server, _)| *server)
}

impl Server<'_> {
    /// How well it is called so: exactly, by an ending, by a beginning. Regular expressions are not looked at.
    fn rank(&self, name: &str) -> Option<u8> {
        let ranks = self.names.iter().filter_map(|known| {
            let known = known.to_ascii_lowercase();
            match (known.strip_prefix('*').or_else(|| known.strip_prefix('.')), known.strip_suffix('*')) {
                _ if known == name => Some(0),
                (Some(ending), _) => (name.ends_with(ending)
                    && (known.starts_with('*') || name == ending || name.ends_with(&known)))
                .then_some(1),
                (_, Some(beginning)) => name.starts_with(beginning).then_some(2),
                _ => None,
            }
        });
        ranks.min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::parse;
    use super::*;
    use std::net::Ipv4Addr;
    use std::path::Path;

    const TEXT: &str = "http {\n server { listen 80; listen [::]:80; server_name a.b; }\n server { listen 80 default_server; listen 443 ssl; server_name *.c .d; }\n\
        server { listen 127.0.0.1:8080; listen unix:/x; server_name w.*; }\n server { listen 192.0.2.1; }\n\
        server { listen 82; listen 81 proxy_protocol; }\n server { listen 81; }\n}";

    fn read() -> Vec<Statement> {
        parse(Path::new("/m"), &[("/m".into(), TEXT.to_owned())].into()).unwrap()
    }

    #[test]
    fn doors_are_found() {
        let tree = read();
        let shown: Vec<String> = doors(&servers(&tree))
            .iter()
            .map(|door| {
                format!(
                    "{}:{}{}",
                    door.address.as_deref().unwrap_or("*"),
                    door.port,
                    if door.tls { " tls" } else { "" }
                )
            })
            .collect();
        assert_eq!(shown, ["*:80", ":::80", "*:443 tls", "127.0.0.1:8080", "192.0.2.1:80", "*:82"]);
    }

    #[test]
    fn who_answers() {
        let tree = read();
        let servers = servers(&tree);
        let doors = doors(&servers);
        let who = |door: usize, name| {
            let found = answering(&servers, &doors[door], Ipv4Addr::LOCALHOST.into(), name);
            found.map(|server| server.block.line)
        };
        for (door, name, line) in [
            (0, None, 3),
            (0, Some("a.b"), 2),
            (0, Some("A.B"), 2),
            (0, Some("x.c"), 3),
            (0, Some("d"), 3),
            (0, Some("x.d"), 3),
            (0, Some("nobody"), 3),
            (2, Some("a.b"), 3),
            (3, None, 4),
        ] {
            assert_eq!(who(door, name), Some(line), "{door} {name:?}");
        }
    }
}
