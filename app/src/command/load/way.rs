//! The way to the server that the flags mean: address, addresses of our own, TLS.

use super::{NoSuchHost, secret, what};
use crate::flags::load::{Resolve, Tls, WayFlags, bare};
use anyhow::{Context, bail, ensure};
use load::{Address, Target, Tunnel};
use model::plan::{ClientCertificate, TlsSpec, TlsVersion, Verify};
use std::net::{SocketAddr, ToSocketAddrs};
use url::{Host, Url};

/// The way to a server.
pub(super) struct Way {
    pub(super) target: Target,
    /// Those on it that are not this machine, as `--i-operate` names them.
    pub(super) others: Vec<String>,
    /// The same way for humans.
    pub(super) shown: String,
}

/// Whom to connect to, and what to call it. Names are resolved here, so that a load never waits for a name server.
pub(super) fn way(flags: &WayFlags, url: &Url, to_proxy: &[(String, String)]) -> anyhow::Result<Way> {
    let host = url.host_str().context("the URL names no host")?;
    // The port stands in the `Host` field unless it is the scheme's own.
    let field = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let proxy = proxy(flags)?;
    let (address, mut others) = reached(flags, proxy.as_ref().unwrap_or(url))?;
    let mut shown = match &address {
        Address::InTurn(_) => format!("{address} in turn"),
        _ => address.to_string(),
    };
    if proxy.is_some() {
        shown = format!("{host} through the proxy at {shown}");
        // A proxy passes on what it is sent.
        if !is_this_machine(url) && !others.iter().any(|other| other == bare(host)) {
            others.push(bare(host).to_owned());
        }
    }
    let mut target = Target { local: flags.local.clone(), ..Target::new(address, &field) };
    if is_tunnelled(flags, url) {
        let port = url.port_or_known_default().unwrap_or(443);
        target.tunnel = Some(Tunnel::to(&format!("{host}:{port}"), to_proxy).context("--proxy")?);
        shown.push_str(", by a tunnel (CONNECT)");
    }
    Ok(Way { target, others, shown })
}

/// The proxy to go through, if there is one.
pub(super) fn proxy(flags: &WayFlags) -> anyhow::Result<Option<Url>> {
    let Some(text) = &flags.proxy else { return Ok(None) };
    let proxy = what::plain_url(text, text).context("--proxy")?;
    ensure!(
        proxy.scheme() == "http",
        "--proxy `{}`: a proxy is spoken to in plain HTTP, also about https; write http://HOST:PORT",
        secret::in_url(text)
    );
    Ok(Some(proxy))
}

/// Whether a proxy only opens the way, and what goes over it is none of its business.
pub(super) fn is_tunnelled(flags: &WayFlags, url: &Url) -> bool {
    flags.proxy.is_some() && url.scheme() == "https"
}

/// How TLS is spoken, if the URL asks for it.
pub(super) fn tls(flags: &WayFlags, url: &Url) -> Option<TlsSpec> {
    if url.scheme() != "https" {
        return None;
    }
    let verify = match (&flags.cacert, flags.insecure) {
        (Some(path), _) => Verify::File(path.clone()),
        (None, true) => Verify::Nothing,
        (None, false) => Verify::System,
    };
    let pair = flags.cert.clone().zip(flags.key.clone());
    Some(TlsSpec {
        server_name: flags.sni.clone().unwrap_or_else(|| bare(url.host_str().unwrap_or_default()).to_owned()),
        verify,
        version: flags.tls.map(|version| match version {
            Tls::OneTwo => TlsVersion::Tls12,
            Tls::OneThree => TlsVersion::Tls13,
        }),
        suites: Vec::new(),
        client: pair.map(|(certificate, key)| ClientCertificate { certificate, key }),
        resume: !flags.no_resumption,
    })
}

/// Where connections go that are meant for that URL, and who of them is not this machine. As in curl, `--connect-to` comes
/// first, and `--resolve` says where that is.
fn reached(flags: &WayFlags, url: &Url) -> anyhow::Result<(Address, Vec<String>)> {
    if let Some(path) = &flags.unix {
        return Ok((Address::Unix(path.clone()), Vec::new()));
    }
    let host = url.host_str().context("the proxy's URL names no host")?;
    let port = url.port_or_known_default().unwrap_or(80);
    let (host, port) = match &flags.connect_to {
        None => (host, port),
        Some(text) => host_and_port(text, port)?,
    };
    let given = Resolve::find(&flags.resolve, host, port).unwrap_or_default();
    if let Some(other) = flags.resolve.first().filter(|_| given.is_empty()) {
        // Whoever gives addresses means them; the load would go to a server that nobody spoke of.
        let name = other.host.as_deref().unwrap_or("*");
        bail!(
            "--resolve is for {name}:{}, and the load connects to {host}:{port}; give --resolve {host}:{port}:ADDRESS",
            other.port
        );
    }
    let addresses: Vec<SocketAddr> = given.iter().map(|&address| SocketAddr::new(address, port)).collect();
    Ok(match addresses[..] {
        [] => {
            let address = resolve(bare(host), port)?;
            (Address::Tcp(address), other(host, address).into_iter().collect())
        }
        [address] => (Address::Tcp(address), others(&addresses)),
        _ => (Address::InTurn(addresses.clone()), others(&addresses)),
    })
}

/// The host, if its name led to another machine.
pub(super) fn other(host: &str, address: SocketAddr) -> Option<String> {
    (!address.ip().is_loopback()).then(|| bare(host).to_owned())
}

/// Addresses were given, so it is addresses that somebody operates.
fn others(addresses: &[SocketAddr]) -> Vec<String> {
    let elsewhere = addresses.iter().map(SocketAddr::ip).filter(|address| !address.is_loopback());
    elsewhere.map(|address| address.to_string()).collect()
}

/// By its address, or by a name all of whose addresses are this machine's.
fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => (name, 0).to_socket_addrs().is_ok_and(|mut found| {
            let first = found.next();
            first.is_some_and(|first| first.ip().is_loopback()) && found.all(|address| address.ip().is_loopback())
        }),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// `HOST`, `HOST:PORT`, or an IPv6 address in brackets.
fn host_and_port(text: &str, port: u16) -> anyhow::Result<(&str, u16)> {
    match text.rsplit_once(':') {
        Some((host, digits)) if !digits.ends_with(']') && (!host.contains(':') || host.ends_with(']')) => {
            let port = digits.parse().with_context(|| format!("--connect-to `{text}`: `{digits}` is not a port"))?;
            Ok((host, port))
        }
        _ => Ok((text, port)),
    }
}

/// The first address of a name.
fn resolve(host: &str, port: u16) -> anyhow::Result<SocketAddr> {
    let why = |why: String| NoSuchHost { host: host.to_owned(), why };
    let mut found = (host, port).to_socket_addrs().map_err(|error| why(error.to_string()))?;
    Ok(found.next().ok_or_else(|| why("it has no address".to_owned()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, u16)>) {
        assert_eq!(host_and_port(text, 80).ok(), expected);
    }

    #[test]
    fn hosts_and_ports() {
        check("there", Some(("there", 80)));
        check("there:8080", Some(("there", 8080)));
        check("[::1]:8080", Some(("[::1]", 8080)));
        check("[::1]", Some(("[::1]", 80)));
        check("::1", Some(("::1", 80)));
        check("there:x", None);
    }
}
