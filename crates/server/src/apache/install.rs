//! What the machine has of Apache: the program, its folder of modules, and the modules that are built in.

use crate::ServerError;
use crate::program::{ask, asking, find, is_program};
use model::plan::{Apache, Mpm, PhpWay};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Names of the program, by distribution.
const PROGRAMS: [&str; 2] = ["apache2", "httpd"];
/// Where it is when an ordinary user's PATH does not say so.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/apache2/bin"];
/// Where modules are, by distribution.
const MODULES: [&str; 5] = [
    "/usr/lib/apache2/modules",
    "/usr/lib64/httpd/modules",
    "/usr/lib/httpd/modules",
    "/usr/libexec/apache2",
    "/usr/lib/apache2",
];
/// What every instance has. `unixd` and `log_config` are built in on Debian and files elsewhere.
const EVERYWHERE: [&str; 11] =
    ["unixd", "log_config", "authz_core", "authz_host", "mime", "dir", "alias", "env", "status", "info", "setenvif"];

/// An installed Apache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Install {
    /// The program.
    pub(crate) program: PathBuf,
    /// Where its modules are.
    pub(crate) modules: PathBuf,
    built_in: BTreeSet<String>,
}

/// One `LoadModule` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    /// Such as `cgi_module`.
    pub(crate) symbol: String,
    /// Its file.
    pub(crate) file: PathBuf,
}

impl Install {
    /// Finds it: `program` when given, else by name along `path` (as in `$PATH`) and in the usual folders.
    pub(crate) fn find(program: Option<&Path>, path: &OsStr) -> Result<Install, ServerError> {
        let program = match program {
            Some(program) if is_program(program) => program.to_owned(),
            Some(program) => return Err(ServerError::NoProgram(format!("{} is not a program", program.display()))),
            None => find(&PROGRAMS, path, &FOLDERS).ok_or_else(|| {
                ServerError::NoProgram("neither apache2 nor httpd is in PATH or /usr/sbin".to_owned())
            })?,
        };
        // An installation under a prefix of its own keeps its modules beside its programs, or where its root has a link to them.
        let prefix = program.parent().and_then(Path::parent).map(Path::to_owned);
        let beside = ["modules", "lib64/httpd/modules", "lib/httpd/modules", "lib/apache2/modules"];
        let own = prefix.iter().flat_map(|prefix| beside.map(|folder| prefix.join(folder)));
        let modules = own
            .chain(compiled_in(&program).map(|compiled| compiled.root.join("modules")))
            .chain(MODULES.map(PathBuf::from))
            .find(|folder| folder.join("mod_mime.so").exists())
            .ok_or_else(|| ServerError::NoProgram(format!("{} has no folder of modules", program.display())))?;
        let listed = ask(asking(&program).arg("-l"))?;
        let built_in = built_in(&String::from_utf8_lossy(&listed.stdout));
        if !built_in.contains("core") {
            return Err(ServerError::NoProgram(format!("{} -l does not list Apache's modules", program.display())));
        }
        Ok(Install { program, modules, built_in })
    }

    /// The processing modules there are.
    pub(crate) fn mpms(&self) -> Vec<&'static str> {
        let names = [Mpm::Prefork, Mpm::Worker, Mpm::Event].map(mpm_name);
        let there = |name: &&str| self.built_in.contains(*name) || self.module(&format!("mpm_{name}")).is_ok();
        names.into_iter().filter(there).collect()
    }

    /// The modules to load for a plan, each once and in order; built-in ones need no loading. `php` is PHP's, when it is one.
    pub(crate) fn load(&self, spec: &Apache, php: Option<&str>) -> Result<Vec<Module>, ServerError> {
        let cgi = spec.scripts.as_ref().map(|_| if spec.mpm == Mpm::Prefork { "cgi" } else { "cgid" });
        let mpm = format!("mpm_{}", mpm_name(spec.mpm));
        let fpm = spec.php.as_ref().is_some_and(|php| php.way == PhpWay::Fpm);
        let proxy: &[&str] = if fpm { &["proxy", "proxy_fcgi"] } else { &[] };
        let names = [mpm.as_str()].into_iter().chain(EVERYWHERE).chain(cgi).chain(proxy.iter().copied()).chain(php);
        let names = names.chain(spec.modules.iter().map(String::as_str));
        let (mut seen, mut modules) = (BTreeSet::new(), Vec::new());
        for name in names {
            let built_in = self.built_in.contains(name.strip_prefix("mpm_").unwrap_or(name));
            if !built_in && seen.insert(name) {
                modules.push(self.module(name)?);
            }
        }
        Ok(modules)
    }

    /// A module's file, by its name in a plan.
    pub(crate) fn module(&self, name: &str) -> Result<Module, ServerError> {
        // PHP names its file and its symbol its own way: libphp8.2.so has php_module, libphp7.4.so has php7_module.
        let file = [format!("mod_{name}.so"), format!("lib{name}.so")]
            .into_iter()
            .map(|file| self.modules.join(file))
            .find(|file| file.exists())
            .ok_or_else(|| ServerError::NoModule { module: name.to_owned(), folder: self.modules.clone() })?;
        let symbol = match name.strip_prefix("php") {
            Some(version) if version.starts_with('7') => "php7_module".to_owned(),
            Some(_) => "php_module".to_owned(),
            None => format!("{name}_module"),
        };
        Ok(Module { symbol, file })
    }
}

