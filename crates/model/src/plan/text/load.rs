//! What a plan writes about a load, and what it means; also the requests of a file for `webdyno load --mix`.
//!
//! Whatever is accepted here can be sent: no load fails for its request in mid-run.

use super::measure::{Duration, Rate};
use super::source::Source;
use super::users::{UsersText, users_meant};
use super::{Options, PlanError, in_order, yes};
use crate::plan::{
    Arrivals, Body, Check, HttpVersion, LoadSpec, Pace, RequestSpec, Stage, Timetable, check_template, is_secret,
};
use crate::threshold::Threshold;
use crate::{Nanos, SECOND};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

// ---- what may be written --------------------------------------------------------------------------------------------

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadText {
    path: Option<Spanned<String>>,
    method: Option<Spanned<String>>,
    #[serde(default)]
    headers: BTreeMap<String, Spanned<String>>,
    body: Option<Spanned<String>>,
    body_file: Option<Spanned<PathBuf>>,
    #[serde(default)]
    request: Vec<Spanned<RequestText>>,
    pub(super) rate: Option<Spanned<Rate>>,
    pub(super) stages: Option<Spanned<String>>,
    arrivals: Option<Spanned<ArrivalsWord>>,
    burst: Option<Spanned<u32>>,
    connections: Spanned<u32>,
    pipeline: Option<Spanned<u32>>,
    threads: Option<Spanned<u32>>,
    pub(super) requests: Option<Spanned<u64>>,
    pub(super) duration: Option<Spanned<Duration>>,
    #[serde(default)]
    pub(super) beside: bool,
    #[serde(default = "yes")]
    keep_alive: bool,
    http: Option<HttpVersion>,
    timeout: Option<Spanned<Duration>>,
    #[serde(default = "yes")]
    same_length: bool,
    #[serde(default)]
    checks: Vec<Spanned<String>>,
    #[serde(default)]
    expect: Vec<Spanned<String>>,
    #[serde(default)]
    cookies: bool,
    #[serde(default)]
    busy_poll: bool,
    #[serde(default)]
    seed: u64,
    users: Option<Spanned<UsersText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestText {
    weight: Option<Spanned<u32>>,
    method: Option<Spanned<String>>,
    path: Spanned<String>,
    #[serde(default)]
    headers: BTreeMap<String, Spanned<String>>,
    body: Option<Spanned<String>>,
    body_file: Option<Spanned<PathBuf>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MixText {
    #[serde(default)]
    request: Vec<Spanned<RequestText>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum ArrivalsWord {
    Even,
    Poisson,
}

// ---- what it means --------------------------------------------------------------------------------------------------

/// Reads a file of requests, each with a weight, for `webdyno load --mix`: the tables that a plan calls `[[load.NAME.request]]`,
/// here `[[request]]`.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn parse_mix(text: &str, file: &Path, http: HttpVersion, options: &Options) -> Result<Vec<RequestSpec>, PlanError> {
    let source = Source { text, file };
    let written: MixText = toml::from_str(text).map_err(|error| source.toml_error(&error))?;
    if written.request.is_empty() {
        return Err(source.at(0..0, "request", "give at least one [[request]] with a path"));
    }
    let asking = Asking { source: &source, options, http, key: "request".to_owned() };
    asking.mix(written.request, &[])
}

/// Where the values stand that prove who somebody is.
pub(super) fn secrets<'a>(loads: impl Iterator<Item = &'a LoadText>) -> Vec<Range<usize>> {
    let fields = |load: &'a LoadText| {
        load.headers.iter().chain(load.request.iter().flat_map(|request| request.get_ref().headers.iter()))
    };
    loads.flat_map(fields).filter(|(name, _)| is_secret(name)).map(|(_, value)| value.span()).collect()
}

