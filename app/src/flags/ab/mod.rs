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
mod usage;

pub(crate) use extras::Extras;
pub(crate) use target::Target;
pub(crate) use tls::{Protocol, Suite};

use crate::base64;
use getopt::{Getopt, Next, atoi};
use report::ab::html::Attributes;
use report::ab::{progress, text, trouble};
use std::ffi::OsString;

/// What was typed, and makes sense.
#[derive(Debug)]
pub(crate) struct AbFlags {
    /// What ab says about it on standard error and goes on: an option it does not know.
    pub(crate) complaint: String,
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

/// The most connections (httpd 2.4.71; 20,000 in older ones).
const MAX_CONCURRENCY: i32 = 200_000;

/// What `-t` sets the number of requests to.
const TIMED_REQUESTS: i32 = 50_000;

/// EINVAL, ab's code for everything that its usage follows.
const USAGE: u8 = 22;

/// The longest credentials, in bytes: in base64, with the zero at their end, they fill ab's buffer of 1024.
const MAX_CREDENTIALS: usize = 765;

/// Reads the words behind the program's name. `read` gives a body's file, or the line that ab prints about it.
pub(crate) fn parse(words: &[OsString], read: &dyn Fn(&str) -> Result<Vec<u8>, String>) -> Result<AbFlags, Said> {
    let words: Option<Vec<String>> = words.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    let words = words.ok_or_else(|| Said::usage("ab: what was typed is not UTF-8\n"))?;
    let mut getopt = Getopt::new(&words);
    let mut typing = Typing::new(read);
    let mut long = extras::Words::default();
    let mut complaint = String::new();
    loop {
        match getopt.next() {
            Next::Option(letter, value) => typing.option(letter, value)?,
            Next::Long(name) => long.take(name, &mut getopt),
            Next::Illegal(letter) => complaint = format!("ab: illegal option -- {letter}\n"),
            Next::Missing(letter) => complaint = format!("ab: option requires an argument -- {letter}\n"),
            Next::End => break,
        }
        if !complaint.is_empty() {
            break;
        }
    }
    let mut flags = typing.flags;
    flags.extras = long.meant().map_err(|error| usage::of_extras(&error))?;
    let refused = |error: Said| Said { err: format!("{complaint}{}", error.err), ..error };
    let [url] = getopt.left() else {
        return Err(refused(Said::usage("ab: wrong number of arguments\n")));
    };
    flags.target = Target::parse(url).ok_or_else(|| refused(Said::usage("ab: invalid URL\n")))?;
    let mut flags = typing.amounts.checked(flags).and_then(tls_checked).map_err(refused)?;
    flags.complaint = complaint;
    Ok(flags)
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

/// Numbers as typed; they are judged when all is read.
struct Amounts {
    requests: i32,
    by_time: bool,
    concurrency: i32,
}

/// The flags so far, and what is only known at the end.
struct Typing<'a> {
    flags: AbFlags,
    amounts: Amounts,
    /// Whether a method was chosen: GET is only the default.
    chosen: bool,
    read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
}

impl<'a> Typing<'a> {
    fn new(read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>) -> Self {
        let amounts = Amounts { requests: 1, by_time: false, concurrency: 1 };
        Typing { flags: AbFlags::untouched(), amounts, chosen: false, read }
    }

    /// Takes one option. One that is not among these is not in the option string either.
    fn option(&mut self, letter: char, value: &str) -> Result<(), Said> {
        match letter {
            'h' => return Err(Said::usage("")),
            'V' => {
                let html = self.flags.output.html.is_some();
                return Err(Said { out: progress::banner(html).to_owned(), err: String::new(), code: 0 });
            }
            'n' | 'c' | 't' | 's' | 'b' => self.amount(letter, atoi(value))?,
            'p' => self.body(Method::Post, "POST", value)?,
            'u' => self.body(Method::Put, "PUT", value)?,
            'i' => self.choose(Method::Head, "HEAD")?,
            'm' => {
                // Unlike the others it asks nobody, so it may follow a body, and nothing may follow it.
                self.flags.method = Method::Custom(value.to_owned());
                self.chosen = true;
            }
            'A' => self.credentials("Authorization", "Authentication", value)?,
            'P' => self.credentials("Proxy-Authorization", "Proxy", value)?,
            'H' => self.field(value),
            'v' | 'w' | 'x' | 'y' | 'z' | 'q' | 'd' | 'S' | 'l' | 'g' | 'e' => self.flags.output.option(letter, value),
            'Z' | 'f' | 'E' => self.flags.tls.option(letter, value),
            'I' => self.flags.tls.sni = false,
            _ => self.rest(letter, value),
        }
        Ok(())
    }

    fn rest(&mut self, letter: char, value: &str) {
        let flags = &mut self.flags;
        let text = || Some(value.to_owned());
        match letter {
            'k' => flags.keep_alive = true,
            'r' => flags.go_on = true,
            'T' => flags.content_type = text(),
            'C' => flags.cookie = text(),
            'B' => flags.local = text(),
            'X' => {
                let (host, port) = value.split_once(':').map_or((value, None), |(host, port)| (host, Some(port)));
                let before = flags.proxy.as_ref().map_or(0, |(_, port)| *port);
                flags.proxy = Some((host.to_owned(), port.map_or(before, atoi)));
            }
            _ => {}
        }
    }

