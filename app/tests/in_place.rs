//! Plans about an Apache that is there already: its running server changed in place; and files and kernel settings as part of variants.

mod tool;

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::debian::Debian;
use testkit::own::Own;
use testkit::skip::not_here;
use tool::scene::{GRACE, SETTING, Scene, setting, variants};
use tool::{Tool, alone, is_root, remains};

#[test]
fn a_run_in_place_gives_everything_back() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let plan = scene.plan("in_place = true", variants());
    let refused = scene.tool.run(&["run", &plan, "--plain"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    let main = scene.own.main();
    assert!(refused.err.contains(&format!("say so once: --i-operate {}", main.display())), "{}", refused.err);
    let dry = scene.tool.run(&["run", &plan, "--dry-run"]);
    assert!(dry.code == 0 && dry.out.contains("in place: the running server of"), "{}{}", dry.out, dry.err);
    scene.check_given_back();
    let pid = scene.own.pid();
    let ended = scene.run(&plan);
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("KeepAlive Off: close; few"), "{}", ended.out);
    assert!(ended.out.contains("MaxRequestWorkers 20: few"), "{}", ended.out);
    scene.check_given_back();
    assert_ne!(scene.own.pid(), pid, "ServerLimit needed a full restart");
    // Said once, it is remembered.
    let again = scene.tool.run(&[
        "run",
        &scene.plan("in_place = true", "[variant.close]\ndirectives = \"KeepAlive Off\""),
        "--plain",
    ]);
    assert!([0, 1, 3].contains(&again.code), "{}{}", again.out, again.err);
    let pid = scene.own.pid();
    scene.check_given_back();
    assert_eq!(scene.own.pid(), pid, "a graceful restart keeps the process");
}

#[test]
fn a_main_file_without_folders_gets_a_line_and_loses_it() {
    let prepare = |debian: &Debian| {
        let text = fs::read_to_string(debian.main()).expect("a file");
        let one = |text: &str, name: &str| {
            let mut files: Vec<_> =
                fs::read_dir(debian.etc().join(name)).expect("a folder").flatten().map(|entry| entry.path()).collect();
            files.sort();
            let lines: Vec<String> = files.iter().map(|file| format!("Include {}", file.display())).collect();
            let (before, after) = text.split_once(&format!("IncludeOptional {name}/*.conf")).expect("Debian's line");
            format!("{before}{}{after}", lines.join("\n"))
        };
        let text = ["mods-enabled", "conf-enabled", "sites-enabled"].iter().fold(text, |text, name| one(&text, name));
        debian.write("apache2.conf", &text);
        fs::set_permissions(debian.main(), fs::Permissions::from_mode(0o640)).expect("our own file");
    };
    let Some(scene) = Scene::<Debian>::with(prepare) else { return };
    let ended = scene.run(&scene.plan("in_place = true", variants()));
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("KeepAlive Off: close; few"), "{}", ended.out);
    scene.check_given_back();
}

/// A server that was started with `-D NAME` is read with it, whether it is changed or copied.
#[test]
fn names_of_the_command_line_hold() {
    let prepare = |debian: &Debian| {
        let envvars = fs::read_to_string(debian.etc().join("envvars")).expect("a file");
        debian.write("envvars", &format!("{envvars}export APACHE_ARGUMENTS='-D OF_THE_LINE'\n"));
        debian.write(
            "conf-enabled/line.conf",
            "<IfDefine OF_THE_LINE>\nKeepAliveTimeout 9\n</IfDefine>\n<IfDefine !OF_THE_LINE>\nNoSuchDirective\n</IfDefine>\n",
        );
    };
    let Some(scene) = Scene::<Debian>::with(prepare) else { return };
    let variants = "[variant.as-is]\n[variant.limit]\ndirectives = '''\n<IfDefine OF_THE_LINE>\nListenBacklog 100\nMaxKeepAliveRequests 7\n</IfDefine>\n'''";
    for keys in ["in_place = true", ""] {
        let ended = scene.run(&scene.plan(keys, variants));
        assert!([0, 1, 3].contains(&ended.code), "{keys}: {}{}", ended.out, ended.err);
        assert!(ended.out.contains("MaxKeepAliveRequests 7: limit"), "{keys}: {}", ended.out);
        scene.check_given_back();
    }
    let pid = scene.own.pid().expect("it runs");
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("it runs");
    assert!(words.contains("-D\0OF_THE_LINE"), "a full restart repeats them: {words}");
}

