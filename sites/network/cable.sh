#!/bin/sh
# Two machines in one, with a cable between them: sh cable.sh "TBF" COMMAND...
#
# COMMAND runs on the near machine, a network of its own; what it sends to the far one goes through a queue of tc's (man tc-tbf) with these
# words. A plan whose load is `from = "ssh:far"` has its clients there: a shell on the far machine takes the place of ssh. Needs root,
# iproute2 and util-linux. When COMMAND has ended, both networks and what was brought to the far machine are gone.
set -e

if [ "$1" = --far ]; then
    # What ssh is called with: options, the machine, and one command.
    for command; do :; done
    exec nsenter --net="/run/netns/$2" sh -c "$command"
fi

queue=$1
shift
near=webdyno-$$-near far=webdyno-$$-far
place=$(mktemp -d)
end() {
    ip netns del "$near" 2>/dev/null || true
    ip netns del "$far" 2>/dev/null || true
    rm -rf "$place"
}
trap end EXIT
# Ctrl-C is for the command; this is over when that is.
trap : INT

ip netns add "$near"
ip netns add "$far"
ip link add cable netns "$near" type veth peer name cable netns "$far"
ip -n "$near" addr add 10.77.0.1/24 dev cable
ip -n "$far" addr add 10.77.0.2/24 dev cable
for machine in "$near" "$far"; do
    ip -n "$machine" link set lo up
    ip -n "$machine" link set cable up
done
# shellcheck disable=SC2086 # these are words
tc -n "$near" qdisc add dev cable root tbf $queue

export XDG_CACHE_HOME="$place" SSH_CONNECTION="10.77.0.1 22 10.77.0.1 22"
export WEBDYNO_SSH="sh '$(realpath "$0")' --far $far"
nsenter --net="/run/netns/$near" "$@"
