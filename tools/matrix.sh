#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of reading, attaching and sampling over Pythons that this system does not have: 3.13, 3.14, 3.15 and their debug
# builds of Debian unstable, 3.13 of Debian 13, 3.9 of Debian 11 (older C libraries), whose debug build is refused, and free-threaded builds.
# Each Debian is made once and kept in BUILD/matrix; its Pythons run inside by chroot, the programs under test outside, as with a
# job in a container. Free-threaded Pythons are in no Debian: they are built inside Debian unstable (a few minutes, once) from the
# newest source of that minor version that Debian has, or from BUILD/matrix/sources/python3.X_*.orig.tar.xz if one lies there.
#
# usage: tools/matrix.sh BUILD [PYTEST-ARGUMENT...]      as root
#
#   MATRIX_ONLY=PATTERN     only rows whose Python matches that regular expression (3.14, t$)
#   MATRIX_SAMPLES=NUMBER   samples of the program whose stacks are known, of each Python (20000)
#   MATRIX_BENCH=OPTIONS    what sampling costs there instead of the tests: bench/sampler.py --only peers OPTIONS, into
#                           BUILD/bench/sampler-PYTHON.json; beside it profiling.sampling, and austin if /usr/bin of that Debian has one
#
# Everything is mounted in a namespace of its own, so that nothing is left mounted, however it ends. Exit status 1 when a
# test failed or a Python could not be had; one whose source Debian does not have (any more) is left out and named at the end.

set -uo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/debian.sh
. "$here/tools/debian.sh"
say() { printf 'matrix: %s\n' "$*"; }
die() { printf 'matrix: %s\n' "$*" >&2; exit 1; }

# suite, name of the Python in it, minor version that the tests know it by ("refused": with the reason), packages
MATRIX=(
    "sid python3.13 3.13 python3.13"
    "sid python3.13d 3.13 python3.13-dbg"
    "sid python3.14 3.14 python3.14"
    "sid python3.14d 3.14 python3.14-dbg"
    "sid python3.15 3.15 python3.15"
    "sid python3.15d 3.15 python3.15-dbg"
    "trixie python3.13 3.13 python3.13"
    "bullseye python3.9 3.9 python3.9"
    "bullseye python3.9d refused python3.9-dbg"
    "sid python3.13t 3.13 -"
    "sid python3.14t 3.14 -"
    "sid python3.15t 3.15 -"
)

# What it takes to build one ("-" in place of packages), and where: source suites newest first.
BUILD_PACKAGES="gcc make libc6-dev libffi-dev zlib1g-dev"
SOURCE_SUITES="sid testing stable"
samples=${MATRIX_SAMPLES:-20000}
samples_s=$((samples > 60000 ? samples / 1000 : 60))

wanted() { # python
    [[ $1 =~ ${MATRIX_ONLY:-.} ]]
}

# --- outside: make the systems, enter a mount namespace ---------------------------------------------------------

suites() {
    local row
    for row in "${MATRIX[@]}"; do
        read -r suite python _ <<<"$row"
        ! wanted "$python" || printf '%s\n' "$suite"
    done | sort -u
}

packages_of() { # suite
    local row
    for row in "${MATRIX[@]}"; do
        read -r suite _ _ packages <<<"$row"
        [ "$suite" = "$1" ] || continue
        [ "$packages" != - ] || packages=$BUILD_PACKAGES
        printf '%s\n' $packages
    done | sort -u
}

# The source of a version that Debian has: the newest whose archive is there. Checked by apt against the signed list.
fetch_source() { # root package
    local root=$1 package=$2 suite version
    for suite in $SOURCE_SUITES; do printf 'deb-src %s %s main\n' "$(system_mirror)" "$suite"; done \
        >"$root/etc/apt/sources.list.d/matrix-source.list"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    # A list that is older than it should be is as good as what debootstrap took.
    chroot "$root" apt-get -qq -o Acquire::Check-Valid-Until=false update || return 1
    chroot "$root" apt-cache showsrc "$package" 2>/dev/null | sed -n 's/^Version: //p' | sort -ruV | while read -r version; do
        ! chroot "$root" sh -c "cd /var/tmp && apt-get -qq source --download-only '$package=$version'" || break
    done
    mv "$root"/var/tmp/"$package"_*.orig.tar.xz "$work/sources/" 2>/dev/null
}