#[test]
fn what_does_not_come_into_force_ends_the_run_in_place() {
    let Some(scene) = Scene::<Debian>::with(|debian| debian.site(debian.port, "www", "KeepAliveTimeout 5\n")) else {
        return;
    };
    let check = |directives: &str, code: i32, why: &str| {
        let plan = scene
            .plan("in_place = true", &format!("[variant.as-is]\n[variant.x]\ndirectives = '''\n{directives}\n'''"));
        let ended = scene.run(&plan);
        assert_eq!(ended.code, code, "{}{}", ended.out, ended.err);
        assert!(ended.err.lines().last().is_some_and(|line| line.contains(why)), "{}", ended.err);
        scene.check_given_back();
    };
    check("KeepAliv Off", 2, "plan.toml:10: KeepAliv Off: Invalid command 'KeepAliv'");
    check("MaxRequestWorkers four", 2, "plan.toml:10: MaxRequestWorkers four: AH00182: WARNING");
    check("Timeout x", 2, "takes a whole number; Apache would read something else");
    check("KeepAliveTimeout 2", 2, "the virtual host that answers has its own at ");
    check("PidFile x", 2, "is the machine's own, by which it is controlled; remove the line");
    check("CustomLog /var/log/apache2/webdyno-test common", 2, "would leave a file behind; write to ${run}/other.log");
    // Apache accepts it and cannot start with it.
    check(&format!("Listen 127.0.0.1:{}", scene.own.port()), 4, "could not bind to address 127.0.0.1:");
}

