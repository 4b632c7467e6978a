#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Are packages the same bytes wherever they are built? Unpacks the commit that is checked out into two folders of different names, runs
# `make dist` in each, libraries and all, and compares what it leaves. Only the compiler of build/zig and fetched sources are shared. Some
# minutes.
#
# usage: tools/dist_check.sh

set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
say() { printf 'dist-check: %s\n' "$*"; }
work=$(mktemp -d "${TMPDIR:-/var/tmp}/dist-check.XXXXXX")
trap 'rm -rf "$work"' EXIT
commit=$(git rev-parse --short=12 HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
unset DEPS BUILD CC

build() { # folder
    mkdir -p "$work/$1/build/zig/deps"
    git archive HEAD | tar -x -C "$work/$1"
    printf '%s\n' "$commit" >"$work/$1/COMMIT"
    # Fetched once; a source is taken by its SHA-256, from wherever it came.
    cp -r "$here/build/zig/deps/src" "$work/$1/build/zig/deps/" 2>/dev/null || true
    make -C "$work/$1" --no-print-directory -j"${JOBS:-2}" ZIG_HOME="$here/build/zig/zig" dist >"$work/$1.log" 2>&1 || {
        tail -n 25 "$work/$1.log" >&2
        say "the build failed"
        exit 1
    }
}

build one
build another/and-deeper
status=0
for file in "$work"/one/build/dist/*; do
    name=${file##*/}
    if cmp -s "$file" "$work/another/and-deeper/build/dist/$name"; then
        say "same bytes: $name $(sha256sum <"$file" | cut -c1-16)"
    else
        say "DIFFERENT: $name"
        status=1
    fi
done
[ "$(find "$work/one/build/dist" -type f | wc -l)" -eq 4 ] || { say "four packages were expected"; status=1; }
exit $status
