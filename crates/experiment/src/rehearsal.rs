//! Before anything is measured: every variant is started, asked for the first requests of its loads, and stopped.
//!
//! What a server refuses steadily (a path that is not there, a redirect, a closed folder) is the plan's mistake, and is told now and not
//! after an hour of refusals. What may pass (5xx, 408, 429, no answer at all) is left to the measurement. Only of a server that is a URL,
//! or asked from another machine, no answer is told now where none can come: it refuses connections, or speaks no HTTP, or no TLS that is trusted;
//! or only this machine is answered, and the one that sends gets nowhere.

use crate::ExperimentError;
use crate::error::Refusal;
use crate::post::one_at_a_time;
use crate::single::no_answer;
use crate::trial::{Bench, Stage};
use load::Target;
use model::SECOND;
use model::load::Failure;
use model::plan::{Cell, LoadSpec, RequestSpec, accepts, decides_status};
use model::trial::Preflight;
use std::sync::atomic::Ordering;

/// Nobody waits longer for a first answer.
const PATIENCE: model::Nanos = 10 * SECOND;

/// A path that is drawn anew for each request is asked for so often; one that is accepted is enough.
const DRAWN: u64 = 5;

impl Bench<'_> {
    /// Starts and stops every variant once, before anything is measured: a directive or a request that the server refuses is found now.
    pub(crate) fn rehearse(&self) -> Result<(), ExperimentError> {
        for (number, cell) in self.one_cell_per_variant().enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            let name = format!("rehearsal{number}");
            let stage = self.start(&name, cell)??;
            let asked = self.ask(&stage, &cell.variant);
            // The server is stopped, and what was changed for it given back, whatever it answered.
            let forced = stage.stop()?;
            self.clean(&name);
            asked?;
            // Told now and not trial after trial.
            if let Some(forced) = forced.into_iter().next() {
                return Err(forced.mistake().into());
            }
        }
        Ok(())
    }

    /// Asks a started variant for what its cells will ask it for.
    fn ask(&self, stage: &Stage, variant: &str) -> Result<(), ExperimentError> {
        let target = stage.target(self.remote.map(|_| self.listen));
        let cells = self.plan.cells.iter().filter(|cell| cell.variant == variant);
        let mut known: Vec<&str> = Vec::new();
        for load in cells.map(|cell| self.plan.load(cell)).chain(&self.plan.beside) {
            if known.contains(&load.name.as_str()) {
                continue;
            }
            known.push(&load.name);
            for first in firsts(&stage.spoken(load)) {
                let found = self.look(&first, &target)?;
                // What is not started anew for a trial is found no other then; nor will one that is ready here be found from elsewhere.
                let stays = self.plan.server.url().is_some() || self.remote.is_some();
                let hopeless = stays && (is_hopeless(&found) || self.is_cut_off(&first, &target, &found)?);
                if hopeless && !self.interrupted.load(Ordering::Relaxed) {
                    return Err(no_answer(&target, &found, self.only_here(&found)));
                }
                if let Some(status) = refused(&first, &found) {
                    return Err(self.refusal(variant, &first, &target, status));
                }
            }
        }
        Ok(())
    }

    fn look(&self, spec: &LoadSpec, target: &Target) -> Result<Preflight, ExperimentError> {
        let cpus = &self.placement.load;
        Ok(match self.remote {
            Some(remote) => remote.look(spec, target, cpus, self.interrupted)?,
            None => load::look(spec, target, cpus, self.interrupted)?,
        })
    }

    /// Whether the machine that sends has no way to a server that answers this one: a firewall drops what it sends, or says that there is none.
    fn is_cut_off(&self, spec: &LoadSpec, target: &Target, found: &Preflight) -> Result<bool, ExperimentError> {
        if self.remote.is_none() || !may_be_cut_off(found) {
            return Ok(false);
        }
        let here = load::look(spec, target, &self.placement.load, self.interrupted)?;
        // A page that was slow only the first time is fast from there, too, by now.
        Ok(!here.statuses.is_empty() && may_be_cut_off(&self.look(spec, target)?))
    }

    /// What to do where a server that answers here is out of reach for the machine that sends.
    fn only_here(&self, found: &Preflight) -> Option<String> {
        let origin = self.plan.origin.as_ref()?;
        if found.failed.contains_key(&Failure::Refused) {
            return Some(format!(
                "the server answers here, and {origin} is refused; does it listen on loopback only, or is a firewall in between?"
            ));
        }
        may_be_cut_off(found)
            .then(|| format!("the server answers here, and {origin} does not get there; is a firewall in between?"))
    }

    fn refusal(&self, variant: &str, first: &LoadSpec, target: &Target, status: u16) -> ExperimentError {
        let RequestSpec { method, path, .. } = &first.mix[0];
        // Asked from here, another machine's view may be another one.
        let pointed = (self.remote.is_none() && (300..400).contains(&status))
            .then(|| load::location(first, target, self.interrupted).ok().flatten());
        ExperimentError::Refused(Box::new(Refusal {
            file: self.plan.file.clone(),
            variant: variant.to_owned(),
            load: first.name.clone(),
            request: format!("{method} {path}"),
            status,
            to_do: to_do(status, pointed.flatten().as_deref(), decides_status(&first.checks)),
        }))
    }

    /// The first cell of every variant that is used.
    pub(crate) fn one_cell_per_variant(&self) -> impl Iterator<Item = &Cell> {
        let cells = &self.plan.cells;
        self.plan.variants.iter().filter_map(|variant| cells.iter().find(|cell| cell.variant == variant.name))
    }
}