/// What systemd does for a service with PrivateTmp: the server has another folder there, and a log in ours would end it.
#[test]
fn a_server_with_a_tmp_of_its_own_is_not_sent_there() {
    // Others cannot lay anything over a file while a process has mounts of its own.
    let _alone = alone();
    let hidden = tempfile::Builder::new().prefix("hidden-").tempdir_in("/tmp").expect("a folder");
    fs::set_permissions(hidden.path(), fs::Permissions::from_mode(0o755)).expect("our own folder");
    let mut can = true;
    let Some(scene) = Scene::<Debian>::with(|debian| {
        let script = "mount -t tmpfs -o size=64k none \"$1\" && exec apachectl start";
        let mut start = std::process::Command::new("unshare");
        start.args(["-m", "sh", "-c", script, "sh"]).arg(hidden.path());
        start.env("APACHE_CONFDIR", debian.etc()).env("APACHE_STARTED_BY_SYSTEMD", "1");
        can = start.output().is_ok_and(|output| output.status.success());
        if can {
            testkit::own::eventually("it runs", &debian.folder().join("log/error.log"), || debian.is_alive());
        }
    }) else {
        return;
    };
    if !can {
        return not_here("no mount namespaces");
    }
    let variants = "[variant.as-is]\n[variant.log]\ndirectives = 'GlobalLog ${run}/other.log common'";
    let plan = scene.plan("in_place = true", variants);
    let main = scene.own.main();
    let run = |tmp: &std::path::Path| {
        let mut command = scene.tool.command(&["run", &plan, "--plain", "--i-operate", &main.to_string_lossy()]);
        let output = command.env("TMPDIR", tmp).output().expect("webdyno starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let pid = scene.own.pid();
    let (code, said) = run(hidden.path());
    assert!(code == Some(2) && said.contains("is another one (PrivateTmp of its service?)"), "{code:?} {said}");
    scene.check_given_back();
    assert_eq!(scene.own.pid(), pid);
    let (code, said) = run(&scene.tool.tmp());
    assert!([0, 1, 3].contains(&code.unwrap_or(-1)), "{said}");
    scene.check_given_back();
}

#[test]
fn a_server_that_nobody_here_can_start_again_is_left_alone() {
    let Some(scene) = Scene::<Debian>::with(|debian| {
        let mut start = std::process::Command::new("setsid");
        start
            .args(["-f", "apachectl", "-D", "FOREGROUND"])
            .env("APACHE_CONFDIR", debian.etc())
            .env("APACHE_STARTED_BY_SYSTEMD", "1");
        start
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        assert!(start.status().expect("setsid").success());
        testkit::own::eventually("it runs", &debian.folder().join("log/error.log"), || debian.is_alive());
    }) else {
        return;
    };
    let pid = scene.own.pid();
    let ended =
        scene.run(&scene.plan("in_place = true", "[variant.as-is]\n[variant.close]\ndirectives = 'KeepAlive Off'"));
    let why = "runs in the foreground of whoever started it, who alone can start it again; a variant that ends it would leave it down";
    assert!(ended.code == 2 && ended.err.contains(why), "{}{}", ended.out, ended.err);
    assert_eq!(scene.own.pid(), pid);
    scene.check_given_back();
}

#[test]
fn nobody_else_reads_where_the_configuration_is_told() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let plan = scene.plan("in_place = true", variants());
    let text = fs::read_to_string(&plan).expect("a plan").replace("requests = 50", "duration = \"60s\"");
    fs::write(&plan, text).expect("a plan");
    let mut child = scene.spawn(&plan);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("run ")), "it did not begin");
    let folder = fs::read_dir(scene.own.etc().join("conf-enabled")).expect("a folder");
    let drop_in = folder.flatten().find(|entry| entry.file_name().to_string_lossy().starts_with("zz-webdyno-"));
    let drop_in = drop_in.expect("a drop-in").path();
    let mode = fs::metadata(&drop_in).expect("a file").permissions().mode() & 0o777;
    let text = fs::read_to_string(&drop_in).expect("root may");
    kill_process(Pid::from_child(&child), Signal::INT).expect("our own child");
    lines.for_each(drop);
    child.wait().expect("it ends");
    let name = drop_in.file_name().expect("a name").to_string_lossy().replace("zz-", "").replace(".conf", "");
    assert_eq!(mode, 0o600);
    assert!(
        text.contains("SetHandler server-info")
            && !text.contains(&format!("{name}-"))
            && !text.contains(&format!("{name}/")),
        "{text}"
    );
    scene.check_given_back();
}

#[test]
fn two_runs_do_not_meet_on_one_server() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let long = scene.plan("in_place = true", variants()).replace("plan.toml", "long.toml");
    fs::write(
        &long,
        fs::read_to_string(scene.tool.path("plan.toml"))
            .expect("a plan")
            .replace("requests = 50", "duration = \"60s\""),
    )
    .expect("a plan");
    let mut first = scene.spawn(&long);
    let mut lines = BufReader::new(first.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("run ")), "it did not begin");
    let other = Tool::new();
    let main = scene.own.main();
    let second = other.run(&[
        "run",
        &scene.tool.plan(&fs::read_to_string(&long).expect("a plan")),
        "--plain",
        "--i-operate",
        &main.to_string_lossy(),
    ]);
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

/// What it measured until then is kept, and it goes on when the server is free.
#[test]
fn a_run_of_its_url_ends_when_another_takes_the_server() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let other = Tool::new();
    let plan = other.plan(&format!(
        "blocks = 60\naa = false\n[server]\nkind = \"url\"\nurl = \"http://127.0.0.1:{}/\"\n[load.a]\npath = \"/\"\nconnections = 1\n\
         duration = \"300ms\"\n[cooldown]\nlimit = \"0s\"\n",
        scene.own.port
    ));
    let mut only_asks = other.spawn(&["run", &plan, "--plain"]);
    let mut said = BufReader::new(only_asks.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("block 1")), "no trial ended");
    let long = scene.plan("in_place = true", variants());
    let text = fs::read_to_string(&long).expect("a plan").replace("requests = 50", "duration = \"60s\"");
    fs::write(&long, text).expect("a plan");
    let mut taker = scene.spawn(&long);
    let last = said.last().expect("a line");
    assert!(last.ends_with(&format!("works on {}; let it end first", scene.own.main().display())), "{last}");
    assert_eq!(only_asks.wait().expect("it ends").code(), Some(5));
    kill_process(Pid::from_child(&taker), Signal::INT).expect("our own child");
    taker.wait().expect("it ends");
    scene.check_given_back();
    let ids = other.run_ids();
    let mut again = other.spawn(&["run", "--resume", &ids[0], "--plain"]);
    let mut said = BufReader::new(again.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("block ")), "it did not go on");
    kill_process(Pid::from_child(&again), Signal::INT).expect("our own child");
    assert_eq!(again.wait().expect("it ends").code(), Some(130));
    assert_eq!(remains(&other), Vec::<String>::new());
}

