//! Where loads are sent from, if not from this machine.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// Another machine that sends the loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Whom `ssh` is told to go to: `user@host`, or a name of ssh's own configuration.
    pub destination: String,
    /// By which of this machine's addresses the other one reaches it; absent when ssh's own way there tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// What stands before the destination.
const SCHEME: &str = "ssh:";

impl Origin {
    /// Reads `ssh:user@host`.
    ///
    /// # Errors
    /// One sentence: what is wrong, and what is right.
    pub fn parse(text: &str) -> Result<Origin, String> {
        let right = "write ssh:USER@HOST, or ssh: and a name of ssh's own configuration";
        let Some(destination) = text.strip_prefix(SCHEME) else {
            return Err(format!("`{text}` does not say how to get there; {right}"));
        };
        let is_word = |c: char| !c.is_whitespace() && !c.is_control();
        // What begins with a hyphen would be an option to ssh.
        if destination.is_empty() || destination.starts_with('-') || !destination.chars().all(is_word) {
            return Err(format!("`{text}` names no machine; {right}"));
        }
        if destination.starts_with("//") || has_port(destination) {
            return Err(format!("`{text}`: {right}; its port and key stand in ssh's configuration (~/.ssh/config)"));
        }
        Ok(Origin { destination: destination.to_owned(), address: None })
    }
}

/// Whether it ends in `:22`, which is no part of a name; an IPv6 address has more than one colon.
fn has_port(destination: &str) -> bool {
    destination.matches(':').count() == 1
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let found = Origin::parse(text);
        match (&found, expected) {
            (Ok(origin), Ok(destination)) => {
                assert_eq!(origin.destination, destination);
                assert_eq!(origin.to_string(), text);
            }
            (Err(what), Err(part)) => assert!(what.contains(part), "{what}"),
            _ => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn a_machine_is_named_as_ssh_names_it() {
        check("ssh:bench@10.0.0.2", Ok("bench@10.0.0.2"));
        check("ssh:client", Ok("client"));
        check("ssh:fe80::1", Ok("fe80::1"));
        check("client", Err("does not say how"));
        check("ssh:", Err("names no machine"));
        check("ssh:-oProxyCommand=x", Err("names no machine"));
        check("ssh:a b", Err("names no machine"));
        check("ssh:a:22", Err("~/.ssh/config"));
        check("ssh://a", Err("~/.ssh/config"));
    }
}
