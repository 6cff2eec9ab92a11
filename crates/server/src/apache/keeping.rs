//! What of the machine's own settings is kept with a run: those that say how the server works. Passwords stand among the others.

use super::check::{NUMBERS, canonical};
use super::overridden::SINGLE;
use model::plan::Directive;
use model::trial::EffectiveSettings;

/// Settings of one value that decide how requests are worked on, beside numbers of workers and what a virtual host may say for itself.
const FURTHER: [&str; 14] = [
    "AcceptFilter",
    "AsyncRequestWorkerFactor",
    "BufferedLogs",
    "EnableMMAP",
    "ExtendedStatus",
    "H2MaxWorkers",
    "H2MinWorkers",
    "ListenCoresBucketsRatio",
    "MPM",
    "MaxMemFree",
    "MaxRequestWorkers",
    "Mutex",
    "ThreadStackSize",
    "UseCanonicalName",
];

/// The settings without what the run does not need: what the plan names stays, whatever it is.
pub(crate) fn worth_keeping(mut settings: EffectiveSettings, planned: &[Directive]) -> EffectiveSettings {
    let named: Vec<&str> =
        planned.iter().filter_map(|line| line.text.split_whitespace().next()).map(canonical).collect();
    settings.values.retain(|name, _| {
        let is = |known: &&str| known.eq_ignore_ascii_case(name);
        NUMBERS.iter().chain(&SINGLE).chain(&FURTHER).any(&is) || named.iter().any(is)
    });
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_kept() {
        let settings = |names: &[&str]| EffectiveSettings {
            server: "Apache".to_owned(),
            values: names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect(),
            worker_limit: None,
        };
        let planned = [Directive { text: "setenv A b".to_owned(), line: 1 }];
        let all = ["AuthLDAPBindPassword", "DBDParams", "KeepAlive", "MPM", "MaxRequestWorkers", "SetEnv"];
        assert_eq!(
            worth_keeping(settings(&all), &planned),
            settings(&["KeepAlive", "MPM", "MaxRequestWorkers", "SetEnv"])
        );
        assert_eq!(worth_keeping(settings(&["SetEnv"]), &[]), settings(&[]));
    }
}
