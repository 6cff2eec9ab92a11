//! Options taking effect one by one, in the order in which they were typed, and what can only be judged at their end.

use super::getopt::atoi;
use super::{AbFlags, Extras, Method, OutputFlags, Protocol, Said, Target, TlsFlags, TypedFields, USAGE, tls};
use crate::base64;
use report::ab::{progress, text, trouble};

/// The most connections (httpd 2.4.71; 20,000 in older ones).
const MAX_CONCURRENCY: i32 = 200_000;

/// What `-t` sets the number of requests to.
const TIMED_REQUESTS: i32 = 50_000;

/// The longest credentials, in bytes: in base64, with the zero at their end, they fill ab's buffer of 1024.
const MAX_CREDENTIALS: usize = 765;

/// Numbers as typed; they are judged when all is read.
struct Amounts {
    requests: i32,
    by_time: bool,
    concurrency: i32,
}

/// The flags so far, and what is only known at the end.
pub(super) struct Typing<'a> {
    flags: AbFlags,
    amounts: Amounts,
    /// Whether a method was chosen: GET is only the default.
    chosen: bool,
    read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
}

impl<'a> Typing<'a> {
    pub(super) fn new(read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>) -> Self {
        let amounts = Amounts { requests: 1, by_time: false, concurrency: 1 };
        Typing { flags: AbFlags::untouched(), amounts, chosen: false, read }
    }

    /// Takes one option. One that is not among these is not in the option string either.
    pub(super) fn option(&mut self, letter: char, value: &str) -> Result<(), Said> {
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

    /// The words behind the options, which must be one URL, and then what the options come to with it; in ab's order.
    pub(super) fn loads(self, words: &[String]) -> Result<AbFlags, Said> {
        let [url] = words else { return Err(Said::usage("ab: wrong number of arguments\n")) };
        let target = Target::parse(url).ok_or_else(|| Said::usage("ab: invalid URL\n"))?;
        self.amounts.checked(AbFlags { target, ..self.flags }).and_then(tls_checked)
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
            shown: String::new(),
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
