//! `[[contrast]]`: questions by name, the mean of some cells against that of others.

use super::source::Source;
use super::{PlanError, names};
use crate::plan::{Cell, Contrast, Role};
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use std::fmt::{self, Formatter};
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContrastText {
    name: Spanned<String>,
    of: Spanned<Names>,
    against: Option<Spanned<Names>>,
    margin: Option<Spanned<f64>>,
}

/// A name or a list of names.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Names;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a cell, or a list of names")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Names, E> {
                Ok(Names(vec![name.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_any(One)
    }
}

/// The contrasts that the plan writes; `derived` are those that it has without writing them.
pub(super) fn meant(
    source: &Source<'_>,
    written: &[Spanned<ContrastText>],
    cells: &[Cell],
    derived: &[Contrast],
    margin: f64,
) -> Result<Vec<Contrast>, PlanError> {
    let mut contrasts: Vec<Contrast> = Vec::new();
    for text in written {
        let contrast = one(source, text, cells, margin)?;
        if derived.iter().chain(&contrasts).any(|other| other.name == contrast.name) {
            let what = format!("two contrasts would be called `{}`; choose another name", contrast.name);
            return Err(source.at(text.get_ref().name.span(), "contrast.name", &what));
        }
        contrasts.push(contrast);
    }
    Ok(contrasts)
}

fn one(source: &Source<'_>, text: &Spanned<ContrastText>, cells: &[Cell], margin: f64) -> Result<Contrast, PlanError> {
    let ContrastText { name, of, against, margin: own } = text.get_ref();
    let known = |list: &Spanned<Names>, key: &str| {
        let Names(listed) = list.get_ref();
        let at = |what: &str| Err(source.at(list.span(), key, what));
        if listed.is_empty() {
            return at("name at least one cell");
        }
        for (place, name) in listed.iter().enumerate() {
            if !cells.iter().any(|cell| cell.name == *name) {
                let known = names(cells.iter().map(|cell| &cell.name));
                return at(&format!("no cell `{name}`; there is {known}"));
            }
            if listed[..place].contains(name) {
                return at(&format!("`{name}` is named twice"));
            }
        }
        Ok(listed.clone())
    };
    let of_names = known(of, "contrast.of")?;
    let baseline = || cells.iter().filter(|cell| cell.role == Role::Baseline).map(|cell| cell.name.clone()).collect();
    let against_names = against.as_ref().map_or_else(|| Ok(baseline()), |list| known(list, "contrast.against"))?;
    if let Some(both) = of_names.iter().find(|name| against_names.contains(name)) {
        let (place, what) = match against {
            Some(list) => (list.span(), format!("`{both}` is on both sides")),
            None => (of.span(), format!("`{both}` is the baseline; say with `against` what it is compared with")),
        };
        return Err(source.at(place, if against.is_some() { "contrast.against" } else { "contrast.of" }, &what));
    }
    let margin = source.share(own.as_ref(), "contrast.margin", margin)?;
    Ok(Contrast::of_means(name.get_ref(), &of_names, &against_names, margin))
}
