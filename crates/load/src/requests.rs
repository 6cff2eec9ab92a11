//! What is asked for: every kind of request of a load as bytes, and which one comes next.
//!
//! Everything about a request follows from its serial number and the load's seed, so it can be sent again byte for byte, and
//! the same load asks the same things in the same proportions however many workers share it.

use crate::engine::LoadError;
use http1::{After, Asked, Method, Request, RequestError, Version};
use model::plan::{HttpVersion, LoadSpec, RequestSpec};

/// All kinds of requests of a load.
pub(crate) struct Requests {
    kinds: Vec<Kind>,
    weights: u64,
    seed: u64,
}

/// One kind.
pub(crate) struct Kind {
    // Where its part of the weights ends.
    until: u64,
    /// What its answers' parser has to know of it.
    pub(crate) asked: Asked,
    /// Whether it may be sent again when nothing is known of what became of it: RFC 9110 section 9.2.2.
    pub(crate) idempotent: bool,
    /// The whole request.
    pub(crate) bytes: Vec<u8>,
}

impl Requests {
    /// The requests of a load to `host`.
    ///
    /// # Errors
    /// When there are none, or one cannot be written.
    pub(crate) fn new(spec: &LoadSpec, host: &str) -> Result<Requests, LoadError> {
        let fail = |source| LoadError::Request { name: spec.name.clone(), source };
        let mut until = 0;
        let mut kinds = Vec::with_capacity(spec.mix.len());
        for request in &spec.mix {
            until += u64::from(request.weight);
            kinds.push(kind(spec, request, host, until).map_err(fail)?);
        }
        if until == 0 {
            return Err(LoadError::NothingToAsk(spec.name.clone()));
        }
        Ok(Requests { kinds, weights: until, seed: spec.seed })
    }

    /// Which kind the request of that number is.
    pub(crate) fn pick(&self, serial: u64) -> usize {
        if self.kinds.len() == 1 {
            return 0;
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
}

/// SplitMix64's finalizer: every bit of the result depends on every bit of the number.
fn scramble(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn kind(spec: &LoadSpec, request: &RequestSpec, host: &str, until: u64) -> Result<Kind, RequestError> {
    let mut headers = request.headers.clone();
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
        // The server's log shall say who that was.
        headers.push(("User-Agent".to_owned(), concat!("webdyno/", env!("CARGO_PKG_VERSION")).to_owned()));
    }
    let method = Method::new(&request.method)?;
    let bytes = Request {
        method,
        target: &request.path,
        version: match spec.http {
            HttpVersion::Http10 => Version::Http10,
            HttpVersion::Http11 => Version::Http11,
        },
        after: if spec.keep_alive { After::KeepOpen } else { After::Close },
        host,
        headers: &headers,
        body: request.body.as_deref(),
    }
    .to_bytes()?;
    let idempotent = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"].contains(&method.name());
    Ok(Kind { until, asked: method.asked(), idempotent, bytes })
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