pub(super) fn load_meant(
    source: &Source<'_>,
    name: String,
    load: Spanned<LoadText>,
    options: &Options,
) -> Result<LoadSpec, PlanError> {
    let key = |field: &str| format!("load.{name}.{field}");
    let span = load.span();
    let mut load = load.into_inner();
    let halved = |ns: Nanos| if options.quick { (ns / 2).max(1) } else { ns };
    let duration_ns = load.duration.as_ref().map(|text| source.duration_text(text, &key("duration"))).transpose()?;
    at_least_1(source, &load, &key)?;
    if duration_ns == Some(0) {
        return Err(source.at(span, &key("duration"), "must be longer than 0"));
    }
    let pace = pace_meant(source, &load, &key, options)?;
    let ends = matches!(&pace, Pace::Timetable(table) if table.length_ns() < Nanos::MAX);
    let requests = load.requests.as_ref().map(|n| *n.get_ref());
    if requests.is_none() && duration_ns.is_none() && !ends && !load.beside {
        return Err(source.at(span, &format!("load.{name}"), "give `requests`, `duration` or both"));
    }
    let http = load.http.unwrap_or(HttpVersion::Http11);
    let asking = Asking { source, options, http, key: format!("load.{name}") };
    let mix = asking.of_load(&mut load, span)?;
    let pipeline = load.pipeline.as_ref().map_or(1, |depth| *depth.get_ref());
    if let Some(depth) = load.pipeline.as_ref().filter(|_| pipeline > 1 && mix.iter().any(RequestSpec::waits)) {
        let what = "a request with Expect: 100-continue waits for an answer before its body; leave `pipeline` out";
        return Err(source.at(depth.span(), &key("pipeline"), what));
    }
    if let Some(depth) = load.pipeline.as_ref().filter(|_| pipeline > 1 && !load.keep_alive) {
        let what = "without keep_alive a connection carries one request; leave `pipeline` or `keep_alive` out";
        return Err(source.at(depth.span(), &key("pipeline"), what));
    }
    let check = |text: &Spanned<String>| {
        Check::parse(text.get_ref()).map_err(|error| source.at(text.span(), &key("checks"), &error.to_string()))
    };
    let users = load.users.as_ref().map(Spanned::get_ref);
    if let Some(depth) = load.pipeline.as_ref().filter(|_| pipeline > 1 && users.is_some()) {
        return Err(source.at(
            depth.span(),
            &key("pipeline"),
            "browsers do not do that; leave `pipeline` or `users` out",
        ));
    }
    if let (Some(users), false) = (&load.users, load.keep_alive) {
        let what = "browsers keep their connections; leave `keep_alive` or `users` out";
        return Err(source.at(users.span(), &format!("load.{name}.users"), what));
    }
    let session = users.map(|users| users_meant(source, &name, users, mix.len())).transpose()?;
    let expected = |text: &Spanned<String>| {
        Threshold::parse(text.get_ref()).map_err(|error| source.at(text.span(), &key("expect"), &error.to_string()))
    };
    Ok(LoadSpec {
        session,
        tls: None,
        expect: load.expect.iter().map(expected).collect::<Result<_, _>>()?,
        mix,
        log: None,
        pace,
        connections: *load.connections.get_ref(),
        pipeline,
        threads: load.threads.map(Spanned::into_inner),
        requests: requests.map(halved),
        duration_ns: duration_ns.map(halved),
        keep_alive: load.keep_alive,
        http,
        timeout_ns: source.longer_than_0(load.timeout.as_ref(), &key("timeout"), 30 * SECOND)?,
        same_length: load.same_length,
        checks: load.checks.iter().map(check).collect::<Result<_, _>>()?,
        cookies: load.cookies,
        busy_poll: load.busy_poll,
        first_alone: false,
        rests: true,
        drains: false,
        seed: load.seed,
        name,
    })
}

fn at_least_1(source: &Source<'_>, load: &LoadText, key: &dyn Fn(&str) -> String) -> Result<(), PlanError> {
    let number = |number: &Option<Spanned<u32>>| number.as_ref().map(|n| (n.span(), u64::from(*n.get_ref())));
    let fields = [
        (load.requests.as_ref().map(|n| (n.span(), *n.get_ref())), "requests"),
        (number(&load.threads), "threads"),
        (number(&load.pipeline), "pipeline"),
        (number(&load.burst), "burst"),
        (Some((load.connections.span(), u64::from(*load.connections.get_ref()))), "connections"),
    ];
    for (value, field) in fields {
        if let Some((span, 0)) = value {
            return Err(source.at(span, &key(field), "must be at least 1"));
        }
    }
    Ok(())
}

