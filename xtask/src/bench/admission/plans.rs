//! What is measured by time: plans that webdyno runs in interleaved blocks and judges by its own statistics. The report is kept as it is.

use super::{Flags, Stand};
use crate::bench::programs::build_webdyno;
use crate::bench::report::{Heading, Section};
use crate::root;
use anyhow::{Context, bail};
use std::process::{Command, Stdio};

/// Exit codes of a run that measured everything, whatever its verdicts are.
const MEASURED: [i32; 3] = [0, 1, 3];

pub(super) fn overhead(stand: &Stand, heading: Heading, flags: &Flags) -> anyhow::Result<Section> {
    let goal = "Goal: the upper end of the interval for mod_admission's CPU time (per answer, below) under 1.015 times that without a limiter.";
    run(stand, heading, flags, "plans/admission/overhead.toml", &[], goal)
}

pub(super) fn overload(stand: &Stand, heading: Heading, flags: &Flags) -> anyhow::Result<Section> {
    let goal = "Goals: as many answers of the programs as 0.95 times those of the best MaxRequestWorkers; nothing read back from swap; the files' p99 at \
                most 1.5 times that beside as many programs with nobody waiting, and at least 20 times lower than with MaxRequestWorkers 4.";
    run(stand, heading, flags, "plans/admission/memory-cliff.toml", &["--make-swap", "1G"], goal)
}

fn run(
    stand: &Stand,
    heading: Heading,
    flags: &Flags,
    plan: &str,
    more: &[&str],
    goal: &str,
) -> anyhow::Result<Section> {
    let webdyno = flags.shared.webdyno()?.map_or_else(build_webdyno, Ok).map_err(anyhow::Error::msg)?;
    let mut words: Vec<&str> = vec!["run", plan, "--markdown", "--plain", "--lang", "en"];
    words.extend(more);
    if flags.shared.quick {
        words.push("--quick");
    }
    let store = stand.folder.path().join("store.sqlite");
    let mut command = Command::new(webdyno);
    command.args(&words).arg("--store").arg(store).current_dir(root()).stdin(Stdio::null());
    let ran = command.stderr(Stdio::inherit()).output().context("cannot run webdyno")?;
    if !ran.status.code().is_some_and(|code| MEASURED.contains(&code)) {
        bail!("{plan}: webdyno ended with {}", ran.status);
    }
    // The report's headings become parts of this page.
    let report = String::from_utf8_lossy(&ran.stdout).lines().map(lowered).collect::<Vec<_>>().join("\n");
    let commands = vec![format!("webdyno {}", words.join(" "))];
    Ok(Section { heading, body: vec![goal.to_owned(), report], judgements: Vec::new(), commands, raw: Vec::new() })
}

/// A line of Markdown, two levels lower if it is a heading.
fn lowered(line: &str) -> String {
    if line.starts_with('#') { format!("##{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_lowered() {
        assert_eq!(lowered("## Cells"), "#### Cells");
        assert_eq!(lowered("| a |"), "| a |");
    }
}
