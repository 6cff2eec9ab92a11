#!/bin/sh
# Runs a command on a machine of its own, as far as the network goes: cable.sh COMMAND...
# A cable leads from there to another such machine, which `ssh:client` means. It carries 20 Mbit a second, and loses what finds no room. Needs root.
#
# Both are network namespaces that live as long as processes in them do: the first as long as the command, the other until the one process
# that holds it is killed by the kernel, when the command has ended, however that came about.
set -eu

if [ $# = 0 ]; then
    echo "usage: cable.sh COMMAND..." >&2
    exit 2
fi
if [ "$(id -u)" != 0 ]; then
    echo "cable.sh: only root may make networks: run it with sudo" >&2
    exit 2
fi
for needed in ip:iproute2 tc:iproute2 setpriv:util-linux unshare:util-linux; do
    command -v "${needed%:*}" > /dev/null && continue
    echo "${needed%:*} is missing: install the package ${needed#*:}" >&2
    exit 1
done
if [ "${WEBDYNO_CABLE-}" != here ]; then
    WEBDYNO_CABLE=here exec unshare --net -- sh "$0" "$@"
fi
unset WEBDYNO_CABLE

here=$(readlink /proc/$$/ns/net)
# This shell becomes the command, and is the holder's parent all the while. Who looks for what the command left behind sees nothing of it there.
setpriv --pdeathsig KILL env -i unshare --net sleep infinity < /dev/null > /dev/null 2>&1 &
client=$!
# Until then it is still in this one.
until there=$(readlink "/proc/$client/ns/net") && [ "$there" != "$here" ]; do
    kill -0 "$client"
done

ip link add cable type veth peer name cable netns "$client"
ip addr add 10.77.0.1/24 dev cable
ip link set lo up
ip link set cable up
nsenter --net="/proc/$client/ns/net" sh -ec '
    ip addr add 10.77.0.2/24 dev cable
    ip link set lo up
    ip link set cable up'
tc qdisc add dev cable root tbf rate 20mbit burst 64kb latency 40ms

# What ssh is given comes after its options: `--`, the machine, and a command for a shell there.
export WEBDYNO_SSH="nsenter --net=/proc/$client/ns/net sh -c 'while [ \"\$1\" != -- ]; do shift; done; exec sh -c \"\$3\"' ssh"
exec "$@"
