//! A server that exists only as numbers: what each trial measures is the truth, the drift of the machine and noise.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::f64::consts::TAU;

/// How the machine changes from trial to trial, whatever runs on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Drift {
    None,
    /// Each trial a normal step of 1 %.
    Walk,
    /// Each trial 0.2 % slower.
    Linear,
}

impl Drift {
    pub(super) const ALL: [Drift; 3] = [Drift::None, Drift::Walk, Drift::Linear];

    pub(super) fn name(self) -> &'static str {
        match self {
            Drift::None => "none",
            Drift::Walk => "random walk, 1 % per trial",
            Drift::Linear => "linear, 0.2 % per trial",
        }
    }
}

/// The machine, as trial follows trial.
pub(super) struct Machine {
    random: ChaCha8Rng,
    drift: Drift,
    at: f64,
    sigma: f64,
}

impl Machine {
    /// `sigma` is the noise of one trial on the scale of logarithms.
    pub(super) fn new(seed: u64, drift: Drift, sigma: f64) -> Machine {
        Machine { random: ChaCha8Rng::seed_from_u64(seed), drift, at: 0.0, sigma }
    }

    /// The logarithm of what a trial of a cell measures whose true number has the logarithm `truth`.
    pub(super) fn trial(&mut self, truth: f64) -> f64 {
        self.at += match self.drift {
            Drift::None => 0.0,
            Drift::Walk => 0.01 * self.normal(),
            Drift::Linear => -0.002,
        };
        truth + self.at + self.sigma * self.normal()
    }

    /// One block: every cell once, in random order; the results in the order of the cells.
    pub(super) fn block(&mut self, truths: &[f64]) -> Vec<f64> {
        let mut order: Vec<usize> = (0..truths.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, (self.random.next_u64() % (last as u64 + 1)) as usize);
        }
        let mut measured = vec![0.0; truths.len()];
        for cell in order {
            measured[cell] = self.trial(truths[cell]);
        }
        measured
    }

    /// Box and Muller.
    fn normal(&mut self) -> f64 {
        let mut uniform = || (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let (u, v) = (1.0 - uniform(), uniform());
        (-2.0 * u.ln()).sqrt() * (TAU * v).cos()
    }
}