#[test]
fn who_changes_the_configuration_meanwhile_keeps_the_change() {
    let Some(mut scene) = Scene::<Debian>::new() else { return };
    let plan = scene.plan("in_place = true", variants());
    let text = fs::read_to_string(&plan)
        .expect("a plan")
        .replace("requests = 50", "duration = \"300ms\"")
        .replace("blocks = 2", "blocks = 50");
    fs::write(&plan, text).expect("a plan");
    let mut child = scene.spawn(&plan);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("block 1")), "no trial ended");
    let ports = format!("Listen {}\n# The administrator's own line.\n", scene.own.port());
    scene.own.write("ports.conf", &ports);
    let said: Vec<String> = lines.collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(5), "{said:?}");
    let expected = "ports.conf changed while webdyno measured: the run ends, and that change is kept";
    assert!(said.iter().any(|line| line.ends_with(expected)), "{said:?}");
    assert_eq!(fs::read_to_string(scene.own.etc().join("ports.conf")).expect("a file"), ports);
    let own = scene.own.etc().join("ports.conf");
    scene.before.insert(own.clone(), scene.own.snapshot()[&own].clone());
    scene.check_given_back();
}

/// A file's number, mode, owner, time and text: all that is to be as it was.
fn facts(path: &Path) -> (u64, u32, u32, u32, i64, i64, String) {
    use std::os::unix::fs::MetadataExt;
    let facts = fs::metadata(path).expect("a file");
    let text = fs::read_to_string(path).expect("a file");
    (facts.ino(), facts.mode(), facts.uid(), facts.gid(), facts.mtime(), facts.mtime_nsec(), text)
}

/// Files of others and kernel settings, for a server that is not even the machine's.
#[test]
fn files_and_settings_are_part_of_a_variant() {
    if !is_root() {
        return not_here("no root");
    }
    let Some(before) = setting() else { return not_here("the kernel setting cannot be read") };
    let tool = Tool::new();
    let (ini, new, told) = (tool.path("php.ini"), tool.path("extra.ini"), tool.path("told"));
    fs::write(&ini, "memory_limit = 64M\n").expect("a file");
    fs::set_permissions(&ini, fs::Permissions::from_mode(0o640)).expect("our own file");
    std::os::unix::fs::chown(&ini, Some(65534), Some(65534)).expect("root may");
    let as_it_was = facts(&ini);
    let seen = tool.path("seen");
    let script = format!(
        "cat '{0}' '{1}' /proc/sys/{2} >> '{3}' 2>/dev/null; exec {4} serve --listen 127.0.0.1:$PORT",
        ini.display(),
        new.display(),
        SETTING.replace('.', "/"),
        seen.display(),
        env!("CARGO_BIN_EXE_webdyno")
    );
    let plan = tool.plan(&format!(
        "blocks = 2\naa = false\n[server]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"\"\"{script}\"\"\"]\n\
         [variant.as-is]\n[[variant.more.files]]\npath = \"{}\"\nreplace = {{ \"64M\" = \"128M\" }}\nappend = \"; more\\n\"\n\
         reload = [\"sh\", \"-c\", \"echo told >> '{}'\"]\n[[variant.more.files]]\npath = \"{}\"\ncontent = \"extra\\n\"\n\
         [variant.more.sysctl]\n\"{SETTING}\" = \"8\"\n\
         [[variant.most.files]]\npath = \"{2}\"\ncontent = \"most\\n\"\n\
         [load.a]\npath = \"/\"\nconnections = 2\nrequests = 50\n[cooldown]\nlimit = \"0s\"\n",
        ini.display(),
        told.display(),
        new.display()
    ));
    let ended = tool.run(&["run", &plan, "--plain"]);
    if ended.err.contains("only root may change it") || ended.err.contains("Read-only") {
        return not_here("kernel settings cannot be changed here");
    }
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    let seen = fs::read_to_string(seen).expect("the server has looked");
    assert!(seen.contains(&format!("memory_limit = 64M\n{before}\n")), "{seen}");
    assert!(seen.contains("memory_limit = 128M\n; more\nextra\n8\n"), "{seen}");
    assert_eq!((facts(&ini), new.exists(), setting()), (as_it_was, false, Some(before)));
    assert!(fs::read_to_string(told).expect("told").lines().count() >= 3, "at each change, and at the end");
    assert_eq!(remains(&tool), Vec::<String>::new());
    // What cannot be done is said before anything is done.
    let text = fs::read_to_string(&plan).expect("a plan");
    let wrong = |from: &str, to: &str, expected: &str| {
        let text = text.replace(from, to);
        let ended = tool.run(&["run", &tool.plan(&text), "--plain"]);
        assert!(ended.err.contains(expected), "{}", ended.err);
    };
    wrong("\"64M\" =", "\"65M\" =", "does not say `65M`; nothing would be replaced");
    wrong(SETTING, "net.ipv4.no_such", "net.ipv4.no_such: this kernel has no such setting");
}

