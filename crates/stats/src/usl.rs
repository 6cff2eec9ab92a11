//! The Universal Scalability Law: how throughput grows with concurrency, and where it peaks.
//!
//! X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), Gunther 2007: lambda is the throughput of one, sigma the share that is
//! done one at a time, kappa what each pays for every other. The peak is at N* = sqrt((1 - sigma) / kappa).
//!
//! It is fitted on ln X by Levenberg and Marquardt's method, because throughputs vary by shares of themselves; other methods place
//! the peak elsewhere (by 16 % in a published example), so a report names this one. Points that swapped or failed do not belong in:
//! thrashing is a cliff, which [`cliff()`](crate::cliff()) finds, and no curve.
//!
//! Intervals come from resampling whole blocks, because the points of a block share its luck, and because near kappa = 0 the law is so far
//! from linear in its numbers that the delta method would give nonsense. With few blocks percentiles of resamples are too narrow: the
//! tails are those that a t interval of as many blocks would leave to a normal one (Hesterberg's expanded percentiles, *What teachers
//! should know about the bootstrap*, 2015).

use crate::quantile::{normal_below, t_quantile};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Serialize;

/// Throughput at a concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The concurrency, at least 1.
    pub concurrency: f64,
    /// Good requests per second, above 0.
    pub throughput: f64,
}

/// The three numbers of the law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Usl {
    /// Throughput of one.
    pub lambda: f64,
    /// Contention, at least 0 and below 1.
    pub sigma: f64,
    /// Coherence, at least 0.
    pub kappa: f64,
}

/// The law with intervals, which fewer than 4 blocks do not give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fit {
    /// Over all blocks.
    pub law: Usl,
    /// Where sigma lies.
    pub sigma: Option<(f64, f64)>,
    /// Where kappa lies.
    pub kappa: Option<(f64, f64)>,
    /// The concurrency of the peak and where it lies; `None` unless the whole interval lies among the concurrencies tried: a peak
    /// that nobody has seen is not reported.
    pub peak: Option<(f64, (f64, f64))>,
    /// Kleinrock's knee: the whole concurrency with the largest power X / R, among those tried.
    pub knee: f64,
    /// How far the measurements of a concurrency are from the law, typically: the root of the mean square, as a share.
    pub miss: f64,
}

/// Three numbers cannot be told from fewer concurrencies.
const ENOUGH: usize = 4;
/// Nor intervals from fewer blocks.
const ENOUGH_BLOCKS: usize = 4;
const RESAMPLES: usize = 2000;
const STEPS: usize = 200;
/// What stands for no coherence at all: a peak beyond a million.
const NO_KAPPA: f64 = 1e-12;

impl Usl {
    /// Throughput at a concurrency.
    #[must_use]
    pub fn throughput(&self, concurrency: f64) -> f64 {
        self.lambda * concurrency / self.cost(concurrency)
    }

    /// The concurrency of the largest throughput; infinite without coherence.
    #[must_use]
    pub fn peak(&self) -> f64 {
        ((1.0 - self.sigma) / self.kappa).sqrt()
    }

    fn cost(&self, n: f64) -> f64 {
        1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0)
    }
}

/// Fits the law to blocks of points, each block a pass over the same concurrencies; intervals hold with `confidence`. `None` with fewer than 4
/// concurrencies, or with a throughput or concurrency that is none.
#[must_use]
pub fn fit_usl(blocks: &[Vec<Point>], confidence: f64, seed: u64) -> Option<Fit> {
    let all: Vec<Point> = blocks.iter().flatten().copied().collect();
    let law = fit(&all)?;
    let laws = if blocks.len() < ENOUGH_BLOCKS { Vec::new() } else { resampled(blocks, seed) };
    let tail = tail(blocks.len(), confidence);
    let interval = |of: fn(&Usl) -> f64| middle(laws.iter().map(of).collect(), tail);
    let (least, most) = range(&all);
    let peak = interval(Usl::peak).filter(|(low, high)| least <= *low && *high <= most);
    Some(Fit {
        law,
        sigma: interval(|law| law.sigma),
        kappa: interval(|law| law.kappa),
        peak: peak.map(|interval| (law.peak(), interval)),
        knee: knee(&law, least, most),
        miss: miss(&law, &all),
    })
}

/// Laws of as many blocks, drawn with replacement.
fn resampled(blocks: &[Vec<Point>], seed: u64) -> Vec<Usl> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let resample = |_| {
        let drawn = (0..blocks.len()).flat_map(|_| &blocks[(random.next_u64() % blocks.len() as u64) as usize]);
        fit(&drawn.copied().collect::<Vec<_>>())
    };
    (0..RESAMPLES).filter_map(resample).collect()
}

