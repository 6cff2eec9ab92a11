//! Users: how they behave, and what belongs to the page they ask for.

use crate::flags::load::UserFlags;
use anyhow::ensure;
use load::Target;
use model::plan::{LoadSpec, RequestSpec, SessionSpec};
use page::Origin;
use std::sync::atomic::AtomicBool;
use url::Url;

/// Makes users of single requests: fetches the page once and adds what it names on its own host. Says how much that is.
pub(super) fn invite(flags: &UserFlags, spec: &mut LoadSpec, target: &Target, url: &Url) -> anyhow::Result<String> {
    ensure!(flags.browser_connections > 0, "--browser-connections 0 fetches nothing; a browser has at least one");
    ensure!(
        spec.connections >= flags.browser_connections,
        "-c {} are too few for one user with {} connections; give more, or --browser-connections",
        spec.connections,
        flags.browser_connections
    );
    let assets = experiment::page_assets(spec, target, url.as_str(), &AtomicBool::new(false))?;
    let (own, foreign): (Vec<_>, Vec<_>) = assets.into_iter().partition(|asset| asset.origin == Origin::Same);
    let headers = spec.mix[0].headers.clone();
    spec.mix
        .extend(own.iter().map(|asset| RequestSpec { headers: headers.clone(), ..RequestSpec::get(&asset.target) }));
    spec.session = Some(SessionSpec {
        connections: flags.browser_connections,
        think_ns: flags.think,
        returns: flags.returns,
        patience_ns: flags.patience,
        reload_after_ns: flags.reload_after,
        reloads: flags.reloads,
    });
    Ok(format!(
        "page: {} more things on this host belong to it; {} elsewhere are not fetched",
        own.len(),
        foreign.len()
    ))
}
