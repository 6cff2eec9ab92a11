//! A name that is not known, and the known one that was probably meant.

/// From how much on two names are one name mistyped, by the measure and the limit that clap uses for flags.
pub const ALIKE: f64 = 0.7;

/// The one of `known` whose name is most like `written`, if it is more alike than `limit`; the first of several.
pub fn meant<'a, T>(written: &str, known: &'a [T], limit: f64, name: impl Fn(&T) -> &str) -> Option<&'a T> {
    let alike = known.iter().map(|one| (strsim::jaro(written, name(one)), one)).filter(|(much, _)| *much > limit);
    alike.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use super::{ALIKE, meant};

    #[test]
    fn the_most_alike() {
        let check = |written: &str, expected: Option<&str>| {
            let known = ["keepalive", "keepalive-held", "access-log"];
            assert_eq!(meant(written, &known, ALIKE, |one| one).copied(), expected, "{written}");
        };
        check("kepalive", Some("keepalive"));
        check("keepalive-hold", Some("keepalive-held"));
        check("front", None);
        assert_eq!(meant("front", &[] as &[&str], ALIKE, |one| one), None);
        assert_eq!(meant("fornt", &[(1, "front"), (2, "front")], ALIKE, |one| one.1), Some(&(1, "front")));
    }
}
