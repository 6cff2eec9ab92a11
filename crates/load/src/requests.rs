//! What is asked for: every kind of request of a load as bytes, and which one comes next.
//!
//! Everything about a request follows from its serial number and the load's seed, so it can be sent again byte for byte, and
//! the same load asks the same things in the same proportions however many workers share it.

mod filling;

use crate::engine::LoadError;
use crate::jar::{self, Jar};
use filling::{Filling, Which};
use http1::{After, Asked, Method, Request, Version};
use model::plan::{HttpVersion, LoadSpec, Recording, RequestSpec};
use std::sync::Arc;

/// All kinds of requests of a load.
pub(crate) struct Requests {
    kinds: Vec<Kind>,
    weights: u64,
    seed: u64,
    // Says which request comes next, in place of the weights.
    log: Option<Arc<Recording>>,
}

/// One kind.
pub(crate) struct Kind {
    // Where its part of the weights ends.
    until: u64,
    /// What its answers' parser has to know of it.
    pub(crate) asked: Asked,
    /// Whether it may be sent again when nothing is known of what became of it: RFC 9110 section 9.2.2.
    pub(crate) idempotent: bool,
    content: Content,
}

enum Content {
    /// The whole request.
    Fixed(Vec<u8>),
    /// Each is put together anew.
    Filled(Box<Filling>),
}

/// What remains to be done for a request that was put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing: all of it is there.
    Nothing,
    /// The body, when the server asks for it.
    Body,
}

impl Kind {
    /// The whole request, when all of this kind are the same.
    #[inline]
    pub(crate) fn fixed(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Fixed(bytes) => Some(bytes),
            Content::Filled(_) => None,
        }
    }
}

impl Requests {
    /// The requests of a load to `host`.
    ///
    /// # Errors
    /// When there are none, or one cannot be written.
    pub(crate) fn new(spec: &LoadSpec, host: &str) -> Result<Requests, LoadError> {
        let mut until = 0;
        let mut kinds = Vec::with_capacity(spec.mix.len());
        for request in &spec.mix {
            until += u64::from(request.weight);
            kinds.push(kind(spec, request, host, until)?);
        }
        let log = spec.log.as_ref().map(|log| Arc::clone(&log.recording));
        if until == 0 || log.as_ref().is_some_and(|log| log.is_empty()) {
            return Err(LoadError::NothingToAsk(spec.name.clone()));
        }
        Ok(Requests { kinds, weights: until, seed: spec.seed, log })
    }

    /// Which kind the request of that number is.
    pub(crate) fn pick(&self, serial: u64) -> usize {
        if self.kinds.len() == 1 {
            return 0;
        }
        if let Some(log) = &self.log {
            // Kinds beyond the last would be a mistake of whoever recorded the log.
            return logged(log, serial).map_or(0, |(kind, _)| kind.min(self.kinds.len() - 1));
        }
        // The high half of a product spreads 64 random bits over the weights; the bias is below weights / 2^64.
        let random = u128::from(scramble(self.seed ^ scramble(serial)));
        let point = ((random * u128::from(self.weights)) >> 64) as u64;
        self.kinds.partition_point(|kind| kind.until <= point)
    }

    /// One kind.
    pub(crate) fn kind(&self, kind: usize) -> &Kind {
        &self.kinds[kind]
    }

    /// How many kinds there are.
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Puts a request behind `out`, without its body if that waits.
    pub(crate) fn write(&self, kind: usize, serial: u64, jar: Option<&Jar>, out: &mut Vec<u8>) -> Rest {
        match &self.kinds[kind].content {
            Content::Fixed(bytes) => {
                out.extend_from_slice(bytes);
                Rest::Nothing
            }
            Content::Filled(filling) => {
                filling.head(self.which(serial, jar), out);
                if filling.waits == Rest::Nothing {
                    filling.body(self.which(serial, jar), out);
                }
                filling.waits
            }
        }
    }

    /// Puts the body that waited behind `out`.
    pub(crate) fn write_body(&self, kind: usize, serial: u64, out: &mut Vec<u8>) {
        if let Content::Filled(filling) = &self.kinds[kind].content {
            filling.body(self.which(serial, None), out);
        }
    }

