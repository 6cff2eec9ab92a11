//! A load as it travels: a specification as stores have it, and all that they leave out.

use crate::error::RemoteError;
use load::{Address, Target};
use model::Nanos;
use model::plan::{Body, LoadSpec, Recording, RequestSpec, Verify};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A load; bodies and requests as they go over the wire travel behind it, in the order of the requests.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sent {
    spec: LoadSpec,
    requests: Vec<LeftOut>,
    calls: Option<Calls>,
    whither: Whither,
    cpus: Vec<u32>,
}

/// What no store keeps of one request.
#[derive(Debug, Serialize, Deserialize)]
struct LeftOut {
    headers: Vec<(String, String)>,
    has_body: bool,
    has_wire: bool,
}

/// The requests of a log.
#[derive(Debug, Serialize, Deserialize)]
struct Calls {
    /// Which kind of request, and the target.
    targets: Vec<(u32, String)>,
    /// When, and which target.
    calls: Vec<(Nanos, u32)>,
}

/// Whom to load.
#[derive(Debug, Serialize, Deserialize)]
struct Whither {
    addresses: Vec<SocketAddr>,
    in_turn: bool,
    host: String,
    local: Vec<IpAddr>,
    buffers: Option<usize>,
}

/// A load that has arrived.
#[derive(Debug, PartialEq)]
pub(crate) struct Arrived {
    pub(crate) spec: LoadSpec,
    pub(crate) target: Target,
    pub(crate) cpus: Vec<u32>,
}

impl Sent {
    /// Packs a load.
    ///
    /// # Errors
    /// When it needs what only this machine has.
    pub(crate) fn of(spec: &LoadSpec, target: &Target, cpus: &[u32]) -> Result<(Box<Sent>, Vec<Vec<u8>>), RemoteError> {
        let here = [
            (matches!(target.address, Address::Unix(_)), "a socket file of this one"),
            (target.tunnel.is_some(), "a tunnel through a proxy"),
            (spec.tls.as_ref().is_some_and(|tls| tls.client.is_some()), "a certificate to show: its key stays here"),
            (
                spec.tls.as_ref().is_some_and(|tls| matches!(tls.verify, Verify::File(_))),
                "authorities from a file of this one",
            ),
        ];
        if let Some((_, what)) = here.into_iter().find(|(is, _)| *is) {
            return Err(RemoteError::Unsent(what));
        }
        let mut blobs = Vec::new();
        let requests = spec.mix.iter().map(|request| LeftOut::of(request, &mut blobs)).collect();
        let whither = Whither {
            addresses: target.address.all().to_vec(),
            in_turn: matches!(target.address, Address::InTurn(_)),
            host: target.host.clone(),
            local: target.local.clone(),
            buffers: target.buffers,
        };
        let calls = spec.log.as_ref().map(|log| Calls::of(&log.recording));
        Ok((Box::new(Sent { spec: spec.clone(), requests, calls, whither, cpus: cpus.to_vec() }), blobs))
    }

    /// Unpacks it; `None` when bytes are missing.
    pub(crate) fn arrive(self, blobs: Vec<Vec<u8>>) -> Option<Arrived> {
        let Sent { mut spec, requests, calls, whither, cpus } = self;
        let mut blobs = blobs.into_iter();
        for (request, left) in spec.mix.iter_mut().zip(requests) {
            request.headers = left.headers;
            if left.has_body {
                let file = request.body.as_ref().and_then(|body| body.file().map(std::path::Path::to_owned));
                let bytes = blobs.next()?;
                request.body =
                    Some(file.map_or_else(|| Body::written(bytes.clone()), |file| Body::read(&file, bytes.clone())));
            }
            if left.has_wire {
                request.wire = Some(blobs.next()?.into());
            }
        }
        if let (Some(log), Some(calls)) = (&mut spec.log, calls) {
            log.recording = Arc::new(calls.recording()?);
        }
        let Whither { addresses, in_turn, host, local, buffers } = whither;
        let address = match addresses[..] {
            [] => return None,
            [one] if !in_turn => Address::Tcp(one),
            _ if in_turn => Address::InTurn(addresses),
            _ => Address::FirstOf(addresses),
        };
        Some(Arrived { spec, target: Target { address, host, local, tunnel: None, buffers }, cpus })
    }
}

