//! What is sent and when: one load of a plan.

use super::body::Body;
use super::check::Check;
use super::log::Log;
use crate::threshold::Threshold;
use crate::{Nanos, SECOND};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// What is sent and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct LoadSpec {
    /// Its name.
    pub name: String,
    /// What is asked for, never empty. Of several, each request is one at random, by weight.
    pub mix: Vec<RequestSpec>,
    /// The log whose requests are sent, if it is one. Then it and not chance says which request of the mix comes next, and
    /// fills in [`LOGGED_PATH`](super::LOGGED_PATH).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<Log>,
    /// When requests begin.
    pub pace: Pace,
    /// Users instead of single requests: the pace then says when users come, the first request of the mix is the page they ask
    /// for, and all others are what belongs to it.
    pub session: Option<SessionSpec>,
    /// Connections, each with one request in flight at a time, or [`LoadSpec::pipeline`] of them.
    pub connections: u32,
    /// Requests sent on a connection before the first of them is answered; 1 is no pipelining.
    pub pipeline: u32,
    /// Worker threads; chosen by the engine when absent.
    pub threads: Option<u32>,
    /// Stop after so many requests.
    pub requests: Option<u64>,
    /// Stop after so long. One of the two is always set, or the pace has an end.
    pub duration_ns: Option<Nanos>,
    /// Keep connections open between requests.
    pub keep_alive: bool,
    /// HTTP version to speak.
    pub http: HttpVersion,
    /// TLS below HTTP, if any.
    pub tls: Option<TlsSpec>,
    /// The longest a request may take.
    pub timeout_ns: Nanos,
    /// Whether every good body must have the length of the first one for the same request.
    pub same_length: bool,
    /// What is expected of it.
    pub expect: Vec<Threshold>,
    /// What must hold of every good answer.
    pub checks: Vec<Check>,
    /// Whether each connection keeps the cookies that it is given, and sends them with its next requests.
    pub cookies: bool,
    /// Ask the kernel again and again instead of sleeping: less latency for a whole CPU.
    pub busy_poll: bool,
    /// The first request of a closed loop goes alone: the others begin when its answer does, or when it fails.
    pub first_alone: bool,
    /// Whether a connection rests after a failure before it is used again, longer after each one in a row.
    pub rests: bool,
    /// At the end of its duration a closed loop begins nothing any more, and waits for the answers under way, each no longer than its own
    /// time: what is cut off would be worked off by the server in somebody else's window.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drains: bool,
    /// Decides what chance decides: which request of the mix, random data, arrivals.
    pub seed: u64,
}

/// One kind of request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestSpec {
    /// How often it is chosen, relative to the others.
    pub weight: u32,
    /// Method, such as `GET`.
    pub method: String,
    /// Path and query, beginning with `/`; or a whole URL, to a proxy. It may hold templates, as may the values of the header
    /// fields and a body that is text: [`super::check_template`].
    pub path: String,
    /// Header fields to add. Of those that prove who somebody is only the name is stored: [`is_secret`].
    #[serde(serialize_with = "without_secrets")]
    pub headers: Vec<(String, String)>,
    /// What is sent behind the head, if anything.
    pub body: Option<Body>,
    /// Head and body as they go over the wire, if the other fields only tell humans what is sent. Nothing is added to them, and
    /// they are not stored: nobody knows what is secret in them.
    #[serde(skip)]
    pub wire: Option<Arc<[u8]>>,
}

/// HTTP versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.0.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http11,
}

/// How users behave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// Connections of one user's browser.
    pub connections: u32,
    /// Mean time between a page and the next click; the times are exponential.
    pub think_ns: Nanos,
    /// Share of users who click again after a page, from 0 to 1; the others leave.
    pub returns: f64,
    /// A user who has waited so long for a page leaves.
    pub patience_ns: Option<Nanos>,
    /// A user who has waited so long asks for the page again and abandons what is on its way.
    pub reload_after_ns: Option<Nanos>,
    /// How often a user does that for one page at most.
    pub reloads: u32,
}

/// How TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSpec {
    /// The name that is asked for (SNI) and that the certificate must have.
    pub server_name: String,
    /// Whose certificates are believed.
    pub verify: Verify,
    /// The only version to speak; both when absent.
    pub version: Option<TlsVersion>,
    /// The suites to offer, by IANA's names as rustls has them (`TLS13_AES_128_GCM_SHA256`); all when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suites: Vec<String>,
    /// What the client shows of itself, if anything.
    pub client: Option<ClientCertificate>,
    /// Whether further connections take up the first one's session, as browsers do.
    pub resume: bool,
}

/// Whose certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Those of the authorities that this machine trusts.
    System,
    /// Those of the authorities in a PEM file.
    File(#[serde(serialize_with = "super::as_text")] PathBuf),
    /// Anybody's.
    Nothing,
}

