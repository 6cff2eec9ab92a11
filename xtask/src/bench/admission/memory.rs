//! What the children of a server hold before and after many requests in a group: nothing must grow with requests.

use super::Stand;
use super::apache::{Apache, open_to_all};
use crate::bench::cases::Limit;
use crate::bench::programs::need;
use crate::bench::report::{Heading, Judgement, Raw, Section, table};
use anyhow::{Context, bail};
use rustix::process::Pid;
use std::fs;
use std::process::{Command, Stdio};

/// What is asked for: a page of mod_php.
const PAGE: &str = "/info.php";

/// Requests before the first look: caches and pools have their size then.
const WARM: u64 = 2000;

/// What a worker may grow by more with the module than without, in KiB: sixteen pages. A byte that each of a million requests leaves behind is
/// 244 in each of four.
const GROWTH: f64 = 64.0;

const CHILDREN: &str = "StartServers 4\nMinSpareServers 4\nMaxSpareServers 4\nMaxRequestWorkers 4\nServerLimit 4\n";

pub(super) fn measure(stand: &Stand, heading: Heading, requests: u64) -> anyhow::Result<Section> {
    let ab = need("ab", "cargo xtask setup").map_err(anyhow::Error::msg)?;
    open_to_all(&stand.module)?;
    let group = "AdmissionEngine on\nAdmissionGroup php limit=200\nAdmissionUse php\n";
    let with = format!("{CHILDREN}LoadModule admission_module {}\n{group}", stand.module.display());
    let mut section =
        Section { heading, body: Vec::new(), judgements: Vec::new(), commands: Vec::new(), raw: Vec::new() };
    let (mut rows, mut grown) = (Vec::new(), Vec::new());
    for (name, directives, has_controller) in
        [("a worker, without the module", CHILDREN.to_owned(), false), ("a worker, in a group", with, true)]
    {
        let apache = Apache::with_children(stand, "memory", &directives)?;
        let url = format!("http://127.0.0.1:{}{PAGE}", apache.port());
        let mut looks = Vec::new();
        for count in [WARM, requests] {
            let ran = Command::new(&ab)
                .args(["-q", "-l", "-c", "100", "-n", &count.to_string(), &url])
                .stdin(Stdio::null())
                .output()?;
            let said = String::from_utf8_lossy(&ran.stdout);
            if !ran.status.success() || said.contains("Non-2xx") {
                bail!("{count} requests were not all answered: {said}");
            }
            looks.push(Own::of(apache.pid())?);
        }
        apache.end(stand)?;
        let [before, after] = [&looks[0], &looks[1]];
        grown.push(after.worker as f64 - before.worker as f64);
        let mut kinds = vec![(name, before.worker, after.worker)];
        if has_controller {
            kinds.push(("the module's own process", before.controller, after.controller));
        }
        for (name, before, after) in kinds {
            let more = after as i64 - before as i64;
            rows.push(vec![name.to_owned(), before.to_string(), after.to_string(), more.to_string()]);
            let raw = |(measure, value): (&'static str, u64)| Raw {
                tool: name.to_owned(),
                repetition: 1,
                position: 1,
                measure,
                value: value as f64,
            };
            section.raw.extend([("KiB before", before), ("KiB after", after)].map(raw));
        }
    }
    section.body.push(format!(
        "What the largest worker has for itself (private pages, `smaps_rollup`), in KiB, after {WARM} requests and after {requests} more for a page of \
         PHP (phpinfo) in a group, from 100 clients at once. The module's table is shared and not in it."
    ));
    section.body.push(table(&["", "before", "after", "more"], &rows));
    section.judgements.push(Judgement {
        what: format!("what a worker grew by in {requests} requests, KiB more than without the module,"),
        found: Ok(grown[1] - grown[0]),
        limit: Limit::AtMost(GROWTH),
    });
    section.commands.push(format!("ab -q -l -c 100 -n {requests} http://127.0.0.1:PORT{PAGE}"));
    Ok(section)
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
    fn private_pages() {
        assert_eq!(private("Rss: 9 kB\nPrivate_Clean:   4 kB\nPrivate_Dirty: 120 kB\nPrivate_Hugetlb: 0 kB\n"), 124);
    }
}
