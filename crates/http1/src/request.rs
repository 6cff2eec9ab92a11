//! A request as the bytes that go over the wire.
//!
//! Built once and written many times. What would contradict its parts (a second length, a body where there can be none) is
//! refused, so whatever was written is one request.

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What is asked for.
    pub method: Method<'a>,
    /// Path and query, beginning with `/`. Through a forward proxy the URL, beginning with `http://` or `https://`; for
    /// `OPTIONS` also `*`; for `CONNECT` host and port.
    pub target: &'a str,
    /// The version the request line names.
    pub version: Version,
    /// What shall become of the connection after the answer.
    pub after: After,
    /// Content of the `Host` field, with the port unless it is 80; a field of that name in `headers` takes its place.
    pub host: &'a str,
    /// Further fields, in order. `Expect: 100-continue` may be among them when there is a body that can wait.
    pub headers: &'a [(String, String)],
    /// What follows the head. `Content-Length` is written for it, and for methods that are expected to have a body also when
    /// there is none.
    pub body: Option<&'a [u8]>,
}

/// A method: any token, upper and lower case apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method<'a>(&'a str);

/// What a method means for the answer: all that the parser needs of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Head and body: every method but two.
    Content,
    /// The head only: `HEAD`.
    Head,
    /// A connection through a proxy, which a 2xx opens: `CONNECT`.
    Tunnel,
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
    /// A name that is not a token.
    #[error("the method {0:?} must be one word of letters, digits and hyphens, such as GET")]
    Method(String),
    /// A target with a space or a control character, or that begins otherwise than its method allows.
    #[error(
        "the target {0:?} must begin with /, or with http:// for a proxy, and hold neither spaces nor control characters; \
         write %20 for a space"
    )]
    Target(String),
    /// `CONNECT` to something that is not a host and a port.
    #[error("CONNECT asks for host:port, such as example.com:443, not for {0:?}")]
    ConnectTarget(String),
    /// A name that is not a token, or content with a control character.
    #[error("the header field {0:?} is malformed: a name of letters, digits and hyphens, a value on one line")]
    Field(String),
    /// A field that this crate writes by itself or that would contradict what it writes.
    #[error("the header field {0:?} cannot be set: it follows from keep-alive and from the body")]
    Reserved(String),
    /// An expectation that no server would meet.
    #[error("the header field Expect can only be 100-continue, in HTTP/1.1 and with a body that is not empty")]
    Expect,
    /// A body where RFC 9110 knows none.
    #[error("a {0} request has no body; remove the body or choose another method")]
    Body(String),
}

impl Method<'static> {
    /// `CONNECT`
    pub const CONNECT: Self = Method("CONNECT");
    /// `DELETE`
    pub const DELETE: Self = Method("DELETE");
    /// `GET`
    pub const GET: Self = Method("GET");
    /// `HEAD`
    pub const HEAD: Self = Method("HEAD");
    /// `OPTIONS`
    pub const OPTIONS: Self = Method("OPTIONS");
    /// `PATCH`
    pub const PATCH: Self = Method("PATCH");
    /// `POST`
    pub const POST: Self = Method("POST");
    /// `PUT`
    pub const PUT: Self = Method("PUT");
    /// `TRACE`
    pub const TRACE: Self = Method("TRACE");
}

impl<'a> Method<'a> {
    /// The method of that name.
    ///
    /// # Errors
    /// When the name is not a token.
    pub fn new(name: &'a str) -> Result<Method<'a>, RequestError> {
        if is_token(name) { Ok(Method(name)) } else { Err(RequestError::Method(name.to_owned())) }
    }

    /// How it stands in the request line.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.0
    }

    /// What it means for the answer.
    #[must_use]
    pub fn asked(self) -> Asked {
        match self {
            Method::HEAD => Asked::Head,
            Method::CONNECT => Asked::Tunnel,
            _ => Asked::Content,
        }
    }
}

