//! `cargo xtask setup`: the system's packages that the tests need, installed by apt without starting any service.
//!
//! Quick when nothing is missing: it then only asks dpkg. Other distributions get one line that says what to install.

use crate::cargo;
use crate::signals::HeldSignals;
use anyhow::{Context, bail};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What was typed after `setup`.
#[derive(clap::Args, Default)]
pub(crate) struct Flags {
    /// Also install what `cargo xtask bench` compares webdyno with, and measures with: wrk, hey, strace, valgrind ...
    #[arg(long)]
    bench: bool,
    /// Also install oha, which cargo builds from its source: about a quarter of an hour
    #[arg(long)]
    oha: bool,
    /// Also install what `cargo xtask vm` builds and runs its virtual machine with: QEMU, mmdebstrap
    #[arg(long)]
    vm: bool,
    /// Also build an httpd with the paths of RHEL's layout, for long tests: some minutes
    #[arg(long)]
    redhat: bool,
}

/// One thing that is needed.
struct Need {
    /// Packages that provide it: the first one that the system knows is taken.
    packages: &'static [&'static str],
    /// Who needs it, as the end of a sentence.
    for_what: &'static str,
}

const TESTS: [Need; 35] = [
    Need { packages: &["curl"], for_what: "the commands of the articles' pages" },
    Need { packages: &["procps"], for_what: "the commands of the articles' pages" },
    Need { packages: &["gcc"], for_what: "the C parts" },
    Need { packages: &["libc6-dev"], for_what: "the C parts" },
    Need { packages: &["make"], for_what: "the C parts" },
    Need { packages: &["apache2"], for_what: "tests of the Apache control" },
    Need { packages: &["apache2-utils"], for_what: "comparison with ab" },
    Need { packages: &["dstat"], for_what: "comparison with dstat" },
    Need { packages: &["python3-pip"], for_what: "comparison with dool, which is installed from PyPI" },
    Need { packages: &["apache2-dev"], for_what: "Apache modules" },
    Need { packages: &["pkg-config"], for_what: "Apache modules (where Lua is)" },
    Need { packages: &["liblua5.4-dev", "liblua5.3-dev"], for_what: "policies of mod_admission" },
    Need { packages: &["nghttp2-client"], for_what: "streams of HTTP/2 (h2load), also in benchmarks" },
    Need { packages: &["libapache2-mod-php"], for_what: "PHP pages under Apache" },
    Need { packages: &["php-fpm"], for_what: "PHP pages behind Apache's event and nginx" },
    Need { packages: &["nginx"], for_what: "tests against nginx" },
    Need { packages: &["haproxy"], for_what: "servers behind a proxy" },
    Need { packages: &["mariadb-server"], for_what: "pages that ask a database" },
    Need { packages: &["php-mysql"], for_what: "pages that ask a database" },
    Need { packages: &["nodejs"], for_what: "a server that is a command of the plan's" },
    Need { packages: &["gunicorn"], for_what: "a server that is a command of the plan's" },
    Need { packages: &["tomcat10-user"], for_what: "a server that is a command of the plan's, and one that ends it" },
    Need { packages: &["cronolog"], for_what: "plans about access logs" },
    Need { packages: &["php-gd"], for_what: "a WordPress that makes thumbnails" },
    Need { packages: &["wordpress"], for_what: "a WordPress" },
    Need { packages: &["wordpress-theme-twentytwentythree"], for_what: "a WordPress" },
    Need { packages: &["openssh-client"], for_what: "loads from another machine" },
    Need { packages: &["openssh-server"], for_what: "loads from another machine" },
    Need { packages: &["iproute2"], for_what: "two machines with a cable between them" },
    Need { packages: &["util-linux"], for_what: "two machines with a cable between them (nsenter)" },
    Need { packages: &["runc"], for_what: "tests of watching from inside a container" },
    // Debian has `chromium`; Ubuntu has only `chromium-browser`.
    Need { packages: &["chromium", "chromium-browser"], for_what: "tests of the report page" },
    Need { packages: &["fonts-noto-cjk"], for_what: "the report page in Japanese" },
    Need { packages: &[MOD_QOS.0], for_what: "tests of the articles' pages (mod_qos), benchmarks of mod_admission" },
    Need { packages: &[MPM_ITK.0], for_what: "tests of mod_admission beside mpm-itk" },
];

