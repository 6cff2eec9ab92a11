//! nginx's own test of a configuration, and which line of the plan a complaint is about.

use super::SERVER;
use super::launch::in_use;
use super::render::Rendered;
use crate::ServerError;
use crate::control::blame;
use crate::program::{ask, asking};
use model::plan::{Directive, Variant};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// Lets nginx read the configuration at `file`, which is for `port`.
pub(super) fn check(
    program: &Path,
    (file, port): (&Path, u16),
    rendered: &Rendered,
    variant: &Variant,
    plan: &Path,
) -> Result<(), ServerError> {
    let mut test = asking(program);
    test.args(["-t", "-q", "-p"]).arg(file.parent().unwrap_or(file)).arg("-c").arg(file);
    let output = ask(&mut test)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if in_use(&said) {
        return Err(ServerError::PortInUse(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
    }
    let at = |of: &Path, line: usize| (of == file).then(|| rendered.planned_at(line)).flatten();
    judge(&said, output.status.success(), &variant.allow_warnings, (variant, plan), &at)
}

/// What nginx says, as an error: about a line of the plan, where `at` finds one on a file's line.
pub(super) fn judge<'a>(
    said: &str,
    accepted: bool,
    allowed: &[String],
    (variant, plan): (&Variant, &Path),
    at: &dyn Fn(&Path, usize) -> Option<&'a Directive>,
) -> Result<(), ServerError> {
    let Some(complaint) = complaint(said, accepted, allowed) else { return Ok(()) };
    let place = complaint.rsplit_once(" in ").and_then(|(message, place)| {
        let (file, line) = place.rsplit_once(':')?;
        Some((message, at(Path::new(file), line.parse().ok()?)?))
    });
    Err(match place {
        Some((message, directive)) => blame(plan, directive, message.to_owned(), SERVER),
        None => {
            let (plan, variant) = (plan.to_owned(), variant.name.clone());
            ServerError::Configuration { plan, variant, message: complaint, server: SERVER }
        }
    })
}

/// The first error, or the first warning that nobody allowed; without nginx's own name and the severity.
pub(super) fn complaint(said: &str, accepted: bool, allowed: &[String]) -> Option<String> {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    if accepted {
        let refused = |line: &&str| !allowed.iter().any(|part| line.contains(part.as_str()));
        return lines().filter(|line| line.contains("[warn]")).find(refused).map(message);
    }
    let error = lines().find(|line| ["[emerg]", "[alert]", "[crit]"].iter().any(|level| line.contains(level)));
    let error = error.or_else(|| lines().next()).map(message);
    Some(error.unwrap_or_else(|| "the configuration is refused without a reason".to_owned()))
}

/// A line without what stands before its message: `nginx: [emerg] ` before there is a log, and then
/// `2026/11/21 13:30:43 [emerg] 6980#6980: `.
pub(super) fn message(line: &str) -> String {
    let Some((_, message)) = line.split_once("] ") else { return line.to_owned() };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let process = |text: &str| text.split_once('#').is_some_and(|(pid, thread)| number(pid) && number(thread));
    match message.split_once(": ") {
        Some((before, message)) if process(before) => message.to_owned(),
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nginx_says_is_read() {
        let check = |said: &str, accepted, allowed: &[&str], expected: Option<&str>| {
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            assert_eq!(complaint(said, accepted, &allowed).as_deref(), expected);
        };
        let warning = "nginx: [warn] 4096 worker_connections exceed open file resource limit: 1024\n";
        let unknown = "nginx: [emerg] unknown directive \"keepalive\" in /r/nginx.conf:12\n";
        let logged = "2026/11/21 13:30:43 [warn] 6980#6980: duplicate MIME type \"text/html\" in /r/nginx.conf:3\n";
        check("", true, &[], None);
        check(logged, true, &[], Some("duplicate MIME type \"text/html\" in /r/nginx.conf:3"));
        check(warning, true, &[], Some("4096 worker_connections exceed open file resource limit: 1024"));
        check(warning, true, &["exceed open file"], None);
        check(&format!("{warning}{unknown}"), false, &[], Some("unknown directive \"keepalive\" in /r/nginx.conf:12"));
        check("", false, &[], Some("the configuration is refused without a reason"));
    }
}
