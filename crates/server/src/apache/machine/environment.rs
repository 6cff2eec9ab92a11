//! What the machine's start of Apache puts into its environment: Debian's `envvars`, which its control script reads as a shell does.

use crate::ServerError;
use crate::program::{ask, asking};
use crate::running::flags;
use host::variables;
use std::ffi::OsString;
use std::path::Path;

/// Names behind `-D` that say how the server runs.
const HOW: [&str; 4] = ["FOREGROUND", "NO_DETACH", "DEBUG", "ONE_PROCESS"];
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
    let mut shell = asking(Path::new("/bin/sh"));
    shell.args(["-c", ". \"$1\" >&2; exec /usr/bin/env -0", "sh"]).arg(&file);
    let output = ask(shell.env_clear().env("PATH", PATH).env("APACHE_CONFDIR", folder))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let why = std::io::Error::other(why.lines().next().unwrap_or("the shell refuses it").to_owned());
        return Err(ServerError::io("read", &file)(why));
    }
    Ok(pairs(&output.stdout))
}

/// What of a running server's words decides what its configuration says: `-D NAME`, and lines given by `-C` and `-c`.
pub(crate) fn deciding(words: &[String]) -> Vec<OsString> {
    // Without how it runs, and what it should print instead.
    let decides = |(flag, value): &(char, String)| match flag {
        'D' => !HOW.contains(&value.as_str()) && !value.starts_with("DUMP_"),
        flag => matches!(flag, 'c' | 'C'),
    };
    let pair = |(flag, value): (char, String)| [format!("-{flag}").into(), value.into()];
    flags(words).into_iter().filter(decides).flat_map(pair).collect()
}

/// Variables, without what a shell adds.
pub(crate) fn pairs(bytes: &[u8]) -> Vec<(OsString, OsString)> {
    let ours = |name: &OsString| SHELLS.iter().any(|shells| name == shells);
    variables(bytes).into_iter().filter(|(name, _)| !ours(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_decide() {
        let words = "httpd -D A -DB -DFOREGROUND -k start -f /x -D DUMP_VHOSTS -c".split(' ').map(str::to_owned);
        let words: Vec<String> = words.chain(["Timeout 3".into()]).collect();
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