/// A package and its module, which Debian's package switches on in the machine's own Apache.
type SwitchedOn = (&'static str, &'static str);
/// On Debian 12 Apache does not start with it.
const MOD_QOS: SwitchedOn = ("libapache2-mod-qos", "qos");
/// It makes a process of each connection. Its package also changes event or worker to prefork, as mod_php's has already.
const MPM_ITK: SwitchedOn = ("libapache2-mpm-itk", "mpm_itk");

const BENCH: [Need; 10] = [
    Need { packages: &["wrk"], for_what: "benchmarks" },
    Need { packages: &["hyperfine"], for_what: "benchmarks" },
    Need { packages: &["siege"], for_what: "benchmarks" },
    Need { packages: &["hey"], for_what: "benchmarks" },
    Need { packages: &["openssl"], for_what: "benchmarks (a certificate)" },
    Need { packages: &["strace"], for_what: "benchmarks (system calls per request)" },
    Need { packages: &["valgrind"], for_what: "benchmarks (instructions per request)" },
    Need { packages: &["procps"], for_what: "benchmarks of the monitor (vmstat)" },
    Need { packages: &["sysstat"], for_what: "benchmarks of the monitor (sar)" },
    Need { packages: &["atop"], for_what: "benchmarks of the monitor" },
];

const VM: [Need; 9] = [
    Need { packages: &["qemu-system-x86"], for_what: "the virtual machine" },
    Need { packages: &["mmdebstrap"], for_what: "the virtual machine" },
    Need { packages: &["e2fsprogs"], for_what: "the virtual machine" },
    Need { packages: &["openssh-client"], for_what: "the virtual machine" },
    Need { packages: &["binutils"], for_what: "the virtual machine (strip)" },
    Need { packages: &["busybox-static"], for_what: "other kernels in the virtual machine" },
    Need { packages: &["kmod"], for_what: "other kernels in the virtual machine (depmod)" },
    Need { packages: &["xz-utils"], for_what: "other kernels in the virtual machine" },
    Need { packages: &["zstd"], for_what: "other kernels in the virtual machine" },
];

/// Installs what is missing, or says why it cannot.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let wanted = |wanted: bool, needs: &'static [Need]| if wanted { needs } else { &[] };
    let needs = || TESTS.iter().chain(wanted(flags.bench, &BENCH)).chain(wanted(flags.vm, &VM));
    if !has_dpkg() {
        let names: Vec<&str> = needs().map(|need| need.packages[0]).collect();
        bail!("this is not Debian or Ubuntu; install by hand what they call: {}", names.join(" "));
    }
    provide(needs(), Path::new("/usr/sbin/policy-rc.d"))?;
    provide_dool()?;
    if flags.redhat {
        crate::redhat::provide(&target_folder()?)?;
    }
    if flags.oha { provide_oha() } else { Ok(()) }
}

/// The version of dool whose screens and files webdyno draws.
const DOOL: &str = "dool==1.3.8";
/// Where it is, below the target folder.
const DOOL_MAIN: &str = "dool/dool/__main__.py";

/// Installs dool into the target folder, where the tests look for it: it is in no distribution, and no business of the system's.
fn provide_dool() -> anyhow::Result<()> {
    let target = target_folder()?;
    let folder = target.join("dool");
    if target.join(DOOL_MAIN).exists() {
        println!("present: {DOOL}");
        return Ok(());
    }
    let status = Command::new("/usr/bin/python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"])
        .arg("--target")
        .arg(&folder)
        .arg(DOOL)
        // Pip warns of installing as root, which is about the system's folders.
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .status()
        .context("cannot run /usr/bin/python3")?;
    if !status.success() {
        bail!("pip cannot install {DOOL} into {}; its own message stands above", folder.display());
    }
    println!("installed {DOOL}");
    Ok(())
}

/// Cargo's target folder, in which this very program was built.
fn target_folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    program.ancestors().nth(2).map(Path::to_owned).context("this program is in no target folder")
}

/// Builds and installs oha where cargo installs programs, unless it is there.
fn provide_oha() -> anyhow::Result<()> {
    if let Some(found) = find_program("oha") {
        println!("present: {}", found.display());
        return Ok(());
    }
    let status = cargo(&["install", "oha", "--locked"]).status().context("cannot run cargo")?;
    if !status.success() {
        bail!("`cargo install oha --locked` failed; its own message stands above");
    }
    println!("installed oha");
    Ok(())
}

