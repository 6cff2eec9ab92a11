//! What `webdyno watch` takes and dstat has not: long options, by their full names alone, so that none stands in the way of what
//! dstat's own may be shortened to. They may stand anywhere.

use super::{Refusal, mistake};
use crate::flags::Lang;
use model::recording::Retention;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// What was typed of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Extras {
    /// Record into the store.
    pub(crate) record: bool,
    /// Which store.
    pub(crate) store: Option<PathBuf>,
    /// What is kept of recordings.
    pub(crate) retention: Retention,
    /// A recording to show instead of this machine.
    pub(crate) replay: Option<String>,
    /// How many times faster than it was; at once if `None` and there is no terminal.
    pub(crate) speed: Option<f64>,
    /// JSON lines.
    pub(crate) json: bool,
    /// Where metrics can be collected.
    pub(crate) metrics: Option<SocketAddr>,
    /// The whole terminal instead of rows.
    pub(crate) screen: bool,
    /// Say what limits the machine, whenever that changes.
    pub(crate) explain: bool,
    /// The language of the whole terminal and of explanations.
    pub(crate) lang: Option<Lang>,
}

impl Extras {
    /// Takes them out of the words; the others are left, in their order.
    ///
    /// # Errors
    /// When one has no value, or none that makes sense, or two do not go together.
    pub(crate) fn take(words: &[String]) -> Result<(Extras, Vec<String>), Refusal> {
        let (mut extras, mut others) = (Extras::default(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let plain = attached.is_none();
            let mut value = || {
                let next = attached.clone().or_else(|| words.next().cloned());
                next.ok_or_else(|| mistake(&format!("option {name} requires argument")))
            };
            match name {
                "--record" if plain => extras.record = true,
                "--json" if plain => extras.json = true,
                "--screen" if plain => extras.screen = true,
                "--explain" if plain => extras.explain = true,
                "--store" => extras.store = Some(value()?.into()),
                "--keep" => extras.retention.age_ns = quantity(name, &value()?, units::duration_ns)?,
                "--keep-size" => extras.retention.bytes = quantity(name, &value()?, units::bytes)?,
                "--replay" => extras.replay = Some(value()?),
                "--speed" => extras.speed = Some(speed(&value()?)?),
                "--metrics" => extras.metrics = Some(address(&value()?)?),
                "--lang" => extras.lang = Some(lang(&value()?)?),
                _ => others.push(word.clone()),
            }
        }
        extras.check()?;
        Ok((extras, others))
    }

    fn check(&self) -> Result<(), Refusal> {
        let wrong = if self.retention != Retention::default() && !self.record {
            "--keep and --keep-size are about recordings; they go with --record alone"
        } else if self.store.is_some() && !self.record && self.replay.is_none() {
            "--store goes with --record or --replay"
        } else if self.replay.is_some() && (self.record || self.metrics.is_some()) {
            "--replay shows what was recorded; it goes with neither --record nor --metrics"
        } else if self.json && self.screen {
            "--json and --screen are mutual exclusive"
        } else if self.explain && self.screen {
            "--explain stands between rows; it does not go with --screen"
        } else if self.speed.is_some() && self.replay.is_none() {
            "--speed goes with --replay alone"
        } else {
            return Ok(());
        };
        Err(mistake(wrong))
    }
}

fn quantity(name: &str, text: &str, parse: fn(&str) -> Result<u64, units::ParseError>) -> Result<u64, Refusal> {
    parse(text).map_err(|error| mistake(&format!("{name}: {error}")))
}

fn speed(text: &str) -> Result<f64, Refusal> {
    let speed = text.trim_end_matches('x').parse::<f64>().ok().filter(|speed| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| mistake(&format!("--speed takes a number above 0, such as 10, not {text:?}")))
}

/// `PORT` on the loopback address, or `ADDRESS:PORT`.
fn address(text: &str) -> Result<SocketAddr, Refusal> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse().map_err(|_| {
        let right = "a port, which is then open on 127.0.0.1 alone, or ADDRESS:PORT such as 0.0.0.0:9150";
        mistake(&format!("--metrics takes {right}, not {text:?}"))
    })
}

fn lang(text: &str) -> Result<Lang, Refusal> {
    match text {
        "en" => Ok(Lang::En),
        "ja" => Ok(Lang::Ja),
        _ => Err(mistake(&format!("--lang takes en or ja, not {text:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(typed: &str) -> Result<(Extras, String), Refusal> {
        let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        Extras::take(&words).map(|(extras, others)| (extras, others.join(" ")))
    }

    fn check(typed: &str, expected: Extras, others: &str) {
        assert_eq!(take(typed), Ok((expected, others.to_owned())), "{typed}");
    }

    #[test]
    fn they_stand_anywhere_and_leave_the_rest() {
        let none = Extras::default;
        check("-cd 1 5", none(), "-cd 1 5");
        check("-cd --json 1 5 --record", Extras { json: true, record: true, ..none() }, "-cd 1 5");
        check("--replay=abc -l", Extras { replay: Some("abc".into()), ..none() }, "-l");
        check("--replay abc --speed 2.5x", Extras { replay: Some("abc".into()), speed: Some(2.5), ..none() }, "");
        let at = |address: &str| Extras { metrics: Some(address.parse().unwrap()), ..none() };
        check("--metrics 9150 -m", at("127.0.0.1:9150"), "-m");
        check("--metrics 0.0.0.0:9150", at("0.0.0.0:9150"), "");
        check("--metrics [::1]:0", at("[::1]:0"), "");
        let retention = Retention { age_ns: 7 * 86_400_000_000_000, bytes: 200 << 20 };
        check("--record --keep 7d --keep-size=200M", Extras { record: true, retention, ..none() }, "");
        // Shortened, they are dstat's.
        check("--rec --so", none(), "--rec --so");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let check = |typed: &str, expected: &str| assert_eq!(take(typed).unwrap_err(), mistake(expected), "{typed}");
        check("--replay", "option --replay requires argument");
        check("--replay x --record", "--replay shows what was recorded; it goes with neither --record nor --metrics");
        check("--speed 2", "--speed goes with --replay alone");
        check("--replay x --speed 0", "--speed takes a number above 0, such as 10, not \"0\"");
        check("--store x -c", "--store goes with --record or --replay");
        check("--keep 7d", "--keep and --keep-size are about recordings; they go with --record alone");
        check("--json --screen", "--json and --screen are mutual exclusive");
        check("--explain --screen", "--explain stands between rows; it does not go with --screen");
        let right = "a port, which is then open on 127.0.0.1 alone, or ADDRESS:PORT such as 0.0.0.0:9150";
        for wrong in ["web1", "99999", "web1:9150"] {
            check(&format!("--metrics {wrong}"), &format!("--metrics takes {right}, not {wrong:?}"));
        }
        check("--lang de", "--lang takes en or ja, not \"de\"");
        check(
            "--keep soon",
            "--keep: `soon` is not a duration: write a number and ns, us, ms, s, min, h or d, such as 500ms",
        );
    }
}
