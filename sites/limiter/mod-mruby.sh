# Lays the document's own limiter out in the folder $1: mod_mruby.so, from where Apache keeps its modules or as MOD_MRUBY names it, and the
# scripts of http-access-limiter, of which HTTP_ACCESS_LIMITER is a checkout. They are as they are but for the limit, which is $2 or else
# the document's that is never reached, and for their memory, which lies in $1 and goes with it; the one for limits by time of day, which nobody asks for, is left away.
# What stays is a semaphore of theirs, 32 bytes in /dev/shm.
set -eu
for module in "${MOD_MRUBY:-}" /usr/lib/apache2/modules/mod_mruby.so /usr/lib64/httpd/modules/mod_mruby.so; do
    [ -f "$module" ] && break
done
[ -f "$module" ] || { echo 'no mod_mruby here; build it (docs/articles/4.md says how) and name it: MOD_MRUBY=/path/mod_mruby.so' >&2; exit 1; }
scripts=${HTTP_ACCESS_LIMITER:-}/access_limiter
[ -f "$scripts/access_limiter.rb" ] || { echo 'no http-access-limiter here; name a checkout of it: HTTP_ACCESS_LIMITER=/path' >&2; exit 1; }
ln -s "$module" "$1/mod_mruby.so"
memory() { sed -e '/shared_config_store/d' -e "s|:namespace => *\"[a-z_]*\"|:filename => \"$2/access_limiter.lmc\"|" "$1"; }
memory "$scripts/access_limiter_init.rb" "$1" >"$1/access_limiter_init.rb"
if [ -f "$scripts/access_limiter_worker_init.rb" ]; then
    # Until September 2016 it was the workers that opened the memory.
    mkdir "$1/memory"
    chmod 777 "$1/memory"
    memory "$scripts/access_limiter_worker_init.rb" "$1/memory" >"$1/access_limiter_worker_init.rb"
else
    echo '# nothing: access_limiter_init.rb does it' >"$1/access_limiter_worker_init.rb"
fi
sed "s/^threshold = .*/threshold = ${2:-90000000}/" "$scripts/access_limiter.rb" >"$1/access_limiter.rb"
cp "$scripts/access_limiter_end.rb" "$1/"
chmod 644 "$1"/access_limiter*.rb
