//! What ab's options mean to the engine: a plan of one load, and whom it goes to.

use super::refusal;
use crate::command::load::meant::{ONLY, only};
use crate::command::load::operated::{self, Operated};
use crate::flags::ab::{AbFlags, Protocol, Said, TlsFlags};
use load::{Address, Target};
use model::SECOND;
use model::plan::{
    Arrivals, ClientCertificate, Guards, HttpVersion, LoadSpec, Pace, Plan, RequestSpec, ServerSpec, Timetable,
    TlsSpec, TlsVersion, Url, Verify,
};
use report::ab::trouble;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

/// As long as nobody waits.
const FOR_EVER: u64 = u64::MAX / 4;

/// Whom it goes to. Names are looked up here, where ab does it: after it said that it begins.
pub(super) fn target(flags: &AbFlags) -> Result<Target, Said> {
    let (peer, port) = match &flags.proxy {
        Some((proxy, port)) => (proxy.as_str(), u16::try_from(*port).unwrap_or(0)),
        None => (flags.target.host.as_str(), flags.target.port),
    };
    let local = match &flags.local {
        Some(name) => vec![first(name)?],
        None => Vec::new(),
    };
    let addresses = looked_up(peer, port)?;
    let address = match addresses[..] {
        [address] => Address::Tcp(address),
        _ => Address::FirstOf(addresses),
    };
    let buffers = usize::try_from(flags.window).ok().filter(|&bytes| bytes > 0);
    Ok(Target { local, buffers, ..Target::new(address, &flags.target.host_field) })
}

fn first(name: &str) -> Result<IpAddr, Said> {
    looked_up(name, 0).map(|all| all[0].ip())
}

/// All addresses of a name, at least one.
fn looked_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, Said> {
    let found = (host, port).to_socket_addrs().map(Vec::from_iter);
    match found {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(unknown(host, &io::Error::other("Name or service not known"))),
        Err(error) => Err(unknown(host, &error)),
    }
}

/// The resolver's words and its number, which the standard library keeps to itself.
fn unknown(host: &str, error: &io::Error) -> Said {
    const NUMBERS: [(&str, i32); 5] = [
        ("Name or service not known", -2),
        ("Temporary failure in name resolution", -3),
        ("Non-recoverable failure in name resolution", -4),
        ("No address associated with hostname", -5),
        ("System error", -11),
    ];
    let text = error.to_string();
    let (words, number) = *NUMBERS.iter().find(|(words, _)| text.contains(words)).unwrap_or(&NUMBERS[0]);
    let call = format!("apr_sockaddr_info_get() for {host}");
    refusal(trouble::refused(&call, (trouble::unresolved(number), words), 0))
}

/// Refuses to load others' servers, in one line.
pub(super) fn allowed(flags: &AbFlags, target: &Target) -> anyhow::Result<()> {
    let others = others(flags, target);
    let extras = &flags.extras;
    let said = Operated { named: &extras.i_operate, store: &extras.store, remember: !extras.no_store };
    operated::allowed(&said, &others)
}

/// Whom it goes to beside this machine, as `--i-operate` names them.
fn others(flags: &AbFlags, target: &Target) -> Vec<String> {
    let behind = flags.proxy.as_ref().map(|_| flags.target.host.as_str()).filter(|host| !is_here(host));
    let reached = flags.proxy.as_ref().map_or(flags.target.host.as_str(), |(proxy, _)| proxy);
    let others = (!target.address.is_here()).then_some(reached).into_iter().chain(behind);
    others.map(str::to_owned).collect()
}

/// Whether a name behind a proxy means this machine; it is not looked up, because only the proxy knows what it means there.
fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A plan of that load.
pub(super) fn plan(flags: &AbFlags, target: &Target, seed: u64) -> Plan {
    let scheme = if flags.target.tls { "https" } else { "http" };
    let url = format!("{scheme}://{}{}", flags.target.host_field, flags.target.path);
    // An address is no name to ask for by TLS, so none is asked for.
    let address = target.address.all().first().map_or_else(String::new, |address| address.ip().to_string());
    let spec = LoadSpec { seed, ..spec(flags, &address) };
    // Of a server behind a proxy nobody knows where it is.
    let behind = flags.proxy.is_some() && !others(flags, target).is_empty();
    let address = if behind { format!("proxy {}", target.address) } else { target.address.to_string() };
    let ours = !behind && load::is_ours(&target.address);
    let plan = only(spec, ServerSpec::Url(Url { url, address, ours, ..Url::default() }));
    // ab goes on whatever the answers are and however this machine fares: how a server thrashes is what people look at with it.
    Plan { guards: Guards::NONE, ..plan }
}

