#!/bin/sh
# Makes a document root of large files: files.sh FOLDER COUNT MEBIBYTES
set -eu
mkdir -p "$1"
n=0
while [ "$n" -lt "$2" ]; do
    [ -e "$1/$n.bin" ] || head -c "$3M" /dev/zero >"$1/$n.bin"
    n=$((n + 1))
done