fn pace_meant(
    source: &Source<'_>,
    load: &LoadText,
    key: &dyn Fn(&str) -> String,
    options: &Options,
) -> Result<Pace, PlanError> {
    let mut stages = match (&load.rate, &load.stages) {
        (Some(rate), None) => {
            let per_second = source.rate(rate, &key("rate"))?;
            vec![Stage { length_ns: Nanos::MAX, from: per_second, to: per_second }]
        }
        (None, Some(text)) => crate::plan::stages(text.get_ref())
            .map_err(|error| source.at(text.span(), &key("stages"), &error.to_string()))?,
        (Some(rate), Some(_)) => {
            return Err(source.at(rate.span(), &key("rate"), "give `rate` or `stages`, not both"));
        }
        (None, None) => {
            let of_open = [
                (load.arrivals.as_ref().map(Spanned::span), "arrivals"),
                (load.burst.as_ref().map(Spanned::span), "burst"),
            ];
            return match of_open.into_iter().find_map(|(span, field)| Some((span?, field))) {
                Some((span, field)) => Err(source.at(span, &key(field), "needs `rate` or `stages`")),
                None => Ok(Pace::WhenFree),
            };
        }
    };
    if options.quick {
        stages.iter_mut().filter(|stage| stage.length_ns < Nanos::MAX).for_each(|stage| stage.length_ns /= 2);
    }
    let arrivals = match (&load.arrivals, &load.burst) {
        (Some(word), Some(burst)) if *word.get_ref() == ArrivalsWord::Poisson => {
            return Err(source.at(
                burst.span(),
                &key("burst"),
                "groups come evenly; give it or `arrivals = \"poisson\"`",
            ));
        }
        (_, Some(burst)) => Arrivals::Bursts { size: *burst.get_ref() },
        (Some(word), None) if *word.get_ref() == ArrivalsWord::Poisson => Arrivals::Poisson,
        _ => Arrivals::Even,
    };
    Ok(Pace::Timetable(Timetable { stages, arrivals }))
}

/// What the requests of one load or file have in common.
struct Asking<'a> {
    source: &'a Source<'a>,
    options: &'a Options,
    http: HttpVersion,
    key: String,
}

