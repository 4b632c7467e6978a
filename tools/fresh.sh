#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Proves the README's two commands on a bare system: makes a minimal Debian 12 (debootstrap, no make, no compiler), clones
# this repository's HEAD into it, and runs ./run demo (which then prints a screen) and ./run test there.
#
# usage: tools/fresh.sh [WORK-FOLDER] [COMMAND...]      as root; COMMAND instead of the two, e.g. ./run deps
#
# The system is made once and kept as a tarball in WORK-FOLDER. Everything is mounted in namespaces of its own, so that
# nothing is left mounted or running, however it ends. The caller's apt mirror, certificates, proxy and pip settings (local
# package folders and files too) are carried along; the commands themselves get nothing else.

set -euo pipefail

SUITE=bookworm
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/debian.sh
. "$here/tools/debian.sh"
say() { printf 'fresh: %s\n' "$*"; }
die() { printf 'fresh: %s\n' "$*" >&2; exit 1; }

# --- outside: make the system, clone, enter -----------------------------------------------------------------------

make_base() { # tarball
    say "making a minimal Debian 12 ($SUITE)"
    make_debian "$SUITE" "$work/base" "$work/debootstrap.log" || exit 1
    tar -C "$work/base" --one-file-system -cf "$1.part" .
    mv "$1.part" "$1"
    rm -rf "$work/base"
}

# The caller's pip settings, wherever they come from, as one file.
pip_settings() {
    python3 -m pip config list 2>/dev/null | python3 -c '
import ast, re, sys
sections = {}
for line in sys.stdin:
    found = re.match(r"([^=]+)\.([^.=]+)=(.*)", line.strip())
    if found:
        section = "global" if found.group(1).startswith(":") else found.group(1)
        sections.setdefault(section, {})[found.group(2)] = ast.literal_eval(found.group(3))
for section, values in sections.items():
    print("[%s]" % section)
    for key, value in values.items():
        print(key + " = " + value.replace("\n", "\n    "))
' || true
}

# Local folders and files (of constraints, say) that these settings name. The parent of an index, whose links lead beside it.
pip_paths() {
    pip_settings | grep -oE '(file://)?/[^ ,]+' | sed 's,^file://,,' | while read -r path; do
        case $path in */simple | */simple/) path=$(dirname "$path") ;; esac
        [ -e "$path" ] && printf '%s\n' "$path"
    done | sort -u || true
}

prepare_root() {
    rm -rf "$root"
    mkdir -p "$root"
    tar -C "$root" -xf "$tarball"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
    mkdir -p "$root/etc/ssl/certs"
    [ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    for file in /etc/apt/apt.conf.d/*; do
        # Settings that make apt accept this system's mirror; hooks of programs that are not in there are left behind.
        if [ -f "$file" ] && ! grep -qE 'Pre-Install|Post-Invoke|Pre-Invoke|/usr/' "$file"; then
            cp -L "$file" "$root/etc/apt/apt.conf.d/"
        fi
    done
    pip_settings >"$root/etc/pip.conf"
    git -c safe.directory="$here" clone -q --no-hardlinks "$here" "$root/probing-top"
    for tool in make gcc cc clang cmake git python3; do
        [ ! -e "$root/usr/bin/$tool" ] || die "$tool is already in the bare system"
    done
}

# --- inside: namespaces of our own, then the commands -------------------------------------------------------------

mount_all() {
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount -t tmpfs -o mode=755 dev "$root/dev"
    mkdir -p "$root/dev/pts" "$root/dev/shm"
    for node in null zero full random urandom tty; do
        touch "$root/dev/$node"
        mount --bind "/dev/$node" "$root/dev/$node"
    done
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    pip_paths | while read -r path; do
        if [ -d "$path" ]; then
            mkdir -p "$root$path"
            mount --bind "$path" "$root$path"
        elif [ ! -e "$root$path" ]; then # a copy, which packages may replace
            mkdir -p "$(dirname "$root$path")"
            cp -L "$path" "$root$path"
        fi
    done
}

enter() { # command...
    local carried=() name
    while IFS='=' read -r name _; do
        case $name in
        PIP_* | http_proxy | https_proxy | no_proxy | HTTP_PROXY | HTTPS_PROXY | NO_PROXY | SSL_CERT_FILE | SSL_CERT_DIR | \
            REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | DEMO_JOB | PROBING_TEST_REQUIRE) carried+=("$name=${!name}") ;;
        esac
    done < <(env)
    # With no terminal on any standard stream, as in CI.
    chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        TERM=dumb "${carried[@]}" /bin/sh -c 'cd /probing-top && exec "$@"' sh "$@" </dev/null 2>&1 | cat
}

prove() {
    mount_all
    if [ $# -gt 0 ]; then
        enter "$@"
        return
    fi
    # What README promises may not be skipped here.
    export PROBING_TEST_REQUIRE=${PROBING_TEST_REQUIRE:-torch,tmux,ptrace,gdb,pytest,python,py3.11}
    say "./run demo"
    SECONDS=0
    enter ./run demo | tee "$work/demo.txt"
    local demo_s=$SECONDS
    grep -q 'MainThread' "$work/demo.txt" || die "./run demo showed no MainThread"
    grep -qE 'train_step|train.py' "$work/demo.txt" || die "./run demo showed no frame of the training job"
    say "./run test"
    rm -f "$work/passed.txt"
    SECONDS=0
    enter ./run test | tee "$work/test.txt"
    local test_s=$SECONDS
    cp "$root/probing-top/build/tests/passed.txt" "$work/passed.txt" # of functional tests, for .ci/run
    tail -n 1 "$work/test.txt" | grep -qE '^[0-9]+ passed, 0 failed, [0-9]+ skipped$' || die "./run test did not pass"
    say "both commands work on a bare Debian 12, after $((demo_s / 60)) and $((test_s / 60)) minutes: $(tail -n 1 "$work/test.txt")"
}

[ "$(id -u)" -eq 0 ] || die "must be run as root (debootstrap and chroot need it)"
if [ "${1:-}" = --inside ]; then
    work=$2
    root=$work/root
    shift 2
    prove "$@"
    exit
fi

command -v debootstrap >/dev/null || die "debootstrap is missing; ./run fresh installs it"
mkdir -p "${1:-$here/build/fresh}"
work=$(cd "${1:-$here/build/fresh}" && pwd)
[ $# -eq 0 ] || shift
root=$work/root
tarball=$work/$SUITE-minbase.tar
exec 9>"$work/.lock"
flock -n 9 || die "another run works in $work"
[ -z "$(git -C "$here" status --porcelain)" ] || say "there are uncommitted changes; what is proved is HEAD"
[ -f "$tarball" ] || make_base "$tarball"
prepare_root
status=0
unshare --mount --pid --fork --kill-child "$0" --inside "$work" "$@" || status=$?
rm -rf --one-file-system "$root"
exit $status