impl Request<'_> {
    /// The request's bytes: head and body.
    ///
    /// # Errors
    /// When a part would break the request line or the fields apart, or contradicts what the other parts say.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RequestError> {
        let mut bytes = self.to_head()?;
        bytes.extend_from_slice(self.body.unwrap_or_default());
        Ok(bytes)
    }

    /// The head's bytes, which announce the body: for when the body goes out later, see [`Request::waits_for_continue`].
    ///
    /// # Errors
    /// As [`Request::to_bytes`].
    pub fn to_head(&self) -> Result<Vec<u8>, RequestError> {
        self.check_target()?;
        if self.body.is_some() && matches!(self.method, Method::CONNECT | Method::TRACE) {
            return Err(RequestError::Body(self.method.0.to_owned()));
        }
        let version = match self.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
        };
        let mut text = format!("{} {} HTTP/{version}\r\n", self.method.0, self.target);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            push_field(&mut text, "Host", self.host)?;
        }
        // RFC 9112 section 9.3: each version states only what differs from its default.
        match (self.version, self.after) {
            (Version::Http10, After::KeepOpen) => push_field(&mut text, "Connection", "keep-alive")?,
            (Version::Http11, After::Close) => push_field(&mut text, "Connection", "close")?,
            (Version::Http10, After::Close) | (Version::Http11, After::KeepOpen) => {}
        }
        if let Some(length) = self.content_length() {
            push_field(&mut text, "Content-Length", &length.to_string())?;
        }
        for (name, value) in self.headers {
            if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
                return Err(RequestError::Reserved(name.clone()));
            }
            if is_expect(name) && !self.can_expect(value) {
                return Err(RequestError::Expect);
            }
            push_field(&mut text, name, value)?;
        }
        text.push_str("\r\n");
        Ok(text.into_bytes())
    }

    /// Whether the headers ask for a 100 before the body is sent. The head is written first; the body goes out when
    /// [`Fed::interim`](crate::Fed::interim) is 100, or after a while without it (RFC 9110 section 10.1.1). A final answer may
    /// come instead: then the body was not sent, and the connection can carry no other request.
    #[must_use]
    pub fn waits_for_continue(&self) -> bool {
        self.headers.iter().any(|(name, value)| is_expect(name) && self.can_expect(value))
    }

    // RFC 9110 section 10.1.1: none without content, and HTTP/1.0 knows no interim answers.
    fn can_expect(&self, value: &str) -> bool {
        let has_content = self.body.is_some_and(|body| !body.is_empty());
        value.trim_ascii().eq_ignore_ascii_case("100-continue") && has_content && self.version == Version::Http11
    }

    // RFC 9110 section 8.6: a method that usually has content states that there is none.
    fn content_length(&self) -> Option<usize> {
        let usual = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        self.body.map(<[u8]>::len).or(usual.then_some(0))
    }

    /// The four forms of RFC 9112 section 3.2.
    fn check_target(&self) -> Result<(), RequestError> {
        let target = self.target;
        let is_one_word = !target.bytes().any(|b| b <= b' ' || b == 0x7f);
        if self.method == Method::CONNECT {
            let has_port = target
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && !host.contains('/') && is_port(port));
            return if is_one_word && has_port { Ok(()) } else { Err(RequestError::ConnectTarget(target.to_owned())) };
        }
        let is_form = target.starts_with('/') || is_url(target) || (target == "*" && self.method == Method::OPTIONS);
        if is_one_word && is_form { Ok(()) } else { Err(RequestError::Target(target.to_owned())) }
    }
}

const RESERVED: [&str; 5] = ["Connection", "Content-Length", "Keep-Alive", "Transfer-Encoding", "Upgrade"];

fn is_expect(name: &str) -> bool {
    name.eq_ignore_ascii_case("expect")
}

/// Whether it begins with a scheme and a host.
fn is_url(target: &str) -> bool {
    let Some((scheme, rest)) = target.split_once("://") else { return false };
    let has_host = !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':']);
    has_host && ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(crate::head::is_token)
}

fn push_field(text: &mut String, name: &str, value: &str) -> Result<(), RequestError> {
    let value_is_text = value.bytes().all(|b| b == b'\t' || (b >= b' ' && b != 0x7f));
    if !(is_token(name) && value_is_text) {
        return Err(RequestError::Field(name.to_owned()));
    }
    for part in [name, ": ", value, "\r\n"] {
        text.push_str(part);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
