//! What a plan asks of its cells beyond "each against the baseline": named contrasts, factors, a number that is swept over.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A question: the geometric mean of some cells over that of others, or what is made of more of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// Its name, unique in the plan.
    pub name: String,
    /// What it is on the scale of logarithms: a sum over cells by name, whose weights add up to 0.
    pub weights: BTreeMap<String, f64>,
    /// Differences smaller than this are of no interest, as a ratio minus 1.
    pub margin: f64,
    /// The effect of factors that it is, if it is one.
    #[serde(default)]
    pub effect: Option<Effect>,
}

/// What one factor does, or what several do together beyond what each does alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The factors, each with the two levels compared.
    pub parts: Vec<Part>,
    /// Other effects that these cells cannot tell from it.
    #[serde(default)]
    pub aliases: Vec<Alias>,
}

/// A factor in an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Name of the factor.
    pub factor: String,
    /// The level that is compared with: the factor's first.
    pub from: String,
    /// The other level.
    pub to: String,
}

/// An effect that is mixed up with another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alias {
    /// The factors whose common effect it is.
    pub factors: Vec<String>,
    /// Whether it counts the other way round.
    pub negative: bool,
}

/// The factors of a plan and how many of their combinations it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// The factors in the plan's order.
    pub factors: Vec<Factor>,
    /// How the levels of some follow from those of others, as it was written; none in a full design.
    pub generators: Vec<String>,
    /// The smallest number of factors whose common effect is mixed up with the mean; `None` in a full design.
    pub resolution: Option<u32>,
    /// Factors of the largest common effect that is asked for.
    pub interactions: u32,
}

/// A factor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels; the others are compared with the first.
    pub levels: Vec<String>,
}

/// A number that grows from cell to cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Which number.
    pub over: Over,
    /// Its values, ascending, with their cells.
    pub points: Vec<SweepPoint>,
}

/// What a sweep changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// The connections of the load.
    Connections,
    /// A setting of the server, by what the plan calls it.
    Setting(String),
}

/// One value of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// The value.
    pub value: u64,
    /// Name of its cell.
    pub cell: String,
}

impl Contrast {
    /// The geometric mean of some cells over that of others.
    #[must_use]
    pub fn of_means(name: &str, of: &[String], against: &[String], margin: f64) -> Contrast {
        let weights = |cells: &[String], sign: f64| {
            let weight = sign / cells.len() as f64;
            cells.iter().map(|cell| (cell.clone(), weight)).collect::<Vec<_>>()
        };
        let weights = weights(of, 1.0).into_iter().chain(weights(against, -1.0)).collect();
        Contrast { name: name.to_owned(), weights, margin, effect: None }
    }

    /// Whether it compares two sides, of which one can be better. What factors do together is no such thing.
    #[must_use]
    pub fn has_sides(&self) -> bool {
        self.effect.as_ref().is_none_or(|effect| effect.parts.len() == 1)
    }

    /// Its cells with positive weights, then those with negative ones, each in the order of `cells`.
    #[must_use]
    pub fn sides<'a>(&self, cells: &'a [super::Cell]) -> (Vec<&'a str>, Vec<&'a str>) {
        let side = |sign: f64| {
            let on_it = |cell: &&super::Cell| self.weights.get(&cell.name).is_some_and(|weight| weight * sign > 0.0);
            cells.iter().filter(on_it).map(|cell| cell.name.as_str()).collect()
        };
        (side(1.0), side(-1.0))
    }
}

impl Effect {
    /// The names of its factors.
    #[must_use]
    pub fn factors(&self) -> Vec<&str> {
        self.parts.iter().map(|part| part.factor.as_str()).collect()
    }
}
