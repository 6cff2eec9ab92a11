//! Plans about an nginx that is there already: its running server changed in place.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use testkit::nginx::Nginx;
use testkit::own::{Own, changed};
use tool::Tool;
use tool::scene::{Scene, VARIANTS_OF_NGINX};

type Lines = Box<dyn Iterator<Item = String>>;

fn scene() -> Option<Scene<Nginx>> {
    Scene::new()
}

/// Two that differ in what a reload changes: the server is there all the time.
const RELOADED: &str = "[variant.as-is]\n[variant.close]\ndirectives = \"keepalive_timeout 0\"\n";

/// A plan that runs until it is ended.
fn long(scene: &Scene<Nginx>) -> String {
    let plan = scene.plan("in_place = true", RELOADED);
    let text = fs::read_to_string(&plan).expect("a plan");
    let text = text.replace("requests = 50", "duration = \"300ms\"").replace("blocks = 2", "blocks = 50");
    fs::write(&plan, text).expect("a plan");
    plan
}

/// The run, and what it says, from the line on that has this in it.
fn begun(scene: &Scene<Nginx>, plan: &str, said: &str) -> (Child, Lines) {
    let mut child = scene.spawn(plan);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(said)), "it did not come to `{said}`");
    (child, Box::new(lines))
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < end, "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_run_on_nginx_in_place_gives_everything_back() {
    let Some(scene) = scene() else { return };
    let plan = scene.plan("in_place = true", VARIANTS_OF_NGINX);
    let main = scene.own.main();
    let refused = scene.tool.run(&["run", &plan, "--plain"]);
    assert!(refused.code == 2 && refused.err.contains(&format!("say so once: --i-operate {}", main.display())));
    let dry = scene.tool.run(&["run", &plan, "--dry-run"]);
    assert!(dry.code == 0 && dry.out.contains("in place: the running server of"), "{}{}", dry.out, dry.err);
    scene.check_given_back();
    let pid = scene.own.pid();
    let ended = scene.run(&plan);
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("keepalive_timeout 0: close; few"), "{}", ended.out);
    assert!(ended.out.contains("worker_processes 1: few"), "{}", ended.out);
    assert!(ended.out.contains("limit_conn_zone $server_name zone=own:1m: few"), "{}", ended.out);
    assert!(ended.out.contains("limit_conn own 50: few"), "{}", ended.out);
    scene.check_given_back();
    assert_ne!(scene.own.pid(), pid, "the zone needed a full restart");
    let pid = scene.own.pid();
    let plan = scene.plan("in_place = true", "[variant.close]\ndirectives = \"keepalive_timeout 0\"");
    let again = scene.tool.run(&["run", &plan, "--plain"]);
    assert!([0, 1, 3].contains(&again.code), "{}{}", again.out, again.err);
    scene.check_given_back();
    assert_eq!(scene.own.pid(), pid, "a reload keeps the process");
}

