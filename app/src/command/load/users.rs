//! Users: how they behave, and what belongs to the page they ask for.

use crate::flags::load::UserFlags;
use anyhow::ensure;
use load::Target;
use model::plan::{LoadSpec, RequestSpec, SessionSpec};
use page::Origin;
use std::sync::atomic::AtomicBool;
use url::Url;

/// Makes users of single requests.
pub(super) fn seat(flags: &UserFlags, spec: &mut LoadSpec) -> anyhow::Result<()> {
    ensure!(flags.browser_connections > 0, "--browser-connections 0 fetches nothing; a browser has at least one");
    ensure!(
        spec.connections >= flags.browser_connections,
        "-c {} are too few for one user with {} connections; give more, or --browser-connections",
        spec.connections,
        flags.browser_connections
    );
    spec.session = Some(SessionSpec {
        connections: flags.browser_connections,
        think_ns: flags.think,
        returns: flags.returns,
        patience_ns: flags.patience,
        reload_after_ns: flags.reload_after,
        reloads: flags.reloads,
    });
    Ok(())
}

/// Fetches their page once and adds what it names on its own host. Says how much that is.
pub(super) fn invite(spec: &mut LoadSpec, target: &Target, url: &Url) -> anyhow::Result<String> {
    let assets = experiment::page_assets(spec, target, url.as_str(), &AtomicBool::new(false))?;
    let (own, foreign): (Vec<_>, Vec<_>) = assets.into_iter().partition(|asset| asset.origin == Origin::Same);
    let RequestSpec { headers, path, .. } = spec.mix[0].clone();
    // A proxy is asked for whole URLs, as for the page itself.
    let before = if path.starts_with("http://") { format!("http://{}", target.host) } else { String::new() };
    spec.mix.extend(own.iter().map(|asset| RequestSpec {
        headers: headers.clone(),
        // What looks like a template there is the page's own text.
        ..RequestSpec::get(&format!("{before}{}", asset.target.replace("${", "$${")))
    }));
    Ok(format!(
        "page: {} more things on this host belong to it; {} elsewhere are not fetched",
        own.len(),
        foreign.len()
    ))
}

/// What a dry run says of them.
pub(super) fn outline(session: &SessionSpec, connections: u32) -> String {
    format!(
        "users with {} connections each, {} at once at most; the page is fetched once before, and what its HTML names on this host \
         belongs to it: a dry run does not look\n",
        session.connections,
        connections / session.connections.max(1)
    )
}
