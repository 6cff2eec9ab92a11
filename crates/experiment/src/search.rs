//! Which rate to try next, so that the highest one that a server sustains is found in few steps.
//!
//! A pure value that is asked and told. It goes up or down geometrically until one rate held and a higher one missed, then
//! halves what lies between on a logarithmic axis, and in the end tries the rate it found a second time. When that misses,
//! the rate counts as missed and the search goes on below it.

use model::search::{Held, Tried};

/// Down by this while nothing held.
const DOWN: f64 = 2.0;
/// Up by this while nothing missed, as it is probably close, and by this when it is not.
const UP: [f64; 2] = [1.5, 3.0];
/// So many steps upwards are small ones.
const SMALL_STEPS: usize = 3;
/// No machine sends so much.
const CEILING: f64 = 1e8;
/// A search that has not ended by then never would.
pub(crate) const MOST_STEPS: usize = 40;

/// A search under way.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    start: f64,
    floor: f64,
    precision: f64,
    tried: Tried,
}

impl Search {
    /// A search that begins at `start` and tries nothing below `floor`.
    pub(crate) fn new(start: f64, floor: f64, precision: f64) -> Search {
        let start = if start.is_finite() { round(start).max(floor) } else { floor };
        Search { start, floor, precision, tried: Tried::default() }
    }

    /// The next rate to try; `None` when there is no more to learn.
    pub(crate) fn ask(&self) -> Option<f64> {
        if self.tried.len() >= MOST_STEPS {
            return None;
        }
        let missed = self.tried.lowest_missed().map(|(rate, _)| rate);
        match (self.tried.best(), missed) {
            (None, None) => Some(self.start),
            (None, Some(missed)) => (missed > self.floor).then(|| round(missed / DOWN).max(self.floor)),
            (Some(held), None) => {
                (held < CEILING).then(|| round(held * UP[usize::from(self.tried.len() > SMALL_STEPS)]))
            }
            (Some(held), Some(missed)) if missed <= held * (1.0 + self.precision) * (1.0 + 1e-9) => {
                (self.tried.times(held) < 2).then_some(held)
            }
            (Some(held), Some(missed)) => {
                let middle = (held * missed).sqrt();
                let rounded = round(middle);
                Some(if rounded > held && rounded < missed { rounded } else { middle })
            }
        }
    }

    /// What became of a rate.
    pub(crate) fn tell(&mut self, rate: f64, held: Held) {
        self.tried.push(rate, held);
    }
}

