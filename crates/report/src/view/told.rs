//! What the servers of a cell told of themselves while they were loaded.

use crate::language::{Catalogue, Sentence};
use model::plan::Cell;
use model::run::Run;
use model::status::{FpmStatus, WebStatus};

/// One sentence for the web server and one for PHP's processes, where they told anything in a window that counts.
pub(crate) fn of_cell(run: &Run, cell: &Cell, words: &Catalogue) -> Vec<Sentence> {
    let (mut web, mut fpm, mut reached, mut limits) = (Vec::new(), Vec::new(), 0, Vec::new());
    for (trial, load) in run.measured(&cell.name) {
        let told = trial.status.iter().filter(|status| (load.started_ns..=load.ended_ns).contains(&status.at_ns));
        let of_trial: Vec<&FpmStatus> = told.clone().filter_map(|status| status.fpm.as_ref()).collect();
        let before = trial.status.iter().find_map(|status| status.fpm.as_ref()).map_or(0, |fpm| fpm.limit_reached);
        reached += of_trial.last().map_or(0, |last| last.limit_reached.saturating_sub(before));
        fpm.extend(of_trial);
        web.extend(told.filter_map(|status| status.web.as_ref()));
        limits.extend(trial.settings.values.get("pm.max_children").cloned());
    }
    let pool = of_pool(&fpm, limits.first().map_or("?", String::as_str), reached, words);
    of_web(&web, words).into_iter().chain(pool).collect()
}

fn of_web(told: &[&WebStatus], words: &Catalogue) -> Option<Sentence> {
    let of = |value: fn(&WebStatus) -> Option<u64>| median(told.iter().filter_map(|status| value(status)).collect());
    let mut arguments = vec![
        ("busy", of(WebStatus::busy)?.into()),
        ("kept", of(|status| Some(status.kept()))?.into()),
        ("looks", told.len().into()),
    ];
    let id = match told.first()? {
        WebStatus::Embedded { .. } => return None,
        WebStatus::Nginx { .. } => "told-nginx",
        WebStatus::Apache { .. } => {
            let alive = |status: &WebStatus| Some(status.busy()? + status.kept() + status.ready().unwrap_or(0));
            arguments.push(("places", of(alive)?.into()));
            "told-apache"
        }
    };
    Some(words.say(id, &arguments))
}

fn of_pool(told: &[&FpmStatus], limit: &str, reached: u64, words: &Catalogue) -> Option<Sentence> {
    let active = median(told.iter().map(|fpm| fpm.active).collect())?;
    let queue = median(told.iter().filter_map(|fpm| fpm.queue).collect()).unwrap_or_else(|| "?".to_owned());
    let arguments =
        [("active", active.into()), ("limit", limit.into()), ("queue", queue.into()), ("looks", told.len().into())];
    let pool = words.say("told-pool", &arguments);
    // A pool of a fixed size does not count it.
    if reached == 0 {
        return Some(pool);
    }
    let arguments = [("pool", pool.text.into()), ("reached", reached.into()), ("n", reached.to_string().into())];
    Some(words.say("told-pool-reached", &arguments))
}

/// The middle value, printed; of two, their mean.
fn median(values: Vec<u64>) -> Option<String> {
    let values: Vec<f64> = values.into_iter().map(|value| value as f64).collect();
    stats::summarize(&values).ok().map(|summary| format!("{}", summary.median))
}
