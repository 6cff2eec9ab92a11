//! Other names of devices: links below /dev for disks, whoever uses an interrupt for its number.

use std::path::Path;

/// The kernel's name of a disk that is named by a link, such as `/dev/disk/by-uuid/...` or `/dev/mapper/root`.
pub(super) fn disk(typed: &str) -> String {
    let real = if typed.starts_with("/dev/") { std::fs::canonicalize(typed).ok() } else { None };
    let inside = real.as_deref().and_then(|path| path.strip_prefix("/dev").ok()).and_then(Path::to_str);
    inside.unwrap_or(typed).to_owned()
}

/// The number of an interrupt that a driver of that name uses; what is no such name stays as it is.
pub(super) fn interrupt(typed: &str, proc_root: &Path) -> String {
    let text = std::fs::read_to_string(proc_root.join("interrupts")).unwrap_or_default();
    let number = text.lines().find_map(|line| number_of(line, typed));
    number.unwrap_or(typed).to_owned()
}

/// `24:  123456  0  PCI-MSI 65536-edge  eth0, eth1`: the number, if that name is among those at the end.
fn number_of<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let (number, rest) = line.split_once(':')?;
    let number = number.trim();
    let users = rest.split(',').filter_map(|user| user.split_whitespace().next_back());
    let is_its = number.bytes().all(|byte| byte.is_ascii_digit()) && !name.bytes().all(|byte| byte.is_ascii_digit());
    users.filter(|_| is_its).any(|user| user.eq_ignore_ascii_case(name)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fake_proc::FakeTree;

    #[test]
    fn interrupts_by_who_uses_them() {
        let dir = tempfile::tempdir().unwrap();
        let text = "           CPU0       CPU1\n  16:   0   5   IO-APIC  16-fasteoi   ehci_hcd:usb1, ahci\n  \
            24:   123456   0   PCI-MSI 65536-edge   eth0\n NMI:   7   7   Non-maskable interrupts\n";
        FakeTree::new(dir.path()).file("interrupts", text);
        let check = |typed: &str, expected: &str| assert_eq!(interrupt(typed, dir.path()), expected);
        check("eth0", "24");
        check("AHCI", "16");
        check("ehci_hcd:usb1", "16");
        check("24", "24");
        check("0", "0");
        check("total", "total");
        check("interrupts", "interrupts");
    }

    #[test]
    fn disks_by_their_links() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            testkit::skip::not_here("no /dev/shm to make a link in");
            return;
        };
        let link = folder.path().join("by-name");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        assert_eq!(disk(&link.display().to_string()), "null");
        assert_eq!(disk("/dev/no-such"), "/dev/no-such");
        assert_eq!(disk("sda1"), "sda1");
    }
}
