//! Runs about an Apache or nginx that is there already, killed at random moments: everything is given back, by the guardian within seconds, or by
//! `webdyno restore` or the next run where the guardian was killed, too.

mod tool;

use rustix::process::{Signal, kill_process};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use testkit::debian::Debian;
use testkit::nginx::Nginx;
use testkit::own::Own;
use testkit::skip::long_results;
use tool::remains;
use tool::scene::{GRACE, SETTING, Scene, VARIANTS_OF_NGINX, setting, variants};

/// Exit codes of a run that measured everything, whatever its verdicts are.
const MEASURED: [i32; 3] = [0, 1, 3];

/// Tests that change the kernel's setting do so one after another.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who gives back what a killed run has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Guardian,
    /// The guardian was killed, too.
    Restore,
    /// The same, and nobody thinks of it but the next who runs a plan.
    NextRun,
}

impl By {
    /// One by dice where the guardian is dead.
    fn any(is_guarded: bool) -> By {
        match random_moment(Duration::from_micros(2)).is_zero() {
            _ if is_guarded => By::Guardian,
            true => By::Restore,
            false => By::NextRun,
        }
    }

    fn named(self) -> &'static str {
        match self {
            By::Guardian => "",
            By::Restore => "killed, too; `webdyno restore`",
            By::NextRun => "killed, too; the next run",
        }
    }
}

/// What became of a run that was killed.
struct Killed {
    after: Duration,
    by: By,
    /// What was to be given back then, in lines of its journal.
    journalled: usize,
    gone: Duration,
    left: Vec<String>,
}

/// Runs the plan and kills webdyno after a while, and its guardian, too, unless that is to give everything back. `None` when the run was over
/// before, as it should be.
fn kill<O: Own>(scene: &Scene<O>, plan: &str, after: Duration, by: By) -> Option<Killed> {
    let mut child = scene.spawn(plan);
    // The moment itself is what is tested, so here time is waited for and not an event.
    std::thread::sleep(after);
    if let Some(ended) = child.try_wait().expect("our own child") {
        let mut said = || std::io::read_to_string(child.stderr.take().expect("piped")).unwrap_or_default();
        let is_measured = ended.code().is_some_and(|code| MEASURED.contains(&code));
        assert!(is_measured, "the run ended by itself: {ended}: {}", said());
        scene.check_given_back();
        return None;
    }
    let journalled = scene.tool.journalled();
    if by != By::Guardian {
        for pid in scene.tool.guardians() {
            // One that has ended is dead, too.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    child.kill().expect("our own child");
    child.wait().expect("our own child");
    let killed = Instant::now();
    match by {
        By::Guardian => {}
        By::Restore => drop(scene.tool.run(&["restore"])),
        By::NextRun => run_next(scene, plan),
    }
    let given_back = if by == By::NextRun { Instant::now() } else { killed };
    let found = || {
        let mut found = scene.left();
        found.extend(remains(&scene.tool));
        found
    };
    let mut left = found();
    while !left.is_empty() && given_back.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(20));
        left = found();
    }
    Some(Killed { after, by, journalled, gone: killed.elapsed(), left })
}

/// A run of the same plan, which must not begin before what the dead one left is undone, and then measures as ever.
fn run_next<O: Own>(scene: &Scene<O>, plan: &str) {
    let of_the_dead = scene.tool.journals();
    let mut next = scene.spawn(plan);
    let mut lines = BufReader::new(next.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let mut said: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with("run ")).collect();
    let undone = scene.tool.journals().iter().all(|journal| !of_the_dead.contains(journal));
    said.extend(lines);
    let code = next.wait().expect("our own child").code();
    assert!(undone && code.is_some_and(|code| MEASURED.contains(&code)), "undone: {undone}, {code:?}: {said:#?}");
}

fn random_moment(below: Duration) -> Duration {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).expect("randomness");
    Duration::from_micros(u64::from_ne_bytes(bytes) % below.as_micros() as u64)
}

/// How long a run takes that nobody kills.
fn whole<O: Own>(scene: &Scene<O>, plan: &str) -> Duration {
    let began = Instant::now();
    let ran = scene.run(plan);
    let took = began.elapsed();
    assert!(MEASURED.contains(&ran.code), "{ran:?}");
    scene.check_given_back();
    took
}

