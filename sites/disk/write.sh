#!/bin/sh
# A CGI that keeps what it was sent, and answers when the disk has it: 256 KiB in pieces of 64, each written through.
# The file is made anew each time and removed, so that it never grows.
set -eu
name=$(mktemp "${WRITE_DIR:?}/kept.XXXXXX")
trap 'rm -f "$name"' EXIT
dd if=/dev/zero of="$name" bs=64k count=4 oflag=direct conv=notrunc 2>/dev/null
printf 'Content-Type: text/plain\r\n\r\nkept\n'