impl LeftOut {
    fn of(request: &RequestSpec, blobs: &mut Vec<Vec<u8>>) -> LeftOut {
        let body = request.body.as_ref().and_then(Body::bytes);
        let wire = request.wire.as_deref();
        blobs.extend(body.map(<[u8]>::to_vec));
        blobs.extend(wire.map(<[u8]>::to_vec));
        LeftOut { headers: request.headers.clone(), has_body: body.is_some(), has_wire: wire.is_some() }
    }
}

impl Calls {
    fn of(recording: &Recording) -> Calls {
        let mut numbers = HashMap::new();
        let mut targets = Vec::new();
        let mut calls = Vec::with_capacity(recording.len());
        for index in 0..recording.len() {
            let (Some(at_ns), Some((kind, target))) = (recording.at_ns(index), recording.asked(index)) else { break };
            let number = *numbers.entry((kind, target)).or_insert_with(|| {
                targets.push((u32::try_from(kind).unwrap_or(u32::MAX), target.to_owned()));
                u32::try_from(targets.len() - 1).unwrap_or(u32::MAX)
            });
            calls.push((at_ns, number));
        }
        Calls { targets, calls }
    }

    fn recording(&self) -> Option<Recording> {
        let mut recording = Recording::with_capacity(self.calls.len());
        self.targets.iter().for_each(|(kind, target)| recording.add_target(*kind, target));
        for &(at_ns, number) in &self.calls {
            self.targets.get(number as usize)?;
            recording.add(at_ns, number);
        }
        Some(recording)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use model::plan::{LOGGED_PATH, Log, Pace, TlsSpec};

    fn travel(spec: &LoadSpec, target: &Target) -> Arrived {
        let (sent, blobs) = Sent::of(spec, target, &[1]).unwrap();
        let mut bytes = Vec::new();
        frame::write(&mut bytes, &sent, &blobs).unwrap();
        let (sent, blobs) = frame::read::<Box<Sent>>(&mut bytes.as_slice()).unwrap().unwrap();
        sent.arrive(blobs).unwrap()
    }

    fn target() -> Target {
        Target::new("192.0.2.1:80".parse::<SocketAddr>().unwrap(), "a.example")
    }

    #[test]
    fn secrets_bodies_and_wires_arrive() {
        let secret = RequestSpec {
            headers: vec![("Authorization".to_owned(), "Basic x".to_owned())],
            body: Some(Body::written(vec![0xff; 9000])),
            wire: Some(b"GET / HTTP/1.1\r\n\r\n".to_vec().into()),
            ..RequestSpec::get("/a")
        };
        let read =
            RequestSpec { body: Some(Body::read(std::path::Path::new("b"), b"x".to_vec())), ..RequestSpec::get("/b") };
        let spec = LoadSpec { mix: vec![secret, read], requests: Some(5), ..LoadSpec::of("l", "/") };
        let arrived = travel(&spec, &target());
        assert_eq!(arrived, Arrived { spec, target: target(), cpus: vec![1] });
    }

    #[test]
    fn a_log_arrives_with_its_requests() {
        let mut recording = Recording::default();
        ["/a", "/unused", "/b"].into_iter().for_each(|target| recording.add_target(0, target));
        [(0, 2), (5, 0), (9, 2)].into_iter().for_each(|(at, target)| recording.add(at, target));
        let log = Log {
            file: "l".into(),
            format: "common".to_owned(),
            speed: 1.0,
            lines: 3,
            used: 3,
            span_ns: 9,
            left_out: vec![],
            recording: Arc::new(recording),
        };
        let spec = LoadSpec { log: Some(log), pace: Pace::Logged, ..LoadSpec::of("l", LOGGED_PATH) };
        let arrived = travel(&spec, &target()).spec.log.unwrap().recording;
        let all: Vec<_> = (0..3).map(|i| (arrived.at_ns(i).unwrap(), arrived.asked(i).unwrap().1)).collect();
        assert_eq!(all, [(0, "/b"), (5, "/a"), (9, "/b")]);
    }

    #[test]
    fn what_only_this_machine_has_does_not_travel() {
        let tls = TlsSpec {
            server_name: "a".to_owned(),
            verify: Verify::File("ca.pem".into()),
            version: None,
            suites: vec![],
            client: None,
            resume: true,
        };
        let spec = LoadSpec { tls: Some(tls), requests: Some(1), ..LoadSpec::of("l", "/") };
        assert!(matches!(Sent::of(&spec, &target(), &[]), Err(RemoteError::Unsent(_))));
        let unix = Target::new(Address::Unix("/s".into()), "a");
        assert!(matches!(Sent::of(&LoadSpec::of("l", "/"), &unix, &[]), Err(RemoteError::Unsent(_))));
    }
}
