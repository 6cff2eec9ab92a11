//! The file of ours among the server's own: where it goes, what is in it, and what of it needs a full restart.

use crate::ServerError;
use crate::apache::check::canonical;
use crate::apache::machine::Machine;
use crate::apache::machine::tree::words;
use crate::apache::render::Rendered;
use host::{Borrowed, Host, Service};
use model::plan::Directive;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directives that a graceful restart does not change, or that decide what a server may open only as it starts. ServerLimit and ThreadLimit:
/// "any attempts to change this directive during a restart will be ignored"
/// (<https://httpd.apache.org/docs/2.4/mod/mpm_common.html#serverlimit>). Modules: what is loaded stays mapped, and another processing module
/// is refused (AH00526). ListenBacklog, buckets, sizes of buffers and filters (which nothing switches off again) belong to sockets that a
/// restart keeps open (server/listen.c). MaxRequestWorkers and ThreadsPerChild: after a
/// graceful restart of 2.4.71 (prefork) with a lower limit, workers of before keep their places in the scoreboard for ever (AH00167, "long
/// lost child came home"), and 3 run where 4 are allowed.
const FULL: [&str; 17] = [
    "AcceptFilter",
    "AsyncRequestWorkerFactor",
    "CoreDumpDirectory",
    "Group",
    "Listen",
    "ListenBacklog",
    "ListenCoresBucketsRatio",
    "LoadFile",
    "LoadModule",
    "MaxRequestWorkers",
    "ReceiveBufferSize",
    "SendBufferSize",
    "ServerLimit",
    "ThreadLimit",
    "ThreadStackSize",
    "ThreadsPerChild",
    "User",
];
/// The file, and the line that includes it where no folder does.
#[derive(Debug)]
pub(super) struct DropIn {
    file: Borrowed,
    /// The main file, when it had to get a line for it.
    _main: Option<Borrowed>,
}

impl DropIn {
    /// Chooses the place and journals it. A main file without a folder for drop-ins gets a line.
    pub(super) fn place(machine: &Machine, service: &Service, host: &Host) -> Result<DropIn, ServerError> {
        let name = host.own_name();
        let text = fs::read(&machine.main).map_err(ServerError::io("read", &machine.main))?;
        let folder = folder_in(&String::from_utf8_lossy(&text), &machine.server_root);
        // Behind all others in the order of names, so that it has the last word among them.
        let file = format!("zz-{name}.conf");
        let Some(folder) = folder else {
            let path = machine.main.with_file_name(file);
            let own = private(host.borrow_file(&path, None)?, service);
            let with = including(&text, &path);
            let main = host.borrow_file(&machine.main, Some(std::slice::from_ref(&with)))?;
            own.put(Some(b""))?;
            main.put(Some(&with))?;
            return Ok(DropIn { file: own, _main: Some(main) });
        };
        Ok(DropIn { file: private(host.borrow_file(&folder.join(file), None)?, service), _main: None })
    }

    /// Its path.
    pub(super) fn own(&self) -> &Path {
        self.file.path()
    }

    pub(super) fn put(&self, text: &str) -> Result<(), ServerError> {
        Ok(self.file.put(Some(text.as_bytes()))?)
    }
}

/// The drop-in says where the configuration can be asked for, passwords included: only the server's main process may read it.
fn private(file: Borrowed, service: &Service) -> Borrowed {
    let owner = service.pid().and_then(|pid| fs::metadata(format!("/proc/{pid}")).ok());
    file.private_to(owner.map(|owner| (owner.uid(), owner.gid())))
}

/// The folder that a main file takes all `*.conf` of: Debian's for pieces of configuration, or the last one there is.
fn folder_in(main: &str, root: &Path) -> Option<PathBuf> {
    let mut found: Option<PathBuf> = None;
    for line in main.lines().map(words) {
        let [name, pattern] = line.as_slice() else { continue };
        if !name.eq_ignore_ascii_case("IncludeOptional") && !name.eq_ignore_ascii_case("Include") {
            continue;
        }
        let path = root.join(pattern);
        let (Some(folder), Some("*.conf" | "*")) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            continue;
        };
        // Sites and modules are listed by the system's own tools, which would wonder.
        let of_others = |known: &PathBuf| known.ends_with("conf-enabled");
        if folder.is_dir()
            && !folder.to_string_lossy().contains(['*', '?', '['])
            && !found.as_ref().is_some_and(of_others)
        {
            found = Some(folder.to_owned());
        }
    }
    found
}