# A free-threaded Python at /opt/NAME of that root, and /usr/bin/NAME, which starts it. 2 when there is no source.
build_python() { # root name minor
    local root=$1 name=$2 package=python$3 source
    mkdir -p "$work/sources"
    ls "$work/sources/$package"_*.orig.tar.xz >/dev/null 2>&1 || fetch_source "$root" "$package" >"$work/$name.log" 2>&1
    source=$(ls -v "$work/sources/$package"_*.orig.tar.xz 2>/dev/null | tail -n 1)
    [ -n "$source" ] || return 2
    [ "$(cat "$root/opt/$name/made" 2>/dev/null)" != "${source##*/}" ] || return 0
    say "building $name from ${source##*/}"
    rm -rf --one-file-system "$root/opt/$name"
    mkdir -p "$root/opt/$name" && tar -xf "$source" -C "$root/opt/$name" --strip-components=1 || return 1
    chroot "$root" sh -ec "cd /opt/$name && ./configure --disable-gil --disable-test-modules --without-ensurepip &&
        make -j\$(nproc)" >"$work/$name.log" 2>&1 || { tail -n 5 "$work/$name.log" >&2; return 1; }
    printf '#!/bin/sh\nexec /opt/%s/python "$@"\n' "$name" >"$root/usr/bin/$name"
    chmod +x "$root/usr/bin/$name"
    printf '%s\n' "${source##*/}" >"$root/opt/$name/made"
}

build_all() {
    local row suite python minor packages
    for row in "${MATRIX[@]}"; do
        read -r suite python minor packages <<<"$row"
        [ "$packages" = - ] && [ -f "$work/$suite.made" ] && wanted "$python" || continue
        build_python "$work/$suite" "$python" "$minor"
        case $? in
        0) ;;
        2) rm -f "$work/$suite/usr/bin/$python" && printf '%s\n' "$python" >>"$work/no-source" ;;
        *) rm -f "$work/$suite/usr/bin/$python" ;;
        esac
    done
}

make_all() {
    local suite packages
    for suite in $(suites); do
        packages=$(packages_of "$suite")
        [ "$(cat "$work/$suite.made" 2>/dev/null)" != "$packages" ] || continue
        rm -f "$work/$suite.made"
        say "making a minimal Debian ($suite)"
        # shellcheck disable=SC2086
        if make_debian "$suite" "$work/$suite" "$work/$suite.log" $packages; then
            printf '%s\n' "$packages" >"$work/$suite.made"
        else
            say "$suite could not be made"
        fi
    done
}

# --- inside ------------------------------------------------------------------------------------------------------

# What the tests share with their jobs, at the same places: their files, the sources, processes and devices.
mount_all() { # root
    local root=$1 folder
    mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" || return 1
    for folder in "${TMPDIR:-/tmp}" "$here" "$build"; do
        mkdir -p "$root$folder" && mount --bind "$folder" "$root$folder" || return 1
    done
}

# An interpreter for the tests that is one inside that root.
write_launcher() { # root python file
    printf '#!/bin/sh\nexec chroot "%s" /usr/bin/%s "$@"\n' "$1" "$2" >"$3"
    chmod +x "$3"
}

bench_row() { # suite python launcher
    local austin=$work/bin/$1-austin peer=()
    if [ -x "$work/$1/usr/bin/austin" ]; then
        write_launcher "$work/$1" austin "$austin"
        peer=(--peer "austin=$austin")
    fi
    mkdir -p "$build/bench"
    # shellcheck disable=SC2086
    "$here/bench/sampler.py" --build "$build" --only peers --jobs 'python_*' --python "$3" "${peer[@]}" $MATRIX_BENCH \
        >"$build/bench/sampler-$2.json" && "$here/bench/sampler.py" --table "$build/bench/sampler-$2.json"
}

