//! What `webdyno serve` was told, from flags or from a plan's directives; both end in the same [`Options`].

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Connections the server works on at once when nobody says how many.
const DEFAULT_WORKERS: u32 = 16;
/// Every worker is a thread with an event loop and five descriptors; with more, common limits of the system would be met first.
const MAX_WORKERS: u32 = 1000;

/// Text of `webdyno serve --help`.
pub(crate) const HELP: &str = "\
A small web server with honest workloads and a worker limit, to try webdyno on.

Usage: webdyno serve [--listen ADDR:PORT] [--workers N] [--keep-alive on|off] [--count SOCKET]

  --listen ADDR:PORT     where to listen; port 0 takes a free one [default: 127.0.0.1:0]
  --workers N            connections it works on at once, 1 to 1000 [default: 16]
  --keep-alive on|off    whether a connection may carry more than one request [default: on]
  --count SOCKET         tell whoever connects to this unix socket how many requests were served
  -h, --help             this text

A worker holds its connection from accept to close, as Apache's prefork does; an idle one for 5 s.
Further connections wait, not accepted, in the kernel's queue.

  GET /                  a small page
  GET /static/BYTES      a body of so many bytes, up to 64M
  GET /cpu/DURATION      burns so much CPU time
  GET /sleep/DURATION    waits so long, as for a database
  GET /memory/BYTES      takes memory, touches every page, gives it back; up to 16G
  GET /@settings         what is in force, one `Name: value` a line

BYTES is a whole number, with K, M or G for powers of 1024: 10K.
DURATION is a whole number with us, ms or s, up to 60s: 5ms.

The first line of its output is `listening on ADDR:PORT`. It ends on SIGTERM or Ctrl-C.
Exit codes: 0 ended by a signal, 2 bad usage, 4 it cannot run,
5 the address is in use or not permitted.
";

/// Whether a connection may carry more than one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepAlive {
    /// It may.
    On,
    /// It is closed after the first answer.
    Off,
}

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// Where to listen.
    pub(crate) listen: SocketAddr,
    /// Connections worked on at once.
    pub(crate) workers: u32,
    /// Whether connections stay open.
    pub(crate) keep_alive: KeepAlive,
    /// A unix socket to be made, where it tells how many requests it served.
    pub(crate) count: Option<PathBuf>,
}

/// What the flags ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To serve.
    Serve(Options),
    /// To say how to use it.
    Help,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            workers: DEFAULT_WORKERS,
            keep_alive: KeepAlive::On,
            count: None,
        }
    }
}

impl Options {
    /// Reads flags; the error is one sentence.
    pub(crate) fn from_flags(args: &[OsString]) -> Result<Asked, String> {
        let mut options = Options::default();
        let mut args = args.iter().map(|arg| arg.to_str().ok_or_else(|| format!("{} is not UTF-8", arg.display())));
        while let Some(arg) = args.next().transpose()? {
            let (flag, joined) = match arg.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
                _ => (arg, None),
            };
            if ["-h", "--help"].contains(&arg) {
                return Ok(Asked::Help);
            }
            if !["--listen", "--workers", "--keep-alive", "--count"].contains(&flag) {
                return Err(format!("there is no `{flag}`"));
            }
            let value = match joined {
                Some(value) => value,
                None => args.next().transpose()?.ok_or_else(|| format!("{flag} needs a value"))?,
            };
            let refused = |what: String| format!("{flag}: {what}");
            match flag {
                "--listen" => {
                    let form = |_| format!("--listen: `{value}` is not an address and port such as 127.0.0.1:8080");
                    options.listen = value.parse().map_err(form)?;
                }
                "--workers" => options.workers = workers(value).map_err(refused)?,
                "--count" => options.count = Some(value.into()),
                _ => options.keep_alive = KeepAlive::parse(value).map_err(refused)?,
            }
        }
        Ok(Asked::Serve(options))
    }

    /// Takes over one line of a plan, `Workers N` or `KeepAlive On|Off`; the error is one sentence.
    pub(crate) fn apply(&mut self, directive: &str) -> Result<(), String> {
        let mut words = directive.split_whitespace();
        let (name, value, rest) = (words.next().unwrap_or_default(), words.next(), words.next());
        let value = value.filter(|_| rest.is_none());
        if name.eq_ignore_ascii_case("Workers") {
            self.workers = workers(value.ok_or("takes one number")?)?;
        } else if name.eq_ignore_ascii_case("KeepAlive") {
            self.keep_alive = KeepAlive::parse(value.ok_or("takes On or Off")?)?;
        } else {
            return Err("no such directive; there is `Workers N` and `KeepAlive On|Off`".to_owned());
        }
        Ok(())
    }

    /// The flags that say the same.
    pub(crate) fn to_flags(&self) -> Vec<OsString> {
        ["serve", "--listen", &self.listen.to_string(), "--workers", &self.workers.to_string()]
            .into_iter()
            .chain(["--keep-alive", self.keep_alive.name()])
            .map(OsString::from)
            .chain(self.count.iter().flat_map(|socket| ["--count".into(), socket.clone().into()]))
            .collect()
    }
}

