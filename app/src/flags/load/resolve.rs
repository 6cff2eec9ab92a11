//! `--resolve HOST:PORT:ADDRESS[,ADDRESS...]`, as curl has it: addresses that take the place of what name servers say.

use std::net::IpAddr;

/// One such flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolve {
    /// A name, in lower case, or an address without its brackets; `None` is every host.
    pub(crate) host: Option<String>,
    /// The port it holds for.
    pub(crate) port: u16,
    /// At least one.
    pub(crate) addresses: Vec<IpAddr>,
}

impl Resolve {
    /// Reads what was typed.
    ///
    /// # Errors
    /// In one line that says which part is wrong.
    pub(crate) fn parse(text: &str) -> Result<Resolve, String> {
        // With it curl lets the entry time out, which here nothing does.
        let (host, rest) = split_host(text.strip_prefix('+').unwrap_or(text)).ok_or_else(|| form(text))?;
        let (port, addresses) = rest.split_once(':').ok_or_else(|| form(text))?;
        let port = port.parse().ok().filter(|&port| port > 0);
        let port = port.ok_or_else(|| format!("`{text}`: between host and addresses stands a port from 1 to 65535"))?;
        let address = |word: &str| {
            bare(word.trim())
                .parse()
                .map_err(|_| format!("`{text}`: `{word}` is not an address; names have no place there"))
        };
        let addresses = addresses.split(',').map(address).collect::<Result<_, _>>()?;
        let host = (host != "*").then(|| bare(host).to_ascii_lowercase());
        Ok(Resolve { host, port, addresses })
    }

    /// The addresses for a host and a port: those given last, and those for every host only where there are no others.
    pub(crate) fn find<'a>(entries: &'a [Resolve], host: &str, port: u16) -> Option<&'a [IpAddr]> {
        let host = bare(host).to_ascii_lowercase();
        let last = |wanted: Option<&str>| entries.iter().rfind(|e| e.port == port && e.host.as_deref() == wanted);
        last(Some(&host)).or_else(|| last(None)).map(|entry| entry.addresses.as_slice())
    }
}

fn form(text: &str) -> String {
    format!("`{text}` is not HOST:PORT:ADDRESS[,ADDRESS...], such as shop.example:443:192.0.2.1,[2001:db8::1]")
}

/// The host, which may be an address in brackets, and what stands behind its colon.
fn split_host(text: &str) -> Option<(&str, &str)> {
    let end = if text.starts_with('[') { text.find(']')? + 1 } else { text.find(':')? };
    let (host, rest) = text.split_at(end);
    (!host.is_empty()).then_some((host, rest.strip_prefix(':')?))
}

/// An address without the brackets that it has in a URL.
pub(crate) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found for `there.example:443` by flags that were typed so, or what is wrong with one of them.
    #[track_caller]
    fn check(typed: &[&str], expected: Result<&[&str], &str>) {
        let entries: Result<Vec<Resolve>, String> = typed.iter().map(|text| Resolve::parse(text)).collect();
        match (entries, expected) {
            (Ok(entries), Ok(expected)) => {
                let found = Resolve::find(&entries, "There.example", 443).unwrap_or_default();
                let found: Vec<String> = found.iter().map(IpAddr::to_string).collect();
                assert_eq!(found, expected, "{typed:?}");
            }
            (Err(found), Err(expected)) => assert!(found.contains(expected), "no `{expected}` in {found}"),
            (found, _) => panic!("{typed:?}: {found:?}"),
        }
    }

    #[test]
    fn addresses_are_found_as_by_curl() {
        check(&["there.example:443:127.0.0.1"], Ok(&["127.0.0.1"]));
        check(&["THERE.example:443:127.0.0.1,[::1], ::2"], Ok(&["127.0.0.1", "::1", "::2"]));
        check(&["+there.example:443:127.0.0.1"], Ok(&["127.0.0.1"]));
        check(&["there.example:80:127.0.0.1"], Ok(&[]));
        check(&["other.example:443:127.0.0.1"], Ok(&[]));
        check(&["*:443:127.0.0.9"], Ok(&["127.0.0.9"]));
        check(&["there.example:443:127.0.0.1", "*:443:127.0.0.9"], Ok(&["127.0.0.1"]));
        check(&["there.example:443:127.0.0.1", "there.example:443:127.0.0.2"], Ok(&["127.0.0.2"]));
        let entry = Resolve::parse("[::1]:80:127.0.0.1").unwrap();
        assert_eq!(Resolve::find(&[entry], "[::1]", 80).map(<[IpAddr]>::len), Some(1));
    }

    #[test]
    fn mistakes_are_named() {
        for text in
            ["", "there.example", "there.example:443", ":443:127.0.0.1", "[::1:443:127.0.0.1", "-there.example:443"]
        {
            check(&[text], Err("is not HOST:PORT:ADDRESS[,ADDRESS...], such as"));
        }
        check(&["there.example:x:127.0.0.1"], Err("a port from 1 to 65535"));
        check(&["there.example:0:127.0.0.1"], Err("a port from 1 to 65535"));
        check(&["there.example:443:other"], Err("`other` is not an address"));
        check(&["there.example:443:127.0.0.1,"], Err("`` is not an address"));
    }
}
