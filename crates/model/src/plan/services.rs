//! Servers that stand beside the one under test: a database that it asks, the servers behind a proxy. Which of them a variant has, and how
//! each text of the plan is told where they are.

use super::{Directive, Plan, ServerSpec, Variant};
use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a mention of a service begins with: `${service.db.port}`.
const MENTION: &str = "${service.";

/// A server that is started before the one under test and stopped after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Its name, unique in the plan.
    pub name: String,
    /// What it is.
    pub server: ServerSpec,
    /// It is started once for the whole run, instead of anew for each trial.
    pub keep: bool,
    /// Line in the plan, for messages.
    pub line: usize,
}

/// What a variant says of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Servers {
    /// The service that takes the place of the plan's server.
    pub server: Option<String>,
    /// The services that stand beside it; all that take no variant's server's place when absent.
    pub services: Option<Vec<String>>,
    /// What changes about some of them.
    pub changes: BTreeMap<String, ServiceChange>,
}

/// What a variant changes about a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceChange {
    /// Directives added after its own.
    pub directives: Vec<Directive>,
    /// When it is killed, counted from the beginning of the measured window.
    pub kill_after_ns: Option<Nanos>,
}

/// A place in a text where something about a service is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mention<'a> {
    /// The service.
    pub service: &'a str,
    /// What of it: one of [`Mention::WORDS`], when the plan is right.
    pub word: &'a str,
}

impl Mention<'_> {
    /// What can be said of a service.
    pub const WORDS: [&'static str; 3] = ["address", "port", "folder"];

    /// As it stands in the plan.
    #[must_use]
    pub fn written(&self) -> String {
        format!("{MENTION}{}.{}}}", self.service, self.word)
    }
}

/// The mentions of services in a text.
pub fn mentions(text: &str) -> impl Iterator<Item = Mention<'_>> {
    text.split(MENTION).skip(1).filter_map(|rest| {
        let (service, word) = rest.split_once('}')?.0.rsplit_once('.')?;
        Some(Mention { service, word })
    })
}

/// The text with what `of` says in the place of each mention; where it says nothing the mention stays.
#[must_use]
pub fn fill_in(text: &str, of: &dyn Fn(Mention<'_>) -> Option<String>) -> String {
    let mut filled = text.to_owned();
    for mention in mentions(text) {
        if let Some(value) = of(mention) {
            filled = filled.replace(&mention.written(), &value);
        }
    }
    filled
}

impl Servers {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Servers::default()
    }

    /// These, and then others, which win where both say the same.
    #[must_use]
    pub fn and(&self, others: &Servers) -> Servers {
        let mut both = self.clone();
        both.server = others.server.clone().or(both.server);
        both.services = others.services.clone().or(both.services);
        for (name, change) in &others.changes {
            let known = both.changes.entry(name.clone()).or_default();
            known.directives.extend(change.directives.iter().cloned());
            known.kill_after_ns = change.kill_after_ns.or(known.kill_after_ns);
        }
        both
    }
}

impl Plan {
    /// The server that is measured for a variant.
    #[must_use]
    pub fn server_of(&self, variant: &Variant) -> &ServerSpec {
        let named = variant.servers.server.as_ref().and_then(|name| self.service(name));
        named.map_or(&self.server, |service| &service.server)
    }

    /// The services that stand beside it, in the order in which they are started: kept ones first, then as in the plan.
    pub fn services_of<'a>(&'a self, variant: &'a Variant) -> impl Iterator<Item = &'a Service> {
        let is_a_server = |name: &String| self.variants.iter().any(|it| it.servers.server.as_ref() == Some(name));
        let stands = move |service: &&Service| match &variant.servers.services {
            Some(names) => names.contains(&service.name),
            None => !is_a_server(&service.name),
        };
        let kept = self.services.iter().filter(|service| service.keep);
        kept.chain(self.services.iter().filter(|service| !service.keep)).filter(stands)
    }

    /// A service by name.
    #[must_use]
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_filled_in() {
        let check = |text: &str, expected: &str| {
            let value = |mention: Mention<'_>| match (mention.service, mention.word) {
                ("db", "port") => Some("3306".to_owned()),
                ("my.db", "folder") => Some("/r/db".to_owned()),
                _ => None,
            };
            assert_eq!(fill_in(text, &value), expected);
        };
        check("SetEnv PORT ${service.db.port}", "SetEnv PORT 3306");
        check("${service.db.port}${service.my.db.folder}/x", "3306/r/db/x");
        check("${service.other.port} ${PORT} ${service.db", "${service.other.port} ${PORT} ${service.db");
    }

    #[test]
    fn what_a_later_variant_says_wins() {
        let line = |text: &str| Directive { text: text.to_owned(), line: 1 };
        let change = |text: &str, kill_after_ns| ServiceChange { directives: vec![line(text)], kill_after_ns };
        let of = |server: Option<&str>, change| Servers {
            server: server.map(str::to_owned),
            services: None,
            changes: BTreeMap::from([("a".to_owned(), change)]),
        };
        let both = of(Some("x"), change("one", Some(1))).and(&of(None, change("two", None)));
        let together = ServiceChange { directives: vec![line("one"), line("two")], kill_after_ns: Some(1) };
        assert_eq!(both, of(Some("x"), together));
        assert!(Servers::default().and(&Servers::default()).is_empty());
    }
}
