//! What the flags of `webdyno load` say is sent: one request, a mix of them from a file, or the requests of a log.

use super::replay::{self, Replayed};
use super::{secret, way};
use crate::flags::load::{Http, LoadFlags};
use crate::plan_file;
use anyhow::{Context, bail, ensure};
use model::plan::{Body, Check, HttpVersion, Log, Options, RequestSpec, parse_mix};
use url::Url;

/// Where requests go: a URL as it may be shown, its path with templates in it, and who asks.
pub(super) struct Whither {
    /// Without a password; templates stand in it as they were written.
    pub(super) shown: String,
    /// What it was read as; templates are held back.
    pub(super) url: Url,
    /// Path and query.
    pub(super) path: String,
    /// Name and password in front of the host.
    pub(super) user: Option<String>,
}

/// Header fields by whom they are for.
pub(super) struct Headers {
    /// Of every request.
    pub(super) common: Vec<(String, String)>,
    /// For the proxy that opens a tunnel, and nobody behind it.
    pub(super) to_proxy: Vec<(String, String)>,
}

/// What is sent.
pub(super) struct What {
    pub(super) mix: Vec<RequestSpec>,
    pub(super) log: Option<Log>,
    pub(super) checks: Vec<Check>,
}

/// Reads a URL, whose scheme may be left out.
pub(super) fn whither(text: &str) -> anyhow::Result<Whither> {
    let (held, templates) = hold_templates(text);
    let mut url = plain_url(&held, text)?;
    ensure!(
        !templates.iter().any(|(mark, _)| url.authority().contains(mark.as_str())),
        "`{}`: a template can stand in the path and the query, not in the host",
        secret::in_no_url(text)
    );
    let user = secret::user_of(&url);
    // These can only fail for URLs without a host.
    let _ = (url.set_username(""), url.set_password(None));
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let put_back = |text: &str| templates.iter().fold(text.to_owned(), |text, (mark, kept)| text.replace(mark, kept));
    Ok(Whither { shown: put_back(url.as_str()), path: put_back(&path), user, url })
}

/// What stands behind `scheme://`, or all of it where there is no scheme. A scheme is letters, digits, `+`, `-` and `.`: RFC 3986
/// section 3.1. So `://` in a query is none.
pub(super) fn without_scheme(text: &str) -> &str {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)).map_or(text, |(_, rest)| rest)
}

/// A URL that can be loaded; `shown` is how it was typed.
pub(super) fn plain_url(text: &str, shown: &str) -> anyhow::Result<Url> {
    let (typed, shown) = (shown, secret::in_url(shown));
    let has_scheme = without_scheme(text).len() < text.len();
    let written = if has_scheme { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&written)
        .with_context(|| format!("`{}` is not a URL; write http://HOST[:PORT]/PATH", secret::in_no_url(typed)))?;
    match url.scheme() {
        "http" | "https" => {}
        other => bail!("`{shown}`: webdyno loads http and https, not {other}"),
    }
    ensure!(url.has_host(), "`{shown}` names no host; write http://HOST[:PORT]/PATH");
    Ok(url)
}

/// Puts a word in the place of each `${...}`, because in a URL braces are encoded; gives the words with what they stand for.
fn hold_templates(text: &str) -> (String, Vec<(String, String)>) {
    let (mut held, mut templates) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some((at, length)) = rest.find("${").and_then(|at| Some((at, rest[at..].find('}')? + 1))) {
        let mark = (0..).map(|n| format!("template{}n{n}e", templates.len())).find(|mark| !text.contains(mark));
        let mark = mark.unwrap_or_default();
        held.push_str(&rest[..at]);
        held.push_str(&mark);
        templates.push((mark, rest[at..at + length].to_owned()));
        rest = &rest[at + length..];
    }
    held.push_str(rest);
    (held, templates)
}

/// What is sent to where the URL points, with these header fields; to a proxy, targets are whole URLs.
pub(super) fn what(
    flags: &LoadFlags,
    whither: &Whither,
    common: &[(String, String)],
    host: &str,
    seed: u64,
) -> anyhow::Result<What> {
    let (mut mix, log) = if let Some(file) = &flags.mix {
        no_path(whither, "--mix")?;
        let http = if flags.http == Http::One { HttpVersion::Http10 } else { HttpVersion::Http11 };
        let options = Options { read: plan_file::read_body, ..Options::default() };
        (parse_mix(&plan_file::read_requests(file)?, file, http, &options)?, None)
    } else if let Some(file) = &flags.replay {
        no_path(whither, "--replay")?;
        let Replayed { mix, log } = replay::read(file, flags, seed)?;
        (mix, Some(log))
    } else {
        (vec![only(flags, &whither.path)?], None)
    };
    for request in &mut mix {
        for (name, value) in common {
            if !request.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                request.headers.push((name.clone(), value.clone()));
            }
        }
        // To a proxy for plain HTTP.
        if flags.way.proxy.is_some() && !way::is_tunnelled(&flags.way, &whither.url) {
            request.path = format!("http://{host}{}", request.path);
        }
    }
    let check = |text: &String| Check::parse(text).context("--check");
    let checks = flags.checks.iter().map(check).collect::<anyhow::Result<_>>()?;
    Ok(What { mix, log, checks })
}

