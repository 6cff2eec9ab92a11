//! Parameters: `${name}` is replaced line by line, before anything else is read, so that every later message still points at the
//! user's own line.

use super::source::Source;
use super::{Options, PlanError, names};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// The tables that may be read before the rest is valid.
#[derive(Deserialize)]
struct Tables {
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
    #[serde(default)]
    scale: BTreeMap<String, BTreeMap<String, Spanned<Value>>>,
}

/// The plan's text with the parameters of the wanted scale filled in.
pub(super) fn fill_in(source: &Source<'_>, options: &Options) -> Result<String, PlanError> {
    let parameters = parameters(source, options)?;
    let mut filled = String::with_capacity(source.text.len());
    for (index, line) in source.text.split_inclusive('\n').enumerate() {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            match known(&parameters, after) {
                Some((Value::String(text), tail)) => {
                    filled.push_str(text);
                    rest = tail;
                }
                Some((Value::Table(_) | Value::Array(_), _)) => {
                    return Err(PlanError {
                        file: source.file.to_owned(),
                        line: Some(index + 1),
                        key: None,
                        what: "a parameter must be a string or a number".to_owned(),
                    });
                }
                Some((other, tail)) => {
                    filled.push_str(&other.to_string());
                    rest = tail;
                }
                // Apache writes ${NAME} too; what is not a parameter here is left to it.
                None => {
                    filled.push_str("${");
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
    }
    Ok(filled)
}

/// The parameter whose name and `}` begin `after`, and what comes behind it.
fn known<'a, 'b>(parameters: &'a BTreeMap<String, Value>, after: &'b str) -> Option<(&'a Value, &'b str)> {
    let (name, tail) = after.split_once('}')?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    parameters.get(name).filter(|_| is_name).map(|value| (value, tail))
}

fn parameters(source: &Source<'_>, options: &Options) -> Result<BTreeMap<String, Value>, PlanError> {
    let Tables { mut parameters, mut scale } =
        toml::from_str(source.text).map_err(|error| source.toml_error(&error))?;
    let Some(wanted) = &options.scale else { return Ok(parameters) };
    let Some(values) = scale.remove(wanted) else {
        let what = if scale.is_empty() {
            "the plan has no scales; leave the flag out".to_owned()
        } else {
            format!("the plan has no such scale; there is {}", names(scale.keys()))
        };
        return Err(PlanError {
            file: source.file.to_owned(),
            // What was typed is to blame, not a line of the plan.
            line: None,
            key: Some(format!("--scale {wanted}")),
            what,
        });
    };
    for (name, value) in values {
        if !parameters.contains_key(&name) {
            let key = format!("scale.{wanted}.{name}");
            return Err(source.at(value.span(), &key, "no such name under [parameters]"));
        }
        parameters.insert(name, value.into_inner());
    }
    Ok(parameters)
}
