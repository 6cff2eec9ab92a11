//! What is read of files that real kernels wrote: each was booted by `cargo xtask vm kernel`, which kept what webdyno read there.

use crate::corpus::check_kernel;
use expect_test::expect;

#[test]
fn ubuntu_16() {
    check_kernel(
        "ubuntu16-4.4",
        &expect![[r#"
            cpu.user=294 cpu.nice=0 cpu.system=1645 cpu.idle=9500 cpu.iowait=179
            cpu.irq=0 cpu.softirq=139 cpu.steal=0 sys.interrupts=15526 sys.context_switches=35304
            sys.forks=3973 sys.runnable=2 sys.blocked=0 load.1m=26 load.5m=10
            load.15m=4 mem.total=500192 mem.free=456732 mem.available=456288 mem.buffers=0
            mem.cached=21444 mem.sreclaimable=6132 mem.shmem=21444 mem.dirty=0 mem.writeback=0
            mem.anon=348 swap.total=65532 swap.free=65532 vm.pswpin=0 vm.pswpout=0
            vm.pgmajfault=0 vm.pgscan_direct=0 vm.workingset_refault_file=0 disk.reads=4791 disk.writes=7
            disk.read_sectors=1225752 disk.write_sectors=12800 disk.in_flight=0 disk.io_ms=0 disk.weighted_ms=8520
            net.rx_bytes=220 net.tx_bytes=586 net.drops=0 net.lo_bytes=63804998 tcp.retransmits=0
            tcp.listen_overflows=0 tcp.listen_drops=0 tcp.time_wait=341 group.memory=180224 group.limit=67108864
            group.anon=53248 group.file=0 group.limit_hits=0 group.pgmajfault=0 group.cpu_ns=7382255732
            group.throttled_ns=0 sys.uptime=14229 vm.pgfault=239761 vm.pgalloc=343127 vm.pgfree=457463
            vm.pgpgin=612704 vm.pgpgout=6404 sockets.used=20 sockets.tcp=1 sockets.udp=0
            sockets.raw=0 sockets.frag=0 fs.files=32 fs.inodes=8094 fs.free_inodes=0
            ipc.queues=0 ipc.semaphores=0 ipc.segments=0 locks.posix=0 locks.flock=0
            locks.read=0 locks.write=0 tcp.state.listen=1 tcp.state.established=0 tcp.state.handshake=0
            tcp.state.time_wait=6 tcp.state.closing=0 udp.listening=0 udp.connected=0 raw.sockets=0
            unix.datagram=0 unix.stream=0 unix.listening=0 unix.connected=0 disk.read_ms=8368
            disk.write_ms=188 tcp.passive_opens=958 tcp.active_opens=958 group.cpu_periods=0 group.cpu_throttled=0
            tcp.out_segments=14357
        "#]],
        &["pressure/memory cannot be read"],
    );
}

#[test]
fn ubuntu_18() {
    check_kernel(
        "ubuntu18-4.15",
        &expect![[r#"
            cpu.user=187 cpu.nice=0 cpu.system=420 cpu.idle=422 cpu.iowait=60
            cpu.irq=0 cpu.softirq=73 cpu.steal=0 sys.interrupts=2472 sys.context_switches=5243
            sys.forks=426 sys.runnable=1 sys.blocked=0 load.1m=18 load.5m=5
            load.15m=1 mem.total=493140 mem.free=446872 mem.available=446464 mem.buffers=0
            mem.cached=21528 mem.sreclaimable=8824 mem.shmem=21548 mem.dirty=0 mem.writeback=0
            mem.anon=256 swap.total=65532 swap.free=65532 vm.pswpin=0 vm.pswpout=0
            vm.pgmajfault=0 vm.pgscan_direct=0 vm.workingset_refault_file=0 vm.oom_kill=0 disk.reads=333
            disk.writes=7 disk.read_sectors=84504 disk.write_sectors=12800 disk.in_flight=0 disk.io_ms=0
            disk.weighted_ms=1140 net.rx_bytes=110 net.tx_bytes=516 net.drops=0 net.lo_bytes=4557982
            tcp.retransmits=5 tcp.listen_overflows=0 tcp.listen_drops=0 tcp.time_wait=66 group.memory=389120
            group.limit=67108864 group.anon=53248 group.file=0 group.limit_hits=0 group.oom_kill=0
            group.pgmajfault=0 group.cpu_ns=1511044062 group.throttled_ns=0 sys.uptime=2623 vm.pgfault=26900
            vm.pgalloc=41189 vm.pgfree=153017 vm.pgpgin=41632 vm.pgpgout=6404 sockets.used=19
            sockets.tcp=0 sockets.udp=0 sockets.raw=0 sockets.frag=0 fs.files=32
            fs.inodes=10792 fs.free_inodes=0 ipc.queues=0 ipc.semaphores=0 ipc.segments=0
            locks.posix=0 locks.flock=0 locks.read=0 locks.write=0 tcp.state.listen=1
            tcp.state.established=0 tcp.state.handshake=0 tcp.state.time_wait=13 tcp.state.closing=0 udp.listening=0
            udp.connected=0 raw.sockets=0 unix.datagram=0 unix.stream=0 unix.listening=0
            unix.connected=0 disk.read_ms=3368 disk.write_ms=16 tcp.passive_opens=66 tcp.active_opens=66
            group.cpu_periods=0 group.cpu_throttled=0 tcp.out_segments=952
        "#]],
        &["pressure/cpu cannot be read"],
    );
}

#[test]
fn ubuntu_20() {
    check_kernel(
        "ubuntu20-5.4",
        &expect![[r#"
            cpu.user=114 cpu.nice=0 cpu.system=356 cpu.idle=494 cpu.iowait=13
            cpu.irq=0 cpu.softirq=35 cpu.steal=0 sys.interrupts=2116 sys.context_switches=5114
            sys.forks=493 sys.runnable=1 sys.blocked=0 load.1m=36 load.5m=8
            load.15m=3 mem.total=489436 mem.free=436396 mem.available=436944 mem.buffers=0
            mem.cached=21588 mem.sreclaimable=9712 mem.shmem=21604 mem.dirty=0 mem.writeback=0
            mem.anon=272 swap.total=65532 swap.free=65532 vm.pswpin=0 vm.pswpout=0
            vm.pgmajfault=0 vm.pgscan_direct=0 vm.workingset_refault_file=0 vm.oom_kill=0 disk.reads=343
            disk.writes=7 disk.read_sectors=87064 disk.write_sectors=12800 disk.in_flight=0 disk.io_ms=0
            disk.weighted_ms=1116 net.rx_bytes=110 net.tx_bytes=602 net.drops=0 net.lo_bytes=4921795
            tcp.retransmits=10 tcp.listen_overflows=0 tcp.listen_drops=0 tcp.time_wait=69 psi.cpu.some=5753922
            psi.memory.some=0 psi.memory.full=0 psi.io.some=578537 psi.io.full=149997 group.memory=307200
            group.limit=67108864 group.anon=0 group.file=0 group.limit_hits=0 group.oom_kill=0
            group.pgmajfault=0 group.cpu_ns=893166137 group.throttled_ns=0 sys.uptime=1775 vm.pgfault=27574
            vm.pgalloc=44605 vm.pgfree=153840 vm.pgpgin=43552 vm.pgpgout=6404 sockets.used=1
            sockets.tcp=0 sockets.udp=0 sockets.raw=0 sockets.frag=0 fs.files=32
            fs.inodes=11873 fs.free_inodes=0 ipc.queues=0 ipc.semaphores=0 ipc.segments=0
            locks.posix=0 locks.flock=0 locks.read=0 locks.write=0 tcp.state.listen=1
            tcp.state.established=0 tcp.state.handshake=0 tcp.state.time_wait=13 tcp.state.closing=0 udp.listening=0
            udp.connected=0 raw.sockets=0 unix.datagram=0 unix.stream=0 unix.listening=0
            unix.connected=0 disk.read_ms=1408 disk.write_ms=45 tcp.passive_opens=69 tcp.active_opens=69
            group.cpu_periods=0 group.cpu_throttled=0 tcp.out_segments=994
        "#]],
        &[],
    );
}

#[test]
fn debian_11() {
    check_kernel(
        "debian11-5.10.0-32",
        &expect![[r#"
            cpu.user=135 cpu.nice=0 cpu.system=535 cpu.idle=162 cpu.iowait=24
            cpu.irq=0 cpu.softirq=29 cpu.steal=0 sys.interrupts=2475 sys.context_switches=4416
            sys.forks=357 sys.runnable=2 sys.blocked=0 load.1m=48 load.5m=11
            load.15m=4 mem.total=487124 mem.free=434072 mem.available=432668 mem.buffers=384
            mem.cached=21800 mem.sreclaimable=7552 mem.shmem=21820 mem.dirty=0 mem.writeback=0
            mem.anon=304 swap.total=65532 swap.free=65532 vm.pswpin=0 vm.pswpout=0
            vm.pgmajfault=0 vm.pgscan_direct=0 vm.workingset_refault_anon=0 vm.workingset_refault_file=0 vm.oom_kill=0
            disk.reads=296 disk.writes=7 disk.read_sectors=75528 disk.write_sectors=12800 disk.in_flight=0
            disk.io_ms=0 disk.weighted_ms=4561 net.rx_bytes=110 net.tx_bytes=602 net.drops=0
            net.lo_bytes=4322836 tcp.retransmits=10 tcp.listen_overflows=0 tcp.listen_drops=0 tcp.time_wait=61
            psi.cpu.some=16132552 psi.memory.some=0 psi.memory.full=0 psi.io.some=2589640 psi.io.full=246844
            group.memory=114688 group.limit=67108864 group.anon=0 group.file=0 group.swap=0
            group.limit_hits=0 group.oom_kill=0 group.pgmajfault=0 group.workingset_refault_anon=0 group.workingset_refault_file=0
            group.cpu_ns=1748676000 group.cpu_user_ns=194971000 group.cpu_system_ns=1553705000 group.throttled_ns=0 group.psi.cpu.some=2285998
            group.psi.memory.some=0 group.psi.memory.full=0 group.psi.io.some=0 group.psi.io.full=0 sys.uptime=3072
            vm.pgfault=25160 vm.pgalloc=45904 vm.pgfree=154431 vm.pgpgin=37776 vm.pgpgout=6404
            sockets.used=1 sockets.tcp=0 sockets.udp=0 sockets.raw=0 sockets.frag=0
            fs.files=32 fs.inodes=9243 fs.free_inodes=0 ipc.queues=0 ipc.semaphores=0
            ipc.segments=0 locks.posix=0 locks.flock=0 locks.read=0 locks.write=0
            tcp.state.listen=1 tcp.state.established=0 tcp.state.handshake=0 tcp.state.time_wait=13 tcp.state.closing=0
            udp.listening=0 udp.connected=0 raw.sockets=0 unix.datagram=0 unix.stream=0
            unix.listening=0 unix.connected=0 disk.read_ms=4249 disk.write_ms=312 tcp.passive_opens=60
            tcp.active_opens=60 group.cpu_periods=0 group.cpu_throttled=0 tcp.out_segments=868
        "#]],
        &[],
    );
}

#[test]
fn ubuntu_22() {
    check_kernel(
        "ubuntu22-5.15",
        &expect![[r#"
            cpu.user=115 cpu.nice=0 cpu.system=421 cpu.idle=332 cpu.iowait=13
            cpu.irq=0 cpu.softirq=18 cpu.steal=0 sys.interrupts=2282 sys.context_switches=3934
            sys.forks=341 sys.runnable=1 sys.blocked=0 load.1m=23 load.5m=5
            load.15m=2 mem.total=479180 mem.free=415648 mem.available=418784 mem.buffers=0
            mem.cached=21676 mem.sreclaimable=12172 mem.shmem=21676 mem.dirty=0 mem.writeback=0
            mem.anon=240 swap.total=65532 swap.free=65532 vm.pswpin=0 vm.pswpout=0
            vm.pgmajfault=0 vm.pgscan_direct=0 vm.workingset_refault_anon=0 vm.workingset_refault_file=0 vm.oom_kill=0
            disk.reads=273 disk.writes=7 disk.read_sectors=69144 disk.write_sectors=12800 disk.in_flight=0
            disk.io_ms=0 disk.weighted_ms=965 net.rx_bytes=110 net.tx_bytes=602 net.drops=0
            net.lo_bytes=3028719 tcp.retransmits=1 tcp.listen_overflows=0 tcp.listen_drops=0 tcp.time_wait=45
            psi.cpu.some=6368908 psi.memory.some=0 psi.memory.full=0 psi.io.some=379090 psi.io.full=173808
            group.memory=110592 group.limit=67108864 group.anon=49152 group.file=0 group.swap=0
            group.limit_hits=0 group.oom_kill=0 group.pgmajfault=0 group.workingset_refault_anon=0 group.workingset_refault_file=0
            group.cpu_ns=737530000 group.cpu_user_ns=59246000 group.cpu_system_ns=678283000 group.throttled_ns=0 group.psi.cpu.some=864568
            group.psi.memory.some=0 group.psi.memory.full=0 group.psi.io.some=0 group.psi.io.full=0 sys.uptime=1658
            vm.pgfault=21798 vm.pgalloc=40334 vm.pgfree=146884 vm.pgpgin=34592 vm.pgpgout=6404
            sockets.used=1 sockets.tcp=0 sockets.udp=0 sockets.raw=0 sockets.frag=0
            fs.files=32 fs.inodes=14051 fs.free_inodes=0 ipc.queues=0 ipc.semaphores=0
            ipc.segments=0 locks.posix=0 locks.flock=0 locks.read=0 locks.write=0
            tcp.state.listen=1 tcp.state.established=0 tcp.state.handshake=0 tcp.state.time_wait=13 tcp.state.closing=0
            udp.listening=0 udp.connected=0 raw.sockets=0 unix.datagram=0 unix.stream=0
            unix.listening=0 unix.connected=0 disk.read_ms=714 disk.write_ms=250 tcp.passive_opens=45
            tcp.active_opens=45 group.cpu_periods=0 group.cpu_throttled=0 tcp.out_segments=651
        "#]],
        &[],
    );
}

#[test]
fn debian_12() {
    check_kernel(
        "debian12-6.1.0-56",
        &expect![[r#"
            cpu.user=132 cpu.nice=0 cpu.system=604 cpu.idle=114 cpu.iowait=12
            cpu.irq=0 cpu.softirq=48 cpu.steal=0 sys.interrupts=2621 sys.context_switches=4228
            sys.forks=283 sys.runnable=1 sys.blocked=0 load.1m=82 load.5m=19
            load.15m=6 mem.total=481272 mem.free=430556 mem.available=431052 mem.buffers=0
            mem.cached=21956 mem.sreclaimable=9560 mem.shmem=21956 mem.dirty=0 mem.writeback=0
            mem.anon=260 swap.total=65532 swap.free=65532 vm.pswpin=0 vm.pswpout=0
            vm.pgmajfault=0 vm.pgscan_direct=0 vm.workingset_refault_anon=0 vm.workingset_refault_file=0 vm.oom_kill=0
            disk.reads=189 disk.writes=7 disk.read_sectors=48136 disk.write_sectors=12800 disk.in_flight=0
            disk.io_ms=0 disk.weighted_ms=3190 net.rx_bytes=110 net.tx_bytes=602 net.drops=0
            net.lo_bytes=2530907 tcp.retransmits=0 tcp.listen_overflows=0 tcp.listen_drops=0 tcp.time_wait=39
            psi.cpu.some=16211942 psi.memory.some=0 psi.memory.full=0 psi.io.some=1807758 psi.io.full=127980
            group.memory=262144 group.limit=67108864 group.anon=53248 group.file=0 group.swap=0
            group.limit_hits=0 group.oom_kill=0 group.pgmajfault=0 group.workingset_refault_anon=0 group.workingset_refault_file=0
            group.cpu_ns=1564346000 group.cpu_user_ns=151987000 group.cpu_system_ns=1412359000 group.throttled_ns=0 group.psi.cpu.some=1971280
            group.psi.memory.some=0 group.psi.memory.full=0 group.psi.io.some=0 group.psi.io.full=0 sys.uptime=3615
            vm.pgfault=19890 vm.pgalloc=37533 vm.pgfree=145473 vm.pgpgin=23696 vm.pgpgout=6408
            sockets.used=1 sockets.tcp=0 sockets.udp=0 sockets.raw=0 sockets.frag=0
            fs.files=32 fs.inodes=11044 fs.free_inodes=0 ipc.queues=0 ipc.semaphores=0
            ipc.segments=0 locks.posix=0 locks.flock=0 locks.read=0 locks.write=0
            tcp.state.listen=1 tcp.state.established=0 tcp.state.handshake=0 tcp.state.time_wait=13 tcp.state.closing=0
            udp.listening=0 udp.connected=0 raw.sockets=0 unix.datagram=0 unix.stream=0
            unix.listening=0 unix.connected=0 disk.read_ms=2778 disk.write_ms=412 tcp.passive_opens=39
            tcp.active_opens=39 group.cpu_periods=0 group.cpu_throttled=0 tcp.out_segments=579
        "#]],
        &[],
    );
}

#[test]
fn debian_13() {
    check_kernel(
        "debian13-6.12",
        &expect![[r#"
            cpu.user=105 cpu.nice=0 cpu.system=576 cpu.idle=219 cpu.iowait=41
            cpu.irq=0 cpu.softirq=104 cpu.steal=0 sys.interrupts=2662 sys.context_switches=4370
            sys.forks=348 sys.runnable=3 sys.blocked=0 load.1m=60 load.5m=14
            load.15m=5 mem.total=475828 mem.free=433040 mem.available=427912 mem.buffers=0
            mem.cached=21872 mem.sreclaimable=1104 mem.shmem=21872 mem.dirty=0 mem.writeback=0
            mem.anon=248 swap.total=65532 swap.free=65532 vm.pswpin=0 vm.pswpout=0
            vm.pgmajfault=0 vm.pgscan_direct=0 vm.workingset_refault_anon=0 vm.workingset_refault_file=0 vm.oom_kill=0
            disk.reads=206 disk.writes=7 disk.read_sectors=52488 disk.write_sectors=12800 disk.in_flight=0
            disk.io_ms=0 disk.weighted_ms=1874 net.rx_bytes=220 net.tx_bytes=672 net.drops=0
            net.lo_bytes=2861693 tcp.retransmits=0 tcp.listen_overflows=0 tcp.listen_drops=0 tcp.time_wait=43
            psi.cpu.some=13059719 psi.memory.some=0 psi.memory.full=0 psi.io.some=1101355 psi.io.full=433558
            group.memory=253952 group.limit=67108864 group.anon=53248 group.file=0 group.swap=0
            group.limit_hits=0 group.oom_kill=0 group.pgmajfault=0 group.workingset_refault_anon=0 group.workingset_refault_file=0
            group.cpu_ns=906013000 group.cpu_user_ns=25886000 group.cpu_system_ns=880127000 group.throttled_ns=0 group.psi.cpu.some=1214600
            group.psi.memory.some=0 group.psi.memory.full=0 group.psi.io.some=0 group.psi.io.full=0 sys.uptime=2468
            vm.pgfault=20540 vm.pgalloc=37631 vm.pgfree=146125 vm.pgpgin=26256 vm.pgpgout=6404
            sockets.used=3 sockets.tcp=1 sockets.udp=0 sockets.raw=0 sockets.frag=0
            fs.files=32 fs.inodes=1157 fs.free_inodes=0 ipc.queues=0 ipc.semaphores=0
            ipc.segments=0 locks.posix=0 locks.flock=0 locks.read=0 locks.write=0
            tcp.state.listen=1 tcp.state.established=0 tcp.state.handshake=0 tcp.state.time_wait=13 tcp.state.closing=0
            udp.listening=0 udp.connected=0 raw.sockets=0 unix.datagram=0 unix.stream=0
            unix.listening=0 unix.connected=0 disk.read_ms=1659 disk.write_ms=215 tcp.passive_opens=43
            tcp.active_opens=43 group.cpu_periods=0 group.cpu_throttled=0 tcp.out_segments=602
        "#]],
        &[],
    );
}

#[test]
fn debian_unstable() {
    check_kernel(
        "debian-sid-7.2",
        &expect![[r#"
            cpu.user=116 cpu.nice=0 cpu.system=639 cpu.idle=409 cpu.iowait=3
            cpu.irq=0 cpu.softirq=26 cpu.steal=0 sys.interrupts=5821 sys.context_switches=5536
            sys.forks=320 sys.runnable=2 sys.blocked=0 load.1m=37 load.5m=8
            load.15m=3 mem.total=472140 mem.free=418232 mem.available=413096 mem.buffers=0
            mem.cached=21932 mem.sreclaimable=1212 mem.shmem=21932 mem.dirty=0 mem.writeback=0
            mem.anon=244 swap.total=65532 swap.free=65532 vm.pswpin=0 vm.pswpout=0
            vm.pgmajfault=0 vm.pgscan_direct=0 vm.workingset_refault_anon=0 vm.workingset_refault_file=0 vm.oom_kill=0
            disk.reads=130 disk.writes=7 disk.read_sectors=286216 disk.write_sectors=12800 disk.in_flight=0
            disk.io_ms=0 disk.weighted_ms=283 net.rx_bytes=220 net.tx_bytes=672 net.drops=0
            net.lo_bytes=2928036 tcp.retransmits=0 tcp.listen_overflows=0 tcp.listen_drops=0 tcp.time_wait=44
            psi.cpu.some=6504839 psi.memory.some=0 psi.memory.full=0 psi.io.some=136024 psi.io.full=75862
            group.memory=188416 group.limit=67108864 group.anon=49152 group.file=0 group.swap=0
            group.limit_hits=0 group.oom_kill=0 group.pgmajfault=0 group.workingset_refault_anon=0 group.workingset_refault_file=0
            group.cpu_ns=682574000 group.cpu_user_ns=79227000 group.cpu_system_ns=603346000 group.throttled_ns=0 group.psi.cpu.some=742080
            group.psi.memory.some=0 group.psi.memory.full=0 group.psi.io.some=0 group.psi.io.full=0 sys.uptime=1625
            vm.pgfault=21145 vm.pgalloc=68617 vm.pgfree=174294 vm.pgpgin=143120 vm.pgpgout=6404
            sockets.used=1 sockets.tcp=0 sockets.udp=0 sockets.raw=0 sockets.frag=0
            fs.files=13 fs.inodes=1191 fs.free_inodes=0 ipc.queues=0 ipc.semaphores=0
            ipc.segments=0 locks.posix=0 locks.flock=0 locks.read=0 locks.write=0
            tcp.state.listen=1 tcp.state.established=0 tcp.state.handshake=0 tcp.state.time_wait=13 tcp.state.closing=0
            udp.listening=0 udp.connected=0 raw.sockets=0 unix.datagram=0 unix.stream=0
            unix.listening=0 unix.connected=0 disk.read_ms=253 disk.write_ms=29 tcp.passive_opens=44
            tcp.active_opens=44 group.cpu_periods=0 group.cpu_throttled=0 tcp.out_segments=612
        "#]],
        &[],
    );
}
