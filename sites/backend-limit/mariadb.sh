#!/bin/sh
# Becomes a MariaDB on the files that prepare.sh made: mariadb.sh DATA FOLDER ADDRESS PORT
# FILES says in which state it finds them: cold (nothing of them in the page cache), read (all of it), or as they are.
set -eu
PATH=$PATH:/usr/sbin:/sbin
data=$1 folder=$2 address=$3 port=$4

case ${FILES:-as-is} in
cold) find "$data" -type f -exec dd of={} oflag=nocache conv=notrunc,fdatasync count=0 status=none \; ;;
read) find "$data" -type f -exec cat {} + >/dev/null ;;
esac
# As distributions have it, but for what would be in other servers' way, and what the plan says.
exec mariadbd --no-defaults --user="$(id -un)" --datadir="$data" --tmpdir="$folder" --pid-file="$folder/pid" \
    --socket="$folder/mysql.sock" --bind-address="$address" --port="$port" --skip-name-resolve \
    --max-connections="${MAX_CONNECTIONS:-151}" --innodb-buffer-pool-size="${BUFFER_POOL:-128M}" \
    --innodb-flush-method="${FLUSH_METHOD:-O_DIRECT}" --innodb-buffer-pool-load-at-startup=OFF \
    --innodb-buffer-pool-dump-at-shutdown=OFF