/// What was built into a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompiledIn {
    /// `HTTPD_ROOT`.
    pub(crate) root: PathBuf,
    /// `SERVER_CONFIG_FILE`.
    pub(crate) main: PathBuf,
}

/// The paths that `httpd -V` tells; `None` when it does not.
pub(crate) fn compiled_in(program: &Path) -> Option<CompiledIn> {
    let output = ask(asking(program).arg("-V")).ok()?;
    paths_in(&String::from_utf8_lossy(&output.stdout))
}

fn paths_in(told: &str) -> Option<CompiledIn> {
    let value = |name: &str| {
        let line =
            told.lines().find_map(|line| line.trim().strip_prefix("-D ")?.strip_prefix(name)?.strip_prefix('='))?;
        Some(PathBuf::from(line.trim_matches('"')))
    };
    let root = value("HTTPD_ROOT")?;
    Some(CompiledIn { main: root.join(value("SERVER_CONFIG_FILE")?), root })
}

/// The processing module's name.
pub(crate) fn mpm_name(mpm: Mpm) -> &'static str {
    match mpm {
        Mpm::Prefork => "prefork",
        Mpm::Worker => "worker",
        Mpm::Event => "event",
    }
}

/// Names out of `-l`: `  mod_so.c` is `so`, `  prefork.c` is `prefork`.
fn built_in(listed: &str) -> BTreeSet<String> {
    let files = listed.lines().filter_map(|line| line.trim().strip_suffix(".c"));
    files.map(|file| file.strip_prefix("mod_").unwrap_or(file).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// An imitation of an installation below a prefix: a program that answers `-l`, and files that only have names.
    fn prefix(built_in: &[&str], files: &[&str]) -> (tempfile::TempDir, Install) {
        let prefix = tempfile::tempdir().unwrap();
        let program = prefix.path().join("bin/httpd");
        for folder in ["bin", "modules"] {
            fs::create_dir(prefix.path().join(folder)).unwrap();
        }
        let listed: String = built_in.iter().map(|name| format!("  {name}.c\n")).collect();
        fs::write(&program, format!("#!/bin/sh\ncat <<'X'\nCompiled in modules:\n  core.c\n{listed}X\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        for file in files.iter().chain(&["mime"]) {
            fs::write(prefix.path().join(format!("modules/mod_{file}.so")), "").unwrap();
        }
        let install = Install::find(Some(&program), OsStr::new("")).unwrap();
        (prefix, install)
    }

    fn check(built_in: &[&str], files: &[&str], modules: &[&str], expected: Result<&str, &str>) {
        let (_prefix, install) = prefix(built_in, files);
        let spec = Apache {
            program: None,
            mpm: Mpm::Prefork,
            modules: modules.iter().map(ToString::to_string).collect(),
            document_root: None,
            scripts: Some("/x".into()),
            directives: vec![],
            ready: "/".into(),
            lines: [].into(),
            existing: None,
            php: None,
        };
        let got = install.load(&spec, None).map(|m| m.iter().map(|m| m.symbol.as_str()).collect::<Vec<_>>().join(" "));
        let got = got.map_err(|error| match error {
            ServerError::NoModule { module, .. } => module,
            other => other.to_string(),
        });
        assert_eq!(got, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn what_is_built_in_is_not_loaded() {
        let debian = ["mod_so", "mod_log_config", "mod_unixd"];
        let rest = "authz_core authz_host dir alias env status info setenvif cgi mpm_prefork headers";
        let rest: Vec<&str> = rest.split(' ').collect();
        let common = "mpm_prefork_module authz_core_module authz_host_module mime_module dir_module alias_module env_module status_module info_module setenvif_module cgi_module";
        check(&debian, &rest, &[], Ok(common));
        check(&debian, &rest, &["headers", "env", "so"], Ok(&format!("{common} headers_module")));
        let red_hat: Vec<&str> = rest.iter().copied().chain(["unixd", "log_config"]).collect();
        check(
            &["mod_so"],
            &red_hat,
            &[],
            Ok(&common.replacen("authz_core", "unixd_module log_config_module authz_core", 1)),
        );
        let fixed = ["mod_so", "mod_log_config", "mod_unixd", "prefork"];
        check(&fixed, &rest, &[], Ok(common.trim_start_matches("mpm_prefork_module ")));
        check(&debian, &rest, &["nosuch"], Err("nosuch"));
    }

    #[test]
    fn what_is_compiled_in() {
        let told = "Server compiled with....\n -D APR_HAS_MMAP\n -D HTTPD_ROOT=\"/etc/httpd\"\n -D SERVER_CONFIG_FILE=\"conf/httpd.conf\"\n";
        let expected = CompiledIn { root: "/etc/httpd".into(), main: "/etc/httpd/conf/httpd.conf".into() };
        assert_eq!(paths_in(told), Some(expected));
        assert_eq!(paths_in("Server version: x\n"), None);
    }

    #[test]
    fn without_apache_the_package_is_named() {
        let empty = tempfile::tempdir().unwrap();
        let absent = empty.path().join("httpd");
        let error = Install::find(Some(&absent), OsStr::new("")).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "no Apache here ({} is not a program); install the package apache2 (Debian, Ubuntu) or httpd (RHEL, Fedora)",
                absent.display()
            )
        );
    }
}
