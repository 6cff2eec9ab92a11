//! A server's folder before it is started: pages, configuration, PHP-FPM.

use super::{Built, MODULES, Mpm, PATIENCE, Php, Running, Server, Told, built, put, wait};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::skip::skipped;

/// Folders of pages in the shapes of requests that other limiters count wrongly.
const HTACCESS: &str = "RewriteEngine On\nRewriteRule ^item/(.*)$ /page.cgi?id=pretty-$1 [QSA,L]\nRewriteRule ^probe/(.*)$ /page.probe [QSA,L]\n\
                        RewriteRule ^php/(.*)$ /page.php [QSA,L]\n";
const NESTED: &str = "<!--#include virtual=\"/page.cgi?id=one\" --><!--#include virtual=\"/page.probe?id=two\" -->";

pub(super) struct LaidOut {
    built: &'static Built,
    php: Option<PathBuf>,
    /// Ended before its folder goes.
    pool: Option<Running>,
    folder: tempfile::TempDir,
}

/// Under threads programs are started by mod_cgid, where a test does not say otherwise.
fn has_cgid(told: &Told<'_>) -> bool {
    told.mpm != Mpm::Prefork && !told.text.contains("mod_cgi.so")
}

fn find(folder: &str, start: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.into_iter().find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)))
}

impl LaidOut {
    pub(super) fn new(told: &Told<'_>) -> Option<LaidOut> {
        let built = built()?;
        let php = match told.php {
            Php::None => None,
            Php::Module => Some(find(MODULES, "libphp")),
            Php::Fpm => Some(find("/usr/sbin", "php-fpm")),
        };
        if matches!(php, Some(None)) {
            skipped(&format!("no PHP: {:?}", told.php));
            return None;
        }
        let folder = tempfile::Builder::new().prefix("admission-").tempdir_in("/tmp").expect("a folder");
        let open = |name: &str, mode| {
            let path = folder.path().join(name);
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our own");
        };
        open("", 0o755);
        for name in
            ["gates", "run", "www/dir/cgi", "www/dir/php", "www/dir/probe", "www/pretty", "www/fall", "www/fall-php"]
        {
            fs::create_dir_all(folder.path().join(name)).expect("folders");
        }
        for program in ["page.cgi", "other.cgi", "error.cgi", "dir/cgi/index.cgi"] {
            fs::copy(built.probe.join("page"), folder.path().join("www").join(program)).expect("a program");
        }
        let php_page = include_str!("../probe/page.php");
        let pages = [
            ("log", ""),
            ("www/index.html", "hello\n"),
            ("www/page.probe", ""),
            ("www/other.probe", ""),
            ("www/page.php", php_page),
            ("www/dir/php/index.php", php_page),
            ("www/dir/probe/index.probe", ""),
            ("www/nested.shtml", NESTED),
            ("www/pretty/.htaccess", HTACCESS),
        ];
        for (name, text) in pages.into_iter().chain(told.files.iter().copied()) {
            put(folder.path(), name, text);
        }
        open("log", 0o666);
        Some(LaidOut { built, php: php.flatten(), pool: None, folder })
    }

    /// What httpd said before it had its log, as of a port that is taken, and what stands in that.
    pub(super) fn log(&self) -> String {
        let read = |name| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        read("start.log") + &read("error.log")
    }

