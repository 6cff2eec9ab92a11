//! The URL as ab takes it apart: scheme in lower case or none, host, port, a path that must be there.

use std::net::{IpAddr, Ipv6Addr};

/// Where requests go, and what is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// The URL as it was typed, which is what a proxy is asked for.
    pub(crate) url: String,
    /// https.
    pub(crate) tls: bool,
    /// The host, without the brackets of an IPv6 address.
    pub(crate) host: String,
    /// The host as a Host field has it, with the port unless it is the scheme's own.
    pub(crate) host_field: String,
    /// The port.
    pub(crate) port: u16,
    /// Path and query.
    pub(crate) path: String,
}

impl Target {
    /// `None` is ab's "invalid URL".
    pub(crate) fn parse(url: &str) -> Option<Target> {
        // A scheme with nothing behind it is a host to ab.
        let behind = |scheme| url.strip_prefix(scheme).filter(|rest| !rest.is_empty());
        let (tls, rest) = match (behind("http://"), behind("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => (false, url),
        };
        let (place, path) = rest.split_at(rest.find('/')?);
        let (host, port) = host_and_port(place)?;
        let own = if tls { 443 } else { 80 };
        let port = port.unwrap_or(own);
        let bracketed = if place.starts_with('[') { format!("[{host}]") } else { host.clone() };
        let host_field = if port == own { bracketed } else { format!("{bracketed}:{port}") };
        Some(Target { url: url.to_owned(), tls, host, host_field, port, path: path.to_owned() })
    }

    /// The name to ask for by SNI: what the Host field says or the host; none for an address.
    pub(crate) fn server_name(&self, host_field: Option<&str>) -> Option<String> {
        let name = host_field.unwrap_or(&self.host);
        let like_ipv4 = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        (!like_ipv4 && name.parse::<IpAddr>().is_err()).then(|| name.to_owned())
    }
}

/// As apr_parse_addr_port: digits alone are a port, which is no host.
fn host_and_port(place: &str) -> Option<(String, Option<u16>)> {
    let named = place.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &place[named.len()..];
    if named.is_empty() {
        return None;
    }
    let (host, port) = match named.strip_suffix(':') {
        Some(host) if !digits.is_empty() => (host, Some(super::getopt::atoi(digits))),
        _ => (place, None),
    };
    let port = match port {
        None => None,
        Some(port) => Some(u16::try_from(port).ok().filter(|port| *port > 0)?),
    };
    match host.strip_prefix('[') {
        _ if host.is_empty() => None,
        None => Some((host.to_owned(), port)),
        Some(rest) => {
            let address = rest.strip_suffix(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            Some((address.to_owned(), port))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: Option<(bool, &str, &str, u16, &str)>) {
        let target = Target::parse(url);
        let found = target.as_ref().map(|t| (t.tls, t.host.as_str(), t.host_field.as_str(), t.port, t.path.as_str()));
        assert_eq!(found, expected, "{url}");
    }

    #[test]
    fn urls() {
        check("http://h/", Some((false, "h", "h", 80, "/")));
        check("h/a?b", Some((false, "h", "h", 80, "/a?b")));
        check("https://h:8443/x", Some((true, "h", "h:8443", 8443, "/x")));
        check("https://h:80/", Some((true, "h", "h:80", 80, "/")));
        check("http://h:80/", Some((false, "h", "h", 80, "/")));
        check("http://[::1]:81/", Some((false, "::1", "[::1]:81", 81, "/")));
        check("HTTP://h/", Some((false, "HTTP:", "HTTP:", 80, "//h/")));
        check("http://", Some((false, "http:", "http:", 80, "//")));
        check("h:/", Some((false, "h:", "h:", 80, "/")));
        check("u@h/", Some((false, "u@h", "u@h", 80, "/")));
    }

    #[test]
    fn what_is_no_url() {
        for url in ["h", "http://h:80", "/", "http:///x", "8080/", ":80/", "h:0/", "h:65536/", "h:99999999999/"] {
            check(url, None);
        }
        for url in ["[::1/", "[::1]x/", "[::1%lo]/", "[::1%]/", "[x]/", "[]/", "[1.2.3.4]/", ""] {
            check(url, None);
        }
    }

    #[test]
    fn only_names_are_asked_for() {
        let check = |url: &str, host: Option<&str>, expected: Option<&str>| {
            assert_eq!(Target::parse(url).unwrap().server_name(host).as_deref(), expected, "{url} {host:?}");
        };
        check("https://h/", None, Some("h"));
        check("https://h/", Some("other"), Some("other"));
        check("https://h/", Some(""), None);
        check("https://127.0.0.1/", None, None);
        check("https://127.0.0.1/", Some("h"), Some("h"));
        check("https://[::1]/", None, None);
        check("https://127.1/", None, None);
    }
}
