//! Loads in, what is sent or one sentence out.

use super::*;
use crate::plan::{SECRET, parse};

/// A file with these lines of `[load.a]`, beside four connections.
fn parsed(lines: &str) -> Result<(LoadSpec, String), PlanError> {
    parsed_with(lines, &Options::default())
}

fn parsed_with(lines: &str, options: &Options) -> Result<(LoadSpec, String), PlanError> {
    let text = format!("[server]\nkind = \"embedded\"\n[load.a]\nconnections = 4\n{lines}\n");
    let read: super::super::ReadFile = |file| match file.to_str() {
        Some("plans/order.json") => Ok(b"{${counter}}".to_vec()),
        Some("plans/picture") => Ok(b"\xff${x}".to_vec()),
        _ => Err(format!("{} is not there", file.display())),
    };
    let options = Options { read, ..options.clone() };
    let (plan, text) = parse(&text, Path::new("plans/t.toml"), &options)?;
    Ok((plan.loads.into_iter().next().expect("one load"), text))
}

#[track_caller]
fn spec(lines: &str) -> LoadSpec {
    parsed(lines).unwrap().0
}

/// The sentence about a line of the load, the first of which is line 5.
#[track_caller]
fn check(lines: &str, expected: &str) {
    let error = parsed(lines).unwrap_err().to_string();
    assert_eq!(error, format!("plans/t.toml:{expected}"));
}

const ONE: &str = "path = \"/\"\nrequests = 4\n";

#[test]
fn one_request_may_be_any() {
    let load = spec(
        "path = \"/${counter}\"\nmethod = \"PUT\"\nbody = \"a=${hex:2}\"\nheaders = { Expect = \"100-Continue\" }\nduration = \"1s\"\n\
         seed = 7\nbusy_poll = true\ncookies = true\nchecks = [\"status=201\"]\npipeline = 1",
    );
    let headers = vec![("Expect".to_owned(), "100-Continue".to_owned())];
    let only = RequestSpec {
        weight: 1,
        method: "PUT".to_owned(),
        path: "/${counter}".to_owned(),
        headers,
        body: Some(Body::written("a=${hex:2}")),
        wire: None,
    };
    assert_eq!((load.mix, load.seed, load.busy_poll, load.cookies), (vec![only], 7, true, true));
    assert_eq!(load.checks, [Check::parse("status = 201").unwrap()]);
}

#[test]
fn several_requests_share_headers() {
    let load = spec(
        "requests = 4\nheaders = { X-A = \"common\", X-B = \"1\" }\n[[load.a.request]]\npath = \"/a\"\nweight = 3\n\
         headers = { x-a = \"own\" }\n[[load.a.request]]\npath = \"/b\"\nmethod = \"POST\"\nbody_file = \"order.json\"\n",
    );
    let fields = |n: usize| load.mix[n].headers.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ");
    assert_eq!((fields(0).as_str(), fields(1).as_str()), ("X-B=1 x-a=own", "X-A=common X-B=1"));
    assert_eq!(load.mix.iter().map(|request| request.weight).collect::<Vec<_>>(), [3, 1]);
    let body = load.mix[1].body.as_ref().unwrap();
    assert_eq!((body.file(), body.bytes()), (Some(Path::new("plans/order.json")), Some(b"{${counter}}".as_slice())));
    // What is no text holds no templates.
    assert_eq!(spec(&format!("{ONE}body_file = \"picture\"")).mix[0].body.as_ref().unwrap().length(), 5);
}

#[test]
fn paces() {
    let constant = |rate, arrivals| Pace::Timetable(Timetable::constant(rate, arrivals));
    assert_eq!(spec(ONE).pace, Pace::WhenFree);
    assert_eq!(spec(&format!("{ONE}rate = \"120/min\"")).pace, constant(2.0, Arrivals::Even));
    assert_eq!(spec(&format!("{ONE}rate = \"5/s\"\narrivals = \"poisson\"")).pace, constant(5.0, Arrivals::Poisson));
    assert_eq!(spec(&format!("{ONE}rate = \"5/s\"\nburst = 3")).pace, constant(5.0, Arrivals::Bursts { size: 3 }));
    // Stages end a load by themselves.
    let staged = "path = \"/\"\nstages = \"10s:5/s,4s:1..9/s\"";
    assert_eq!(spec(staged).length_ns(), Some(14 * SECOND));
    assert_eq!(
        parsed_with(staged, &Options { quick: true, ..Options::default() }).unwrap().0.length_ns(),
        Some(7 * SECOND)
    );
}

#[test]
fn what_is_expected() {
    let expect = spec(&format!("{ONE}expect = [\"p99 < 15s\", \"failed = 0\"]")).expect;
    assert_eq!(expect.iter().map(|threshold| threshold.text.as_str()).collect::<Vec<_>>(), ["p99 < 15s", "failed = 0"]);
    check(
        &format!("{ONE}expect = [\"failed = 0\", \"fast\"]"),
        "7: load.a.expect: `fast` compares nothing: write a metric, one of < <= > >= = != and a value, such as p99 < 200ms",
    );
}