/// A program by its name: on the PATH, where administrators' programs are, or where cargo installs.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let of_cargo = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
        .map(|home| home.join("bin"));
    std::env::split_paths(&on_path)
        .chain([PathBuf::from("/usr/sbin")])
        .chain(of_cargo)
        .map(|folder| folder.join(name))
        .find(|path| fs::metadata(path).is_ok_and(|it| it.is_file() && it.mode() & 0o111 != 0))
}

/// Installs what is missing of `needs`; `policy` says where Debian looks whether a service may start.
fn provide<'a>(needs: impl Iterator<Item = &'a Need>, policy: &Path) -> anyhow::Result<()> {
    NoServices::forget(policy)?;
    let (present, missing): (Vec<&Need>, Vec<&Need>) = needs.partition(|need| is_here(need));
    if !present.is_empty() {
        println!("present: {}", first_names(&present).join(" "));
    }
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root()? {
        bail!("not root; run as root: apt-get install --no-install-recommends {}", first_names(&missing).join(" "));
    }
    install(&missing, policy)
}

/// What [`run`] would install, one line each: the package and who needs it. Empty where dpkg is unknown.
pub(crate) fn missing() -> Vec<String> {
    if !has_dpkg() {
        return vec!["not Debian or Ubuntu: see `cargo xtask setup`".to_owned()];
    }
    TESTS
        .iter()
        .filter(|need| !is_here(need))
        .map(|need| format!("{} (for {})", need.packages[0], need.for_what))
        .chain(dool_missing())
        .collect()
}

fn dool_missing() -> Option<String> {
    let is_there = target_folder().is_ok_and(|target| target.join(DOOL_MAIN).exists());
    (!is_there).then(|| "dool, from PyPI (for comparison with dool)".to_owned())
}

fn install(missing: &[&Need], policy: &Path) -> anyhow::Result<()> {
    // Dropped in the other order: the file is gone before a signal ends this program.
    let _signals = HeldSignals::begin()?;
    let _quiet = NoServices::begin(policy)?;
    apt(&["update"])?;
    let mut names = Vec::new();
    for need in missing {
        let known = need.packages.iter().find(|name| has_candidate(name));
        names.push(*known.with_context(|| format!("apt knows no package {}", need.packages.join(" or ")))?);
    }
    let mut args = vec!["install", "--yes", "--no-install-recommends"];
    args.extend(&names);
    apt(&args)?;
    for name in &names {
        println!("installed {name}");
    }
    let mut left_on = Vec::new();
    for (_, module) in [MOD_QOS, MPM_ITK].into_iter().filter(|(package, _)| names.contains(package)) {
        let off = Command::new("/usr/sbin/a2dismod").args(["--quiet", module]).stdin(Stdio::null()).status();
        if !off.is_ok_and(|status| status.success()) {
            left_on.push(module);
        }
    }
    if !left_on.is_empty() {
        bail!(
            "switched on in the machine's Apache, which may not start with them; run as root: a2dismod {}",
            left_on.join(" ")
        );
    }
    let would_start: Vec<&str> = names
        .iter()
        .filter(|name| matches!(**name, "apache2" | "nginx" | "haproxy" | "mariadb-server"))
        .copied()
        .collect();
    if !would_start.is_empty() && Path::new("/run/systemd/system").exists() {
        println!(
            "started nothing; so that the next boot starts nothing either: systemctl disable {}",
            would_start.join(" ")
        );
    }
    Ok(())
}

fn first_names(needs: &[&Need]) -> Vec<&'static str> {
    needs.iter().map(|need| need.packages[0]).collect()
}

fn apt(args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("apt-get")
        .args(["-q", "-o", "DPkg::Lock::Timeout=120"])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()
        .context("cannot run apt-get")?;
    if !status.success() {
        bail!("`apt-get {}` failed; its own message stands above", args.join(" "));
    }
    Ok(())
}

fn has_dpkg() -> bool {
    Path::new("/var/lib/dpkg/status").exists()
}

