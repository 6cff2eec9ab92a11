//! `cargo xtask vm kernel`: boots kernels of other distributions with nothing but busybox and webdyno, shows what a watch says there, and
//! keeps the files that it read: what the tests read of a kernel is to be what that kernel writes.
//!
//! A kernel comes as the packages that its distribution has it in, which are only unpacked. Its own root is the first file system.

use super::initrd::Archive;
use super::machine;
use super::places::{self, Places};
use anyhow::{Context, bail, ensure};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Modules that are put in with all that they need, where they are not in the kernel itself.
const WANTED: [&str; 5] = ["virtio_pci", "virtio_blk", "virtio_net", "virtio_rng", "tcp_diag"];
/// A shell, and what a kernel needs for its disks, network and groups.
const BUSYBOX: &str = "/usr/bin/busybox";
/// How long a kernel may take from its start to its end.
const PATIENCE: Duration = Duration::from_secs(300);
/// Bytes of each of its two disks.
const DISK: u64 = 64 << 20;

/// How what the guest tells is told apart: a line that begins so names what follows.
const PART: &str = "@@ ";
/// The last of all parts.
const END: &str = "end";

/// Where a kernel is unpacked and booted; gone when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn make(places: &Places) -> anyhow::Result<Folder> {
        let folder = Folder(places.folder().join(format!("kernel-{}", std::process::id())));
        fs::create_dir_all(&folder.0).with_context(|| format!("cannot make {}", folder.0.display()))?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing depends on it; `cargo xtask vm remove` takes what is left.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a kernel told.
struct Told(Vec<(String, String)>);

/// Boots the kernel of these packages, prints what a watch showed, and writes what it read into a file that it names.
pub(super) fn run(places: &Places, packages: &[PathBuf]) -> anyhow::Result<()> {
    let folder = Folder::make(places)?;
    let root = folder.0.join("packages");
    for package in packages {
        let status =
            Command::new("dpkg-deb").arg("-x").arg(package).arg(&root).status().context("cannot run dpkg-deb")?;
        ensure!(status.success(), "{} cannot be unpacked", package.display());
    }
    let (kernel, version) = kernel(&root)?;
    fs::write(folder.0.join("initrd"), initrd(&root, &version)?)?;
    for disk in ["disk", "swap"] {
        File::create(folder.0.join(disk))?.set_len(DISK)?;
    }
    let told = boot(&folder.0, &kernel)?;
    let files = places.folder().join(format!("proc-{version}.txt"));
    fs::write(&files, told.part("files").unwrap_or_default())?;
    for part in ["rows", "said", "json", "vmstat", "dmesg"] {
        println!("== {part}\n{}", told.part(part).unwrap_or("nothing").trim_end());
    }
    println!("Linux {version}: its files are in {}", files.display());
    ensure!(told.part(END).is_some(), "it did not come to its end; its last words stand above");
    Ok(())
}

impl Told {
    fn parse(text: &str) -> Told {
        let mut parts: Vec<(String, String)> = Vec::new();
        for line in text.lines() {
            match (line.strip_prefix(PART), parts.last_mut()) {
                (Some(name), _) => parts.push((name.trim_end().to_owned(), String::new())),
                (None, Some((_, text))) => {
                    text.push_str(line.trim_end_matches('\r'));
                    text.push('\n');
                }
                // The firmware's own words.
                (None, None) => {}
            }
        }
        Told(parts)
    }

    fn part(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, text)| text.as_str())
    }
}

/// The kernel of some packages and its version.
fn kernel(root: &Path) -> anyhow::Result<(PathBuf, String)> {
    let version = fs::read_dir(modules(root)?)?.flatten().next().context("these packages have no modules")?.file_name();
    let version = version.to_string_lossy().into_owned();
    let own = modules(root)?.join(&version).join("vmlinuz");
    let found = [root.join("boot").join(format!("vmlinuz-{version}")), own].into_iter().find(|file| file.exists());
    Ok((found.with_context(|| format!("these packages have modules of {version} and no kernel"))?, version))
}

fn modules(root: &Path) -> anyhow::Result<PathBuf> {
    let places = ["lib/modules", "usr/lib/modules"].map(|place| root.join(place));
    places.into_iter().find(|place| place.is_dir()).context("these packages have no modules")
}

fn initrd(root: &Path, version: &str) -> anyhow::Result<Vec<u8>> {
    let program = places::webdyno();
    let bare = root.with_file_name("webdyno");
    let status = Command::new("strip").arg("-o").arg(&bare).arg(&program).status().context("cannot run strip")?;
    ensure!(status.success(), "no {}: `cargo build --release -p webdyno` makes it", program.display());
    let mut archive = Archive::new();
    let mut folders = BTreeSet::new();
    let libraries = libraries(&program)?;
    for folder in ["bin", "dev", "proc", "sys", "tmp", "modules", "root", "etc"].map(Path::new) {
        folders.insert(folder.to_owned());
    }
    for file in &libraries {
        let parents = file.ancestors().skip(1).filter_map(|folder| folder.strip_prefix("/").ok());
        folders.extend(parents.filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned));
    }
    folders.iter().for_each(|folder| archive.folder(&folder.display().to_string()));
    for file in &libraries {
        archive.file(file.display().to_string().trim_start_matches('/'), &read(file)?);
    }
    archive.file("bin/busybox", &read(Path::new(BUSYBOX))?);
    archive.file("bin/webdyno", &read(&bare)?);
    let mut names = Vec::new();
    for (number, module) in needed(root, version)?.iter().enumerate() {
        let name = format!("modules/{number:02}.ko");
        archive.file(&name, &unpacked(module)?);
        names.push(format!("/{name}"));
    }
    archive.file("init", include_str!("kernel-init.sh").replace("MODULES", &names.join(" ")).as_bytes());
    Ok(archive.finish())
}

