//! TLS by OpenSSL's names, as far as rustls has it: `-f` and `-Z`. What it lacks is refused by name and listed in
//! `docs/compatibility/ab.md`.

/// A cipher suite that both have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suite {
    /// OpenSSL's name, for `-Z` and for the report.
    pub(crate) openssl: &'static str,
    /// The name of rustls' `CipherSuite`.
    pub(crate) rustls: &'static str,
    /// TLS 1.3, else 1.2.
    pub(crate) of_1_3: bool,
    /// Bits of the session's key, for the report.
    pub(crate) bits: u16,
}

/// Which versions may be spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Protocol {
    /// `ALL`: 1.2 and 1.3.
    #[default]
    All,
    /// `TLS1.2` alone.
    Tls12,
    /// `TLS1.3` alone.
    Tls13,
    /// Asked for, and older than what rustls speaks.
    TooOld(&'static str),
}

/// Every suite, strongest first; the same that rustls with aws-lc-rs has.
pub(crate) const SUITES: [Suite; 9] = [
    suite("TLS_AES_256_GCM_SHA384", "TLS13_AES_256_GCM_SHA384", true, 256),
    suite("TLS_AES_128_GCM_SHA256", "TLS13_AES_128_GCM_SHA256", true, 128),
    suite("TLS_CHACHA20_POLY1305_SHA256", "TLS13_CHACHA20_POLY1305_SHA256", true, 256),
    suite("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", false, 256),
    suite("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", false, 128),
    suite("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", false, 256),
    suite("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", false, 256),
    suite("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", false, 128),
    suite("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", false, 256),
];

const fn suite(openssl: &'static str, rustls: &'static str, of_1_3: bool, bits: u16) -> Suite {
    Suite { openssl, rustls, of_1_3, bits }
}

impl Protocol {
    /// What `-f` says; `None` for what ab, too, passes over. Only the beginning counts, in any case.
    pub(crate) fn parse(text: &str) -> Option<Protocol> {
        const NAMES: [(&str, Protocol); 7] = [
            ("ALL", Protocol::All),
            ("SSL2", Protocol::TooOld("SSL2")),
            ("SSL3", Protocol::TooOld("SSL3")),
            ("TLS1.1", Protocol::TooOld("TLS1.1")),
            ("TLS1.2", Protocol::Tls12),
            ("TLS1.3", Protocol::Tls13),
            ("TLS1", Protocol::TooOld("TLS1")),
        ];
        let begins = |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        NAMES.iter().find(|(name, _)| begins(name)).map(|(_, protocol)| *protocol)
    }
}

/// The suites to offer: those that `-Z` names, and beside 1.2 those of 1.3, which the list is not about, as in OpenSSL.
/// The error is one line.
pub(crate) fn suites(list: Option<&str>, protocol: Protocol) -> Result<Vec<Suite>, String> {
    let spoken = |suite: &&Suite| match protocol {
        Protocol::Tls12 => !suite.of_1_3,
        Protocol::Tls13 => suite.of_1_3,
        Protocol::All | Protocol::TooOld(_) => true,
    };
    if let Protocol::TooOld(name) = protocol {
        return Err(format!("ab: {name} is older than what webdyno speaks: TLS1.2 and TLS1.3\n"));
    }
    let Some(list) = list else { return Ok(SUITES.iter().filter(spoken).copied().collect()) };
    let of_1_3 = protocol == Protocol::Tls13;
    let mut chosen: Vec<Suite> = Vec::new();
    for name in list.split([':', ',', ' ']).filter(|name| !name.is_empty()) {
        let suite = SUITES.iter().find(|suite| suite.openssl == name && suite.of_1_3 == of_1_3);
        chosen.push(*suite.ok_or_else(|| refused(name, list, of_1_3))?);
    }
    if chosen.is_empty() {
        return Err(format!("error setting ciphersuite list [{list}]\n"));
    }
    if protocol == Protocol::All {
        chosen.extend(SUITES.iter().filter(|suite| suite.of_1_3));
    }
    Ok(chosen)
}

