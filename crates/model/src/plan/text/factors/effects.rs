//! The algebra of factorial designs: combinations of levels, the effects that can be told from them, and which effects are one.
//!
//! In a fraction of two-level factors each generator, D = A B C, says that the word ABCD is constant; so are the products of such
//! words. Two effects whose product is such a word are the same column of signs: they are aliases. The length of the shortest word is
//! the resolution (Box, Hunter and Hunter, *Statistics for Experimenters*, chapter 6).

use crate::plan::{Alias, Contrast, Effect, Factor, Part};
use std::collections::{BTreeMap, BTreeSet};

/// How the level of one factor follows from those of others.
pub(super) struct Generator {
    pub(super) made: usize,
    pub(super) of: Vec<usize>,
    pub(super) negative: bool,
}

/// Factors whose product of signs is constant, and whether it is -1.
type Word = (BTreeSet<usize>, bool);

impl Generator {
    /// All words that are constant: the products of the generators' own.
    pub(super) fn words(generators: &[Generator]) -> Vec<Word> {
        let mut words: Vec<Word> = Vec::new();
        for generator in generators {
            let own: BTreeSet<usize> = generator.of.iter().copied().chain([generator.made]).collect();
            let products = words.iter().map(|(word, negative)| {
                (word.symmetric_difference(&own).copied().collect(), negative ^ generator.negative)
            });
            let products: Vec<Word> = products.collect();
            words.push((own, generator.negative));
            words.extend(products);
        }
        words
    }
}

/// The combinations of a design: for each cell the level of each factor.
pub(super) struct Runs {
    pub(super) levels: Vec<Vec<usize>>,
    words: Vec<Word>,
}

impl Runs {
    /// All combinations of the factors that no generator makes, the first factor changing slowest.
    pub(super) fn of(factors: &[Factor], generators: &[Generator]) -> Runs {
        let mut levels = vec![vec![]];
        for (place, factor) in factors.iter().enumerate() {
            // What is made is filled in below.
            let made = generators.iter().any(|generator| generator.made == place);
            let choices = if made { 1 } else { factor.levels.len() };
            let longer =
                |run: &Vec<usize>| (0..choices).map(|level| [run.as_slice(), &[level]].concat()).collect::<Vec<_>>();
            levels = levels.iter().flat_map(longer).collect();
        }
        for run in &mut levels {
            for generator in generators {
                let low = generator.of.iter().filter(|&&factor| run[factor] == 0).count();
                // A product of signs is -1 where an odd number of them is.
                run[generator.made] = usize::from((low % 2 == 0) != generator.negative);
            }
        }
        Runs { levels, words: Generator::words(generators) }
    }

    /// The length of the shortest constant word.
    pub(super) fn resolution(&self) -> Option<u32> {
        self.words.iter().map(|(word, _)| word.len() as u32).min()
    }

    /// The effects of up to so many factors, each once, as contrasts of the `cells`; of aliases the smallest, in the order of factors.
    pub(super) fn contrasts(
        &self,
        factors: &[Factor],
        cells: &[&str],
        interactions: u32,
        margin: f64,
    ) -> Vec<Contrast> {
        let mut seen: Vec<BTreeSet<usize>> = Vec::new();
        let mut contrasts = Vec::new();
        for set in subsets(factors.len(), interactions as usize) {
            let aliases = self.aliases(&set);
            if aliases.iter().any(|(alias, _)| alias.is_empty() || seen.contains(alias)) {
                continue;
            }
            let told = told(aliases, interactions as usize);
            for chosen in chosen_levels(factors, &set) {
                contrasts.push(self.contrast(factors, cells, &chosen, &told, margin));
            }
            seen.push(set);
        }
        contrasts
    }

    /// The effects that are the same column of signs.
    fn aliases(&self, set: &BTreeSet<usize>) -> Vec<Word> {
        let product = |(word, negative): &Word| (set.symmetric_difference(word).copied().collect(), *negative);
        self.words.iter().map(product).collect()
    }

