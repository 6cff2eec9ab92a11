//! A URL to be asked for as it is, again and again: whom that reaches, and with which request.

use super::operated::{self, Operated};
use super::way::{self, Way};
use super::{secret, what};
use crate::flags::load::WayFlags;
use anyhow::{Context, ensure};
use load::Target;
use model::plan::{HttpVersion, LoadSpec, Pace, RequestSpec};

/// A URL, read.
pub(crate) struct Plain {
    pub(crate) target: Target,
    /// The URL as it may be shown.
    pub(crate) shown: String,
    /// One request over one connection, without an end.
    pub(crate) spec: LoadSpec,
}

/// Reads it, and lets it pass if it leads to nobody but this machine and hosts that the user operates.
pub(crate) fn plain(
    url: &str,
    way: &WayFlags,
    headers: &[(String, String)],
    said: &Operated<'_>,
) -> anyhow::Result<Plain> {
    let whither = what::whither(url)?;
    let Way { target, others, .. } = way::way(way, &whither.url, &[])?;
    operated::allowed(said, &others)?;
    let user = whither.user.as_deref().map(secret::basic).transpose()?;
    let authorization = user.map(|user| ("Authorization".to_owned(), user));
    let headers = headers.iter().cloned().chain(authorization).collect();
    let spec = LoadSpec {
        mix: vec![RequestSpec { headers, ..RequestSpec::get(&whither.path) }],
        pace: Pace::WhenFree,
        http: HttpVersion::Http11,
        tls: way::tls(way, &whither.url),
        connections: 1,
        // A page may be another one each time; compressed, a few random bytes are enough for that.
        same_length: false,
        ..LoadSpec::of(super::meant::ONLY, &whither.path)
    };
    load::check(&LoadSpec { requests: Some(1), ..spec.clone() }, &target)
        .map_err(|error| anyhow::anyhow!(error.reason()))?;
    Ok(Plain { target, shown: whither.shown, spec })
}

/// What is meant by a name of this machine's loopback is another one there.
pub(crate) fn from_there(target: &Target) -> anyhow::Result<()> {
    ensure!(
        !target.address.all().iter().any(|address| address.ip().is_loopback()),
        "{} is each machine's own: another machine that sends the load would load itself; give the address by which it reaches the \
         server",
        target.address
    );
    Ok(())
}

/// Whom a load to this URL would go to beside this machine, where its name led to this address.
pub(crate) fn others(url: &str, address: &str) -> anyhow::Result<Vec<String>> {
    let what::Whither { url, .. } = what::whither(url)?;
    let address =
        address.parse().with_context(|| format!("`{address}` is no address that connections can be made to"))?;
    Ok(url.host_str().and_then(|host| way::other(host, address)).into_iter().collect())
}
