//! Passwords and what is as good as one: how they are sent, and how they stay out of what is stored and shown.

use crate::base64;
use anyhow::ensure;
use model::plan::{SECRET, is_secret};
use std::ffi::OsString;
use url::Url;

/// The value of an `Authorization` field for `NAME:PASSWORD`: RFC 7617.
pub(super) fn basic(user: &str) -> anyhow::Result<String> {
    ensure!(user.contains(':'), "a user is given as NAME:PASSWORD; an empty password is NAME:");
    Ok(format!("Basic {}", base64::encode(user.as_bytes())))
}

/// The user and password in front of a URL's host, as `NAME:PASSWORD`.
pub(super) fn user_of(url: &Url) -> Option<String> {
    let (name, password) = (url.username(), url.password());
    let given = !name.is_empty() || password.is_some();
    given.then(|| format!("{}:{}", decoded(name), decoded(password.unwrap_or_default())))
}

/// A command line as it may be stored and shown: as a shell would take it, without secrets.
pub(crate) fn command_line(args: impl Iterator<Item = OsString>) -> String {
    let mut words = Vec::new();
    let mut before = String::new();
    for arg in args {
        // It is kept for humans; what is no text can only be a path.
        let arg = arg.to_string_lossy().into_owned();
        let word = match before.as_str() {
            "--user" | "--cookie" => SECRET.to_owned(),
            "-H" | "--header" => field(&arg),
            _ => on_its_own(&arg),
        };
        words.push(quoted(&word));
        before = arg;
    }
    words.join(" ")
}

/// An argument that is not the value of the one before it, or of one that keeps no secrets.
fn on_its_own(arg: &str) -> String {
    for flag in ["--user=", "--cookie="] {
        if arg.starts_with(flag) {
            return format!("{flag}{SECRET}");
        }
    }
    for flag in ["--header=", "-H=", "-H"] {
        if let Some(value) = arg.strip_prefix(flag).filter(|value| !value.is_empty()) {
            return format!("{flag}{}", field(value));
        }
    }
    match arg.split_once('=').filter(|(flag, _)| flag.starts_with("--")) {
        Some((flag, value)) => format!("{flag}={}", in_url(value)),
        None => in_url(arg),
    }
}

/// A header field without its value, if that is a secret.
pub(crate) fn field(text: &str) -> String {
    match text.split_once(':') {
        Some((name, _)) if is_secret(name.trim()) => format!("{name}: {SECRET}"),
        _ => text.to_owned(),
    }
}

/// A URL without its name and password: a name alone may be a token.
pub(crate) fn in_url(text: &str) -> String {
    let begin = authority(text);
    let end = text[begin..].find(['/', '\\', '?', '#']).map_or(text.len(), |at| begin + at);
    without_user(text, begin, end)
}

/// The same of what is no URL, where nobody knows how far the password goes: a slash may be in it.
pub(super) fn in_no_url(text: &str) -> String {
    without_user(text, authority(text), text.len())
}

/// Where a URL names its host: behind the scheme and whatever number of slashes, of which any will do for http.
fn authority(text: &str) -> usize {
    let scheme = text.len() - super::what::without_scheme(text).len();
    let is_http = ["http:", "https:"]
        .into_iter()
        .find(|name| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)));
    let behind = is_http.map_or(scheme, str::len);
    text.len() - text[behind..].trim_start_matches(['/', '\\']).len()
}

fn without_user(text: &str, begin: usize, end: usize) -> String {
    match text[begin..end].rfind('@') {
        Some(at) => format!("{}{SECRET}{}", &text[..begin], &text[begin + at..]),
        None => text.to_owned(),
    }
}

/// A word as a shell would take it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_./:=,@%+-*".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = (first == b'%').then(|| behind.get(..2)).flatten();
        let byte = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(typed: &[&str], expected: &str) {
        assert_eq!(command_line(typed.iter().map(OsString::from)), expected);
    }

    #[test]
    fn secrets_stay_out_of_command_lines() {
        check(&["load", "-H", "X-A: 1", "http://a/"], "load -H 'X-A: 1' http://a/");
        for secret in [
            &["-H", "Authorization: Bearer s3cret"][..],
            &["-Hcookie:s3cret=1"],
            &["-H=Cookie: s3cret=1"],
            &["--header=authorization: s3cret"],
            &["--header", "Proxy-Authorization: s3cret"],
            &["-H", "X-Api-Key: s3cret"],
            &["-Hx_session_id:s3cret"],
            &["--user", "me:s3cret"],
            &["--user=me:s3cret"],
            &["--cookie", "s3cret=1"],
            &["--cookie=s3cret=1"],
            &["http://me:s3cret@a/"],
            &["https://s3cret@a/"],
            &["me:s3cret@a/"],
            &["--proxy", "http://me:s3cret@a:1"],
            &["--proxy=http://me:s3cret@a:1"],
        ] {
            let line = command_line(secret.iter().map(OsString::from));
            assert!(!line.contains("s3cret") && line.contains("***"), "{line}");
        }
        check(&["http://me@a/x?y:z@"], "'http://***@a/x?y:z@'");
        check(&["http://a/x?y:z@"], "'http://a/x?y:z@'");
        assert_eq!(in_no_url("http://me:pa/ss@a b/"), "http://***@a b/");
        // As many slashes as one likes, and none, lead to the host of an http URL; and a query may hold another URL.
        assert_eq!(in_url("http:///me:s3cret@a/"), "http:///***@a/");
        assert_eq!(in_url("HTTPS:me:s3cret@a/"), "HTTPS:***@a/");
        assert_eq!(in_url(r"http:\\me:s3cret@a/"), r"http:\\***@a/");
        assert_eq!(in_url("me:s3cret@a/?next=http://x/"), "***@a/?next=http://x/");
        assert_eq!(in_url("a/?next=http://me@x/"), "a/?next=http://me@x/");
        check(&["-b", "it's"], r"-b 'it'\''s'");
    }

    #[test]
    fn users_are_encoded() {
        let check = |user: &str, expected: &str| assert_eq!(basic(user).unwrap(), expected);
        check("Aladdin:open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        check("a:", "Basic YTo=");
        check("ab:c", "Basic YWI6Yw==");
        check("a:b", "Basic YTpi");
        assert!(basic("a").is_err());
    }
}
