//! `[load.NAME.users]`: who waits for a page, loses patience, asks again and leaves.

use super::PlanError;
use super::measure::Duration;
use super::source::Source;
use crate::SECOND;
use crate::plan::SessionSpec;
use serde::Deserialize;
use toml::Spanned;

/// Connections that a browser has to one host.
const BROWSER: u32 = 6;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsersText {
    patience: Option<Spanned<Duration>>,
    reload_after: Option<Spanned<Duration>>,
    reloads: Option<Spanned<u32>>,
    think: Option<Spanned<Duration>>,
    returns: Option<Spanned<f64>>,
}

/// How users behave; `parts` is the page and what belongs to it.
pub(super) fn users_meant(
    source: &Source<'_>,
    load: &str,
    users: &UsersText,
    parts: usize,
) -> Result<SessionSpec, PlanError> {
    let key = |field: &str| format!("load.{load}.users.{field}");
    let limit = |text: &Option<Spanned<Duration>>, field: &str| {
        text.as_ref().map(|text| source.longer_than_0(Some(text), &key(field), 0)).transpose()
    };
    if let (Some(reloads), None) = (&users.reloads, &users.reload_after) {
        return Err(source.at(reloads.span(), &key("reloads"), "say after which time: `reload_after`"));
    }
    let returns = users.returns.as_ref().map_or(0.0, |share| *share.get_ref());
    if let Some(share) = users.returns.as_ref().filter(|_| !(0.0..=1.0).contains(&returns)) {
        return Err(source.at(share.span(), &key("returns"), "must lie between 0 and 1"));
    }
    Ok(SessionSpec {
        connections: u32::try_from(parts).unwrap_or(BROWSER).clamp(1, BROWSER),
        think_ns: source.duration(users.think.as_ref(), &key("think"), SECOND)?,
        returns,
        patience_ns: limit(&users.patience, "patience")?,
        reload_after_ns: limit(&users.reload_after, "reload_after")?,
        reloads: users.reloads.as_ref().map_or(u32::from(users.reload_after.is_some()), |reloads| *reloads.get_ref()),
    })
}

#[cfg(test)]
mod tests {
    use crate::plan::{Options, parse};
    use expect_test::{Expect, expect};
    use std::path::Path;

    #[track_caller]
    fn check(load: &str, users: &str, expected: &Expect) {
        let text = format!(
            "[server]\nkind = \"embedded\"\n[load.a]\npath = \"/\"\nconnections = 4\nrequests = 1\n{load}\n[load.a.users]\n{users}\n"
        );
        let shown = match parse(&text, Path::new("t.toml"), &Options::default()) {
            Err(error) => error.to_string(),
            Ok((plan, _)) => serde_json::to_string(&plan.loads[0].session).unwrap(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn users_wait_and_ask_again() {
        check(
            "",
            "",
            &expect![[
                r#"{"connections":1,"think_ns":1000000000,"returns":0.0,"patience_ns":null,"reload_after_ns":null,"reloads":0}"#
            ]],
        );
        check(
            "",
            "reload_after = \"2s\"\nreloads = 3\npatience = \"8s\"\nreturns = 1.0\nthink = \"0s\"",
            &expect![[
                r#"{"connections":1,"think_ns":0,"returns":1.0,"patience_ns":8000000000,"reload_after_ns":2000000000,"reloads":3}"#
            ]],
        );
    }

    #[test]
    fn what_users_do_not_do_is_told() {
        check("", "reloads = 3", &expect!["t.toml:9: load.a.users.reloads: say after which time: `reload_after`"]);
        check("", "patience = \"0s\"", &expect!["t.toml:9: load.a.users.patience: must be longer than 0"]);
        check("", "returns = 1.5", &expect!["t.toml:9: load.a.users.returns: must lie between 0 and 1"]);
        check(
            "keep_alive = false",
            "",
            &expect!["t.toml:8: load.a.users: browsers keep their connections; leave `keep_alive` or `users` out"],
        );
        check(
            "pipeline = 2",
            "",
            &expect!["t.toml:7: load.a.pipeline: browsers do not do that; leave `pipeline` or `users` out"],
        );
    }
}