    /// The effect of some factors at some levels, against the first level of each. As a ratio it is that of the means for one factor, and for
    /// more of them how many times as large the effect of one is at the other's level.
    fn contrast(
        &self,
        factors: &[Factor],
        cells: &[&str],
        chosen: &BTreeMap<usize, usize>,
        aliases: &[Word],
        margin: f64,
    ) -> Contrast {
        let sign = |factor: &usize, level: usize| match level {
            0 => -1.0,
            level if level == chosen[factor] => 1.0,
            _ => 0.0,
        };
        let signs: Vec<f64> =
            self.levels.iter().map(|run| chosen.keys().map(|factor| sign(factor, run[*factor])).product()).collect();
        // Each side of a ratio is a mean; each further factor makes one more ratio of two.
        let on_a_side = signs.iter().filter(|sign| **sign != 0.0).count() as f64 / f64::from(1 << chosen.len());
        let weights = cells.iter().zip(&signs).filter(|(_, sign)| **sign != 0.0);
        let named = |set: &BTreeSet<usize>| set.iter().map(|&factor| factors[factor].name.clone()).collect();
        let part = |(&factor, &level): (&usize, &usize)| {
            let Factor { name, levels } = &factors[factor];
            Part { factor: name.clone(), from: levels[0].clone(), to: levels[level].clone() }
        };
        let effect = Effect {
            parts: chosen.iter().map(part).collect(),
            aliases: aliases.iter().map(|(set, negative)| Alias { factors: named(set), negative: *negative }).collect(),
        };
        Contrast {
            name: name(factors, chosen),
            weights: weights.map(|(cell, sign)| ((*cell).to_owned(), sign / on_a_side)).collect(),
            margin,
            effect: Some(effect),
        }
    }
}

/// Of the aliases of an effect those of up to so many factors, or else the smallest.
fn told(mut aliases: Vec<Word>, most: usize) -> Vec<Word> {
    let smallest = aliases.iter().map(|(set, _)| set.len()).min().unwrap_or(0);
    aliases.retain(|(set, _)| set.len() <= most.max(smallest));
    aliases.sort_by_key(|(set, _)| (set.len(), set.clone()));
    aliases
}

/// The sets of 1 to `most` of so many things, small ones first, each in order.
fn subsets(things: usize, most: usize) -> Vec<BTreeSet<usize>> {
    let mut sets: Vec<BTreeSet<usize>> = (1_u64..1 << things)
        .map(|bits| (0..things).filter(|thing| bits >> thing & 1 == 1).collect::<BTreeSet<usize>>())
        .filter(|set| set.len() <= most)
        .collect();
    sets.sort_by_key(|set| (set.len(), set.iter().copied().collect::<Vec<_>>()));
    sets
}

/// For each of the factors a level other than its first: all choices.
fn chosen_levels(factors: &[Factor], set: &BTreeSet<usize>) -> Vec<BTreeMap<usize, usize>> {
    set.iter().fold(vec![BTreeMap::new()], |choices, &factor| {
        let with = |choice: &BTreeMap<usize, usize>| {
            let choice = choice.clone();
            (1..factors[factor].levels.len())
                .map(move |level| choice.iter().map(|(f, l)| (*f, *l)).chain([(factor, level)]).collect())
                .collect::<Vec<_>>()
        };
        choices.iter().flat_map(with).collect()
    })
}

/// The factors by name, with the level where there are more than two.
fn name(factors: &[Factor], chosen: &BTreeMap<usize, usize>) -> String {
    let part = |(&factor, &level): (&usize, &usize)| {
        let Factor { name, levels } = &factors[factor];
        if levels.len() == 2 { name.clone() } else { format!("{name} {}", levels[level]) }
    };
    chosen.iter().map(part).collect::<Vec<_>>().join(" × ")
}

#[cfg(test)]
mod tests;
