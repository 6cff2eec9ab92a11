//! One running virtual machine: QEMU as a child that never outlives this process, with 1 GB, one CPU and disks that forget.
//!
//! What the guest writes goes to files that are deleted as soon as they are open, so a killed machine leaves nothing and the next one
//! starts as the first. One machine at a time per checkout: a lock sees to it.

use super::guest::Guest;
use super::places::Places;
use super::qmp::Qmp;
use super::recipe;
use crate::setup::find_program;
use anyhow::{Context, bail, ensure};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a boot may take: it takes a quarter of a minute on an idle host.
const BOOT: Duration = Duration::from_secs(240);
/// How often the console is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long QEMU may take to end by itself.
const END: Duration = Duration::from_secs(5);

/// How QEMU makes a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    /// By translation: slow, and works everywhere.
    Translated,
    /// By the host's own processor, through `/dev/kvm`.
    Kvm,
}

/// A running machine. Dropping it ends it.
pub(super) struct Machine {
    places: Places,
    process: Child,
    qmp: Qmp,
    port: u16,
    /// Held, and let go by the kernel however this process ends.
    _lock: File,
}

impl Machine {
    /// Starts one and waits until it can be talked to. Says how long that took. `boot` is what its kernel is told beside the usual.
    ///
    /// # Errors
    /// When none was built, another one runs, QEMU cannot be run, or nothing is ready within four minutes.
    pub(super) fn start(places: &Places, engine: Engine, boot: &str) -> anyhow::Result<Machine> {
        if let Some(why) = places.unfit(&recipe::text()) {
            bail!(why);
        }
        let lock = lock(places)?;
        let began = Instant::now();
        // One that was killed between making its files and deleting them may have left some.
        let _ = fs::remove_dir_all(places.scratch());
        fs::create_dir_all(places.scratch()).context("cannot make the folder for what the guest writes")?;
        File::create(places.console()).context("cannot make the console's file")?;
        let mut process = spawn(places, engine, boot)?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else { bail!("QEMU has no pipes") };
        let opened = Qmp::open(to, from).and_then(|mut qmp| Ok((qmp.port()?, qmp)));
        let (port, qmp) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                end(&mut process);
                return Err(error.context("QEMU did not start; its own message stands above"));
            }
        };
        let mut machine = Machine { places: places.clone(), process, qmp, port, _lock: lock };
        machine.await_boot(1)?;
        // Only now may others use it.
        (&machine._lock).write_all(port.to_string().as_bytes()).context("cannot tell the port")?;
        let how = if engine == Engine::Kvm { "by KVM" } else { "without KVM" };
        println!("booted in {:.1} s, {how}", began.elapsed().as_secs_f64());
        Ok(machine)
    }

    /// Whom to talk to.
    pub(super) fn guest(&self) -> Guest {
        Guest::at(&self.places, self.port)
    }

    /// Pushes the button and waits until the guest is up again.
    pub(super) fn reset(&mut self) -> anyhow::Result<()> {
        let boots = self.boots();
        self.qmp.reset()?;
        self.await_boot(boots + 1)
    }

    /// Stops the guest's processor for so long, as a host does that is short of its own: nothing in the guest is told.
    pub(super) fn hold(&mut self, length: Duration) -> anyhow::Result<()> {
        self.qmp.stop()?;
        thread::sleep(length);
        self.qmp.go_on()
    }

    /// Wakes a guest that has been suspended to its memory.
    pub(super) fn wake(&mut self) -> anyhow::Result<()> {
        self.qmp.wake()
    }

    /// Has the root's disk and that of swap be one disk of so many bytes and operations a second.
    pub(super) fn slow_disks(&mut self, bytes: u64, operations: u64) -> anyhow::Result<()> {
        self.qmp.slow_disks(bytes, operations)
    }

    /// Nanoseconds that QEMU's threads have run on the host's CPUs, and that they could have and had to wait; zeros where the kernel does
    /// not tell.
    pub(super) fn ran_and_waited(&self) -> (u64, u64) {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).into_iter().flatten().flatten();
        let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
        texts.fold((0, 0), |(ran, waited), text| {
            let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().unwrap_or(0));
            (ran + numbers.next().unwrap_or(0), waited + numbers.next().unwrap_or(0))
        })
    }

    /// Ends it.
    pub(super) fn stop(mut self) {
        let _ = self.qmp.quit();
        let deadline = Instant::now() + END;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
    }

    /// Waits until QEMU ends, however it does.
    pub(super) fn wait(mut self) -> anyhow::Result<()> {
        self.process.wait().context("cannot wait for QEMU")?;
        Ok(())
    }

    /// How often the guest has become ready.
    fn boots(&self) -> usize {
        let said = fs::read(self.places.console()).unwrap_or_default();
        String::from_utf8_lossy(&said).matches(recipe::READY).count()
    }

    fn await_boot(&mut self, boots: usize) -> anyhow::Result<()> {
        let deadline = Instant::now() + BOOT;
        while self.boots() < boots {
            if let Some(status) = self.process.try_wait().context("cannot look after QEMU")? {
                bail!("QEMU ended ({status}); see {}", self.places.console().display());
            }
            ensure!(
                Instant::now() < deadline,
                "the guest is not ready after {} s; see {}",
                BOOT.as_secs(),
                self.places.console().display()
            );
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

fn end(process: &mut Child) {
    // Both fail only when it has ended already.
    let _ = process.kill();
    let _ = process.wait();
}

/// The machine that `cargo xtask vm start` keeps running, if there is one.
pub(super) fn running(places: &Places) -> anyhow::Result<Option<Guest>> {
    let Ok(mut file) = File::open(places.running()) else { return Ok(None) };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => {}
        _ => return Ok(None),
    }
    let mut text = String::new();
    file.read_to_string(&mut text).context("cannot read which port the machine has")?;
    match text.parse() {
        Ok(port) => Ok(Some(Guest::at(places, port))),
        Err(_) => bail!("a machine of this checkout is booting or being built: wait until it is up"),
    }
}

/// Keeps others from starting, building and removing the machine for as long as the file is open.
pub(super) fn lock(places: &Places) -> anyhow::Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(places.running())
        .context("cannot lock the machine")?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => bail!("a machine of this checkout is running, or being built: end it first"),
        locked => locked.context("cannot lock the machine")?,
    }
    file.set_len(0)?;
    Ok(file)
}