/// Versions of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    Tls13,
}

/// A client's certificate and its key, each a PEM file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCertificate {
    /// The certificate, and those between it and the authority.
    #[serde(serialize_with = "super::as_text")]
    pub certificate: PathBuf,
    /// The private key.
    #[serde(serialize_with = "super::as_text")]
    pub key: PathBuf,
}

/// When requests begin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Pace {
    /// Closed loop: a connection sends its next request when it has the answer to the last one.
    #[default]
    WhenFree,
    /// Open loop: requests arrive by a timetable, whether the server keeps up or not.
    Timetable(Timetable),
    /// Open loop: requests arrive as they did when the log was written: [`LoadSpec::log`].
    Logged,
}

/// Arrivals over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timetable {
    /// One after the other; never empty.
    pub stages: Vec<Stage>,
    /// How arrivals lie within them.
    pub arrivals: Arrivals,
}

/// A stretch of time in which the rate is constant or changes evenly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// How long it lasts; [`Nanos::MAX`] when something else ends the load.
    pub length_ns: Nanos,
    /// Arrivals per second at its beginning.
    pub from: f64,
    /// Arrivals per second at its end.
    pub to: f64,
}

/// How arrivals lie in time around their rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Arrivals {
    /// At equal distances.
    Even,
    /// Independent of each other, as from many users: the distances are exponential.
    Poisson,
    /// So many at the same instant, and the groups at equal distances.
    Bursts {
        /// Requests per group.
        size: u32,
    },
}

impl Timetable {
    /// One rate, without an end of its own.
    #[must_use]
    pub fn constant(rate: f64, arrivals: Arrivals) -> Timetable {
        Timetable { stages: vec![Stage { length_ns: Nanos::MAX, from: rate, to: rate }], arrivals }
    }

    /// From the first stage's beginning to the last one's end.
    #[must_use]
    pub fn length_ns(&self) -> Nanos {
        self.stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.length_ns))
    }

    /// Arrivals to be expected within its first `length_ns`.
    #[must_use]
    pub fn expected(&self, length_ns: Nanos) -> f64 {
        let (mut left, mut sum) = (length_ns, 0.0);
        for stage in &self.stages {
            let part = left.min(stage.length_ns);
            sum += stage.expected(part);
            left -= part;
        }
        sum
    }

    /// When so many arrivals are to be expected, to the microsecond; `None` when the table ends before.
    #[must_use]
    pub fn reached(&self, arrivals: f64) -> Option<Nanos> {
        // Longer than any load, and short enough for a sum of stages.
        const LONGEST: Nanos = 365 * 86_400 * SECOND;
        let (mut early, mut late) = (0, self.length_ns().min(LONGEST));
        if self.expected(late) < arrivals - 1e-6 {
            return None;
        }
        while late - early > 1000 {
            let middle = early + (late - early) / 2;
            if self.expected(middle) < arrivals { early = middle } else { late = middle }
        }
        Some(late)
    }
}

impl Stage {
    /// Arrivals to be expected within its first `part_ns`: the integral of the rate.
    #[must_use]
    pub fn expected(&self, part_ns: Nanos) -> f64 {
        let share = part_ns as f64 / self.length_ns.max(1) as f64;
        part_ns as f64 / SECOND as f64 * (self.from + (self.to - self.from) * share / 2.0)
    }
}

impl RequestSpec {
    /// A GET without fields of its own.
    #[must_use]
    pub fn get(path: &str) -> RequestSpec {
        RequestSpec {
            weight: 1,
            method: "GET".to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
            wire: None,
        }
    }

    /// Whether it can be sent: a store keeps neither the values of secret header fields nor long bodies, so of a request that comes from
    /// one they may be missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_lost = |(name, value): &(String, String)| is_secret(name) && value == SECRET;
        !self.headers.iter().any(is_lost) && self.body.as_ref().is_none_or(|body| body.bytes().is_some())
    }
}

/// The last request of a log comes at its very end, and may wait so long for a free connection.
const LAST_WAIT: Nanos = SECOND;

/// What is stored, and shown, in place of a secret.
pub const SECRET: &str = "***";

/// Whether a header field of that name holds a password or what is as good as one, by the words in it: rather one too many than
/// a secret in a store.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    // `X-Api-Key`, `x_api_key` and `apikey` are one to those who read them.
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    SECRET_WORDS.iter().any(|word| name.contains(word)) || ["auth", "xauth", "key", "xkey"].contains(&name.as_str())
}

/// What names of secrets have in them, without hyphens.
const SECRET_WORDS: [&str; 13] = [
    "authorization",
    "cookie",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "accesskey",
    "authkey",
    "privatekey",
    "session",
    "credential",
];

