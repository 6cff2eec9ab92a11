//! Any server that a command starts in the foreground and that can be told its port: gunicorn, node, Tomcat, a binary of one's own.
//!
//! What differs between variants are settings of the form `NAME=value`: the server gets them in its environment, and wherever its command
//! says `${NAME}`. Nothing is known of such a server but what it answers, so nothing is read back.

use crate::control::{Logs, Starting, blame};
use crate::port::with_free_port;
use crate::program::{self, is_program};
use crate::site::folder;
use crate::{Control, Place, PlanKey, Running, ServerError};
use host::Launch;
use model::plan::{CommandServer, Directive, Variant};
use model::trial::EffectiveSettings;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Instant;

const SERVER: &str = "the server's command";
/// What stands for the port that was found for it.
const PORT: &str = "port";
/// Where the address to listen on is told, beside it.
const ADDRESS: &str = "address";

/// Controls a server by the command that starts it.
#[derive(Debug, Clone)]
pub(crate) struct CommandControl {
    pub(crate) spec: CommandServer,
    pub(crate) plan: PathBuf,
}

type Settings = BTreeMap<String, String>;

impl Control for CommandControl {
    fn check(&self, _dir: &Path, variant: &Variant) -> Result<(), ServerError> {
        self.prepared(variant, (Ipv4Addr::LOCALHOST, 1).into()).map(|_| ())
    }

    fn start(&self, place: &Place<'_>, variant: &Variant) -> Result<Running, ServerError> {
        with_free_port(|port| self.start_at(place, variant, port))
    }
}

impl CommandControl {
    fn start_at(&self, place: &Place<'_>, variant: &Variant, port: u16) -> Result<Running, ServerError> {
        let address = SocketAddr::new(place.listen, port);
        let (words, settings) = self.prepared(variant, address)?;
        folder(place.dir, 0o711)?;
        let (stdout, stderr) = (place.dir.join("stdout"), place.dir.join("stderr"));
        let environment = kept().chain(settings.iter().map(|(name, value)| (name.into(), value.into())));
        let launch = Launch {
            program: PathBuf::from(&words[0]),
            args: words[1..].iter().map(OsString::from).collect(),
            env: environment
                .chain([("PORT".into(), port.to_string().into()), ("ADDRESS".into(), place.listen.to_string().into())])
                .collect(),
            dir: self.spec.directory.clone(),
            cpus: place.cpus.to_vec(),
            stdout: stdout.clone(),
            stderr: stderr.clone(),
        };
        let since = Instant::now();
        let child = place.host.spawn(&launch, place.group)?;
        let logs = Logs(vec![stdout, stderr]);
        let mut starting =
            Starting { child, address, host: None, logs, server: SERVER, since, timeout: place.ready_timeout };
        starting.wait_until_ready(&self.spec.ready, Some(&self.key("ready"))).map_err(|error| {
            let taken = starting.logs.tail().to_ascii_lowercase().contains("address already in use");
            if taken { ServerError::PortInUse(address) } else { error }
        })?;
        let server = words[0].rsplit('/').next().unwrap_or_default().to_owned();
        Ok(starting.running(EffectiveSettings { server, values: settings, worker_limit: None }, Vec::new()))
    }

    /// The words of the command with everything filled in, and the settings.
    fn prepared(&self, variant: &Variant, address: SocketAddr) -> Result<(Vec<String>, Settings), ServerError> {
        let mut settings = Settings::new();
        for directive in self.spec.directives.iter().chain(&variant.directives) {
            let (name, value) = setting(directive).map_err(|why| blame(&self.plan, directive, why, SERVER))?;
            settings.insert(name, value);
        }
        let unknown = |name: &str| ServerError::Command {
            at: self.key("command"),
            why: format!(
                "${{{name}}} is neither a setting of `{}` nor ${{port}} nor ${{address}}; write {name}=value among its directives",
                variant.name
            ),
        };
        let words: Vec<String> = self
            .spec
            .command
            .iter()
            .map(|word| filled(word, &settings, address).map_err(|name| unknown(&name)))
            .collect::<Result<_, _>>()?;
        match find(&words[0], &self.spec.directory) {
            Some(program) => Ok((std::iter::once(program).chain(words.into_iter().skip(1)).collect(), settings)),
            None => Err(ServerError::Command {
                at: self.key("command"),
                why: format!(
                    "{} is no program, neither in PATH nor in {}; install it, or name its path",
                    words[0],
                    self.spec.directory.display()
                ),
            }),
        }
    }

    fn key(&self, key: &'static str) -> PlanKey {
        PlanKey { plan: self.plan.clone(), line: self.spec.line(key), key }
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

/// A word with `${port}` and `${NAME}` filled in; an error is a name that is none.
fn filled(word: &str, settings: &Settings, address: SocketAddr) -> Result<String, String> {
    let (mut text, mut rest) = (String::new(), word);
    while let Some((before, name, after)) = rest.split_once("${").and_then(|(before, rest)| {
        let (name, after) = rest.split_once('}')?;
        Some((before, name, after))
    }) {
        text += before;
        match (name, settings.get(name)) {
            (PORT, _) => text += &address.port().to_string(),
            (ADDRESS, _) => text += &address.ip().to_string(),
            (_, Some(value)) => text += value,
            (_, None) => return Err(name.to_owned()),
        }
        rest = after;
    }
    Ok(text + rest)
}

/// A program by its path, from the plan's folder, or by its name along `$PATH`.
fn find(name: &str, directory: &Path) -> Option<String> {
    let found = if name.contains('/') {
        Some(directory.join(name)).filter(|path| is_program(path))
    } else {
        program::find(&[name], &std::env::var_os("PATH").unwrap_or_default(), &[])
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
            let found = filled(word, &settings, ([192, 0, 2, 1], 8080).into());
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        };
        check("-w${WORKERS}", Ok("-w4"));
        check("127.0.0.1:${port}", Ok("127.0.0.1:8080"));
        check("${address}:${port}", Ok("192.0.2.1:8080"));
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
