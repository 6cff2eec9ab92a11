//! A load in words: what is sent, when, how long, and over what connections.

use crate::language::{Catalogue, Sentence};
use fluent_bundle::FluentValue;
use model::Nanos;
use model::plan::{Arrivals, HttpVersion, LoadSpec, Pace, RequestSpec, Stage, Timetable};

/// Kinds of requests, or stages, that are told one by one; beyond them a sentence would be a list.
const MOST_TOLD: usize = 4;

pub(crate) fn sentence(load: &LoadSpec, words: &Catalogue) -> Sentence {
    words.say(
        if load.keep_alive { "load-keep-alive" } else { "load-close" },
        &[
            ("request", requests(load, words).into()),
            ("pace", pace(load, words).into()),
            ("amount", amount(load, words).into()),
        ],
    )
}

/// Who sends it, and over what connections.
pub(crate) fn clients(load: &LoadSpec, words: &Catalogue) -> String {
    let id = if load.keep_alive { "clients-keep-alive" } else { "clients-close" };
    words.say(id, &[("pace", pace(load, words).into())]).text
}

/// What is asked for.
pub(crate) fn requests(load: &LoadSpec, words: &Catalogue) -> String {
    let what = match &load.log {
        None => written(load, words),
        Some(log) => {
            let methods = list(&load.mix, |request| request.method.clone(), words);
            let arguments = [("methods", methods.into()), ("file", log.file.display().to_string().into())];
            words.say("request-logged", &arguments).text
        }
    };
    match load.http {
        HttpVersion::Http10 => words.say("request-http10", &[("request", what.into())]).text,
        HttpVersion::Http11 => what,
    }
}

/// Requests that somebody wrote down, and no log has.
fn written(load: &LoadSpec, words: &Catalogue) -> String {
    match load.mix.as_slice() {
        [page, parts @ ..] if load.session.is_some() => {
            let arguments = [("request", request(page, words).into()), ("parts", parts.len().into())];
            words.say("request-page", &arguments).text
        }
        [only] => request(only, words),
        mix => {
            let whole: f64 = mix.iter().map(|request| f64::from(request.weight)).sum();
            let of_mix = |one: &RequestSpec| {
                let share = f64::from(one.weight) / whole * 100.0;
                let share = units::si(share).print(share);
                words.say("request-of-mix", &[("request", request(one, words).into()), ("share", share.into())]).text
            };
            let told = list(mix, of_mix, words);
            words.say("request-mix", &[("kinds", mix.len().into()), ("list", told.into())]).text
        }
    }
}

fn request(request: &RequestSpec, words: &Catalogue) -> String {
    let line = format!("{} {}", request.method, request.path);
    match &request.body {
        None => line,
        Some(body) => {
            let bytes = units::short_bytes(body.length());
            words.say("request-with-body", &[("request", line.into()), ("bytes", bytes.into())]).text
        }
    }
}

/// The first few, and that there are more.
fn list<T>(items: &[T], tell: impl Fn(&T) -> String, words: &Catalogue) -> String {
    let mut told: Vec<String> = items.iter().take(MOST_TOLD).map(tell).collect();
    if items.len() > MOST_TOLD {
        told.push("…".to_owned());
    }
    words.list(&told)
}

fn pace(load: &LoadSpec, words: &Catalogue) -> String {
    let connections: (&'static str, FluentValue<'_>) = ("connections", load.connections.into());
    let pace = match &load.pace {
        Pace::WhenFree => words.say("pace-closed", &[connections]).text,
        Pace::Timetable(table) => {
            let arrivals = arrivals(table, words);
            words.say("pace-open", &[("arrivals", arrivals.into()), connections]).text
        }
        Pace::Logged => words.say("pace-open", &[("arrivals", logged(load, words).into()), connections]).text,
    };
    if let Some(session) = &load.session {
        let each = session.connections.max(1);
        let users = load.connections / each;
        let arguments = [("pace", pace.into()), ("connections", each.into()), ("users", users.into())];
        return words.say("pace-users", &arguments).text;
    }
    if load.pipeline > 1 {
        return words.say("pace-pipelined", &[("pace", pace.into()), ("depth", load.pipeline.into())]).text;
    }
    pace
}

