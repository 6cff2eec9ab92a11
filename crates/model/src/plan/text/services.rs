//! What a plan says of servers beside the one under test, and whether each text names only those that are there.

use super::PlanError;
use super::in_order;
use super::measure::Duration;
use super::names;
use super::server::{ServerText, server_meant};
use super::source::Source;
use crate::plan::{
    CommandServer, Directive, Mention, Plan, Ready, ServerSpec, Servers, Service, ServiceChange, Stop, mentions,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// What a variant changes about a service.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct ServiceText {
    directives: Option<Spanned<String>>,
    kill_after: Option<Spanned<Duration>>,
}

/// What a variant says of servers, as it is written.
#[derive(Default)]
pub(super) struct ServersText {
    pub(super) server: Option<Spanned<String>>,
    pub(super) services: Option<Spanned<Vec<String>>>,
    pub(super) service: BTreeMap<String, Spanned<ServiceText>>,
}

/// The services, in the plan's order.
pub(super) fn services_meant(
    source: &Source<'_>,
    written: BTreeMap<String, Spanned<ServerText>>,
) -> Result<Vec<Service>, PlanError> {
    let service = |(name, text): (String, Spanned<ServerText>)| {
        let table = format!("service.{name}");
        let place = text.span();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
            return Err(source.at(place, &table, "the name may have letters, digits, - and _"));
        }
        let line = source.line(place.start);
        let mut text = text.into_inner();
        if let Some((span, key)) = text.only_of_the_server() {
            let what = "only [server] has it; remove the line";
            return Err(source.at(span, &format!("{table}.{key}"), what));
        }
        if text.is_url() {
            let what = "a service is started by webdyno; leave a server out that runs already";
            return Err(source.at(place, &format!("{table}.kind"), what));
        }
        let keep = text.keep.take().is_some_and(Spanned::into_inner);
        let server = server_meant(source, text, None).map_err(|error| {
            let key = error.key.map(|key| key.replacen("server", &table, 1));
            PlanError { key, ..error }
        })?;
        Ok(Service { name, server, keep, line })
    };
    in_order(written).map(service).collect()
}

/// What a variant says of servers. `place` is the variant's, and `quick` halves times.
pub(super) fn of_variant(
    source: &Source<'_>,
    services: &[Service],
    written: ServersText,
    quick: bool,
) -> Result<Servers, PlanError> {
    let known = || match services {
        [] => "there is no [service.NAME]".to_owned(),
        services => format!("there is {}", names(services.iter().map(|service| &service.name))),
    };
    let find = |span: Range<usize>, key: &str, name: &str| {
        let found = services.iter().find(|service| service.name == name);
        found.ok_or_else(|| source.at(span, key, &format!("no service `{name}`; {}", known())))
    };
    let ServersText { server, services: listed, service } = written;
    if let Some(name) = &server
        && find(name.span(), "variant.server", name.get_ref())?.keep
    {
        let what = "it is kept for the whole run, and a server under test is started for each trial; remove its `keep`";
        return Err(source.at(name.span(), "variant.server", what));
    }
    for name in listed.iter().flat_map(|listed| listed.get_ref()) {
        let span = listed.as_ref().map_or(0..0, Spanned::span);
        find(span.clone(), "variant.services", name)?;
        if server.as_ref().is_some_and(|server| server.get_ref() == name) {
            let what = format!("`{name}` is this variant's server; it is not beside itself");
            return Err(source.at(span, "variant.services", &what));
        }
    }
    let mut changes = BTreeMap::new();
    for (name, text) in service {
        let (place, text) = (text.span(), text.into_inner());
        let key = format!("variant.service.{name}");
        if find(place.clone(), &key, &name)?.keep {
            let what = "it is kept for the whole run, so no variant can change it; remove its `keep`";
            return Err(source.at(place, &key, what));
        }
        let kill_after_ns = text.kill_after.as_ref();
        let kill_after_ns = kill_after_ns
            .map(|after| source.longer_than_0(Some(after), &format!("{key}.kill_after"), 0))
            .transpose()?
            .map(|after| if quick { after / 2 } else { after });
        changes.insert(name, ServiceChange { directives: source.directives(text.directives.as_ref()), kill_after_ns });
    }
    Ok(Servers { server: server.map(Spanned::into_inner), services: listed.map(Spanned::into_inner), changes })
}

