//! Any server that a command starts in the foreground and that can be told its port: gunicorn, node, Tomcat, a binary of one's own.
//!
//! What differs between variants are settings of the form `NAME=value`: the server gets them in its environment, and wherever its command
//! says `${NAME}`. Nothing is known of such a server but what it answers, so nothing is read back.

mod ready;

use crate::control::{GRACE, Logs, Starting, blame};
use crate::port::with_free_port;
use crate::program::{self, is_program};
use crate::site::folder;
use crate::{Control, Place, PlanKey, Running, ServerError};
use host::{Launch, StopBy};
use model::plan::{CommandServer, Directive, Ready, ServerSpec, Stop, StopSignal, Variant};
use model::trial::EffectiveSettings;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SERVER: &str = "the server's command";
/// What stands for the port that was found for it.
const PORT: &str = "port";
/// Where the address to listen on is told, beside it.
const ADDRESS: &str = "address";
/// The folder that this instance has for itself.
const FOLDER: &str = "folder";
/// How long a server may take to end that is asked in a way of the plan's: a command has to start first, Java's for one takes its time.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// Controls a server by the command that starts it.
#[derive(Debug, Clone)]
pub(crate) struct CommandControl {
    pub(crate) spec: CommandServer,
    pub(crate) plan: PathBuf,
}

/// Looks for the programs of a server whose package is named, as far as they are known before anything was built: a path may lead to what
/// a build step makes, and `${NAME}` is the variants' to say.
///
/// # Errors
/// When one is missing.
pub fn check_package(spec: &ServerSpec, plan: &Path) -> Result<(), ServerError> {
    let ServerSpec::Command(spec @ CommandServer { package: Some(_), .. }) = spec else { return Ok(()) };
    let control = CommandControl { spec: spec.clone(), plan: plan.to_owned() };
    let mut named = vec![("command", &spec.command[0])];
    if let Ready::Command(ask) = &spec.ready {
        named.push(("ready", &ask[0]));
    }
    if let Some(Stop::Command(stop)) = &spec.stop {
        named.push(("stop", &stop[0]));
    }
    let mut known = named.into_iter().filter(|(_, name)| !name.contains(['/', '$']));
    known.try_for_each(|(key, name)| control.program(key, name).map(drop))
}

type Settings = BTreeMap<String, String>;

/// A command with everything filled in.
struct Prepared {
    words: Vec<String>,
    settings: Settings,
    ready: Ready,
    stop: Option<Stop>,
}

impl Control for CommandControl {
    fn check(&self, dir: &Path, variant: &Variant) -> Result<(), ServerError> {
        self.prepared(variant, (Ipv4Addr::LOCALHOST, 1).into(), dir).map(|_| ())
    }

    fn start(&self, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError> {
        with_free_port(|port| self.start_at(place, variant, port))
    }
}

impl CommandControl {
    fn start_at(&self, place: &Place<'_>, variant: &Variant, port: u16) -> Result<Running, ServerError> {
        let address = SocketAddr::new(place.listen, port);
        let Prepared { words, settings, ready, stop } = self.prepared(variant, address, place.dir)?;
        folder(place.dir, 0o711)?;
        let (stdout, stderr) = (place.dir.join("stdout"), place.dir.join("stderr"));
        let own = [
            ("PORT".into(), port.to_string().into()),
            ("ADDRESS".into(), place.listen.to_string().into()),
            ("FOLDER".into(), place.dir.into()),
        ];
        let settings_too = settings.iter().map(|(name, value)| (name.into(), value.into()));
        let launch = Launch {
            program: PathBuf::from(&words[0]),
            args: words[1..].iter().map(OsString::from).collect(),
            env: kept().chain(settings_too).chain(own).collect(),
            dir: self.directory(),
            cpus: place.cpus.to_vec(),
            stdout: stdout.clone(),
            stderr: stderr.clone(),
        };
        let beside = |words: &[String], said: &Path| Launch {
            program: words[0].clone().into(),
            args: words[1..].iter().map(OsString::from).collect(),
            stdout: said.to_owned(),
            stderr: said.to_owned(),
            ..launch.clone()
        };
        let stop_said = place.dir.join("stop");
        let stop = self.stop(stop.as_ref(), |words| beside(words, &stop_said));
        let since = Instant::now();
        let child = match &stop {
            Some(stop) => place.host.spawn_with_stop(&launch, place.group, stop)?,
            None => place.host.spawn(&launch, place.group)?,
        };
        let logs = Logs(vec![stdout, stderr, stop_said]);
        let (timeout, interrupted) = (place.ready_timeout, place.interrupted);
        let mut starting = Starting { child, address, host: None, logs, server: SERVER, since, timeout, interrupted };
        let at = self.key("ready");
        let ready = match ready {
            Ready::Command(words) => {
                starting.wait_until_told(place.host, &beside(&words, &place.dir.join("ready")), &at)
            }
            Ready::Path(path) => starting.wait_until_ready(&path, Some(&at)),
        };
        if let Err(error) = ready {
            let taken = starting.logs.tail().to_ascii_lowercase().contains("address already in use");
            // Who is asked by a port that was taken would be somebody else.
            if stop.is_some() && (!taken || starting.child.is_alive()) {
                // What it has begun may be something that only its own stop ends. Why it is not ready says more than how it ended.
                let _ = starting.child.stop(GRACE);
            }
            return Err(if taken { ServerError::PortInUse(address) } else { error });
        }
        let server = words[0].rsplit('/').next().unwrap_or_default().to_owned();
        let mut running =
            starting.running(EffectiveSettings { server, values: settings, worker_limit: None }, Vec::new());
        running.stop_key = stop.map(|_| self.key(if self.spec.stop.is_some() { "stop" } else { "stop_within" }));
        Ok(running)
    }

