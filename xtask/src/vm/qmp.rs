//! QEMU's own control, JSON lines over the standard input and output of its process: which port it chose, reset, quit.

use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// QEMU answers at once, unless the host is very busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The connection to one QEMU.
pub(super) struct Qmp {
    to: ChildStdin,
    from: Receiver<Value>,
}

impl Qmp {
    /// Greets.
    pub(super) fn open(to: ChildStdin, from: ChildStdout) -> anyhow::Result<Qmp> {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(from).lines().map_while(Result::ok);
            for value in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let mut qmp = Qmp { to, from: receiver };
        qmp.call(&json!({"execute": "qmp_capabilities"}))?;
        Ok(qmp)
    }

    /// The port of loopback that leads to the guest's ssh.
    pub(super) fn port(&mut self) -> anyhow::Result<u16> {
        let command = json!({"execute": "human-monitor-command", "arguments": {"command-line": "info usernet"}});
        let told = self.call(&command)?;
        let text = told.as_str().unwrap_or_default();
        forwarded(text).with_context(|| format!("QEMU forwards no port: {text}"))
    }

    /// Power off and on, as by the button: nothing in the guest is told.
    pub(super) fn reset(&mut self) -> anyhow::Result<()> {
        self.call(&json!({"execute": "system_reset"})).map(|_| ())
    }

    /// Stops the processor.
    pub(super) fn stop(&mut self) -> anyhow::Result<()> {
        self.call(&json!({"execute": "stop"})).map(|_| ())
    }

    /// Goes on after a stop.
    pub(super) fn go_on(&mut self) -> anyhow::Result<()> {
        self.call(&json!({"execute": "cont"})).map(|_| ())
    }

    /// Presses the button that wakes a suspended machine.
    pub(super) fn wake(&mut self) -> anyhow::Result<()> {
        self.call(&json!({"execute": "system_wakeup"})).map(|_| ())
    }

    /// Has both disks share what one disk can do in a second: bytes and operations. Zeros are no limit.
    pub(super) fn slow_disks(&mut self, bytes: u64, operations: u64) -> anyhow::Result<()> {
        for device in ["virtio0", "virtio1"] {
            let limits = json!({
                "device": device, "group": "disk", "bps": bytes, "bps_rd": 0, "bps_wr": 0, "iops": operations, "iops_rd": 0, "iops_wr": 0,
            });
            self.call(&json!({"execute": "block_set_io_throttle", "arguments": limits}))?;
        }
        Ok(())
    }

    /// Ends QEMU.
    pub(super) fn quit(&mut self) -> anyhow::Result<()> {
        self.call(&json!({"execute": "quit"})).map(|_| ())
    }

    fn call(&mut self, command: &Value) -> anyhow::Result<Value> {
        writeln!(self.to, "{command}").context("QEMU has gone")?;
        loop {
            let mut answer = self.from.recv_timeout(PATIENCE).context("QEMU does not answer")?;
            if let Some(error) = answer.get("error") {
                bail!("QEMU refuses {command}: {error}");
            }
            // The greeting and events come in between.
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }
}

/// The host's port in the table that QEMU draws.
fn forwarded(table: &str) -> Option<u16> {
    let line = table.lines().find(|line| line.contains("HOST_FORWARD"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_stands_in_qemus_table() {
        let table = "Hub 0 (net0):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n  \
                     TCP[HOST_FORWARD]  12       127.0.0.1 38201       10.0.2.15    22     0     0\r\n";
        assert_eq!(forwarded(table), Some(38201));
        assert_eq!(forwarded("Hub 0 (net0):\r\n"), None);
    }
}