    fn which<'a>(&'a self, serial: u64, jar: Option<&'a Jar>) -> Which<'a> {
        let logged = self.log.as_ref().and_then(|log| logged(log, serial)).map(|(_, target)| target);
        Which { seed: self.seed, serial, logged, jar }
    }
}

/// The log's request of that number; a load that is longer than its log begins again.
fn logged(log: &Recording, serial: u64) -> Option<(usize, &str)> {
    log.asked((serial % log.len().max(1) as u64) as usize)
}

/// SplitMix64's finalizer: every bit of the result depends on every bit of the number.
fn scramble(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn kind(spec: &LoadSpec, request: &RequestSpec, host: &str, until: u64) -> Result<Kind, LoadError> {
    if let Some(wire) = &request.wire {
        // What is sent as it is may have a method that is no token.
        let asked = Method::new(&request.method).map_or(Asked::Content, Method::asked);
        let idempotent = is_idempotent(&request.method);
        return Ok(Kind { until, asked, idempotent, content: Content::Fixed(wire.to_vec()) });
    }
    let unwritable = |source| LoadError::Request { name: spec.name.clone(), source };
    let mut headers = request.headers.clone();
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
        // The server's log shall say who that was.
        headers.push(("User-Agent".to_owned(), concat!("webdyno/", env!("CARGO_PKG_VERSION")).to_owned()));
    }
    let cookies = spec.cookies.then(|| take_cookies(&mut headers));
    let body = match &request.body {
        Some(body) => Some(body.bytes().ok_or_else(|| LoadError::NoBody(spec.name.clone()))?),
        None => None,
    };
    let method = Method::new(&request.method).map_err(unwritable)?;
    let written = Request {
        method,
        target: &request.path,
        version: match spec.http {
            HttpVersion::Http10 => Version::Http10,
            HttpVersion::Http11 => Version::Http11,
        },
        after: if spec.keep_alive { After::KeepOpen } else { After::Close },
        host,
        headers: &headers,
        body,
    };
    let head = written.to_head().map_err(unwritable)?;
    // It is made of text.
    let head = String::from_utf8_lossy(&head);
    let waits = if written.waits_for_continue() { Rest::Body } else { Rest::Nothing };
    if waits == Rest::Body && spec.pipeline > 1 {
        return Err(LoadError::PipelinedWait(spec.name.clone()));
    }
    let filling = Filling::new(&head, body.unwrap_or_default(), waits, cookies)
        .map_err(|source| LoadError::Template { name: spec.name.clone(), source })?;
    let content = filling.fixed().map_or_else(|| Content::Filled(Box::new(filling)), Content::Fixed);
    Ok(Kind { until, asked: method.asked(), idempotent: is_idempotent(method.name()), content })
}

fn is_idempotent(method: &str) -> bool {
    ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"].contains(&method)
}

/// Takes the cookies out of the header fields: the jar writes them, because there may be only one such field.
fn take_cookies(headers: &mut Vec<(String, String)>) -> Vec<(String, String)> {
    let is_cookie = |(name, _): &(String, String)| name.eq_ignore_ascii_case("cookie");
    let cookies = headers.iter().filter(|field| is_cookie(field)).flat_map(|(_, value)| jar::pairs(value)).collect();
    headers.retain(|field| !is_cookie(field));
    cookies
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::RequestSpec;

    /// The share of each kind among many requests, in whole percent.
    #[track_caller]
    fn check(weights: &[u32], expected: &[u64]) {
        let mix = weights.iter().map(|&weight| RequestSpec { weight, ..RequestSpec::get("/") }).collect();
        let requests = Requests::new(&LoadSpec { mix, ..LoadSpec::of("test", "/") }, "h").unwrap();
        let mut counts = vec![0_u64; weights.len()];
        (0..100_000).for_each(|serial| counts[requests.pick(serial)] += 1);
        let percent: Vec<_> = counts.iter().map(|count| (count + 500) / 1000).collect();
        assert_eq!(percent, expected);
    }

    #[test]
    fn kinds_come_in_proportion_to_their_weights() {
        check(&[5], &[100]);
        check(&[1, 1], &[50, 50]);
        check(&[70, 0, 20, 10], &[70, 0, 20, 10]);
    }
}
