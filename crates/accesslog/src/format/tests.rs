//! Formats and lines written in them, through one door.

use super::*;
use crate::{Entry, Version};
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// Everything a line says, in one line.
fn shown(entry: &Entry<'_>) -> String {
    let mut text = match (&entry.request, entry.time) {
        (Ok(request), _) => format!("{} {} {:?}", request.method, request.target, request.version),
        (Err(why), _) => format!("{why:?}"),
    };
    if let Some(time) = entry.time {
        text += &format!(" @{} {:?} {:?}", time.ns, time.resolution, time.of);
    }
    let numbers = [entry.status.map(u64::from), entry.bytes, entry.duration_ns];
    text += &format!(" {}", numbers.map(|number| number.map_or("-".to_owned(), |number| number.to_string())).join("/"));
    for (name, said) in
        [("by", &entry.client), ("at", &entry.host), ("from", &entry.referer), ("with", &entry.user_agent)]
    {
        text += &said.as_ref().map_or(String::new(), |said| format!(" {name}={said}"));
    }
    text
}

/// The one door: what a line of a format says.
fn check(format: &str, line: &str, expected: &Expect) {
    let format = match Format::parse(format) {
        Ok(format) => format,
        Err(error) => return expected.assert_eq(&error.to_string()),
    };
    let entry = crate::line::read(&format, line.as_bytes());
    expected.assert_eq(&entry.map_or("another format".to_owned(), |entry| shown(&entry)));
}

