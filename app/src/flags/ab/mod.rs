//! What can be typed after `webdyno ab`, or to webdyno under the name of `ab`: the options of httpd 2.4's ab, read by its rules.
//!
//! [`parse`] reads and refuses as ab does, letter for letter and in its order: options take effect one by one, and the first
//! mistake ends it. Nothing here measures or prints; the only thing read is the file of a body, because ab reads it at that point.
//! Our own long options are [`Extras`]. What differs from ab, and why, stands in `docs/compatibility/ab.md`.

mod extras;
mod getopt;
mod request;
mod target;
mod tls;
mod typing;
mod usage;

pub(crate) use extras::Extras;
pub(crate) use target::Target;
pub(crate) use tls::{Protocol, SUITES, Suite};

use crate::command::load::secret::{field, in_url, quoted};
use getopt::{Getopt, Next};
use model::plan::SECRET;
use report::ab::html::Attributes;
use report::ab::{progress, text};
use std::ffi::OsString;
use typing::Typing;

/// What was typed, and makes sense.
#[derive(Debug)]
pub(crate) struct AbFlags {
    /// What ab says about it on standard error and goes on: an option it does not know.
    pub(crate) complaint: String,
    /// The same words as a shell would take them, without secrets.
    pub(crate) shown: String,
    /// Where to, and what for.
    pub(crate) target: Target,
    pub(crate) method: Method,
    /// Body to send (`-p`, `-u`).
    pub(crate) body: Option<Vec<u8>>,
    /// Its type (`-T`).
    pub(crate) content_type: Option<String>,
    /// Value of the Cookie field (`-C`); the last one typed.
    pub(crate) cookie: Option<String>,
    /// Authorization and Proxy-Authorization (`-A`, `-P`): whole lines.
    pub(crate) credentials: String,
    /// Fields as typed (`-H`): whole lines.
    pub(crate) fields: String,
    /// Which of ab's own fields are among them.
    pub(crate) typed: TypedFields,
    /// Keep connections (`-k`).
    pub(crate) keep_alive: bool,
    /// Requests in all (`-n`), at most 50,000 for a load that `-t` ends.
    pub(crate) requests: u32,
    /// Whether that number is only ab's for a load that `-t` ends, and nobody typed it.
    pub(crate) requests_by_time: bool,
    /// Connections (`-c`).
    pub(crate) concurrency: u32,
    /// Seconds until it ends (`-t`); 0 or less as ab takes them.
    pub(crate) seconds: Option<i32>,
    /// Seconds to wait (`-s`); 0 or less as ab takes them.
    pub(crate) wait_seconds: i32,
    /// Bytes of the socket's buffers (`-b`); 0 for the kernel's own.
    pub(crate) window: i32,
    /// Address to connect from (`-B`).
    pub(crate) local: Option<String>,
    /// Proxy and its port (`-X`); ab takes port 0 when none is typed.
    pub(crate) proxy: Option<(String, i32)>,
    /// Go on when an answer breaks off (`-r`).
    pub(crate) go_on: bool,
    pub(crate) tls: TlsFlags,
    pub(crate) output: OutputFlags,
    pub(crate) extras: Extras,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Put,
    Post,
    Custom(String),
}

/// Fields that ab writes itself unless they were typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TypedFields {
    /// The value of the last Host field.
    pub(crate) host: Option<String>,
    pub(crate) accept: bool,
    pub(crate) user_agent: bool,
}

/// How TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFlags {
    /// Versions (`-f`).
    pub(crate) protocol: Protocol,
    /// Suites as typed (`-Z`).
    pub(crate) suites: Option<String>,
    /// Suites to offer; none when no TLS is spoken.
    pub(crate) offered: Vec<Suite>,
    /// PEM file with a chain and its key (`-E`).
    pub(crate) certificate: Option<String>,
    /// Ask for a name; not with `-I`.
    pub(crate) sni: bool,
    /// Which; none for addresses.
    pub(crate) server_name: Option<String>,
}

/// What is printed and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputFlags {
    /// `-v`.
    pub(crate) verbosity: i32,
    /// No heartbeat (`-q`).
    pub(crate) quiet: bool,
    /// As a table in HTML (`-w`, `-x`, `-y`, `-z`).
    pub(crate) html: Option<Attributes>,
    /// `-d`, `-S`.
    pub(crate) show: text::Show,
    /// Answers may differ in length (`-l`).
    pub(crate) any_length: bool,
    /// `-g`.
    pub(crate) gnuplot: Option<String>,
    /// `-e`.
    pub(crate) csv: Option<String>,
}

/// An end without a load: what to print, and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: u8,
}

/// EINVAL, ab's code for everything that its usage follows.
const USAGE: u8 = 22;

/// Reads the words behind the program's name. `read` gives a body's file, or the line that ab prints about it.
pub(crate) fn parse(words: &[OsString], read: &dyn Fn(&str) -> Result<Vec<u8>, String>) -> Result<AbFlags, Said> {
    let words: Option<Vec<String>> = words.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    let words = words.ok_or_else(|| Said::usage("ab: what was typed is not UTF-8\n"))?;
    let mut getopt = Getopt::new(&words);
    let mut typing = Typing::new(read);
    let mut long = extras::Words::default();
    let (mut complaint, mut shown) = (String::new(), vec!["ab".to_owned()]);
    loop {
        match getopt.next() {
            Next::Option(letter, value) => {
                shown.push(shown_option(letter, value));
                typing.option(letter, value)?;
            }
            Next::Long(name) => long.take(name, &mut getopt),
            Next::Illegal(letter) => complaint = format!("ab: illegal option -- {letter}\n"),
            Next::Missing(letter) => complaint = format!("ab: option requires an argument -- {letter}\n"),
            Next::End => break,
        }
        if !complaint.is_empty() {
            break;
        }
    }
    shown.extend(long.shown());
    let extras = long.meant().map_err(|error| usage::of_extras(&error))?;
    let refused = |said: Said| Said { err: format!("{complaint}{}", said.err), ..said };
    let flags = typing.loads(getopt.left()).map_err(refused)?;
    shown.push(quoted(&in_url(&flags.target.url)));
    Ok(AbFlags { complaint, extras, shown: shown.join(" "), ..flags })
}

/// An option as it may be stored and shown.
fn shown_option(letter: char, value: &str) -> String {
    match letter {
        'A' | 'P' | 'C' => format!("-{letter} {SECRET}"),
        'H' => format!("-H {}", quoted(&field(value))),
        _ if value.is_empty() => format!("-{letter}"),
        _ => format!("-{letter} {}", quoted(value)),
    }
}

impl Said {
    fn usage(why: &str) -> Said {
        Said { out: String::new(), err: format!("{why}{}", usage::USAGE_TEXT), code: USAGE }
    }

    /// As ab's `err()` ends, whose texts have a line break of their own before the one it adds.
    fn error(why: &str) -> Said {
        Said { out: String::new(), err: format!("{why}\n\n"), code: 1 }
    }
}

impl AbFlags {
    /// What ab prints on standard output before it connects.
    pub(crate) fn opening(&self) -> String {
        let html = self.output.html.is_some();
        let mut out = progress::banner(html).to_owned();
        if !html {
            let proxy = self.proxy.as_ref().map(|(host, port)| (host.as_str(), *port));
            let beat = progress::heartbeat(u64::from(self.requests), self.output.quiet);
            out += &progress::benchmarking(&self.target.host, proxy, beat);
        }
        out
    }
}

#[cfg(test)]
mod tests;
