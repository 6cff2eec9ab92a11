//! Stages as text: `30s:100/s,1m:100..500/s`.

use super::load::Stage;

/// Why stages could not be read; one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StagesError {
    /// No colon between time and rate.
    #[error("`{0}` is not a stage: write TIME:RATE, such as 30s:100/s, or TIME:RATE..RATE for a climb")]
    Form(String),
    /// A quantity that is none.
    #[error(transparent)]
    Quantity(#[from] units::ParseError),
    /// Nothing would ever arrive.
    #[error("`{0}` sends nothing: give at least one stage with a time and a rate above 0")]
    Nothing(String),
}

/// Reads stages, separated by commas: how long, and how many a second, or from how many to how many.
///
/// # Errors
/// When a stage is malformed or there is nothing to send.
pub fn stages(text: &str) -> Result<Vec<Stage>, StagesError> {
    let stages: Vec<Stage> = text.split(',').map(|part| stage(part.trim())).collect::<Result<_, _>>()?;
    if stages.iter().all(|stage| stage.expected(stage.length_ns) <= 0.0) {
        return Err(StagesError::Nothing(text.to_owned()));
    }
    Ok(stages)
}

fn stage(text: &str) -> Result<Stage, StagesError> {
    let (length, rates) = text.split_once(':').ok_or_else(|| StagesError::Form(text.to_owned()))?;
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    // `100..500/s`: the unit stands once, at the end.
    let to_rate = units::rate(to)?;
    let unit = to.find(|c: char| !c.is_ascii_digit() && c != '.').map_or("", |at| &to[at..]);
    let bare = from.chars().all(|c| c.is_ascii_digit() || c == '.');
    let from_rate = if bare { units::rate(&format!("{from}{unit}"))? } else { units::rate(from)? };
    Ok(Stage { length_ns: units::duration_ns(length)?, from: from_rate, to: to_rate })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SECOND;

    #[track_caller]
    fn check(text: &str, expected: Result<&[(u64, f64, f64)], &str>) {
        let found = stages(text).map_err(|error| error.to_string());
        let expected = expected.map_err(str::to_owned).map(|stages| {
            stages.iter().map(|&(s, from, to)| Stage { length_ns: s * SECOND, from, to }).collect::<Vec<_>>()
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn stages_hold_and_climb() {
        check("30s:100/s,1m:500/s", Ok(&[(30, 100.0, 100.0), (60, 500.0, 500.0)]));
        check("10s:0..1k/s, 5s : 600/min", Ok(&[(10, 0.0, 1000.0), (5, 10.0, 10.0)]));
        check("10s:60/min..10/s", Ok(&[(10, 1.0, 10.0)]));
    }

    #[test]
    fn what_is_not_a_stage_is_said() {
        check("30s", Err("`30s` is not a stage: write TIME:RATE, such as 30s:100/s, or TIME:RATE..RATE for a climb"));
        check("30:5/s", Err("`30` is not a duration: write a number and ns, us, ms, s, min, h or d, such as 500ms"));
        check("30s:x", Err("`x` is not a rate: write a number and /s or /min, such as 500/s"));
        check(
            "30s:0,0s:5/s",
            Err("`30s:0,0s:5/s` sends nothing: give at least one stage with a time and a rate above 0"),
        );
    }
}
