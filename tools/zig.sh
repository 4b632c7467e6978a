#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fetches the compiler for `make ZIG=1`, the one of mk/zig.txt from PyPI, into a folder, and writes FOLDER/bin/cc: a compiler of C for
# x86-64 Linux with a C library as old as glibc 2.17, and FOLDER/bin/musl-cc, for static programs. With nothing to do it does nothing.
#
# usage: tools/zig.sh FOLDER

set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
die() { printf 'zig: %s\n' "$*" >&2; exit 1; }

[ $# -eq 1 ] || die "usage: tools/zig.sh FOLDER"
mkdir -p "$1"
dest=$(cd "$1" && pwd)
exec 9>"$dest/.lock"
flock 9
wanted=$(cat "$here/mk/zig.txt" "$0" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$dest/stamp" 2>/dev/null)" = "$wanted" ]; then
    touch "$dest/stamp"
    exit 0
fi

rm -rf "$dest/stamp" "$dest/ziglang" "$dest/cache"
mkdir -p "$dest/bin" "$dest/wheel"
python=
for p in python3 /usr/bin/python3; do
    ! "$p" -m pip --version >/dev/null 2>&1 || { python=$p; break; }
done
[ -n "$python" ] || die "pip is missing; ./run dist installs what is needed"
printf 'zig: fetching the compiler from PyPI\n'
"$python" -m pip -q download --no-deps --require-hashes --only-binary :all: --platform manylinux_2_12_x86_64 \
    -d "$dest/wheel" -r "$here/mk/zig.txt" || die "the compiler (mk/zig.txt) could not be fetched from PyPI"
"$python" -m zipfile -e "$dest"/wheel/ziglang-*.whl "$dest" || die "the wheel of the compiler could not be unpacked"
rm -rf "$dest/wheel"
chmod +x "$dest/ziglang/zig"
compiler() { # name target
    cat >"$dest/bin/$1" <<END
#!/bin/sh
here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
export ZIG_GLOBAL_CACHE_DIR="\$here/cache" ZIG_LOCAL_CACHE_DIR="\$here/cache"
exec "\$here/ziglang/zig" cc -target $2 "\$@"
END
    chmod +x "$dest/bin/$1"
}
compiler cc x86_64-linux-gnu.2.17
compiler musl-cc x86_64-linux-musl
printf '%s\n' "$wanted" >"$dest/stamp"
