//! What is read of files that were written by hand, and of 6.18; and whether what is fuzzed holds for all of the corpus and for damaged copies.

use crate::corpus::{World, check, check_kernel, folder, instants, text};
use expect_test::expect;
use model::reading::{Column, Look};
use proptest::prelude::*;

#[test]
fn centos_7() {
    check_kernel(
        "centos7-3.10",
        &expect![[r#"
            cpu.user=10132153 cpu.nice=290696 cpu.system=3084719 cpu.idle=46828483 cpu.iowait=16683
            cpu.irq=0 cpu.softirq=25195 cpu.steal=40 sys.interrupts=199292120 sys.context_switches=452901234
            sys.forks=86031 sys.runnable=3 sys.blocked=2 load.1m=52 load.5m=100
            load.15m=1234 mem.total=1016860 mem.free=65432 mem.available=412340 mem.buffers=2108
            mem.cached=480288 mem.sreclaimable=60480 mem.shmem=6868 mem.dirty=36 mem.writeback=0
            mem.anon=310244 swap.total=720892 swap.free=650892 vm.pswpin=17500 vm.pswpout=35201
            vm.pgmajfault=30412 vm.pgscan_direct=70006 disk.reads=31000 disk.writes=52000 disk.read_sectors=2101433
            disk.write_sectors=3055112 disk.in_flight=1 disk.io_ms=0 disk.weighted_ms=140000 net.rx_bytes=4294967290
            net.tx_bytes=2000000 net.drops=5 net.lo_bytes=5000 tcp.retransmits=12 tcp.listen_overflows=17
            tcp.listen_drops=19 tcp.time_wait=42 group.memory=209715200 group.limit=209715200 group.anon=110000000
            group.file=93000000 group.swap=450000000 group.limit_hits=91 group.pgmajfault=30400 group.cpu_ns=91000000000
            group.throttled_ns=0 sys.uptime=8345678 vm.pgfault=21000456 vm.pgalloc=9127666 vm.pgfree=9144021
            vm.pgpgin=2101433 vm.pgpgout=3055112 sockets.used=131 sockets.tcp=6 sockets.udp=3
            sockets.raw=1 sockets.frag=0 fs.files=1504 fs.inodes=71210 fs.free_inodes=912
            disk.read_ms=41000 disk.write_ms=99000 tcp.passive_opens=4100 tcp.active_opens=31 group.cpu_periods=0
            group.cpu_throttled=0 tcp.out_segments=90000
        "#]],
        &["pressure/cpu cannot be read", "pressure/memory", "pressure/io"],
    );
}

#[test]
fn el_8() {
    check_kernel(
        "el8-4.18",
        &expect![[r#"
            cpu.user=10132153 cpu.nice=290696 cpu.system=3084719 cpu.idle=46828483 cpu.iowait=16683
            cpu.irq=0 cpu.softirq=25195 cpu.steal=40 sys.interrupts=199292120 sys.context_switches=452901234
            sys.forks=86031 sys.runnable=3 sys.blocked=2 load.1m=52 load.5m=100
            load.15m=1234 mem.total=1016860 mem.free=65432 mem.available=412340 mem.buffers=2108
            mem.cached=480288 mem.sreclaimable=60480 mem.shmem=6868 mem.dirty=36 mem.writeback=0
            mem.anon=310244 swap.total=720892 swap.free=650892 vm.pswpin=17500 vm.pswpout=35201
            vm.pgmajfault=30412 vm.pgscan_direct=70001 vm.workingset_refault_file=4711 vm.oom_kill=2 disk.reads=31000
            disk.writes=52000 disk.read_sectors=2101433 disk.write_sectors=3055112 disk.in_flight=1 disk.io_ms=0
            disk.weighted_ms=140000 net.rx_bytes=4294967290 net.tx_bytes=2000000 net.drops=5 net.lo_bytes=5000
            tcp.retransmits=12 tcp.listen_overflows=17 tcp.listen_drops=19 tcp.time_wait=42 group.memory=209715200
            group.limit=209715200 group.anon=110000000 group.file=93000000 group.swap=450000000 group.limit_hits=91
            group.oom_kill=2 group.pgmajfault=30400 group.cpu_ns=91000000000 group.throttled_ns=5000 sys.uptime=8345678
            vm.pgfault=21000456 vm.pgalloc=9127666 vm.pgfree=9144021 vm.pgpgin=2101433 vm.pgpgout=3055112
            sockets.used=131 sockets.tcp=6 sockets.udp=3 sockets.raw=1 sockets.frag=0
            fs.files=1504 fs.inodes=71210 fs.free_inodes=912 disk.read_ms=41000 disk.write_ms=99000
            tcp.passive_opens=4100 tcp.active_opens=31 group.cpu_periods=10 group.cpu_throttled=3 tcp.out_segments=90000
        "#]],
        &["pressure/memory cannot be read"],
    );
}

#[test]
fn debian_11() {
    check_kernel(
        "debian11-5.10",
        &expect![[r#"
            cpu.user=10132153 cpu.nice=290696 cpu.system=3084719 cpu.idle=46828483 cpu.iowait=16683
            cpu.irq=0 cpu.softirq=25195 cpu.steal=40 sys.interrupts=199292120 sys.context_switches=452901234
            sys.forks=86031 sys.runnable=3 sys.blocked=2 load.1m=52 load.5m=100
            load.15m=1234 mem.total=1016860 mem.free=65432 mem.available=412340 mem.buffers=2108
            mem.cached=480288 mem.sreclaimable=60480 mem.shmem=6868 mem.dirty=36 mem.writeback=0
            mem.anon=310244 swap.total=720892 swap.free=650892 vm.pswpin=17500 vm.pswpout=35201
            vm.pgmajfault=30412 vm.pgscan_direct=70001 vm.workingset_refault_anon=17000 vm.workingset_refault_file=4711 vm.oom_kill=2
            disk.reads=31010 disk.writes=52020 disk.read_sectors=2101513 disk.write_sectors=3055272 disk.in_flight=1
            disk.io_ms=0 disk.weighted_ms=140011 net.rx_bytes=4294967290 net.tx_bytes=2000000 net.drops=5
            net.lo_bytes=5000 tcp.retransmits=12 tcp.listen_overflows=17 tcp.listen_drops=19 tcp.time_wait=42
            psi.cpu.some=18991413 psi.memory.some=2000123 psi.memory.full=1000456 psi.io.some=700 psi.io.full=300
            group.memory=209715200 group.limit=209715200 group.anon=110000000 group.file=93000000 group.swap=450000000
            group.limit_hits=91 group.oom_kill=2 group.pgmajfault=30400 group.workingset_refault_anon=17000 group.workingset_refault_file=4711
            group.cpu_ns=91000000000 group.cpu_user_ns=60000000000 group.cpu_system_ns=31000000000 group.throttled_ns=5000 group.psi.cpu.some=18991413
            group.psi.memory.some=2000123 group.psi.memory.full=1000456 group.psi.io.some=700 group.psi.io.full=300 sys.uptime=8345678
            vm.pgfault=21000456 vm.pgalloc=9127666 vm.pgfree=9144021 vm.pgpgin=2101433 vm.pgpgout=3055112
            sockets.used=131 sockets.tcp=6 sockets.udp=3 sockets.raw=1 sockets.frag=0
            fs.files=1504 fs.inodes=71210 fs.free_inodes=912 disk.read_ms=41005 disk.write_ms=99006
            tcp.passive_opens=4100 tcp.active_opens=31 group.cpu_periods=10 group.cpu_throttled=3 tcp.out_segments=90000
        "#]],
        &[],
    );
}

#[test]
fn debian_12() {
    check_kernel(
        "debian12-6.1",
        &expect![[r#"
            cpu.user=10132153 cpu.nice=290696 cpu.system=3084719 cpu.idle=46828483 cpu.iowait=16683
            cpu.irq=0 cpu.softirq=25195 cpu.steal=40 sys.interrupts=199292120 sys.context_switches=452901234
            sys.forks=86031 sys.runnable=3 sys.blocked=2 load.1m=52 load.5m=100
            load.15m=1234 mem.total=1016860 mem.free=65432 mem.available=412340 mem.buffers=2108
            mem.cached=480288 mem.sreclaimable=60480 mem.shmem=6868 mem.dirty=36 mem.writeback=0
            mem.anon=310244 swap.total=720892 swap.free=650892 vm.pswpin=17500 vm.pswpout=35201
            vm.pgmajfault=30412 vm.pgscan_direct=70001 vm.workingset_refault_anon=17000 vm.workingset_refault_file=4711 vm.oom_kill=2
            disk.reads=31000 disk.writes=52000 disk.read_sectors=2101433 disk.write_sectors=3055112 disk.in_flight=1
            disk.io_ms=0 disk.weighted_ms=140000 net.rx_bytes=4294974290 net.tx_bytes=2008000 net.drops=5
            net.lo_bytes=5000 tcp.retransmits=12 tcp.listen_overflows=17 tcp.listen_drops=19 tcp.time_wait=42
            psi.cpu.some=18991413 psi.memory.some=2000123 psi.memory.full=1000456 psi.io.some=700 psi.io.full=300
            group.memory=209715200 group.limit=209715200 group.anon=110000000 group.file=93000000 group.swap=450000000
            group.limit_hits=91 group.oom_kill=2 group.pgmajfault=30400 group.workingset_refault_anon=17000 group.workingset_refault_file=4711
            group.cpu_ns=91000000000 group.cpu_user_ns=60000000000 group.cpu_system_ns=31000000000 group.throttled_ns=5000 group.psi.cpu.some=18991413
            group.psi.memory.some=2000123 group.psi.memory.full=1000456 group.psi.io.some=700 group.psi.io.full=300 sys.uptime=8345678
            vm.pgfault=21000456 vm.pgalloc=9127666 vm.pgfree=9144021 vm.pgpgin=2101433 vm.pgpgout=3055112
            sockets.used=131 sockets.tcp=6 sockets.udp=3 sockets.raw=1 sockets.frag=0
            fs.files=1504 fs.inodes=71210 fs.free_inodes=912 disk.read_ms=41000 disk.write_ms=99000
            tcp.passive_opens=4100 tcp.active_opens=31 group.cpu_periods=10 group.cpu_throttled=3 tcp.out_segments=90000
        "#]],
        &[],
    );
}

#[test]
fn today() {
    check_kernel(
        "today-6.18",
        &expect![[r#"
            cpu.user=2811517 cpu.nice=437767 cpu.system=1735508 cpu.idle=4355782 cpu.iowait=73532
            cpu.irq=0 cpu.softirq=218649 cpu.steal=3949 sys.interrupts=263029830 sys.context_switches=260382998
            sys.forks=2500571 sys.runnable=9 sys.blocked=0 load.1m=641 load.5m=557
            load.15m=463 mem.total=24684096 mem.free=3118512 mem.available=21298640 mem.buffers=61404
            mem.cached=17405384 mem.sreclaimable=1123532 mem.shmem=8788 mem.dirty=388396 mem.writeback=0
            mem.anon=2670016 swap.total=0 swap.free=0 vm.pswpin=138628237 vm.pswpout=191447204
            vm.pgmajfault=34880555 vm.pgscan_direct=67 vm.workingset_refault_anon=139317490 vm.workingset_refault_file=22378610 vm.oom_kill=91
            disk.reads=43745142 disk.writes=91941733 disk.read_sectors=1292485330 disk.write_sectors=2190694464 disk.in_flight=0
            disk.io_ms=0 disk.weighted_ms=170168505 net.rx_bytes=924561260 net.tx_bytes=11013463 net.drops=0
            net.lo_bytes=637499210963 tcp.retransmits=179833 tcp.listen_overflows=95206 tcp.listen_drops=95206 tcp.time_wait=6
            psi.cpu.some=10957061042 psi.memory.some=2263017967 psi.memory.full=1674007473 psi.io.some=1503111345 psi.io.full=450002599
            sys.uptime=4861096 vm.pgfault=2360971295 vm.pgalloc=2387766723 vm.pgfree=2388607260 vm.pgpgin=646242665
            vm.pgpgout=1095347232 sockets.used=28 sockets.tcp=4 sockets.udp=0 sockets.raw=0
            sockets.frag=0 fs.files=1245 fs.inodes=383057 fs.free_inodes=319 ipc.queues=0
            ipc.semaphores=1 ipc.segments=0 locks.posix=0 locks.flock=10 locks.read=17
            locks.write=7 tcp.state.listen=2 tcp.state.established=1 tcp.state.handshake=0 tcp.state.time_wait=2
            tcp.state.closing=0 udp.listening=0 udp.connected=0 raw.sockets=0 unix.datagram=0
            unix.stream=5 unix.listening=0 unix.connected=5 disk.read_ms=23511019 disk.write_ms=146444756
            tcp.passive_opens=11302331 tcp.active_opens=12556968 tcp.out_segments=632271557
        "#]],
        &["g/memory.usage_in_bytes cannot be read"],
    );
}

/// The second instant of Debian 12: what went backwards did not grow, and what has gone is absent.
#[test]
fn devices_that_come_and_go() {
    use model::reading::Span;
    let dir = tempfile::tempdir().unwrap();
    let text = text("debian12-6.1");
    let ([first, second], _) = World::new(dir.path()).looks(&instants(&text));
    let span = Span { from: &first.reading, to: &second.reading };
    for column in [Column::DiskReads, Column::DiskWriteSectors, Column::DiskIoMs, Column::NetRxBytes] {
        assert_eq!(span.delta(column), Some(0), "{column:?}");
    }
    assert_eq!(second.reading.get(Column::DiskReads), Some(10));
    // eth0 ran over its 32 bits, eth1 has gone; the two stand before the swap and the interrupt.
    let interfaces = |look: &Look| look.devices[16 + 16..16 + 16 + 4].to_vec();
    assert_eq!(interfaces(&first), [4_294_967_290, 2_000_000, 7000, 8000]);
    assert_eq!(interfaces(&second), [1200, 2_000_000, u64::MAX, u64::MAX]);
}

#[test]
fn the_corpus_keeps_the_promises() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path());
    for entry in std::fs::read_dir(folder()).unwrap() {
        check(&world, &std::fs::read(entry.unwrap().path()).unwrap());
    }
}

const KERNELS: [&str; 8] = [
    "centos7-3.10",
    "el8-4.18",
    "debian11-5.10",
    "debian12-6.1",
    "today-6.18",
    "ubuntu16-4.4",
    "ubuntu20-5.4",
    "debian-sid-7.2",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Copies with bytes changed, pieces left out and numbers made enormous.
    #[test]
    fn damaged_copies_keep_them_too(
        kernel in 0..KERNELS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        gap in (any::<prop::sample::Index>(), 0..400_usize),
        enormous in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut text = text(KERNELS[kernel]);
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let begin = gap.0.index(text.len());
        let end = (begin + gap.1).min(text.len());
        text.drain(begin..end);
        for at in enormous {
            let digits: Vec<usize> = (0..text.len()).filter(|&at| text[at].is_ascii_digit()).collect();
            let at = digits[at.index(digits.len())];
            text.splice(at..at, b"1844674407370955161".iter().copied());
        }
        let dir = tempfile::tempdir().unwrap();
        check(&World::new(dir.path()), &text);
    }
}