fn is_here(need: &Need) -> bool {
    need.packages.iter().any(|name| {
        output("dpkg-query", &["-W", "-f=${db:Status-Status}", name]).is_some_and(|text| text == "installed")
    })
}

fn has_candidate(package: &str) -> bool {
    output("apt-cache", &["policy", package])
        .is_some_and(|text| text.lines().any(|line| line.trim().starts_with("Candidate:") && !line.ends_with("(none)")))
}

fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).env("LC_ALL", "C").stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_root() -> anyhow::Result<bool> {
    Ok(fs::metadata("/proc/self").context("cannot tell who runs this")?.uid() == 0)
}

/// While it lives, packages may not start their services, by Debian's own policy file.
///
/// A file that is already there is the administrator's and stays.
struct NoServices {
    made: Option<PathBuf>,
}

const POLICY: &str = "#!/bin/sh\n# Made by `cargo xtask setup`, which removes it when it is done.\nexit 101\n";

impl NoServices {
    fn begin(policy: &Path) -> anyhow::Result<NoServices> {
        let why = || format!("cannot write {}", policy.display());
        match fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(policy) {
            Ok(mut file) => {
                let quiet = NoServices { made: Some(policy.to_owned()) };
                file.write_all(POLICY.as_bytes()).with_context(why)?;
                Ok(quiet)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(NoServices { made: None }),
            Err(error) => Err(error).with_context(why),
        }
    }

    /// Removes a file of ours that a killed setup left behind: no package could start its service any more.
    fn forget(policy: &Path) -> anyhow::Result<()> {
        if fs::read(policy).is_ok_and(|text| text == POLICY.as_bytes()) {
            fs::remove_file(policy).with_context(|| {
                format!("an earlier setup was killed and left {}; remove it as root", policy.display())
            })?;
        }
        Ok(())
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(policy) = &self.made
            && let Err(error) = fs::remove_file(policy)
        {
            eprintln!("error: remove {} by hand: {error}", policy.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::SIGTERM;
    use std::os::unix::process::ExitStatusExt;

    const ADMINISTRATORS: &str = "#!/bin/sh\nexit 0\n";

    /// What is in the policy file while services are held, and after, when `before` was there.
    fn check(before: Option<&str>, during: &str, after: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy-rc.d");
        if let Some(text) = before {
            fs::write(&policy, text).unwrap();
        }
        let quiet = NoServices::begin(&policy).unwrap();
        assert_eq!(fs::read_to_string(&policy).unwrap(), during);
        drop(quiet);
        assert_eq!(fs::read_to_string(&policy).ok().as_deref(), after);
    }

    #[test]
    fn the_administrators_policy_stays() {
        check(None, POLICY, None);
        check(Some(ADMINISTRATORS), ADMINISTRATORS, Some(ADMINISTRATORS));
    }

    #[test]
    fn what_a_killed_setup_left_goes_even_when_nothing_is_missing() {
        for (before, after) in [(POLICY, None), (ADMINISTRATORS, Some(ADMINISTRATORS))] {
            let folder = tempfile::tempdir().unwrap();
            let policy = folder.path().join("policy-rc.d");
            fs::write(&policy, before).unwrap();
            provide([].into_iter(), &policy).unwrap();
            assert_eq!(fs::read_to_string(&policy).ok().as_deref(), after);
        }
    }

    /// Names the policy file to the process that [`inner`] is meant for.
    const INNER: &str = "WEBDYNO_SETUP_TEST";

    /// Takes a signal in place of apt's run, and goes on to its end.
    #[test]
    fn inner() {
        let Some(policy) = std::env::var_os(INNER).map(PathBuf::from) else { return };
        let _signals = HeldSignals::begin().unwrap();
        let _quiet = NoServices::begin(&policy).unwrap();
        assert!(Command::new("sh").args(["-c", "kill -TERM $PPID"]).status().unwrap().success());
        fs::copy(&policy, policy.with_extension("seen")).unwrap();
    }

    #[test]
    fn a_signal_waits_until_the_file_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy-rc");
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "setup::tests::inner"])
            .env(INNER, &policy)
            .output()
            .unwrap();
        assert_eq!(output.status.signal(), Some(SIGTERM), "{output:?}");
        assert_eq!(fs::read_to_string(policy.with_extension("seen")).unwrap(), POLICY);
        assert!(!policy.exists());
    }
}