/// A main file with a line that includes another file. Its comments may be in any code, and stay as they are.
fn including(main: &[u8], file: &Path) -> Vec<u8> {
    let end = main.iter().rposition(|&byte| byte != b'\n').map_or(0, |last| last + 1);
    [&main[..end], b"\nIncludeOptional \"", file.as_os_str().as_bytes(), b"\"\n"].concat()
}

/// What is in it. Without the marker it counts for nothing: after a crash of the machine the server starts as if it were not there.
pub(super) fn text(control: &str, marker: &Path, common: &[Directive], variant: &[Directive]) -> Rendered {
    let head =
        format!("# Made by webdyno for a run, and removed at its end.\n<IfFile \"{}\">\n{control}", marker.display());
    let mut rendered = Rendered::of(head, common, variant);
    rendered.text += "</IfFile>\n";
    rendered
}

/// The first directive that differs between the two and needs a full restart.
pub(super) fn needs_full<'a>(before: &'a [Directive], after: &'a [Directive]) -> Option<&'a Directive> {
    let of = |directives: &'a [Directive]| -> Vec<&'a Directive> {
        let full = |directive: &&Directive| {
            let name = directive.text.split_whitespace().next().unwrap_or_default();
            FULL.iter().any(|full| full.eq_ignore_ascii_case(canonical(name)))
        };
        directives.iter().filter(full).collect()
    };
    let (before, after) = (of(before), of(after));
    let texts = |directives: &[&Directive]| directives.iter().map(|d| d.text.trim().to_owned()).collect::<Vec<_>>();
    if texts(&before) == texts(&after) { None } else { after.first().or(before.first()).copied() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_for_pieces_is_found() {
        let root = tempfile::tempdir().unwrap();
        for name in ["conf-enabled", "sites-enabled", "conf.d", "mods-enabled"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let check = |main: &str, expected: Option<&str>| {
            assert_eq!(folder_in(main, root.path()), expected.map(|name| root.path().join(name)), "{main}");
        };
        check(
            "IncludeOptional mods-enabled/*.conf\n IncludeOptional conf-enabled/*.conf\nIncludeOptional sites-enabled/*.conf\n",
            Some("conf-enabled"),
        );
        check("Include conf.d/*.conf\n", Some("conf.d"));
        check("IncludeOptional none.d/*.conf\n#Include conf.d/*.conf\nInclude conf.d/one.conf\n", None);
        check("", None);
    }

    #[test]
    fn the_main_file_keeps_its_bytes() {
        let check = |main: &[u8], expected: &[u8]| {
            assert_eq!(
                including(main, Path::new("/etc/z.conf")),
                [expected, b"\nIncludeOptional \"/etc/z.conf\"\n"].concat()
            );
        };
        // A comment in EUC-JP.
        check(b"# \xc0\xdf\xc4\xea\nTimeout 5\n\n", b"# \xc0\xdf\xc4\xea\nTimeout 5");
        check(b"Timeout 5", b"Timeout 5");
        check(b"\n", b"");
    }

    #[test]
    fn some_directives_need_a_full_restart() {
        let of = |text: &str| -> Vec<Directive> {
            text.split(';')
                .filter(|text| !text.is_empty())
                .map(|text| Directive { text: text.to_owned(), line: 1 })
                .collect()
        };
        let check = |before: &str, after: &str, expected: Option<&str>| {
            let (before, after) = (of(before), of(after));
            assert_eq!(needs_full(&before, &after).map(|d| d.text.as_str()), expected);
        };
        check("", "KeepAlive Off;KeepAliveTimeout 4", None);
        check("MaxRequestWorkers 5", "MaxClients 4", Some("MaxClients 4"));
        check("", "KeepAlive Off;serverlimit 4", Some("serverlimit 4"));
        check("ServerLimit 4", "ServerLimit 4;KeepAlive Off", None);
        check("ServerLimit 4", "ServerLimit 5", Some("ServerLimit 5"));
        check("ServerLimit 4", "", Some("ServerLimit 4"));
        check("AcceptFilter http data", "AcceptFilter http none", Some("AcceptFilter http none"));
        check("", "SendBufferSize 65536", Some("SendBufferSize 65536"));
    }
}
