//! What can be typed after `webdyno load`.

mod resolve;

pub(crate) use resolve::{Resolve, bare};

use super::{GENERAL, LangFlag, SHOW, StoreFlag};
use clap::{ArgAction, Args, ValueEnum};
use model::Nanos;
use model::plan::Origin;
use model::threshold::Threshold;
use std::net::IpAddr;
use std::path::PathBuf;

/// `webdyno load`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct LoadFlags {
    /// What to load: `http[s]://HOST[:PORT]/PATH`; the scheme may be left out
    pub(crate) url: String,

    /// Connections
    #[arg(short = 'c', long, value_name = "N", default_value_t = 10, help_heading = WHEN)]
    pub(crate) connections: u32,
    /// Requests in all; with `-d` whichever comes first
    #[arg(short = 'n', long, value_name = "N", help_heading = WHEN)]
    pub(crate) requests: Option<u64>,
    /// How long [default: 10s, unless requests or stages end it]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = time, help_heading = WHEN)]
    pub(crate) duration: Option<Nanos>,
    /// Requests per second, whether the server keeps up or not: an open loop
    #[arg(short = 'r', long, value_name = "RATE", value_parser = rate, help_heading = WHEN)]
    pub(crate) rate: Option<f64>,
    /// An open loop in stages: `30s:100/s,1m:100..500/s` holds 100 a second, then climbs to 500
    #[arg(long, value_name = "LIST", conflicts_with = "rate", help_heading = WHEN)]
    pub(crate) stages: Option<String>,
    /// Arrivals as of many independent users, at random around the rate
    #[arg(long, help_heading = WHEN)]
    pub(crate) poisson: bool,
    /// Arrivals in groups of so many at once, at the same mean rate
    #[arg(long, value_name = "N", conflicts_with = "poisson", help_heading = WHEN)]
    pub(crate) burst: Option<u32>,
    /// Load for so long before anything counts
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = WHEN)]
    pub(crate) warmup: Option<Nanos>,

    /// Method [default: GET, with a body POST]
    #[arg(short = 'm', long, value_name = "METHOD", help_heading = WHAT)]
    pub(crate) method: Option<String>,
    /// Header field to add; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = WHAT)]
    pub(crate) headers: Vec<String>,
    /// Body to send; its type is said by `-H 'Content-Type: ...'`
    #[arg(short = 'b', long, value_name = "TEXT", allow_hyphen_values = true, help_heading = WHAT)]
    pub(crate) body: Option<String>,
    /// File whose content is the body
    #[arg(long, value_name = "FILE", conflicts_with = "body", help_heading = WHAT)]
    pub(crate) body_file: Option<PathBuf>,
    /// Several requests, by weight, from a TOML file with `[[request]]` tables (docs/load-requests.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body", "body_file"], help_heading = WHAT)]
    pub(crate) mix: Option<PathBuf>,
    /// Send the requests of this access log again, at the times it says; .gz is read too, and - is standard input
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["mix", "method", "body", "body_file", "rate", "stages", "poisson", "burst", "same_length"],
          help_heading = WHAT)]
    pub(crate) replay: Option<PathBuf>,
    /// The log's format: common, combined, vhost_combined, or the server's own [default: guessed]
    #[arg(long, value_name = "FORMAT", requires = "replay", help_heading = WHAT)]
    pub(crate) log_format: Option<String>,
    /// Replay so many times faster; 0.5 is half as fast
    #[arg(long, value_name = "FACTOR", requires = "replay", help_heading = WHAT)]
    pub(crate) speed: Option<f64>,
    /// Replay methods that may change something, too; without their bodies, which no log has
    #[arg(long, requires = "replay", help_heading = WHAT)]
    pub(crate) unsafe_methods: bool,
    /// User and password for basic authentication; never stored
    #[arg(long, value_name = "NAME:PASSWORD", help_heading = WHAT)]
    pub(crate) user: Option<String>,
    /// Cookie to send with every request; may be repeated; never stored
    #[arg(long, value_name = "NAME=VALUE", help_heading = WHAT)]
    pub(crate) cookie: Vec<String>,
    /// Let each connection keep the cookies that the server sets; with --page each user, from one visit to the next
    #[arg(long, help_heading = WHAT)]
    pub(crate) cookies: bool,
    /// What an answer must be to count as good, such as 'status = 200', 'length >= 10', 'header content-type contains html',
    /// 'body contains OK', 'body matches REGEX'; may be repeated
    #[arg(long = "check", value_name = "CHECK", help_heading = WHAT)]
    pub(crate) checks: Vec<String>,

    /// A new connection for every request
    #[arg(long, help_heading = HOW)]
    pub(crate) close: bool,
    /// HTTP version
    #[arg(long, value_enum, default_value = "1.1", help_heading = HOW)]
    pub(crate) http: Http,
    /// Requests sent on a connection before the first is answered
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = HOW)]
    pub(crate) pipeline: u32,
    /// The longest a request may take
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", help_heading = HOW)]
    pub(crate) timeout: Nanos,
    /// Count answers whose body has another length than the first one as failed
    #[arg(long, help_heading = HOW)]
    pub(crate) same_length: bool,
    /// Worker threads [default: one, or more for many connections]
    #[arg(short = 't', long, value_name = "N", help_heading = HOW)]
    pub(crate) threads: Option<u32>,
    /// Run the workers on these CPUs only
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = HOW)]
    pub(crate) cpus: Vec<u32>,
    /// Ask the kernel again and again instead of sleeping: less latency, a whole CPU per thread
    #[arg(long, help_heading = HOW)]
    pub(crate) busy_poll: bool,
    /// Seed of everything random; printed with every load
    #[arg(long, value_name = "N", help_heading = HOW)]
    pub(crate) seed: Option<u64>,
    /// Requests sent one at a time before the load, to see what comes back; 0 for none
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = HOW)]
    pub(crate) preflight: u64,
    #[command(flatten)]
    pub(crate) users: UserFlags,
    /// An independent visitor comes by so often while it is measured, on a new connection each time
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s", help_heading = HOW)]
    pub(crate) probe: Nanos,
    /// No visitor
    #[arg(long, conflicts_with = "probe", help_heading = HOW)]
    pub(crate) no_probe: bool,
    #[command(flatten)]
    pub(crate) search: SearchFlags,
    #[command(flatten)]
    pub(crate) way: WayFlags,
    /// Send it from this machine instead, `ssh:USER@HOST`: the generator is copied there and ends with the load (docs/guide.md)
    #[arg(long, value_name = "MACHINE", value_parser = Origin::parse,
          conflicts_with_all = ["unix", "proxy", "cacert", "cert", "page"], help_heading = WAY)]
    pub(crate) from: Option<Origin>,
    /// Say that you operate these hosts, so that they may be loaded; needed once unless it is this machine
    #[arg(long, value_name = "HOST", value_delimiter = ',', help_heading = HOW)]
    pub(crate) i_operate: Vec<String>,

    /// Say what would be sent, and send nothing
    #[arg(long, help_heading = SHOW)]
    pub(crate) dry_run: bool,
    /// What must hold, such as 'p99 < 200ms' or 'failed = 0'; a miss ends with exit code 1; may be repeated
    #[arg(long, value_name = "EXPECTATION", value_parser = threshold, help_heading = SHOW)]
    pub(crate) expect: Vec<Threshold>,
    /// JSON on standard output instead of the report
    #[arg(long, group = "form", help_heading = SHOW)]
    pub(crate) json: bool,
    /// CSV, one row a second, on standard output instead of the report
    #[arg(long, group = "form", help_heading = SHOW)]
    pub(crate) csv: bool,
    /// OpenMetrics on standard output instead of the report
    #[arg(long, group = "form", help_heading = SHOW)]
    pub(crate) openmetrics: bool,
    /// No live screen or progress on the terminal
    #[arg(long, help_heading = SHOW)]
    pub(crate) plain: bool,
    #[command(flatten, next_help_heading = SHOW)]
    pub(crate) lang: LangFlag,

    #[command(flatten, next_help_heading = GENERAL)]
    pub(crate) store: StoreFlag,
    /// Keep nothing in the store
    #[arg(long, conflicts_with = "path", help_heading = GENERAL)]
    pub(crate) no_store: bool,
    /// Print help
    #[arg(short, long, action = ArgAction::Help, help_heading = GENERAL)]
    help: (),
}

