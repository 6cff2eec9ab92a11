//! Who answers, how it is set, what its workers hold, and what could not be seen, in words.

use crate::language::{Catalogue, Sentence};
use crate::view::table::NOTHING;
use diagnosis::check::Fit;
use model::check::{Found, Kind, Limit, Measure, Page, Pool, Running, Setting, Unseen};

/// What is said of files that could not be read: no more than so many.
const MOST_FILES: usize = 3;

pub(super) fn sentences(
    running: &Running,
    fits: &[Fit],
    backlog: Option<u64>,
    cpus: u64,
    words: &Catalogue,
) -> Vec<Sentence> {
    let mut told = vec![who(running, words)];
    if let Some(file) = &running.file {
        told.push(words.say("check-file", &[("file", file.display().to_string().into())]));
    }
    if running.kind == Kind::Nginx && running.is_read() {
        let own = [("worker_processes", "1"), ("worker_connections", "512")];
        told.extend(own.map(|(name, default)| directive(running, name, default, words)));
    }
    let own = running.limit(cpus).filter(|_| running.kind != Kind::Nginx);
    let limits = own.into_iter().chain(running.pools.iter().filter_map(Pool::limit));
    told.extend(limits.map(|limit| limited(&limit, words)));
    told.extend(keep_alive(running, words));
    told.extend(backlog.map(|backlog| words.say("check-backlog", &[("n", backlog.into())])));
    if let Some(group) = &running.group {
        told.push(words.say("check-group", &[("limit", units::short_bytes(group.limit).into())]));
    }
    told.extend(running.cpus.map(|cpus| words.say("check-cpus", &[("n", format!("{cpus:.2}").into())])));
    told.extend(fits.iter().map(|fit| fitting(fit, words)));
    if fits.is_empty() {
        told.extend(running.workers.map(|held| {
            let largest = units::short_bytes(held.largest);
            words.say(
                "check-workers",
                &[
                    ("n", held.workers.into()),
                    ("largest", largest.into()),
                    ("measure", measure(held.measure, words).into()),
                ],
            )
        }));
    }
    told
}

fn who(running: &Running, words: &Catalogue) -> Sentence {
    let kind = words.word(match running.kind {
        Kind::ApachePrefork => "check-kind-prefork",
        Kind::ApacheWorker => "check-kind-worker",
        Kind::ApacheEvent => "check-kind-event",
        Kind::Apache => "check-kind-apache",
        Kind::Nginx => "check-kind-nginx",
        Kind::Other => "check-kind-other",
    });
    let server = running.server.clone().unwrap_or_else(|| NOTHING.to_owned());
    let Some(root) = running.root else {
        return words.say("check-who-not", &[("server", server.into())]);
    };
    let id = if running.found == Found::Socket { "check-who-socket" } else { "check-who-name" };
    let arguments = [
        ("kind", kind.into()),
        ("server", server.into()),
        ("pid", root.to_string().into()),
        ("processes", running.processes.into()),
        ("threads", running.threads.into()),
    ];
    words.say(id, &arguments)
}

fn limited(limit: &Limit, words: &Catalogue) -> Sentence {
    let place = limit.setting.as_ref().map_or_else(|| words.word("check-default"), Setting::place);
    words.say("check-limit", &[("name", limit.called().into()), ("value", limit.value.into()), ("place", place.into())])
}

fn keep_alive(running: &Running, words: &Catalogue) -> Option<Sentence> {
    if !running.is_read() {
        return None;
    }
    let (name, default) = match running.kind {
        Kind::Nginx => ("keepalive_timeout", "75s"),
        kind if kind.is_apache() && running.keeps_alive() => ("KeepAliveTimeout", "5"),
        kind if kind.is_apache() => ("KeepAlive", "Off"),
        _ => return None,
    };
    Some(directive(running, name, default, words))
}

/// A directive as it is written, else its default.
fn directive(running: &Running, name: &str, default: &str, words: &Catalogue) -> Sentence {
    let setting = running.setting(name);
    let value = setting.map_or_else(|| default.to_owned(), |setting| setting.value.clone());
    let place = setting.map_or_else(|| words.word("check-default"), Setting::place);
    words.say("check-limit", &[("name", name.to_owned().into()), ("value", value.into()), ("place", place.into())])
}

fn fitting(fit: &Fit, words: &Catalogue) -> Sentence {
    let bytes = |value: f64| units::short_bytes(value.max(0.0) as u64);
    let arguments = [
        ("cost", bytes(fit.cost).into()),
        ("measure", measure(fit.held.measure, words).into()),
        ("fit", format!("{:.0}", fit.workers).into()),
        ("room", bytes(fit.room).into()),
        ("memory", bytes(fit.memory.bytes).into()),
        ("pool", fit.pool.as_str().into()),
    ];
    match fit.pool.as_str() {
        "" if fit.program > 0.0 => {
            let program = [("program", bytes(fit.program).into())];
            words.say("check-fit-program", &[&arguments[..1], &arguments[2..5], &program].concat())
        }
        "" => words.say("check-fit", &arguments[..5]),
        _ => words.say("check-fit-pool", &arguments),
    }
}

fn measure(measure: Measure, words: &Catalogue) -> String {
    words.word(match measure {
        Measure::Unshared => "check-measure-unshared",
        Measure::Anonymous => "check-measure-anonymous",
    })
}

pub(super) fn unseen(running: &Running, words: &Catalogue) -> Vec<Sentence> {
    let mut told = Vec::new();
    let files = running.unseen.iter().filter(|unseen| matches!(unseen, Unseen::File(_))).count();
    let mut shown = 0;
    for unseen in &running.unseen {
        told.push(match unseen {
            Unseen::Owner if running.found == Found::Not => words.say("check-unseen-owner", &[]),
            Unseen::Owner => words.say("check-unseen-named", &[]),
            Unseen::Elsewhere => words.say("check-unseen-elsewhere", &[]),
            Unseen::Shares => words.say("check-unseen-shares", &[]),
            Unseen::Pool(places) => words.say("check-unseen-pool", &[("places", places.as_str().into())]),
            Unseen::Changed(file) => words.say("check-unseen-changed", &[("file", file.as_str().into())]),
            Unseen::File(why) => {
                shown += 1;
                if shown > MOST_FILES {
                    continue;
                }
                words.say("check-unseen-file", &[("why", why.as_str().into())])
            }
        });
    }
    if files > MOST_FILES {
        told.push(words.say("check-unseen-files", &[("n", (files - MOST_FILES).into())]));
    }
    told
}

pub(super) fn page(page: Option<&Page>, words: &Catalogue) -> Vec<Sentence> {
    let Some(page) = page else { return Vec::new() };
    let arguments = [
        ("status", page.status.to_string().into()),
        ("bytes", units::short_bytes(page.bytes).into()),
        ("time", units::short_duration(page.time_us as f64 * 1e3).into()),
    ];
    let mut told = vec![words.say("check-page", &arguments)];
    told.push(words.say(if page.is_static { "check-page-static" } else { "check-page-dynamic" }, &[]));
    if let Some(encoding) = &page.encoding {
        told.push(words.say("check-page-encoding", &[("encoding", encoding.as_str().into())]));
    }
    if let Some(location) = &page.location {
        told.push(words.say("check-page-location", &[("location", location.as_str().into())]));
    }
    if page.sets_cookie {
        told.push(words.say("check-page-cookie", &[]));
    }
    if !page.stays_open {
        told.push(words.say("check-page-closes", &[]));
    }
    told
}