impl KeepAlive {
    /// As a directive says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            KeepAlive::On => "On",
            KeepAlive::Off => "Off",
        }
    }

    fn parse(text: &str) -> Result<KeepAlive, String> {
        [KeepAlive::On, KeepAlive::Off]
            .into_iter()
            .find(|choice| choice.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("`{text}` is neither on nor off"))
    }
}

fn workers(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=MAX_WORKERS).contains(n))
        .ok_or_else(|| format!("`{text}` is not a number from 1 to {MAX_WORKERS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &str, expected: Result<&str, &str>) {
        let args: Vec<OsString> = args.split_whitespace().map(OsString::from).collect();
        let got = Options::from_flags(&args).map(|asked| match asked {
            Asked::Help => "help".to_owned(),
            Asked::Serve(o) => format!("{} {} {}", o.listen, o.workers, o.keep_alive.name()),
        });
        assert_eq!(got, expected.map(str::to_owned).map_err(str::to_owned), "{args:?}");
    }

    #[test]
    fn the_help_fits_into_a_terminal() {
        assert_eq!(HELP.lines().find(|line| line.len() > 100), None);
    }

    #[test]
    fn flags() {
        check("", Ok("127.0.0.1:0 16 On"));
        check("--listen [::1]:80 --workers=3 --keep-alive off", Ok("[::1]:80 3 Off"));
        check("--workers 3 --help", Ok("help"));
        check("--workers", Err("--workers needs a value"));
        check("--workers 0", Err("--workers: `0` is not a number from 1 to 1000"));
        check("--workers 2x", Err("--workers: `2x` is not a number from 1 to 1000"));
        check("--keep-alive maybe", Err("--keep-alive: `maybe` is neither on nor off"));
        check("--listen 8080", Err("--listen: `8080` is not an address and port such as 127.0.0.1:8080"));
        check("--threads 2", Err("there is no `--threads`"));
        check("now", Err("there is no `now`"));
    }

    fn check_directive(text: &str, expected: Result<(u32, KeepAlive), &str>) {
        let mut options = Options::default();
        let got = options.apply(text).map(|()| (options.workers, options.keep_alive));
        assert_eq!(got, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn directives() {
        check_directive("Workers 4", Ok((4, KeepAlive::On)));
        check_directive("  keepalive off", Ok((16, KeepAlive::Off)));
        check_directive("Workers", Err("takes one number"));
        check_directive("Workers 4 5", Err("takes one number"));
        check_directive("Workers four", Err("`four` is not a number from 1 to 1000"));
        check_directive("KeepAlive Maybe", Err("`Maybe` is neither on nor off"));
        check_directive("Timeout 3", Err("no such directive; there is `Workers N` and `KeepAlive On|Off`"));
    }

    #[test]
    fn flags_and_options_say_the_same() {
        let options =
            Options { workers: 7, keep_alive: KeepAlive::Off, count: Some("/a b".into()), ..Options::default() };
        assert_eq!(Options::from_flags(&options.to_flags()[1..]), Ok(Asked::Serve(options)));
    }
}
