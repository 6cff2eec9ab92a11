//! The machine's own PHP-FPM, to which a server of the machine's, or a copy of it, passes requests: how its pool fares, where it tells that
//! without one of its processes.

use super::FPM;
use super::fpm::FpmStatusSource;
use crate::control::POLL;
use crate::running::{door, pools_of};
use model::check::{Pool, Unseen};
use model::status::FpmStatus;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// So long a pool may take to answer: a plan may just have had FPM started anew, which waits for processes at work first.
const ANEW: Duration = Duration::from_secs(5);
/// So many places and files are named; more would only be a long line.
const NAMED: usize = 3;

/// What is known of the pool behind a server.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// The first processes of all that requests are passed to, asked or not.
    pub(crate) roots: Vec<u32>,
    /// Where it tells how it fares.
    pub(crate) status: Option<FpmStatusSource>,
    /// Its settings, as its files say them, where it does.
    pub(crate) values: BTreeMap<String, String>,
    /// Why it is not asked.
    pub(crate) note: Option<String>,
}

impl Behind {
    /// The pool to which the server with this first process passes requests; nothing where there is none.
    pub(crate) fn of(root: u32) -> Behind {
        let (pools, unseen) = pools_of(root);
        Behind { roots: pools.iter().map(|pool| pool.root).collect(), ..Behind::of_one(&pools, &unseen) }
    }

    /// The one pool that there can be; where there may be another one, the load may reach that.
    fn of_one(pools: &[Pool], unseen: &[Unseen]) -> Behind {
        let silent = |note: String| Behind { note: Some(note), ..Behind::default() };
        let unseen: Vec<String> = unseen.iter().filter_map(said).take(NAMED).collect();
        if !unseen.is_empty() {
            let why = unseen.join(", and ");
            return silent(format!(
                "no pool of {FPM} is asked how it fares: {why}; which pool the load reaches is not known"
            ));
        }
        match pools {
            [] => Behind::default(),
            [pool] => match asked(pool) {
                Ok(status) => Behind { status: Some(status), values: values(pool), ..Behind::default() },
                Err(why) => silent(format!("{FPM}'s pool `{}` is not asked how it fares: {why}", pool.name)),
            },
            pools => {
                let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
                silent(format!(
                    "no pool of {FPM} is asked how it fares: requests are passed to several ({}), and which of them the load reaches is not known",
                    names.join(", ")
                ))
            }
        }
    }
}

/// What hides a pool, in words.
fn said(unseen: &Unseen) -> Option<String> {
    match unseen {
        Unseen::File(file) => Some(format!("a file cannot be read ({file})")),
        Unseen::Pool(places) => Some(format!("requests are passed to where none is found ({places})")),
        _ => None,
    }
}

/// Where a pool tells its status, once it has.
fn asked(pool: &Pool) -> Result<FpmStatusSource, String> {
    let said = |name: &str| pool.setting(name).map(|setting| setting.value.as_str());
    let (Some(path), Some(listen)) = (said("pm.status_path"), said("pm.status_listen")) else {
        let socket = if pool.listen.starts_with('/') { &format!("{}.status", pool.listen) } else { "127.0.0.1:9001" };
        let ways = [("pm.status_path", "/fpm-status"), ("pm.status_listen", socket)];
        let missing = ways.into_iter().filter(|(name, _)| said(name).is_none());
        let missing: Vec<String> = missing.map(|(name, value)| format!("`{name} = {value}`")).collect();
        let file = pool.settings.first().map_or_else(String::new, |it| format!(" to {}", it.file.display()));
        return Err(format!(
            "that takes one of its processes unless it has a socket for it; add lines such as {}{file}",
            missing.join(" and ")
        ));
    };
    let at = door(pool.root, listen).ok_or_else(|| format!("pm.status_listen = {listen} is no address"))?;
    let source = FpmStatusSource::of_the_machine(at, path.to_owned(), &pool.listen);
    answer(&source).map(|_| source).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{error} ({listen}); only root and whom its listen.owner, listen.group and listen.mode let in may")
        }
        _ if may_pass(&error) => format!("it did not answer within {} s ({listen})", ANEW.as_secs()),
        _ => format!("{error} ({listen})"),
    })
}

/// What it tells, once it does.
fn answer(source: &FpmStatusSource) -> io::Result<FpmStatus> {
    let since = Instant::now();
    loop {
        match source.pool() {
            Err(error) if may_pass(&error) && since.elapsed() < ANEW => std::thread::sleep(POLL),
            told => return told,
        }
    }
}

