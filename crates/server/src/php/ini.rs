//! Settings of php.ini: written where PHP reads them after the distribution's own, and read back from PHP itself.

use super::{PHP, Prepared};
use crate::ServerError;
use crate::site::folder;
use model::plan::{PhpSetting, PhpSettings, PhpWay};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where an instance tells PHP's settings. Asked once, before it is measured.
pub(crate) const PAGE: &str = "/server-php";
/// The script behind it.
const SCRIPT: &str = "settings.php";
/// Its first line is the version and how PHP runs, every other one a setting.
const TELL: &str = "<?php\nheader('Content-Type: text/plain');\necho PHP_VERSION, ' (', PHP_SAPI, \")\\n\";\nforeach (ini_get_all(null, false) as $name => $value) {\n    echo $name, '=', strtr((string) $value, \"\\r\\n\", '  '), \"\\n\";\n}\n";
/// Told of every PHP, asked for or not.
const TOLD: [&str; 3] = ["memory_limit", "max_execution_time", "opcache.enable"];
/// Words that php.ini reads as 1, and as nothing.
const ON: [&str; 3] = ["on", "yes", "true"];
const OFF: [&str; 4] = ["off", "no", "false", "none"];

/// Makes the folder for the settings and the script that tells them.
pub(super) fn write(dir: &Path, settings: &PhpSettings) -> Result<PathBuf, ServerError> {
    let place = dir.join("php");
    // Read by PHP's workers, who are somebody else.
    folder(&place, 0o755)?;
    let lines: String = settings.ini.iter().map(|(name, set)| format!("{name} = {}\n", written(&set.value))).collect();
    // Distributions number theirs: this is the last.
    for (name, text) in [("zz-webdyno.ini", lines.as_str()), (SCRIPT, TELL)] {
        let file = place.join(name);
        fs::write(&file, text).map_err(ServerError::io("write", &file))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).map_err(ServerError::io("open", &file))?;
    }
    Ok(place)
}

/// The script behind [`PAGE`].
pub(crate) fn asked_page(prepared: &Prepared) -> PathBuf {
    prepared.folder.join(SCRIPT)
}

/// A value as php.ini and FPM's files take it.
pub(super) fn written(value: &str) -> String {
    let word = value.to_ascii_lowercase();
    let plain =
        !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if plain || ON.contains(&word.as_str()) || OFF.contains(&word.as_str()) {
        value.to_owned()
    } else {
        format!("\"{value}\"")
    }
}

pub(super) fn in_force(prepared: &Prepared, told: &str) -> Result<Vec<(String, String)>, ServerError> {
    let no_settings = |why: &str| ServerError::NoSettings { server: PHP, why: format!("GET {PAGE}: {why}") };
    let (version, rest) = told.split_once('\n').ok_or_else(|| no_settings("the answer is empty"))?;
    if !version.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(no_settings("the script was not run by PHP"));
    }
    let all: BTreeMap<&str, &str> = rest.lines().filter_map(|line| line.split_once('=')).collect();
    let mut values = vec![("PHP".to_owned(), version.to_owned())];
    let wanted = asked(prepared);
    for (name, set) in &wanted {
        let Some(value) = all.get(name) else {
            return Err(wrong(prepared, set, format!("PHP {version} has no setting `{name}`")));
        };
        if !same(&set.value, value) {
            let sentence = format!("{name} = {} is in force instead", shown(value));
            if !prepared.allowed.iter().any(|allowed| sentence.contains(allowed.as_str())) {
                return Err(wrong(prepared, set, sentence));
            }
        }
    }
    let names = wanted.keys().copied().chain(TOLD.into_iter().filter(|name| !wanted.contains_key(name)));
    values.extend(names.filter_map(|name| Some((name.to_owned(), shown(all.get(name)?).to_owned()))));
    Ok(values)
}

/// What should be in force: a pool's own values win over those of php.ini.
fn asked(prepared: &Prepared) -> BTreeMap<&str, &PhpSetting> {
    let mut asked: BTreeMap<&str, &PhpSetting> =
        prepared.settings.ini.iter().map(|(name, set)| (name.as_str(), set)).collect();
    if prepared.way == PhpWay::Fpm {
        let of_pool = prepared
            .settings
            .pool
            .iter()
            .filter_map(|(name, set)| Some((name.strip_prefix("php_admin_value[")?.strip_suffix(']')?, set)));
        asked.extend(of_pool);
    }
    asked
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "(nothing)" } else { value }
}

/// Whether PHP's value is the one that was written: it says 1 for On and nothing for Off.
fn same(written: &str, told: &str) -> bool {
    let plain = |text: &str| {
        let word = text.trim().to_ascii_lowercase();
        match word.as_str() {
            word if ON.contains(&word) => "1".to_owned(),
            word if OFF.contains(&word) => String::new(),
            "0" => String::new(),
            word => word.to_owned(),
        }
    };
    plain(written) == plain(told)
}

pub(super) fn wrong(prepared: &Prepared, set: &PhpSetting, message: String) -> ServerError {
    let directive = format!("{} = {}", set.key, set.value);
    ServerError::Directive { plan: prepared.plan.clone(), line: set.line, directive, message, server: PHP }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_as_php_reads_them() {
        let check = |written: &str, told: &str, expected: bool| assert_eq!(same(written, told), expected, "{written}");
        check("On", "1", true);
        check("Off", "", true);
        check("0", "0", true);
        check("64M", "64M", true);
        check("64M", "128M", false);
        check("on", "", false);
    }

    #[test]
    fn values_are_quoted_where_php_ini_needs_it() {
        let check = |value: &str, expected: &str| assert_eq!(written(value), expected);
        check("64M", "64M");
        check("On", "On");
        check("", "\"\"");
        check("/tmp/x", "\"/tmp/x\"");
    }
}
