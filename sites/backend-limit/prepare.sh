#!/bin/sh
# Makes an empty database, a table of stock and the files that the application locks: prepare.sh DATA SLOTS [ROWS]
# Runs once, before anything is measured. With ROWS there is a table of so many rows of about 1 KB, too.
set -eu
PATH=$PATH:/usr/sbin:/sbin
data=$1 slots=$2 rows=${3:-0}

missing() {
    echo "$1 is missing: install the package $2" >&2
    exit 1
}
command -v mariadb-install-db >/dev/null || missing mariadb-install-db mariadb-server
command -v mariadbd >/dev/null || missing mariadbd mariadb-server
for php in php /usr/bin/php8.*; do
    command -v "$php" >/dev/null && break
done
"$php" -v >/dev/null 2>&1 || missing "PHP's command" php-cli
"$php" -m 2>/dev/null | grep -qx mysqli || missing "PHP's mysqli" php-mysql

mkdir -p "$slots"
for slot in 0 1 2 3 4 5 6 7; do
    : >"$slots/$slot"
done
chmod 755 "$slots"
chmod 644 "$slots"/*

mariadb-install-db --no-defaults --datadir="$data" --user="$(id -un)" --auth-root-authentication-method=normal \
    --skip-test-db --skip-name-resolve >"$data.log" 2>&1 || { tail -3 "$data.log" >&2; exit 1; }
# Without a server: it reads the statements, one a line, carries them out and ends.
{
    echo "CREATE DATABASE shop;"
    echo "CREATE TABLE shop.stock (id INT PRIMARY KEY, left_over INT) ENGINE=InnoDB;"
    echo "INSERT INTO shop.stock VALUES (1, 1000000);"
    if [ "$rows" -gt 0 ]; then
        echo "CREATE TABLE shop.items (id INT PRIMARY KEY, text CHAR(250) CHARSET utf8mb4) ENGINE=InnoDB ROW_FORMAT=REDUNDANT;"
        echo "INSERT INTO shop.items SELECT seq, REPEAT(CHAR(65 + seq % 26 USING utf8mb4), 250) FROM shop.seq_1_to_$rows;"
    fi
    echo "FLUSH PRIVILEGES;"
    for host in localhost %; do
        echo "CREATE USER 'shop'@'$host';"
        echo "GRANT ALL ON shop.* TO 'shop'@'$host';"
    done
} >"$data.sql"
mariadbd --no-defaults --bootstrap --datadir="$data" --user="$(id -un)" <"$data.sql" >>"$data.log" 2>&1 ||
    { tail -3 "$data.log" >&2; exit 1; }
