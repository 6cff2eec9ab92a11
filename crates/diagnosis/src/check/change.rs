//! What a step asks to change: a directive by the name and at the place that the administrator knows, and what shows it.

use super::Seen;
use crate::number::Numbers;
use model::check::{Kind, Limit, Pool, Setting};

/// The queue that Apache and nginx ask for by default.
const DEFAULT_QUEUE: f64 = 511.0;
/// What a step is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// The directive, as the administrator's own file calls it.
    pub name: Option<String>,
    /// Where it stands; `None` where a default is in force.
    pub place: Option<String>,
    /// Its value.
    pub from: Option<String>,
    /// The value to try.
    pub to: Option<String>,
    /// What shows it.
    pub numbers: Numbers,
}

impl Change {
    pub(super) fn showing(self, numbers: Numbers) -> Change {
        Change { numbers, ..self }
    }
}

pub(super) fn of_setting(setting: &Setting) -> Change {
    Change {
        name: Some(setting.called()),
        place: Some(setting.place()),
        from: Some(setting.value.clone()),
        ..Change::default()
    }
}

pub(super) fn of_limit(limit: &Limit) -> Change {
    let place = limit.setting.as_ref().map(Setting::place);
    // What is in force may be less than what is written.
    let from = match &limit.setting {
        Some(setting) if limit.name != "worker_connections" && setting.value == limit.value.to_string() => {
            setting.value.clone()
        }
        Some(setting) if limit.name == "worker_connections" => setting.value.clone(),
        _ => limit.value.to_string(),
    };
    Change { name: Some(limit.called()), place, from: Some(from), ..Change::default() }
}

/// A longer queue at the server's own door.
pub(super) fn of_backlog(seen: &Seen<'_>, queue: f64) -> Change {
    let running = &seen.check.running;
    let (name, written) = match running.kind {
        Kind::Nginx => ("listen ... backlog", running.settings.iter().rfind(|setting| setting.name == "backlog")),
        kind if kind.is_apache() => ("ListenBacklog", running.setting("ListenBacklog")),
        _ => ("listen(2) backlog", None),
    };
    longer(name, written, running.somaxconn, queue)
}

/// A longer queue before a pool of PHP-FPM.
pub(super) fn of_pool_backlog(seen: &Seen<'_>, pool: &Pool, queue: f64) -> Change {
    longer("listen.backlog", pool.setting("listen.backlog"), seen.check.running.somaxconn, queue)
}

/// What is in force is the less of what the server asks for and what the kernel allows: that is the one to raise.
fn longer(name: &str, written: Option<&Setting>, somaxconn: Option<u64>, queue: f64) -> Change {
    let asked = written.and_then(|setting| setting.value.parse::<f64>().ok());
    let kernel = somaxconn.is_some_and(|most| most as f64 <= queue) && asked.is_none_or(|asked| asked > queue);
    let (name, place) = if kernel { ("net.core.somaxconn", None) } else { (name, written.map(Setting::place)) };
    Change {
        name: Some(name.to_owned()),
        place,
        from: Some(format!("{queue}")),
        to: Some(format!("{}", DEFAULT_QUEUE.max(2.0 * queue))),
        ..Change::default()
    }
}
