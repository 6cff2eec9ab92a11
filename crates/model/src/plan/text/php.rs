//! What a plan says of PHP, and what that means.

use super::PlanError;
use super::measure::Duration;
use super::source::Source;
use crate::SECOND;
use crate::plan::{Php, PhpSetting, PhpSettings, PhpWay};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use toml::{Spanned, Value};

/// A pool of FPM: some of its settings, for all variants or for one.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct FpmText {
    program: Option<Spanned<PathBuf>>,
    pm: Option<Spanned<PmWord>>,
    max_children: Option<Spanned<u32>>,
    start_servers: Option<Spanned<u32>>,
    min_spare_servers: Option<Spanned<u32>>,
    max_spare_servers: Option<Spanned<u32>>,
    max_requests: Option<Spanned<u32>>,
    idle_timeout: Option<Spanned<Duration>>,
    backlog: Option<Spanned<u32>>,
    #[serde(default)]
    admin: BTreeMap<String, Spanned<Value>>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum PmWord {
    Static,
    Dynamic,
    Ondemand,
}

impl PmWord {
    fn name(self) -> &'static str {
        match self {
            PmWord::Static => "static",
            PmWord::Dynamic => "dynamic",
            PmWord::Ondemand => "ondemand",
        }
    }
}

/// How PHP is run, from the keys of `[server]`; `prefork` says whether the server's processes have one thread each, where it is known.
pub(super) fn php_meant(
    source: &Source<'_>,
    way: Option<Spanned<PhpWay>>,
    fpm: Option<Spanned<FpmText>>,
    ini: &BTreeMap<String, Spanned<Value>>,
    prefork: bool,
) -> Result<Option<Php>, PlanError> {
    let Some(way) = way else {
        let first = ini.values().next().map(|value| (value.span(), "ini"));
        return match fpm.map(|fpm| (fpm.span(), "fpm")).or(first) {
            None => Ok(None),
            Some((span, key)) => {
                let what = "is for PHP; add `php = \"fpm\"` or `php = \"module\"` to [server], or remove it";
                Err(source.at(span, &format!("server.{key}"), what))
            }
        };
    };
    let place = way.span();
    let way = way.into_inner();
    if way == PhpWay::Module && !prefork {
        let what = "mod_php, as distributions ship it, wants `mpm = \"prefork\"`; add that, or use `php = \"fpm\"`";
        return Err(source.at(place, "server.php", what));
    }
    if let (PhpWay::Module, Some(fpm)) = (way, &fpm) {
        let what = "mod_php has no pool of processes; remove the table, or use `php = \"fpm\"`";
        return Err(source.at(fpm.span(), "server.fpm", what));
    }
    let program = fpm.as_ref().and_then(|fpm| fpm.get_ref().program.as_ref());
    let program = program.map(|program| source.path(program.get_ref()));
    let settings = settings_meant(source, fpm.map(Spanned::into_inner), ini)?;
    Ok(Some(Php { way, program, settings }))
}

/// What a variant has of its own. `php` is the server's.
pub(super) fn variant_meant(
    source: &Source<'_>,
    php: Option<&Php>,
    fpm: Option<Spanned<FpmText>>,
    ini: &BTreeMap<String, Spanned<Value>>,
) -> Result<PhpSettings, PlanError> {
    let span = fpm.as_ref().map(|fpm| (fpm.span(), "fpm"));
    let refused = |(span, key): (Range<usize>, &str), what: &str| Err(source.at(span, &format!("variant.{key}"), what));
    match (php.map(|php| php.way), span, ini.values().next()) {
        (None, Some(place), _) => return refused(place, "needs `php = \"fpm\"` in [server]"),
        (None, None, Some(first)) => {
            return refused((first.span(), "ini"), "needs `php = \"fpm\"` or `php = \"module\"` in [server]");
        }
        (Some(PhpWay::Module), Some(place), _) => return refused(place, "mod_php has no pool of processes; remove it"),
        _ => {}
    }
    if let Some(program) = fpm.as_ref().and_then(|fpm| fpm.get_ref().program.as_ref()) {
        return refused((program.span(), "fpm.program"), "belongs into [server.fpm]: it is the same for all variants");
    }
    settings_meant(source, fpm.map(Spanned::into_inner), ini)
}