/// Of twenty who come within half a second to a page that takes a fifth of one, most are sent away where only two may come at once, and counted as
/// that.
#[test]
fn a_limit_of_connections_refuses_those_beyond_it() {
    let behind = Tool::new();
    let mut serving = behind.spawn(&["serve", "--listen", "127.0.0.1:0", "--workers", "40"]);
    let line = BufReader::new(serving.stdout.take().expect("piped")).lines().next().expect("a line").expect("text");
    let address = line.rsplit(' ').next().expect("an address");
    let slow = format!("\tlocation = /slow {{\n\t\tproxy_pass http://{address}/sleep/200ms;\n\t}}\n");
    let Some(scene) = Scene::<Nginx>::with(|nginx| nginx.site(&slow)) else {
        return serving.kill().and_then(|()| serving.wait()).map(drop).expect("our own child");
    };
    // The zone is in the configuration, by address.
    let plan = scene.plan("in_place = true", "[variant.as-is]\n[variant.two]\ndirectives = \"limit_conn own 2\"");
    let load = "path = \"/slow\"\nconnections = 20\nrate = \"40/s\"\nkeep_alive = false\nrequests = 20\n[guards]\nfailures = 0.99\n";
    let text = fs::read_to_string(&plan).expect("a plan");
    fs::write(&plan, text.replace("path = \"/\"\nconnections = 2\nrequests = 50\n", load)).expect("a plan");
    let main = scene.own.main();
    let ended = scene.tool.run(&["run", &plan, "--json", "--i-operate", &main.to_string_lossy()]);
    serving.kill().and_then(|()| serving.wait()).expect("our own child");
    let report: Value = serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let log = fs::read_to_string(scene.own.folder().join("log/access.log")).expect("a log");
    let in_log = |status: &str| {
        let of_load = log.lines().filter(|line| line.contains("GET /slow "));
        of_load.filter(|line| line.contains(&format!("\" {status} "))).count() as u64
    };
    let counted = |cell: &str| {
        let cells = report["cells"].as_array().expect("cells");
        let cell = cells.iter().find(|known| known["name"] == cell).unwrap_or_else(|| panic!("no {cell}: {report:#}"));
        let refused = cell["failures"].as_array().expect("failures").iter().map(|failure| {
            assert!(failure["cause"]["text"].as_str().is_some_and(|text| text.contains("503")), "{cell:#}");
            failure["count"].as_u64().expect("a count")
        });
        (cell["good"].as_u64().expect("a count"), refused.sum::<u64>())
    };
    assert_eq!(counted("as-is"), (40, 0), "{report:#}");
    let (good, refused) = counted("two");
    assert!(good >= 4 && refused > good && good + refused == 40, "{good} {refused}: {report:#}");
    // nginx's own log knows of no other.
    assert_eq!(in_log("503"), refused, "{log}");
    scene.check_given_back();
}

