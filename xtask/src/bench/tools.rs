//! The load generators: how each is asked for the same work, and what it says it did.
//!
//! Deliberately not here: whether to believe them. Requests are counted by the server.

use std::fmt;

/// A load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Tool {
    /// `xtask/bench/bare.c`: the bound.
    Bare,
    Webdyno,
    /// `webdyno ab`.
    WebdynoAb,
    Wrk,
    Ab,
    H2load,
    Oha,
    Hey,
}

impl Tool {
    pub(super) const ALL: [Tool; 8] =
        [Tool::Bare, Tool::Webdyno, Tool::WebdynoAb, Tool::Wrk, Tool::Ab, Tool::H2load, Tool::Oha, Tool::Hey];
    /// Those that stand beside `webdyno load`.
    pub(super) const GENERATORS: [Tool; 7] =
        [Tool::Bare, Tool::Webdyno, Tool::Wrk, Tool::Ab, Tool::H2load, Tool::Oha, Tool::Hey];
    /// Those that take ab's options, and the bound.
    pub(super) const DROP_INS: [Tool; 3] = [Tool::Bare, Tool::WebdynoAb, Tool::Ab];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Bare => "bare",
            Tool::Webdyno => "webdyno",
            Tool::WebdynoAb => "webdyno-ab",
            Tool::Wrk => "wrk",
            Tool::Ab => "ab",
            Tool::H2load => "h2load",
            Tool::Oha => "oha",
            Tool::Hey => "hey",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is asked of a tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Work {
    pub(super) connections: u32,
    pub(super) page: Page,
    pub(super) tls: bool,
    /// A connection per request.
    pub(super) close: bool,
    /// Requests per second; as fast as they are answered when none.
    pub(super) rate: Option<u32>,
    pub(super) until: Until,
    /// Threads of webdyno; everything else always has one.
    pub(super) threads: u32,
}

/// What the server answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    /// 44 bytes, from memory.
    Small,
    /// 64 KiB, a file.
    Large,
}

impl Page {
    pub(super) fn path(self) -> &'static str {
        match self {
            Page::Small => "/",
            Page::Large => "/64k.bin",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    Seconds(u32),
    Requests(u64),
}

/// Where the server listens on 127.0.0.1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) plain: u16,
    pub(super) tls: u16,
}

/// What a tool says it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) done: u64,
    pub(super) failed: u64,
}

impl Work {
    fn url(&self, ports: Ports) -> String {
        let path = self.page.path();
        if self.tls {
            format!("https://127.0.0.1:{}{path}", ports.tls)
        } else {
            format!("http://127.0.0.1:{}{path}", ports.plain)
        }
    }
}

/// The arguments that make `tool` do `work`, or why it cannot.
pub(super) fn arguments(tool: Tool, work: &Work, ports: Ports) -> Result<Vec<String>, &'static str> {
    let text = match tool {
        Tool::Bare => bare(work, ports)?,
        Tool::Webdyno => webdyno(work, ports),
        Tool::Wrk => wrk(work, ports)?,
        Tool::WebdynoAb => format!("ab --no-store --threads {} {}", work.threads, ab(work, ports)?),
        Tool::Ab => ab(work, ports)?,
        Tool::H2load => h2load(work, ports)?,
        Tool::Oha => oha(work, ports),
        Tool::Hey => hey(work, ports),
    };
    // A header is one argument although it has a space in it.
    Ok(text.split_whitespace().map(|word| word.replace('~', " ")).collect())
}

fn bare(work: &Work, ports: Ports) -> Result<String, &'static str> {
    let Until::Seconds(seconds) = work.until else { return Err("the bare loop runs for a time, not for a count") };
    if work.tls {
        return Err("the bare loop has no TLS");
    }
    let (mode, rate) = match work.rate {
        Some(rate) => ("rate", rate.to_string()),
        None if work.close => ("close", String::new()),
        None => ("keep-alive", String::new()),
    };
    Ok(format!("{mode} {} {} {} {seconds} {rate}", ports.plain, work.page.path(), work.connections))
}