/// A search for the highest rate instead of one load.
#[derive(Debug, Args)]
pub(crate) struct SearchFlags {
    /// Search for the highest rate at which this holds, such as 'p99 < 50ms', in steps of `-d` each; may be repeated
    #[arg(long, value_name = "EXPECTATION", value_parser = threshold,
          conflicts_with_all = ["requests", "stages", "burst", "replay", "page", "expect", "csv", "openmetrics"],
          help_heading = SEARCH)]
    pub(crate) find_rate: Vec<Threshold>,
    /// How close the answer is to the lowest rate that missed
    #[arg(long, value_name = "PERCENT", value_parser = precision, default_value = "5%", requires = "find_rate",
          help_heading = SEARCH)]
    pub(crate) precision: f64,
}

/// Users instead of single requests.
#[derive(Debug, Args)]
pub(crate) struct UserFlags {
    /// Users who fetch the page and what its HTML names on this host; the rate then counts users, and without one there are
    /// always as many as the connections allow
    #[arg(long, conflicts_with_all = ["mix", "replay", "pipeline", "close"], help_heading = USERS)]
    pub(crate) page: bool,
    /// Connections of one user's browser
    #[arg(long, value_name = "N", default_value_t = 6, requires = "page", help_heading = USERS)]
    pub(crate) browser_connections: u32,
    /// Mean time between a page and the next click; the times are exponential
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5s", requires = "page", help_heading = USERS)]
    pub(crate) think: Nanos,
    /// Share of users who click again after a page; the others leave
    #[arg(long = "return", value_name = "SHARE", value_parser = share, default_value = "0.5", requires = "page", help_heading = USERS)]
    pub(crate) returns: f64,
    /// A user who has waited so long for a page leaves
    #[arg(long, value_name = "TIME", value_parser = time, requires = "page", help_heading = USERS)]
    pub(crate) patience: Option<Nanos>,
    /// A user who has waited so long asks again and abandons what is on its way, as by F5
    #[arg(long, value_name = "TIME", value_parser = time, requires = "page", help_heading = USERS)]
    pub(crate) reload_after: Option<Nanos>,
    /// How often a user does that for one page at most
    #[arg(long, value_name = "N", default_value_t = 3, requires = "page", help_heading = USERS)]
    pub(crate) reloads: u32,
}

