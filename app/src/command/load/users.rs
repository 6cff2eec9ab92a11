//! Users: how they behave, and what belongs to the page they ask for.

use crate::flags::load::UserFlags;
use anyhow::{Context, ensure};
use load::Target;
use model::plan::{LoadSpec, RequestSpec, SessionSpec};
use page::Origin;
use url::Url;

/// HTML beyond that is not read.
const LONGEST_PAGE: usize = 16 << 20;

/// Makes users of single requests: fetches the page once and adds what it names on its own host. Says how much that is.
pub(super) fn invite(flags: &UserFlags, spec: &mut LoadSpec, target: &Target, url: &Url) -> anyhow::Result<String> {
    ensure!(flags.browser_connections > 0, "--browser-connections 0 fetches nothing; a browser has at least one");
    ensure!(
        spec.connections >= flags.browser_connections,
        "-c {} are too few for one user with {} connections; give more, or --browser-connections",
        spec.connections,
        flags.browser_connections
    );
    let page = load::fetch(spec, target, LONGEST_PAGE).with_context(|| format!("cannot read the page {url}"))?;
    ensure!(
        (200..300).contains(&page.status),
        "{url} is answered with status {}{}; give the address of the page itself",
        page.status,
        page.location.map(|location| format!(" and Location {location}")).unwrap_or_default()
    );
    let assets = page::assets(&page.body, url.as_str()).with_context(|| format!("cannot read the page {url}"))?;
    let (own, foreign): (Vec<_>, Vec<_>) = assets.into_iter().partition(|asset| asset.origin == Origin::Same);
    let headers = spec.mix[0].headers.clone();
    spec.mix.extend(
        own.iter().map(|asset| RequestSpec { headers: headers.clone(), ..RequestSpec::get(&asset.target) }),
    );
    spec.session = Some(SessionSpec {
        connections: flags.browser_connections,
        think_ns: flags.think,
        returns: flags.returns,
        patience_ns: flags.patience,
        reload_after_ns: flags.reload_after,
        reloads: flags.reloads,
    });
    // What belongs to a page has many lengths, each its own.
    Ok(format!(
        "page: {} bytes, {} more things on this host, {} elsewhere that are not fetched",
        page.body.len(),
        own.len(),
        foreign.len()
    ))
}
