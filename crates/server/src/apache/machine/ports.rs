//! Where a configuration listens, which virtual hosts answer there, and the same with other ports.

use super::tree::{Line, VirtualHost, speaks_tls, virtual_hosts, words};
use crate::own::Door;
use std::net::IpAddr;

/// An address as `<VirtualHost>` and `Listen` write it.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    address: Option<String>,
    port: Option<u16>,
}

impl Written {
    /// `80`, `*:80`, `10.0.0.1:80`, `[::1]:80`, `10.0.0.1`, `*`; a number alone is a port in `Listen` only.
    fn parse(text: &str) -> Written {
        let (address, port) = match text.rsplit_once(':') {
            Some((address, port)) if !port.contains(']') => (address, Some(port)),
            _ if text.bytes().all(|byte| byte.is_ascii_digit()) => ("*", Some(text)),
            _ => (text, None),
        };
        let bare = address.trim_matches(['[', ']']);
        let any = matches!(bare, "*" | "_default_" | "") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified());
        let port = port.and_then(|port| port.parse().ok());
        Written { address: (!any).then(|| bare.to_ascii_lowercase()), port }
    }
}

/// The doors of a configuration.
pub(crate) fn doors(lines: &[Line]) -> Vec<Door> {
    let mut doors: Vec<Door> = Vec::new();
    for line in lines.iter().filter(|line| line.is("Listen")) {
        let said = words(line.arguments());
        let written = Written::parse(said.first().map_or("", String::as_str));
        let Some(port) = written.port else { continue };
        if !doors.iter().any(|door| door.address == written.address && door.port == port) {
            let protocol = said.get(1).cloned().unwrap_or_default();
            doors.push(Door { address: written.address, port, listed: true, tls: protocol == "https", protocol });
        }
    }
    let hosts = virtual_hosts(lines);
    for text in hosts.iter().flat_map(|host| &host.addresses) {
        let Written { address: Some(address), port } = Written::parse(text) else { continue };
        let open = doors.iter().filter(|door| door.address.is_none() && port.is_none_or(|port| port == door.port));
        for door in open.cloned().collect::<Vec<_>>() {
            let own = Door { address: Some(address.clone()), listed: false, ..door };
            if !doors.iter().any(|door| door.address == own.address && door.port == own.port) {
                doors.push(own);
            }
        }
    }
    let everywhere = speaks_tls(lines.iter().filter(|line| line.depth == 0));
    let tls = |door: &Door| {
        let mut of_door = behind(&hosts, door).peekable();
        if of_door.peek().is_some() { of_door.any(VirtualHost::speaks_tls) } else { everywhere }
    };
    doors.into_iter().map(|door| Door { tls: door.tls || tls(&door), ..door }).collect()
}

/// The virtual hosts that answer at a door: those with its address, and only without any those for all.
pub(crate) fn behind<'a, 'b>(
    hosts: &'b [VirtualHost<'a>],
    door: &'b Door,
) -> impl Iterator<Item = &'b VirtualHost<'a>> + use<'a, 'b> {
    let at = move |host: &VirtualHost<'_>, address: Option<&String>| {
        host.addresses
            .iter()
            .map(|text| Written::parse(text))
            .any(|written| written.address.as_ref() == address && written.port.is_none_or(|port| port == door.port))
    };
    let own = door.address.is_some() && hosts.iter().any(|host| at(host, door.address.as_ref()));
    hosts.iter().filter(move |host| at(host, if own { door.address.as_ref() } else { None }))
}

/// The virtual host that answers a request for `name` at a door; without any, the main server does.
pub(crate) fn answers<'a, 'b>(
    hosts: &'b [VirtualHost<'a>],
    door: &'b Door,
    name: Option<&str>,
) -> Option<&'b VirtualHost<'a>> {
    let named = name.and_then(|name| behind(hosts, door).find(|host| host.is_called(name)));
    named.or_else(|| behind(hosts, door).next())
}