fn without_secrets<S: serde::Serializer>(headers: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(headers.iter().map(|(name, value)| (name, if is_secret(name) { SECRET } else { value })))
}

impl LoadSpec {
    /// One GET after another for that path, over one kept connection, without an end; to be changed as needed.
    #[must_use]
    pub fn of(name: &str, path: &str) -> LoadSpec {
        LoadSpec {
            name: name.to_owned(),
            mix: vec![RequestSpec::get(path)],
            log: None,
            pace: Pace::WhenFree,
            session: None,
            connections: 1,
            pipeline: 1,
            threads: None,
            requests: None,
            duration_ns: None,
            keep_alive: true,
            http: HttpVersion::Http11,
            tls: None,
            timeout_ns: 30 * SECOND,
            same_length: true,
            expect: Vec::new(),
            checks: Vec::new(),
            cookies: false,
            busy_poll: false,
            first_alone: false,
            rests: true,
            drains: false,
            seed: 0,
        }
    }

    /// Whether requests come by a timetable, and not when a connection is free.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.pace, Pace::WhenFree)
    }

    /// When nothing begins any more, counted from the beginning; `None` when only the number of requests ends it.
    #[must_use]
    pub fn length_ns(&self) -> Option<Nanos> {
        let table = match &self.pace {
            Pace::WhenFree => Nanos::MAX,
            Pace::Timetable(table) => table.length_ns(),
            Pace::Logged => self.log.as_ref().map_or(0, |log| log.span_ns.saturating_add(LAST_WAIT)),
        };
        Some(self.duration_ns.map_or(table, |duration| duration.min(table))).filter(|&length| length < Nanos::MAX)
    }
}

/// As it stands in stores: fields that came later are absent from older ones, which had one request and wrote it as two fields.
#[derive(Deserialize)]
struct Stored {
    name: String,
    #[serde(default)]
    mix: Vec<RequestSpec>,
    path: Option<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    log: Option<Log>,
    #[serde(default)]
    pace: Pace,
    #[serde(default)]
    session: Option<SessionSpec>,
    connections: u32,
    #[serde(default = "one")]
    pipeline: u32,
    threads: Option<u32>,
    requests: Option<u64>,
    duration_ns: Option<Nanos>,
    keep_alive: bool,
    http: HttpVersion,
    #[serde(default)]
    tls: Option<TlsSpec>,
    timeout_ns: Nanos,
    same_length: bool,
    #[serde(default)]
    expect: Vec<Threshold>,
    #[serde(default)]
    checks: Vec<Check>,
    #[serde(default)]
    cookies: bool,
    #[serde(default)]
    busy_poll: bool,
    #[serde(default)]
    first_alone: bool,
    #[serde(default = "yes")]
    rests: bool,
    #[serde(default)]
    drains: bool,
    #[serde(default)]
    seed: u64,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

impl From<Stored> for LoadSpec {
    fn from(stored: Stored) -> LoadSpec {
        let mut mix = stored.mix;
        mix.extend(stored.path.map(|path| RequestSpec { headers: stored.headers, ..RequestSpec::get(&path) }));
        LoadSpec {
            name: stored.name,
            mix,
            log: stored.log,
            pace: stored.pace,
            session: stored.session,
            connections: stored.connections,
            pipeline: stored.pipeline,
            threads: stored.threads,
            requests: stored.requests,
            duration_ns: stored.duration_ns,
            keep_alive: stored.keep_alive,
            http: stored.http,
            tls: stored.tls,
            timeout_ns: stored.timeout_ns,
            same_length: stored.same_length,
            expect: stored.expect,
            checks: stored.checks,
            cookies: stored.cookies,
            busy_poll: stored.busy_poll,
            first_alone: stored.first_alone,
            rests: stored.rests,
            drains: stored.drains,
            seed: stored.seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{LOGGED_PATH, LeftOut, Recording};
    use std::sync::Arc;

    fn check(stages: &[(u64, f64, f64)], seconds: u64, expected: f64) {
        let stages =
            stages.iter().map(|&(seconds, from, to)| Stage { length_ns: seconds * SECOND, from, to }).collect();
        let table = Timetable { stages, arrivals: Arrivals::Even };
        let found = table.expected(seconds * SECOND);
        assert!((found - expected).abs() < 1e-6 * expected.max(1.0), "{found}, not {expected}");
    }

    #[test]
    fn expected_arrivals_are_the_area_below_the_rate() {
        check(&[(10, 100.0, 100.0)], 10, 1000.0);
        check(&[(10, 100.0, 100.0)], 20, 1000.0);
        check(&[(10, 0.0, 100.0)], 10, 500.0);
        check(&[(10, 0.0, 100.0)], 5, 125.0);
        check(&[(10, 100.0, 100.0), (60, 500.0, 500.0)], 70, 31_000.0);
        check(&[(0, 5.0, 9.0), (1, 7.0, 7.0)], 1, 7.0);
        let endless = Timetable::constant(20.0, Arrivals::Poisson);
        assert_eq!(endless.length_ns(), Nanos::MAX);
        assert!((endless.expected(3 * SECOND) - 60.0).abs() < 1e-6);
    }

    #[test]
    fn arrivals_are_reached_when_the_area_is() {
        let check = |table: &Timetable, arrivals, expected_ms: Option<u64>| {
            let found = table.reached(arrivals).map(|ns| (ns + 500_000) / 1_000_000);
            assert_eq!(found, expected_ms, "{arrivals}");
        };
        let endless = Timetable::constant(20.0, Arrivals::Even);
        check(&endless, 60.0, Some(3000));
        check(&endless, 0.0, Some(0));
        let ramp = Stage { length_ns: 10 * SECOND, from: 0.0, to: 100.0 };
        let ramp = Timetable { stages: vec![ramp], arrivals: Arrivals::Even };
        check(&ramp, 125.0, Some(5000));
        check(&ramp, 500.0, Some(10_000));
        check(&ramp, 501.0, None);
    }

    #[test]
    fn a_load_of_the_first_stores_is_one_request() {
        let old = r#"{"name":"l","path":"/a","connections":2,"threads":null,"requests":5,"duration_ns":null,
            "keep_alive":true,"http":"1.1","timeout_ns":1,"same_length":true,"headers":[["X-A","1"]]}"#;
        let spec: LoadSpec = serde_json::from_str(old).unwrap();
        let headers = vec![("X-A".to_owned(), "1".to_owned())];
        assert_eq!(spec.mix, [RequestSpec { headers, ..RequestSpec::get("/a") }]);
        assert_eq!((&spec.pace, spec.pipeline), (&Pace::WhenFree, 1));
        let again: LoadSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(again, spec);
    }

    #[test]
    fn what_proves_who_somebody_is_is_not_stored() {
        let shown = ["X-A", "Accept", "Authority", "X-Author", "Content-Type", "Host", "Keep-Alive", "X-Compass"];
        let secret = [
            "authorization",
            "Cookie",
            "Proxy-Authorization",
            "X-Api-Key",
            "API_KEY",
            "apikey",
            "X-Auth-Token",
            "X-Auth",
            "X-CSRF-Token",
            "X-Client-Secret",
            "X-Password",
            "X-Vault-Token",
            "Session-Id",
            "X-Amz-Security-Token",
            "X-Credentials",
            "X-Access-Key",
        ];
        let headers = shown.iter().chain(&secret).map(|&name| (name.to_owned(), "1".to_owned())).collect();
        let spec = LoadSpec { mix: vec![RequestSpec { headers, ..RequestSpec::get("/") }], ..LoadSpec::of("l", "/") };
        let stored: LoadSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        let values: Vec<_> = stored.mix[0].headers.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, [vec!["1"; shown.len()], vec![SECRET; secret.len()]].concat());
    }

