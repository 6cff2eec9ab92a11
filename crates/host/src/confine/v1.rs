//! The files of a v1 memory group.

use model::plan::Confinement;

/// What to write into which file, in this order: the limit of memory alone may never exceed that of memory and swap together.
pub(super) fn settings(confine: &Confinement, exists: impl Fn(&str) -> bool) -> Vec<(&'static str, String)> {
    let mut settings = vec![("memory.limit_in_bytes", confine.memory.to_string())];
    if exists("memory.memsw.limit_in_bytes") {
        settings.push(("memory.memsw.limit_in_bytes", confine.memory.saturating_add(confine.swap).to_string()));
    } else if confine.swap == 0 {
        // Kernels booted without swapaccount=1 cannot limit swap, but they can be told not to begin.
        settings.push(("memory.swappiness", "0".to_owned()));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(swap: u64, accounted: bool, expected: &[(&str, &str)]) {
        let settings = settings(&Confinement { memory: 100, swap }, |file| accounted && file.contains("memsw"));
        let seen: Vec<(&str, &str)> = settings.iter().map(|(file, value)| (*file, value.as_str())).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn swap_is_counted_together_with_memory() {
        let limit = ("memory.limit_in_bytes", "100");
        check(50, true, &[limit, ("memory.memsw.limit_in_bytes", "150")]);
        check(0, true, &[limit, ("memory.memsw.limit_in_bytes", "100")]);
        check(50, false, &[limit]);
        check(0, false, &[limit, ("memory.swappiness", "0")]);
    }
}
