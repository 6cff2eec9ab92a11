#!/bin/sh
# Becomes a MariaDB on the files that prepare.sh made, on a socket alone: mariadb.sh DATA FOLDER
set -eu
PATH=$PATH:/usr/sbin:/sbin
exec mariadbd --no-defaults --user="$(id -un)" --datadir="$1" --tmpdir="$2" --pid-file="$2/pid" \
    --socket="$2/mysql.sock" --skip-networking --innodb-buffer-pool-size=64M