/// Whether FPM only has nobody to answer just now, or whoever took the question was ended.
fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | UnexpectedEof | ConnectionReset | BrokenPipe)
}

/// What may limit it.
fn values(pool: &Pool) -> BTreeMap<String, String> {
    let of_processes = pool.settings.iter().filter(|it| it.name.starts_with("pm") && !it.name.starts_with("pm.status"));
    of_processes.map(|setting| (setting.name.clone(), setting.value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::check::Setting;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    fn pool(name: &str, listen: &str, settings: &[(&str, &str)]) -> Pool {
        let setting = |(name, value): &(&str, &str)| Setting {
            name: (*name).to_owned(),
            written: (*name).to_owned(),
            value: (*value).to_owned(),
            file: "/etc/php/www.conf".into(),
            line: 1,
            section: None,
        };
        let settings = [("listen", listen)].iter().chain(settings).map(setting).collect();
        Pool { name: name.to_owned(), listen: listen.to_owned(), settings, root: std::process::id(), workers: None }
    }

    #[test]
    fn what_is_missing_is_said() {
        let seen = |pools: &[Pool], unseen: &[Unseen], expected: Option<&str>| {
            let Behind { status, values, note, .. } = Behind::of_one(pools, unseen);
            assert_eq!((status.is_none(), values.is_empty(), note.as_deref()), (true, true, expected));
        };
        let check = |pools: &[Pool], expected| seen(pools, &[], expected);
        check(&[], None);
        check(
            &[pool("www", "/run/a.sock", &[("pm", "static")])],
            Some(
                "PHP-FPM's pool `www` is not asked how it fares: that takes one of its processes unless it has a socket for it; add lines such as \
                 `pm.status_path = /fpm-status` and `pm.status_listen = /run/a.sock.status` to /etc/php/www.conf",
            ),
        );
        check(
            &[pool("www", "9000", &[("pm.status_path", "/s")])],
            Some(
                "PHP-FPM's pool `www` is not asked how it fares: that takes one of its processes unless it has a socket for it; add lines such as \
                 `pm.status_listen = 127.0.0.1:9001` to /etc/php/www.conf",
            ),
        );
        let nobody = [("pm.status_path", "/s"), ("pm.status_listen", "/no/such.sock")];
        check(
            &[pool("www", "/run/a.sock", &nobody)],
            Some(
                "PHP-FPM's pool `www` is not asked how it fares: No such file or directory (os error 2) (/no/such.sock)",
            ),
        );
        check(
            &[pool("www", "/run/a.sock", &nobody), pool("api", "/run/b.sock", &nobody)],
            Some(
                "no pool of PHP-FPM is asked how it fares: requests are passed to several (www, api), and which of them the load reaches is not known",
            ),
        );
        seen(
            &[pool("www", "/run/a.sock", &nobody)],
            &[Unseen::Pool("php:9000".to_owned())],
            Some(
                "no pool of PHP-FPM is asked how it fares: requests are passed to where none is found (php:9000); which pool the load reaches is not known",
            ),
        );
        let file = "/etc/php/api.conf: Permission denied (os error 13)";
        seen(
            &[],
            &[Unseen::Owner, Unseen::File(file.to_owned())],
            Some(
                "no pool of PHP-FPM is asked how it fares: a file cannot be read (/etc/php/api.conf: Permission denied (os error 13)); which pool the load reaches is not known",
            ),
        );
    }

    #[test]
    fn a_pool_that_is_started_anew_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("status.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let told = "Content-type: text/plain\r\n\r\naccepted conn: 1\nidle processes: 2\nactive processes: 0\nmax children reached: 0\n";
        let fpm = std::thread::spawn(move || {
            // Who took the first question ends, and who took the second is at work for longer than anybody waits.
            drop(listener.accept().unwrap());
            let stuck = listener.accept().unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 500];
            let _ = stream.read(&mut question).unwrap();
            let out = [&[1, 6, 0, 1, 0, told.len() as u8, 0, 0], told.as_bytes()].concat();
            stream.write_all(&[&out[..], &[1, 3, 0, 1, 0, 8, 0, 0], &[0; 8]].concat()).unwrap();
            drop(stuck);
        });
        let listen = socket.display().to_string();
        let pool = pool("www", "/run/a.sock", &[("pm.status_path", "/s"), ("pm.status_listen", &listen)]);
        assert_eq!(asked(&pool).map(drop), Ok(()));
        fpm.join().unwrap();
    }
}
