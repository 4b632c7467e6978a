#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs, uses and removes the packages of `make dist` in bare Debians 11, 12, 13 and unstable: the tarball as a user without root and
# with a /tmp from which nothing may be started, the wheel in an environment of that user, the .deb as root (tools/matrix_install.py).
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

run_one() { # suite kind
    local root=$work/$1
    mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/mnt" &&
        mount -t tmpfs -o noexec,nosuid,mode=1777 tmpfs "$root/tmp" || die "cannot mount into $root"
    cp "$dist"/probing* "$here/tools/matrix_install.py" "$root/mnt/"
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
    for kind in ${KINDS:-tarball wheel deb}; do
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
