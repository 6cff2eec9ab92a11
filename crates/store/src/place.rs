//! Where the store is when nobody says where.

use crate::StoreError;
use crate::error::Problem;
use std::ffi::OsString;
use std::path::PathBuf;

/// `$WEBDYNO_STORE`, else `$XDG_DATA_HOME/webdyno/store.sqlite`, else `~/.local/share/webdyno/store.sqlite`.
///
/// # Errors
/// When none of the three variables (`HOME` is the third) is set.
pub fn default_path() -> Result<PathBuf, StoreError> {
    path_from(|name| std::env::var_os(name))
}

fn path_from(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, StoreError> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = set("WEBDYNO_STORE") {
        return Ok(path);
    }
    // The XDG base directory specification: a relative path there is to be ignored.
    let data = set("XDG_DATA_HOME").filter(|path| path.is_absolute());
    data.or_else(|| set("HOME").map(|home| home.join(".local/share")))
        .map(|data| data.join("webdyno/store.sqlite"))
        .ok_or(StoreError { path: PathBuf::from("store.sqlite"), problem: Problem::Homeless })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], expected: Result<&str, &str>) {
        let found = path_from(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)));
        assert_eq!(found.map_err(|e| e.to_string()), expected.map(PathBuf::from).map_err(str::to_owned));
    }

    #[test]
    fn the_first_that_is_set_decides() {
        let home = ("HOME", "/home/k");
        check(&[home], Ok("/home/k/.local/share/webdyno/store.sqlite"));
        check(&[home, ("XDG_DATA_HOME", "/data")], Ok("/data/webdyno/store.sqlite"));
        check(&[home, ("XDG_DATA_HOME", "data")], Ok("/home/k/.local/share/webdyno/store.sqlite"));
        check(&[home, ("XDG_DATA_HOME", "/data"), ("WEBDYNO_STORE", "x.db")], Ok("x.db"));
        check(&[home, ("WEBDYNO_STORE", "")], Ok("/home/k/.local/share/webdyno/store.sqlite"));
        check(
            &[],
            Err(
                "store.sqlite: no place for the store: neither WEBDYNO_STORE, XDG_DATA_HOME nor HOME is set; give --store FILE",
            ),
        );
    }
}
