//! `make install` and `make uninstall`: what stands where, what is kept, and that Apache takes it as it is.

use crate::server::{make_target, module_file};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use testkit::skip::{not_here, skipped};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../modules/mod_admission");

fn make(target: &str, words: &[String]) -> Output {
    make_target(target, Path::new(SOURCE), words)
}

#[track_caller]
fn made(target: &str, words: &[String]) -> String {
    let output = make(target, words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn place(name: &str) -> String {
    let asked = Command::new("apxs").args(["-q", name]).output().expect("apxs runs");
    String::from_utf8_lossy(&asked.stdout).trim().to_owned()
}

/// As packages are built: below a folder, for the places where they will be.
#[test]
fn below_a_folder_and_away_again() {
    if module_file().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let below = |path: &str| PathBuf::from(format!("{}{path}", folder.path().display()));
    let (modules, etc) = (place("LIBEXECDIR"), place("SYSCONFDIR"));
    let destination = [format!("DESTDIR={}", folder.path().display())];
    // A server without a2enmod gets the module, and its administrator the lines to write.
    let said = made("install", &destination);
    assert!(said.contains(&format!("LoadModule admission_module {modules}/mod_admission.so")), "{said}");
    assert!(!below(&etc).exists());

    let available = below(&etc).join("mods-available");
    fs::create_dir_all(&available).expect("folders");
    made("install", &destination);
    let (module, load, conf) =
        (below(&modules).join("mod_admission.so"), available.join("admission.load"), available.join("admission.conf"));
    assert_eq!(fs::read(&module).expect("a module"), fs::read(module_file().expect("built")).expect("a module"));
    assert_eq!(read(&load), format!("LoadModule admission_module {modules}/mod_admission.so\n"));
    assert_eq!(read(&conf), read(&Path::new(SOURCE).join("admission.conf")));

    fs::write(&conf, "# mine\n").expect("our own file");
    fs::write(&load, "# old\n").expect("our own file");
    made("install", &destination);
    assert_eq!(read(&conf), "# mine\n");
    assert!(read(&load).starts_with("LoadModule"));

    // Apache would not start without what it is told to load.
    let enabled = below(&etc).join("mods-enabled");
    fs::create_dir(&enabled).expect("a folder");
    std::os::unix::fs::symlink(&load, enabled.join("admission.load")).expect("our own folder");
    let refused = make("uninstall", &destination);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("first a2dismod"));
    assert!(module.exists() && load.exists());
    fs::remove_file(enabled.join("admission.load")).expect("our own file");
    let said = made("uninstall", &destination);
    assert!(said.contains("left, as it may be yours"), "{said}");
    assert_eq!((module.exists(), load.exists(), read(&conf).as_str()), (false, false, "# mine\n"));
}

/// With what is installed, and all that the configuration shows as a comment, in force.
#[test]
fn apache_takes_it_as_it_is() {
    if module_file().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().display().to_string();
    let available = folder.path().join("etc/mods-available");
    fs::create_dir_all(&available).expect("folders");
    made("install", &[format!("LIBEXECDIR={own}/modules"), format!("SYSCONFDIR={own}/etc")]);
    let load = |name: &str| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n");
    let others: String = ["mpm_event", "authz_core", "authz_host"].into_iter().map(load).collect();
    let text = format!(
        "ServerRoot \"{own}\"\nServerName x\nListen 127.0.0.1:1\nErrorLog {own}/error.log\nPidFile {own}/pid\nDefaultRuntimeDir {own}\n\
         {others}Include etc/mods-available/admission.load\nInclude etc/mods-available/admission.conf\n"
    );
    let file = folder.path().join("httpd.conf");
    fs::write(&file, text).expect("our own file");
    let check = || {
        let output = Command::new("/usr/sbin/apache2").arg("-t").arg("-f").arg(&file).output().expect("it runs");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(check().contains("Syntax OK"), "{}", check());
    let conf = available.join("admission.conf");
    let shown = read(&conf).replace("    #Admission", "    Admission");
    assert!(shown.matches("\n    Admission").count() >= 6, "{shown}");
    fs::write(&conf, &shown).expect("our own file");
    assert!(check().contains("Syntax OK"), "{}", check());
    // And it is the module that judges them.
    fs::write(&conf, shown.replace("limit=2", "limit=zero")).expect("our own file");
    assert!(check().contains("limit=zero: a number from 1"), "{}", check());
}

/// Where the administrator of a Debian has it, from `make install` to `make uninstall`: the machine's own Apache with its own configuration, as
/// processes in namespaces of their own see it; outside of these nothing changes. `$0` is a folder, `$1` the module's source.
const AS_ROOT: &str = r#"
set -e
export LC_ALL=C
over() {
    name=$0/$(echo "$1" | tr / _)
    mkdir "$name" "$name/upper" "$name/work"
    mount -t overlay none -o "lowerdir=$1,upperdir=$name/upper,workdir=$name/work" "$1"
}
mount -t tmpfs none "$0"
over /etc/apache2 || exit 77
over /var/lib/apache2
modules=$(apxs -q LIBEXECDIR)
over "$modules"
mount -t tmpfs none /run
mount -t tmpfs none /var/log/apache2
mkdir /run/lock
ip link set lo up
if [ -e /etc/apache2/mods-enabled/admission.load ]; then a2dismod -q admission; fi
rm -f /etc/apache2/sites-enabled/*
printf 'Listen 127.0.0.1:80\nServerName x\n' >/etc/apache2/ports.conf
make -s -C "$1" install
a2enmod -q admission
apache2ctl configtest
apache2ctl start
answers() {
    for try in $(seq 100); do
        curl -sf http://127.0.0.1/admission-status?json && return
        sleep 0.1
    done
    exit 1
}
answers
apache2ctl graceful
answers
kill "$(cat /run/apache2/apache2.pid)"
for try in $(seq 100); do
    [ -e /run/apache2/apache2.pid ] || break
    sleep 0.1
done
if make -s -C "$1" uninstall 2>/dev/null; then exit 1; fi
a2dismod -q admission
make -s -C "$1" uninstall
ls "$modules/mod_admission.so" /etc/apache2/mods-available/admission.load 2>&1 || true
apache2ctl configtest
"#;

#[test]
fn as_an_administrator_does_it() {
    if module_file().is_none() {
        return;
    }
    let needed = ["/usr/bin/unshare", "/usr/sbin/a2enmod", "/usr/sbin/apache2ctl", "/usr/bin/curl", "/usr/sbin/ip"];
    if let Some(missing) = needed.iter().find(|program| !Path::new(program).exists()) {
        return skipped(&format!("there is no {missing}"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("timeout");
    command.args([
        "--signal=KILL",
        "120",
        "unshare",
        "--mount",
        "--pid",
        "--net",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    let output = command.args(["sh", "-c", AS_ROOT]).arg(folder.path()).arg(SOURCE).stdin(Stdio::null()).output();
    let output = output.expect("it runs");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(77) {
        return not_here("no overlays in a namespace of ours");
    }
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("\"groups\":").count(), 2, "its status, and after a restart: {said}");
    assert_eq!(said.matches("Syntax OK").count(), 2, "{said}");
    assert_eq!(said.matches("No such file or directory").count(), 2, "what is left: {said}");
}