/// The first requests of a load: each of its mix alone. Where cookies are kept one may need what another was given, so they go one after
/// the other over one connection.
fn firsts(spec: &LoadSpec) -> Vec<LoadSpec> {
    let patient = LoadSpec { timeout_ns: spec.timeout_ns.min(PATIENCE), ..spec.clone() };
    if spec.cookies {
        return vec![one_at_a_time(&patient, 2 * spec.mix.len() as u64)];
    }
    let alone = |request: &RequestSpec| {
        // Not every number that is drawn need be there.
        let times = if request.path.contains("${") { DRAWN } else { 1 };
        LoadSpec { mix: vec![request.clone()], ..one_at_a_time(&patient, times) }
    };
    spec.mix.iter().map(alone).collect()
}

/// The status of answers that will not get better by themselves, when no other answer came.
fn refused(spec: &LoadSpec, found: &Preflight) -> Option<u16> {
    let passes = |status: u16| status >= 500 || status == 408 || status == 429;
    let fits = |&status: &u16| accepts(&spec.checks, status) || passes(status);
    if found.statuses.keys().any(fits) { None } else { found.statuses.keys().next().copied() }
}

/// Whether no answer came, for a cause that does not pass by itself: a slow page may be fast later, and a lost connection be made again.
fn is_hopeless(found: &Preflight) -> bool {
    let lasts = |cause: &Failure| matches!(cause, Failure::Refused | Failure::BadResponse | Failure::Tls);
    found.statuses.is_empty() && found.failed.keys().any(lasts)
}

/// Whether no answer came, as where something on the way drops what is sent, or says that there is no way.
fn may_be_cut_off(found: &Preflight) -> bool {
    let stuck = |cause: &Failure| matches!(cause, Failure::Timeout | Failure::Local);
    found.statuses.is_empty() && found.failed.keys().any(stuck)
}

/// What to do about a refusal, in half a sentence.
fn to_do(status: u16, pointed: Option<&str>, decided: bool) -> String {
    if decided {
        return "the load's `checks` ask for another one; correct them, or the path".to_owned();
    }
    let what = match (status, pointed) {
        (300..=399, Some(url)) => format!("it points to {url}, and redirects are not followed; ask for that path"),
        (300..=399, None) => "that is no page, and would count as failed; ask for another path".to_owned(),
        (401, _) => "it asks who we are; say so in the load's `headers`".to_owned(),
        (403, _) => "may it read the file, and is the path allowed?".to_owned(),
        (404 | 410, _) => "correct `path`, or what the server serves".to_owned(),
        (405, _) => "correct `method` or `path`".to_owned(),
        _ => "correct the request, or what the server serves".to_owned(),
    };
    format!("{what}; if it is meant, write checks = [\"status = {status}\"]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::Check;

    /// Which status of those that came back refuses a run whose load has these checks.
    fn check(checks: &[&str], statuses: &[u16], expected: Option<u16>) {
        let checks = checks.iter().map(|text| Check::parse(text).unwrap()).collect();
        let spec = LoadSpec { checks, ..LoadSpec::of("l", "/") };
        let found =
            Preflight { statuses: statuses.iter().map(|&status| (status, 1)).collect(), ..Preflight::default() };
        assert_eq!(refused(&spec, &found), expected, "{statuses:?}");
    }

    #[test]
    fn what_does_not_pass_by_itself_is_refused() {
        check(&[], &[200], None);
        check(&[], &[204], None);
        for status in [301, 302, 304, 400, 401, 403, 404, 405, 410, 418] {
            check(&[], &[status], Some(status));
        }
        for status in [408, 429, 500, 502, 503] {
            check(&[], &[status], None);
        }
        // Nobody answered, or only once what was asked before had been.
        check(&[], &[], None);
        check(&[], &[200, 302], None);
    }

    #[test]
    fn no_answer_is_hopeless_only_where_none_can_come() {
        let check = |cause: Failure, statuses: &[u16], expected: bool| {
            let statuses = statuses.iter().map(|&status| (status, 1)).collect();
            let found = Preflight { statuses, failed: [(cause, 1)].into(), ..Preflight::default() };
            assert_eq!(is_hopeless(&found), expected, "{cause:?}");
        };
        for cause in [Failure::Refused, Failure::BadResponse, Failure::Tls] {
            check(cause, &[], true);
            check(cause, &[200], false);
        }
        for cause in [Failure::Timeout, Failure::Reset, Failure::ClosedEarly, Failure::Local] {
            check(cause, &[], false);
        }
    }

    #[test]
    fn a_plan_may_expect_it() {
        check(&["status = 404"], &[404], None);
        check(&["status < 400"], &[302], None);
        check(&["status = 404"], &[200], Some(200));
        check(&["status = 404"], &[503], None);
        check(&["body contains OK"], &[404], Some(404));
        check(&["body contains OK"], &[200], None);
    }

    #[test]
    fn each_of_a_mix_is_asked_for() {
        let request = |path: &str| RequestSpec { path: path.to_owned(), ..LoadSpec::of("l", "/").mix[0].clone() };
        let spec = LoadSpec { mix: vec![request("/a"), request("/b")], ..LoadSpec::of("l", "/") };
        let paths = |spec: &LoadSpec| -> Vec<(String, Option<u64>)> {
            firsts(spec).iter().map(|first| (first.mix[0].path.clone(), first.requests)).collect()
        };
        assert_eq!(paths(&spec), [("/a".to_owned(), Some(1)), ("/b".to_owned(), Some(1))]);
        let drawn = LoadSpec { mix: vec![request("/${random:1-9}")], ..spec.clone() };
        assert_eq!(paths(&drawn), [("/${random:1-9}".to_owned(), Some(5))]);
        assert_eq!(paths(&LoadSpec { cookies: true, ..spec }), [("/a".to_owned(), Some(4))]);
    }
}