    /// Starts PHP-FPM, if it is wanted.
    pub(super) fn fpm(&mut self) {
        let Some(program) = self.php.as_ref().filter(|path| path.starts_with("/usr/sbin")) else { return };
        let folder = self.folder.path().display().to_string();
        let pool = format!(
            "[global]\nerror_log = {folder}/fpm.log\n[www]\nuser = www-data\ngroup = www-data\nlisten = {folder}/php.sock\n\
             listen.mode = 0666\npm = static\npm.max_children = 8\n"
        );
        put(self.folder.path(), "fpm.conf", &pool);
        let mut command = Command::new(program);
        command.args(["--nodaemonize", "--fpm-config", &format!("{folder}/fpm.conf")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.pool = Some(Running::start(&mut command));
        let socket = self.folder.path().join("php.sock");
        wait("PHP-FPM listens", || UnixStream::connect(&socket).is_ok());
    }

    pub(super) fn configuration(&self, told: &Told<'_>, port: u16) {
        let folder = self.folder.path().display().to_string();
        let mut text = format!(
            "ServerRoot \"{folder}\"\nServerName 127.0.0.1\nDefaultRuntimeDir {folder}/run\nPidFile {folder}/run/apache.pid\n\
             Listen 127.0.0.1:{port}\nUser www-data\nGroup www-data\nErrorLog {folder}/error.log\nLogLevel notice\nTimeout 60\n"
        );
        let shared = [
            "alias",
            "authz_core",
            "dir",
            "env",
            "headers",
            "include",
            "mime",
            "proxy",
            "proxy_fcgi",
            "proxy_http",
            "rewrite",
            "setenvif",
            "status",
        ];
        let mpm = format!("mpm_{}", told.mpm.name());
        // Prefork and HTTP/2 do not go together.
        let http2 = (told.mpm != Mpm::Prefork).then_some("http2");
        let cgi = if has_cgid(told) { "cgid" } else { "cgi" };
        let cgi = (!told.text.contains("mod_cgi.so")).then_some(cgi);
        for module in [mpm.as_str()].into_iter().chain(cgi).chain(http2).chain(shared) {
            text += &format!("LoadModule {module}_module {MODULES}/mod_{module}.so\n");
        }
        text += &format!("LoadModule probe_module {}/mod_probe.so\n", self.built.probe.display());
        text += &format!("LoadModule admission_module {}\n", self.built.module.display());
        if cgi == Some("cgid") {
            text += &format!("ScriptSock {folder}/run/cgisock\n");
        }
        text += told.mpm.sizes();
        text += "TypesConfig /etc/mime.types\nKeepAlive On\nKeepAliveTimeout 30\nMaxKeepAliveRequests 0\nSetEnv PROBE_HOME FOLDER\n\
                 DocumentRoot FOLDER/www\nDirectoryIndex index.cgi index.php index.probe index.html\nAddHandler cgi-script .cgi\nAddHandler probe .probe\n\
                 AddType text/html .shtml\nAddOutputFilter INCLUDES .shtml\n\
                 <Directory />\nRequire all denied\n</Directory>\n\
                 <Directory FOLDER/www>\nRequire all granted\nOptions ExecCGI Includes FollowSymLinks\nAllowOverride All\n</Directory>\n\
                 <Directory FOLDER/www/fall>\nFallbackResource /page.cgi\n</Directory>\n\
                 <Directory FOLDER/www/fall-php>\nFallbackResource /page.php\n</Directory>\n\
                 <Location /admission-status>\nSetHandler admission-status\n</Location>\n\
                 <Location /server-status>\nSetHandler server-status\n</Location>\n\
                 AdmissionEngine on\n";
        if !told.text.contains("CustomLog") {
            text += "LogFormat \"%>s %U%q %{ADMISSION_GROUP}e %{ADMISSION_RESULT}e\" told\nCustomLog FOLDER/access.log told\n";
        }
        match told.php {
            Php::None => {}
            Php::Module => {
                let php = self.php.as_ref().expect("found").display();
                text += &format!("LoadModule php_module {php}\nAddHandler application/x-httpd-php .php\n");
            }
            Php::Fpm => {
                text += "<FilesMatch \"\\.php$\">\nSetHandler \"proxy:unix:FOLDER/php.sock|fcgi://localhost\"\n</FilesMatch>\n";
            }
        }
        text += told.text;
        put(self.folder.path(), "httpd.conf", &text.replace("FOLDER", &folder).replace("PORT", &port.to_string()));
    }

    pub(super) fn httpd(&self, words: &[&str]) -> Command {
        let stand_ins = self.folder.path().join("proc");
        let mut command = if stand_ins.exists() {
            // Its processes alone see these, and no control group that could say something else.
            let own = "mount -t tmpfs none /sys/fs/cgroup && mount --bind \"$0/meminfo\" /proc/meminfo && \
                       mount --bind \"$0/pressure\" /proc/pressure/memory && exec /usr/sbin/apache2 \"$@\"";
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", own]).arg(stand_ins);
            command
        } else {
            Command::new("/usr/sbin/apache2")
        };
        command.arg("-f").arg(self.folder.path().join("httpd.conf")).args(words);
        let said = fs::File::create(self.folder.path().join("start.log")).expect("our own folder");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        command
    }

    /// The server, or its folder back when the port was taken.
    pub(super) fn into_server(self, told: &Told<'_>, port: u16, mut child: Running) -> Result<Server, LaidOut> {
        let end = Instant::now() + PATIENCE;
        // Its own word that it has the port: somebody else may answer there.
        let runs = || fs::read_to_string(self.folder.path().join("run/apache.pid")).unwrap_or_default();
        while runs().trim() != child.child.id().to_string() {
            if child.child.try_wait().expect("our own child").is_some() {
                let log = self.log();
                assert!(log.contains("could not bind"), "the server does not start: {log}");
                return Err(self);
            }
            assert!(Instant::now() < end, "the server does not listen: {}", self.log());
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(Server { port, httpd: child, _fpm: self.pool, has_cgid: has_cgid(told), folder: self.folder })
    }
}
