//! User instructions per request with the module and without, counted by callgrind: the same to a few in a thousand requests, so that half
//! a per cent is seen at once. Two runs of different length are subtracted, so that start and end of the server do not count.

use super::Stand;
use super::apache::{Apache, open_to_all};
use crate::bench::cases::Limit;
use crate::bench::programs::need;
use crate::bench::report::{Heading, Judgement, Raw, Section, table};
use crate::bench::statistics::median;
use anyhow::{Context, bail};
use std::fs;

/// Requests that are asked for before the shorter run counts: whatever is made once is made then.
const WARM: u64 = 20;

/// What is asked for, and how the server is set.
struct Setting {
    name: &'static str,
    path: &'static str,
    /// Behind `LoadModule`; none: the module is not loaded.
    directives: Option<&'static str>,
    /// The setting it is compared with, by its place, and the most per cent it may take more.
    beside: Option<(usize, Option<f64>)>,
}

const SETTINGS: [Setting; 8] = [
    Setting { name: "static, without the module", path: "/index.html", directives: None, beside: None },
    Setting {
        name: "static, a group of programs in use for the whole server",
        path: "/index.html",
        directives: Some("AdmissionEngine on\nAdmissionGroup php limit=200\nAdmissionUse php\n"),
        beside: Some((0, Some(0.2))),
    },
    Setting {
        name: "static, in a group",
        path: "/index.html",
        directives: Some("AdmissionEngine on\nAdmissionGroup files limit=200 handler=static\nAdmissionUse files\n"),
        beside: Some((0, Some(2.0))),
    },
    Setting {
        name: "static, in a group whose variables are logged",
        path: "/index.html",
        directives: Some(
            "AdmissionEngine on\nAdmissionGroup files limit=200 handler=static\nAdmissionUse files\nLogFormat \"%{ADMISSION_RESULT}e\" admission\n",
        ),
        beside: Some((0, None)),
    },
    Setting { name: "phpinfo, without the module", path: "/info.php", directives: None, beside: None },
    Setting {
        name: "phpinfo, in a group",
        path: "/info.php",
        directives: Some("AdmissionEngine on\nAdmissionGroup php limit=200\nAdmissionUse php\n"),
        beside: Some((4, Some(0.5))),
    },
    Setting {
        name: "phpinfo, the module loaded and off",
        path: "/info.php",
        directives: Some("AdmissionGroup php limit=200\nAdmissionUse php\n"),
        beside: Some((4, None)),
    },
    Setting {
        name: "phpinfo, in three groups and a memory budget",
        path: "/info.php",
        directives: Some(
            "AdmissionEngine on\nAdmissionBudget memory 8G\nAdmissionGroup file limit=200 cost=20M\nAdmissionGroup host limit=200 key=vhost\n\
             AdmissionGroup all limit=200 key=server\nAdmissionUse file host all\n",
        ),
        beside: Some((4, None)),
    },
];

pub(super) fn measure(stand: &Stand, heading: Heading, repeats: usize, quick: bool) -> anyhow::Result<Section> {
    need("valgrind", "cargo xtask setup --bench").map_err(anyhow::Error::msg)?;
    open_to_all(&stand.module)?;
    let mut section =
        Section { heading, body: Vec::new(), judgements: Vec::new(), commands: Vec::new(), raw: Vec::new() };
    let mut counted: Vec<Vec<f64>> = SETTINGS.iter().map(|_| Vec::new()).collect();
    for repetition in 1..=repeats {
        for (position, setting) in SETTINGS.iter().enumerate() {
            let instructions = per_request(stand, setting, quick)?;
            eprintln!("{} {}: {instructions:.0}", heading.name, setting.name);
            counted[position].push(instructions);
            section.raw.push(Raw {
                tool: setting.name.replace(',', ";"),
                repetition,
                position: position + 1,
                measure: "instructions/request",
                value: instructions,
            });
        }
    }
    let medians: Vec<f64> = counted.iter().filter_map(|counts| median(counts)).collect();
    let mut rows = Vec::new();
    for (setting, &found) in SETTINGS.iter().zip(&medians) {
        let mut row = vec![setting.name.to_owned(), format!("{found:.0}")];
        if let Some((beside, goal)) = setting.beside {
            let more = found - medians[beside];
            let share = 100.0 * more / medians[beside];
            row.extend([format!("{more:+.0}"), format!("{share:+.2} %")]);
            if let Some(goal) = goal {
                let what = format!("{}, more instructions than without the module, in per cent", setting.name);
                section.judgements.push(Judgement { what, found: Ok(share), limit: Limit::AtMost(goal) });
            }
        }
        rows.push(row);
    }
    section.body.push(table(&["", "instructions/request", "more", "share"], &rows));
    section.body.push(
        "Apache in one process (`-X`) with the modules and the access log that Debian gives it, one kept connection, user space only. The \
         kernel's share is not in it: a request that is admitted at once makes no system call of the module's."
            .to_owned(),
    );
    section.commands.push("valgrind --tool=callgrind apache2 -X -f httpd.conf".to_owned());
    Ok(section)
}

/// Instructions of one request of a setting.
fn per_request(stand: &Stand, setting: &Setting, quick: bool) -> anyhow::Result<f64> {
    let (short, long) = match (setting.path, quick) {
        ("/index.html", false) => (WARM, 2000),
        ("/index.html", true) => (WARM, 500),
        (_, false) => (WARM, 200),
        (_, true) => (WARM, 60),
    };
    let [short_count, long_count] = [total(stand, setting, short)?, total(stand, setting, long)?];
    Ok((long_count as f64 - short_count as f64) / (long - short) as f64)
}

/// All instructions of a server that answered so many requests.
fn total(stand: &Stand, setting: &Setting, requests: u64) -> anyhow::Result<u64> {
    let file = stand.folder.path().join("callgrind/callgrind.out");
    let _ = fs::remove_file(&file);
    let wrap =
        ["valgrind", "-q", "--tool=callgrind", &format!("--callgrind-out-file={}", file.display())].map(str::to_owned);
    let load = format!("LoadModule admission_module {}\n", stand.module.display());
    let directives = setting.directives.map(|text| load + text).unwrap_or_default();
    let apache = Apache::alone(stand, "callgrind", &directives, &wrap)?;
    let asked = apache.ask(setting.path, requests);
    apache.end(stand)?;
    asked?;
    let text = fs::read_to_string(&file).context("callgrind wrote nothing")?;
    let Some(count) = crate::bench::instructions::parse(&text) else {
        bail!("callgrind wrote something else than expected")
    };
    Ok(count)
}