/// The paths stand elsewhere; one in the URL would go unheeded.
fn no_path(whither: &Whither, flag: &str) -> anyhow::Result<()> {
    let path = &whither.path;
    ensure!(path == "/", "{flag} takes the paths from its file; leave `{path}` out of the URL");
    Ok(())
}

/// One request, again and again.
fn only(flags: &LoadFlags, path: &str) -> anyhow::Result<RequestSpec> {
    let body = match (&flags.body, &flags.body_file) {
        (Some(text), _) => Some(Body::written(text.as_str())),
        (None, Some(file)) => {
            let bytes = plan_file::read_body(file).map_err(|what| anyhow::anyhow!("--body-file {what}"))?;
            Some(Body::read(file, bytes))
        }
        (None, None) => None,
    };
    let usual = if body.is_some() { "POST" } else { "GET" };
    let method = flags.method.clone().unwrap_or_else(|| usual.to_owned());
    ensure!(method != "CONNECT", "-m CONNECT opens a tunnel and asks for nothing; choose another method");
    Ok(RequestSpec { method, body, ..RequestSpec::get(path) })
}

/// What a proxy knows somebody by.
const TO_PROXY: &str = "Proxy-Authorization";

/// Header fields of every request, and those that only the proxy of a tunnel is told.
pub(super) fn headers(flags: &LoadFlags, whither: &Whither) -> anyhow::Result<Headers> {
    let all = common_headers(flags, whither)?;
    let is_proxys = |(name, _): &(String, String)| name.eq_ignore_ascii_case(TO_PROXY);
    let (to_proxy, common) =
        all.into_iter().partition(|field| way::is_tunnelled(&flags.way, &whither.url) && is_proxys(field));
    Ok(Headers { common, to_proxy })
}

fn common_headers(flags: &LoadFlags, whither: &Whither) -> anyhow::Result<Vec<(String, String)>> {
    let field = |text: &String| {
        // What stands there may be a secret.
        let (name, value) = text
            .split_once(':')
            .context("-H takes a header field: a name, a colon and a value, as in -H 'X-Test: 1'")?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    let mut headers = flags.headers.iter().map(field).collect::<anyhow::Result<Vec<_>>>()?;
    let user = match (&flags.user, &whither.user) {
        (Some(_), Some(_)) => bail!("the URL names a user, and so does --user; leave one of them out"),
        (Some(user), None) | (None, Some(user)) => Some(secret::basic(user)?),
        (None, None) => None,
    };
    let cookies = (!flags.cookie.is_empty()).then(|| flags.cookie.join("; "));
    ensure!(
        flags.cookie.iter().all(|cookie| cookie.contains('=')),
        "--cookie takes NAME=VALUE, such as --cookie 'session=1'"
    );
    let proxy_user = way::proxy(&flags.way)?.as_ref().and_then(secret::user_of);
    let proxy_user = proxy_user.map(|user| secret::basic(&user)).transpose()?;
    for (name, value, flag) in
        [("Authorization", user, "--user"), ("Cookie", cookies, "--cookie"), (TO_PROXY, proxy_user, "--proxy")]
    {
        let Some(value) = value else { continue };
        let twice = headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        ensure!(!twice, "-H {name} says the same as {flag}; leave one of them out");
        headers.push((name.to_owned(), value));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str, path: &str, user: Option<&str>) {
        let found = whither(text).unwrap();
        assert_eq!((found.shown.as_str(), found.path.as_str(), found.user.as_deref()), (shown, path, user));
    }

    #[test]
    fn urls_keep_their_templates_and_lose_their_passwords() {
        check("localhost", "http://localhost/", "/", None);
        check("http://a:81/x y?b=c#d", "http://a:81/x%20y?b=c#d", "/x%20y?b=c", None);
        check("a/${counter}?b=${hex:4}", "http://a/${counter}?b=${hex:4}", "/${counter}?b=${hex:4}", None);
        check("a/$${x}/${random:1-5}", "http://a/$${x}/${random:1-5}", "/$${x}/${random:1-5}", None);
        check("a/template0n0e${counter}", "http://a/template0n0e${counter}", "/template0n0e${counter}", None);
        check("http://u:p%40q@a/", "http://a/", "/", Some("u:p@q"));
        check("u:p@a", "http://a/", "/", Some("u:p"));
    }

    #[test]
    fn a_template_is_no_host() {
        assert!(whither("http://${counter}/").is_err());
    }
}