/// Who may not mount hears that a crash of the machine would leave a variant's file behind.
#[test]
fn a_file_that_cannot_be_covered_is_replaced_and_that_is_said() {
    if !is_root() {
        return not_here("no root");
    }
    let tool = Tool::new();
    let folder = tool.path("own");
    let ini = folder.join("php.ini");
    fs::create_dir(&folder).expect("a folder");
    fs::write(&ini, "memory_limit = 64M\n").expect("a file");
    for path in [&folder, &ini] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("root may");
    }
    let plan = tool.plan(&format!(
        "blocks = 2\naa = false\n[server]\nkind = \"embedded\"\n[variant.as-is]\n[[variant.more.files]]\npath = \"{}\"\n\
         append = \"; more\\n\"\n[load.a]\npath = \"/\"\nconnections = 2\nrequests = 50\n[cooldown]\nlimit = \"0s\"\n",
        ini.display()
    ));
    for path in [tool.path(""), plan.clone().into()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own");
    }
    let ended = tool.run_as_nobody(&["run", &plan, "--plain"]);
    assert!([0, 1, 3].contains(&ended.code), "{ended:?}");
    let said = format!("in 2 of 4 trials: {}: nothing could be mounted over it", ini.display());
    assert!(ended.out.contains(&said), "{}", ended.out);
    assert_eq!(fs::read_to_string(&ini).expect("a file"), "memory_limit = 64M\n");
    let told = tool.run_as_nobody(&["doctor"]).out;
    let line = told.lines().find(|line| line.contains("[[files]]")).unwrap_or_default();
    assert!(line.starts_with("limited"), "{told}");
}

/// A boot empties /run: what the drop-in says then counts for nothing, and the next start gives back the rest.
#[test]
fn after_a_crash_of_the_machine_the_server_starts_as_if_nothing_were() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let plan = scene.plan("in_place = true", "[variant.close]\ndirectives = \"KeepAlive Off\"");
    let text = fs::read_to_string(&plan).expect("a plan").replace("requests = 50", "duration = \"60s\"");
    fs::write(&plan, text).expect("a plan");
    let mut child = scene.spawn(&plan);
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("run ")), "it did not begin");
    scene.tool.guardians().into_iter().for_each(|pid| kill_process(pid, Signal::KILL).expect("our own grandchild"));
    child.kill().expect("our own child");
    child.wait().expect("our own child");
    let drop_in = || {
        let files =
            fs::read_dir(scene.own.etc().join("conf-enabled")).expect("a folder").flatten().map(|entry| entry.path());
        files.filter(|path| path.to_string_lossy().contains("/zz-webdyno-")).count()
    };
    assert_eq!(drop_in(), 1);
    // What a boot does to the server, to /run, and to what the journal knows of processes.
    scene.own.stop();
    for claim in scene.claims() {
        fs::remove_file(claim).expect("root may");
    }
    scene.tool.forget_boot();
    scene.own.start();
    assert!(
        scene.answer().contains("the first site") && !scene.answer().contains("Connection: close"),
        "{}",
        scene.answer()
    );
    let foreseen = scene.tool.run(&["restore", "--dry-run"]);
    assert!(foreseen.out.contains("would delete the file") && drop_in() == 1, "{}{}", foreseen.out, foreseen.err);
    let restored = scene.tool.run(&["restore"]);
    assert!(restored.out.contains("deleted the file") && restored.code == 0, "{}{}", restored.out, restored.err);
    scene.check_given_back();
}