/// The way to the server.
#[derive(Debug, Default, Args)]
pub(crate) struct WayFlags {
    /// Connect to this socket file instead of the URL's host
    #[arg(long, value_name = "PATH", conflicts_with_all = ["connect_to", "local"], help_heading = WAY)]
    pub(crate) unix: Option<PathBuf>,
    /// Connect to this host and port; the URL's host is asked for all the same
    #[arg(long, value_name = "HOST[:PORT]", help_heading = WAY)]
    pub(crate) connect_to: Option<String>,
    /// Connect to these addresses when it is to HOST and PORT, each new connection to the next; no name server is asked; may be
    /// repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS[,ADDRESS...]", value_parser = Resolve::parse, conflicts_with = "unix",
          help_heading = WAY)]
    pub(crate) resolve: Vec<Resolve>,
    /// Send everything through this proxy: `http://[NAME:PASSWORD@]HOST:PORT`; https goes through a tunnel (CONNECT)
    #[arg(long, value_name = "URL", conflicts_with_all = ["unix", "connect_to"], help_heading = WAY)]
    pub(crate) proxy: Option<String>,
    /// Connect from these addresses of this machine, in turn
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', help_heading = WAY)]
    pub(crate) local: Vec<IpAddr>,
    /// TLS: believe any certificate
    #[arg(long, conflicts_with = "cacert", help_heading = WAY)]
    pub(crate) insecure: bool,
    /// TLS: believe the authorities in this PEM file, instead of those of this machine
    #[arg(long, value_name = "FILE", help_heading = WAY)]
    pub(crate) cacert: Option<PathBuf>,
    /// TLS: show this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key", help_heading = WAY)]
    pub(crate) cert: Option<PathBuf>,
    /// TLS: the key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = WAY)]
    pub(crate) key: Option<PathBuf>,
    /// TLS: the server name to ask for and to expect [default: the URL's host]
    #[arg(long, value_name = "NAME", help_heading = WAY)]
    pub(crate) sni: Option<String>,
    /// TLS: speak this version only
    #[arg(long, value_enum, value_name = "VERSION", help_heading = WAY)]
    pub(crate) tls: Option<Tls>,
    /// TLS: a full handshake for every connection
    #[arg(long, help_heading = WAY)]
    pub(crate) no_resumption: bool,
}

/// Versions of TLS.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Tls {
    #[value(name = "1.2")]
    OneTwo,
    #[value(name = "1.3")]
    OneThree,
}

const SEARCH: &str = "The highest rate";
const USERS: &str = "Users";
const WAY: &str = "The way there";
const WHEN: &str = "How much and when";
const WHAT: &str = "What";
const HOW: &str = "How";

const EXAMPLES: &str = "Examples:
  webdyno load http://localhost/                          10 connections, 10 s, each as fast as it is answered
  webdyno load -c 100 -n 100000 http://localhost/         100,000 requests over 100 connections
  webdyno load -c 100 -r 2000/s -d 1m http://localhost/   2000 requests a second, whether it keeps up or not
  webdyno load 'http://localhost/item/${random:1-1000}'   another path each time: also ${counter} and ${hex:16}
  webdyno load --replay access.log http://localhost/      what visitors did, when they did it";

/// HTTP versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Http {
    #[value(name = "1.0")]
    One,
    #[value(name = "1.1")]
    OneOne,
}

pub(super) fn time(text: &str) -> Result<Nanos, String> {
    match units::duration_ns(text) {
        Ok(0) => Err("must be longer than 0".to_owned()),
        Ok(length) => Ok(length),
        Err(error) => Err(error.to_string()),
    }
}

fn threshold(text: &str) -> Result<Threshold, String> {
    Threshold::parse(text).map_err(|error| error.to_string())
}

fn precision(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>() {
        Ok(percent) if (0.1..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("must be from 0.1% to 50%".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be a number from 0 to 1".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match units::rate(text) {
        Ok(rate) if rate > 0.0 => Ok(rate),
        Ok(_) => Err("must be more than 0".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