fn webdyno(work: &Work, ports: Ports) -> String {
    let until = match work.until {
        Until::Seconds(seconds) => format!("-d {seconds}s"),
        Until::Requests(requests) => format!("-n {requests}"),
    };
    let rate = work.rate.map(|rate| format!("--rate {rate}")).unwrap_or_default();
    let close = if work.close { "--close" } else { "" };
    let insecure = if work.tls { "--insecure" } else { "" };
    let (connections, threads) = (work.connections, work.threads);
    let url = work.url(ports);
    format!("load -c {connections} {until} -t {threads} {close} {rate} {insecure} --plain --json --no-store {url}")
}

fn wrk(work: &Work, ports: Ports) -> Result<String, &'static str> {
    let Until::Seconds(seconds) = work.until else { return Err("wrk runs for a time, not for a count") };
    if work.rate.is_some() {
        return Err("wrk has no rate");
    }
    let close = if work.close { "-H Connection:~close" } else { "" };
    Ok(format!("-t1 -c{} -d{seconds}s --latency {close} {}", work.connections, work.url(ports)))
}

fn ab(work: &Work, ports: Ports) -> Result<String, &'static str> {
    // -t alone means at most 50000 requests; a later -n lifts that.
    let until = match work.until {
        Until::Seconds(seconds) => format!("-t {seconds} -n {}", u64::from(seconds) * 1_500_000),
        Until::Requests(requests) => format!("-n {requests}"),
    };
    if work.rate.is_some() {
        return Err("ab has no rate");
    }
    let keep = if work.close { "" } else { "-k" };
    Ok(format!("-q {until} -c {} -l {keep} {}", work.connections, work.url(ports)))
}

fn h2load(work: &Work, ports: Ports) -> Result<String, &'static str> {
    if work.close {
        return Err("h2load has no connection per request");
    }
    let until = match work.until {
        Until::Seconds(seconds) => format!("-D {seconds}"),
        Until::Requests(requests) => format!("-n {requests}"),
    };
    // Per connection.
    let rate =
        work.rate.map(|rate| format!("--rps {}", f64::from(rate) / f64::from(work.connections))).unwrap_or_default();
    Ok(format!("--h1 -t1 -c{} {until} {rate} {}", work.connections, work.url(ports)))
}

fn oha(work: &Work, ports: Ports) -> String {
    let until = match work.until {
        Until::Seconds(seconds) => format!("-z {seconds}s"),
        Until::Requests(requests) => format!("-n {requests}"),
    };
    let rate = work.rate.map(|rate| format!("-q {rate} --latency-correction")).unwrap_or_default();
    let close = if work.close { "--disable-keepalive" } else { "" };
    format!("--no-tui --insecure {until} -c {} {close} {rate} {}", work.connections, work.url(ports))
}

fn hey(work: &Work, ports: Ports) -> String {
    let until = match work.until {
        Until::Seconds(seconds) => format!("-z {seconds}s"),
        Until::Requests(requests) => format!("-n {requests}"),
    };
    // Per worker.
    let rate =
        work.rate.map(|rate| format!("-q {}", f64::from(rate) / f64::from(work.connections))).unwrap_or_default();
    let close = if work.close { "-disable-keepalive" } else { "" };
    format!("{until} -c {} {close} {rate} {}", work.connections, work.url(ports))
}

/// What the tool's own output says; none when it says nothing we know.
pub(super) fn tally(tool: Tool, output: &str) -> Option<Tally> {
    match tool {
        Tool::Bare => Some(Tally { done: output.trim().parse().ok()?, failed: 0 }),
        Tool::Webdyno => webdyno_tally(output),
        Tool::Wrk => Some(Tally {
            done: before(output, " requests in ")?,
            failed: after(output, "Non-2xx or 3xx responses:").unwrap_or(0) + socket_errors(output),
        }),
        Tool::Ab | Tool::WebdynoAb => Some(Tally {
            done: after(output, "Complete requests:")?,
            failed: after(output, "Failed requests:")? + after(output, "Non-2xx responses:").unwrap_or(0),
        }),
        Tool::H2load => Some(Tally { done: before(output, " succeeded,")?, failed: before(output, " failed,")? }),
        Tool::Oha | Tool::Hey => by_status(output),
    }
}

