//! `[factors]` and `[design]`: cells that are combinations of levels, and the effects that can be told from them.
//!
//! Here is what may be written and the cells that it gives; `effects` is the algebra: which effects there are, and which of them are mixed up.

mod effects;

use self::effects::{Generator, Runs};
use super::cells::{Made, Placed};
use super::source::Source;
use super::{PlanError, in_order, names};
use crate::plan::{Cell, Design, Factor, LoadSpec, Role, Variant};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};
use std::ops::Range;
use toml::Spanned;

/// More cells than this nobody waits for.
const MOST: usize = 64;
/// More factors than this nobody keeps apart.
const MOST_FACTORS: usize = 12;

/// The levels of a factor.
pub(super) type FactorText = BTreeMap<String, Spanned<Written>>;

/// What a level is: directives, if it is no table.
pub(super) struct Written {
    directives: Option<String>,
    table: FactorsText,
}

/// A level of `[factors.NAME]`, written as a table.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct FactorsText {
    directives: Option<Spanned<String>>,
    variant: Option<Spanned<String>>,
    load: Option<Spanned<String>>,
    connections: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DesignText {
    #[serde(default)]
    generators: Vec<Spanned<String>>,
    interactions: Option<Spanned<u32>>,
    load: Option<Spanned<String>>,
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Level;
        impl<'de> Visitor<'de> for Level {
            type Value = Written;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("the directives of a level, or a table")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Written, E> {
                Ok(Written { directives: Some(text.to_owned()), table: FactorsText::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Written, A::Error> {
                let table = FactorsText::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Written { directives: None, table })
            }
        }
        deserializer.deserialize_any(Level)
    }
}

/// A factor with what its levels are.
struct Known {
    name: String,
    place: Range<usize>,
    levels: Vec<Level>,
}

/// What a level changes.
struct Level {
    name: String,
    change: Variant,
    load: Option<LoadSpec>,
    connections: Option<Spanned<u32>>,
}

/// The cells that factors give, and their effects as contrasts.
pub(super) fn made(
    source: &Source<'_>,
    factors: BTreeMap<String, Spanned<FactorText>>,
    design: Option<Spanned<DesignText>>,
    variants: &[Placed<Variant>],
    loads: &[LoadSpec],
    margin: f64,
) -> Result<Made, PlanError> {
    let design = design.map(Spanned::into_inner);
    let known = in_order(factors).map(|(name, text)| factor(source, name, text, variants, loads));
    let known: Vec<Known> = known.collect::<Result<_, _>>()?;
    // Before anything is made of them that doubles with each.
    if known.len() > MOST_FACTORS {
        let what = format!("{} factors are too many; at most {MOST_FACTORS}", known.len());
        return Err(source.at(known[0].place.clone(), "factors", &what));
    }
    let usual = usual_load(source, design.as_ref(), &known, loads)?;
    let generators = generators(source, design.as_ref(), &known)?;
    let interactions = interactions(source, design.as_ref(), &known)?;
    let factors: Vec<Factor> = known
        .iter()
        .map(|known| Factor {
            name: known.name.clone(),
            levels: known.levels.iter().map(|it| it.name.clone()).collect(),
        })
        .collect();
    few_enough(source, &known, &generators)?;
    let runs = Runs::of(&factors, &generators);
    let mut made =
        Made { variants: vec![], loads: vec![], cells: vec![], contrasts: vec![], design: None, sweep: None };
    for levels in &runs.levels {
        let chosen: Vec<&Level> = known.iter().zip(levels).map(|(known, &level)| &known.levels[level]).collect();
        let name = label(&factors, levels);
        if let Some(twice) = changed_twice(&chosen) {
            let what = format!("two factors change {twice}; let one of them do it");
            return Err(source.at(known[0].place.clone(), "factors", &what));
        }
        let variant = chosen.iter().fold(empty(&name), |variant, level| together(variant, &level.change));
        let load = load(source, usual, &chosen)?;
        made.cells.push((
            Cell { name, variant: variant.name.clone(), load: load.name.clone(), role: Role::Candidate },
            known[0].place.clone(),
        ));
        made.variants.push(variant);
        if !made.loads.contains(&load) {
            made.loads.push(load);
        }
    }
    let cells: Vec<&str> = made.cells.iter().map(|(cell, _)| cell.name.as_str()).collect();
    made.contrasts = runs.contrasts(&factors, &cells, interactions, margin);
    let written = design.iter().flat_map(|design| &design.generators).map(|text| text.get_ref().clone()).collect();
    made.design = Some(Design { factors, generators: written, resolution: runs.resolution(), interactions });
    Ok(made)
}

/// Whether the combinations can be made at all.
fn few_enough(source: &Source<'_>, known: &[Known], generators: &[Generator]) -> Result<(), PlanError> {
    let at = |what: &str| Err(source.at(known[0].place.clone(), "factors", what));
    let free = known.iter().enumerate().filter(|(place, _)| !generators.iter().any(|it| it.made == *place));
    let cells = free.fold(1_usize, |cells, (_, factor)| cells.saturating_mul(factor.levels.len()));
    if cells > MOST {
        return at(&format!(
            "their combinations are {cells} cells, and at most {MOST} are made; a fraction needs `generators` in [design]"
        ));
    }
    Ok(())
}

fn factor(
    source: &Source<'_>,
    name: String,
    text: Spanned<FactorText>,
    variants: &[Placed<Variant>],
    loads: &[LoadSpec],
) -> Result<Known, PlanError> {
    let place = text.span();
    let levels =
        in_order(text.into_inner()).map(|(level, text)| level_meant(source, &name, level, text, variants, loads));
    let levels: Vec<Level> = levels.collect::<Result<_, _>>()?;
    if levels.len() < 2 {
        return Err(source.at(place, &format!("factors.{name}"), "a factor needs at least two levels"));
    }
    Ok(Known { name, place, levels })
}

fn level_meant(
    source: &Source<'_>,
    factor: &str,
    name: String,
    text: Spanned<Written>,
    variants: &[Placed<Variant>],
    loads: &[LoadSpec],
) -> Result<Level, PlanError> {
    let place = text.span();
    let Written { directives, table } = text.into_inner();
    let key = |key: &str| format!("factors.{factor}.{name}.{key}");
    let directives = directives.map(|text| Spanned::new(place, text)).or(table.directives);
    let mut change = Variant { directives: source.directives(directives.as_ref()), ..empty(&name) };
    if let Some(wanted) = table.variant {
        let found = variants.iter().find(|(variant, _)| variant.name == *wanted.get_ref()).ok_or_else(|| {
            let known = names(variants.iter().map(|(variant, _)| &variant.name));
            source.at(wanted.span(), &key("variant"), &format!("no variant `{}`; there is {known}", wanted.get_ref()))
        })?;
        change = together(Variant { name: name.clone(), ..found.0.clone() }, &change);
    }
    let load = table.load.map(|wanted| load_named(source, &wanted, &key("load"), loads).cloned()).transpose()?;
    if let Some(none) = table.connections.as_ref().filter(|connections| *connections.get_ref() == 0) {
        return Err(source.at(none.span(), &key("connections"), "must be at least 1"));
    }
    Ok(Level { name, change, load, connections: table.connections })
}

fn load_named<'a>(
    source: &Source<'_>,
    wanted: &Spanned<String>,
    key: &str,
    loads: &'a [LoadSpec],
) -> Result<&'a LoadSpec, PlanError> {
    loads.iter().find(|load| load.name == *wanted.get_ref()).ok_or_else(|| {
        let known = names(loads.iter().map(|load| &load.name));
        source.at(wanted.span(), key, &format!("no load `{}`; there is {known}", wanted.get_ref()))
    })
}

