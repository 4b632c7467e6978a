#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs, uses and removes the packages of `make dist` in bare Debians 11, 12, 13 and unstable: the tarball as a user without root and
# with a /tmp from which nothing may be started, the wheel in an environment of that user, the .deb as root (tools/matrix_install.py).
# Kind "conda" is the wheel in a Python as conda installs one: all of it in a folder of the user, with a libpython found relative to its
# program. It is made of CONDA_PYTHON, the prefix of a CPython (default: a pyenv's 3.11), and left out without one or without patchelf.
# Each Debian is made once and kept in build/matrix-install.
#
# usage: tools/matrix_install.sh DIST      as root; SUITES="bullseye sid" for some, KINDS="wheel deb"

set -uo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/debian.sh
. "$here/tools/debian.sh"
say() { printf 'matrix-install: %s\n' "$*"; }
die() { printf 'matrix-install: %s\n' "$*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || die "must be run as root (debootstrap and chroot need it)"
work=$here/build/matrix-install
suites=${SUITES:-bullseye bookworm trixie sid}

# The Debian of this suite is older than the C library that such a Python was built with.
is_too_old() { [ "$1" = bullseye ]; }

conda_python=${CONDA_PYTHON:-$(find "$HOME"/.pyenv/versions -maxdepth 1 -name '3.11.*' 2>/dev/null | sort | tail -n 1)}

put_conda() { # folder
    local program
    mkdir "$1"
    tar -C "$conda_python" --exclude=test --exclude=__pycache__ --exclude='*.a' -c bin lib | tar -x -C "$1" || return 1
    for program in "$1"/bin/python3.[0-9] "$1"/bin/python3.[0-9][0-9]; do
        [ ! -f "$program" ] || patchelf --set-rpath "\$ORIGIN/../lib" "$program" || return 1
    done
}

run_one() { # suite kind
    local root=$work/$1
    mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/mnt" &&
        mount -t tmpfs -o noexec,nosuid,mode=1777 tmpfs "$root/tmp" || die "cannot mount into $root"
    cp "$dist"/probing* "$here/tools/matrix_install.py" "$root/mnt/"
    [ "$2" != conda ] || put_conda "$root/mnt/conda" || die "no conda-like Python can be made of $conda_python"
    chmod -R a+rX "$root/mnt"
    chroot "$root" env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8 TERM=xterm-256color python3 /mnt/matrix_install.py "$2"
}

if [ "${1-}" = --inside ]; then
    dist=$2
    run_one "$3" "$4"
    exit
fi
[ $# -eq 1 ] || die "usage: tools/matrix_install.sh DIST"
dist=$(cd "$1" && pwd)
mkdir -p "$work"
exec 9>"$work/.lock"
flock -n 9 || die "another run works in $work"
passed=0
failed=0
for suite in $suites; do
    if [ ! -f "$work/$suite.made" ]; then
        say "making a minimal Debian ($suite)"
        make_debian "$suite" "$work/$suite" "$work/$suite.log" python3 python3-venv || { failed=$((failed + 1)); continue; }
        touch "$work/$suite.made"
    fi
    for kind in ${KINDS:-tarball wheel deb conda}; do
        if [ "$kind" = conda ] && { is_too_old "$suite" || [ -z "$conda_python" ] || [ ! -d "$conda_python/bin" ] || ! command -v patchelf >/dev/null; }; then
            say "$suite: no conda-like Python: it takes patchelf, CONDA_PYTHON and a C library as new as its own"
            continue
        fi
        if unshare --mount "$0" --inside "$dist" "$suite" "$kind"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            say "FAILED: the $kind in $suite"
        fi
    done
done
say "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
