//! What ab prints before and during a load. Standard output or standard error: each function says which; who prints is not here.

/// Who made ab (standard output): the first thing it prints, and the answer to `-V`.
#[must_use]
pub fn banner(html: bool) -> &'static str {
    if html {
        "<p>\n This is ApacheBench, Version 2.3 <i>&lt;$Revision$&gt;</i><br>\n \
         Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/<br>\n \
         Licensed to The Apache Software Foundation, http://www.apache.org/<br>\n</p>\n<p>\n"
    } else {
        "This is ApacheBench, Version 2.3 <$Revision$>\n\
         Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/\n\
         Licensed to The Apache Software Foundation, http://www.apache.org/\n\n"
    }
}

/// Every how many requests one hears of the load; `None` for never: quiet (`-q`), or 150 requests at most.
#[must_use]
pub fn heartbeat(requests: u64, quiet: bool) -> Option<u64> {
    (!quiet && requests > 150).then(|| (requests / 10).max(100))
}

/// That it begins (standard output, and not with `-w`); the line is left open when there is no heartbeat.
#[must_use]
pub fn benchmarking(host: &str, proxy: Option<(&str, i32)>, heartbeat: Option<u64>) -> String {
    let through = proxy.map(|(proxy, port)| format!("[through {proxy}:{port}] ")).unwrap_or_default();
    let end = if heartbeat.is_some() { "\n" } else { "..." };
    format!("Benchmarking {host} {through}(be patient){end}")
}

/// A heartbeat (standard error).
#[must_use]
pub fn completed(requests: u64) -> String {
    format!("Completed {requests} requests\n")
}

/// That it is over: standard error with a heartbeat.
#[must_use]
pub fn finished(requests: u64) -> String {
    format!("Finished {requests} requests\n")
}

/// That it is over: standard output without a heartbeat, also with `-w`.
pub const DONE: &str = "..done\n";

/// The request, from `-v 2` on (standard output).
#[must_use]
pub fn request_header(method: &str, head: &str) -> String {
    format!("INFO: {method} header == \n---\n{head}\n---\n")
}

/// What has come of an answer's head, from `-v 2` on (standard output).
#[must_use]
pub fn received_header(head: &str) -> String {
    format!("LOG: header received:\n{head}\n")
}

/// The status of an answer, `None` when nothing is to be said: not 2xx from `-v 2` on, 2xx from `-v 3` on (standard output).
#[must_use]
pub fn status(code: &str, verbosity: i32) -> Option<String> {
    if !code.starts_with('2') {
        return (verbosity >= 2).then(|| format!("WARNING: Response code not 2xx ({code})\n"));
    }
    (verbosity >= 3).then(|| format!("LOG: Response code = {code}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hears_of_a_load_ten_times_but_not_more_often_than_every_hundred() {
        let check = |requests, quiet, expected| assert_eq!(heartbeat(requests, quiet), expected, "{requests}");
        check(150, false, None);
        check(151, false, Some(100));
        check(1009, false, Some(100));
        check(50_000, false, Some(5_000));
        check(50_000, true, None);
    }

    #[test]
    fn the_line_of_the_beginning_ends_when_others_follow() {
        let check = |proxy, beat, expected: &str| assert_eq!(benchmarking("h", proxy, beat), expected);
        check(None, None, "Benchmarking h (be patient)...");
        check(None, Some(100), "Benchmarking h (be patient)\n");
        check(Some(("p", 80)), None, "Benchmarking h [through p:80] (be patient)...");
    }

    #[test]
    fn verbose_lines_depend_on_the_status() {
        let check = |code, verbosity, expected: Option<&str>| {
            assert_eq!(status(code, verbosity).as_deref(), expected, "{code} -v {verbosity}");
        };
        check("200", 2, None);
        check("200", 3, Some("LOG: Response code = 200\n"));
        check("404", 1, None);
        check("404", 2, Some("WARNING: Response code not 2xx (404)\n"));
    }
}