/// Each server may name the services that run before it is started, and no others.
pub(super) fn check_mentions(source: &Source<'_>, plan: &Plan) -> Result<(), PlanError> {
    let wrong = |line: Option<usize>, what: String| {
        Err(PlanError { file: source.file.to_owned(), line, key: Some("service".to_owned()), what })
    };
    if plan.in_place().is_some() && !plan.services.is_empty() {
        let what = "services stand beside a server of webdyno's own; remove them, or `in_place`".to_owned();
        return wrong(plan.services.first().map(|service| service.line), what);
    }
    for variant in &plan.variants {
        let mut running: Vec<&str> = Vec::new();
        let check = |texts: Vec<(Option<usize>, &str)>, running: &[&str]| {
            for (line, text) in texts {
                let Some((mention, why)) = mentions(text).find_map(|it| Some((it, objection(plan, it, running)?)))
                else {
                    continue;
                };
                return wrong(line, format!("{}: {why} (variant `{}`)", mention.written(), variant.name));
            }
            Ok(())
        };
        let kept = |service: &Service, name: &str| !service.keep || plan.service(name).is_some_and(|it| it.keep);
        for service in plan.services_of(variant) {
            let change = variant.servers.changes.get(&service.name);
            let before: Vec<&str> = running.iter().copied().filter(|name| kept(service, name)).collect();
            check(texts(&service.server, change.map_or(&[], |change| &change.directives)), &before)?;
            running.push(&service.name);
        }
        if let Some(name) = variant.servers.changes.keys().find(|name| !running.contains(&name.as_str())) {
            let line = plan.service(name).map(|service| service.line);
            let what = format!("variant `{}` changes `{name}` and is not measured with it", variant.name);
            return wrong(line, what);
        }
        check(texts(plan.server_of(variant), &variant.directives), &running)?;
        let php = variant.php.ini.values().chain(variant.php.pool.values());
        check(php.map(|setting| (Some(setting.line), setting.value.as_str())).collect(), &running)?;
    }
    Ok(())
}

/// What is wrong with a mention where these services run.
fn objection(plan: &Plan, mention: Mention<'_>, running: &[&str]) -> Option<String> {
    if !Mention::WORDS.contains(&mention.word) {
        return Some("of a service there is `address`, `port` and `folder`".to_owned());
    }
    if running.contains(&mention.service) {
        return None;
    }
    Some(match plan.service(mention.service) {
        None => "there is no such service".to_owned(),
        Some(_) => "the service is not running when this is read: it stands behind, or is left out".to_owned(),
    })
}

/// Everything in which a service can be mentioned, with its line.
fn texts<'a>(server: &'a ServerSpec, more: &'a [Directive]) -> Vec<(Option<usize>, &'a str)> {
    let line = server.line();
    let (directives, php): (&[Directive], _) = match server {
        ServerSpec::Apache(apache) => (&apache.directives, apache.php.as_ref()),
        ServerSpec::Nginx(nginx) => (&nginx.directives, nginx.php.as_ref()),
        ServerSpec::Command(command) => (&command.directives, None),
        ServerSpec::Embedded(embedded) => (&embedded.directives, None),
        ServerSpec::Url(_) => (&[], None),
    };
    let words: Vec<&String> = match server {
        ServerSpec::Command(CommandServer { command, ready, stop, .. }) => {
            let ready = if let Ready::Command(ready) = ready { ready.as_slice() } else { &[] };
            let stop = if let Some(Stop::Command(stop)) = stop { stop.as_slice() } else { &[] };
            command.iter().chain(ready).chain(stop).collect()
        }
        _ => Vec::new(),
    };
    let settings = php.into_iter().flat_map(|php| php.settings.ini.values().chain(php.settings.pool.values()));
    let lines = directives.iter().chain(more).map(|it| (Some(it.line), it.text.as_str()));
    let words = words.into_iter().map(|word| (line, word.as_str()));
    lines.chain(words).chain(settings.map(|it| (Some(it.line), it.value.as_str()))).collect()
}

#[cfg(test)]
mod tests;
