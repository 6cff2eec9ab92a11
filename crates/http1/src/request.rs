//! A request as the bytes that go over the wire.
//!
//! Built once and written many times. Requests have no body here, so the fields that would announce one are refused.

/// A request without a body.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What is asked for.
    pub method: Method,
    /// Path and query, beginning with `/`.
    pub path: &'a str,
    /// The version the request line names.
    pub version: Version,
    /// What shall become of the connection after the answer.
    pub after: After,
    /// Content of the `Host` field, with the port unless it is 80; a field of that name in `headers` takes its place.
    pub host: &'a str,
    /// Further fields, in order.
    pub headers: &'a [(String, String)],
}

/// The methods that need no request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Head and body.
    Get,
    /// The head only.
    Head,
}

/// HTTP versions that are spoken as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: a connection closes unless both sides say otherwise.
    Http10,
    /// HTTP/1.1: a connection stays open unless one side says otherwise.
    Http11,
}

/// What shall become of the connection after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It carries the next request.
    KeepOpen,
    /// It is closed.
    Close,
}

/// A request that cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Path with a space, a control character or without its slash.
    #[error("the path {0:?} must begin with / and hold neither spaces nor control characters; write %20 for a space")]
    Path(String),
    /// A name that is not a token, or content with a control character.
    #[error("the header field {0:?} is malformed: a name of letters, digits and hyphens, a value on one line")]
    Field(String),
    /// A field that this crate writes by itself or that announces a body.
    #[error("the header field {0:?} cannot be set: it follows from keep-alive or announces a body, and there is none")]
    Reserved(String),
}

impl Request<'_> {
    /// The request's bytes.
    ///
    /// # Errors
    /// When a part would break the request line or the fields apart, or contradicts what the other parts say.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RequestError> {
        if !self.path.starts_with('/') || self.path.bytes().any(|b| b <= b' ' || b == 0x7f) {
            return Err(RequestError::Path(self.path.to_owned()));
        }
        let method = match self.method {
            Method::Get => "GET",
            Method::Head => "HEAD",
        };
        let version = match self.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
        };
        let mut text = format!("{method} {} HTTP/{version}\r\n", self.path);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            push_field(&mut text, "Host", self.host)?;
        }
        // RFC 9112 section 9.3: each version states only what differs from its default.
        match (self.version, self.after) {
            (Version::Http10, After::KeepOpen) => push_field(&mut text, "Connection", "keep-alive")?,
            (Version::Http11, After::Close) => push_field(&mut text, "Connection", "close")?,
            (Version::Http10, After::Close) | (Version::Http11, After::KeepOpen) => {}
        }
        for (name, value) in self.headers {
            if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
                return Err(RequestError::Reserved(name.clone()));
            }
            push_field(&mut text, name, value)?;
        }
        text.push_str("\r\n");
        Ok(text.into_bytes())
    }
}

const RESERVED: [&str; 6] = ["Connection", "Content-Length", "Expect", "Keep-Alive", "Transfer-Encoding", "Upgrade"];

fn push_field(text: &mut String, name: &str, value: &str) -> Result<(), RequestError> {
    let name_is_token = !name.is_empty() && name.bytes().all(crate::head::is_token);
    let value_is_text = value.bytes().all(|b| b == b'\t' || (b >= b' ' && b != 0x7f));
    if !(name_is_token && value_is_text) {
        return Err(RequestError::Field(name.to_owned()));
    }
    for part in [name, ": ", value, "\r\n"] {
        text.push_str(part);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(version: Version, after: After, path: &str, headers: &[(&str, &str)], expected: &Expect) {
        let headers: Vec<_> = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let request = Request { method: Method::Get, path, version, after, host: "here:8080", headers: &headers };
        let text = match request.to_bytes() {
            Ok(bytes) => String::from_utf8(bytes).unwrap().replace("\r\n", "|"),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&text);
    }

    #[test]
    fn each_version_states_what_differs_from_its_default() {
        use After::{Close, KeepOpen};
        use Version::{Http10, Http11};
        check(Http10, KeepOpen, "/", &[], &expect!["GET / HTTP/1.0|Host: here:8080|Connection: keep-alive||"]);
        check(Http10, Close, "/", &[], &expect!["GET / HTTP/1.0|Host: here:8080||"]);
        check(Http11, KeepOpen, "/?q=1", &[], &expect!["GET /?q=1 HTTP/1.1|Host: here:8080||"]);
        check(Http11, Close, "/", &[], &expect!["GET / HTTP/1.1|Host: here:8080|Connection: close||"]);
    }

    #[test]
    fn fields_are_added_and_host_is_replaced() {
        let headers = [("X-A", "1"), ("host", "there")];
        check(Version::Http10, After::Close, "/", &headers, &expect!["GET / HTTP/1.0|X-A: 1|host: there||"]);
    }

    #[test]
    fn what_would_break_the_request_apart_is_refused() {
        let get = |path, headers: &[(&str, &str)], expected| {
            check(Version::Http11, After::KeepOpen, path, headers, &expected);
        };
        get(
            "/a b",
            &[],
            expect![[
                r#"the path "/a b" must begin with / and hold neither spaces nor control characters; write %20 for a space"#
            ]],
        );
        get(
            "index.html",
            &[],
            expect![[
                r#"the path "index.html" must begin with / and hold neither spaces nor control characters; write %20 for a space"#
            ]],
        );
        get(
            "/",
            &[("X-A", "1\r\nX-B: 2")],
            expect![[
                r#"the header field "X-A" is malformed: a name of letters, digits and hyphens, a value on one line"#
            ]],
        );
        get(
            "/",
            &[("X A", "1")],
            expect![[
                r#"the header field "X A" is malformed: a name of letters, digits and hyphens, a value on one line"#
            ]],
        );
        get(
            "/",
            &[("content-length", "5")],
            expect![[
                r#"the header field "content-length" cannot be set: it follows from keep-alive or announces a body, and there is none"#
            ]],
        );
    }
}
