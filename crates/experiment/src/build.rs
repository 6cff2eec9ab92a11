//! The plan's build steps: run before anything is measured, in a session of their own that the guardian knows, their output kept
//! for the message when one fails.

use crate::ExperimentError;
use crate::event::Event;
use host::{Host, Launch};
use model::plan::{Build, Cell, Plan};
use server::{ServerError, check_package};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a build step is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long an interrupted step may take to end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// Looks for the packages that the servers of these cells name, before a build step takes its time, or fails for want of the same.
pub(crate) fn check_packages<'a>(plan: &Plan, mut cells: impl Iterator<Item = &'a Cell>) -> Result<(), ServerError> {
    cells.try_for_each(|cell| {
        let variant = plan.variant(cell);
        for service in plan.services_of(variant) {
            check_package(&service.server, &plan.file).map_err(|error| error.of_service(&service.name))?;
        }
        check_package(plan.server_of(variant), &plan.file)
    })
}

/// Runs every build step in order; `folder` takes their output. Stops early, without an error, when interrupted.
pub(crate) fn build(
    plan: &Plan,
    host: &Host,
    folder: &Path,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<(), ExperimentError> {
    for (number, step) in plan.build.iter().enumerate() {
        on_event(Event::Building(&step.command));
        let log = folder.join(format!("build{number}.log"));
        let failed = |what| ExperimentError::Plan { file: plan.file.clone(), line: step.line, key: "build", what };
        let mut child = match host.spawn(&launch(step, folder, &log)?, None) {
            Ok(child) => child,
            // A program that is not there is the plan's mistake; everything else is the machine's.
            Err(host::HostError::Launch { why, .. }) => {
                return Err(failed(not_run(step, &why)));
            }
            Err(error) => return Err(error.into()),
        };
        while child.is_alive() && !interrupted.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        let code = child.exit_code();
        child.terminate(GRACE)?;
        if interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        if code != Some(0) {
            return Err(failed(complaint(step, code, &log)));
        }
    }
    Ok(())
}

/// Build steps see the user's own environment: their compiler, their flags. Only what they leave while they work goes into the
/// run's folder, and with it: a compiler that is killed removes nothing itself.
fn launch(step: &Build, folder: &Path, log: &Path) -> Result<Launch, ExperimentError> {
    let directory = std::path::absolute(&step.directory)
        .map_err(|error| ExperimentError::Missing(format!("cannot find {}: {error}", step.directory.display())))?;
    Ok(Launch {
        program: (&step.command[0]).into(),
        args: step.command[1..].iter().map(Into::into).collect(),
        env: std::env::vars_os()
            .filter(|(name, _)| name != "TMPDIR")
            .chain([("TMPDIR".into(), folder.into())])
            .collect(),
        dir: directory,
        cpus: vec![],
        stdout: log.to_owned(),
        stderr: log.to_owned(),
    })
}

/// A bare name that is in no folder of PATH is some package's program.
fn not_run(step: &Build, why: &str) -> String {
    let program = &step.command[0];
    let in_path = |path: std::ffi::OsString| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let is_absent = !program.contains('/') && !std::env::var_os("PATH").is_some_and(in_path);
    let install = if is_absent { format!("; install the package that has {program}") } else { String::new() };
    format!("`{}` cannot be run: {why}{install}", step.command.join(" "))
}

fn complaint(step: &Build, code: Option<i32>, log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    // Where make ends with that something it ran failed, that tells more.
    let is_end =
        |line: &str| line.contains("*** [") && line.contains("] Error ") || line.contains(": Leaving directory ");
    let is_makes = |line: &str| line.starts_with("make") && is_end(line);
    let lines = || text.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines().find(|line| !is_makes(line)).or_else(|| lines().next()).unwrap_or("it said nothing");
    let code = code.map_or_else(|| "lost".to_owned(), |code| code.to_string());
    format!("`{}` failed (exit code {code}): {}", step.command.join(" "), last.trim())
}
