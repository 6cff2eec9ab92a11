//! What a plan says of its server, and what that means.

use super::PlanError;
use super::changes::FilesText;
use super::confine::ConfineText;
use super::measure::Duration;
use super::php::{FpmText, php_meant};
use super::source::Source;
use super::url::{Trust, url_meant};
use crate::plan::{
    Apache, CommandServer, Embedded, Ending, Existing, Mpm, Nginx, PhpWay, Ready, ServerSpec, Stop, StopSignal, Url,
};
use crate::{Nanos, SECOND};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ServerKind {
    Apache,
    Nginx,
    Command,
    Embedded,
    Url,
}

/// The kinds of which a plan says how they are started.
#[derive(Clone, Copy)]
enum Started {
    Apache,
    Nginx,
    Command,
}

/// How it is known to be ready: by a path that it answers, or by a command.
#[derive(Deserialize)]
#[serde(untagged, expecting = "must be the path of a URL, or a command as a list of texts")]
enum ReadyWritten {
    Path(String),
    Command(Vec<String>),
}

/// Longer nobody means to wait after each trial.
const LONGEST_STOP: Nanos = 600 * SECOND;

/// How it is asked to end: by a signal, or by a command.
#[derive(Deserialize)]
#[serde(untagged, expecting = "must be the name of a signal, such as \"QUIT\", or a command as a list of texts")]
enum StopWritten {
    Signal(String),
    Command(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerText {
    kind: Spanned<ServerKind>,
    program: Option<Spanned<PathBuf>>,
    mpm: Option<Spanned<Mpm>>,
    modules: Option<Spanned<Vec<String>>>,
    document_root: Option<Spanned<PathBuf>>,
    scripts: Option<Spanned<PathBuf>>,
    command: Option<Spanned<Vec<String>>>,
    directory: Option<Spanned<PathBuf>>,
    package: Option<Spanned<String>>,
    stop: Option<Spanned<StopWritten>>,
    stop_within: Option<Spanned<Duration>>,
    url: Option<Spanned<String>>,
    insecure: Option<Spanned<bool>>,
    cacert: Option<Spanned<PathBuf>>,
    pub(super) directives: Option<Spanned<String>>,
    ready: Option<Spanned<ReadyWritten>>,
    pub(super) keep: Option<Spanned<bool>>,
    from: Option<Spanned<PathBuf>>,
    in_place: Option<Spanned<bool>>,
    port: Option<Spanned<u16>>,
    host: Option<Spanned<String>>,
    php: Option<Spanned<PhpWay>>,
    fpm: Option<Spanned<FpmText>>,
    #[serde(default)]
    ini: BTreeMap<String, Spanned<toml::Value>>,
    #[serde(default)]
    pub(super) files: Vec<Spanned<FilesText>>,
    #[serde(default)]
    pub(super) sysctl: BTreeMap<String, Spanned<String>>,
    pub(super) ending: Option<Spanned<Ending>>,
    pub(super) ending_after: Option<Spanned<Duration>>,
}

/// The server.
pub(super) fn server_meant(
    source: &Source<'_>,
    server: ServerText,
    confine: Option<&ConfineText>,
) -> Result<ServerSpec, PlanError> {
    if let Some((span, key, kinds)) = server.foreign(server.kind.get_ref()) {
        return Err(source.at(span, &format!("server.{key}"), &format!("only {kinds} has it; remove the line")));
    }
    let directives = source.directives(server.directives.as_ref());
    let kind = match server.kind.get_ref() {
        ServerKind::Embedded => return Ok(ServerSpec::Embedded(Embedded { directives })),
        ServerKind::Url => {
            let lines = server.lines(source);
            let place = server.ready.as_ref().map(Spanned::span);
            let ready = server.ready.is_some().then(|| ready_meant(source, server.ready)).transpose()?;
            let ready = ready.map(|ready| of_http(source, ready, &lines)).transpose()?;
            let trust = Trust { insecure: server.insecure, cacert: server.cacert };
            let url = url_meant(source, server.url.as_ref(), server.kind.span(), place, &trust)?;
            return Ok(ServerSpec::Url(Url { ready, lines, ..url }));
        }
        ServerKind::Apache => Started::Apache,
        ServerKind::Nginx => Started::Nginx,
        ServerKind::Command => Started::Command,
    };
    let existing = existing_meant(source, &server, confine)?;
    let lines = server.lines(source);
    let path = |path: Option<Spanned<PathBuf>>| path.map(|path| source.path(path.get_ref()));
    if let Some(keep) = &server.keep {
        return Err(source.at(keep.span(), "server.keep", "only a [service.NAME] is kept; remove the line"));
    }
    let ready = ready_meant(source, server.ready)?;
    let (program, document_root) = (path(server.program), path(server.document_root));
    let prefork =
        matches!(kind, Started::Apache) && server.mpm.as_ref().is_some_and(|mpm| *mpm.get_ref() == Mpm::Prefork);
    if let (Started::Nginx, Some(way)) = (kind, server.php.as_ref().filter(|way| *way.get_ref() == PhpWay::Module)) {
        return Err(source.at(way.span(), "server.php", "nginx has no PHP inside; use `php = \"fpm\"`"));
    }
    let php = php_meant(source, server.php, server.fpm, &server.ini, prefork)?;
    Ok(match kind {
        Started::Command => {
            let at = |span: Range<usize>| source.at(span, "server.command", "give the program and its arguments");
            let command = server.command.ok_or_else(|| at(server.kind.span()))?;
            if command.get_ref().is_empty() {
                return Err(at(command.span()));
            }
            let directory = server.directory.map_or_else(|| source.folder(), |path| source.path(path.get_ref()));
            let (command, package) = (command.into_inner(), server.package.map(Spanned::into_inner));
            let stop = server.stop.map(|written| stop_meant(source, written)).transpose()?;
            let stop_within_ns = stop_within_meant(source, server.stop_within.as_ref())?;
            ServerSpec::Command(CommandServer {
                command,
                directory,
                directives,
                ready,
                stop,
                stop_within_ns,
                package,
                lines,
            })
        }
        Started::Nginx => {
            let ready = of_http(source, ready, &lines)?;
            ServerSpec::Nginx(Nginx { program, document_root, directives, ready, lines, existing, php })
        }
        Started::Apache => ServerSpec::Apache(Apache {
            program,
            mpm: server.mpm.map_or(Mpm::Event, Spanned::into_inner),
            modules: server.modules.map(Spanned::into_inner).unwrap_or_default(),
            document_root,
            scripts: path(server.scripts),
            directives,
            ready: of_http(source, ready, &lines)?,
            lines,
            existing,
            php,
        }),
    })
}

/// How a server is known to be ready; by its first page when the plan does not say.
fn ready_meant(source: &Source<'_>, written: Option<Spanned<ReadyWritten>>) -> Result<Ready, PlanError> {
    let Some(written) = written else { return Ok(Ready::Path("/".to_owned())) };
    let place = written.span();
    match written.into_inner() {
        ReadyWritten::Path(path) => source.url_path_at(path, place, "server.ready").map(Ready::Path),
        ReadyWritten::Command(words) if words.is_empty() => {
            Err(source.at(place, "server.ready", "give the program and its arguments"))
        }
        ReadyWritten::Command(words) => Ok(Ready::Command(words)),
    }
}

/// How a server is asked to end.
fn stop_meant(source: &Source<'_>, written: Spanned<StopWritten>) -> Result<Stop, PlanError> {
    let place = written.span();
    let wrong = |what: &str| Err(source.at(place.clone(), "server.stop", what));
    match written.into_inner() {
        StopWritten::Command(words) if words.is_empty() => wrong("give the program and its arguments"),
        StopWritten::Command(words) => Ok(Stop::Command(words)),
        StopWritten::Signal(name) => {
            let plain = name.strip_prefix("SIG").unwrap_or(&name);
            if let Some(signal) = StopSignal::ALL.into_iter().find(|signal| signal.name() == plain) {
                return Ok(Stop::Signal(signal));
            }
            if plain == "KILL" {
                return wrong("a server that is to be killed has `ending = \"kill\"`");
            }
            let known = StopSignal::ALL.map(StopSignal::name).join(", ");
            wrong(&format!("`{name}` is none of the signals {known}; a command is a list of texts"))
        }
    }
}

/// How long it may take to end.
fn stop_within_meant(source: &Source<'_>, written: Option<&Spanned<Duration>>) -> Result<Option<Nanos>, PlanError> {
    let Some(written) = written else { return Ok(None) };
    let key = "server.stop_within";
    match source.duration_text(written, key)? {
        within @ 1..=LONGEST_STOP => Ok(Some(within)),
        _ => Err(source.at(written.span(), key, "must be longer than 0 and at most 10m")),
    }
}

/// Who speaks HTTP for certain is asked by HTTP.
fn of_http(source: &Source<'_>, ready: Ready, lines: &BTreeMap<String, usize>) -> Result<String, PlanError> {
    match ready {
        Ready::Path(path) => Ok(path),
        Ready::Command(_) => Err(PlanError {
            file: source.file.to_owned(),
            line: lines.get("ready").copied(),
            key: Some("server.ready".to_owned()),
            what: "only `kind = \"command\"` has a command here; give a path that it answers".to_owned(),
        }),
    }
}

/// The machine's own configuration, when the plan is about it.
fn existing_meant(
    source: &Source<'_>,
    server: &ServerText,
    confine: Option<&ConfineText>,
) -> Result<Option<Existing>, PlanError> {
    let in_place = server.in_place.as_ref().is_some_and(|wanted| *wanted.get_ref());
    let at = |span: Range<usize>, key: &str, what: &str| Err(source.at(span, &format!("server.{key}"), what));
    if server.from.is_none() && !in_place {
        let needs = "is for the machine's own configuration; add `from` or `in_place`, or remove the line";
        return match (&server.port, &server.host) {
            (Some(port), _) => at(port.span(), "port", needs),
            (_, Some(host)) => at(host.span(), "host", needs),
            (None, None) => Ok(None),
        };
    }
    let told = "the machine's own configuration says it; remove the line";
    let spans = [
        (server.mpm.as_ref().map(Spanned::span), "mpm"),
        (server.modules.as_ref().map(Spanned::span), "modules"),
        (server.document_root.as_ref().map(Spanned::span), "document_root"),
        (server.scripts.as_ref().map(Spanned::span), "scripts"),
        (server.php.as_ref().map(Spanned::span), "php"),
    ];
    if let Some((span, key)) = spans.into_iter().find_map(|(span, key)| Some((span?, key))) {
        return at(span, key, told);
    }
    if let (true, Some(place)) = (in_place, confine.and_then(ConfineText::place)) {
        let what = "the machine's own server stays where it is; remove [confine], or use `from` without `in_place`";
        return Err(source.at(place, "confine", what));
    }
    if let Some(port) = server.port.as_ref().filter(|port| *port.get_ref() == 0) {
        return at(port.span(), "port", "must be a port that the server listens on");
    }
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    if let Some(host) = server.host.as_ref().filter(|host| host.get_ref().is_empty() || host.get_ref().contains(bad)) {
        return at(host.span(), "host", "must be a name as in URLs, such as www.example.com");
    }
    Ok(Some(Existing {
        main: server.from.as_ref().map(|main| source.path(main.get_ref())),
        in_place,
        port: server.port.as_ref().map(|port| *port.get_ref()),
        host: server.host.as_ref().map(|host| host.get_ref().clone()),
    }))
}

impl ServerText {
    /// How a server of this kind is told the value of a setting.
    pub(super) fn setting(&self) -> fn(&str, u64) -> String {
        match self.kind.get_ref() {
            ServerKind::Command => |name, value| format!("{name}={value}"),
            ServerKind::Apache | ServerKind::Nginx | ServerKind::Embedded | ServerKind::Url => {
                |name, value| format!("{name} {value}")
            }
        }
    }

    /// Whether it is there already, and not webdyno's to control.
    pub(super) fn is_url(&self) -> bool {
        matches!(self.kind.get_ref(), ServerKind::Url)
    }

    /// The first key that a server of this kind has not: where it stands, its name, and whose it is.
    fn foreign(&self, kind: &ServerKind) -> Option<(Range<usize>, &'static str, &'static str)> {
        const APACHE: &str = "`kind = \"apache\"`";
        const COMMAND: &str = "`kind = \"command\"`";
        const URL: &str = "`kind = \"url\"`";
        const BOTH: &str = "`kind = \"apache\"` or `kind = \"nginx\"`";
        const ALL: &str = "a server that is not embedded";
        let span = |place: Option<Range<usize>>, key, kinds| Some((place?, key, kinds));
        let of_apache = [
            span(self.mpm.as_ref().map(Spanned::span), "mpm", APACHE),
            span(self.modules.as_ref().map(Spanned::span), "modules", APACHE),
            span(self.scripts.as_ref().map(Spanned::span), "scripts", APACHE),
        ];
        let of_both = [
            span(self.from.as_ref().map(Spanned::span), "from", BOTH),
            span(self.in_place.as_ref().map(Spanned::span), "in_place", BOTH),
            span(self.port.as_ref().map(Spanned::span), "port", BOTH),
            span(self.host.as_ref().map(Spanned::span), "host", BOTH),
            span(self.program.as_ref().map(Spanned::span), "program", BOTH),
            span(self.document_root.as_ref().map(Spanned::span), "document_root", BOTH),
            span(self.php.as_ref().map(Spanned::span), "php", BOTH),
            span(self.fpm.as_ref().map(Spanned::span), "fpm", BOTH),
            span(self.ini.values().next().map(Spanned::span), "ini", BOTH),
        ];
        let of_command = [
            span(self.command.as_ref().map(Spanned::span), "command", COMMAND),
            span(self.directory.as_ref().map(Spanned::span), "directory", COMMAND),
            span(self.package.as_ref().map(Spanned::span), "package", COMMAND),
            span(self.stop.as_ref().map(Spanned::span), "stop", COMMAND),
            span(self.stop_within.as_ref().map(Spanned::span), "stop_within", COMMAND),
        ];
        let of_url = [
            span(self.url.as_ref().map(Spanned::span), "url", URL),
            span(self.insecure.as_ref().map(Spanned::span), "insecure", URL),
            span(self.cacert.as_ref().map(Spanned::span), "cacert", URL),
        ];
        let of_all = [span(self.ready.as_ref().map(Spanned::span), "ready", ALL)];
        let mut foreign: Vec<_> = match kind {
            ServerKind::Apache => of_command.into_iter().chain(of_url).flatten().collect(),
            ServerKind::Nginx => of_apache.into_iter().chain(of_command).chain(of_url).flatten().collect(),
            ServerKind::Command => of_apache.into_iter().chain(of_both).chain(of_url).flatten().collect(),
            ServerKind::Url => of_apache.into_iter().chain(of_both).chain(of_command).flatten().collect(),
            ServerKind::Embedded => {
                let of_others = of_apache.into_iter().chain(of_both).chain(of_command).chain(of_url);
                of_others.chain(of_all).flatten().collect()
            }
        };
        foreign.sort_by_key(|(span, ..)| span.start);
        foreign.into_iter().next()
    }

    /// The first key that no server beside another can have: where it stands, and its name.
    pub(super) fn only_of_the_server(&self) -> Option<(Range<usize>, &'static str)> {
        let keys = [
            (self.from.as_ref().map(Spanned::span), "from"),
            (self.in_place.as_ref().map(Spanned::span), "in_place"),
            (self.port.as_ref().map(Spanned::span), "port"),
            (self.host.as_ref().map(Spanned::span), "host"),
            (self.files.first().map(Spanned::span), "files"),
            (self.sysctl.values().next().map(Spanned::span), "sysctl"),
        ];
        keys.into_iter().find_map(|(span, key)| Some((span?, key)))
    }

    /// The lines of the keys that can turn out wrong later.
    fn lines(&self, source: &Source<'_>) -> BTreeMap<String, usize> {
        let keys = [
            (Some(self.kind.span()), "kind"),
            (self.document_root.as_ref().map(Spanned::span), "document_root"),
            (self.scripts.as_ref().map(Spanned::span), "scripts"),
            (self.command.as_ref().map(Spanned::span), "command"),
            (self.php.as_ref().map(Spanned::span), "php"),
            (self.ready.as_ref().map(Spanned::span), "ready"),
            (self.stop.as_ref().map(Spanned::span), "stop"),
            (self.stop_within.as_ref().map(Spanned::span), "stop_within"),
            (self.from.as_ref().map(Spanned::span), "from"),
            (self.in_place.as_ref().map(Spanned::span), "in_place"),
            (self.port.as_ref().map(Spanned::span), "port"),
            (self.host.as_ref().map(Spanned::span), "host"),
            (self.url.as_ref().map(Spanned::span), "url"),
            (self.cacert.as_ref().map(Spanned::span), "cacert"),
        ];
        let line = |(span, key): (Option<Range<usize>>, &str)| Some((key.to_owned(), source.line(span?.start)));
        keys.into_iter().filter_map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Options, parse};
    use std::path::Path;

    /// How a server with these keys ends, or the sentence on what is wrong.
    fn check(keys: &str, expected: Result<(Option<Stop>, Option<Nanos>), &str>) {
        let load = "[load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n";
        let text = format!("[server]\n{keys}\n{load}");
        let found = parse(&text, Path::new("p.toml"), &Options::default());
        let found = found.map_err(|error| error.to_string()).map(|(plan, _)| match plan.server {
            ServerSpec::Command(command) => (command.stop, command.stop_within_ns),
            other => panic!("{other:?}"),
        });
        assert_eq!(found, expected.map_err(str::to_owned), "{keys}");
    }

    #[test]
    fn a_server_says_how_it_ends() {
        let check = |keys: &str, expected| check(&format!("kind = \"command\"\ncommand = [\"x\"]\n{keys}"), expected);
        check("", Ok((None, None)));
        check("stop = \"QUIT\"", Ok((Some(Stop::Signal(StopSignal::Quit)), None)));
        check("stop = \"SIGUSR1\"", Ok((Some(Stop::Signal(StopSignal::Usr1)), None)));
        let command = Stop::Command(vec!["x".to_owned(), "stop".to_owned()]);
        check("stop = [\"x\", \"stop\"]\nstop_within = \"90s\"", Ok((Some(command), Some(90 * SECOND))));
        check("stop_within = \"10m\"", Ok((None, Some(600 * SECOND))));
        let bounds = "p.toml:4: server.stop_within: must be longer than 0 and at most 10m";
        check("stop_within = \"0s\"", Err(bounds));
        check("stop_within = \"11m\"", Err(bounds));
        check("stop = []", Err("p.toml:4: server.stop: give the program and its arguments"));
        check(
            "stop = \"x stop\"",
            Err(
                "p.toml:4: server.stop: `x stop` is none of the signals TERM, INT, QUIT, HUP, USR1, USR2, WINCH; a command is a list of texts",
            ),
        );
        check("stop = \"KILL\"", Err("p.toml:4: server.stop: a server that is to be killed has `ending = \"kill\"`"));
    }

    #[test]
    fn only_a_command_says_how_it_ends() {
        for key in ["stop", "stop_within"] {
            let expected = format!("p.toml:3: server.{key}: only `kind = \"command\"` has it; remove the line");
            check(&format!("kind = \"apache\"\n{key} = \"3s\""), Err(&expected));
        }
    }
}