test_row() { # suite python minor
    local root=$work/$1 launcher=$work/bin/$1-$2
    if [ ! -x "$root/usr/bin/$2" ]; then
        say "$2 of $1: not there"
        return 1
    fi
    write_launcher "$root" "$2" "$launcher"
    export PROBING_TEST_PYTHONS=$launcher PROBING_TEST_ANY_PYTHON=$launcher PROBING_KNOWN_SAMPLES=$samples
    say "$2 of Debian $1: $(chroot "$root" "/usr/bin/$2" -VV 2>&1 | head -n 1)"
    if [ -n "${MATRIX_BENCH-}" ]; then
        [ "$3" = refused ] || bench_row "$1" "$2" "$launcher"
        return
    fi
    if [ "$3" = refused ]; then
        PROBING_TEST_REFUSED_PYTHON=$launcher PROBING_TEST_REQUIRE=refused-python,ptrace "$here/tests/run" --build "$build" \
            --part functional --match test_a_debug_build -- "${arguments[@]}"
        return
    fi
    # What is tried on each Python; of sampling also what is tried on one that is at hand, and several threads together; and the
    # root as a container's, with the C library in it.
    local known=$build/tests/known/known.so modules="test_pystack or test_end_to_end or test_autostart or test_python_versions or test_locals or test_outside or test_worker or test_waits"
    local match="(($modules or test_tasks or test_native or test_inject_remote_exec) and $3) or another_system"
    export PROBING_TEST_ROOTS=$root=/usr/bin/$2
    "$here/bench/known_answer.py" --build "$build" --samples "$samples" --seconds "$samples_s" --mode no-inject,block --python "$launcher" ||
        return 1
    if "$launcher" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$known" 2>/dev/null; then
        match="($match) or (test_signal_sampler and $3) or (test_signal_sampler and not [3.)"
        "$here/bench/known_answer.py" --build "$build" --samples "$samples" --seconds "$samples_s" --threads 4 --mode exact \
            --python "$launcher" || return 1
    else
        say "$2 of Debian $1: its C library is too old for what the tests load into jobs; sampling is not tried"
    fi
    PROBING_TEST_REQUIRE=py$3,ptrace,roots "$here/tests/run" --build "$build" --part functional --long --match "$match" -- \
        "${arguments[@]}"
}

run_all() {
    local failed=0 tried=0 row
    mkdir -p "$work/bin"
    for suite in $(suites); do
        [ ! -f "$work/$suite.made" ] || mount_all "$work/$suite" || die "cannot mount into $work/$suite"
    done
    for row in "${MATRIX[@]}"; do
        read -r suite python minor _ <<<"$row"
        wanted "$python" && ! grep -qsx "$python" "$work/no-source" || continue
        tried=$((tried + 1))
        test_row "$suite" "$python" "$minor" || failed=$((failed + 1))
    done
    [ ! -s "$work/no-source" ] || say "left out, Debian has no source: $(tr '\n' ' ' <"$work/no-source")"
    [ $failed -eq 0 ] || die "$failed of $tried Pythons did not pass"
    say "all $tried Pythons passed"
}

[ "$(id -u)" -eq 0 ] || die "must be run as root (debootstrap and chroot need it)"
[ $# -ge 1 ] || die "usage: tools/matrix.sh BUILD [PYTEST-ARGUMENT...]"
if [ "$1" = --inside ]; then
    build=$2
    work=$build/matrix
    shift 2
    arguments=("$@")
    run_all
    exit
fi
mkdir -p "$1/matrix"
build=$(cd "$1" && pwd)
work=$build/matrix
shift
exec 9>"$work/.lock"
flock -n 9 || die "another run works in $work"
rm -f "$work/no-source"
make_all
build_all
unshare --mount "$0" --inside "$build" "$@"