    /// How it is asked to end, if the plan says so; `launch` makes a command.
    fn stop(&self, stop: Option<&Stop>, launch: impl FnOnce(&[String]) -> Launch) -> Option<host::Stop> {
        let within = self.spec.stop_within_ns.map(Duration::from_nanos);
        let by = match stop {
            Some(Stop::Command(words)) => StopBy::Command(launch(words)),
            Some(Stop::Signal(signal)) => StopBy::Signal(*signal),
            None => {
                within?;
                StopBy::Signal(StopSignal::Term)
            }
        };
        Some(host::Stop { by, within: within.unwrap_or(STOP_WITHIN) })
    }

    /// Everything filled in, and the programs found.
    fn prepared(&self, variant: &Variant, address: SocketAddr, dir: &Path) -> Result<Prepared, ServerError> {
        let known = Known { address, dir };
        let mut settings = Settings::new();
        for directive in self.spec.directives.iter().chain(&variant.directives) {
            let (name, value) = setting(directive).map_err(|why| blame(&self.plan, directive, why, SERVER))?;
            settings.insert(name, value);
        }
        let words = self.words("command", &self.spec.command, variant, &settings, &known)?;
        let ready = match &self.spec.ready {
            Ready::Path(path) => Ready::Path(path.clone()),
            Ready::Command(ask) => Ready::Command(self.words("ready", ask, variant, &settings, &known)?),
        };
        let stop = match &self.spec.stop {
            Some(Stop::Command(ask)) => Some(Stop::Command(self.words("stop", ask, variant, &settings, &known)?)),
            signal => signal.clone(),
        };
        Ok(Prepared { words, settings, ready, stop })
    }

    /// The words of a command, the first of which is a program that is there.
    fn words(
        &self,
        key: &'static str,
        words: &[String],
        variant: &Variant,
        settings: &Settings,
        known: &Known<'_>,
    ) -> Result<Vec<String>, ServerError> {
        let wrong = |why: String| ServerError::Command { at: self.key(key), why };
        let unknown = |name: String| {
            wrong(format!(
                "${{{name}}} is neither a setting of `{}` nor ${{port}}, ${{address}} or ${{folder}}; write {name}=value among its directives",
                variant.name
            ))
        };
        let filled = words.iter().map(|word| filled(word, settings, known).map_err(unknown));
        let mut words: Vec<String> = filled.collect::<Result<_, _>>()?;
        words[0] = self.program(key, &words[0])?;
        Ok(words)
    }

    /// Where a program is that a key names.
    fn program(&self, key: &'static str, name: &str) -> Result<String, ServerError> {
        find(name, &self.directory()).map_err(|absent| {
            let what = self.spec.package.as_ref().map_or("it".to_owned(), |package| format!("the package {package}"));
            let install = |or: &str| format!("{absent}; install {what}, or {or}");
            let why = match absent {
                Absent::Name(_) => install("name its path"),
                Absent::Path(_) => install("correct the path"),
                Absent::Closed(_) => format!("{absent}; allow it with chmod +x"),
            };
            ServerError::Command { at: self.key(key), why }
        })
    }

    /// The folder to run it in, from / on: who starts it stands elsewhere.
    fn directory(&self) -> PathBuf {
        std::path::absolute(&self.spec.directory).unwrap_or_else(|_| self.spec.directory.clone())
    }

