//! Which cell is tried when: every cell once per block, each block in its own random order.
//!
//! The order comes from ChaCha with the run's seed and our own Fisher-Yates, so that a seed printed today gives the same
//! order with any later version of any library. Why blocks: `docs/statistics.md`.

use model::Nanos;
use model::plan::{Plan, Warmup};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// One place in the schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Running number, from 0.
    pub number: usize,
    /// Block, from 0.
    pub block: u32,
    /// Position in the block, from 0.
    pub position: u32,
    /// Name of the cell.
    pub cell: String,
}

/// The whole schedule of a plan under a seed.
#[must_use]
pub fn schedule(plan: &Plan, seed: u64) -> Vec<Slot> {
    blocks(plan, seed).take(plan.blocks as usize).flatten().collect()
}

/// Block after block of a plan under a seed, without end: how many are made is for others to say.
pub(crate) fn blocks(plan: &Plan, seed: u64) -> impl Iterator<Item = Vec<Slot>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..).map(move |block: u32| {
        let mut order: Vec<&str> = plan.cells.iter().map(|cell| cell.name.as_str()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, below(&mut rng, i as u64 + 1) as usize);
        }
        let first = block as usize * order.len();
        let slot = |(position, cell): (usize, &str)| Slot {
            number: first + position,
            block,
            position: position as u32,
            cell: cell.to_owned(),
        };
        order.into_iter().enumerate().map(slot).collect()
    })
}

/// A uniform number below `n`, without modulo bias (the top partial range is drawn again).
fn below(rng: &mut ChaCha8Rng, n: u64) -> u64 {
    let limit = u64::MAX - u64::MAX % n;
    loop {
        let draw = rng.next_u64();
        if draw < limit {
            return draw % n;
        }
    }
}

/// What a run will send and how long it will take at most, for `--dry-run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Every trial in order.
    pub slots: Vec<Slot>,
    /// Measured requests that are counted out in the plan; loads bounded by time alone add none.
    pub requests: u64,
    /// Measured time that is set in the plan, loads bounded by requests alone add none.
    pub window_ns: Nanos,
    /// Warm-up time or requests, per trial.
    pub warmup: Warmup,
}

/// The outline of a plan under a seed.
#[must_use]
pub fn outline(plan: &Plan, seed: u64) -> Outline {
    let slots = schedule(plan, seed);
    let loads = slots.iter().filter_map(|slot| plan.cell(&slot.cell)).map(|cell| plan.load(cell));
    let (requests, window_ns) = loads.fold((0, 0), |(requests, window), load| {
        (requests + load.requests.unwrap_or(0), window + load.duration_ns.unwrap_or(0))
    });
    Outline { slots, requests, window_ns, warmup: plan.warmup }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Options, parse};
    use std::path::Path;

    fn plan() -> Plan {
        let text = "blocks = 5\n[server]\nkind = \"embedded\"\n[variant.a]\n[variant.b]\n[variant.c]\n\
                    [load.l]\npath = \"/\"\nconnections = 1\nrequests = 10\nduration = \"2s\"\n";
        parse(text, Path::new("t.toml"), &Options::default()).unwrap().0
    }

    #[test]
    fn every_block_holds_every_cell_once() {
        for seed in 0..50 {
            for block in schedule(&plan(), seed).chunks(4) {
                let mut cells: Vec<_> = block.iter().map(|slot| slot.cell.as_str()).collect();
                cells.sort_unstable();
                assert_eq!(cells, ["a", "a (A/A)", "b", "c"]);
            }
        }
    }

    #[test]
    fn a_seed_is_a_promise() {
        let order = |seed| schedule(&plan(), seed).iter().map(|s| s.cell.clone()).collect::<Vec<_>>().join(" ");
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        expect_test::expect!["a a (A/A) b c b a a (A/A) c b a (A/A) a c b a (A/A) a c c a b a (A/A)"]
            .assert_eq(&order(7));
    }

    #[test]
    fn positions_are_uniform() {
        let first = (0..4000).filter(|&seed| schedule(&plan(), seed)[0].cell == "c").count();
        assert!((900..1100).contains(&first), "{first} of 4000, expected about 1000");
    }

    #[test]
    fn an_outline_adds_up() {
        let outline = outline(&plan(), 1);
        assert_eq!((outline.slots.len(), outline.requests, outline.window_ns), (20, 200, 40 * model::SECOND));
    }
}
