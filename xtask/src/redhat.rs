//! `cargo xtask setup --redhat`: an httpd with the paths of RHEL's layout, built from the sources of Debian's package into the target folder.
//!
//! Sources come by apt with lists of its own, so the system's stay as they are. Debian keeps sources of few versions, so it is the newest
//! that there is, and not always the installed one. It takes some minutes, once.

use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// In the folder `$1`; the result is below its `root`.
const SCRIPT: &str = r#"
set -e
mkdir -p "$1/apt/lists/partial" "$1/apt/parts" "$1/source"
cd "$1"
for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    if [ -s "$file" ]; then
        sed 's/^Types: deb$/Types: deb-src/; s/^deb /deb-src /' "$file" > "apt/parts/$(basename "$file")"
    fi
done
apt="-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$1/apt/parts -o Dir::State::lists=$1/apt/lists
     -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root"
apt-get $apt -qq update
cd source
for version in $(apt-cache $apt showsrc apache2 | sed -n 's/^Version: //p' | sort -rVu); do
    apt-get $apt -qq source --download-only --tar-only "apache2=$version" && break
done
tar xf apache2_*.orig.tar.*
cd httpd-2.4.*/
root="$1/root"
./configure --quiet --enable-layout=RedHat --prefix="$root/etc/httpd" --exec-prefix="$root/usr" --bindir="$root/usr/bin" \
    --sbindir="$root/usr/sbin" --sysconfdir="$root/etc/httpd/conf" --libexecdir="$root/usr/lib64/httpd/modules" \
    --datadir="$root/usr/share/httpd" --localstatedir="$root/var" --includedir="$root/usr/include/httpd" --mandir="$root/usr/share/man" \
    --with-apr=/usr/bin/apr-1-config --with-apr-util=/usr/bin/apu-1-config --with-pcre=/usr/bin/pcre2-config --enable-so \
    --enable-mpms-shared="prefork event worker" --enable-modules=none \
    --enable-mods-shared="authz_core authz_host mime dir alias env status info setenvif log_config unixd cgi cgid headers"
make --quiet -j2
make --quiet install
cd "$1"
rm -rf source apt
"#;

/// Builds it below a target folder, unless it is there.
pub(crate) fn provide(target: &Path) -> anyhow::Result<()> {
    let folder = target.join("redhat");
    let program = folder.join("root/usr/sbin/httpd");
    if program.exists() {
        println!("present: {}", program.display());
        return Ok(());
    }
    let status =
        Command::new("/bin/sh").args(["-c", SCRIPT, "sh"]).arg(&folder).status().context("cannot run /bin/sh")?;
    if !status.success() || !program.exists() {
        bail!("httpd with RHEL's layout could not be built in {}; the message stands above", folder.display());
    }
    println!("built {}", program.display());
    Ok(())
}
