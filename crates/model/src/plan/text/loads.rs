//! The table `[load]`: where loads are sent from, and the loads by name.

use super::PlanError;
use super::load::LoadText;
use super::source::Source;
use crate::plan::Origin;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use toml::Spanned;

/// What may be written there. Two words that are no tables stand beside the loads, so no load can have their names.
#[derive(Default)]
pub(super) struct LoadsText {
    pub(super) from: Option<Spanned<String>>,
    pub(super) address: Option<Spanned<String>>,
    pub(super) loads: BTreeMap<String, Spanned<LoadText>>,
}

impl<'de> Deserialize<'de> for LoadsText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LoadsText, D::Error> {
        from.deserialize_map(Entries)
    }
}

/// By hand: flattened by serde, the values would lose their places in the text.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = LoadsText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tables [load.NAME]")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<LoadsText, M::Error> {
        let mut text = LoadsText::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "from" => text.from = Some(map.next_value()?),
                "address" => text.address = Some(map.next_value()?),
                _ => drop(text.loads.insert(key, map.next_value()?)),
            }
        }
        Ok(text)
    }
}

/// The machine that sends the loads, if it is another one.
pub(super) fn origin_meant(
    source: &Source<'_>,
    from: Option<&Spanned<String>>,
    address: Option<&Spanned<String>>,
) -> Result<Option<Origin>, PlanError> {
    let at = |text: &Spanned<String>, key: &str, what: &str| source.at(text.span(), key, what);
    let origin =
        from.map(|text| Origin::parse(text.get_ref()).map_err(|what| at(text, "load.from", &what))).transpose()?;
    match (origin, address) {
        (None, Some(text)) => Err(at(text, "load.address", "is how another machine reaches this one; it needs `from`")),
        (None, None) => Ok(None),
        (Some(origin), text) => {
            let parsed = text.map(|text| match text.get_ref().parse::<IpAddr>() {
                Ok(address) if !address.is_loopback() && !address.is_unspecified() => Ok(address),
                Ok(_) => Err(at(
                    text,
                    "load.address",
                    "no other machine reaches this one by that; give one of its own addresses",
                )),
                Err(_) => Err(at(text, "load.address", "must be an IP address of this machine, such as 192.0.2.7")),
            });
            Ok(Some(Origin { address: parsed.transpose()?, ..origin }))
        }
    }
}
