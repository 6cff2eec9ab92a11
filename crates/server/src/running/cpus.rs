//! How many CPUs a process may use: those it is bound to, and the quotas of the groups around it.

use super::group;
use crate::lossy::read_lossy;
use std::fs;
use std::path::{Path, PathBuf};

/// CPUs, whole or in part, if anything keeps it from using all of them.
pub(super) fn of(proc_root: &Path, sys_root: &Path, pid: u32) -> Option<f64> {
    let least = bound(proc_root, pid)
        .into_iter()
        .chain(quotas(proc_root, sys_root, pid).into_iter().map(|(_, quota)| quota))
        .min_by(f64::total_cmp)?;
    let all = f64::from(online(sys_root)?);
    (least < all).then_some(least)
}

/// The group around it whose quota is the least.
pub(super) fn limiting(proc_root: &Path, sys_root: &Path, pid: u32) -> Option<PathBuf> {
    let quotas = quotas(proc_root, sys_root, pid);
    quotas.into_iter().min_by(|one, other| one.1.total_cmp(&other.1)).map(|(directory, _)| directory)
}

/// CPUs that are online.
pub(crate) fn online(sys_root: &Path) -> Option<u32> {
    count(&fs::read_to_string(sys_root.join("devices/system/cpu/online")).ok()?)
}

/// `Cpus_allowed_list: 0-3,8` of /proc/PID/status.
fn bound(proc_root: &Path, pid: u32) -> Option<f64> {
    let text = read_lossy(proc_root.join(pid.to_string()).join("status")).ok()?;
    count(text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?).map(f64::from)
}

/// CPUs of a list such as `0-3,8`.
fn count(list: &str) -> Option<u32> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)? + 1)
    };
    list.trim().split(',').map(count).sum()
}

/// `cpu.max` of cgroup v2 is `QUOTA PERIOD` or `max PERIOD`; v1 has a file for each, and -1 is no quota.
fn quotas(proc_root: &Path, sys_root: &Path, pid: u32) -> Vec<(PathBuf, f64)> {
    let Some((groups, v2)) = group::around(proc_root, sys_root, pid, "cpu") else { return Vec::new() };
    let quota = |directory: &Path| {
        let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
        let text = if v2 {
            read("cpu.max")?
        } else {
            format!("{} {}", read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?.trim())
        };
        let (quota, period) = text.trim().split_once(' ')?;
        let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    };
    groups
        .into_iter()
        .filter_map(|directory| Some((quota(&directory)?, directory)))
        .map(|(cpus, of)| (of, cpus))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cgroup: &str, allowed: &str, files: &[(&str, &str)], expected: Option<f64>) {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: String, text: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/7/cgroup".to_owned(), cgroup.as_bytes());
        // A name that the kernel cut inside a letter.
        let status = [&b"Name:\t\xe3\x82\nCpus_allowed_list:\t"[..], allowed.as_bytes(), b"\n"].concat();
        put("proc/7/status".to_owned(), &status);
        put("sys/devices/system/cpu/online".to_owned(), b"0-7\n");
        files.iter().for_each(|(name, text)| put(format!("sys/fs/cgroup/{name}"), text.as_bytes()));
        assert_eq!(of(&folder.path().join("proc"), &folder.path().join("sys"), 7), expected);
    }

    #[test]
    fn the_least_of_quotas_and_cpus() {
        check("0::/a.slice/b\n", "0-7", &[("a.slice/b/cpu.max", "max 100000\n")], None);
        let quota = [("a.slice/cpu.max", "200000 100000\n"), ("a.slice/b/cpu.max", "800000 100000\n")];
        check("0::/a.slice/b\n", "0-7", &quota, Some(2.0));
        check("0::/a.slice/b\n", "3", &quota, Some(1.0));
        check("0::/\n", "0-2,6", &[], Some(4.0));
        let v1 = [("cpu/x/cpu.cfs_quota_us", "50000\n"), ("cpu/x/cpu.cfs_period_us", "100000\n")];
        check("4:cpu,cpuacct:/x\n0::/\n", "0-7", &v1, Some(0.5));
        let none = [("cpu/x/cpu.cfs_quota_us", "-1\n"), ("cpu/x/cpu.cfs_period_us", "100000\n")];
        check("4:cpu,cpuacct:/x\n", "0-7", &none, None);
    }
}