    fn amount(&mut self, letter: char, number: i32) -> Result<(), Said> {
        match letter {
            'n' if number <= 0 => return Err(Said::error("Invalid number of requests")),
            'n' => (self.amounts.requests, self.amounts.by_time) = (number, false),
            't' => {
                self.flags.seconds = Some(number);
                (self.amounts.requests, self.amounts.by_time) = (TIMED_REQUESTS, true);
            }
            'c' => self.amounts.concurrency = number,
            's' => self.flags.wait_seconds = number,
            _ => self.flags.window = number,
        }
        Ok(())
    }

    fn choose(&mut self, method: Method, name: &str) -> Result<(), Said> {
        if self.chosen {
            return Err(Said::error(&format!("Cannot mix {name} with other methods")));
        }
        self.flags.method = method;
        self.chosen = true;
        Ok(())
    }

    fn body(&mut self, method: Method, name: &str, file: &str) -> Result<(), Said> {
        self.choose(method, name)?;
        let body = (self.read)(file).map_err(|err| Said { out: String::new(), err, code: 1 })?;
        self.flags.body = Some(body);
        Ok(())
    }

    fn credentials(&mut self, field: &str, whose: &str, value: &str) -> Result<(), Said> {
        let value = value.trim_start_matches(is_space);
        if value.len() > MAX_CREDENTIALS {
            return Err(Said::error(&format!("{whose} credentials too long")));
        }
        self.flags.credentials += &format!("{field}: Basic {}\r\n", base64::encode(value.as_bytes()));
        Ok(())
    }

    fn field(&mut self, value: &str) {
        let typed = &mut self.flags.typed;
        let begins = |name: &str| value.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if begins("Host:") {
            typed.host = Some(value["Host:".len()..].trim_matches(is_space).to_owned());
        }
        typed.accept |= begins("Accept:");
        typed.user_agent |= begins("User-Agent:");
        self.flags.fields += &format!("{value}\r\n");
    }
}

impl Amounts {
    /// Judges them in ab's order.
    fn checked(&self, mut flags: AbFlags) -> Result<AbFlags, Said> {
        if !(0..=MAX_CONCURRENCY).contains(&self.concurrency) {
            return Err(Said::usage(&format!("ab: Invalid Concurrency [Range 0..{MAX_CONCURRENCY}]\n")));
        }
        if self.concurrency > self.requests {
            let why = "ab: Cannot use concurrency level greater than total number of requests\n";
            return Err(Said::usage(why));
        }
        flags.requests = self.requests.unsigned_abs();
        flags.requests_by_time = self.by_time;
        flags.concurrency = self.concurrency.unsigned_abs();
        if flags.concurrency == 0 {
            return Err(nothing_to_poll(&flags));
        }
        Ok(flags)
    }
}

/// With `-c 0` ab gets as far as asking the kernel to watch no connections.
fn nothing_to_poll(flags: &AbFlags) -> Said {
    let ending = trouble::refused("apr_pollset_poll", (i32::from(USAGE), "Invalid argument"), 0);
    Said { out: flags.opening(), err: ending.err, code: ending.code }
}

/// Suites and name, which depend on the URL. Without TLS nobody asks whether they could be had.
fn tls_checked(mut flags: AbFlags) -> Result<AbFlags, Said> {
    if !flags.target.tls {
        return Ok(flags);
    }
    let offered = tls::suites(flags.tls.suites.as_deref(), flags.tls.protocol);
    flags.tls.offered = offered.map_err(|err| Said { out: String::new(), err, code: 1 })?;
    if flags.tls.sni {
        flags.tls.server_name = flags.target.server_name(flags.typed.host.as_deref());
    }
    Ok(flags)
}

impl AbFlags {
    /// Before any option.
    fn untouched() -> AbFlags {
        AbFlags {
            complaint: String::new(),
            target: Target::default(),
            method: Method::Get,
            body: None,
            content_type: None,
            cookie: None,
            credentials: String::new(),
            fields: String::new(),
            typed: TypedFields::default(),
            keep_alive: false,
            requests: 1,
            requests_by_time: false,
            concurrency: 1,
            seconds: None,
            wait_seconds: 30,
            window: 0,
            local: None,
            proxy: None,
            go_on: false,
            tls: TlsFlags {
                protocol: Protocol::All,
                suites: None,
                offered: Vec::new(),
                certificate: None,
                sni: true,
                server_name: None,
            },
            output: OutputFlags {
                verbosity: 0,
                quiet: false,
                html: None,
                show: text::Show::default(),
                any_length: false,
                gnuplot: None,
                csv: None,
            },
            extras: Extras::default(),
        }
    }

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

impl OutputFlags {
    fn option(&mut self, letter: char, value: &str) {
        let text = || value.to_owned();
        match letter {
            'v' => self.verbosity = atoi(value),
            'q' => self.quiet = true,
            'd' => self.show.percentiles = false,
            'S' => self.show.confidence = false,
            'l' => self.any_length = true,
            'g' => self.gnuplot = Some(text()),
            'e' => self.csv = Some(text()),
            _ => {
                let attributes = self.html.get_or_insert_default();
                match letter {
                    'x' => attributes.table = text(),
                    'y' => attributes.row = text(),
                    'z' => attributes.cell = text(),
                    _ => {}
                }
            }
        }
    }
}

impl TlsFlags {
    fn option(&mut self, letter: char, value: &str) {
        match letter {
            'Z' => self.suites = Some(value.to_owned()),
            'E' => self.certificate = Some(value.to_owned()),
            _ => self.protocol = Protocol::parse(value).unwrap_or(self.protocol),
        }
    }
}

/// C's isspace.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

#[cfg(test)]
mod tests;