/// A run that died with its guardian while a variant was measured that changes one file and makes another.
struct Cut {
    tool: Tool,
    ini: PathBuf,
    new: PathBuf,
    told: PathBuf,
    as_it_was: (u64, u32, u32, u32, i64, i64, String),
}

/// A command as argument of another; the command itself where there is no other.
fn run_by(other: &[&str], command: Command) -> Command {
    let [program, args @ ..] = other else { return command };
    let mut outer = Command::new(program);
    outer.args(args).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// `program` is what runs webdyno, with its arguments; nothing for webdyno itself.
fn cut(program: &[&str]) -> Cut {
    let tool = Tool::new();
    let (ini, new, told, pid) = (tool.path("php.ini"), tool.path("extra.ini"), tool.path("told"), tool.path("pid"));
    fs::write(&ini, "memory_limit = 64M\n").expect("a file");
    let as_it_was = facts(&ini);
    let plan = tool.plan(&format!(
        "aa = false\n[server]\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", \"echo $$ > '{}'; exec {} serve --listen 127.0.0.1:$PORT\"]\n\
         [[variant.more.files]]\npath = \"{}\"\nreplace = {{ \"64M\" = \"128M\" }}\n\
         reload = [\"sh\", \"-c\", \"echo told >> '{}'\"]\n[[variant.more.files]]\npath = \"{}\"\ncontent = \"extra\\n\"\n\
         [load.a]\npath = \"/\"\nconnections = 1\nduration = \"60s\"\n[cooldown]\nlimit = \"0s\"\n",
        pid.display(),
        env!("CARGO_BIN_EXE_webdyno"),
        ini.display(),
        told.display(),
        new.display()
    ));
    let mut command = run_by(program, tool.command(&["run", &plan, "--plain"]));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("webdyno starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("run ")), "it did not begin");
    tool.guardians().into_iter().for_each(|pid| kill_process(pid, Signal::KILL).expect("our own grandchild"));
    child.kill().expect("our own child");
    child.wait().expect("our own child");
    // What a boot does to the server, and to what the journal knows of processes.
    let server = || fs::read_to_string(&pid).ok()?.trim().parse().ok().and_then(Pid::from_raw);
    // The rehearsal's has ended, and the trial's may still begin; it has the same file.
    let began = Instant::now();
    while remains(&tool).iter().any(|left| left.starts_with("process ")) {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", remains(&tool));
        let _ = server().map(|pid| kill_process(pid, Signal::KILL));
        std::thread::sleep(Duration::from_millis(10));
    }
    tool.forget_boot();
    assert_eq!(read(&ini), "memory_limit = 128M\n", "nobody was there to give it back");
    assert_eq!(read(&new), "extra\n");
    Cut { tool, ini, new, told, as_it_was }
}

impl Cut {
    fn check_restored(&self, foreseen: &str, said: &str) {
        let Cut { tool, ini, new, told, as_it_was } = self;
        let before = read(told).lines().count();
        let would = tool.run(&["restore", "--dry-run"]);
        assert!(would.out.contains(foreseen), "{would:?}");
        let restored = tool.run(&["restore"]);
        assert!(restored.code == 0 && restored.out.contains(said), "{restored:?}");
        assert_eq!((&facts(ini), new.exists()), (as_it_was, false));
        assert!(read(told).lines().count() > before, "somebody may have read it since");
        assert_eq!(remains(tool), Vec::<String>::new());
        let beside = fs::read_dir(tool.path("")).expect("a folder").flatten().map(|entry| entry.file_name());
        let own = beside.filter(|name| name.to_string_lossy().starts_with(".webdyno")).count();
        assert_eq!(own, 0, "second names are left");
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a file")
}

/// What lies over a file ends with the machine: a boot finds the file as it was, and of a new one an empty file.
#[test]
fn after_a_crash_of_the_machine_files_are_as_they_were() {
    let _alone = alone();
    if !testkit::skip::can_mount() {
        return;
    }
    let cut = cut(&[]);
    for path in [&cut.ini, &cut.new] {
        rustix::mount::unmount(path, rustix::mount::UnmountFlags::DETACH).expect("something lies there");
    }
    // The second name is a link more, which changes nothing that a reader sees.
    assert_eq!((facts(&cut.ini), read(&cut.new)), (cut.as_it_was.clone(), String::new()));
    cut.check_restored("would delete the file", "deleted the file");
}

/// Where nothing may be laid over a file, or not everybody would find it, what a variant put there stays until somebody has it given back.
#[test]
fn after_a_crash_of_the_machine_files_are_given_back() {
    let _alone = alone();
    let apart: &[&str] = if is_root() { &["unshare", "--mount", "--propagation", "private"] } else { &[] };
    if let [program, args @ ..] = apart
        && !Command::new(program).args(args).arg("true").status().is_ok_and(|status| status.success())
    {
        return not_here("no mounts of one's own");
    }
    cut(apart).check_restored("would give back the file", "gave back the file");
}

/// Who is killed while a file is changed leaves it to the guardian.
#[test]
fn a_killed_run_gives_files_back() {
    let _alone = alone();
    let tool = Tool::new();
    let ini = tool.path("php.ini");
    fs::write(&ini, "before\n").expect("a file");
    let as_it_was = facts(&ini);
    let plan = tool.plan(&format!(
        "aa = false\n[server]\nkind = \"command\"\ncommand = [\"{}\", \"serve\", \"--listen\", \"127.0.0.1:$PORT\"]\n\
         [[variant.more.files]]\npath = \"{}\"\ncontent = \"after\\n\"\n\
         [load.a]\npath = \"/\"\nconnections = 1\nduration = \"60s\"\n[cooldown]\nlimit = \"0s\"\n",
        env!("CARGO_BIN_EXE_webdyno"),
        ini.display(),
    ));
    let mut child = tool.spawn(&["run", &plan, "--plain"]);
    let began = Instant::now();
    while read(&ini) != "after\n" {
        assert!(began.elapsed() < Duration::from_secs(20), "it did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("our own child");
    child.wait().expect("our own child");
    let killed = Instant::now();
    while !remains(&tool).is_empty() || facts(&ini) != as_it_was {
        assert!(killed.elapsed() < GRACE, "{:?} {:?}", remains(&tool), facts(&ini));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An ordinary user may derive an instance of what they can read, and is told in one line what they cannot.
#[test]
fn an_ordinary_user_derives_what_they_can_read() {
    let Some(scene) = Scene::<Debian>::new() else { return };
    let plan = scene.plan("", "[variant.close]\ndirectives = \"KeepAlive Off\"");
    for path in [scene.tool.path(""), plan.clone().into()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own");
    }
    let ended = scene.tool.run_as_nobody(&["run", &plan, "--plain"]);
    assert!([0, 1, 3].contains(&ended.code), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("Apache/2"), "{}", ended.out);
    scene.check_given_back();
    let ports = scene.own.etc().join("ports.conf");
    fs::set_permissions(&ports, fs::Permissions::from_mode(0o600)).expect("our own");
    let refused = scene.tool.run_as_nobody(&["run", &plan, "--plain"]);
    assert_eq!(refused.code, 2, "{}{}", refused.out, refused.err);
    let said = refused.err.lines().last().expect("a line");
    assert!(said.contains("ports.conf") && said.ends_with("run webdyno as root, who may read it"), "{said}");
}