/// Who looks at the configuration meanwhile sees their own: it is another only while nginx reads it.
#[test]
fn nginx_goes_on_with_what_its_files_no_longer_say() {
    let Some(scene) = scene() else { return };
    let (mut child, lines) = begun(&scene, &long(&scene), "block 1");
    let mut as_it_was = false;
    for line in lines {
        as_it_was |= changed(&scene.before, &scene.own.snapshot()).is_empty();
        if as_it_was && line.contains("block 3") {
            break;
        }
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("our own child");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(as_it_was);
    scene.check_given_back();
}

#[test]
fn what_does_not_come_into_force_ends_the_run_on_nginx() {
    let Some(scene) = Scene::<Nginx>::with(|nginx| nginx.site("\tkeepalive_requests 7;\n")) else { return };
    let check = |directives: &str, code: i32, why: &str| {
        let plan = scene
            .plan("in_place = true", &format!("[variant.as-is]\n[variant.x]\ndirectives = '''\n{directives}\n'''"));
        let ended = scene.run(&plan);
        assert_eq!(ended.code, code, "{}{}", ended.out, ended.err);
        let last = ended.err.lines().last().unwrap_or_default();
        assert!(last.contains(why), "{}", ended.err);
        scene.check_given_back();
    };
    check("keepalive_time_out 5", 2, "plan.toml:10: keepalive_time_out 5;: unknown directive \"keepalive_time_out\"");
    check(
        "worker_processes none",
        2,
        "plan.toml:10: worker_processes none;: \"worker_processes\" directive invalid value",
    );
    check("ssi_types text/html", 2, "duplicate MIME type \"text/html\"");
    check("keepalive_requests 9", 2, "plan.toml:10: keepalive_requests 9;: the server that answers has its own at ");
    check("pid /run/x.pid", 2, "is the machine's own, by which it is controlled; remove the line");
    check(
        "access_log /var/log/nginx/webdyno-test",
        2,
        "would leave a file behind; write to one that the configuration",
    );
    check("server {\nlisten 81\n}", 2, "others could reach it; only what the server listens on already can be changed");
    // A number that no system allows: nginx says so in its log, and its workers go on with what they have.
    check(
        "worker_rlimit_nofile 99999999999",
        2,
        "plan.toml:10: worker_rlimit_nofile 99999999999;: its workers may open ",
    );
}

/// A folder is as it was, with its times, only when the files in it are given back newest first.
#[test]
fn two_files_of_one_folder_leave_it_as_it_was() {
    let logs = |nginx: &Nginx| {
        let log = nginx.folder().join("log");
        for name in ["a", "b"] {
            let line = format!("access_log {}/{name}.log;\n", log.display());
            nginx.write(&format!("conf.d/{name}.conf"), &line);
        }
    };
    let Some(scene) = Scene::<Nginx>::with(logs) else { return };
    let plan = scene.plan("in_place = true", "[variant.as-is]\n[variant.x]\ndirectives = \"access_log off\"\n");
    let ended = scene.run(&plan);
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    scene.check_given_back();
}

/// A dry run tests a copy of all files in one, which lies elsewhere.
#[test]
fn a_dry_run_takes_names_of_files_for_what_they_are() {
    let named = |nginx: &Nginx| {
        nginx.write("conf.d/named.conf", "include koi-utf;\n");
        nginx.site("\tlocation /closed/ {\n\t\tauth_basic closed;\n\t\tauth_basic_user_file \".htpasswd\";\n\t}\n");
    };
    let Some(scene) = Scene::<Nginx>::with(named) else { return };
    let dry = scene.tool.run(&["run", &scene.plan("in_place = true", RELOADED), "--dry-run"]);
    assert_eq!(dry.code, 0, "{}{}", dry.out, dry.err);
}

/// As where port 80 only redirects.
#[test]
fn a_site_that_redirects_for_ever_is_blamed_on_the_key() {
    let Some(scene) = Scene::<Nginx>::with(|nginx| nginx.site("\treturn 301 https://$host/;\n")) else { return };
    let plan = scene.plan("in_place = true", RELOADED);
    let ended = scene.run(&plan);
    assert_eq!(ended.code, 2, "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("ready") && ended.err.contains("301"), "{}", ended.err);
    assert_eq!(changed(&scene.before, &scene.own.snapshot()), Vec::<String>::new());
}

#[test]
fn the_answering_server_is_changed_where_its_block_is_written() {
    let Some(scene) = Scene::<Nginx>::with(|nginx| nginx.site("\tkeepalive_requests 7;\n")) else { return };
    let log = scene.own.folder().join("log/access.log");
    let directives = format!(
        "server {{\nkeepalive_requests 9\nlisten 127.0.0.1:{} default_server backlog=13\n}}\naccess_log {} combined buffer=64k flush=1s",
        scene.own.port(),
        log.display()
    );
    let plan =
        scene.plan("in_place = true", &format!("[variant.as-is]\n[variant.x]\ndirectives = '''\n{directives}\n'''"));
    let ended = scene.run(&plan);
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    for expected in ["keepalive_requests 9: x", "backlog=13: x", "combined buffer=64k flush=1s: x"] {
        assert!(ended.out.contains(expected), "{expected}: {}", ended.out);
    }
    scene.check_given_back();
}

/// Somebody else may have it read its files between their change and the run's own reload, and the run be killed then.
#[test]
fn that_nginx_is_to_read_its_own_files_is_journaled_before_they_change() {
    let Some(scene) = scene() else { return };
    let (mut child, _lines) = begun(&scene, &long(&scene), "block 1");
    let journal = fs::read_dir(scene.tool.path("state")).expect("a folder").flatten().next().expect("a journal").path();
    let text = fs::read_to_string(&journal).expect("a journal");
    kill_process(Pid::from_child(&child), Signal::INT).expect("our own child");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let line = |what: &str| text.lines().position(|line| line.contains(what));
    let (told, lent) = (line("\"restart\""), line("\"give_back\""));
    assert!(told.is_some() && told < lent, "{told:?} {lent:?}: {text}");
    scene.check_given_back();
}

/// The plan's line moves the one that nginx warns of, and a copy of all files has another name.
#[test]
fn what_nginx_warns_of_without_the_plan_is_no_reproach_to_it() {
    let warned = |nginx: &Nginx| {
        let main = fs::read_to_string(nginx.main()).expect("a file");
        nginx.write("nginx.conf", &main.replacen("http {", "http {\n\tgzip_types text/html;", 1));
    };
    let Some(scene) = Scene::<Nginx>::with(warned) else { return };
    let plan = scene.plan("in_place = true", "[variant.as-is]\n[variant.x]\ndirectives = \"accept_mutex on\"\n");
    let dry = scene.tool.run(&["run", &plan, "--dry-run"]);
    assert_eq!(dry.code, 0, "{}{}", dry.out, dry.err);
    let ended = scene.run(&plan);
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    scene.check_given_back();
}

#[test]
fn two_runs_do_not_meet_on_one_nginx() {
    let Some(scene) = scene() else { return };
    let plan = long(&scene);
    let (mut first, lines) = begun(&scene, &plan, "run ");
    let other = Tool::new();
    let text = fs::read_to_string(&plan).expect("a plan");
    let main = scene.own.main();
    let second = other.run(&["run", &other.plan(&text), "--plain", "--i-operate", &main.to_string_lossy()]);
    assert_eq!(second.code, 5, "{}{}", second.out, second.err);
    assert!(
        second.err.contains(&format!("works on {}", main.display())) && second.err.contains("let it end first"),
        "{}",
        second.err
    );
    scene.check_others_are_refused();
    kill_process(Pid::from_child(&first), Signal::INT).expect("our own child");
    lines.for_each(drop);
    assert_eq!(first.wait().expect("it ends").code(), Some(130));
    scene.check_given_back();
}

/// As in the middle of the other run's full restart.
#[test]
fn a_server_that_another_run_works_on_is_not_called_stopped() {
    let Some(scene) = scene() else { return };
    let plan = long(&scene);
    let (mut first, _lines) = begun(&scene, &plan, "block 1");
    let pid = Pid::from_child(&first);
    kill_process(pid, Signal::STOP).expect("our own child");
    scene.own.stop();
    let other = Tool::new();
    let text = fs::read_to_string(&plan).expect("a plan");
    let main = scene.own.main();
    let second = other.run(&["run", &other.plan(&text), "--plain", "--i-operate", &main.to_string_lossy()]);
    kill_process(pid, Signal::INT).expect("our own child");
    kill_process(pid, Signal::CONT).expect("our own child");
    first.wait().expect("it ends");
    let expected = format!("works on {}", main.display());
    assert!(second.code == 5 && second.err.contains(&expected), "{}{}", second.out, second.err);
    scene.check_given_back();
}

#[test]
fn who_changes_nginx_meanwhile_keeps_the_change() {
    let Some(mut scene) = scene() else { return };
    let (mut child, lines) = begun(&scene, &long(&scene), "block 1");
    let own = scene.own.etc().join("conf.d/administrators.conf");
    fs::write(&own, "# The administrator's own line.\n").expect("a file");
    let said: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(5), "{said:?}");
    let expected = "administrators.conf changed while webdyno measured: the run ends, and that change is kept";
    assert!(said.iter().any(|line| line.ends_with(expected)), "{said:?}");
    let now = scene.own.snapshot();
    for path in [own.clone(), PathBuf::from(own.parent().expect("a folder"))] {
        scene.before.insert(path.clone(), now[&path].clone());
    }
    scene.check_given_back();
}

#[test]
fn who_has_nginx_read_its_own_configuration_meanwhile_is_noticed() {
    let Some(scene) = scene() else { return };
    let plan = scene.plan("in_place = true", RELOADED);
    let text = fs::read_to_string(&plan).expect("a plan");
    fs::write(&plan, text.replace("requests = 50", "duration = \"2s\"")).expect("a plan");
    let (mut child, lines) = begun(&scene, &plan, "block 1");
    // The next trial is on when its workers have come and the files are the server's own again.
    let before = scene.own.workers();
    let is_on = || {
        let workers = scene.own.workers();
        !workers.is_empty()
            && workers.iter().all(|pid| !before.contains(pid))
            && changed(&scene.before, &scene.own.snapshot()).is_empty()
    };
    eventually("the next trial is on", is_on);
    scene.own.signal("reload");
    let said: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(5), "{before:?} {said:?}");
    assert!(
        said.iter().any(|line| line.contains("had the server of") && line.contains("read its configuration again")),
        "{said:?}"
    );
    scene.check_given_back();
}

