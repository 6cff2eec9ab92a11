//! Whom the server's workers run as, and whether they may enter a folder.
//!
//! Started by root, Apache must be told another account: without one the parent listens and every worker dies. nginx takes `nobody`, whose
//! group differs by distribution.

use crate::Closed;
use crate::lossy::read_lossy;
use rustix::fs::{getxattr, stat};
use rustix::process::{getegid, geteuid, getgroups};
use std::io;
use std::path::Path;

/// Accounts that Apache's packages make, by distribution.
pub(crate) const OF_APACHE: [&str; 3] = ["www-data", "apache", "httpd"];
/// Those that nginx's packages make, or use.
pub(crate) const OF_NGINX: [&str; 4] = ["www-data", "nginx", "http", "nobody"];

/// A user as the kernel sees one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// Its name.
    pub(crate) name: String,
    /// Name of its own group.
    pub(crate) group: String,
    pub(crate) uid: u32,
    pub(crate) gids: Vec<u32>,
}

impl Account {
    /// The first account of these names, from `passwd` and `group` in `etc`.
    pub(crate) fn first_of(names: &[&str], etc: &Path) -> io::Result<Option<Account>> {
        let (passwd, group) = (read_lossy(etc.join("passwd"))?, read_lossy(etc.join("group"))?);
        Ok(names.iter().find_map(|name| Account::parse(name, &passwd, &group)))
    }

    /// Whoever runs this program.
    pub(crate) fn own() -> Account {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        // A process always may read its own groups; the first one is enough otherwise.
        let gids = getgroups().unwrap_or_default().into_iter().map(rustix::fs::Gid::as_raw).chain([gid]).collect();
        Account { name: format!("user {uid}"), group: format!("group {gid}"), uid, gids }
    }

    /// The first folder from the root down to `folder` that the account may not enter. `folder` must be canonical.
    pub(crate) fn closed_folder(&self, folder: &Path) -> io::Result<Option<Closed>> {
        let mut way: Vec<&Path> = folder.ancestors().collect();
        way.reverse();
        for step in way {
            let facts = stat(step)?;
            let mode = facts.st_mode & 0o7777;
            if !self.may_enter(facts.st_uid, facts.st_gid, mode) && !has_acl(step) {
                return Ok(Some(Closed { folder: step.to_owned(), mode, account: self.name.clone() }));
            }
        }
        Ok(None)
    }

    /// The kernel's rule: the first class that fits decides, even when a later one would allow more.
    fn may_enter(&self, owner: u32, group: u32, mode: u32) -> bool {
        let shift = if owner == self.uid {
            6
        } else if self.gids.contains(&group) {
            3
        } else {
            0
        };
        self.uid == 0 || mode >> shift & 1 == 1
    }

    fn parse(name: &str, passwd: &str, group: &str) -> Option<Account> {
        let fields = |line: &'_ str| -> Vec<String> { line.split(':').map(str::to_owned).collect() };
        let user = passwd.lines().map(fields).find(|f| f.first().is_some_and(|first| first == name))?;
        let (uid, gid) = (user.get(2)?.parse().ok()?, user.get(3)?.parse::<u32>().ok()?);
        let groups: Vec<_> = group.lines().map(fields).filter(|f| f.len() == 4).collect();
        let own = groups.iter().find(|f| f[2] == gid.to_string())?[0].clone();
        let member = |f: &&Vec<String>| f[3].split(',').any(|member| member == name);
        let further = groups.iter().filter(member).filter_map(|f| f[2].parse().ok());
        Some(Account { name: name.to_owned(), group: own, uid, gids: [gid].into_iter().chain(further).collect() })
    }
}

/// Whether finer rules than the mode apply; then only a real request can tell.
fn has_acl(path: &Path) -> bool {
    getxattr(path, "system.posix_acl_access", &mut [0_u8; 0]).is_ok_and(|size| size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\napache:x:48:48::/:/sbin/nologin\nbroken\n";
    const GROUP: &str = "root:x:0:\nweb:x:48:\nfiles:x:700:root,apache\nbroken\n";

    fn check(mode: u32, owner: u32, group: u32, expected: bool) {
        let account = Account::parse("apache", PASSWD, GROUP).unwrap();
        assert_eq!(account.may_enter(owner, group, mode), expected, "{mode:o} {owner} {group}");
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        check(0o711, 0, 0, true);
        check(0o750, 0, 0, false);
        check(0o750, 0, 700, true);
        check(0o701, 0, 700, false);
        check(0o100, 48, 0, true);
        check(0o077, 48, 700, false);
    }

    #[test]
    fn accounts_are_read_from_the_files_of_the_system() {
        let account = Account::parse("apache", PASSWD, GROUP).unwrap();
        assert_eq!((account.group.as_str(), account.uid, account.gids), ("web", 48, vec![48, 700]));
        assert_eq!(Account::parse("www-data", PASSWD, GROUP), None);
        assert_eq!(Account::parse("broken", PASSWD, GROUP), None);
    }

    #[test]
    fn names_of_others_may_be_in_any_code() {
        let etc = tempfile::tempdir().unwrap();
        let put = |name: &str, odd: &[u8], rest: &str| {
            fs::write(etc.path().join(name), [odd, rest.as_bytes()].concat()).unwrap();
        };
        put("passwd", b"jose:x:1000:1000:Jos\xe9:/home/jose:/bin/sh\n", PASSWD);
        put("group", b"caf\xe9:x:1000:\n", GROUP);
        let account = Account::first_of(&OF_APACHE, etc.path()).unwrap();
        assert_eq!(account, Account::parse("apache", PASSWD, GROUP));
    }

    #[test]
    fn the_folder_that_is_closed_is_named() {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().canonicalize().unwrap().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let account = Account { name: "n".into(), group: "g".into(), uid: 4_000_000, gids: vec![4_000_000] };
        let closed = |mode: u32| {
            fs::set_permissions(inner.parent().unwrap(), fs::Permissions::from_mode(mode)).unwrap();
            account.closed_folder(&inner).unwrap()
        };
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(closed(0o711), None);
        let folder = inner.parent().unwrap().to_owned();
        assert_eq!(closed(0o700), Some(Closed { folder, mode: 0o700, account: "n".into() }));
    }
}
