//! What the machine's start of Apache puts into its environment: Debian's `envvars`, which its control script reads as a shell does.

use crate::ServerError;
use crate::program::asking;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// What a shell puts there by itself.
const SHELLS: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];
/// What Apache is started with where nobody says more.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The environment of a server whose main file lies in `folder`; only a plain `PATH` where there is no `envvars`.
pub(crate) fn environment(folder: &Path) -> Result<Vec<(OsString, OsString)>, ServerError> {
    let file = folder.join("envvars");
    if !file.exists() {
        return Ok(vec![("PATH".into(), PATH.into())]);
    }
    let shell = Path::new("/bin/sh");
    let output = asking(shell)
        .args(["-c", ". \"$1\" >&2; exec /usr/bin/env -0", "sh"])
        .arg(&file)
        .env_clear()
        .env("PATH", PATH)
        .env("APACHE_CONFDIR", folder)
        .output()
        .map_err(ServerError::io("run", shell))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let why = std::io::Error::other(why.lines().next().unwrap_or("the shell refuses it").to_owned());
        return Err(ServerError::io("read", &file)(why));
    }
    Ok(pairs(&output.stdout))
}

/// What of a running server's words decides what its configuration says: `-D NAME`, and lines given by `-C` and `-c`.
pub(crate) fn deciding(words: &[OsString]) -> Vec<OsString> {
    // How it runs, or what it should print instead.
    let is_name = |name: &str| {
        !matches!(name, "FOREGROUND" | "NO_DETACH" | "DEBUG" | "ONE_PROCESS") && !name.starts_with("DUMP_")
    };
    let (mut found, mut words) = (Vec::new(), words.iter().skip(1));
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let Some(flag) = ["-D", "-C", "-c"].into_iter().find(|flag| text.starts_with(flag)) else { continue };
        // The value may follow at once.
        let value = match text.len() {
            2 => words.next().cloned().unwrap_or_default(),
            _ => text[2..].into(),
        };
        if flag != "-D" || is_name(&value.to_string_lossy()) {
            found.extend([flag.into(), value]);
        }
    }
    found
}

/// `NAME=value` pieces, each ended by a zero byte.
pub(crate) fn pairs(bytes: &[u8]) -> Vec<(OsString, OsString)> {
    let pair = |piece: &[u8]| {
        let at = piece.iter().position(|&byte| byte == b'=')?;
        Some((OsStr::from_bytes(&piece[..at]).to_owned(), OsString::from_vec(piece[at + 1..].to_vec())))
    };
    let ours = |name: &OsString| SHELLS.iter().any(|shells| name == shells);
    bytes.split(|&byte| byte == 0).filter_map(pair).filter(|(name, _)| !ours(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_decide() {
        let words = "httpd -D A -DB -DFOREGROUND -k start -f /x -D DUMP_VHOSTS -c".split(' ').map(OsString::from);
        let words: Vec<OsString> = words.chain(["Timeout 3".into()]).collect();
        assert_eq!(deciding(&words), ["-D", "A", "-D", "B", "-c", "Timeout 3"]);
    }

    #[test]
    fn envvars_are_read_as_a_shell_does() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("envvars"), "unset HOME\nX=1\nexport LOGS=/l/${APACHE_CONFDIR##*/} X\n")
            .unwrap();
        let found = environment(folder.path()).unwrap();
        let get = |name: &str| found.iter().find(|(n, _)| n == name).map(|(_, v)| v.to_string_lossy().into_owned());
        assert_eq!(get("X").as_deref(), Some("1"));
        assert_eq!(get("LOGS"), Some(format!("/l/{}", folder.path().file_name().unwrap().to_string_lossy())));
        assert_eq!((get("PWD"), get("HOME")), (None, None));
        std::fs::write(folder.path().join("envvars"), "exit 3\n").unwrap();
        assert!(environment(folder.path()).is_err());
    }
}
