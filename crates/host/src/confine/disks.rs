//! The disks of the machine, by the numbers that limits of a group name them with.

use std::fs;
use std::path::Path;

/// Devices that are memory, files or drives without a disk in them.
const NO_DISKS: [&str; 5] = ["loop", "ram", "zram", "sr", "fd"];

/// `254:0` and the like: every whole disk below `/sys/block` that has a size.
pub(super) fn disks(sys_block: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(sys_block) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            !NO_DISKS
                .iter()
                .any(|kind| name.strip_prefix(kind).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit())))
        })
        .filter_map(|entry| {
            let text = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default().trim().to_owned();
            let (size, number) = (text("size"), text("dev"));
            (!number.is_empty() && size != "0").then_some(number)
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_disks_with_a_size() {
        let sys = tempfile::tempdir().unwrap();
        for (name, size, number) in [
            ("vda", "10", "254:0"),
            ("loop0", "10", "7:0"),
            ("zram0", "10", "253:0"),
            ("nvme0n1", "5", "259:0"),
            ("sdb", "0", "8:16"),
        ] {
            fs::create_dir(sys.path().join(name)).unwrap();
            fs::write(sys.path().join(name).join("size"), format!("{size}\n")).unwrap();
            fs::write(sys.path().join(name).join("dev"), format!("{number}\n")).unwrap();
        }
        assert_eq!(disks(sys.path()), ["254:0", "259:0"]);
        assert_eq!(disks(&sys.path().join("none")), [""; 0]);
    }
}
