//! What was measured, put together as a run like any other.

use super::{Checker, HOLD, TOP};
use crate::schedule::Slot;
use crate::single::empty;
use model::Nanos;
use model::check::{Check, Door, Page, PoolWork, Summit};
use model::load::LoadResult;
use model::others::Others;
use model::plan::{Cell, LoadSpec, Plan, Role};
use model::reading::Readings;
use model::run::{Run, RunEnd, RunHead};
use model::trial::{EffectiveSettings, Preflight, Trial};

/// What is known when all is measured.
pub(super) struct Facts {
    pub(super) took_ns: Nanos,
    pub(super) summit: Summit,
    pub(super) others: Option<Others>,
    pub(super) page: Option<Page>,
    pub(super) before: Option<Door>,
    pub(super) preflight: Preflight,
    pub(super) readings: Readings,
    pub(super) notes: Vec<String>,
}

impl Checker<'_, '_> {
    /// All of it as a run.
    pub(super) fn run(self, facts: Facts) -> Run {
        let Facts { took_ns, summit, others, page, before, preflight, readings, notes } = facts;
        let cpus = u64::from(self.orders.head.host.cpus);
        let settings = EffectiveSettings {
            server: self.running.server.clone().unwrap_or_default(),
            values: self.running.settings.iter().map(|setting| (setting.name.clone(), setting.value.clone())).collect(),
            worker_limit: self.running.limit(cpus).filter(|_| self.running.kind.is_apache()).map(|limit| limit.value),
        };
        let climb = steps(&self.trials);
        let after = self.held();
        let of_pools = self.crews.iter().filter(|(pool, _)| !pool.is_empty());
        let work =
            of_pools.map(|(pool, crew)| (pool.clone(), PoolWork { most: crew.most, ticks: crew.ticks })).collect();
        let plan = plan(&self.orders.head.plan, &self.spec, &self.trials);
        let queues = self.queues.into_iter().collect();
        let mut trials: Vec<Trial> = self.trials.into_iter().map(|(trial, _)| trial).collect();
        if trials.is_empty() {
            let slot = Slot { number: 0, block: 0, position: 0, cell: HOLD.to_owned() };
            trials.push(empty(&slot));
        }
        for trial in &mut trials {
            trial.settings = settings.clone();
            trial.readings = around(&readings, trial.load.as_ref());
        }
        trials[0].preflight = Some(preflight);
        trials[0].notes = notes;
        let check = Check {
            budget_ns: self.orders.budget_ns,
            took_ns,
            running: self.running.clone(),
            page,
            before,
            after,
            work,
            queues,
            others,
            summit,
            climb,
        };
        let end = if summit == Summit::Interrupted { RunEnd::Interrupted } else { RunEnd::Complete };
        Run { head: RunHead { plan, end, check: Some(Box::new(check)), ..self.orders.head.clone() }, trials }
    }
}

/// The cells of the climb with their connections, each once.
fn steps(trials: &[(Trial, u32)]) -> Vec<(String, u32)> {
    let mut steps: Vec<(String, u32)> = Vec::new();
    for (trial, connections) in trials.iter().filter(|(trial, _)| trial.cell != HOLD && trial.cell != TOP) {
        if !steps.iter().any(|(name, _)| *name == trial.cell) {
            steps.push((trial.cell.clone(), *connections));
        }
    }
    steps
}

/// A cell for each that was measured; the one that the answer rests on is there in any case.
fn plan(planned: &Plan, spec: &LoadSpec, trials: &[(Trial, u32)]) -> Plan {
    let mut cells: Vec<(&str, u32)> = vec![(HOLD, 1)];
    for (trial, connections) in trials {
        match cells.iter_mut().find(|(name, _)| *name == trial.cell) {
            Some((_, known)) => *known = *connections,
            None => cells.push((&trial.cell, *connections)),
        }
    }
    let variant = planned.variants[0].name.clone();
    let load = |&(name, connections): &(&str, u32)| LoadSpec { name: name.to_owned(), connections, ..spec.clone() };
    let cell = |&(name, _): &(&str, u32)| Cell {
        name: name.to_owned(),
        variant: variant.clone(),
        load: name.to_owned(),
        role: if name == HOLD { Role::Baseline } else { Role::Candidate },
    };
    Plan { loads: cells.iter().map(load).collect(), cells: cells.iter().map(cell).collect(), ..planned.clone() }
}

/// The readings of a window, and a few around it.
fn around(all: &Readings, load: Option<&LoadResult>) -> Readings {
    let Some(load) = load else { return Readings { rows: Vec::new(), notes: all.notes.clone() } };
    let first = all.rows.partition_point(|row| row.at_ns < load.started_ns).saturating_sub(2);
    let last = all.rows.partition_point(|row| row.at_ns <= load.ended_ns) + 1;
    let rows = all.rows[first..last.min(all.rows.len())].to_vec();
    Readings { rows, notes: all.notes.clone() }
}