/// The load of the cells whose factors do not choose one.
fn usual_load<'a>(
    source: &Source<'_>,
    design: Option<&DesignText>,
    known: &[Known],
    loads: &'a [LoadSpec],
) -> Result<&'a LoadSpec, PlanError> {
    let chosen = known.iter().any(|factor| factor.levels.iter().all(|level| level.load.is_some()));
    match design.and_then(|design| design.load.as_ref()) {
        Some(wanted) => load_named(source, wanted, "design.load", loads),
        None if loads.len() == 1 || chosen => Ok(&loads[0]),
        None => {
            let known_loads = names(loads.iter().map(|load| &load.name));
            let what = format!("say which load in [design] or in the levels: {known_loads}");
            Err(source.at(known[0].place.clone(), "factors", &what))
        }
    }
}

/// What two of the levels change of a kind that is there once: how the server is ended, what the kernel has of files, a file, a setting of the kernel: nobody could say which of the changes is in force.
fn changed_twice(levels: &[&Level]) -> Option<String> {
    if levels.iter().filter(|level| level.change.end.is_some()).count() > 1 {
        return Some("how the server is ended".to_owned());
    }
    if levels.iter().filter(|level| level.change.page_cache.is_some()).count() > 1 {
        return Some("what the kernel has of files".to_owned());
    }
    let changes = levels.iter().map(|level| &level.change.changes);
    let changed = changes.flat_map(|changes| {
        let files = changes.files.iter().map(|file| file.path.display().to_string());
        files.chain(changes.sysctl.keys().cloned())
    });
    let mut seen = std::collections::BTreeSet::new();
    changed.into_iter().find(|name| !seen.insert(name.clone()))
}

