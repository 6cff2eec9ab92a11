//! The kinds of servers that a plan may be about.

use super::{Directive, Php};
use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Which server, and what is common to all its variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ServerSpec {
    /// A private instance of the system's Apache httpd.
    Apache(Apache),
    /// A private instance of the system's nginx.
    Nginx(Nginx),
    /// Any server that a command starts.
    Command(CommandServer),
    /// webdyno's own small server, as a child process.
    Embedded(Embedded),
    /// A server that is there and that webdyno does not control.
    Url(Url),
}

/// A private instance of the system's Apache httpd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apache {
    /// The program; the system's own when absent.
    #[serde(serialize_with = "super::as_text_if_any")]
    pub program: Option<PathBuf>,
    /// Processing module.
    pub mpm: Mpm,
    /// Modules to load beyond the ones every instance has, by the name in their file: `cgi` for `mod_cgi.so`.
    pub modules: Vec<String>,
    /// What is served at `/`.
    #[serde(serialize_with = "super::as_text_if_any")]
    pub document_root: Option<PathBuf>,
    /// What is served at `/cgi-bin/`.
    #[serde(serialize_with = "super::as_text_if_any")]
    pub scripts: Option<PathBuf>,
    /// Directives of every variant, before the variant's own.
    pub directives: Vec<Directive>,
    /// Path of the GET that must answer 2xx before the server counts as ready.
    pub ready: String,
    /// Lines in the plan of the keys that can turn out wrong later, for messages. Plans stored earlier have none.
    #[serde(default)]
    pub lines: BTreeMap<String, usize>,
    /// The machine's own configuration, where it is not webdyno that writes one; it then says module, folders and scripts, and the
    /// fields above for them say nothing.
    #[serde(default)]
    pub existing: Option<Existing>,
    /// How `.php` files are run; as they are when absent.
    #[serde(default)]
    pub php: Option<Php>,
}

/// A configuration that the machine has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Existing {
    /// Its main file; the system's own when absent.
    #[serde(serialize_with = "super::as_text_if_any")]
    pub main: Option<PathBuf>,
    /// The machine's running server is changed, instead of a private instance derived from its configuration.
    pub in_place: bool,
    /// The port of it that the load goes to; the first one without TLS when absent.
    pub port: Option<u16>,
    /// The name that requests ask for, which chooses among virtual hosts.
    pub host: Option<String>,
}

/// A private instance of the system's nginx.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nginx {
    /// The program; the system's own when absent.
    #[serde(serialize_with = "super::as_text_if_any")]
    pub program: Option<PathBuf>,
    /// What is served at `/`.
    #[serde(serialize_with = "super::as_text_if_any")]
    pub document_root: Option<PathBuf>,
    /// Directives of every variant, before the variant's own, each for itself: where it belongs is known.
    pub directives: Vec<Directive>,
    /// Path of the GET that must answer 2xx before the server counts as ready.
    pub ready: String,
    /// Lines in the plan of the keys that can turn out wrong later, for messages.
    #[serde(default)]
    pub lines: BTreeMap<String, usize>,
    /// The machine's own configuration, where it is not webdyno that writes one.
    #[serde(default)]
    pub existing: Option<Existing>,
    /// How `.php` files are run; as they are when absent.
    #[serde(default)]
    pub php: Option<Php>,
}

/// Apache's processing modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mpm {
    /// One process per request.
    Prefork,
    /// Threads, a connection holds one.
    Worker,
    /// Threads, idle connections hold none.
    Event,
}

/// A server that is there already.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Url {
    /// What the user gave, without a password.
    pub url: String,
    /// Where that led to: an address with its port, several with `, ` between them, or `unix:` and a path; behind `proxy ` it is
    /// that of a proxy, and the server may be anywhere. Empty in a plan that was only read: names are resolved when it is run.
    pub address: String,
    /// Whether that is one of this machine's own addresses, though none of its loopback.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
    /// Path of the GET that must answer 2xx before the server counts as ready; when absent, it is ready once it takes connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// https: any certificate is believed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// https: the authorities in this PEM file are believed, instead of those of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "super::as_text_if_any")]
    pub cacert: Option<PathBuf>,
    /// Lines in the plan of the keys that can turn out wrong later, for messages; none where no plan was written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lines: BTreeMap<String, usize>,
}