/// An address of a `<VirtualHost>` where each of the doors has the new port beside it.
pub(crate) fn moved(text: &str, doors: &[Door], ports: &[u16]) -> Vec<String> {
    let written = Written::parse(text);
    let all = || doors.iter().zip(ports);
    let at = |host: &str, ports: Vec<u16>| ports.into_iter().map(|port| format!("{host}:{port}")).collect::<Vec<_>>();
    let found = match (&written.address, written.port) {
        (None, None) => return vec!["*".to_owned()],
        (None, Some(port)) => at("*", all().filter(|(door, _)| door.port == port).map(|(_, new)| *new).collect()),
        (Some(address), port) => {
            let here =
                |door: &Door| door.address.as_ref() == Some(address) && port.is_none_or(|port| port == door.port);
            at("127.0.0.1", all().filter(|(door, _)| here(door)).map(|(_, new)| *new).collect())
        }
    };
    // Nobody listens there; Apache takes it, and nobody comes.
    if found.is_empty() { vec![text.to_owned()] } else { found }
}

#[cfg(test)]
mod tests {
    use super::super::tree::parse;
    use super::*;
    use crate::PlanKey;
    use crate::own::pick;
    use std::path::Path;

    fn lines(text: &str) -> Vec<Line> {
        parse(&text.lines().enumerate().map(|(i, line)| format!("# {}:\n{line}\n", i + 1)).collect::<String>())
    }

    #[track_caller]
    fn check(config: &str, doors_expected: &[&str], moves: &[(&str, &str)]) {
        let doors = doors(&lines(config));
        let shown: Vec<String> = doors
            .iter()
            .map(|door| {
                let (own, tls) = (if door.listed { "" } else { " for a host" }, if door.tls { " tls" } else { "" });
                format!("{}:{}{own}{tls}", door.address.as_deref().unwrap_or("*"), door.port)
            })
            .collect();
        assert_eq!(shown, doors_expected);
        let ports: Vec<u16> = (1..).take(doors.len()).collect();
        for (from, to) in moves {
            assert_eq!(moved(from, &doors, &ports).join(" "), *to, "{from}");
        }
    }

    #[test]
    fn doors_are_found_and_moved() {
        check(
            "Listen 80\nListen 0.0.0.0:80\nListen [::]:443 https",
            &["*:80", "*:443 tls"],
            &[("*:80", "*:1"), ("_default_:443", "*:2"), ("*", "*"), ("*:8080", "*:8080")],
        );
        let two = "Listen 80\nListen 8080\n<VirtualHost 10.0.0.1:80>\nSSLEngine on\n</VirtualHost>\n<VirtualHost 10.0.0.2>\n</VirtualHost>";
        check(
            two,
            &["*:80", "*:8080", "10.0.0.1:80 for a host tls", "10.0.0.2:80 for a host", "10.0.0.2:8080 for a host"],
            &[("10.0.0.1:80", "127.0.0.1:3"), ("10.0.0.2", "127.0.0.1:4 127.0.0.1:5"), ("*:80", "*:1 *:3 *:4")],
        );
        check(
            "Listen 10.0.0.1:80\nListen [FE80::1]:80\n<VirtualHost *:80>\n</VirtualHost>",
            &["10.0.0.1:80", "fe80::1:80"],
            &[("*:80", "*:1 *:2"), ("[fe80::1]:80", "127.0.0.1:2")],
        );
    }

    #[test]
    fn the_asked_door_and_who_answers_there() {
        let config = "Listen 443 https\nListen 80\nListen 10.0.0.1:8080\n<VirtualHost *:80>\nServerName a\n</VirtualHost>\n<VirtualHost *:80>\nServerName b\n</VirtualHost>";
        let lines = lines(config);
        let (doors, hosts) = (doors(&lines), virtual_hosts(&lines));
        for (port, expected) in [(None, Some(1)), (Some(443), Some(0)), (Some(8080), Some(2)), (Some(81), None)] {
            let at = PlanKey { plan: std::path::Path::new("p").into(), service: None, line: 1, key: "port" };
            assert_eq!(pick(&doors, port, Path::new("m"), at).ok(), expected, "{port:?}");
        }
        let who = |door: usize, name| answers(&hosts, &doors[door], name).map(|host| host.lines[0].argument());
        assert_eq!(
            (who(1, None), who(1, Some("b")), who(1, Some("c")), who(0, None)),
            (Some("a".into()), Some("b".into()), Some("a".into()), None)
        );
    }
}