fn spawn(places: &Places, engine: Engine, boot: &str) -> anyhow::Result<Child> {
    qemu(arguments(places, engine, boot), &places.scratch())
}

/// QEMU, which the kernel kills when this process dies; `scratch` is where it puts what it needs for itself.
pub(super) fn qemu(arguments: Vec<String>, scratch: &Path) -> anyhow::Result<Child> {
    let program = find_program("qemu-system-x86_64").context("no QEMU here: run `cargo xtask setup --vm`")?;
    let mut command = Command::new(program);
    command.args(arguments).env("TMPDIR", scratch);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let parent = rustix::process::getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Died in between, the parent will send nothing any more.
        if getppid() != Some(parent) {
            return Err(Errno::SRCH.into());
        }
        rustix::process::nice(NICE)?;
        Ok(())
    };
    // SAFETY: bare system calls on values of the stack; nothing is allocated, locked or freed between fork and exec.
    unsafe { command.pre_exec(prepare) };
    command.spawn().context("cannot start QEMU")
}

/// The host's other work comes first.
const NICE: i32 = 5;

fn arguments(places: &Places, engine: Engine, boot: &str) -> Vec<String> {
    let accelerator = if engine == Engine::Kvm { "kvm" } else { "tcg,thread=single" };
    // A plain processor: what newer ones can do in hardware takes longest to imitate.
    let processor = if engine == Engine::Kvm { "host" } else { "qemu64" };
    // What the host's memory holds of them is their only speed; the guest then writes as fast to swap as the document's server did.
    let disk =
        |file: std::path::PathBuf| format!("if=virtio,format=raw,snapshot=on,cache=unsafe,file={}", file.display());
    let console = format!("file:{}", places.console().display());
    let (kernel, initrd) = (places.kernel().display().to_string(), places.initrd().display().to_string());
    // Port 0: QEMU takes a free one. The guest can be reached from this machine only, and reaches nobody.
    let net = "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:0-10.0.2.15:22";
    let kernel_line = format!("{} {boot}", recipe::KERNEL_LINE);
    let memory = recipe::MEMORY_MIB.to_string();
    let root = disk(places.disk());
    let swap = disk(places.swap());
    [
        ["-machine", "q35"],
        ["-accel", accelerator],
        ["-cpu", processor],
        ["-smp", "1"],
        ["-m", &memory],
        ["-display", "none"],
        ["-monitor", "none"],
        ["-serial", &console],
        ["-qmp", "stdio"],
        ["-kernel", &kernel],
        ["-initrd", &initrd],
        ["-append", &kernel_line],
        ["-drive", &root],
        ["-drive", &swap],
        ["-netdev", net],
        ["-device", "virtio-net-pci,netdev=net,romfile="],
    ]
    .concat()
    .into_iter()
    .chain(["-nodefaults"])
    .map(str::to_owned)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// Names the folder of the machine to the process that [`inner`] is meant for.
    const INNER: &str = "WEBDYNO_VM_TEST";

    /// Plays the parent that is killed.
    #[test]
    fn inner() {
        let Some(folder) = std::env::var_os(INNER).map(PathBuf::from) else { return };
        let mut process = spawn(&Places::in_folder(&folder), Engine::Translated, "").unwrap();
        fs::write(folder.join("pid.new"), process.id().to_string()).unwrap();
        fs::rename(folder.join("pid.new"), folder.join("pid")).unwrap();
        process.wait().unwrap();
    }

    #[test]
    fn a_killed_parent_takes_its_machine_along() {
        let here = Places::here();
        if let Some(why) = here.unfit(&recipe::text()) {
            return testkit::skip::not_here(&why);
        }
        // A folder of its own: a machine that runs beside this test keeps its console and its lock.
        let folder = tempfile::tempdir().unwrap();
        let places = Places::in_folder(folder.path());
        for (file, name) in [
            (here.kernel(), places.kernel()),
            (here.initrd(), places.initrd()),
            (here.disk(), places.disk()),
            (here.swap(), places.swap()),
        ] {
            symlink(file, name).unwrap();
        }
        fs::create_dir(places.scratch()).unwrap();
        let mut parent = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "vm::machine::tests::inner", "--nocapture"])
            .env(INNER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let told = within(Duration::from_secs(60), || fs::read_to_string(folder.path().join("pid")).ok());
        parent.kill().unwrap();
        parent.wait().unwrap();
        let stat = Path::new("/proc").join(told.expect("QEMU starts")).join("stat");
        // A zombie that nobody waits for is dead as well.
        let dead = || fs::read_to_string(&stat).map_or(true, |text| text.contains(") Z "));
        assert!(within(Duration::from_secs(30), || dead().then_some(())).is_some(), "QEMU lives on");
    }

    fn within<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + limit;
        loop {
            match look() {
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
                found => return found,
            }
        }
    }
}