#[test]
fn names() {
    let line = r#"::1 - - [21/Nov/2026:03:20:40 +0000] "GET /a?b HTTP/1.1" 200 6 "http://r/" "A\"B" "extra""#;
    check("common", line, &expect!["GET /a?b Some(Http11) @1795231240000000000 Second Start 200/6/- by=::1"]);
    check(
        " combined\n",
        line,
        &expect![[r#"GET /a?b Some(Http11) @1795231240000000000 Second Start 200/6/- by=::1 from=http://r/ with=A"B"#]],
    );
    check("vhost_combined", line, &expect!["another format"]);
    check(
        "vhost_combined",
        &format!("www.example.org:80 {line}\r\n"),
        &expect![[
            r#"GET /a?b Some(Http11) @1795231240000000000 Second Start 200/6/- by=::1 at=www.example.org from=http://r/ with=A"B"#
        ]],
    );
}

#[test]
fn apache_directives() {
    check(
        "%a %{ms}T %T %D %X %^FB %{c}a %!200,304{Referer}i",
        "1.2.3.4 2 0 2345 + 17 1.1.1.1 http://r",
        &expect!["NotLogged -/-/2345000 by=1.2.3.4 from=http://r"],
    );
    check("%{ms}T %T", "2 0", &expect!["NotLogged -/-/2000000"]);
    check("%s>%>s %B %O %I %S", "200>404 - 99 1 2", &expect!["NotLogged 404/99/-"]);
    check("%m %U%q %H", "GET /a b?c=%20 HTTP/1.1", &expect!["GET /a%20b?c=%20 Some(Http11) -/-/-"]);
    check("%m %U %q", "HEAD /50% ?x", &expect!["HEAD /50%25?x None -/-/-"]);
    check("%m %U%q", "- -", &expect!["Empty -/-/-"]);
    check("%v %V %{Host}i %r", "a b c:8 GET http://d/ HTTP/1.0", &expect!["GET / Some(Http10) -/-/- at=d"]);
    check("%v %V %{Host}i %r", "a b - GET / HTTP/1.0", &expect!["GET / Some(Http10) -/-/- at=b"]);
    check("100%% %h", "100% x", &expect!["NotLogged -/-/- by=x"]);
    check(r"%h\t%>s\\", "x\t200\\", &expect!["NotLogged 200/-/- by=x"]);
    check(
        r#"%u %t \"%r\" %f"#,
        r#"a [b c] [21/Nov/2026:03:20:40 +0000] "GET / HTTP/1.1" /x y"#,
        &expect!["GET / Some(Http11) @1795231240000000000 Second Start -/-/-"],
    );
    check(
        r#"%u %t"#,
        r#""" [21/Nov/2026:03:20:40 +0000]"#,
        &expect!["NotLogged @1795231240000000000 Second Start -/-/-"],
    );
}

#[test]
fn apache_times() {
    check("%{sec}t%{usec_frac}t", "1795231240000001", &expect!["NotLogged @1795231240000001000 Micro Start -/-/-"]);
    check("%{end:msec}t %h", "1795231240001 x", &expect!["NotLogged @1795231240001000000 Milli End -/-/- by=x"]);
    check(
        "%{end:msec}t %{usec}t",
        "1795231240001 1795231240000001",
        &expect!["NotLogged @1795231240000001000 Micro Start -/-/-"],
    );
    check(
        "[%{%d/%b/%Y %T}t.%{msec_frac}t %{%z}t] %h",
        "[21/Nov/2026 03:20:40.250 +0000] x",
        &expect!["NotLogged @1795231240250000000 Milli Start -/-/- by=x"],
    );
    check(
        "%{begin:%F %X}t %h",
        "2026-11-21 03:20:40 x",
        &expect!["NotLogged @1795231240000000000 Second Start -/-/- by=x"],
    );
    check("%t %h", "- x", &expect!["another format"]);
}

#[test]
fn nginx_variables() {
    check(
        "$msec $request_method $scheme://$host$request_uri $status $request_time $upstream_response_time",
        "1795231240.007 GET https://a.b/c?d 200 1.500 0.001, 0.002",
        &expect!["GET /c?d None @1795231240007000000 Milli End 200/-/1500000000 at=a.b"],
    );
    check(
        "${time_iso8601}x $http_x_anything",
        "2026-11-21T03:20:40+00:00x a b",
        &expect!["NotLogged @1795231240000000000 Second End -/-/-"],
    );
    check("$request_method $uri$is_args$args!", "GET /a b-!", &expect!["GET /a%20b None -/-/-"]);
    check("$request_method $uri?$args!", "GET /a?x=\\x22!", &expect![[r#"GET /a?x=" None -/-/-"#]]);
    check("$request_method $uri$is_args$args!", "- --!", &expect!["Empty -/-/-"]);
    check("$remote_addr costs 5$ and \\\"$status\\\"", "x costs 5$ and \"200\"", &expect!["NotLogged 200/-/- by=x"]);
    check("escape=none '$request' $status", "a", &expect!["another format"]);
    check(
        "escape=none '\"$request\" $status'",
        r#""GET /"a\x HTTP/1.1" 200"#,
        &expect![[r#"GET /"a\x Some(Http11) 200/-/-"#]],
    );
}

#[test]
fn configurations_can_be_copied() {
    check(
        r#"LogFormat "%h \"%r\" %>s" short"#,
        r#"x "GET / HTTP/1.1" 200"#,
        &expect!["GET / Some(Http11) 200/-/- by=x"],
    );
    check(r#""%h \"%r\" %>s""#, r#"x "GET / HTTP/1.1" 200"#, &expect!["GET / Some(Http11) 200/-/- by=x"]);
    check(r#""%r" %s "%{Referer}i""#, r#""GET / HTTP/1.1" 200 "-""#, &expect!["GET / Some(Http11) 200/-/-"]);
    check(
        "log_format main escape=json '{\"a\":\"$request\",'\n  '\"b\":$status}';",
        r#"{"a":"GET /\"\\ HTTP/1.1","b":200}"#,
        &expect![[r#"GET /"\ Some(Http11) 200/-/-"#]],
    );
    check("'$remote_addr '\n'$status';", "x 200", &expect!["NotLogged 200/-/- by=x"]);
}

#[test]
fn formats_that_are_none() {
    check(
        "apache",
        "",
        &expect![[
            r#"`apache` is no log format: write common, combined or vhost_combined, or the server's own, such as "%h %t" (Apache) or "$remote_addr $msec" (nginx)"#
        ]],
    );
    check(
        "100 % $",
        "",
        &expect![[
            r#"`100 % $` is no log format: write common, combined or vhost_combined, or the server's own, such as "%h %t" (Apache) or "$remote_addr $msec" (nginx)"#
        ]],
    );
    check("%h %>Z", "", &expect!["Apache's log format has no directive `%>Z`"]);
    check("%h %{Referer", "", &expect!["Apache's log format has no directive `%{Referer`"]);
    check("%h %", "", &expect!["Apache's log format has no directive `%`"]);
    check("%^xy", "", &expect!["Apache's log format has no directive `%^xy`"]);
    check("%ü", "", &expect!["Apache's log format has no directive `%ü`"]);
    check("%{min}T", "", &expect!["`%{min}T` has no such unit: s, ms or us"]);
    check(
        "%{%T %Z}t",
        "",
        &expect!["`%{%T %Z}t` cannot be read back because of `%Z`; use %z for the zone, digits for the rest"],
    );
    check("log_format x escape=url '$status'", "", &expect!["`escape=url` is not known: default, json or none"]);
}

#[test]
fn known_formats_are_recognised() {
    let guess = |lines: &[&str]| {
        let found = Format::guess(lines.iter().map(|line| line.as_bytes()));
        found.map_or("none".to_owned(), |format| format.text().chars().take(14).collect())
    };
    let start = r#"::1 - - [21/Nov/2026:03:20:40 +0000] "GET /a HTTP/1.1" 200 6"#;
    let named = r#"1.2.3.4 - a b [21/Nov/2026:03:20:40 +0000] "GET /a HTTP/1.1" 200 6 "-" "-""#;
    let combined = format!(r#"{start} "-" "curl""#);
    let cases: [(&[&str], &str); 9] = [
        (&[start], "common"),
        (&[&combined, named, ""], "combined"),
        (&[&combined, &combined, &combined, &combined, &combined, start], "combined"),
        (&[&combined, start, start], "common"),
        (&[&format!("a.b:80 {combined}"), &format!("a.b:81 {combined}")], "vhost_combined"),
        (&[&format!(r#"{start} "http://\x22" "curl" "more""#)], "$remote_addr -"),
        (&[&format!(r#"{start} "http://\"" "curl""#)], "combined"),
        (&[start, "x", "y"], "none"),
        (&[""], "none"),
    ];
    for (lines, expected) in cases {
        assert_eq!(guess(lines), expected, "{lines:?}");
    }
}

#[test]
fn no_line_takes_for_ever() {
    let format = "%u %u %u %u %u %u %u %u %u %u %s";
    check(format, &"a ".repeat(5_000), &expect!["another format"]);
}

/// How a server writes bytes into a quoted field.
fn escaped(bytes: &[u8], server: Syntax) -> String {
    let one = |byte: &u8| match (server, *byte) {
        (Syntax::Apache, b'"' | b'\\') => format!("\\{}", char::from(*byte)),
        (Syntax::Apache, b'\n') => "\\n".to_owned(),
        (Syntax::Apache, b'\t') => "\\t".to_owned(),
        (Syntax::Apache, 0..=0x1f | 0x7f..) => format!("\\x{byte:02x}"),
        (Syntax::Nginx, 0..=0x1f | 0x7f.. | b'"' | b'\\') => format!("\\x{byte:02X}"),
        _ => char::from(*byte).to_string(),
    };
    bytes.iter().map(one).collect()
}

proptest! {
    #[test]
    fn what_a_server_writes_is_read_back(
        second in 0_i64..4_000_000_000,
        path in "/[ -~ü]{0,20}",
        agent in "\\PC{1,20}",
        user in "[a-z \\[\"]{1,8}",
        status in 100_u16..600,
        bytes in any::<u64>(),
    ) {
        let path = path.replace(' ', "+");
        let at = jiff::Timestamp::from_second(second).unwrap().strftime("%d/%b/%Y:%H:%M:%S +0000").to_string();
        for (server, format) in [(Syntax::Apache, COMBINED), (Syntax::Nginx, NGINX_COMBINED)] {
            let text = |text: &str| escaped(text.as_bytes(), server);
            let line = format!(
                r#"10.0.0.1 - {} [{at}] "GET {} HTTP/1.1" {status} {bytes} "-" "{}""#,
                text(&user), text(&path), text(&agent)
            );
            let format = Format::parse(format).unwrap();
            let entry = crate::line::read(&format, line.as_bytes()).unwrap();
            let request = entry.request.as_ref().unwrap();
            prop_assert_eq!(&*request.target, &*path);
            prop_assert_eq!(request.version, Some(Version::Http11));
            prop_assert_eq!(entry.time.map(|time| time.ns), Some(second * 1_000_000_000));
            prop_assert_eq!((entry.status, entry.bytes), (Some(status), Some(bytes)));
            let said = Some(agent.as_str()).filter(|agent| *agent != "-");
            prop_assert_eq!(entry.user_agent.as_deref(), said);
        }
    }

    #[test]
    fn any_text_is_answered(format in "[%$a-z{}:,<>!^\"' \\\\]{0,30}", line in any::<Vec<u8>>()) {
        crate::fuzz::fuzz_one(&[format.as_bytes(), b"\n", &line].concat());
    }
}
