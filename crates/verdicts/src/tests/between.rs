//! Two runs that nobody interleaved.

use super::*;

fn differences(first: &Run, second: &Run) -> Vec<Difference> {
    between(Side(std::slice::from_ref(first)), Side(std::slice::from_ref(second))).unwrap().differences
}

/// Kernels keep some of the memory for themselves, and each a little more or less.
#[test]
fn a_machine_with_a_little_less_memory_is_the_same() {
    let first = run("", &[("a", &BASE), ("b", &MORE)]);
    let check = |memory: u64, forbidden: bool| {
        let (mut first, mut second) = (first.clone(), first.clone());
        (first.head.host.memory, second.head.host.memory) = (24_000 << 20, memory << 20);
        let found = differences(&first, &second);
        assert_eq!(found.iter().any(|it| it.what.forbids()), forbidden, "{memory}: {found:?}");
        assert_eq!(
            found,
            differences(&second, &first)
                .into_iter()
                .map(|it| Difference { first: it.second, second: it.first, ..it })
                .collect::<Vec<_>>()
        );
    };
    check(24_000, false);
    check(23_900, false);
    check(24_100, false);
    check(16_000, true);
}