/// How much of a log is replayed, and how fast.
fn logged(load: &LoadSpec, words: &Catalogue) -> String {
    let (used, speed) = load.log.as_ref().map_or_else(Default::default, |log| (log.used, log.speed));
    let speed = units::si(speed).print(speed);
    words.say("arrivals-logged", &[("requests", used.into()), ("speed", speed.into())]).text
}

fn arrivals(table: &Timetable, words: &Catalogue) -> String {
    let rate = match table.stages.as_slice() {
        [only] if (only.from - only.to).abs() < f64::EPSILON => {
            words.say("rate-constant", &[("rate", per_second(only.from).into())]).text
        }
        stages => list(stages, |one| stage(one, words), words),
    };
    match table.arrivals {
        Arrivals::Even => words.say("arrivals-even", &[("rate", rate.into())]),
        Arrivals::Poisson => words.say("arrivals-poisson", &[("rate", rate.into())]),
        Arrivals::Bursts { size } => words.say("arrivals-bursts", &[("rate", rate.into()), ("size", size.into())]),
    }
    .text
}

fn stage(stage: &Stage, words: &Catalogue) -> String {
    let (from, to) = (per_second(stage.from), per_second(stage.to));
    let constant = from == to;
    match (constant, stage.length_ns) {
        (true, Nanos::MAX) => words.say("rate-constant", &[("rate", from.into())]),
        (true, length) => words.say("rate-held", &[("rate", from.into()), ("duration", duration(length).into())]),
        (false, length) => {
            let duration = duration(length);
            words.say("rate-ramp", &[("from", from.into()), ("to", to.into()), ("duration", duration.into())])
        }
    }
    .text
}

fn amount(load: &LoadSpec, words: &Catalogue) -> String {
    match (load.requests, load.length_ns()) {
        (Some(n), None) => words.say("amount-requests", &[("requests", n.into())]),
        (None, Some(ns)) => words.say("amount-duration", &[("duration", duration(ns).into())]),
        (Some(n), Some(ns)) => words.say("amount-either", &[("requests", n.into()), ("duration", duration(ns).into())]),
        (None, None) => words.say("amount-open", &[]),
    }
    .text
}

fn duration(ns: Nanos) -> String {
    units::short_duration(ns as f64)
}

