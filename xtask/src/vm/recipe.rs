//! What the guest is made of: packages, and the few files of our own in it.
//!
//! It shall be the first document's server: Apache with PHP and so with prefork, one CPU, 1 GB of memory, swap twice as large on a disk
//! of its own, systemd, and nothing else that runs by itself.

/// MiB of memory.
pub(super) const MEMORY_MIB: u32 = 1024;
/// MiB of swap.
pub(super) const SWAP_MIB: u64 = 2048;
/// MiB of the root disk, of which about a third is in use.
pub(super) const DISK_MIB: u64 = 3072;

/// What apt puts in, beside the essential packages. Recommended ones stay out.
pub(super) const PACKAGES: [&str; 24] = [
    "apache2",
    "apache2-utils",
    "busybox-static",
    "dbus",
    "dbus-user-session",
    "dstat",
    "gcc",
    "iproute2",
    "kmod",
    "libapache2-mod-php",
    "libc6-dev",
    "libpam-systemd",
    "linux-image-cloud-amd64",
    "make",
    "nginx-light",
    "openssh-server",
    "openssh-sftp-server",
    "procps",
    "psmisc",
    "python3-minimal",
    "sysstat",
    "systemd-sysv",
    "udev",
    "util-linux",
];

/// What dpkg leaves out: nobody reads in there.
pub(super) const LEFT_OUT: [&str; 4] =
    ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*"];

/// Would take time and memory at odd moments.
pub(super) const SILENT: [&str; 13] = [
    "apache2.service",
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "console-getty.service",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty@tty1.service",
    "nginx.service",
    "phpsessionclean.timer",
    "sysstat.service",
    "systemd-tmpfiles-clean.timer",
];

/// An ordinary user of the guest.
pub(super) const USER: &str = "kei";

/// What the guest says on its console when it can be talked to.
pub(super) const READY: &str = "webdyno-vm is ready";

/// What the kernel is told: no menu of network names, its pressure counted, a panic seen at once.
pub(super) const KERNEL_LINE: &str = "console=ttyS0 rw quiet psi=1 net.ifnames=0 panic=-1 systemd.show_status=0";

/// Files of our own: where, and what is in them.
pub(super) const FILES: [(&str, &str); 7] = [
    ("etc/hostname", "webdyno-vm\n"),
    ("etc/hosts", "127.0.0.1 localhost\n127.0.1.1 webdyno-vm\n"),
    ("etc/fstab", "/dev/vda / ext4 defaults 0 0\n/dev/vdb none swap sw 0 0\n"),
    (
        "etc/ssh/sshd_config.d/webdyno.conf",
        "HostKey /etc/ssh/ssh_host_ed25519_key\nUsePAM no\nUseDNS no\nMaxStartups 100\n",
    ),
    ("etc/systemd/system/webdyno-net.service", NET),
    ("etc/systemd/system/webdyno-ready.service", READY_SERVICE),
    ("etc/systemd/journald.conf.d/webdyno.conf", "[Journal]\nSystemMaxUse=16M\n"),
];

/// No daemon is needed for an address that never changes.
const NET: &str = "\
[Unit]
Description=The one address of this machine
After=sys-subsystem-net-devices-eth0.device
Requires=sys-subsystem-net-devices-eth0.device
Before=ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'ip link set eth0 up && ip address replace 10.0.2.15/24 dev eth0'

[Install]
WantedBy=multi-user.target
";

const READY_SERVICE: &str = "\
[Unit]
Description=Tells the console that everything is up
After=ssh.service webdyno-net.service swap.target systemd-user-sessions.service
Wants=ssh.service webdyno-net.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'echo webdyno-vm is ready > /dev/ttyS0'

[Install]
WantedBy=multi-user.target
";

/// Services of our own.
pub(super) const SERVICES: [&str; 2] = ["webdyno-net.service", "webdyno-ready.service"];

/// All of the above as text: two machines with the same are the same.
pub(super) fn text() -> String {
    let files: Vec<String> = FILES.iter().map(|(name, text)| format!("== {name}\n{text}")).collect();
    format!(
        "root {DISK_MIB} MiB, swap {SWAP_MIB} MiB, user {USER}\npackages: {}\nwithout: {}\nsilent: {}\n{}{}",
        PACKAGES.join(" "),
        LEFT_OUT.join(" "),
        SILENT.join(" "),
        files.join(""),
        super::initrd::init(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_what_the_guest_says() {
        assert!(READY_SERVICE.contains(READY));
        assert!(SERVICES.iter().all(|name| FILES.iter().any(|(file, _)| file.ends_with(name))));
    }

    #[test]
    fn nothing_is_named_twice() {
        for names in [PACKAGES.as_slice(), &SILENT] {
            assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        }
    }
}
