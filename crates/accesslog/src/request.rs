//! Request lines: method, target and version, or why there is none.

use crate::entry::{NoRequest, Request, Version};
use std::borrow::Cow;
use std::ops::Range;

/// The request of a line such as `GET /a?b HTTP/1.1`, and the host when its target names one.
pub(crate) fn of_line<'a>(line: &Cow<'a, [u8]>) -> Result<(Request<'a>, Option<Cow<'a, str>>), NoRequest> {
    if matches!(line.trim_ascii(), b"" | b"-") {
        return Err(NoRequest::Empty);
    }
    if line.starts_with(b"\x16\x03") {
        return Err(NoRequest::Tls);
    }
    if line.iter().any(u8::is_ascii_control) || !line[0].is_ascii() || line.starts_with(b"PRI * HTTP/2") {
        return Err(NoRequest::NotHttp);
    }
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target, last, more) = (words.next(), words.next(), words.next(), words.next());
    let (Some(method), Some(target), None) = (method, target, more) else { return Err(NoRequest::Malformed) };
    let version = last.map_or(Some(Version::Http09), version).ok_or(NoRequest::Malformed)?;
    let (method, target) = (0..method.len(), method.len() + 1..method.len() + 1 + target.len());
    of_parts(part(line, method), part(line, target), Some(version))
}

/// The request of fields that were logged one by one.
pub(crate) fn of_parts<'a>(
    method: Cow<'a, [u8]>,
    target: Cow<'a, [u8]>,
    version: Option<Version>,
) -> Result<(Request<'a>, Option<Cow<'a, str>>), NoRequest> {
    if matches!(&*method, b"" | b"-") || matches!(&*target, b"" | b"-") {
        return Err(NoRequest::Empty);
    }
    if *method == *b"PRI" {
        return Err(NoRequest::NotHttp);
    }
    let is_clean = target.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
    if !is_clean || !method.iter().all(|byte| is_token(*byte)) {
        return Err(NoRequest::Malformed);
    }
    let method = text(method);
    let (target, host) = match (target.first(), &*method) {
        (Some(b'/'), _) => (text(target), None),
        (_, "OPTIONS") if *target == *b"*" => (text(target), None),
        (_, "CONNECT") => (text(target), None),
        _ => absolute(&text(target)).ok_or(NoRequest::Malformed)?,
    };
    Ok((Request { method, target, version }, host))
}

/// The version of `HTTP/1.1` and the like.
pub(crate) fn version(written: &[u8]) -> Option<Version> {
    match written {
        b"HTTP/0.9" => Some(Version::Http09),
        b"HTTP/1.0" => Some(Version::Http10),
        b"HTTP/1.1" => Some(Version::Http11),
        b"HTTP/2" | b"HTTP/2.0" => Some(Version::Http2),
        b"HTTP/3" | b"HTTP/3.0" => Some(Version::Http3),
        _ => None,
    }
}

/// A path that the server decoded, so that it can be sent again.
pub(crate) fn encode_path(decoded: &[u8]) -> String {
    const AS_THEY_ARE: &[u8] = b"/-._~!$&'()*+,;=:@";
    encode(decoded, |byte| byte.is_ascii_alphanumeric() || AS_THEY_ARE.contains(&byte))
}

/// Path and host of `http://host/path`.
fn absolute<'a>(target: &Cow<'a, str>) -> Option<(Cow<'a, str>, Option<Cow<'a, str>>)> {
    let scheme = target.find("://")?;
    if !matches!(target[..scheme].to_ascii_lowercase().as_str(), "http" | "https" | "ws" | "wss") {
        return None;
    }
    let authority = scheme + 3;
    let end = target[authority..].find(['/', '?', '#']).map_or(target.len(), |at| authority + at);
    let host = target[authority..end].rfind('@').map_or(authority, |at| authority + at + 1);
    if host == end {
        return None;
    }
    let path = match &target[end..] {
        "" => Cow::Borrowed("/"),
        rest if rest.starts_with('/') => slice(target, end..target.len()),
        rest => Cow::Owned(format!("/{rest}")),
    };
    Some((path, Some(slice(target, host..end))))
}