/// What is sent, and when; TLS takes `address` for the server's name where nothing else is asked for.
pub(super) fn spec(flags: &AbFlags, address: &str) -> LoadSpec {
    let wire = [flags.head().as_bytes(), flags.body.as_deref().unwrap_or_default()].concat();
    let request = RequestSpec {
        method: flags.method.name().to_owned(),
        wire: Some(Arc::from(wire)),
        ..RequestSpec::get(&flags.target.path)
    };
    let pace = match flags.extras.rate {
        Some(rate) => Pace::Timetable(Timetable::constant(rate, Arrivals::Even)),
        None => Pace::WhenFree,
    };
    let duration_ns = flags.seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|&seconds| seconds > 0);
    // The number that ab takes for itself only ends what time does not.
    let counted = !flags.requests_by_time || duration_ns.is_none() || flags.extras.strict;
    LoadSpec {
        mix: vec![request],
        first_alone: pace == Pace::WhenFree,
        pace,
        connections: flags.concurrency,
        threads: flags.extras.threads,
        requests: counted.then_some(u64::from(flags.requests)),
        duration_ns: duration_ns.map(|seconds| seconds * SECOND),
        keep_alive: flags.keep_alive,
        http: HttpVersion::Http10,
        tls: flags.target.tls.then(|| tls(flags, address)),
        timeout_ns: u64::try_from(flags.wait_seconds).map_or(FOR_EVER, |seconds| seconds * SECOND),
        same_length: !flags.output.any_length,
        expect: flags.extras.expect.clone(),
        rests: false,
        drains: false,
        ..LoadSpec::of(ONLY, &flags.target.path)
    }
}

fn tls(flags: &AbFlags, address: &str) -> TlsSpec {
    let TlsFlags { protocol, offered, certificate, server_name, .. } = &flags.tls;
    TlsSpec {
        server_name: server_name.clone().unwrap_or_else(|| address.to_owned()),
        verify: Verify::Nothing,
        version: match protocol {
            Protocol::Tls12 => Some(TlsVersion::Tls12),
            Protocol::Tls13 => Some(TlsVersion::Tls13),
            Protocol::All | Protocol::TooOld(_) => None,
        },
        suites: offered.iter().map(|suite| suite.rustls.to_owned()).collect(),
        client: certificate.as_ref().map(|file| {
            let file = PathBuf::from(file);
            ClientCertificate { certificate: file.clone(), key: file }
        }),
        // Each connection of ab begins anew.
        resume: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::ab;
    use std::ffi::OsString;

    fn spec_of(line: &str) -> LoadSpec {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let flags = ab::parse(&words, &|_| Ok(b"a=1".to_vec())).unwrap();
        spec(&flags, "127.0.0.1")
    }

    #[test]
    fn requests_end_by_time() {
        let check = |line: &str, requests, seconds: Option<u64>| {
            let spec = spec_of(&format!("{line} http://h/"));
            assert_eq!((spec.requests, spec.duration_ns), (requests, seconds.map(|s| s * SECOND)), "{line}");
        };
        check("", Some(1), None);
        check("-t 5", None, Some(5));
        check("-n 10 -t 5", None, Some(5));
        check("-t 5 -n 10", Some(10), Some(5));
        check("-t 5 --strict", Some(50_000), Some(5));
        check("-t 0", Some(50_000), None);
        check("-t -3", Some(50_000), None);
    }

    #[test]
    fn what_goes_over_the_wire_is_what_was_typed() {
        let spec = spec_of("-p x -k -H X-A:${counter} http://h/a?b");
        let wire = spec.mix[0].wire.as_deref().unwrap();
        let expected = "POST /a?b HTTP/1.0\r\nConnection: Keep-Alive\r\nContent-length: 3\r\nContent-type: text/plain\r\n\
                        X-A:${counter}\r\nHost: h\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\na=1";
        assert_eq!(String::from_utf8_lossy(wire), expected);
        assert!(spec.keep_alive && spec.first_alone && !spec.rests);
        let rate = spec_of("--rate 50 http://h/");
        assert!(rate.is_open() && !rate.first_alone);
    }

    #[test]
    fn waiting_is_as_long_as_was_typed() {
        let waits = |line: &str| spec_of(&format!("{line} http://h/")).timeout_ns;
        assert_eq!([waits(""), waits("-s 2"), waits("-s 0"), waits("-s -1")], [30 * SECOND, 2 * SECOND, 0, FOR_EVER]);
    }
}
