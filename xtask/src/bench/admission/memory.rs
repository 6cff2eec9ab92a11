//! What the children of a server hold before and after many requests in a group: nothing must grow with requests. Beside it, what those of
//! other limiters do.

use super::Stand;
use super::apache::{Apache, load, open_to_all, owned_by_the_server};
use crate::bench::cases::Limit;
use crate::bench::programs::need;
use crate::bench::report::{Heading, Judgement, Raw, Section, table};
use crate::root;
use anyhow::{Context, bail};
use rustix::process::Pid;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is asked for: a page of mod_php.
const PAGE: &str = "/info.php";

/// Requests before the first look: caches and pools have their size then.
const WARM: u64 = 2000;

/// What a worker may grow by more with the module than without, in KiB: sixteen pages. A byte that each of a million requests leaves behind is
/// 244 in each of four.
const GROWTH: f64 = 64.0;

const CHILDREN: &str = "StartServers 4\nMinSpareServers 4\nMaxSpareServers 4\nMaxRequestWorkers 4\nServerLimit 4\n";

/// The plans whose other limiters are asked, too.
const OTHERS: [&str; 2] = ["plans/admission/overhead.toml", "plans/admission/overhead-mruby.toml"];

/// The servers' own.
const FOLDER: &str = "memory";

/// A server to look at.
#[derive(Debug, PartialEq)]
struct Limiter {
    name: String,
    directives: String,
}

pub(super) fn measure(stand: &Stand, heading: Heading, requests: u64) -> anyhow::Result<Section> {
    let ab = need("ab", "cargo xtask setup").map_err(anyhow::Error::msg)?;
    open_to_all(&stand.module)?;
    let mut section =
        Section { heading, body: Vec::new(), judgements: Vec::new(), commands: Vec::new(), raw: Vec::new() };
    section.body.push(format!(
        "What the largest worker has for itself (private pages, `smaps_rollup`), in KiB, after {WARM} requests and after {requests} more for a page of \
         PHP (phpinfo) in a group, from 100 clients at once. The module's table is shared and not in it. The others are limited as in {}, whose \
         modules are loaded with all of them: what grows can be compared, not how large a worker is.",
        OTHERS.join(" and ")
    ));
    let mut rows = Vec::new();
    let mut told = |section: &mut Section, name: &str, [before, after]: [u64; 2]| {
        let raw =
            |(measure, value)| Raw { tool: name.to_owned(), repetition: 1, position: 1, measure, value: value as f64 };
        section.raw.extend([("KiB before", before), ("KiB after", after)].map(raw));
        let more = after as i64 - before as i64;
        rows.push(vec![name.to_owned(), before.to_string(), after.to_string(), more.to_string()]);
        more as f64
    };
    let group = "AdmissionEngine on\nAdmissionGroup php limit=200\nAdmissionUse php\n";
    let group = format!("LoadModule admission_module {}\n{group}", stand.module.display());
    let without = Limiter { name: "a worker without a limiter".to_owned(), directives: String::new() };
    let ours = Limiter { name: "a worker, mod_admission".to_owned(), directives: group };
    let plain = looks(stand, &ab, &without, requests)?;
    let limited = looks(stand, &ab, &ours, requests)?;
    let plain = told(&mut section, &without.name, plain.each_ref().map(|own| own.worker));
    let grown = told(&mut section, &ours.name, limited.each_ref().map(|own| own.worker));
    told(&mut section, "the module's own process", limited.each_ref().map(|own| own.controller));
    section.judgements.push(Judgement {
        what: format!("what a worker grew by in {requests} requests, KiB more than without the module,"),
        found: Ok(grown - plain),
        limit: Limit::AtMost(GROWTH),
    });
    section.commands.push(format!("ab -q -l -c 100 -n {requests} http://127.0.0.1:PORT{PAGE}"));
    // What is not there, or fails, is said; ours are measured all the same.
    for plan in OTHERS {
        let others = match others(stand, plan) {
            Ok(others) => others,
            Err(_) if stand.signals.came() => bail!("interrupted"),
            Err(why) => {
                section.body.push(format!("Without those of {plan}: {why:#}"));
                continue;
            }
        };
        for other in others {
            match looks(stand, &ab, &other, requests) {
                Ok(found) => {
                    told(&mut section, &other.name, found.map(|own| own.worker));
                }
                Err(_) if stand.signals.came() => bail!("interrupted"),
                Err(why) => section.body.push(format!("{}: {why:#}", other.name)),
            }
        }
    }
    section.body.push(table(&["", "before", "after", "more"], &rows));
    Ok(section)
}