/// The load of a combination: a level may choose it, and a level may choose its connections.
fn load(source: &Source<'_>, usual: &LoadSpec, levels: &[&Level]) -> Result<LoadSpec, PlanError> {
    let mut load = levels.iter().find_map(|level| level.load.as_ref()).unwrap_or(usual).clone();
    if let Some(connections) = levels.iter().find_map(|level| level.connections.as_ref()) {
        load.connections = *connections.get_ref();
        load.name = format!("{} {}", load.name, load.connections);
    }
    let choose = |what: fn(&Level) -> bool| levels.iter().filter(|level| what(level)).count();
    if choose(|level| level.load.is_some()) > 1 || choose(|level| level.connections.is_some()) > 1 {
        let twice = levels.iter().rev().find_map(|level| level.connections.as_ref()).map_or(0..0, Spanned::span);
        return Err(source.at(
            twice,
            "factors",
            "two factors choose the load, or two its connections; one of them must do",
        ));
    }
    Ok(load)
}

fn generators(source: &Source<'_>, design: Option<&DesignText>, known: &[Known]) -> Result<Vec<Generator>, PlanError> {
    let mut generators: Vec<Generator> = Vec::new();
    for text in design.iter().flat_map(|design| &design.generators) {
        let at = |what: String| Err(source.at(text.span(), "design.generators", &what));
        let Some((made, of)) = text.get_ref().split_once('=') else {
            return at(format!("`{}` must say of what a factor is the product, such as \"c = a * b\"", text.get_ref()));
        };
        let (negative, of) = of.trim().strip_prefix('-').map_or((false, of), |of| (true, of));
        let factor =
            |name: &str| known.iter().position(|known| known.name == name.trim()).ok_or_else(|| name.trim().to_owned());
        let parsed: Result<Vec<usize>, String> = std::iter::once(made).chain(of.split('*')).map(factor).collect();
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(name) => {
                return at(format!("no factor `{name}`; there is {}", names(known.iter().map(|known| &known.name))));
            }
        };
        if let Some(many) = known.iter().find(|known| known.levels.len() != 2) {
            return at(format!(
                "`{}` has {} levels; fractions are made of factors with two",
                many.name,
                many.levels.len()
            ));
        }
        let (made, of) = (parsed[0], &parsed[1..]);
        let distinct = of.iter().enumerate().all(|(place, factor)| !of[..place].contains(factor));
        if of.len() < 2 || !distinct {
            return at(
                "the product needs at least two different factors: otherwise two factors always change together"
                    .to_owned(),
            );
        }
        if generators.iter().any(|other| other.made == made) {
            return at(format!("`{}` is made twice", known[made].name));
        }
        let generator = Generator { made, of: of.to_vec(), negative };
        if generators.iter().chain([&generator]).any(|one| {
            one.of.iter().any(|factor| *factor == made || generators.iter().any(|other| other.made == *factor))
        }) {
            return at("a factor that is made stands in a product; use the others only".to_owned());
        }
        generators.push(generator);
    }
    let runs = Generator::words(&generators);
    if runs.iter().any(|(word, _)| word.len() < 3) {
        let place = design.and_then(|design| design.generators.first()).map_or(0..0, Spanned::span);
        return Err(source.at(
            place,
            "design.generators",
            "two factors would always change together; choose other products",
        ));
    }
    Ok(generators)
}

/// Factors of the largest common effect.
fn interactions(source: &Source<'_>, design: Option<&DesignText>, known: &[Known]) -> Result<u32, PlanError> {
    let most = known.len() as u32;
    match design.and_then(|design| design.interactions.as_ref()) {
        None => Ok(most.min(2)),
        Some(wanted) if (1..=most).contains(wanted.get_ref()) => Ok(*wanted.get_ref()),
        Some(wanted) => {
            let what = format!("must lie between 1, for what each factor does alone, and {most}, as many as there are");
            Err(source.at(wanted.span(), "design.interactions", &what))
        }
    }
}

/// The name of a combination: of its levels, with the factors' names where a level's alone would not tell.
fn label(factors: &[Factor], levels: &[usize]) -> String {
    let all: Vec<&String> = factors.iter().flat_map(|factor| &factor.levels).collect();
    let telling = all.iter().enumerate().all(|(place, level)| !all[..place].contains(level));
    let part = |(factor, &level): (&Factor, &usize)| {
        let level = &factor.levels[level];
        if telling { level.clone() } else { format!("{} {level}", factor.name) }
    };
    factors.iter().zip(levels).map(part).collect::<Vec<_>>().join(", ")
}

fn empty(name: &str) -> Variant {
    Variant { name: name.to_owned(), ..Variant::default() }
}

/// What both change, the second one after the first.
fn together(first: Variant, second: &Variant) -> Variant {
    let mut both = first;
    both.directives.extend(second.directives.iter().cloned());
    both.allow_warnings.extend(second.allow_warnings.iter().cloned());
    both.changes = both.changes.and(&second.changes);
    both.php = both.php.and(&second.php);
    both.end = second.end.or(both.end);
    both.page_cache = second.page_cache.or(both.page_cache);
    both.servers = both.servers.and(&second.servers);
    both
}
