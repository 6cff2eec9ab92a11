#!/bin/sh
# Makes a WordPress of the distribution's files, its database, and twelve posts: prepare.sh SITE DATA
# Runs once, before anything is measured. The MariaDB that it starts for that ends before it does.
set -eu
PATH=$PATH:/usr/sbin:/sbin
site=$1 data=$2 here=$(cd "$(dirname "$0")" && pwd)
debian=/usr/share/wordpress

missing() {
    echo "$1 is missing: install the package $2" >&2
    exit 1
}
[ -f "$debian/wp-load.php" ] || missing "$debian" wordpress
[ -f "$debian/wp-content/themes/twentytwentythree/style.css" ] || missing "WordPress's theme" wordpress-theme-twentytwentythree
command -v mariadb-install-db >/dev/null || missing mariadb-install-db mariadb-server
command -v mariadbd >/dev/null || missing mariadbd mariadb-server
for php in php /usr/bin/php8.*; do
    command -v "$php" >/dev/null && break
done
"$php" -v >/dev/null 2>&1 || missing "PHP's command" php-cli
"$php" -m 2>/dev/null | grep -qx mysqli || missing "PHP's mysqli" php-mysql
"$php" -m 2>/dev/null | grep -qx gd || missing "PHP's gd" php-gd

# A copy: WordPress looks for its configuration beside its files, where links lead to.
mkdir -p "$site"
cp -RL "$debian/." "$site" 2>/dev/null || true
[ -f "$site/wp-includes/version.php" ] || { echo "cannot copy $debian" >&2; exit 1; }
rm -f "$site/.htaccess"
cp "$here/wp-config.php" "$site/wp-config.php"
mkdir -p "$site/wp-content/mu-plugins" "$site/wp-content/uploads"
cp "$here/five-plugins.php" "$site/wp-content/mu-plugins/"
echo ready >"$site/ready.html"
chmod -R u=rwX,go=rX "$site"
# Pages are run by the server's own account, and upload.
chmod 777 "$site/wp-content/uploads"

mariadb-install-db --no-defaults --datadir="$data" --user="$(id -un)" --auth-root-authentication-method=normal \
    --skip-test-db --skip-name-resolve >"$data.log" 2>&1 || { tail -3 "$data.log" >&2; exit 1; }
socket=${TMPDIR:-/tmp}/wordpress-install.sock
mariadbd --no-defaults --datadir="$data" --user="$(id -un)" --skip-networking --socket="$socket" \
    --pid-file="$data.pid" >>"$data.log" 2>&1 &
database=$!
trap 'kill $database 2>/dev/null; wait $database 2>/dev/null || true' EXIT
until mariadb-admin --no-defaults --socket="$socket" ping >/dev/null 2>&1; do
    kill -0 $database 2>/dev/null || { tail -3 "$data.log" >&2; exit 1; }
    sleep 0.1
done
mariadb --no-defaults --socket="$socket" -u root <<SQL
CREATE DATABASE wordpress CHARACTER SET utf8mb4;
CREATE USER wordpress@localhost;
GRANT ALL ON wordpress.* TO wordpress@localhost;
SQL
DB=$socket "$php" -d memory_limit=512M "$here/install.php" "$site" >>"$data.log" 2>&1 ||
    { tail -3 "$data.log" >&2; exit 1; }