/// Four digits.
fn round(rate: f64) -> f64 {
    if rate <= 0.0 {
        return rate;
    }
    let unit = 10_f64.powf(rate.log10().floor() - 3.0);
    let rounded = (rate / unit).round() * unit;
    // Below 1 the unit is no exact number; what it leaves behind is cut off.
    (rounded * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::Arrivals;
    use model::search::{Answer, RateSearch, Step, contradictions};

    const FLOOR: f64 = 1.05;

    /// Searches on a synthetic server, which is given the step's number and its rate. The answer, the rates tried, and those
    /// of which the server said one thing once and another thing another time.
    fn check(start: f64, precision: f64, server: impl Fn(usize, f64) -> Held) -> (Answer, Vec<f64>, Vec<f64>) {
        let mut search = Search::new(start, FLOOR, precision);
        let mut steps = Vec::new();
        while let Some(rate) = search.ask() {
            let held = server(steps.len(), rate);
            search.tell(rate, held);
            let number = u32::try_from(steps.len()).unwrap();
            steps.push(Step { number, rate, good: rate, held, goals: vec![], misses: vec![] });
            assert!(steps.len() <= MOST_STEPS && rate >= FLOOR, "{rate}");
        }
        let judge = RateSearch { goals: vec![], precision, start: None, arrivals: Arrivals::Even };
        let odd = contradictions(&steps);
        (judge.answer(&steps, model::SECOND), steps.into_iter().map(|step| step.rate).collect(), odd)
    }

    /// A server that sustains everything up to a rate.
    fn up_to(capacity: f64) -> impl Fn(usize, f64) -> Held {
        move |_, rate| if rate <= capacity { Held::Yes } else { Held::No }
    }

    #[test]
    fn a_monotone_server_is_found_from_wherever_the_search_begins() {
        for capacity in [1.2, 7.0, 99.5, 1234.0, 48_000.0, 1.3e6] {
            for start in [0.001, 1.0, 100.0, capacity, 3e6] {
                for precision in [0.01, 0.05, 0.2] {
                    let (answer, tried, odd) = check(start, precision, up_to(capacity));
                    let Answer::Found { rate, missed } = answer else { panic!("{answer:?} at {capacity}") };
                    assert!(rate <= capacity && capacity < missed && missed <= rate * (1.0 + precision) * 1.000_001);
                    assert_eq!(tried.last(), Some(&rate), "confirmed at the end");
                    assert!(odd.is_empty() && tried.len() <= 45, "{tried:?}");
                }
            }
        }
        let (_, tried, _) = check(1500.0, 0.05, up_to(1000.0));
        assert_eq!(tried, [1500.0, 750.0, 1061.0, 892.0, 972.8, 1016.0, 972.8]);
    }

    #[test]
    fn a_server_that_never_holds_is_left_at_the_lowest_rate() {
        let (answer, tried, _) = check(1000.0, 0.05, |_, _| Held::No);
        assert_eq!((answer, tried.len()), (Answer::Nothing { lowest: FLOOR }, 11));
        assert_eq!(check(f64::NAN, 0.05, |_, _| Held::No).1, [FLOOR]);
    }

    #[test]
    fn where_the_generator_gives_out_it_was_the_limit() {
        let server = |_, rate| if rate <= 20_000.0 { Held::Yes } else { Held::Generator };
        let (answer, _, _) = check(1000.0, 0.05, server);
        let Answer::AtLeast { rate, generator } = answer else { panic!("{answer:?}") };
        assert!(rate <= 20_000.0 && generator > 20_000.0 && generator <= rate * 1.051);
        let (answer, tried, _) = check(1000.0, 0.05, |_, _| Held::Yes);
        assert!(
            matches!(answer, Answer::Open { held: Some(_), missed: None }) && tried.len() < MOST_STEPS,
            "{tried:?}"
        );
    }

    #[test]
    fn a_rate_that_misses_the_second_time_is_given_up_and_said() {
        // The first look at 972.8 was luck.
        let server = |step, rate| if rate < 960.0 || (rate <= 1000.0 && step < 6) { Held::Yes } else { Held::No };
        let (answer, tried, odd) = check(1500.0, 0.05, server);
        assert_eq!(&tried[..7], [1500.0, 750.0, 1061.0, 892.0, 972.8, 1016.0, 972.8]);
        let Answer::Found { rate, missed } = answer else { panic!("{answer:?}") };
        assert!((rate, missed) == (931.5, 972.8) && odd == [972.8], "{rate} {missed} {odd:?}");
    }

    #[test]
    fn a_noisy_server_is_found_near_its_edge_and_always_in_time() {
        for seed in 0..200_u64 {
            // Between 900 and 1100 chance decides, more often for the worse the higher the rate.
            let server = |step: usize, rate: f64| {
                let luck = (seed * 40 + step as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
                let luck = luck as f64 / (1_u64 << 24) as f64;
                if 900.0 + 200.0 * luck >= rate { Held::Yes } else { Held::No }
            };
            let (answer, tried, _) = check(3000.0, 0.05, server);
            let Answer::Found { rate, missed } = answer else { panic!("{answer:?} after {tried:?}") };
            assert!((850.0..=1100.0).contains(&rate) && (900.0..=1100.0).contains(&missed), "{rate} {missed}");
        }
    }
}