fn settings_meant(
    source: &Source<'_>,
    fpm: Option<FpmText>,
    ini: &BTreeMap<String, Spanned<Value>>,
) -> Result<PhpSettings, PlanError> {
    Ok(PhpSettings {
        pool: fpm.map_or_else(|| Ok(BTreeMap::new()), |fpm| pool(source, &fpm))?,
        ini: values(source, "ini", ini)?,
    })
}

fn pool(source: &Source<'_>, fpm: &FpmText) -> Result<BTreeMap<String, PhpSetting>, PlanError> {
    let numbers = [
        (&fpm.max_children, "max_children", "pm.max_children", 1),
        (&fpm.start_servers, "start_servers", "pm.start_servers", 1),
        (&fpm.min_spare_servers, "min_spare_servers", "pm.min_spare_servers", 1),
        (&fpm.max_spare_servers, "max_spare_servers", "pm.max_spare_servers", 1),
        (&fpm.max_requests, "max_requests", "pm.max_requests", 0),
        (&fpm.backlog, "backlog", "listen.backlog", 1),
    ];
    let mut pool = BTreeMap::new();
    let mut put = |name: &str, key: &str, value: String, span: Range<usize>| {
        let setting = PhpSetting { value, key: format!("fpm.{key}"), line: source.line(span.start) };
        pool.insert(name.to_owned(), setting);
    };
    for (number, key, name, least) in numbers {
        let Some(number) = number else { continue };
        if *number.get_ref() < least {
            return Err(source.at(number.span(), &format!("fpm.{key}"), &format!("must be at least {least}")));
        }
        put(name, key, number.get_ref().to_string(), number.span());
    }
    if let Some(pm) = &fpm.pm {
        put("pm", "pm", pm.get_ref().name().to_owned(), pm.span());
    }
    if let Some(timeout) = &fpm.idle_timeout {
        let seconds = source.longer_than_0(Some(timeout), "fpm.idle_timeout", 0)?.div_ceil(SECOND);
        put("pm.process_idle_timeout", "idle_timeout", format!("{seconds}s"), timeout.span());
    }
    for (name, setting) in values(source, "fpm.admin", &fpm.admin)? {
        pool.insert(format!("php_admin_value[{name}]"), setting);
    }
    Ok(pool)
}

/// Settings of php.ini, with what TOML knows of numbers and truth as PHP writes it.
fn values(
    source: &Source<'_>,
    table: &str,
    written: &BTreeMap<String, Spanned<Value>>,
) -> Result<BTreeMap<String, PhpSetting>, PlanError> {
    let setting = |(name, value): (&String, &Spanned<Value>)| {
        let key = format!("{table}.{name}");
        let at = |what: &str| source.at(value.span(), &key, what);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || !name.chars().all(plain) {
            return Err(at(
                "no setting of PHP is called so; write its name as in php.ini, in quotes when it has a dot",
            ));
        }
        let text = match value.get_ref() {
            Value::String(text) => text.clone(),
            Value::Boolean(on) => if *on { "On" } else { "Off" }.to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => return Err(at("give text, a number, or true or false; a name with a dot stands in quotes")),
        };
        // Where a service is stands there when PHP reads it.
        if text.contains(['"', '\n', '\0', '\\']) || text.replace("${service.", "").contains("${") {
            return Err(at("a value cannot have quotes, backslashes, line breaks or ${ in it here"));
        }
        if name == "error_reporting" && text.parse::<i64>().is_err() {
            return Err(at(
                "give the number, such as 32767 for E_ALL: values are quoted, and PHP knows its words only without quotes",
            ));
        }
        let line = source.line(value.span().start);
        Ok((name.clone(), PhpSetting { value: text, key, line }))
    };
    written.iter().map(setting).collect()
}
