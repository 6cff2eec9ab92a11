# Builds mod_admission into the folder $1, as $1/mod_admission.so. The checkout is left as it is.
set -eu
command -v apxs2 >/dev/null || command -v apxs >/dev/null || { echo 'no apxs here; install the package apache2-dev' >&2; exit 1; }
command -v make >/dev/null || { echo 'no make here; install the package make' >&2; exit 1; }
compiler=${CC:-cc}
command -v "${compiler%% *}" >/dev/null || { echo "no C compiler here ($compiler); install the package gcc" >&2; exit 1; }
make -s -j"$(nproc)" -C "$(dirname "$0")/../../modules/mod_admission" BUILD="$1/admission" all
ln -s admission/mod_admission.so "$1/mod_admission.so"
