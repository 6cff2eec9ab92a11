//! One picture of several: `srcset`, `sizes` and the `media` of a source, on a screen of [`VIEWPORT_PX`] at one dot per pixel.

use crate::VIEWPORT_PX;

/// The candidate of a `srcset` that has the fewest dots that suffice, or else the most. `src`, when there is one, has one dot
/// per pixel.
pub(crate) fn chosen<'a>(srcset: &'a str, sizes: Option<&str>, src: Option<&'a str>) -> Option<&'a str> {
    let width_px = shown_width_px(sizes);
    let mut candidates: Vec<(&str, f64)> =
        split(srcset).into_iter().filter_map(|(url, descriptor)| Some((url, density(descriptor, width_px)?))).collect();
    let has_widths = split(srcset).iter().any(|(_, descriptor)| descriptor.ends_with('w'));
    if let Some(src) = src.filter(|src| !src.trim_ascii().is_empty() && !has_widths) {
        candidates.push((src, 1.0));
    }
    let suffices = |density: f64| density >= 1.0;
    candidates
        .into_iter()
        .reduce(|best, next| match (suffices(best.1), suffices(next.1)) {
            (true, true) if next.1 < best.1 => next,
            (false, false) if next.1 > best.1 => next,
            (false, true) => next,
            _ => best,
        })
        .map(|(url, _)| url)
}

/// Whether a media query holds on that screen. Only what sources usually ask for is known: the kind of device and its width;
/// anything else does not hold.
pub(crate) fn holds(media: &str) -> bool {
    media.split(',').any(|query| {
        query.trim_ascii().to_ascii_lowercase().split(" and ").all(|condition| {
            let condition = condition.trim_ascii();
            let condition = condition.strip_prefix("only ").unwrap_or(condition);
            let inner = condition.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
            match inner.and_then(|inner| inner.split_once(':')) {
                None => matches!(condition, "" | "all" | "screen"),
                Some((name, value)) => match (name.trim_ascii(), length_px(value)) {
                    ("min-width", Some(least)) => VIEWPORT_PX >= least,
                    ("max-width", Some(most)) => VIEWPORT_PX <= most,
                    _ => false,
                },
            }
        })
    })
}

/// Addresses and their descriptors. A comma may belong to an address, but not at its ends.
fn split(srcset: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = srcset;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_ascii_whitespace() || letter == ',');
        if rest.is_empty() {
            return found;
        }
        let end = rest.find(|letter: char| letter.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, behind) = rest.split_at(end);
        let without = url.trim_end_matches(',');
        let (descriptor, behind) =
            if without.len() < url.len() { ("", behind) } else { behind.split_once(',').unwrap_or((behind, "")) };
        found.push((without, descriptor.trim_ascii()));
        rest = behind;
    }
}

/// Dots per pixel of a candidate: `2x`, or `640w` on so many pixels. `None` when the descriptor is none.
fn density(descriptor: &str, width_px: f64) -> Option<f64> {
    let mut words = descriptor.split_ascii_whitespace().filter(|word| !word.ends_with('h'));
    let density = match words.next() {
        None => 1.0,
        Some(word) => match word.strip_suffix('w') {
            Some(width) => width.parse::<f64>().ok()? / width_px,
            None => word.strip_suffix('x')?.parse().ok()?,
        },
    };
    Some(density).filter(|density: &f64| density.is_finite() && *density > 0.0 && words.next().is_none())
}

/// The width at which the picture is shown: the first of `sizes` whose condition holds.
fn shown_width_px(sizes: Option<&str>) -> f64 {
    let width = |size: &str| {
        let size = size.trim_ascii();
        let (condition, length) = match size.rfind(')').filter(|_| size.starts_with('(')) {
            Some(end) => size.split_at(end + 1),
            None => ("", size),
        };
        length_px(length).filter(|length| *length > 0.0 && holds(condition))
    };
    sizes.unwrap_or_default().split(',').find_map(width).unwrap_or(VIEWPORT_PX)
}

/// Pixels of a length in px, em, rem or vw.
fn length_px(length: &str) -> Option<f64> {
    let units = [("px", 1.0), ("rem", 16.0), ("em", 16.0), ("vw", VIEWPORT_PX / 100.0)];
    let length = length.trim_ascii();
    units.iter().find_map(|(unit, px)| Some(length.strip_suffix(unit)?.trim_ascii().parse::<f64>().ok()? * px))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(srcset: &str, sizes: Option<&str>, src: Option<&str>, expected: Option<&str>) {
        assert_eq!(chosen(srcset, sizes, src), expected, "{srcset}");
    }

    #[test]
    fn by_density() {
        check("a 2x, b 1x", None, None, Some("b"));
        check("a 2x, b 1.5x", None, Some("c"), Some("c"));
        check("a 2x,b 3x", None, None, Some("a"));
        check("a .5x, b 0.75x", None, None, Some("b"));
        check("a, b 2x", None, Some("c"), Some("a"));
        check("http://h/a,b?c=1,2 1x", None, None, Some("http://h/a,b?c=1,2"));
        check("a,b", None, None, Some("a,b"));
        check("a, b,", None, None, Some("a"));
        check("a 1q, b -1x, c 0x", None, None, None);
        check("", None, Some("c"), Some("c"));
        check(" , ", None, Some(" "), None);
    }

    #[test]
    fn by_width() {
        let widths = "s 320w, m 640w, l 1280w, xl 2560w";
        check(widths, None, Some("src"), Some("l"));
        check(widths, Some("50vw"), None, Some("m"));
        check(widths, Some("(max-width: 600px) 100vw, 300px"), None, Some("s"));
        check(widths, Some("(min-width: 40em) 100px, 2000px"), None, Some("s"));
        check(widths, Some("calc(100% - 2px)"), None, Some("l"));
        check("s 320w 200h", None, None, Some("s"));
    }

    #[test]
    fn media() {
        for (media, expected) in [
            ("", true),
            ("all", true),
            ("screen and (min-width: 800px)", true),
            ("only screen and (max-width:800px)", false),
            ("print", false),
            ("print, (min-width: 10em)", true),
            ("(orientation: portrait)", false),
            ("(min-width: 800px) and (max-width: 1000px)", false),
        ] {
            assert_eq!(holds(media), expected, "{media}");
        }
    }
}