/// What is left outside on each side of the resamples of so many blocks.
fn tail(blocks: usize, confidence: f64) -> f64 {
    let Some(freedom) = u32::try_from(blocks).ok().and_then(|blocks| blocks.checked_sub(1)).filter(|it| *it > 0) else {
        return 0.0;
    };
    let deviations = t_quantile(f64::midpoint(1.0, confidence), freedom);
    normal_below(-deviations * (blocks as f64 / f64::from(freedom)).sqrt())
}

/// Where the values lie but for the tails; `None` of none.
fn middle(mut values: Vec<f64>, tail: f64) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |share: f64| values[(last as f64 * share).round() as usize];
    Some((at(tail), at(1.0 - tail)))
}

/// How far the geometric means of the concurrencies are from the law.
fn miss(law: &Usl, points: &[Point]) -> f64 {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
    let squares = sorted.chunk_by(|a, b| a.concurrency == b.concurrency).map(|alike| {
        let mean = alike.iter().map(|p| p.throughput.ln()).sum::<f64>() / alike.len() as f64;
        (mean - law.throughput(alike[0].concurrency).ln()).powi(2)
    });
    let squares: Vec<f64> = squares.collect();
    (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt()
}

fn range(points: &[Point]) -> (f64, f64) {
    points.iter().fold((f64::INFINITY, 0.0), |(least, most), p| (p.concurrency.min(least), p.concurrency.max(most)))
}

/// In a closed loop R = N / X, so power is X^2 / N. It is largest where its slope is 0, at 3 kappa N^2 + (sigma - kappa) N = 1 - sigma, and
/// falls to both sides of that.
fn knee(law: &Usl, least: f64, most: f64) -> f64 {
    let power = |n: f64| law.throughput(n).powi(2) / n;
    let (slope, rest) = (law.sigma - law.kappa, 1.0 - law.sigma);
    let root = (slope * slope + 12.0 * law.kappa * rest).sqrt();
    // Two ways to write it, of which one does not cancel.
    let at = if slope > 0.0 { 2.0 * rest / (slope + root) } else { (root - slope) / (6.0 * law.kappa) };
    let whole = [at.floor(), at.ceil()].map(|n| n.clamp(least.ceil(), most.floor().max(least.ceil())));
    if power(whole[0]) > power(whole[1]) { whole[0] } else { whole[1] }
}

/// Least squares on ln X.
pub(crate) fn fit(points: &[Point]) -> Option<Usl> {
    let usable =
        |p: &Point| p.concurrency >= 1.0 && p.concurrency.is_finite() && p.throughput > 0.0 && p.throughput.is_finite();
    let mut tried: Vec<f64> = points.iter().map(|p| p.concurrency).collect();
    tried.sort_by(f64::total_cmp);
    tried.dedup();
    if tried.len() < ENOUGH || !points.iter().all(usable) {
        return None;
    }
    let mut at = Place::of(&start(points));
    let mut damping = 1e-3;
    let mut error = at.error(points);
    for _ in 0..STEPS {
        let Some(next) = at.step(points, damping) else { break };
        let next_error = next.error(points);
        if next_error < error {
            let gained = error - next_error;
            (at, error, damping) = (next, next_error, (damping / 10.0).max(1e-12));
            if gained <= 1e-14 * error {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    Some(at.law())
}

/// The quadratic that Gunther's spreadsheet fits: y = N / C - 1 = kappa x^2 + (sigma + kappa) x with x = N - 1 and C = X / X(1).
fn start(points: &[Point]) -> Usl {
    let smallest = points.iter().min_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
    let lambda = smallest.map_or(1.0, |p| p.throughput / p.concurrency);
    let (mut x2, mut x3, mut x4, mut xy, mut x2y) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for p in points {
        let x = p.concurrency - 1.0;
        let y = p.concurrency * lambda / p.throughput - 1.0;
        x2 += x.powi(2);
        x3 += x.powi(3);
        x4 += x.powi(4);
        xy += x * y;
        x2y += x * x * y;
    }
    let determinant = x2 * x4 - x3 * x3;
    let (kappa, slope) = ((x2 * x2y - x3 * xy) / determinant, (x4 * xy - x3 * x2y) / determinant);
    Usl { lambda, sigma: (slope - kappa).clamp(1e-4, 0.99), kappa: kappa.max(1e-9) }
}

/// A law on the scales on which every number is allowed: ln lambda, logit sigma, ln kappa.
#[derive(Clone, Copy)]
struct Place([f64; 3]);

impl Place {
    fn of(law: &Usl) -> Place {
        Place([law.lambda.ln(), (law.sigma / (1.0 - law.sigma)).ln(), law.kappa.ln()])
    }

    fn law(&self) -> Usl {
        let Place([lambda, sigma, kappa]) = *self;
        Usl { lambda: lambda.exp(), sigma: 1.0 / (1.0 + (-sigma).exp()), kappa: kappa.exp().max(NO_KAPPA) }
    }

    fn error(&self, points: &[Point]) -> f64 {
        let law = self.law();
        points.iter().map(|p| (p.throughput.ln() - law.throughput(p.concurrency).ln()).powi(2)).sum()
    }

    /// One step of Levenberg and Marquardt; `None` where the ground is flat in every direction.
    fn step(&self, points: &[Point], damping: f64) -> Option<Place> {
        let law = self.law();
        let (mut normal, mut pull) = ([[0.0; 3]; 3], [0.0; 3]);
        for p in points {
            let (n, cost) = (p.concurrency, law.cost(p.concurrency));
            let slopes = [1.0, -(n - 1.0) * law.sigma * (1.0 - law.sigma) / cost, -law.kappa * n * (n - 1.0) / cost];
            let miss = p.throughput.ln() - law.throughput(n).ln();
            for row in 0..3 {
                pull[row] += slopes[row] * miss;
                for column in 0..3 {
                    normal[row][column] += slopes[row] * slopes[column];
                }
            }
        }
        for (at, row) in normal.iter_mut().enumerate() {
            // A direction without any effect, such as kappa near 0, must not make the step infinite.
            row[at] += damping * row[at].max(1e-12);
        }
        let step = solve(normal, pull)?;
        let Place(at) = *self;
        // Far steps on these scales overflow; the next one goes on.
        Some(Place([0, 1, 2].map(|i| at[i] + step[i].clamp(-3.0, 3.0))))
    }
}

/// Solves three linear equations by Cramer's rule.
fn solve(m: [[f64; 3]; 3], v: [f64; 3]) -> Option<[f64; 3]> {
    let determinant = |m: &[[f64; 3]; 3]| {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    };
    let all = determinant(&m);
    let solution = [0, 1, 2].map(|column| {
        let mut replaced = m;
        (0..3).for_each(|row| replaced[row][column] = v[row]);
        determinant(&replaced) / all
    });
    solution.iter().all(|value| value.is_finite()).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::Noise;
    use proptest::prelude::*;

    fn points(law: &Usl, concurrencies: &[f64], noise: &mut Noise, sigma: f64) -> Vec<Point> {
        let point = |&n: &f64| Point { concurrency: n, throughput: law.throughput(n) * (sigma * noise.normal()).exp() };
        concurrencies.iter().map(point).collect()
    }

    /// The measurements of SPEC SDM91 that every text on the law uses.
    fn published() -> Vec<Point> {
        let measured = [
            (1.0, 64.9),
            (18.0, 995.9),
            (36.0, 1652.4),
            (72.0, 1853.2),
            (108.0, 1828.9),
            (144.0, 1775.0),
            (216.0, 1702.2),
        ];
        measured.map(|(concurrency, throughput)| Point { concurrency, throughput }).to_vec()
    }

    #[test]
    fn the_start_is_the_published_quadratic() {
        let law = start(&published());
        assert!((law.sigma - 0.017_046_9).abs() < 1e-6 && (law.kappa - 7.892_50e-5).abs() < 1e-9, "{law:?}");
    }

    #[test]
    fn the_fit_is_where_no_neighbour_is_better() {
        let points = published();
        let law = fit(&points).unwrap();
        let best = Place::of(&law).error(&points);
        for moved in 0..3 {
            for by in [-1e-3, 1e-3] {
                let mut place = Place::of(&law);
                place.0[moved] += by;
                assert!(place.error(&points) > best, "{law:?}");
            }
        }
        assert!((80.0..120.0).contains(&law.peak()), "{law:?}");
    }

    #[test]
    fn a_peak_is_reported_where_it_was_seen() {
        let mut noise = Noise::seeded(3);
        let law = Usl { lambda: 100.0, sigma: 0.05, kappa: 0.001 };
        let mut blocks = |tried: &[f64]| (0..5).map(|_| points(&law, tried, &mut noise, 0.01)).collect::<Vec<_>>();
        let seen = fit_usl(&blocks(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]), 0.95, 1).unwrap();
        let (peak, (low, high)) = seen.peak.unwrap();
        assert!(low <= law.peak() && law.peak() <= high && (low..=high).contains(&peak), "{seen:?}");
        let holds =
            |interval: Option<(f64, f64)>, truth| interval.is_some_and(|(low, high)| low <= truth && truth <= high);
        assert!(holds(seen.sigma, 0.05) && holds(seen.kappa, 0.001) && seen.miss < 0.02, "{seen:?}");
        let unseen = fit_usl(&blocks(&[1.0, 2.0, 4.0, 8.0, 16.0]), 0.95, 1).unwrap();
        assert_eq!(unseen.peak, None);
        assert!(unseen.knee <= 16.0 && seen.knee < peak, "{seen:?}");
        let once = fit_usl(&blocks(&[1.0, 2.0, 4.0, 8.0, 16.0])[..3], 0.95, 1).unwrap();
        assert_eq!((once.sigma, once.kappa), (None, None));
        assert_eq!(fit_usl(&blocks(&[1.0, 2.0, 4.0]), 0.95, 1), None);
    }

    #[test]
    fn the_knee_is_where_power_is_largest() {
        let check = |law: &Usl, least: u32, most: u32| {
            let power = |n: f64| law.throughput(n).powi(2) / n;
            let best = (least..=most).map(f64::from).max_by(|a, b| power(*a).total_cmp(&power(*b))).unwrap();
            let found = knee(law, f64::from(least), f64::from(most));
            assert!(found.fract() == 0.0 && (f64::from(least)..=f64::from(most)).contains(&found), "{law:?}: {found}");
            assert!((power(found) / power(best) - 1.0).abs() < 1e-12, "{law:?}: {found}, not {best}");
        };
        for sigma in [1e-9, 0.01, 0.2, 0.5, 0.95] {
            for kappa in [NO_KAPPA, 1e-7, 1e-4, 1e-3, 0.05, 2.0] {
                let law = Usl { lambda: 100.0, sigma, kappa };
                check(&law, 1, 500);
                check(&law, 7, 9);
                check(&law, 3, 3);
            }
        }
        // A setting such as a buffer's size has more whole numbers than can be tried.
        let law = Usl { lambda: 100.0, sigma: 0.0, kappa: 1e-18 };
        assert!((knee(&law, 65536.0, 7e10) / (1.0 / 3e-18_f64).sqrt() - 1.0).abs() < 1e-6);
    }

    /// How often the intervals of six blocks hold the truth of which they are 95 %: sigma, kappa, the peak.
    fn coverage(plans: u64) -> [f64; 3] {
        let law = Usl { lambda: 100.0, sigma: 0.05, kappa: 0.001 };
        let mut noise = Noise::seeded(7);
        let tried = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
        let mut held = [0.0; 3];
        for seed in 0..plans {
            let blocks: Vec<_> = (0..6).map(|_| points(&law, &tried, &mut noise, 0.02)).collect();
            let fit = fit_usl(&blocks, 0.95, seed).unwrap();
            let peak = fit.peak.map(|(_, interval)| interval);
            let found = [(fit.sigma, law.sigma), (fit.kappa, law.kappa), (peak, law.peak())];
            for (held, (interval, truth)) in held.iter_mut().zip(found) {
                *held += f64::from(interval.is_some_and(|(low, high)| low <= truth && truth <= high)) / plans as f64;
            }
        }
        held
    }

    /// Three hundred such plans came to 92, 93 and 92 %.
    #[test]
    fn intervals_hold_the_truth() {
        let held = coverage(12);
        assert!(held.iter().all(|held| *held > 0.7), "{held:?}");
    }

    proptest! {
        #[test]
        fn the_law_is_found_again(sigma in 0.0..0.5_f64, kappa in 1e-5..1e-2_f64, lambda in 0.1..1e6_f64) {
            let law = Usl { lambda, sigma, kappa };
            let points = points(&law, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], &mut Noise::seeded(1), 0.0);
            let found = fit(&points).unwrap();
            for n in [1.0, 10.0, 64.0] {
                prop_assert!((found.throughput(n) / law.throughput(n) - 1.0).abs() < 1e-3, "{found:?}");
            }
        }

        #[test]
        fn nothing_makes_it_panic(numbers in prop::collection::vec((any::<f64>(), any::<f64>()), 0..9)) {
            let points: Vec<_> = numbers.into_iter().map(|(concurrency, throughput)| Point { concurrency, throughput }).collect();
            let _ = (fit(&points), crate::cliff(&points));
        }
    }
}
