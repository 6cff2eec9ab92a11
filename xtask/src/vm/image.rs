//! `cargo xtask vm build`: the guest's disks, kernel and keys, from the packages of this machine's own apt.
//!
//! Needs root, for a root file system belongs to root; mounts nothing of its own and changes nothing outside `target/vm`.

use super::places::Places;
use super::{initrd, machine, recipe};
use crate::setup::find_program;
use anyhow::{Context, bail, ensure};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What is called here and by the machine, and the package that has it.
pub(super) const PROGRAMS: [(&str, &str); 5] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("mmdebstrap", "mmdebstrap"),
    ("mke2fs", "e2fsprogs"),
    ("mkswap", "util-linux"),
    ("ssh-keygen", "openssh-client"),
];

/// Room that the build needs for a moment: the root as a folder beside the image of it.
const ROOM: u64 = 3 << 30;

/// Builds what is not there, or all of it anew.
pub(super) fn build(places: &Places, anew: bool) -> anyhow::Result<()> {
    let text = recipe::text();
    if !anew && places.unfit(&text).is_none() {
        println!("built already, {} MiB in {}", places.bytes() >> 20, places.folder().display());
        return Ok(());
    }
    require(places)?;
    let _lock = machine::lock(places)?;
    let began = Instant::now();
    let root = Staging(places.folder().join("root"));
    let _ = fs::remove_file(places.made());
    root.clear()?;
    bootstrap(&root.0)?;
    keys(places, &root.0)?;
    furnish(&root.0)?;
    boot_files(places, &root.0)?;
    disks(places, &root.0)?;
    drop(root);
    fs::write(places.made(), text).context("cannot write what was built")?;
    println!(
        "built in {:.0} s: {} MiB in {}",
        began.elapsed().as_secs_f64(),
        places.bytes() >> 20,
        places.folder().display()
    );
    Ok(())
}

fn require(places: &Places) -> anyhow::Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "not root: the guest's files belong to root; build as root");
    let missing: Vec<&str> =
        PROGRAMS.iter().filter(|(program, _)| find_program(program).is_none()).map(|(_, package)| *package).collect();
    ensure!(missing.is_empty(), "missing: {}; run `cargo xtask setup --vm`", missing.join(" "));
    fs::create_dir_all(places.folder()).with_context(|| format!("cannot make {}", places.folder().display()))?;
    let free = rustix::fs::statvfs(places.folder()).map_or(u64::MAX, |found| found.f_bavail * found.f_frsize);
    ensure!(free > ROOM, "{} has {} MiB free, {} are needed", places.folder().display(), free >> 20, ROOM >> 20);
    Ok(())
}

/// The root as a folder, which only the build needs. It is gone when this is dropped.
struct Staging(PathBuf);

impl Staging {
    fn clear(&self) -> anyhow::Result<()> {
        // mmdebstrap mounts /proc and /dev in there, in a namespace of its own; nobody else's may be emptied.
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let below = format!(" {}/", self.0.display());
        ensure!(!mounts.contains(&below), "something is mounted in {}: unmount it first", self.0.display());
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.0.display()))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            eprintln!("error: {error:#}");
        }
    }
}

fn bootstrap(root: &Path) -> anyhow::Result<()> {
    let sources = sources()?;
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--mode=root", "--variant=minbase", "--format=directory"]);
    command.arg(format!("--include={}", recipe::PACKAGES.join(",")));
    command.args(["--aptopt=Apt::Install-Recommends \"false\"", "--aptopt=Acquire::Languages \"none\""]);
    for left_out in recipe::LEFT_OUT {
        command.arg(format!("--dpkgopt=path-exclude={left_out}"));
    }
    // The release's own name comes first in each line's second word.
    let release = sources.first().and_then(|line| line.split(' ').nth(2)).context("apt names no release")?;
    command.arg(release).arg(root).args(&sources);
    run(&mut command)
}

/// Debian's lines of this machine's apt: the guest's programs must be of the same release, for ours are linked against its libc.
fn sources() -> anyhow::Result<Vec<String>> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]);
    command.arg("Origin: Debian");
    let output = command.stdin(Stdio::null()).output().context("cannot run apt-get; this needs Debian")?;
    let lines = lines(&String::from_utf8_lossy(&output.stdout));
    if lines.is_empty() {
        bail!(
            "apt knows no index of Debian's: run `apt-get update` first; the virtual machine needs Debian's cloud kernel"
        );
    }
    Ok(lines)
}

/// apt's answers as lines of sources.list, the release itself before its updates.
fn lines(indices: &str) -> Vec<String> {
    let mut lines: Vec<String> = indices.lines().map(|line| format!("deb {line}")).collect();
    lines.sort_by_key(|line| (line.split(' ').nth(2).map(|release| release.contains('-')), line.clone()));
    lines.dedup();
    lines
}