fn webdyno_tally(output: &str) -> Option<Tally> {
    let json: serde_json::Value = serde_json::from_str(output).ok()?;
    let counts = json.get("counts")?;
    let failed = match counts.get("failed") {
        Some(serde_json::Value::Object(causes)) => causes.values().filter_map(serde_json::Value::as_u64).sum(),
        Some(number) => number.as_u64()?,
        None => 0,
    };
    Some(Tally { done: counts.get("good")?.as_u64()?, failed })
}

/// "Socket errors: connect 0, read 1, write 0, timeout 2" of wrk.
fn socket_errors(output: &str) -> u64 {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("Socket errors:"));
    line.map(|line| line.split([' ', ',']).filter_map(|word| word.parse::<u64>().ok()).sum()).unwrap_or(0)
}

/// `[200] 1234 responses` of hey and oha; what broke off at the end is no status.
fn by_status(output: &str) -> Option<Tally> {
    let mut tally = None;
    for line in output.lines() {
        let Some((status, rest)) = line.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
            continue;
        };
        let Some(count) = rest.trim().strip_suffix(" responses").and_then(|count| count.parse::<u64>().ok()) else {
            continue;
        };
        let tally = tally.get_or_insert(Tally { done: 0, failed: 0 });
        *(if status.starts_with('2') { &mut tally.done } else { &mut tally.failed }) += count;
    }
    tally
}

