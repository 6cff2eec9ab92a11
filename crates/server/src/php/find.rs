//! PHP's programs and modules, whose names have their version in them.

use super::FPM;
use crate::program::is_program;
use crate::{PlanKey, ServerError};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Where it is when an ordinary user's PATH does not say so.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/opt/php/sbin"];

/// FPM's program: the one given, else `php-fpm`, else the newest `php-fpm8.2` and the like.
pub(super) fn program(given: Option<&Path>, at: PlanKey) -> Result<PathBuf, ServerError> {
    if let Some(given) = given {
        return match is_program(given) {
            true => Ok(given.to_owned()),
            false => Err(ServerError::NoPhp { at, why: format!("{} is not a program", given.display()) }),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from)).collect();
    let plain = folders.iter().map(|folder| folder.join("php-fpm")).find(|program| is_program(program));
    let newest = || folders.iter().find_map(|folder| newest(folder, "php-fpm", "")).filter(|it| is_program(it));
    plain
        .or_else(newest)
        .ok_or_else(|| ServerError::NoPhp { at, why: format!("{FPM} is not installed; install the package php-fpm") })
}

/// The name of Apache's module for PHP, as a plan would write it: `php8.2` for `libphp8.2.so`.
pub(crate) fn module(folder: &Path, at: PlanKey) -> Result<String, ServerError> {
    let file = newest(folder, "libphp", ".so");
    let name = file.as_deref().and_then(Path::file_stem).and_then(OsStr::to_str).and_then(|it| it.strip_prefix("lib"));
    name.map(str::to_owned).ok_or_else(|| ServerError::NoPhp {
        at,
        why:
            "Apache has no module of PHP; install the package libapache2-mod-php (Debian, Ubuntu) or php (RHEL, Fedora)"
                .to_owned(),
    })
}

/// The file of the highest version between these two parts of its name.
fn newest(folder: &Path, before: &str, after: &str) -> Option<PathBuf> {
    let version = |name: &str| -> Option<Vec<u32>> {
        let version = name.strip_prefix(before)?.strip_suffix(after)?;
        version.split('.').filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect()
    };
    let files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).filter(|path| path.is_file());
    let versions = files.filter_map(|file| Some((version(file.file_name()?.to_str()?)?, file)));
    versions.max().map(|(_, file)| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let check = |before: &str, after: &str, expected: Option<&str>| {
            assert_eq!(newest(folder.path(), before, after), expected.map(|name| folder.path().join(name)));
        };
        check("libphp", ".so", None);
        for name in ["php-fpm7.4", "php-fpm8.2", "php-fpm8.10", "php-fpm8.2.conf", "libphp.so", "libphp8.2.so"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        check("php-fpm", "", Some("php-fpm8.10"));
        check("libphp", ".so", Some("libphp8.2.so"));
        fs::remove_file(folder.path().join("libphp8.2.so")).unwrap();
        check("libphp", ".so", Some("libphp.so"));
    }
}