/// The journal gives back the files, and has a server that came up meanwhile read them.
#[test]
fn after_a_crash_of_the_machine_nginx_has_its_own_files() {
    let Some(scene) = scene() else { return };
    let plan = scene.plan("in_place = true", "[variant.close]\ndirectives = \"keepalive_timeout 0\"");
    let text = fs::read_to_string(&plan).expect("a plan").replace("requests = 50", "duration = \"60s\"");
    fs::write(&plan, text).expect("a plan");
    let (mut child, _lines) = begun(&scene, &plan, "run ");
    let as_it_was = || changed(&scene.before, &scene.own.snapshot()).is_empty();
    eventually("the variant is in force", || scene.answer().contains("Connection: close") && as_it_was());
    scene.tool.guardians().into_iter().for_each(|pid| kill_process(pid, Signal::KILL).expect("our own grandchild"));
    child.kill().expect("our own child");
    child.wait().expect("our own child");
    // What a boot does to the server, to /run, and to what the journal knows of processes.
    scene.own.stop();
    for claim in scene.claims() {
        fs::remove_file(claim).expect("root may");
    }
    scene.tool.forget_boot();
    scene.own.start();
    assert!(scene.answer().contains("the first site") && !scene.answer().contains("Connection: close"));
    let restored = scene.tool.run(&["restore"]);
    assert_eq!(restored.code, 0, "{}{}", restored.out, restored.err);
    scene.check_given_back();
}

