# Links mod_qos into the folder $1, and beside it what is to be loaded before it: Debian's is compiled against the older libpcre, which
# Apache no longer loads; where there is none, the module itself, which Apache loads once all the same.
set -eu
for folder in /usr/lib/apache2/modules /usr/lib64/httpd/modules; do
    module=$folder/mod_qos.so
    [ -f "$module" ] && break
done
[ -f "$module" ] || { echo 'no mod_qos here; install the package libapache2-mod-qos' >&2; exit 1; }
ln -s "$module" "$1/mod_qos.so"
library=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's/.*libpcre\.so\.[13] .*=> //p' | head -n 1)
ln -s "${library:-$module}" "$1/needed.so"
