//! Numbers in, judgement out: samples, intervals, verdicts. No clock, no files.
//!
//! This crate is opinionated. The unit of replication is a trial, never a request; what is compared is the logarithm of one
//! number per trial (good requests per second, a percentile); trials are paired by the block they ran in, because pairing
//! removes the drift that makes sequential comparisons call differences that are not there. There is one comparison
//! ([`compare`], Student's t on paired log-ratios), one cross-check of it ([`signed_rank_p`]) and one second opinion
//! ([`against_noise`], the A/A cell). Measurements of others, which nobody shuffled, have an interval without any judgement
//! ([`unpaired()`], Welch's). What is doubtful about a result is a value in it ([`Warning`]), not a printed line.
//!
//! What it deliberately does not do: treat requests as samples, bootstrap (at 10 blocks or fewer a nominal 95 % percentile
//! interval covers 76 to 90 %), or say "no difference" without having tested for equivalence.

mod apart;
mod cliff;
mod comparison;
mod criteria;
mod error;
mod looks;
mod noise;
mod quantile;
mod signed_rank;
mod steady;
mod summary;
mod unpaired;
mod usl;

pub use apart::{Drift, TREND, WALK, compare_apart};
pub use cliff::{CLIFF, cliff, sure_cliff};
pub use comparison::{Comparison, Interval, Pairs, Verdict, Warning, compare, compare_all, compare_each};
pub use criteria::{Better, Criteria};
pub use error::StatsError;
pub use looks::{LOOKS, PILOT, is_decided, next_look, resolvable};
pub use noise::{against_noise, against_noise_of, noise_floor};
pub use quantile::{normal_quantile, t_quantile};
pub use signed_rank::signed_rank_p;
pub use steady::{Steadiness, steadiness};
pub use summary::{Summary, summarize};
pub use unpaired::{Spread, Unpaired, unpaired};
pub use usl::{Fit, Point, Usl, fit_usl};