#[test]
fn paces_that_make_no_sense() {
    check("path = \"/\"", "3: load.a: give `requests`, `duration` or both");
    check("path = \"/\"\nrate = \"5/s\"", "3: load.a: give `requests`, `duration` or both");
    check(&format!("{ONE}rate = \"0/s\""), "7: load.a.rate: must be more than 0");
    check(
        &format!("{ONE}rate = 5"),
        "7: load.a.rate: a rate is text with a unit: write \"5/s\" if that is what `5` means",
    );
    check(
        &format!("{ONE}rate = \"x\""),
        "7: load.a.rate: `x` is not a rate: write a number and /s or /min, such as 500/s",
    );
    check(&format!("{ONE}rate = \"5/s\"\nstages = \"1s:1/s\""), "7: load.a.rate: give `rate` or `stages`, not both");
    check(
        &format!("{ONE}stages = \"1s\""),
        "7: load.a.stages: `1s` is not a stage: write TIME:RATE, such as 30s:100/s, or TIME:RATE..RATE for a climb",
    );
    check(&format!("{ONE}arrivals = \"even\""), "7: load.a.arrivals: needs `rate` or `stages`");
    check(&format!("{ONE}burst = 2"), "7: load.a.burst: needs `rate` or `stages`");
    check(&format!("{ONE}rate = \"5/s\"\nburst = 0"), "8: load.a.burst: must be at least 1");
    check(
        &format!("{ONE}rate = \"5/s\"\nburst = 2\narrivals = \"poisson\""),
        "8: load.a.burst: groups come evenly; give it or `arrivals = \"poisson\"`",
    );
    check(&format!("{ONE}pipeline = 0"), "7: load.a.pipeline: must be at least 1");
    check(
        &format!("{ONE}keep_alive = false\npipeline = 2"),
        "8: load.a.pipeline: without keep_alive a connection carries one request; leave `pipeline` or `keep_alive` out",
    );
    check(
        &format!("{ONE}arrivals = \"poison\""),
        "7: load.a.arrivals: unknown value `poison`; did you mean `poisson`?",
    );
}

#[test]
fn requests_that_make_no_sense() {
    check("requests = 4", "3: load.a: give `path`, or several requests as [[load.a.request]]");
    check(
        &format!("{ONE}method = \"A B\""),
        "7: load.a.method: must be one word of letters, digits and hyphens, such as GET",
    );
    check(
        &format!("{ONE}method = \"CONNECT\""),
        "7: load.a.method: CONNECT opens a tunnel and asks for nothing; choose another",
    );
    check(
        &format!("{ONE}method = \"TRACE\"\nbody = \"x\""),
        "8: load.a.body: a TRACE request has none; remove it or choose another method",
    );
    check(
        &format!("{ONE}body = \"x\"\nbody_file = \"y\""),
        "8: load.a.body_file: give `body` or `body_file`, not both",
    );
    check(&format!("{ONE}body_file = \"y\""), "7: load.a.body_file: plans/y is not there");
    check(
        &format!("{ONE}headers = {{ Expect = \"100-continue\" }}"),
        "7: load.a.headers: Expect can only be 100-continue, in HTTP/1.1 and with a body that is not empty",
    );
    check(
        &format!("{ONE}body = \"x\"\npipeline = 2\nheaders = {{ Expect = \"100-continue\" }}"),
        "8: load.a.pipeline: a request with Expect: 100-continue waits for an answer before its body; leave `pipeline` out",
    );
    check(
        &format!("{ONE}[[load.a.request]]\npath = \"/\""),
        "5: load.a.path: stands in each [[load.a.request]] when there are such",
    );
    check(
        "requests = 1\n[[load.a.request]]\npath = \"/\"\nmehtod = \"GET\"",
        "8: load.a.request.mehtod: unknown key `mehtod`; did you mean `method`?",
    );
    check(
        &format!("{ONE}checks = [\"status = 200\",\n\"state = 1\"]"),
        "8: load.a.checks: `state = 1` is no check: it begins with status, length, header or body, such as 'status = 200'",
    );
}

#[test]
fn unknown_templates_are_found_where_they_stand() {
    let known =
        "is not known: there is ${counter}, ${random:1-1000} and ${hex:16}; write $${ where ${ stands for itself";
    check("path = \"/${x}\"\nrequests = 1", &format!("5: load.a.path: `${{x}}` {known}"));
    check(&format!("{ONE}body = \"${{x}}\""), &format!("7: load.a.body: `${{x}}` {known}"));
    check(&format!("{ONE}headers = {{ X-A = \"${{logged}}\" }}"), &format!("7: load.a.headers: `${{logged}}` {known}"));
}

#[test]
fn the_text_that_is_kept_holds_no_secrets() {
    let lines = "requests = 1\nheaders = { X-A = \"seen\", Authorization = \"s3cret\" }\n[[load.a.request]]\npath = \"/\"\n\
                 [load.a.request.headers]\ncookie = \"\"\"s3cret\nagain\"\"\"\nX-B = \"seen\"\n";
    // A value over two lines is none.
    check(
        lines,
        "10: load.a.headers: `cookie` must be a name of letters, digits and hyphens, with a value on one line",
    );
    let (load, text) = parsed(&lines.replace("\nagain", "")).unwrap();
    assert!(!text.contains("s3cret") && text.contains(&format!("cookie = \"{SECRET}\"\nX-B = \"seen\"")), "{text}");
    assert!(load.mix[0].headers.iter().any(|(_, value)| value == "s3cret"), "it is sent");
}
