//! The way to the server that the flags mean: address, addresses of our own, TLS.

use super::{NoSuchHost, what};
use crate::flags::load::{Tls, WayFlags};
use anyhow::{Context, ensure};
use load::{Address, Target};
use model::plan::{ClientCertificate, TlsSpec, TlsVersion, Verify};
use std::net::{SocketAddr, ToSocketAddrs};
use url::Url;

/// Whom to connect to, and what to call it. Names are resolved here, so that a load never waits for a name server.
pub(super) fn target(flags: &WayFlags, url: &Url) -> anyhow::Result<Target> {
    let host = url.host_str().context("the URL names no host")?;
    ensure!(
        flags.proxy.is_none() || url.scheme() == "http",
        "--proxy is for http; leave it out for {}, or use --connect-to",
        url.scheme()
    );
    // The port stands in the `Host` field unless it is the scheme's own.
    let field = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Ok(Target { address: address(flags, url, host)?, host: field, local: flags.local.clone() })
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
        client: pair.map(|(certificate, key)| ClientCertificate { certificate, key }),
        resume: !flags.no_resumption,
    })
}

fn address(flags: &WayFlags, url: &Url, host: &str) -> anyhow::Result<Address> {
    if let Some(path) = &flags.unix {
        return Ok(Address::Unix(path.clone()));
    }
    // To a proxy, whatever the request asks for.
    let proxy = flags.proxy.as_ref().map(|text| what::plain_url(text, text)).transpose()?;
    let (url, host) = match &proxy {
        Some(proxy) => (proxy, proxy.host_str().context("the proxy's URL names no host")?),
        None => (url, host),
    };
    let port = url.port_or_known_default().unwrap_or(80);
    let (host, port) = match &flags.connect_to {
        None => (host, port),
        Some(text) => host_and_port(text, port)?,
    };
    Ok(Address::Tcp(resolve(bare(host), port)?))
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

/// An address without the brackets that it has in a URL.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
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
