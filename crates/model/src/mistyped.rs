//! A name that is not known, and the known one that was probably meant.

/// Names that are at least so much alike are one name mistyped, by the measure that clap uses for flags. Its limit is 0.7: of the names of many
/// plans one is always as much like any word.
const ALIKE: f64 = 0.8;

/// The one of `known` whose name is most like `written`, if it is alike at all; the first of several.
pub fn meant<'a, T>(written: &str, known: &'a [T], name: impl Fn(&T) -> &str) -> Option<&'a T> {
    let alike = known.iter().map(|one| (strsim::jaro(written, name(one)), one)).filter(|(much, _)| *much > ALIKE);
    alike.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn the_most_alike() {
        let check = |written: &str, expected: Option<&str>| {
            let known = ["keepalive", "keepalive-held", "access-log"];
            assert_eq!(meant(written, &known, |one| one).copied(), expected, "{written}");
        };
        check("kepalive", Some("keepalive"));
        check("keepalive-hold", Some("keepalive-held"));
        check("front", None);
        assert_eq!(meant("front", &[] as &[&str], |one| one), None);
        assert_eq!(meant("fornt", &[(1, "front"), (2, "front")], |one| one.1), Some(&(1, "front")));
    }
}