/// A rate as people write it: 1000, 33.3, 0.5.
fn per_second(rate: f64) -> String {
    if rate.fract() == 0.0 { format!("{rate}") } else { units::si(rate).print(rate) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use model::SECOND;
    use model::plan::{LOGGED_PATH, Log};
    use std::sync::Arc;

    #[track_caller]
    fn check(load: &LoadSpec, english: &str, japanese: &str) {
        let say = |language| sentence(load, &Catalogue::of(language)).text;
        assert_eq!((say(Language::English), say(Language::Japanese)), (english.to_owned(), japanese.to_owned()));
    }

    fn open(stages: &[(Nanos, f64, f64)], arrivals: Arrivals) -> LoadSpec {
        let stages = stages.iter().map(|&(length_ns, from, to)| Stage { length_ns, from, to }).collect();
        let pace = Pace::Timetable(Timetable { stages, arrivals });
        LoadSpec { pace, connections: 50, ..LoadSpec::of("l", "/") }
    }

    #[test]
    fn a_closed_loop() {
        let load = LoadSpec { connections: 10, requests: Some(400), ..LoadSpec::of("l", "/a?b") };
        check(
            &load,
            "GET /a?b, 10 at a time, 400 requests, keep-alive",
            "GET /a?b、並列度 10、400 リクエスト、KeepAlive あり",
        );
        let load = LoadSpec { requests: None, duration_ns: Some(30 * SECOND), pipeline: 16, ..load };
        check(
            &LoadSpec { http: HttpVersion::Http10, keep_alive: false, ..load.clone() },
            "GET /a?b by HTTP/1.0, 10 at a time, each pipelined 16 deep, 30.0 s, a new connection each",
            "HTTP/1.0 で GET /a?b、並列度 10、それぞれ 16 件までパイプライン、30.0 s、KeepAlive なし",
        );
    }

    #[test]
    fn what_is_sent() {
        let post = RequestSpec {
            method: "POST".into(),
            body: Some(model::plan::Body::written(vec![b'x'; 2048])),
            ..RequestSpec::get("/cart")
        };
        let mix = vec![RequestSpec { weight: 3, ..RequestSpec::get("/") }, post];
        check(
            &LoadSpec { mix, ..LoadSpec::of("l", "/") },
            "2 kinds of requests (GET / 75.0 %, POST /cart with a body of 2.00 KiB 25.0 %), 1 at a time, until stopped, keep-alive",
            "2 種類のリクエスト（GET / 75.0 %、POST /cart（本文 2.00 KiB） 25.0 %）、並列度 1、停止するまで、KeepAlive あり",
        );
    }

    #[test]
    fn a_page_and_what_belongs_to_it() {
        let session = model::plan::SessionSpec {
            connections: 6,
            think_ns: SECOND,
            returns: 0.0,
            patience_ns: None,
            reload_after_ns: None,
            reloads: 0,
        };
        let page = |parts: usize| {
            let mix = vec![RequestSpec::get("/"); parts + 1];
            LoadSpec { mix, session: Some(session.clone()), connections: 12, ..LoadSpec::of("l", "/") }
        };
        let users = "users with 6 connections each, at most 2 of them: 12 at a time, until stopped, keep-alive";
        let ja = "それぞれ 6 接続の利用者（同時に最大 2 人）: 並列度 12、停止するまで、KeepAlive あり";
        for (parts, english, japanese) in
            [(1, "1 thing that belongs to it", "1 件"), (2, "2 things that belong to it", "2 件")]
        {
            let (english, japanese) =
                (format!("GET / with {english}, {users}"), format!("GET / とページに属する {japanese}、{ja}"));
            check(&page(parts), &english, &japanese);
        }
    }

    #[test]
    fn a_log_is_named_and_not_its_place_in_the_template() {
        let log = Log {
            file: "access.log".into(),
            format: "common".to_owned(),
            speed: 2.0,
            lines: 60,
            used: 50,
            span_ns: 9 * SECOND,
            left_out: vec![],
            recording: Arc::default(),
        };
        let of = |method: &str| RequestSpec { method: method.to_owned(), ..RequestSpec::get(LOGGED_PATH) };
        let mix = vec![of("GET"), of("HEAD")];
        let load =
            LoadSpec { mix, log: Some(log), pace: Pace::Logged, connections: 4, ..LoadSpec::of("l", LOGGED_PATH) };
        check(
            &load,
            "GET, HEAD as in access.log, 50 requests as they came, at 2.00 times their speed, over at most 4 connections, 10.0 s, keep-alive",
            "access.log の GET、HEAD、50 件を記録どおりに、2.00 倍の速さで、最大 4 接続、10.0 s、KeepAlive あり",
        );
        check(
            &LoadSpec { pace: Pace::WhenFree, requests: Some(7), ..load },
            "GET, HEAD as in access.log, 4 at a time, 7 requests, keep-alive",
            "access.log の GET、HEAD、並列度 4、7 リクエスト、KeepAlive あり",
        );
    }

    #[test]
    fn an_open_loop() {
        check(
            &LoadSpec { duration_ns: Some(60 * SECOND), ..open(&[(Nanos::MAX, 1000.0, 1000.0)], Arrivals::Even) },
            "GET /, 1000 per second at equal distances, over at most 50 connections, 60.0 s, keep-alive",
            "GET /、毎秒 1000 件を等間隔で、最大 50 接続、60.0 s、KeepAlive あり",
        );
        check(
            &LoadSpec { requests: Some(500), ..open(&[(Nanos::MAX, 12.5, 12.5)], Arrivals::Bursts { size: 20 }) },
            "GET /, 12.5 per second in bursts of 20, over at most 50 connections, 500 requests, keep-alive",
            "GET /、毎秒 12.5 件を 20 件ずつまとめて、最大 50 接続、500 リクエスト、KeepAlive あり",
        );
        let stages = [(10 * SECOND, 0.0, 500.0), (60 * SECOND, 500.0, 500.0)];
        check(
            &open(&stages, Arrivals::Poisson),
            "GET /, 0 to 500 per second within 10.0 s, 500 per second for 60.0 s at random (Poisson), over at most 50 connections, 70.0 s, keep-alive",
            "GET /、10.0 s かけて毎秒 0 件から 500 件へ、60.0 s の間毎秒 500 件をランダムな間隔（ポアソン）で、最大 50 接続、70.0 s、KeepAlive あり",
        );
    }
}