/// The first number behind `label`.
fn after(output: &str, label: &str) -> Option<u64> {
    let (_, rest) = output.split_once(label)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The number right in front of `label`.
fn before(output: &str, label: &str) -> Option<u64> {
    let (rest, _) = output.split_once(label)?;
    rest.rsplit([' ', '\n', '\t']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports { plain: 80, tls: 443 };
    const CLOSED: Work = Work {
        connections: 100,
        page: Page::Small,
        tls: false,
        close: false,
        rate: None,
        until: Until::Seconds(2),
        threads: 1,
    };

    fn check(tool: Tool, work: Work, expected: Result<&str, &str>) {
        let found = arguments(tool, &work, PORTS).map(|words| words.join(" "));
        assert_eq!(found.as_deref().map_err(|why| *why), expected, "{tool} {work:?}");
    }

    #[test]
    fn the_same_work_for_all() {
        let close = Work { close: true, ..CLOSED };
        let tls = Work { tls: true, page: Page::Large, ..CLOSED };
        let rate = Work { rate: Some(50_050), ..CLOSED };
        let count = Work { until: Until::Requests(1000), ..CLOSED };
        let url = "http://127.0.0.1:80/";
        check(Tool::Bare, CLOSED, Ok("keep-alive 80 / 100 2"));
        check(Tool::Bare, close, Ok("close 80 / 100 2"));
        check(Tool::Bare, rate, Ok("rate 80 / 100 2 50050"));
        check(Tool::Bare, tls, Err("the bare loop has no TLS"));
        check(Tool::Bare, count, Err("the bare loop runs for a time, not for a count"));
        check(Tool::Webdyno, CLOSED, Ok(&format!("load -c 100 -d 2s -t 1 --plain --json --no-store {url}")));
        check(Tool::Webdyno, close, Ok(&format!("load -c 100 -d 2s -t 1 --close --plain --json --no-store {url}")));
        check(Tool::Webdyno, rate, Ok(&format!("load -c 100 -d 2s -t 1 --rate 50050 --plain --json --no-store {url}")));
        check(
            Tool::Webdyno,
            tls,
            Ok("load -c 100 -d 2s -t 1 --insecure --plain --json --no-store https://127.0.0.1:443/64k.bin"),
        );
        check(Tool::Webdyno, count, Ok(&format!("load -c 100 -n 1000 -t 1 --plain --json --no-store {url}")));
        check(Tool::Wrk, close, Ok(&format!("-t1 -c100 -d2s --latency -H Connection: close {url}")));
        check(Tool::Wrk, rate, Err("wrk has no rate"));
        check(Tool::Wrk, count, Err("wrk runs for a time, not for a count"));
        check(Tool::WebdynoAb, CLOSED, Ok(&format!("ab --no-store --threads 1 -q -t 2 -n 3000000 -c 100 -l -k {url}")));
        check(Tool::Ab, CLOSED, Ok(&format!("-q -t 2 -n 3000000 -c 100 -l -k {url}")));
        check(Tool::Ab, close, Ok(&format!("-q -t 2 -n 3000000 -c 100 -l {url}")));
        check(Tool::Ab, rate, Err("ab has no rate"));
        check(Tool::H2load, rate, Ok(&format!("--h1 -t1 -c100 -D 2 --rps 500.5 {url}")));
        check(Tool::H2load, close, Err("h2load has no connection per request"));
        check(Tool::Oha, rate, Ok(&format!("--no-tui --insecure -z 2s -c 100 -q 50050 --latency-correction {url}")));
        check(Tool::Oha, close, Ok(&format!("--no-tui --insecure -z 2s -c 100 --disable-keepalive {url}")));
        check(Tool::Hey, rate, Ok(&format!("-z 2s -c 100 -q 500.5 {url}")));
        check(Tool::Hey, count, Ok(&format!("-n 1000 -c 100 {url}")));
    }

    #[test]
    fn a_header_is_one_argument() {
        let words = arguments(Tool::Wrk, &Work { close: true, ..CLOSED }, PORTS).unwrap();
        assert!(words.contains(&"Connection: close".to_owned()), "{words:?}");
    }

    fn check_tally(tool: Tool, output: &str, expected: Option<(u64, u64)>) {
        assert_eq!(tally(tool, output).map(|tally| (tally.done, tally.failed)), expected, "{tool}: {output}");
    }

    #[test]
    fn what_they_say() {
        check_tally(Tool::Bare, "58552\n", Some((58552, 0)));
        check_tally(Tool::Bare, "", None);
        check_tally(Tool::Webdyno, r#"{"counts": {"good": 7, "failed": {"reset": 1, "timeout": 2}}}"#, Some((7, 3)));
        check_tally(Tool::Webdyno, r#"{"counts": {"good": 7}}"#, Some((7, 0)));
        check_tally(Tool::Webdyno, r#"{"good": 7}"#, None);
        check_tally(Tool::Wrk, "     99%    5.41ms\n  11575 requests in 1.00s, 2.06MB read\n", Some((11575, 0)));
        check_tally(
            Tool::Wrk,
            "  9 requests in 1.00s, 1KB read\n  Socket errors: connect 0, read 3, write 0, timeout 1\n  \
             Non-2xx or 3xx responses: 5\nRequests/sec:  9\n",
            Some((9, 9)),
        );
        check_tally(Tool::Ab, "Complete requests:      62423\nFailed requests:        0\n", Some((62423, 0)));
        check_tally(
            Tool::Ab,
            "Complete requests:      10\nFailed requests:        2\n   (Connect: 0)\nNon-2xx responses:      4\n",
            Some((10, 6)),
        );
        check_tally(
            Tool::H2load,
            "finished in 1.00s, 1010.00 req/s, 189.38KB/s\nrequests: 1012 total, 1011 started, 1010 done, \
             1010 succeeded, 1 failed, 0 errored, 0 timeout\n",
            Some((1010, 1)),
        );
        check_tally(
            Tool::Hey,
            "Status code distribution:\n  [200]\t980 responses\n  [503]\t2 responses\n",
            Some((980, 2)),
        );
        check_tally(
            Tool::Oha,
            "Status code distribution:\n  [200] 980 responses\n\nError distribution:\n  [100] aborted due to deadline\n",
            Some((980, 0)),
        );
        check_tally(Tool::Oha, "  10.00% in 0.1 sec\n", None);
    }
}
