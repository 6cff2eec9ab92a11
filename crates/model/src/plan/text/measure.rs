//! Durations, rates and sizes as a plan writes them: text with a unit. A bare number is refused with what it probably stands for.
//!
//! What the text amounts to is decided later, by [`units`].

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt::{self, Display, Formatter};

/// Such as `500ms`.
pub(super) struct Duration(pub(super) String);

/// Such as `500/s`.
pub(super) struct Rate(pub(super) String);

/// Such as `200M`.
pub(super) struct Size(pub(super) String);

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Measure { name: "a duration", unit: "s", example: "500ms" }).map(Duration)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Measure { name: "a rate", unit: "/s", example: "500/s" }).map(Rate)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Measure { name: "a size", unit: "M", example: "200M" }).map(Size)
    }
}

struct Measure {
    name: &'static str,
    unit: &'static str,
    example: &'static str,
}

impl Measure {
    fn without_unit<T, E: Error>(&self, number: impl Display) -> Result<T, E> {
        let Measure { name, unit, .. } = self;
        Err(E::custom(format!("{name} is text with a unit: write \"{number}{unit}\" if that is what `{number}` means")))
    }
}

impl Visitor<'_> for Measure {
    type Value = String;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} such as \"{}\"", self.name, self.example)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        self.without_unit(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<String, E> {
        self.without_unit(number)
    }
}