/// So many kills, as a table, and how many of them left something.
fn kills<O: Own>(title: &str, scene: &Scene<O>, plan: &str, count: u32) -> (String, usize) {
    let mut whole = whole(scene, plan);
    let mut page = format!(
        "# {title}\n\nA run that nobody kills takes {:.2} s here.\n\n\
         The next run, where that is named, gives back first and then measures: its time is in that column, too.\n\n\
         | # | after | guardian | journalled by then | all given back within | left 5 s later |\n|---|---|---|---|---|---|\n",
        whole.as_secs_f64()
    );
    let (mut bad, mut number, mut begun, mut over) = (0, 0, 0, 0);
    while number < count {
        // Most of what can go wrong goes wrong while the server begins anew, which it does first of all.
        let below = if number % 2 == 0 { whole } else { whole / 4 };
        let after = random_moment(below);
        let Some(killed) = kill(scene, plan, after, By::any(number % 5 != 4)) else {
            over += 1;
            assert!(over <= count, "runs are over before the moment comes");
            // Faster than the first one, which everything was read from the disk for.
            whole = whole.min(after);
            continue;
        };
        number += 1;
        bad += usize::from(!killed.left.is_empty());
        begun += u32::from(killed.journalled > 0);
        let guardian = killed.by.named();
        let (after, gone) = (killed.after.as_secs_f64(), killed.gone.as_secs_f64());
        let Killed { journalled, left, .. } = killed;
        let _ = writeln!(
            page,
            "| {number} | {after:.2} s | {guardian} | {journalled} | {gone:.2} s | {} |",
            left.join("; ")
        );
    }
    let _ = writeln!(
        page,
        "\n{bad} of {count} left something. In {begun} of them something was to be given back; {over} more runs were over before their moment came."
    );
    assert!(2 * begun > count, "hardly any run had begun when it was killed: {page}");
    (page, bad)
}

/// A server with a file beside its configuration.
fn scene<O: Own>() -> Option<Scene<O>> {
    Scene::with(|own: &O| fs::write(own.etc().join("php.ini"), "memory_limit = 64M\n").expect("a file"))
}

/// The last variant changes more than directives: that file, one that is not there, and a setting of the kernel where there is one.
fn plan<O: Own>(scene: &Scene<O>, server: &str, variants: &str) -> String {
    let etc = scene.own.etc();
    let mut text = format!(
        "{variants}[[variant.few.files]]\npath = \"{0}/php.ini\"\nreplace = {{ \"64M\" = \"128M\" }}\n\
         [[variant.few.files]]\npath = \"{0}/extra.ini\"\ncontent = \"extra\"\n",
        etc.display()
    );
    if setting().is_some() {
        let _ = write!(text, "[variant.few.sysctl]\n\"{SETTING}\" = \"8\"\n");
    }
    scene.plan(server, &text)
}

#[test]
fn a_killed_run_in_place_is_given_back() {
    let Some(scene) = scene::<Debian>() else { return };
    let _alone = alone();
    let before = setting();
    let (page, bad) = kills("killed in place", &scene, &plan(&scene, "in_place = true", variants()), 5);
    assert_eq!((bad, setting()), (0, before), "{page}");
}

#[test]
fn a_killed_run_on_nginx_in_place_is_given_back() {
    let Some(scene) = scene::<Nginx>() else { return };
    let _alone = alone();
    let before = setting();
    let (page, bad) = kills("killed in place", &scene, &plan(&scene, "in_place = true", VARIANTS_OF_NGINX), 5);
    assert_eq!((bad, setting()), (0, before), "{page}");
}

#[test]
fn a_killed_private_run_leaves_nothing() {
    let Some(scene) = scene::<Debian>() else { return };
    let _alone = alone();
    let before = setting();
    let (page, bad) = kills("killed, private", &scene, &plan(&scene, "", variants()), 5);
    assert_eq!((bad, setting()), (0, before), "{page}");
}

#[test]
fn long_check_kills_in_place() {
    let Some(results) = long_results() else { return };
    let Some(scene) = scene::<Debian>() else { return };
    let _alone = alone();
    let before = setting();
    let (page, bad) = kills(
        "100 runs in place, each killed with -9 at a random moment",
        &scene,
        &plan(&scene, "in_place = true", variants()),
        100,
    );
    fs::write(results.join("kills-in-place.md"), &page).expect("the results");
    assert_eq!((bad, setting()), (0, before), "{page}");
}

#[test]
fn long_check_kills_nginx_in_place() {
    let Some(results) = long_results() else { return };
    let Some(scene) = scene::<Nginx>() else { return };
    let _alone = alone();
    let before = setting();
    let plan = plan(&scene, "in_place = true", VARIANTS_OF_NGINX);
    let (page, bad) = kills("100 runs on nginx in place, each killed with -9 at a random moment", &scene, &plan, 100);
    fs::write(results.join("kills-nginx-in-place.md"), &page).expect("the results");
    assert_eq!((bad, setting()), (0, before), "{page}");
}

#[test]
fn long_check_kills_private() {
    let Some(results) = long_results() else { return };
    let Some(scene) = scene::<Debian>() else { return };
    let _alone = alone();
    let before = setting();
    let (page, bad) =
        kills("300 private runs, each killed with -9 at a random moment", &scene, &plan(&scene, "", variants()), 300);
    fs::write(results.join("kills-private.md"), &page).expect("the results");
    assert_eq!((bad, setting()), (0, before), "{page}");
}
