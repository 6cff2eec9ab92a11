//! The first file system of the guest: a shell and the modules for its disks, packed as the kernel wants it (cpio, "newc").
//!
//! Debian's cloud kernel has ext4 built in, but the disk's own driver is a module. A general initramfs would do, and takes longer.

/// The modules in the order in which they need each other.
pub(super) const MODULES: [&str; 6] =
    ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"];

/// What runs first: finds the disk and goes on from there.
pub(super) fn init() -> String {
    format!(
        "#!/bin/busybox sh\n\
         b=/bin/busybox\n\
         $b mount -t devtmpfs dev /dev\n\
         for module in {}; do $b insmod /modules/$module.ko; done\n\
         n=0\n\
         while [ ! -b /dev/vda ] && [ $n -lt 300 ]; do $b sleep 0.1; n=$((n+1)); done\n\
         $b mount -t ext4 /dev/vda /root || $b poweroff -f\n\
         $b mount --move /dev /root/dev\n\
         exec $b switch_root /root /sbin/init\n",
        MODULES.join(" ")
    )
}

/// An archive under construction.
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Archive {
    /// Nothing in it yet.
    pub(super) fn new() -> Archive {
        Archive { bytes: Vec::new(), entries: 0 }
    }

    /// Adds a folder.
    pub(super) fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, &[]);
    }

    /// Adds a file that may be run.
    pub(super) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    /// The whole of it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    /// The kernel's `Documentation/driver-api/early-userspace/buffer-format.rst`: thirteen numbers of eight hexadecimal digits,
    /// the name and the content, each padded to four bytes.
    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let (size, name_size) = (content.len() as u32, name.len() as u32 + 1);
        self.bytes.extend(b"070701");
        for number in [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0] {
            self.bytes.extend(format!("{number:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_and_content_stand_where_the_kernel_looks() {
        let mut archive = Archive::new();
        archive.folder("bin");
        archive.file("init", b"#!x\nyz");
        let bytes = archive.finish();
        let text = |from: usize, to: usize| std::str::from_utf8(&bytes[from..to]).unwrap();
        assert_eq!(text(0, 22), "07070100000001000041ed");
        // 110 bytes of numbers, "bin" and its end: 114, padded to 116.
        assert_eq!(text(116, 122), "070701");
        assert_eq!(text(116 + 54, 116 + 62), "00000006");
        assert_eq!(&bytes[116 + 110..116 + 115], b"init\0");
        // 116 + 110 + 5 = 231, padded to 232; six bytes, padded to 240.
        assert_eq!(&bytes[232..240], b"#!x\nyz\0\0".as_slice());
        assert_eq!(bytes.len() % 4, 0);
        assert!(String::from_utf8_lossy(&bytes).contains("TRAILER!!!"));
    }

    #[test]
    fn modules_come_before_those_that_need_them() {
        let at = |name: &str| MODULES.iter().position(|module| *module == name).unwrap();
        assert!(at("virtio_ring") < at("virtio") && at("virtio") < at("virtio_pci") && at("virtio") < at("virtio_blk"));
        assert!(init().contains("insmod"));
    }
}