impl Asking<'_> {
    /// One request written into the load itself, or a mix.
    fn of_load(&self, load: &mut LoadText, span: Range<usize>) -> Result<Vec<RequestSpec>, PlanError> {
        let headers = std::mem::take(&mut load.headers);
        let [method, body] = [load.method.take(), load.body.take()];
        let (path, body_file) = (load.path.take(), load.body_file.take());
        let requests = std::mem::take(&mut load.request);
        if requests.is_empty() {
            let Some(path) = path else {
                let what = "give `path`, or several requests as [[load.NAME.request]]".replace("load.NAME", &self.key);
                return Err(self.source.at(span, &self.key, &what));
            };
            let only = RequestText { weight: None, method, path, headers, body, body_file };
            return Ok(vec![self.request(only, &[])?]);
        }
        let alone = [
            (path.map(|text| text.span()), "path"),
            (method.map(|text| text.span()), "method"),
            (body.map(|text| text.span()), "body"),
            (body_file.map(|text| text.span()), "body_file"),
        ];
        if let Some((span, field)) = alone.into_iter().find_map(|(span, field)| Some((span?, field))) {
            let what = format!("stands in each [[{}.request]] when there are such", self.key);
            return Err(self.source.at(span, &format!("{}.{field}", self.key), &what));
        }
        let common: Vec<(String, Spanned<String>)> = in_order(headers).collect();
        self.mix(requests, &common)
    }

    fn mix(
        &self,
        requests: Vec<Spanned<RequestText>>,
        common: &[(String, Spanned<String>)],
    ) -> Result<Vec<RequestSpec>, PlanError> {
        let place = requests.first().map_or(0..0, Spanned::span);
        let mix: Vec<_> =
            requests.into_iter().map(|text| self.request(text.into_inner(), common)).collect::<Result<_, _>>()?;
        if mix.iter().all(|request| request.weight == 0) {
            return Err(self.at(place, "weight", "is 0 for all requests, so none would ever be sent"));
        }
        Ok(mix)
    }

    fn request(&self, text: RequestText, common: &[(String, Spanned<String>)]) -> Result<RequestSpec, PlanError> {
        let path = self.source.url_path(&text.path, &self.field("path"))?;
        self.template(&path, text.path.span(), "path")?;
        let method = self.method(text.method.as_ref())?;
        let place = text.body.as_ref().map(Spanned::span).or_else(|| text.body_file.as_ref().map(Spanned::span));
        let body = self.body(text.body, text.body_file)?;
        if let Some(place) = place.filter(|_| method == "TRACE") {
            return Err(self.at(place, "body", "a TRACE request has none; remove it or choose another method"));
        }
        let own: Vec<_> = in_order(text.headers).collect();
        let is_new = |name: &str| !own.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let inherited = common.iter().filter(|(name, _)| is_new(name));
        let headers = inherited
            .chain(&own)
            .map(|(name, value)| self.header(name, value, body.as_ref()))
            .collect::<Result<_, _>>()?;
        let weight = text.weight.map_or(1, Spanned::into_inner);
        Ok(RequestSpec { weight, method, path, headers, body, wire: None })
    }

    fn method(&self, text: Option<&Spanned<String>>) -> Result<String, PlanError> {
        let Some(text) = text else { return Ok("GET".to_owned()) };
        let method = text.get_ref();
        if !is_token(method) {
            return Err(self.at(text.span(), "method", "must be one word of letters, digits and hyphens, such as GET"));
        }
        if method == "CONNECT" {
            return Err(self.at(text.span(), "method", "CONNECT opens a tunnel and asks for nothing; choose another"));
        }
        Ok(method.clone())
    }

    fn body(&self, text: Option<Spanned<String>>, file: Option<Spanned<PathBuf>>) -> Result<Option<Body>, PlanError> {
        let (body, place, field) = match (text, file) {
            (None, None) => return Ok(None),
            (Some(_), Some(file)) => {
                return Err(self.at(file.span(), "body_file", "give `body` or `body_file`, not both"));
            }
            (Some(text), None) => {
                let place = text.span();
                (Body::written(text.into_inner()), place, "body")
            }
            (None, Some(file)) => {
                let path = self.source.path(file.get_ref());
                let bytes = (self.options.read)(&path).map_err(|what| self.at(file.span(), "body_file", &what))?;
                (Body::read(&path, bytes), file.span(), "body_file")
            }
        };
        // What is no text is sent as it is.
        if let Some(text) = body.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok()) {
            self.template(text, place, field)?;
        }
        Ok(Some(body))
    }

    fn header(&self, field: &str, value: &Spanned<String>, body: Option<&Body>) -> Result<(String, String), PlanError> {
        let at = |what: &str| self.at(value.span(), "headers", what);
        if RESERVED.iter().any(|reserved| field.eq_ignore_ascii_case(reserved)) {
            return Err(at(&format!("`{field}` follows from keep_alive and from the body; remove it")));
        }
        let text = value.get_ref();
        let is_text = text.bytes().all(|b| b == b'\t' || (b >= b' ' && b != 0x7f));
        if !(is_token(field) && is_text) {
            return Err(at(&format!(
                "`{field}` must be a name of letters, digits and hyphens, with a value on one line"
            )));
        }
        let can_wait = self.http == HttpVersion::Http11 && body.is_some_and(|body| body.length() > 0);
        if field.eq_ignore_ascii_case("expect") && !(can_wait && is_continue(text)) {
            return Err(at("Expect can only be 100-continue, in HTTP/1.1 and with a body that is not empty"));
        }
        self.template(text, value.span(), "headers")?;
        Ok((field.to_owned(), text.clone()))
    }

    fn template(&self, text: &str, place: Range<usize>, field: &str) -> Result<(), PlanError> {
        check_template(text).map_err(|error| self.at(place, field, &error.to_string()))
    }

    fn at(&self, place: Range<usize>, field: &str, what: &str) -> PlanError {
        self.source.at(place, &self.field(field), what)
    }

    fn field(&self, field: &str) -> String {
        format!("{}.{field}", self.key)
    }
}

/// Header fields that the engine writes by itself.
const RESERVED: [&str; 5] = ["Connection", "Content-Length", "Keep-Alive", "Transfer-Encoding", "Upgrade"];

fn is_token(text: &str) -> bool {
    let in_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(in_token)
}

fn is_continue(value: &str) -> bool {
    value.trim_ascii().eq_ignore_ascii_case("100-continue")
}

impl RequestSpec {
    /// Whether its body waits until the server asks for it: `Expect: 100-continue`.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("expect") && is_continue(value))
    }
}

#[cfg(test)]
mod tests;