/// Begins as ab's own refusal does, where OpenSSL's reason would follow.
fn refused(name: &str, list: &str, of_1_3: bool) -> String {
    let known: Vec<&str> = SUITES.iter().filter(|suite| suite.of_1_3 == of_1_3).map(|suite| suite.openssl).collect();
    format!("error setting ciphersuite list [{list}]: {name} is none of {}\n", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_count_by_their_beginning() {
        let check = |text: &str, expected: Option<Protocol>| assert_eq!(Protocol::parse(text), expected, "{text}");
        check("ALL", Some(Protocol::All));
        check("all!", Some(Protocol::All));
        check("tls1.2", Some(Protocol::Tls12));
        check("TLS1.3", Some(Protocol::Tls13));
        check("TLS1.1", Some(Protocol::TooOld("TLS1.1")));
        check("TLS1", Some(Protocol::TooOld("TLS1")));
        check("TLS1.0", Some(Protocol::TooOld("TLS1")));
        check("TLS1.4", Some(Protocol::TooOld("TLS1")));
        check("SSL3", Some(Protocol::TooOld("SSL3")));
        check("SSL2", Some(Protocol::TooOld("SSL2")));
        check("TLS", None);
        check("", None);
    }

    #[test]
    fn suites_are_chosen_by_name() {
        let check = |list: Option<&str>, protocol, expected: Result<&str, &str>| {
            let chosen = suites(list, protocol)
                .map(|suites| suites.iter().map(|suite| suite.rustls).collect::<Vec<_>>().join(" "));
            assert_eq!(chosen.as_ref().map(String::as_str).map_err(String::as_str), expected, "{list:?} {protocol:?}");
        };
        check(
            Some("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305"),
            Protocol::Tls12,
            Ok("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
        );
        check(
            Some("ECDHE-RSA-AES128-GCM-SHA256"),
            Protocol::All,
            Ok("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 TLS13_AES_256_GCM_SHA384 TLS13_AES_128_GCM_SHA256 \
                TLS13_CHACHA20_POLY1305_SHA256"),
        );
        check(Some("TLS_AES_128_GCM_SHA256"), Protocol::Tls13, Ok("TLS13_AES_128_GCM_SHA256"));
        let of_1_3 = "TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256";
        let line = format!("error setting ciphersuite list [AES128-SHA]: AES128-SHA is none of {of_1_3}\n");
        check(Some("AES128-SHA"), Protocol::Tls13, Err(&line));
        check(Some(":"), Protocol::All, Err("error setting ciphersuite list [:]\n"));
        check(None, Protocol::TooOld("TLS1"), Err("ab: TLS1 is older than what webdyno speaks: TLS1.2 and TLS1.3\n"));
        assert_eq!(suites(None, Protocol::All).map(|suites| suites.len()), Ok(9));
        assert_eq!(suites(None, Protocol::Tls12).map(|suites| suites.len()), Ok(6));
        assert_eq!(suites(None, Protocol::Tls13).map(|suites| suites.len()), Ok(3));
    }

    #[test]
    fn what_rustls_lacks_is_refused_by_name() {
        for name in ["AES128-SHA", "DHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-SHA384", "HIGH", "ALL", "foo"] {
            let line = suites(Some(name), Protocol::All).unwrap_err();
            assert!(line.contains(&format!("[{name}]: {name} is none of ECDHE-ECDSA-AES256-GCM-SHA384,")), "{line}");
        }
    }

    #[test]
    fn the_table_is_the_one_of_rustls() {
        let ours = rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES.iter().map(|suite| format!("{:?}", suite.suite()));
        assert_eq!(ours.collect::<Vec<_>>(), SUITES.map(|suite| suite.rustls.to_owned()));
    }

    #[test]
    fn openssl_knows_the_names() {
        let Ok(listed) = std::process::Command::new("openssl").args(["ciphers", "-v", "ALL"]).output() else {
            return testkit::skip::skipped("openssl is not installed");
        };
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for suite in SUITES {
            let line = listed.lines().find(|line| line.split_whitespace().next() == Some(suite.openssl));
            let line = line.unwrap_or_else(|| panic!("{} is not among\n{listed}", suite.openssl));
            assert!(line.contains(if suite.of_1_3 { " TLSv1.3 " } else { " TLSv1.2 " }), "{line}");
            assert!(line.contains(&format!("({})", suite.bits)), "{line}");
        }
    }
}
