//! What a plan says of how its servers are ended and which logs are counted, and what that means.

use super::PlanError;
use super::measure::Duration;
use super::source::Source;
use crate::plan::{AccessLog, End, Ending, LoadSpec, ServerSpec, Service, Variant};
use serde::Deserialize;
use std::ops::Range;
use std::path::{Component, Path};
use toml::Spanned;

/// `[access_log]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessLogText {
    file: Spanned<String>,
    format: Option<Spanned<String>>,
}

/// The end that `[server]` or a variant, called `table`, asks for.
pub(super) fn end_meant(
    source: &Source<'_>,
    table: &str,
    server: &ServerSpec,
    ending: Option<&Spanned<Ending>>,
    after: Option<&Spanned<Duration>>,
) -> Result<Option<End>, PlanError> {
    let Some(ending) = ending else {
        return after.map_or(Ok(None), |after| {
            Err(source.at(after.span(), &format!("{table}.ending_after"), "needs `ending` beside it"))
        });
    };
    let how = *ending.get_ref();
    let known = server.endings();
    if !known.contains(&how) {
        let known: Vec<String> = known.iter().map(|it| format!("`{}`", it.name())).collect();
        let what = match known.as_slice() {
            [] => "a server that is not started for the run is not ended either; remove the line".to_owned(),
            known => format!("this server can be ended by {}", known.join(", ")),
        };
        return Err(source.at(ending.span(), &format!("{table}.ending"), &what));
    }
    let Some(after) = after else { return Ok(Some(End { how, after_ns: None })) };
    let key = format!("{table}.ending_after");
    if !how.goes_on() {
        let what = "only after `graceful` and `restart` a server goes on answering; remove the line";
        return Err(source.at(after.span(), &key, what));
    }
    Ok(Some(End { how, after_ns: Some(source.duration_text(after, &key)?) }))
}

/// Refuses an end of `[server]`'s that the server of a variant's own does not know.
pub(super) fn can_all_end_so(
    source: &Source<'_>,
    end: Option<End>,
    variants: &[(Variant, Range<usize>)],
    services: &[Service],
) -> Result<(), PlanError> {
    let Some(end) = end else { return Ok(()) };
    for (variant, place) in variants.iter().filter(|(variant, _)| variant.end.is_none()) {
        let own = services.iter().find(|service| Some(&service.name) == variant.servers.server.as_ref());
        if own.is_some_and(|own| !own.server.endings().contains(&end.how)) {
            let what = format!(
                "the server of `{}` cannot be ended by `{}`, as [server] says; give the variant an `ending` of its own",
                variant.name,
                end.how.name()
            );
            return Err(source.at(place.clone(), "variant.ending", &what));
        }
    }
    Ok(())
}

/// The log that is to be counted. `servers` are `[server]` and those that take its place for a variant; at least one of them has to be
/// one whose log is counted.
pub(super) fn access_log_meant<'a>(
    source: &Source<'_>,
    written: &AccessLogText,
    servers: impl Iterator<Item = &'a ServerSpec>,
    loads: &[LoadSpec],
    beside: &[LoadSpec],
) -> Result<AccessLog, PlanError> {
    let at = |what: &str| Err(source.at(written.file.span(), "access_log.file", what));
    let ready: Vec<&str> = servers.filter_map(ServerSpec::ready_where_logged).collect();
    if ready.is_empty() {
        return at("logs are counted of an Apache or nginx that the run starts itself; remove the table");
    }
    let file = Path::new(written.file.get_ref());
    let plain = file.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || file.parent().is_some_and(|folder| folder.to_string_lossy().contains('*')) {
        return at("give a file in the server's own folder, such as logs/access.log; only its name may hold a *");
    }
    let mut asked = loads.iter().chain(beside).flat_map(|load| &load.mix).map(|request| request.path.as_str());
    if let Some(ready) = asked.find(|path| ready.contains(path)) {
        let what = format!(
            "lines are told apart by what was asked for, and `{ready}` is what webdyno asks for to see whether the server is ready; \
             let the loads ask for another path, such as `{ready}?load`"
        );
        return at(&what);
    }
    Ok(AccessLog {
        file: written.file.get_ref().clone(),
        line: source.line(written.format.as_ref().unwrap_or(&written.file).span().start),
        format: written.format.as_ref().map_or_else(|| "combined".to_owned(), |format| format.get_ref().clone()),
    })
}
