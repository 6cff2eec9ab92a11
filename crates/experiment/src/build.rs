//! The plan's build steps: run before anything is measured, their output kept for the message when one fails.

use crate::ExperimentError;
use crate::event::Event;
use model::plan::{Build, Plan};
use std::process::{Command, Stdio};

/// Runs every build step in order.
pub(crate) fn build(plan: &Plan, on_event: &mut dyn FnMut(Event<'_>)) -> Result<(), ExperimentError> {
    for step in &plan.build {
        on_event(Event::Building(&step.command));
        one(step).map_err(|what| ExperimentError::Plan { file: plan.file.clone(), line: step.line, what })?;
    }
    Ok(())
}

fn one(step: &Build) -> Result<(), String> {
    let shown = step.command.join(" ");
    let output = Command::new(&step.command[0])
        .args(&step.command[1..])
        .current_dir(&step.directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{shown}` cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stderr, output.stdout].concat();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(format!("`{shown}` failed ({}): {}", output.status, last.trim()))
}