/// What its processes hold before and after that many requests.
fn looks(stand: &Stand, ab: &Path, limiter: &Limiter, requests: u64) -> anyhow::Result<[Own; 2]> {
    // The log of the server before has a line for each of its requests.
    let folder = stand.folder.path().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let apache = Apache::with_children(stand, FOLDER, &format!("{}{CHILDREN}", limiter.directives))?;
    let url = format!("http://127.0.0.1:{}{PAGE}", apache.port());
    let look = |count: u64| {
        let ran = Command::new(ab)
            .args(["-q", "-l", "-c", "100", "-n", &count.to_string(), &url])
            .stdin(Stdio::null())
            .output()?;
        let said = [ran.stdout, ran.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        let refused = said[0].lines().find(|line| line.starts_with("Non-2xx"));
        if !ran.status.success() || refused.is_some() {
            let why = refused.or(said[1].lines().last()).unwrap_or("ab says nothing");
            bail!("{count} requests were not all answered: {why}");
        }
        Own::of(apache.pid())
    };
    let found = [look(WARM)?, look(requests)?];
    apache.end(stand)?;
    Ok(found)
}

/// The limiters of a plan beside mod_admission, after its build steps.
fn others(stand: &Stand, plan: &str) -> anyhow::Result<Vec<Limiter>> {
    let file = root().join(plan);
    let run = stand.folder.path().join(file.file_stem().context("a plan has a name")?);
    fs::create_dir(&run).with_context(|| format!("cannot make {}", run.display()))?;
    // Unlike webdyno's servers, this one is never root.
    owned_by_the_server(&run)?;
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {plan}"))?;
    let plan: toml::Table = text.replace("${run}", &run.display().to_string()).parse()?;
    for build in plan.get("build").and_then(toml::Value::as_array).into_iter().flatten() {
        let words = texts(build.get("command"));
        let [program, words @ ..] = &words[..] else { bail!("a build without a command") };
        let mut made = Command::new(program);
        made.args(words).current_dir(file.parent().context("a plan has a folder")?);
        let made = made.stdin(Stdio::null()).output().with_context(|| format!("cannot run {program}"))?;
        if !made.status.success() {
            bail!("{}", String::from_utf8_lossy(&made.stderr).trim());
        }
    }
    limiters(&plan, load)
}

/// What the variants of a plan are, but for the one without a limiter, which says nothing, and ours. `load` is the line for a module.
fn limiters(plan: &toml::Table, load: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<Vec<Limiter>> {
    let server = plan.get("server").context("a plan without a server")?;
    let modules = texts(server.get("modules")).iter().map(|name| load(name)).collect::<anyhow::Result<String>>()?;
    let of_all = server.get("directives").and_then(toml::Value::as_str).unwrap_or_default();
    let variants = plan.get("variant").and_then(toml::Value::as_table).into_iter().flatten();
    Ok(variants
        .filter(|(name, _)| *name != "mod_admission")
        .filter_map(|(name, variant)| {
            let directives = format!("{modules}{of_all}{}", variant.get("directives")?.as_str()?);
            Some(Limiter { name: format!("a worker, {name}"), directives })
        })
        .collect())
}

/// The texts of a list.
fn texts(list: Option<&toml::Value>) -> Vec<String> {
    let list = list.and_then(toml::Value::as_array).into_iter().flatten();
    list.filter_map(|one| Some(one.as_str()?.to_owned())).collect()
}

/// The process in which the module looks after its table, by the name that it gives itself.
const CONTROLLER: &str = "httpd-admission";

/// KiB of private memory.
struct Own {
    /// Of the largest worker.
    worker: u64,
    /// Of the module's own process; 0 without one.
    controller: u64,
}

impl Own {
    /// Of the children of that process.
    fn of(parent: Pid) -> anyhow::Result<Own> {
        let parent = parent.as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
            .context("cannot list Apache's children")?;
        let mut own = Own { worker: 0, controller: 0 };
        for pid in children.split_whitespace() {
            let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
            // One that has just ended has nothing any more.
            let (Ok(name), Ok(rollup)) = (read("comm"), read("smaps_rollup")) else { continue };
            let place = if name.trim_end() == CONTROLLER { &mut own.controller } else { &mut own.worker };
            *place = private(&rollup).max(*place);
        }
        anyhow::ensure!(own.worker > 0, "Apache has no children");
        Ok(own)
    }
}

fn private(rollup: &str) -> u64 {
    let lines = rollup.lines().filter(|line| line.starts_with("Private_Clean:") || line.starts_with("Private_Dirty:"));
    lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limiters_of_the_plans() {
        let of = |plan: &str| {
            let text = fs::read_to_string(root().join(plan)).expect("a plan");
            limiters(&text.parse().expect("TOML"), |name| Ok(format!("LoadModule {name}\n"))).expect("limiters")
        };
        let found: Vec<Limiter> = OTHERS.into_iter().flat_map(of).collect();
        let lines = [
            ("mod_lua, kept", "LoadModule lua\n"),
            ("mod_lua, read again", "LuaCodeCache never"),
            ("mod_qos", "QS_LocRequestLimitMatch"),
            ("mod_mruby, compiled again", "mrubyAccessCheckerMiddle"),
            ("mod_mruby, kept", "LogLevel notice"),
        ];
        assert_eq!(found.len(), lines.len(), "{found:?}");
        for (limiter, (name, line)) in found.iter().zip(lines) {
            assert_eq!(limiter.name, format!("a worker, {name}"));
            assert!(limiter.directives.contains(line), "{limiter:?}");
        }
    }

    #[test]
    fn private_pages() {
        assert_eq!(private("Rss: 9 kB\nPrivate_Clean:   4 kB\nPrivate_Dirty: 120 kB\nPrivate_Hugetlb: 0 kB\n"), 124);
    }
}