/// Without `in_place` it is a copy, which an ordinary user may have of what they can read.
#[test]
fn a_copy_of_nginx_is_measured_beside_it() {
    let Some(scene) = scene() else { return };
    scene.own.write("conf.d/closed.conf", "server {\nlisten 127.0.0.1:7 proxy_protocol;\n}\n");
    let site = scene.own.etc().join("conf.d/own.conf");
    fs::set_permissions(&site, fs::Permissions::from_mode(0o644)).expect("our own");
    let (before, pid) = (scene.own.snapshot(), scene.own.pid());
    let plan = scene.plan("", "[variant.as-is]\n[variant.close]\ndirectives = \"keepalive_timeout 0\"");
    let dry = scene.tool.run(&["run", &plan, "--dry-run"]);
    let copy = format!("a private copy of the server of {}: other ports", scene.own.main().display());
    assert!(dry.code == 0 && dry.out.contains(&copy), "{}{}", dry.out, dry.err);
    assert!(dry.out.contains("    the copy has no listeners with proxy_protocol\n"), "{}", dry.out);
    let ended = scene.tool.run(&["run", &plan, "--plain"]);
    assert!([0, 1, 3].contains(&ended.code) && ended.out.contains("nginx/"), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("no listeners with proxy_protocol"), "{}", ended.out);
    for path in [scene.tool.path(""), plan.clone().into()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own");
    }
    let ended = scene.tool.run_as_nobody(&["run", &plan, "--plain"]);
    assert!([0, 1, 3].contains(&ended.code) && ended.out.contains("nginx/"), "{}{}", ended.out, ended.err);
    assert_eq!((changed(&before, &scene.own.snapshot()), scene.own.pid()), (vec![], pid));
    fs::set_permissions(&site, fs::Permissions::from_mode(0o600)).expect("our own");
    let refused = scene.tool.run_as_nobody(&["run", &plan, "--plain"]);
    assert_eq!(refused.code, 2, "{}{}", refused.out, refused.err);
    let said = refused.err.lines().last().expect("a line");
    assert!(said.contains("own.conf") && said.ends_with("run webdyno as root, who may read it"), "{said}");
}
