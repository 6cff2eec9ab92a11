//! Colour on a terminal, only when asked for; words say the same without it.

use super::Colour;
use stats::Verdict;

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Quiet,
    Good,
    Bad,
    Warning,
}

impl Tone {
    /// That of a verdict, if there is one.
    pub(crate) fn of(verdict: Option<Verdict>) -> Tone {
        match verdict {
            Some(Verdict::Better) => Tone::Good,
            Some(Verdict::Worse) => Tone::Bad,
            Some(Verdict::Equivalent | Verdict::Inconclusive { .. }) | None => Tone::Quiet,
        }
    }
}

/// How to show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    pub(crate) colour: Colour,
}

impl Paint {
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        // Blue and yellow, not green and red: most colour-blind readers tell them apart.
        if text.is_empty() {
            return String::new();
        }
        let code = match (self.colour, tone) {
            (Colour::None, _) | (_, Tone::Plain) => return text.to_owned(),
            (_, Tone::Strong) => "1",
            (_, Tone::Quiet) => "2",
            (_, Tone::Good) => "1;34",
            (_, Tone::Bad) => "1;31",
            (_, Tone::Warning) => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
