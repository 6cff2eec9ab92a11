say() { echo "webdyno-remote: $*"; }
umask 077
say machine "$(uname -s)" "$(uname -m)"
read -r word && [ "$word" = on ] || exit 1
home="${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}"
why=
for dir in ${home:+"$home/webdyno"} "${TMPDIR:-/tmp}/webdyno-$(id -u)"; do
  mkdir -p "$dir" 2>/dev/null
  if [ -L "$dir" ] || [ ! -d "$dir" ] || [ ! -O "$dir" ] || [ ! -w "$dir" ]; then
    why="$why$dir cannot be written; "
    continue
  fi
  try="$dir/.try.$$"
  { printf "#!/bin/sh\nexit 0\n" > "$try" && chmod 700 "$try"; } 2>/dev/null
  if [ ! -s "$try" ]; then
    why="$why$dir has no space left; "
  elif "$try" 2>/dev/null; then
    rm -f "$try"
    why=
    break
  else
    why="$why$dir is on a file system without execution (noexec); "
  fi
  rm -f "$try"
  rmdir "$dir" 2>/dev/null
done
if [ -n "$why" ]; then
  say no "$why"
  exit 1
fi
find "$dir" -name "generator-*" -mtime +30 -exec rm -f {} + 2>/dev/null
find "$dir" -name ".new.*" -mmin +60 -exec rm -f {} + 2>/dev/null
file="$dir/generator-SUM"
sum="$(sha256sum 2>/dev/null < "$file")" 2>/dev/null
if [ ! -x "$file" ] || [ "${sum%% *}" != SUM ]; then
  say need "$dir"
  read -r word && [ "$word" = put ] || exit 1
  new="$dir/.new.$$"
  trap "rm -f \"$new\"; exit 1" HUP INT TERM
  head -c SIZE > "$new"
  sum="$(sha256sum < "$new")"
  if [ "${sum%% *}" != SUM ] || ! chmod 700 "$new" || ! mv -f "$new" "$file"; then
    size="$(wc -c < "$new")"
    rm -f "$new"
    say short $size "$dir"
    exit 1
  fi
  trap - HUP INT TERM
fi
touch "$file"
cd /
say start
exec "$file" @generator
