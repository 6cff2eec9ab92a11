#!/bin/busybox sh
# The first and only process of a kernel that is tried: a server in a group, work for disk, swap and network, and webdyno, which watches.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
for module in MODULES; do insmod $module; done
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
n=0
while [ ! -b /dev/vdb ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done
mkswap /dev/vdb > /dev/null
swapon /dev/vdb

# Groups as distributions of that time have them.
cg=/sys/fs/cgroup
case $(uname -r) in
5.1[0-9]*|6.*|7.*)
    mount -t cgroup2 cgroup2 $cg
    echo "+memory +cpu +io" > $cg/cgroup.subtree_control
    mkdir $cg/web
    memory=$cg/web; cpu=$cg/web
    echo 64M > $memory/memory.max ;;
*)
    mount -t tmpfs cg $cg
    for name in memory cpu,cpuacct; do
        mkdir $cg/$name
        mount -t cgroup -o $name $name $cg/$name
        mkdir $cg/$name/web
    done
    memory=$cg/memory/web; cpu=$cg/cpu,cpuacct/web
    echo 64M > $memory/memory.limit_in_bytes ;;
esac
mkdir /tmp/www
dd if=/dev/zero of=/tmp/www/page bs=64k count=1 2> /dev/null
sh -c "echo \$\$ > $memory/cgroup.procs; echo \$\$ > $cpu/cgroup.procs; exec httpd -f -p 8080 -h /tmp/www" &
server=$!
dd if=/dev/zero of=/dev/vda bs=64k count=100 2> /dev/null
sync
echo 3 > /proc/sys/vm/drop_caches
(while :; do wget -q -O /dev/null http://127.0.0.1:8080/page; dd if=/dev/vda of=/dev/null bs=64k count=8 2> /dev/null; sleep 0.1; done) &
sleep 1

out=/dev/ttyS1
stty -F $out raw 2> /dev/null
{
    all="-cmsdlnrgpytif --tcp --udp --raw --unix --socket --lock --ipc --fs --vm --psi --listen -L 8080 --tcp-trouble --disk-queue --run-queue"
    webdyno watch $all --cgroup web --tree $server --top-cpu --top-mem --top-io --top-oom --top-latency 1 3 > /tmp/rows 2> /tmp/said
    echo "exit code $?" >> /tmp/rows
    webdyno watch --json --record --cgroup web --tree $server 1 3 > /tmp/json 2>> /tmp/said
    echo "exit code $?" >> /tmp/said
    webdyno watch --replay latest -cm > /tmp/replay 2>> /tmp/said
    echo "exit code $?" >> /tmp/said
    webdyno watch --compat vmstat 1 2 > /tmp/vmstat 2>> /tmp/said
    for part in rows said json replay vmstat; do
        echo "@@ $part"
        cat /tmp/$part
    done
    echo "@@ files"
    echo "# Linux $(uname -r), read from a virtual machine that was booted with it."
    cd /proc
    for file in uptime loadavg stat meminfo vmstat diskstats swaps locks net/dev net/snmp net/netstat net/sockstat net/tcp net/tcp6 net/udp \
        net/udp6 net/raw net/unix sys/fs/file-nr sys/fs/inode-nr sysvipc/msg sysvipc/sem sysvipc/shm pressure/cpu pressure/memory pressure/io; do
        if [ -e $file ]; then
            echo "== $file"
            cat $file
        fi
    done
    for folder in $memory $cpu; do
        cd $folder
        for file in memory.usage_in_bytes memory.limit_in_bytes memory.failcnt memory.oom_control memory.stat memory.events memory.current memory.max \
            memory.swap.current cpuacct.usage cpu.stat cpu.pressure memory.pressure io.pressure cgroup.controllers; do
            if [ -e $file ]; then
                echo "== g/$file"
                cat $file
            fi
        done
        [ $memory = $cpu ] && break
    done
    echo "@@ dmesg"
    dmesg | tail -n 3
    echo "@@ end"
} > $out 2>&1
sync
sleep 1
poweroff -f
