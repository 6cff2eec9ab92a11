//! Whether SELinux keeps servers from ports and files, and what to do then. Nothing is asked of it but whether it enforces.

use std::fs;
use std::path::Path;

/// Whether the machine whose root folder this is has SELinux in force; `/` is this one.
#[must_use]
pub fn selinux_enforces(root: &Path) -> bool {
    fs::read_to_string(root.join("sys/fs/selinux/enforce")).is_ok_and(|text| text.trim() == "1")
}

/// What is added to a sentence about a server that does not come up; nothing where SELinux does not enforce.
pub(crate) fn hint(root: &Path) -> &'static str {
    if selinux_enforces(root) {
        "; SELinux is in force here and may have refused a port or a file: `ausearch -m AVC -ts recent` says which; allow a port by \
         `semanage port -a -t http_port_t -p tcp PORT`, documents by `chcon -R -t httpd_sys_content_t FOLDER`"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_below_a_root() {
        let root = tempfile::tempdir().unwrap();
        let check = |text: Option<&str>, expected: bool| {
            let folder = root.path().join("sys/fs/selinux");
            fs::create_dir_all(&folder).unwrap();
            match text {
                Some(text) => fs::write(folder.join("enforce"), text).unwrap(),
                None => drop(fs::remove_file(folder.join("enforce"))),
            }
            assert_eq!(selinux_enforces(root.path()), expected, "{text:?}");
            assert_eq!(hint(root.path()).contains("semanage port -a -t http_port_t"), expected);
        };
        check(None, false);
        check(Some("0"), false);
        check(Some("1"), true);
        check(Some("1\n"), true);
    }
}
