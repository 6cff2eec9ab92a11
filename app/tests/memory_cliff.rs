//! The first document's experiment on the machine's real Apache, in its quick form; and what is said where it cannot be shown.

mod tool;

use tool::{Finished, Tool, alone, is_root, remains, shipped};

/// Whether this machine can confine a real Apache; says why when not.
fn can_confine() -> bool {
    if !std::path::Path::new("/usr/sbin/apache2").exists() {
        testkit::skip::skipped("no apache2");
        return false;
    }
    let memory_groups = host::hierarchies().is_ok();
    if !is_root() || !memory_groups {
        testkit::skip::not_here("needs root and a memory control group");
        return false;
    }
    true
}

#[test]
fn the_baseline_thrashes_and_the_others_do_not() {
    let _alone = alone();
    if !can_confine() {
        return;
    }
    let tool = Tool::new();
    let run =
        tool.run(&["run", &shipped("memory-cliff.toml"), "--quick", "--seed", "1", "--make-swap", "1G", "--json"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let report: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    let cells = report["cells"].as_array().expect("cells");
    let primary = |cell: &serde_json::Value| cell["diagnosis"]["primary"]["title"]["id"].clone();
    for cell in cells {
        assert_eq!(cell["failures"].as_array().map(Vec::len), Some(0), "{cell}");
        // As many blocks as two minutes have room for.
        assert!(matches!(cell["trials_used"].as_u64(), Some(1..=3)), "{cell}");
        let thrashes = cell["name"].as_str().is_some_and(|name| name.starts_with("10 at once"));
        assert_eq!(primary(cell) == "cause-memory-thrash", thrashes, "{}: {}", cell["name"], primary(cell));
    }
    assert_eq!(remains(&tool), Vec::<String>::new());
}

/// Every request is a program that takes memory: its time is told, and told whole.
#[test]
fn a_latency_budget_adds_up_and_the_setting_is_given_back() {
    let _alone = alone();
    if !can_confine() {
        return;
    }
    if let Err(error) = monitor::may_account() {
        testkit::skip::not_here(&format!("the kernel tells no delays here ({error})"));
        return;
    }
    let setting = || std::fs::read_to_string("/proc/sys/kernel/task_delayacct").expect("the setting");
    let before = setting();
    let tool = Tool::new();
    let text = std::fs::read_to_string(shipped("memory-cliff.toml")).expect("the plan");
    let folder = std::path::Path::new(&shipped("memory-cliff.toml")).parent().expect("a folder").display().to_string();
    let text = text
        .replace("\"../sites", &format!("\"{folder}/../sites"))
        .replace("requests = 100", "requests = 12")
        .replace("\"40M\"", "\"4M\"");
    let plan = tool.plan(&format!("latency_budget = true\naa = false\n{text}"));
    let run = tool.run(&["run", &plan, "--quick", "--make-swap", "1G", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    for cell in report["cells"].as_array().expect("cells") {
        for split in [&cell["latency_budget"]["mean"], &cell["latency_budget"]["slowest"]] {
            let number = |name: &str| split[name].as_f64().unwrap_or_else(|| panic!("no {name} in {cell}"));
            let parts = split["parts"].as_array().expect("parts");
            let part = |name: &str| parts.iter().find(|part| part["part"] == name).and_then(|part| part["us"].as_f64());
            let sum: f64 = parts.iter().filter_map(|part| part["us"].as_f64()).sum();
            let mean = number("mean_us");
            assert!((sum + number("remainder_us") - mean).abs() < 1.0, "{split}");
            assert!(part("on-cpu").is_some_and(|us| us > 0.0), "{split}");
            assert_eq!(split["lock_is_counted"], true, "{split}");
        }
        let mean = &cell["latency_budget"]["mean"];
        // All of a cell's good answers, and no others.
        assert_eq!(mean["requests"], cell["good"], "{cell}");
    }
    assert_eq!(setting(), before);
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn without_enough_swap_it_says_how_to_get_it() {
    if !can_confine() {
        return;
    }
    let tool = Tool::new();
    let text = std::fs::read_to_string(shipped("memory-cliff.toml")).expect("the plan");
    let text = text
        .replace("swap = \"1G\"", "swap = \"1000T\"")
        .replace("\"../sites", &format!("\"{}/../sites", env!("CARGO_MANIFEST_DIR").to_owned() + "/../plans"));
    let run = tool.run(&["run", &tool.plan(&text), "--plain"]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.err.lines().count() == 1 && run.err.contains("--make-swap"), "{}", run.err);
    let run = tool.run(&["run", &tool.plan(&text), "--plain", "--make-swap", "1000T"]);
    assert_eq!((run.code, run.err.lines().count()), (5, 1), "{run:?}");
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn without_root_it_says_that_root_is_needed() {
    if !can_confine() {
        return;
    }
    let tool = Tool::new();
    let text = "[server]\nkind = \"embedded\"\n[confine]\nmemory = \"64M\"\n[load.a]\npath = \"/\"\nconnections = 1\nrequests = 1\n";
    let plan = tool.plan(text);
    let run = tool.run_as_nobody(&["run", &plan, "--plain"]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.err.lines().count() == 1 && run.err.contains("root"), "{}", run.err);
}

/// A short plan of the embedded server with these lines of `[memory]`.
fn with_memory(lines: &str) -> String {
    format!(
        "blocks = 2\naa = false\n[server]\nkind = \"embedded\"\n[load.a]\npath = \"/\"\nconnections = 1\nrequests = 5\n\
         [cooldown]\nlimit = \"0s\"\n[memory]\n{lines}\n"
    )
}

#[test]
fn files_are_read_or_forgotten_before_each_window() {
    let _alone = alone();
    let tool = Tool::new();
    let file = tool.path("data");
    std::fs::write(&file, vec![7; 1 << 20]).expect("a file");
    let files = format!("files = [{file:?}]\n");
    for (of_all, own, when) in [
        ("page_cache = \"cold\"\n", "", "\nbefore each window the kernel"),
        ("page_cache = \"read\"\n", "", "\nbefore each window all"),
        ("", "page_cache = \"cold\"\n", "\n    before its windows the kernel"),
    ] {
        let plan = tool.plan(&with_memory(&format!("{of_all}{files}[variant.a]\n{own}")));
        let run = tool.run(&["run", &plan, "--json"]);
        assert!(run.out.contains("\"trials_used\": 2"), "{}{}", run.out, run.err);
        let dry = tool.run(&["run", &plan, "--dry-run"]);
        assert!(dry.out.contains(when) && dry.out.contains("/data"), "{}", dry.out);
    }
    for lines in [
        "page_cache = \"cold\"\nfiles = [\"/nowhere/at/all\"]",
        "files = [\"/nowhere/at/all\"]\n[variant.a]\npage_cache = \"cold\"",
    ] {
        let run = tool.run(&["run", &tool.plan(&with_memory(lines)), "--plain"]);
        let last = run.err.lines().last().unwrap_or_default();
        assert_eq!((run.code, last.contains("cannot read /nowhere/at/all")), (5, true), "{run:?}");
    }
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn only_root_empties_swap_or_the_caches_of_the_host() {
    let _alone = alone();
    if !is_root() {
        testkit::skip::not_here("needs root to become nobody");
        return;
    }
    let tool = Tool::new();
    for lines in ["reset_swap = true", "page_cache = \"cold-host\""] {
        let run = tool.run_as_nobody(&["run", &tool.plan(&with_memory(lines)), "--plain"]);
        assert_eq!((run.code, run.err.lines().count()), (5, 1), "{run:?}");
        assert!(run.err.contains("only root may"), "{}", run.err);
    }
    let run = tool.run(&["run", &tool.plan(&with_memory("reset_swap = true")), "--json"]);
    assert!(run.out.contains("\"trials_used\": 2"), "{}{}", run.out, run.err);
    assert_eq!(remains(&tool), Vec::<String>::new());
}

#[test]
fn a_full_disk_is_one_line() {
    if !is_root() {
        testkit::skip::not_here("needs root to mount a small disk");
        return;
    }
    let tool = Tool::new();
    let disk = tool.path("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let mut command = tool.command(&[]);
    let environment: Vec<_> = command.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
    command = std::process::Command::new("unshare");
    // In a mount namespace of its own the small disk disappears with the process.
    let script = r#"mount -t tmpfs -o size=64k tmpfs "$1" && exec "$2" run "$3" --plain --store "$1/store.sqlite""#;
    command.envs(environment).args(["--mount", "sh", "-c", script, "sh"]).args([
        disk.as_os_str(),
        env!("CARGO_BIN_EXE_webdyno").as_ref(),
        shipped("first-look.toml").as_ref(),
    ]);
    let run = Finished::of(&command.output().expect("unshare runs"));
    assert_eq!(run.code, 6, "{run:?}");
    let last = run.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("webdyno: ") && last.contains("disk full"), "{}", run.err);
    assert_eq!(remains(&tool), Vec::<String>::new());
}
