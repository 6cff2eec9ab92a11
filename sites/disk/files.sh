#!/bin/sh
# Makes a document root of large files that are on the disk only, not in the page cache: files.sh FOLDER COUNT MEBIBYTES
set -eu
mkdir -p "$1"
n=0
while [ "$n" -lt "$2" ]; do
    [ -e "$1/$n.bin" ] || head -c "$3M" /dev/zero >"$1/$n.bin"
    sync "$1/$n.bin"
    dd of="$1/$n.bin" oflag=nocache conv=notrunc count=0 2>/dev/null
    n=$((n + 1))
done