/// Text of bytes that are expected to be ASCII or UTF-8; otherwise what is not ASCII is percent-encoded, as a client should
/// have done.
fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    let checked = match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| bytes.to_vec()),
        Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(std::string::FromUtf8Error::into_bytes),
    };
    checked.unwrap_or_else(|bytes| Cow::Owned(encode(&bytes, |byte| byte.is_ascii())))
}

fn encode(bytes: &[u8], stays: impl Fn(u8) -> bool) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    let mut encoded = String::with_capacity(bytes.len());
    for &byte in bytes {
        if stays(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn part<'a>(line: &Cow<'a, [u8]>, range: Range<usize>) -> Cow<'a, [u8]> {
    match line {
        Cow::Borrowed(line) => Cow::Borrowed(&line[range]),
        Cow::Owned(line) => Cow::Owned(line[range].to_vec()),
    }
}

fn slice<'a>(text: &Cow<'a, str>, range: Range<usize>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
        Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[u8], expected: Result<(&str, &str, Version, Option<&str>), NoRequest>) {
        for line in [Cow::Borrowed(line), Cow::Owned(line.to_vec())] {
            let found = of_line(&line);
            let found = found
                .as_ref()
                .map_err(|why| *why)
                .map(|(request, host)| (&*request.method, &*request.target, request.version.unwrap(), host.as_deref()));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn requests() {
        check(b"GET / HTTP/1.1", Ok(("GET", "/", Version::Http11, None)));
        check(b"HEAD /a?b=c#d HTTP/2.0", Ok(("HEAD", "/a?b=c#d", Version::Http2, None)));
        check(b"GET /old", Ok(("GET", "/old", Version::Http09, None)));
        check(b"OPTIONS * HTTP/1.0", Ok(("OPTIONS", "*", Version::Http10, None)));
        check(b"CONNECT mail.example:25 HTTP/1.1", Ok(("CONNECT", "mail.example:25", Version::Http11, None)));
        check(b"GET //x HTTP/1.1", Ok(("GET", "//x", Version::Http11, None)));
        check("GET /ü HTTP/3".as_bytes(), Ok(("GET", "/ü", Version::Http3, None)));
        check(b"GET /\xc3\xbc\xff HTTP/1.1", Ok(("GET", "/%C3%BC%FF", Version::Http11, None)));
    }

    #[test]
    fn absolute_targets() {
        check(b"GET http://a:81/x?y HTTP/1.1", Ok(("GET", "/x?y", Version::Http11, Some("a:81"))));
        check(b"GET HTTPS://u:p@a HTTP/1.1", Ok(("GET", "/", Version::Http11, Some("a"))));
        check(b"GET http://[::1]?x HTTP/1.1", Ok(("GET", "/?x", Version::Http11, Some("[::1]"))));
        check(b"GET http:///x HTTP/1.1", Err(NoRequest::Malformed));
        check(b"GET ftp://a/x HTTP/1.1", Err(NoRequest::Malformed));
    }

    #[test]
    fn what_is_no_request() {
        for (line, why) in [
            (b"".as_slice(), NoRequest::Empty),
            (b"-", NoRequest::Empty),
            (b" ", NoRequest::Empty),
            (b"\x16\x03\x01\x02", NoRequest::Tls),
            (b"\x80\x2e\x01", NoRequest::NotHttp),
            (b"\x03\0\0/", NoRequest::NotHttp),
            (b"PRI * HTTP/2.0", NoRequest::NotHttp),
            (b"GET /a b HTTP/1.1", NoRequest::Malformed),
            (b"GET /a b", NoRequest::Malformed),
            (b"GET noslash HTTP/1.1", NoRequest::Malformed),
            (b"GET * HTTP/1.1", NoRequest::Malformed),
            (b"GET / HTTP/9.9", NoRequest::Malformed),
            (b"GET /  HTTP/1.1", NoRequest::Malformed),
            (b"hello", NoRequest::Malformed),
            (b"G@T / HTTP/1.1", NoRequest::Malformed),
        ] {
            check(line, Err(why));
        }
    }

    #[test]
    fn decoded_paths_are_encoded_again() {
        for (decoded, expected) in [
            ("/a b", "/a%20b"),
            ("/50%", "/50%25"),
            ("/a?b#c", "/a%3Fb%23c"),
            ("/ü/~x:@", "/%C3%BC/~x:@"),
            ("/\"\u{1}", "/%22%01"),
        ] {
            assert_eq!(encode_path(decoded.as_bytes()), expected);
        }
    }
}