/// A key to the guest and one of the guest's own: only this checkout can talk to it, and knows whom it talks to.
fn keys(places: &Places, root: &Path) -> anyhow::Result<()> {
    for key in [places.key(), places.guest_key()] {
        let public = key.with_extension("pub");
        for file in [&key, &public] {
            let _ = fs::remove_file(file);
        }
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "webdyno-vm", "-f"]).arg(&key))?;
    }
    let ssh = root.join("root/.ssh");
    fs::create_dir_all(&ssh)?;
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700))?;
    fs::copy(places.key().with_extension("pub"), ssh.join("authorized_keys"))?;
    for (name, mode) in [("", 0o600), (".pub", 0o644)] {
        let to = root.join(format!("etc/ssh/ssh_host_ed25519_key{name}"));
        let from = if name.is_empty() { places.guest_key() } else { places.guest_key().with_extension("pub") };
        fs::copy(from, &to)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
    }
    let public = fs::read_to_string(places.guest_key().with_extension("pub"))?;
    fs::write(places.known_hosts(), format!("webdyno-vm {public}"))?;
    Ok(())
}

fn furnish(root: &Path) -> anyhow::Result<()> {
    for (name, text) in recipe::FILES {
        let file = root.join(name);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        chown(&file, Some(0), Some(0))?;
    }
    let inside = |args: &[&str]| run(Command::new("chroot").arg(root).args(args));
    inside(&["useradd", "--create-home", "--shell", "/bin/bash", recipe::USER])?;
    inside(&[&["systemctl", "--quiet", "mask"], recipe::SILENT.as_slice()].concat())?;
    inside(&[&["systemctl", "--quiet", "enable"], recipe::SERVICES.as_slice()].concat())?;
    inside(&["a2enmod", "--quiet", "cgi"])?;
    // A masked service cannot even be started by hand, and that is wanted of these two.
    for name in ["apache2.service", "nginx.service"] {
        inside(&["systemctl", "--quiet", "unmask", name])?;
        inside(&["systemctl", "--quiet", "disable", name])?;
    }
    Ok(())
}

fn boot_files(places: &Places, root: &Path) -> anyhow::Result<()> {
    let modules = root.join("usr/lib/modules");
    let kernels = fs::read_dir(&modules).with_context(|| format!("no kernel in {}", modules.display()))?;
    let version = kernels.flatten().map(|entry| entry.file_name()).max().context("the guest has no kernel")?;
    let kernel = root.join("boot").join(format!("vmlinuz-{}", version.to_string_lossy()));
    fs::copy(&kernel, places.kernel()).with_context(|| format!("cannot copy {}", kernel.display()))?;
    let mut archive = initrd::Archive::new();
    for folder in ["bin", "modules", "dev", "root"] {
        archive.folder(folder);
    }
    archive.file("init", initrd::init().as_bytes());
    archive.file("bin/busybox", &read(&root.join("usr/bin/busybox"))?);
    for module in initrd::MODULES {
        let file = modules.join(&version).join("kernel/drivers");
        let folder = if module == "virtio_blk" { "block" } else { "virtio" };
        archive.file(&format!("modules/{module}.ko"), &read(&file.join(folder).join(format!("{module}.ko")))?);
    }
    fs::write(places.initrd(), archive.finish()).context("cannot write the initrd")?;
    Ok(())
}

fn disks(places: &Places, root: &Path) -> anyhow::Result<()> {
    for (file, mib) in [(places.disk(), recipe::DISK_MIB), (places.swap(), recipe::SWAP_MIB)] {
        let _ = fs::remove_file(&file);
        let made = fs::File::create_new(&file).with_context(|| format!("cannot make {}", file.display()))?;
        made.set_len(mib << 20)?;
    }
    run(Command::new("mke2fs").args(["-q", "-t", "ext4", "-d"]).arg(root).arg(places.disk()))?;
    run(Command::new("mkswap").arg("--quiet").arg(places.swap()))
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .env("LC_ALL", "C.UTF-8")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {name}"))?;
    ensure!(status.success(), "{name} failed ({status}); its own message stands above");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_comes_before_its_updates() {
        let indices = "http://d/debian-security/ bookworm-security main\nhttp://d/debian/ bookworm main\n\
                       http://d/debian/ bookworm main\nhttp://d/debian/ bookworm-updates main\n";
        assert_eq!(
            lines(indices),
            [
                "deb http://d/debian/ bookworm main",
                "deb http://d/debian-security/ bookworm-security main",
                "deb http://d/debian/ bookworm-updates main",
            ]
        );
        assert!(lines("").is_empty());
    }
}
