//! Shared memory that is not to be had, or that another version of the module made: neither may be misread, and a server without it
//! says so and counts what it lets through.

use crate::server::{Mpm, Server, make, module_file, wait};
use rustix::process::{Pid, Resource, Rlimit};
use std::path::{Path, PathBuf};

const ONE: &str = "AdmissionGroup one limit=1\nAdmissionUse one\n";
/// Gigabytes of shared memory, of which nothing is touched.
const LARGE: &str = "AdmissionTableSize 1048576\n";

/// How much more memory the parent, and the children that it makes from now on, may map than it has mapped now; `None`: any.
fn may_map(server: &Server, more: Option<u64>) {
    let pid = Pid::from_raw(server.pid());
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB")?.parse().ok());
    let current = more.map(|more| kib.unwrap_or(0_u64) * 1024 + more);
    rustix::process::prlimit(pid, Resource::As, Rlimit { current, maximum: None }).expect("root may");
}

pub(crate) fn configure(server: &Server, from: &str, to: &str) {
    let text = std::fs::read_to_string(server.path("httpd.conf")).expect("ours");
    assert!(text.contains(from), "{from}: {text}");
    server.put("httpd.conf", &text.replace(from, to));
    server.graceful();
}

/// Nobody is turned away for want of memory, and nobody has to guess that nothing is limited.
#[test]
fn without_memory_requests_are_let_through_and_counted() {
    for mpm in [Mpm::Prefork, Mpm::Worker] {
        let Some(server) = Server::start(mpm, "# groups\n") else { return };
        // It takes no memory, and says why it counts nothing.
        let page = server.get("/admission-status");
        assert!(page.status == 200 && page.body.contains("No AdmissionGroup is configured"), "{page:?}");
        let status = server.status();
        assert_eq!((&status["groups"], status["table"].is_null()), (&serde_json::json!([]), true), "{status}");
        assert!(!server.get("/server-status").body.contains("Admission"));
        may_map(&server, Some(2 << 30));
        configure(&server, "# groups\n", &format!("{LARGE}{ONE}"));
        let log = server.log();
        assert!(log.contains("ADM0010: no shared memory (") && log.contains("bytes): nothing is limited;"), "{log}");
        let gate = server.gate("g");
        let held: Vec<_> = (0..3).map(|_| server.send("/page.probe?gate=g")).collect();
        server.wait_started(3);
        // Neither a file nor a page of the server's own is in the group.
        assert_eq!(server.get("/index.html").status, 200);
        let status = server.status();
        assert_eq!(status["troubles"]["no_memory"], 3, "{status}");
        assert_eq!((&status["groups"], &status["engine"]), (&serde_json::json!([]), &"on".into()), "{status}");
        assert!(server.get("/admission-status").body.contains("Requests let through for that: 3"));
        assert!(server.get("/admission-status?prometheus").body.ends_with("admission_no_memory_total 3\n"));
        assert!(server.get("/server-status?auto").body.contains("AdmissionNoMemory: 3\n"));
        assert!(server.get("/server-status").body.contains("No shared memory: nothing is limited"));
        gate.open();
        assert!(held.into_iter().all(|one| one.answer().status == 200));
        wait("they are logged", || {
            server.access().iter().filter(|line| line.contains("page.probe") && line.ends_with(" one open")).count()
                == 3
        });
        // All processes together say it once a minute.
        let told = server.log().matches("ADM0025: no shared memory: nothing is limited: 1 requests of groups").count();
        assert_eq!(told, 1, "{}", server.log());
        assert!(server.log().matches("ADM0025").count() <= 2, "{}", server.log());
        // Another restart without memory goes on counting.
        server.graceful();
        assert_eq!(server.get("/page.probe").status, 200);
        assert_eq!(server.status()["troubles"]["no_memory"], 4, "{mpm:?}");
        // As soon as there is memory the limit holds, and what was let through is still told.
        may_map(&server, None);
        server.graceful();
        let gate = server.gate("again");
        let held = server.send("/page.probe?gate=again");
        server.wait_number("one", "/held", 1);
        assert_eq!(server.get("/page.probe").status, 503);
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
        assert_eq!(server.status()["troubles"]["no_memory"], 4, "{mpm:?}");
        wait("the controller tells it, too", || {
            let text = std::fs::read_to_string(server.path("run/admission/status.json")).unwrap_or_default();
            text.contains("\"no_memory\":4}")
        });
        assert!(!server.log().contains("ADM0011"), "{}", server.log());
    }
}

/// A reload that wants more memory than there is does not end the limits that there are.
#[test]
fn without_memory_for_a_larger_table_the_smaller_one_stays() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let Some(server) = Server::start(mpm, ONE) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_started(1);
        may_map(&server, Some(2 << 30));
        // A queue for which the smaller table has no room, either.
        configure(&server, ONE, &format!("{LARGE}{}", ONE.replace("limit=1", "limit=1 queue=4000 timeout=50ms")));
        let log = server.log();
        assert!(log.contains("the smaller table of before stays in use") && !log.contains("ADM0011"), "{log}");
        assert_eq!((server.number("one", "/held"), server.get("/page.probe").status), (1, 503), "{mpm:?}");
        assert_eq!(server.status()["troubles"]["no_memory"], 0);
        gate.open();
        assert_eq!(held.answer().status, 200);
        server.wait_idle();
        assert_eq!(server.get("/page.probe").status, 200);
        server.wait_idle();
    }
}

/// The module, built so that its memory is another version's.
fn another_version(define: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../modules/mod_admission");
    let build = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mod-admission-{}", define.replace('=', "-")));
    make(&source, &[format!("BUILD={}", build.display()), format!("CFLAGS=-O0 -D{define}")]);
    build.join("mod_admission.so")
}

/// A graceful restart into another version of the module, as a package's upgrade brings it about: what is in the memory means something
/// else there, so it begins anew, says so, and the requests of before end as ever.
#[test]
fn memory_of_another_version_is_not_taken_over() {
    let Some(module) = module_file().map(|path| path.display().to_string()) else { return };
    // What stands before the table is another, and the table is.
    for define in ["HEAD_VERSION=77", "ADM_VERSION=77u"] {
        let other = another_version(define).display().to_string();
        let Some(server) = Server::start(Mpm::Event, ONE) else { return };
        let gate = server.gate("g");
        let held = server.send("/page.probe?gate=g");
        server.wait_number("one", "/held", 1);
        let said = || server.log().matches("ADM0011: the table was made by another version of this module").count();
        configure(&server, &module, &other);
        assert_eq!((said(), server.number("one", "/held")), (1, 0), "{define}");
        assert_eq!(server.get("/page.probe").status, 200, "{define}: the old request is not known to it");
        server.wait_idle();
        // The same version again takes its own over.
        let again = server.send("/page.probe?gate=g");
        server.wait_number("one", "/held", 1);
        server.graceful();
        assert_eq!((said(), server.number("one", "/held"), server.get("/page.probe").status), (1, 1, 503), "{define}");
        // And back: neither is the other's taken over, nor its own of long ago looked for.
        configure(&server, &other, &module);
        assert_eq!((said(), server.number("one", "/held")), (2, 0), "{define}");
        gate.open();
        assert_eq!((held.answer().status, again.answer().status), (200, 200), "{define}");
        assert_eq!(server.get("/page.probe").status, 200);
        server.wait_idle();
    }
}
