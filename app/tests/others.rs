//! Other programs have the CPUs while a server is measured: each command says so. On a quiet machine none would be named; that is held
//! against exact numbers in `model::others`, as this machine may be busy.

mod tool;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use tool::{Finished, Tool};

/// Programs that do nothing but keep CPUs busy, and end by themselves should nobody end them.
struct Busy(Vec<Child>);

impl Busy {
    /// Four for each CPU: so many have most of them on any machine.
    fn start() -> Busy {
        let cpus = std::thread::available_parallelism().map_or(2, usize::from);
        let one = |_| Command::new("timeout").args(["300", "sh", "-c", "while :; do :; done"]).spawn().expect("sh");
        Busy((0..4 * cpus).map(one).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Told to end, it ends what it started; one that has ended already is left alone.
            let _ =
                rustix::process::kill_process(rustix::process::Pid::from_child(child), rustix::process::Signal::TERM);
            let _ = child.wait();
        }
    }
}

/// A server of our own that waits for each answer, so that it leaves the CPUs to whoever wants them.
struct Served(Child, String);

impl Served {
    fn start(tool: &Tool) -> Served {
        let mut command = tool.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let line = BufReader::new(child.stdout.take().expect("piped")).lines().next().expect("a line").expect("UTF-8");
        let port = line.rsplit(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty()).expect("a port");
        let url = format!("http://127.0.0.1:{port}/sleep/5ms");
        Served(child, url)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn json(ran: &Finished) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn says(doubts: &Value, id: &str) -> bool {
    doubts.as_array().is_some_and(|doubts| doubts.iter().any(|doubt| doubt["id"] == id))
}

#[test]
fn programs_that_have_the_cpus_are_a_doubt_everywhere() {
    let tool = Tool::new();
    let served = Served::start(&tool);
    let _busy = Busy::start();

    let checked = tool.run(&["check", &served.1, "--budget", "10s", "--json"]);
    let said = json(&checked);
    assert_eq!((checked.code, &said["step"]["sentence"]["id"]), (3, &Value::from("step-others")), "{said:#}");
    assert!(says(&said["doubts"], "check-others-named"), "{said:#}");

    let loaded = tool.run(&["load", &served.1, "-c", "4", "-d", "1s", "--json", "--no-store"]);
    let said = json(&loaded);
    assert!(loaded.code == 0 && says(&said["doubts"], "doubt-others"), "{said:#}");

    let plan = "blocks = 2\naa = false\n[server]\nkind = \"embedded\"\n[load.a]\npath = \"/sleep/5ms\"\nconnections = 4\n\
                duration = \"1s\"\n[cooldown]\nlimit = \"0s\"\n";
    let ran = tool.run(&["run", &tool.plan(plan), "--plain", "--json"]);
    let said = json(&ran);
    assert!(says(&said["cells"][0]["doubts"], "doubt-others"), "{said:#}");
    let japanese = tool.run(&["report", "--lang", "ja"]);
    assert!(japanese.out.contains("ほかのプログラムが CPU の"), "{}", japanese.out);
}