    fn key(&self, key: &'static str) -> PlanKey {
        PlanKey { plan: self.plan.clone().into(), service: None, line: self.spec.line(key), key }
    }
}

/// `NAME=value`, the name as environments allow it.
fn setting(directive: &Directive) -> Result<(String, String), String> {
    let text = directive.text.trim();
    let (name, value) = text.split_once('=').ok_or("is no setting; write NAME=value")?;
    let fits = |(at, byte): (usize, u8)| byte == b'_' || byte.is_ascii_alphabetic() || at > 0 && byte.is_ascii_digit();
    if name.is_empty() || !name.bytes().enumerate().all(fits) {
        return Err(format!("`{name}` is no name; it may have letters, digits and _"));
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

/// What an instance is told of itself.
struct Known<'a> {
    address: SocketAddr,
    dir: &'a Path,
}

/// A word with `${port}` and `${NAME}` filled in; an error is a name that is none.
fn filled(word: &str, settings: &Settings, Known { address, dir }: &Known<'_>) -> Result<String, String> {
    let (mut text, mut rest) = (String::new(), word);
    while let Some((before, name, after)) = rest.split_once("${").and_then(|(before, rest)| {
        let (name, after) = rest.split_once('}')?;
        Some((before, name, after))
    }) {
        text += before;
        match (name, settings.get(name)) {
            (PORT, _) => text += &address.port().to_string(),
            (ADDRESS, _) => text += &address.ip().to_string(),
            (FOLDER, _) => text += &dir.to_string_lossy(),
            (_, Some(value)) => text += value,
            (_, None) => return Err(name.to_owned()),
        }
        rest = after;
    }
    Ok(text + rest)
}

/// Where there is no program.
#[derive(Debug, thiserror::Error)]
enum Absent {
    #[error("{0} is no program in PATH")]
    Name(String),
    #[error("{} is no program", .0.display())]
    Path(PathBuf),
    /// A file that nobody may run.
    #[error("{} may not be run", .0.display())]
    Closed(PathBuf),
}

/// A program by its path, from the server's folder, or by its name along `$PATH`.
fn find(name: &str, directory: &Path) -> Result<String, Absent> {
    let found = if name.contains('/') {
        let path = directory.join(name);
        match () {
            () if is_program(&path) => Ok(path),
            () if path.is_file() => Err(Absent::Closed(path)),
            () => Err(Absent::Path(path)),
        }
    } else {
        let along = std::env::var_os("PATH").unwrap_or_default();
        program::find(&[name], &along, &[]).ok_or_else(|| Absent::Name(name.to_owned()))
    };
    found.map(|path| path.to_string_lossy().into_owned())
}

/// What of our own environment a server may need to find its things; the rest could make two runs differ.
fn kept() -> impl Iterator<Item = (OsString, OsString)> {
    let names = ["PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "NODE_PATH", "JAVA_HOME", "GEM_HOME"];
    names.into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_filled_in() {
        let settings = Settings::from([("WORKERS".to_owned(), "4".to_owned())]);
        let check = |word: &str, expected: Result<&str, &str>| {
            let known = Known { address: ([192, 0, 2, 1], 8080).into(), dir: Path::new("/r/db") };
            let found = filled(word, &settings, &known);
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        };
        check("-w${WORKERS}", Ok("-w4"));
        check("127.0.0.1:${port}", Ok("127.0.0.1:8080"));
        check("${address}:${port}", Ok("192.0.2.1:8080"));
        check("--socket=${folder}/s", Ok("--socket=/r/db/s"));
        check("${port}${WORKERS}$", Ok("80804$"));
        check("${open", Ok("${open"));
        check("${THREADS}", Err("THREADS"));
    }

    #[test]
    fn a_setting_has_a_name_and_a_value() {
        let check = |text: &str, expected: Result<(&str, &str), &str>| {
            let found = setting(&Directive { text: text.to_owned(), line: 1 });
            assert_eq!(found, expected.map(|(n, v)| (n.to_owned(), v.to_owned())).map_err(str::to_owned));
        };
        check("WORKERS=4", Ok(("WORKERS", "4")));
        check("  A_1= x = y ", Ok(("A_1", "x = y")));
        check("EMPTY=", Ok(("EMPTY", "")));
        check("WORKERS 4", Err("is no setting; write NAME=value"));
        check("1A=4", Err("`1A` is no name; it may have letters, digits and _"));
        check("=4", Err("`` is no name; it may have letters, digits and _"));
    }
}