/// The program's loader and libraries.
fn libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let told = Command::new("ldd").arg(program).output().context("cannot run ldd")?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    Ok(told.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}

/// The files of the modules that are wanted, each behind those that it needs.
fn needed(root: &Path, version: &str) -> anyhow::Result<Vec<PathBuf>> {
    let modules = modules(root)?;
    let base = modules.ancestors().nth(2).context("modules are in lib")?;
    // Writes modules.dep; it is of the packages' making, and not in them.
    let status = Command::new("depmod").arg("-b").arg(base).arg(version).status().context("cannot run depmod")?;
    ensure!(status.success(), "depmod cannot tell what these modules need");
    let folder = modules.join(version);
    let text = fs::read_to_string(folder.join("modules.dep"))?;
    Ok(in_order(&text).into_iter().map(|name| folder.join(name)).collect())
}

/// `a.ko: c.ko b.ko`, where c needs b: those that are wanted, and before them what they need.
fn in_order(dependencies: &str) -> Vec<&str> {
    let mut order: Vec<&str> = Vec::new();
    for wanted in WANTED {
        let is_it = |file: &str| {
            file.rsplit('/')
                .next()
                .and_then(|name| name.split('.').next())
                .is_some_and(|name| name.replace('-', "_") == wanted)
        };
        let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
        for (file, needs) in lines.filter(|(file, _)| is_it(file)) {
            for name in needs.split_whitespace().rev().chain([file]) {
                if !order.contains(&name) {
                    order.push(name);
                }
            }
        }
    }
    order
}

fn unpacked(module: &Path) -> anyhow::Result<Vec<u8>> {
    let program = match module.extension().and_then(|end| end.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return read(module),
    };
    let output =
        Command::new(program).arg("-dc").arg(module).output().with_context(|| format!("cannot run {program}"))?;
    ensure!(output.status.success(), "{program} cannot unpack {}", module.display());
    Ok(output.stdout)
}

/// Boots it and waits until it has switched itself off.
fn boot(folder: &Path, kernel: &Path) -> anyhow::Result<Told> {
    let own = |name: &str| folder.join(name).display().to_string();
    let disk = |name: &str| format!("if=virtio,format=raw,cache=unsafe,file={}", own(name));
    let words = [
        ["-machine", "q35"],
        ["-accel", "tcg,thread=single"],
        ["-cpu", "qemu64"],
        ["-m", "512"],
        ["-display", "none"],
        ["-monitor", "none"],
        ["-kernel", &kernel.display().to_string()],
        ["-initrd", &own("initrd")],
        ["-append", "console=ttyS0 panic=-1 net.ifnames=0 psi=1"],
        ["-drive", &disk("disk")],
        ["-drive", &disk("swap")],
        ["-netdev", "user,id=net,restrict=on"],
        ["-device", "virtio-net-pci,netdev=net,romfile="],
        // An old kernel has no random numbers for minutes without one.
        ["-device", "virtio-rng-pci"],
        ["-serial", &format!("file:{}", own("console"))],
        ["-serial", &format!("file:{}", own("told"))],
    ];
    let words = words.concat().into_iter().chain(["-nodefaults", "-no-reboot"]).map(str::to_owned).collect();
    let mut process = machine::qemu(words, folder)?;
    let deadline = Instant::now() + PATIENCE;
    while process.try_wait().context("cannot look after QEMU")?.is_none() {
        if Instant::now() > deadline {
            // Fails only when it has ended just now.
            let _ = process.kill();
            let _ = process.wait();
        }
        thread::sleep(Duration::from_millis(50));
    }
    let text = |name: &str| fs::read(folder.join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let told = text("told")?;
    if told.is_empty() {
        let console = text("console")?;
        let last: Vec<&str> = console.lines().rev().take(20).collect();
        bail!("it told nothing; its console's last words:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
    }
    Ok(Told::parse(&told))
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_comes_before_it() {
        let dependencies = "kernel/drivers/block/virtio_blk.ko.xz: kernel/drivers/virtio/virtio.ko.xz kernel/virtio_ring.ko.xz\n\
                            kernel/x_virtio_blk.ko:\nkernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio.ko.xz \
                            kernel/virtio_ring.ko.xz\n";
        let names: Vec<_> = in_order(dependencies).into_iter().map(|file| file.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["virtio_ring.ko.xz", "virtio.ko.xz", "virtio_pci.ko", "virtio_blk.ko.xz"]);
    }

    #[test]
    fn parts_are_told_apart() {
        let told = Told::parse("SeaBIOS\n@@ rows\r\n 1 2\r\n@@ end\r\n");
        assert_eq!((told.part("rows"), told.part("end"), told.part("said")), (Some(" 1 2\n"), Some(""), None));
    }
}
