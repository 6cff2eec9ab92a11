//! Talking to the guest: commands by ssh, files by scp, each bounded in time. Nobody else's keys or settings are used.

use super::places::Places;
use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How long a file may take.
const COPY: Duration = Duration::from_secs(300);

/// A guest that is up.
#[derive(Debug, Clone)]
pub(super) struct Guest {
    port: u16,
    key: PathBuf,
    known_hosts: PathBuf,
}

/// What a command of the guest said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) status: ExitStatus,
    pub(super) out: String,
    pub(super) err: String,
}

/// A command of the guest that goes on while something else is done.
pub(super) struct Going {
    child: Child,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
    what: String,
}

impl Guest {
    /// The one behind `port`.
    pub(super) fn at(places: &Places, port: u16) -> Guest {
        Guest { port, key: places.key(), known_hosts: places.known_hosts() }
    }

    /// Begins a command of the guest's shell.
    pub(super) fn begin(&self, script: &str) -> anyhow::Result<Going> {
        let mut child = self
            .ssh(script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run ssh")?;
        let out = collect(child.stdout.take());
        let err = collect(child.stderr.take());
        Ok(Going { child, out, err, what: script.to_owned() })
    }

    /// Runs a command of the guest's shell to its end.
    pub(super) fn run(&self, script: &str, limit: Duration) -> anyhow::Result<Said> {
        self.begin(script)?.finish(limit)
    }

    /// Runs a command that must succeed; what it printed.
    pub(super) fn sh(&self, script: &str, limit: Duration) -> anyhow::Result<String> {
        let said = self.run(script, limit)?;
        if !said.status.success() {
            bail!("in the guest `{script}` ended with {}: {}{}", said.status, said.err, said.out);
        }
        Ok(said.out)
    }

    /// Runs a command with this program's own output; its exit code.
    pub(super) fn show(&self, script: &str, limit: Duration) -> anyhow::Result<ExitStatus> {
        let mut child = self.ssh(script).stdin(Stdio::null()).spawn().context("cannot run ssh")?;
        wait(&mut child, limit).with_context(|| format!("in the guest `{script}`"))
    }

    /// Copies a file or folder into the guest.
    pub(super) fn put(&self, from: &Path, to: &str) -> anyhow::Result<()> {
        self.copy(from.as_os_str(), format!("{WHO}:{to}").as_ref())
    }

    /// Copies a file or folder out of the guest.
    pub(super) fn get(&self, from: &str, to: &Path) -> anyhow::Result<()> {
        self.copy(format!("{WHO}:{from}").as_ref(), to.as_os_str())
    }

    /// How a person gets in.
    pub(super) fn how(&self) -> String {
        let command = self.ssh("");
        let words = command.get_args().filter(|word| !word.is_empty()).map(OsStr::to_string_lossy);
        format!("ssh {}", words.collect::<Vec<_>>().join(" "))
    }

    fn ssh(&self, script: &str) -> Command {
        let mut command = Command::new("ssh");
        command.arg("-p").arg(self.port.to_string()).args(self.options()).arg(WHO).arg(script);
        command
    }

    fn copy(&self, from: &OsStr, to: &OsStr) -> anyhow::Result<()> {
        let mut command = Command::new("scp");
        command.args(["-q", "-r", "-p", "-P"]).arg(self.port.to_string()).args(self.options()).arg(from).arg(to);
        let mut child = command.stdin(Stdio::null()).spawn().context("cannot run scp")?;
        let status = wait(&mut child, COPY).context("while copying")?;
        anyhow::ensure!(status.success(), "cannot copy {} to {}: {status}", from.display(), to.display());
        Ok(())
    }

    /// The cheapest means that are sound: every handshake is the guest's work, on one slow processor.
    fn options(&self) -> Vec<String> {
        let mut options = vec!["-F".to_owned(), "none".to_owned(), "-i".to_owned(), self.key.display().to_string()];
        for option in [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "HostKeyAlias=webdyno-vm",
            "KexAlgorithms=curve25519-sha256",
            "Ciphers=chacha20-poly1305@openssh.com",
            "ConnectTimeout=60",
            "LogLevel=ERROR",
            // Several may be named, with blanks between them.
            &format!("UserKnownHostsFile=\"{}\"", self.known_hosts.display()),
        ] {
            options.extend(["-o".to_owned(), option.to_owned()]);
        }
        options
    }
}

/// In the guest we may do everything.
const WHO: &str = "root@127.0.0.1";

impl Going {
    /// Waits for its end.
    ///
    /// # Errors
    /// When it takes longer; ssh is ended then, and the guest's shell with it at its next output.
    pub(super) fn finish(mut self, limit: Duration) -> anyhow::Result<Said> {
        let status = wait(&mut self.child, limit).with_context(|| format!("in the guest `{}`", self.what))?;
        let text = |reader: JoinHandle<String>| reader.join().unwrap_or_default();
        Ok(Said { status, out: text(self.out), err: text(self.err) })
    }
}

fn collect(from: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            // What came before an error is still worth reading.
            let _ = from.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, limit: Duration) -> anyhow::Result<ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a child")? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            // Fails only when it has ended just now.
            let _ = child.kill();
            let _ = child.wait();
            bail!("did not end within {} s", limit.as_secs());
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_takes_for_ever() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let error = wait(&mut child, Duration::from_millis(10)).unwrap_err();
        assert!(error.to_string().starts_with("did not end within"), "{error}");
        assert!(!child.try_wait().unwrap().expect("it was waited for").success());
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        assert_eq!(wait(&mut child, Duration::from_secs(60)).unwrap().code(), Some(3));
    }

    #[test]
    fn the_guests_own_key_is_the_only_one_believed() {
        let places = Places::in_folder(Path::new("/x y"));
        let how = Guest::at(&places, 4711).how();
        for part in
            ["ssh -p 4711 -F none -i /x y/key", "UserKnownHostsFile=\"/x y/known_hosts\"", "HostKeyAlias=webdyno-vm"]
        {
            assert!(how.contains(part), "{how}");
        }
        assert!(!how.contains("StrictHostKeyChecking"), "{how}");
    }
}