/// webdyno's own small server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Embedded {
    /// Directives of every variant: `Workers N`, `KeepAlive On|Off`.
    pub directives: Vec<Directive>,
}

fn line_of(lines: &BTreeMap<String, usize>, key: &str) -> usize {
    lines.get(key).or_else(|| lines.get("kind")).copied().unwrap_or(1)
}

impl Apache {
    /// The line in the plan of a key of `[server]`; of its `kind`, which is always there, when the plan leaves the key out.
    #[must_use]
    pub fn line(&self, key: &str) -> usize {
        line_of(&self.lines, key)
    }
}

/// A server that a command starts in the foreground.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandServer {
    /// Program and arguments, with `${port}` where it is told its port and `${NAME}` for its settings.
    pub command: Vec<String>,
    /// Folder to run it in.
    #[serde(serialize_with = "super::as_text")]
    pub directory: PathBuf,
    /// Settings of every variant, `NAME=value`, before the variant's own.
    pub directives: Vec<Directive>,
    /// How it is known to be ready.
    pub ready: Ready,
    /// How it is asked to end; by SIGTERM when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// How long it may take to end after that, before it is ended by force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_within_ns: Option<Nanos>,
    /// The package that has the program, for who has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Lines in the plan of the keys that can turn out wrong later, for messages.
    #[serde(default)]
    pub lines: BTreeMap<String, usize>,
}

/// How a server of the user's own is known to be ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ready {
    /// A GET of this path is answered with 2xx.
    Path(String),
    /// This command ends with exit code 0.
    Command(Vec<String>),
}

/// How a server of the user's own is asked to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Stop {
    /// Its first process is sent this signal.
    Signal(StopSignal),
    /// This command asks it.
    Command(Vec<String>),
}

/// A signal by which servers end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// What everybody sends who ends a program.
    Term,
    /// As by Ctrl-C.
    Int,
    /// Of many servers: at the end of what they have begun, or at once.
    Quit,
    /// As when a terminal is gone.
    Hup,
    /// One that means what a server says.
    Usr1,
    /// Another.
    Usr2,
    /// Of Apache: at the end of what it has begun.
    Winch,
}

impl StopSignal {
    /// All of them.
    pub const ALL: [StopSignal; 7] = [
        StopSignal::Term,
        StopSignal::Int,
        StopSignal::Quit,
        StopSignal::Hup,
        StopSignal::Usr1,
        StopSignal::Usr2,
        StopSignal::Winch,
    ];

    /// As plans write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            StopSignal::Term => "TERM",
            StopSignal::Int => "INT",
            StopSignal::Quit => "QUIT",
            StopSignal::Hup => "HUP",
            StopSignal::Usr1 => "USR1",
            StopSignal::Usr2 => "USR2",
            StopSignal::Winch => "WINCH",
        }
    }
}

impl CommandServer {
    /// The line in the plan of a key of `[server]`; of its `kind`, which is always there, when the plan leaves the key out.
    #[must_use]
    pub fn line(&self, key: &str) -> usize {
        line_of(&self.lines, key)
    }
}

impl Nginx {
    /// The line in the plan of a key of `[server]`; of its `kind`, which is always there, when the plan leaves the key out.
    #[must_use]
    pub fn line(&self, key: &str) -> usize {
        line_of(&self.lines, key)
    }
}

impl Url {
    /// The line in the plan of a key of `[server]`; of its `kind`, which is always there, when the plan leaves the key out.
    #[must_use]
    pub fn line(&self, key: &str) -> usize {
        line_of(&self.lines, key)
    }

    /// Whether the server runs on this machine, so that readings of the machine say something about it.
    #[must_use]
    pub fn is_here(&self) -> bool {
        let is_ours = |address: &str| address.parse::<SocketAddr>().is_ok_and(|at| at.ip().is_loopback());
        self.ours || self.address.starts_with("unix:") || self.address.split(", ").all(is_ours)
    }
}

