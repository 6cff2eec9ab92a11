//! A real Apache of the machine's, made as Debian makes one, told to begin anew.

#![expect(clippy::unwrap_used, reason = "all of it is a test; clippy tells tests by #[test]")]

use host::{Restart, Service, Style, hierarchies, variables};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use testkit::debian::Debian;
use testkit::own::{Own, eventually};
use testkit::skip::{not_here, skipped};

const PROGRAM: &str = "/usr/sbin/apache2";

struct Scene {
    debian: Debian,
    env: Vec<(OsString, OsString)>,
    _folder: tempfile::TempDir,
}

impl Scene {
    /// An Apache that does not run yet; `None` where there is none, or no root to be its user.
    fn new() -> Option<Scene> {
        if !rustix::process::geteuid().is_root() {
            not_here("no root");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("debian-").tempdir_in("/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let Some(debian) = Debian::new(folder.path()) else {
            skipped("there is no Debian apache2");
            return None;
        };
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", ". \"$1\"; exec env -0", "sh"])
            .arg(debian.etc().join("envvars"))
            .env("APACHE_CONFDIR", debian.etc());
        let env = variables(&shell.output().unwrap().stdout);
        Some(Scene { debian, env, _folder: folder })
    }

    fn args(&self) -> Vec<OsString> {
        vec!["-d".into(), self.debian.etc().into(), "-f".into(), self.debian.main().into()]
    }

    fn log(&self) -> PathBuf {
        self.debian.folder().join("log/error.log")
    }

    fn service(&self) -> Service {
        let pid_file = self.debian.folder().join("run/apache2.pid");
        Service::of_running(Style::Apache, "x.conf", PROGRAM.as_ref(), self.args(), self.env.clone(), &pid_file)
            .unwrap()
    }
}

#[test]
fn a_server_that_ends_of_it_is_started_again_or_not_called_running() {
    let Some(scene) = Scene::new() else { return };
    scene.debian.start();
    let service = scene.service();
    let bad = "conf-enabled/zz-bad.conf";
    // A folder is no log; the test of a configuration opens none.
    scene.debian.write(bad, "CustomLog /tmp common\n");
    assert_eq!(service.test(), Ok(()));
    let why = service.restart(Restart::Graceful).unwrap_err();
    let begins =
        "the server of x.conf ended when it was told to read its configuration; the server of x.conf does not start: ";
    assert!(why.starts_with(begins), "{why}");
    assert_eq!(service.pid(), None);
    fs::remove_file(scene.debian.etc().join(bad)).unwrap();
    assert_eq!(service.restart(Restart::Graceful), Ok(()));
    assert!(scene.debian.is_alive());
}

/// Starts the server with other words than its control script's, from another folder and with limits of its own.
fn start_by(scene: &Scene, dir: &str, script: &str) {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, "sh"]).args(scene.args()).current_dir(dir).env_clear().envs(scene.env.clone());
    assert!(shell.status().unwrap().success());
    eventually("it runs", &scene.log(), || scene.debian.is_alive());
}

#[test]
fn a_start_that_another_has_under_way_is_waited_for() {
    let Some(scene) = Scene::new() else { return };
    let begun = scene.debian.folder().join("begun");
    // As the call of a run that was killed: it leads a session, and is not the server yet.
    let slow = format!("ulimit -Sn 300; : >{}; sleep 0.2; exec \"$@\"", begun.display());
    start_by(&scene, "/", "exec /usr/sbin/apache2 \"$@\" -k start");
    let service = scene.service();
    let before = limits(&service);
    scene.debian.stop();
    let mut another = Command::new("setsid");
    another.args(["sh", "-c", &slow, "sh", PROGRAM]).args(scene.args()).args(["-k", "start"]);
    another.current_dir("/").env_clear().envs(scene.env.clone()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let another = another.spawn().unwrap();
    eventually("its start has begun", &scene.log(), || begun.exists());
    assert_eq!(service.restart(Restart::Full), Ok(()));
    assert_eq!(limits(&service), before, "it is the other's");
    let another = another.wait_with_output().unwrap();
    let said = [another.stdout, another.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    assert!(another.status.success() && !said.contains("already running"), "there was one before it: {said}");
}

fn limits(service: &Service) -> String {
    let limits = fs::read_to_string(format!("/proc/{}/limits", service.pid().unwrap())).unwrap();
    limits.lines().find(|line| line.starts_with("Max open files")).unwrap().to_owned()
}

#[test]
fn a_server_of_relative_words_and_own_limits_is_started_as_it_was() {
    let Some(scene) = Scene::new() else { return };
    start_by(&scene, "/usr/sbin", "ulimit -Sn 500; ulimit -Hn 900; exec ./apache2 \"$@\" -k start");
    let service = scene.service();
    let (pid, before) = (service.pid(), limits(&service));
    assert_eq!(service.can_start(), Ok(()));
    assert_eq!(service.restart(Restart::Full), Ok(()));
    assert_ne!(service.pid(), pid);
    assert_eq!(limits(&service), before);
}

#[test]
fn a_server_of_words_that_mean_nothing_any_more_is_not_ended() {
    let Some(scene) = Scene::new() else { return };
    let once = scene.debian.folder().join("once.conf");
    fs::copy(scene.debian.main(), &once).unwrap();
    start_by(&scene, "/", &format!("exec /usr/sbin/apache2 \"$@\" -f {} -k start", once.display()));
    fs::remove_file(once).unwrap();
    let service = scene.service();
    let pid = service.pid();
    let why = service.restart(Restart::Full).unwrap_err();
    assert!(why.starts_with("the server of x.conf cannot be started again as it was, from /: "), "{why}");
    assert!(service.pid() == pid && scene.debian.is_alive());
}

#[test]
fn a_server_goes_back_into_its_group() {
    let Some(scene) = Scene::new() else { return };
    let Some(root) = hierarchies().ok().map(|found| found.memory) else { return not_here("no groups") };
    let group = root.join(format!("webdyno-test-{}", std::process::id()));
    if fs::create_dir(&group).is_err() {
        return not_here("no groups can be made");
    }
    let line = |service: &Service| fs::read_to_string(format!("/proc/{}/cgroup", service.pid().unwrap())).unwrap();
    start_by(
        &scene,
        "/",
        &format!("echo $$ >{}/cgroup.procs; exec /usr/sbin/apache2 \"$@\" -k start", group.display()),
    );
    let service = scene.service();
    let before = line(&service);
    let restarted = service.restart(Restart::Full);
    let after = line(&service);
    scene.debian.stop();
    eventually("its group is empty", &scene.log(), || fs::remove_dir(&group).is_ok());
    assert_eq!((restarted, after), (Ok(()), before));
}
