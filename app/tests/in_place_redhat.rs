//! An httpd with RHEL's layout: `httpd`, `/etc/httpd/conf`, `conf.d`, `conf.modules.d`, compiled-in paths. Private, derived, in place, killed.

mod tool;

use rustix::process::{Signal, kill_process};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::own::Own;
use testkit::redhat::RedHat;
use testkit::skip::{long_results, not_here};
use tool::scene::{GRACE, Scene};
use tool::{is_root, remains};

const VARIANTS: &str = "[variant.as-is]\n[variant.close]\ndirectives = \"KeepAlive Off\"\n[variant.few]\ndirectives = '''\n\
                        ServerLimit 20\nMaxRequestWorkers 20\nKeepAlive Off\n'''\n";

#[test]
fn long_check_redhat_layout() {
    let Some(results) = long_results() else { return };
    if !is_root() {
        return not_here("no root");
    }
    let target = Path::new(env!("CARGO_BIN_EXE_webdyno")).ancestors().nth(2).expect("cargo's target folder");
    let Some(own) = RedHat::new(target) else {
        return not_here("no httpd with RHEL's layout; `cargo xtask setup --redhat` builds it");
    };
    let scene = Scene::around(own);
    let program = format!("program = \"{}\"", scene.own.program().display());
    let version = std::process::Command::new(scene.own.program()).arg("-v").output().expect("httpd");
    let version = String::from_utf8_lossy(&version.stdout).lines().next().unwrap_or_default().to_owned();
    let mut page = format!(
        "# RHEL's layout of httpd\n\n{version}, built from the sources of Debian's package with `--enable-layout=RedHat`.\n\n"
    );
    let main = scene.own.main().display().to_string();
    let mut said = |what: &str, plan: &str, expected: &[&str]| {
        let began = Instant::now();
        let ended = scene.tool.run(&["run", plan, "--plain", "--i-operate", &main]);
        assert!([0, 1, 3].contains(&ended.code), "{what}: {}{}", ended.out, ended.err);
        for expected in expected {
            assert!(ended.out.contains(expected), "{what}: {expected}: {}", ended.out);
        }
        scene.check_given_back();
        let _ = writeln!(
            page,
            "- {what}: ended with {} after {:.1} s, everything as before.",
            ended.code,
            began.elapsed().as_secs_f64()
        );
    };
    let without = |plan: &str, more: &str| {
        let text = fs::read_to_string(plan).expect("a plan");
        let text: String =
            text.lines().filter(|line| !line.starts_with("from = ")).map(|line| format!("{line}\n")).collect();
        fs::write(plan, text.replacen("kind = \"apache\"\n", &format!("kind = \"apache\"\n{more}"), 1))
            .expect("a plan");
    };
    let private = scene.plan(&program, VARIANTS);
    without(&private, "mpm = \"prefork\"\n");
    said("private, from scratch", &private, &["MaxRequestWorkers 20: few"]);
    let derived = scene.plan(&program, VARIANTS);
    said("derived (`from`)", &derived, &["KeepAlive Off: close; few", "MaxRequestWorkers 20: few"]);
    let in_place = scene.plan(&format!("{program}\nin_place = true"), VARIANTS);
    said("in place, the drop-in in `conf.d`", &in_place, &["KeepAlive Off: close; few", "MaxRequestWorkers 20: few"]);
    let compiled = scene.plan(&format!("{program}\nin_place = true"), VARIANTS);
    without(&compiled, "");
    said("in place, the main file as `httpd -V` tells it", &compiled, &["KeepAlive Off: close; few"]);
    let _ = writeln!(page, "\n| killed after | guardian | all given back within | left 5 s later |\n|---|---|---|---|");
    let mut bad = 0;
    for number in 1..=10_u64 {
        let (after, both) = (Duration::from_millis(number * 230), number % 5 == 0);
        let mut child = scene.tool.spawn(&["run", &in_place, "--plain", "--i-operate", &main]);
        // The moment itself is what is tested, so here time is waited for and not an event.
        std::thread::sleep(after);
        if both {
            for pid in scene.tool.guardians() {
                // One that has ended is dead, too.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        child.kill().expect("our own child");
        child.wait().expect("our own child");
        let killed = Instant::now();
        if both {
            scene.tool.run(&["restore"]);
        }
        let found = || scene.left().into_iter().chain(remains(&scene.tool)).collect::<Vec<_>>();
        let mut left = found();
        while !left.is_empty() && killed.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(20));
            left = found();
        }
        bad += usize::from(!left.is_empty());
        let guardian = if both { "killed, too; `webdyno restore`" } else { "" };
        let (after, gone) = (after.as_secs_f64(), killed.elapsed().as_secs_f64());
        let _ = writeln!(page, "| {after:.2} s | {guardian} | {gone:.2} s | {} |", left.join("; "));
    }
    let _ = writeln!(page, "\n{bad} of 10 left something. SELinux was not there; a machine with RHEL was not, either.");
    fs::write(results.join("redhat-layout.md"), &page).expect("the results");
    assert_eq!(bad, 0, "{page}");
}