    #[test]
    fn what_a_store_left_out_cannot_be_sent_again() {
        let check = |request: RequestSpec, whole: bool| {
            assert!(request.is_whole());
            let stored: RequestSpec = serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
            assert_eq!(stored.is_whole(), whole, "{stored:?}");
        };
        let with = |name: &str| vec![(name.to_owned(), "1".to_owned())];
        check(RequestSpec { headers: with("Accept"), ..RequestSpec::get("/") }, true);
        check(RequestSpec { headers: with("Cookie"), ..RequestSpec::get("/") }, false);
        check(RequestSpec { body: Some(Body::written("a=1")), ..RequestSpec::get("/") }, true);
        check(RequestSpec { body: Some(Body::written(vec![b'x'; 5000])), ..RequestSpec::get("/") }, false);
    }

    #[test]
    fn of_a_log_everything_but_its_requests_is_stored() {
        let mut recording = Recording::default();
        recording.add_target(0, "/a");
        [0, 7].into_iter().for_each(|at| recording.add(at, 0));
        let log = Log {
            file: "access.log".into(),
            format: "common".to_owned(),
            speed: 2.0,
            lines: 3,
            used: 2,
            span_ns: 7,
            left_out: vec![LeftOut { why: "of another format".to_owned(), lines: 1, first_line: 2 }],
            recording: Arc::new(recording),
        };
        let spec = LoadSpec { log: Some(log.clone()), pace: Pace::Logged, ..LoadSpec::of("l", LOGGED_PATH) };
        assert_eq!(spec.length_ns(), Some(SECOND + 7));
        let stored: LoadSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(stored.log, Some(Log { recording: Arc::default(), ..log }));
    }
}
