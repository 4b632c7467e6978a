#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of reading and of attaching over Pythons that this system does not have: 3.13, 3.14, 3.15 and their debug
# builds of Debian unstable, 3.9 of Debian 11 (an older C library), whose debug build is refused. Each Debian is made once and
# kept in BUILD/matrix; its Pythons run inside by chroot, the programs under test outside, as with a job in a container.
#
# usage: tools/matrix.sh BUILD [PYTEST-ARGUMENT...]      as root
#
# Everything is mounted in a namespace of its own, so that nothing is left mounted, however it ends. Exit status 1 when a
# test failed or a Python could not be had.

set -uo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/debian.sh
. "$here/tools/debian.sh"
say() { printf 'matrix: %s\n' "$*"; }
die() { printf 'matrix: %s\n' "$*" >&2; exit 1; }

# suite, name of the Python in it, minor version that the tests know it by ("refused": it is told why not), packages
MATRIX=(
    "sid python3.13 3.13 python3.13"
    "sid python3.13d 3.13 python3.13-dbg"
    "sid python3.14 3.14 python3.14"
    "sid python3.14d 3.14 python3.14-dbg"
    "sid python3.15 3.15 python3.15"
    "sid python3.15d 3.15 python3.15-dbg"
    "bullseye python3.9 3.9 python3.9"
    "bullseye python3.9d refused python3.9-dbg"
)

# --- outside: make the systems, enter a mount namespace ---------------------------------------------------------

packages_of() { # suite
    local row
    for row in "${MATRIX[@]}"; do
        read -r suite _ _ packages <<<"$row"
        [ "$suite" != "$1" ] || printf '%s\n' $packages
    done | sort -u
}

make_all() {
    local suite packages
    for suite in $(printf '%s\n' "${MATRIX[@]}" | cut -d' ' -f1 | sort -u); do
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

test_row() { # suite python minor
    local root=$work/$1 launcher=$work/bin/$1-$2
    if [ ! -x "$root/usr/bin/$2" ]; then
        say "$2 of $1: not there"
        return 1
    fi
    write_launcher "$root" "$2" "$launcher"
    say "$2 of Debian $1: $(chroot "$root" "/usr/bin/$2" -VV 2>&1 | head -n 1)"
    if [ "$3" = refused ]; then
        PROBING_TEST_REFUSED_PYTHON=$launcher PROBING_TEST_REQUIRE=refused-python,ptrace "$here/tests/run" --build "$build" \
            --part functional --match test_a_debug_build -- "${arguments[@]}"
        return
    fi
    PROBING_TEST_PYTHONS=$launcher PROBING_TEST_REQUIRE=py$3,ptrace "$here/tests/run" --build "$build" --part functional \
        --match "(test_pystack or test_way_stacks or test_worker or test_tasks) and $3" -- "${arguments[@]}"
}

run_all() {
    local failed=0 row
    mkdir -p "$work/bin"
    for suite in $(printf '%s\n' "${MATRIX[@]}" | cut -d' ' -f1 | sort -u); do
        [ ! -f "$work/$suite.made" ] || mount_all "$work/$suite" || die "cannot mount into $work/$suite"
    done
    for row in "${MATRIX[@]}"; do
        read -r suite python minor _ <<<"$row"
        test_row "$suite" "$python" "$minor" || failed=$((failed + 1))
    done
    [ $failed -eq 0 ] || die "$failed of ${#MATRIX[@]} Pythons did not pass"
    say "all ${#MATRIX[@]} Pythons passed"
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
make_all
unshare --mount "$0" --inside "$build" "$@"