impl ServerSpec {
    /// Whether it runs on this machine, so that readings of the machine say something about it.
    #[must_use]
    pub fn is_here(&self) -> bool {
        match self {
            ServerSpec::Url(url) => url.is_here(),
            ServerSpec::Apache(_) | ServerSpec::Nginx(_) | ServerSpec::Command(_) | ServerSpec::Embedded(_) => true,
        }
    }

    /// Where it is, if that is all that is known of it: nobody starts, changes or ends it.
    #[must_use]
    pub fn url(&self) -> Option<&Url> {
        match self {
            ServerSpec::Url(url) => Some(url),
            ServerSpec::Apache(_) | ServerSpec::Nginx(_) | ServerSpec::Command(_) | ServerSpec::Embedded(_) => None,
        }
    }

    /// How it runs PHP, if webdyno has a say in that.
    #[must_use]
    pub fn php(&self) -> Option<&Php> {
        match self {
            ServerSpec::Apache(apache) => apache.php.as_ref(),
            ServerSpec::Nginx(nginx) => nginx.php.as_ref(),
            ServerSpec::Command(_) | ServerSpec::Embedded(_) | ServerSpec::Url(_) => None,
        }
    }

    /// Whether it is known to speak HTTP: it is ready when a page of it is.
    #[must_use]
    pub fn speaks_http(&self) -> bool {
        match self {
            ServerSpec::Command(server) => matches!(server.ready, Ready::Path(_)),
            ServerSpec::Apache(_) | ServerSpec::Nginx(_) | ServerSpec::Embedded(_) | ServerSpec::Url(_) => true,
        }
    }

    /// Every text and path of it that may stand for something of the run becomes what `text` makes of it.
    pub fn fill(&mut self, text: &dyn Fn(&str) -> String) {
        let path = |path: &mut PathBuf| *path = text(&path.to_string_lossy()).into();
        let words = |words: &mut Vec<String>| words.iter_mut().for_each(|word| *word = text(word));
        let (directives, php) = match self {
            ServerSpec::Apache(Apache { document_root, scripts, directives, php, .. }) => {
                document_root.iter_mut().chain(scripts).for_each(path);
                (directives, php.as_mut())
            }
            ServerSpec::Nginx(Nginx { document_root, directives, php, .. }) => {
                document_root.iter_mut().for_each(path);
                (directives, php.as_mut())
            }
            ServerSpec::Command(CommandServer { command, directory, directives, ready, stop, .. }) => {
                words(command);
                path(directory);
                if let Ready::Command(command) = ready {
                    words(command);
                }
                if let Some(Stop::Command(command)) = stop {
                    words(command);
                }
                (directives, None)
            }
            ServerSpec::Embedded(embedded) => (&mut embedded.directives, None),
            ServerSpec::Url(_) => return,
        };
        directives.iter_mut().for_each(|line| line.text = text(&line.text));
        php.into_iter().for_each(|php| php.settings.fill(text));
    }

    /// Which line of the plan is to blame for what its command says, or else for the server.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        let lines = match self {
            ServerSpec::Apache(apache) => &apache.lines,
            ServerSpec::Nginx(nginx) => &nginx.lines,
            ServerSpec::Command(server) => &server.lines,
            ServerSpec::Url(url) => &url.lines,
            ServerSpec::Embedded(_) => return None,
        };
        lines.get("command").or_else(|| lines.get("kind")).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_here(address: &str, expected: bool) {
        let url = Url { url: "http://there.example/".to_owned(), address: address.to_owned(), ..Url::default() };
        assert_eq!(url.is_here(), expected, "{address}");
    }

    #[test]
    fn a_server_is_here_when_all_its_addresses_are() {
        check_here("127.0.0.1:80", true);
        check_here("[::1]:80", true);
        check_here("unix:/run/socket", true);
        check_here("192.0.2.1:80", false);
        check_here("127.0.0.1:80, 127.0.0.2:80", true);
        check_here("127.0.0.1:80, 192.0.2.1:80", false);
        check_here("proxy 127.0.0.1:3128", false);
        check_here("", false);
    }
}
