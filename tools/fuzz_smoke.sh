#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs every built fuzz target for a while, starting from its corpus.
#
# usage: tools/fuzz_smoke.sh BUILD SECONDS

set -eu

build=$1
seconds=$2
status=0
found=$build/found
mkdir -p "$found"
for fuzzer in "$build"/fuzzers/fuzz_*; do
    [ -x "$fuzzer" ] || continue
    name=$(basename "$fuzzer")
    corpus=tests/fuzz/corpus/${name#fuzz_}
    [ -d "$corpus" ] || corpus=
    seeds=$build/tests/seeds/${name#fuzz_}
    [ -d "$seeds" ] || seeds=
    scratch=$build/corpus/$name
    mkdir -p "$scratch"
    printf '%s: %s s\n' "$name" "$seconds"
    # New inputs go to the first folder; the committed corpus is only read.
    # shellcheck disable=SC2086
    if ! "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$found/$name-" "$scratch" $corpus $seeds >"$build/$name.log" 2>&1; then
        tail -n 30 "$build/$name.log"
        printf '%s: FAILED, the input is in %s\n' "$name" "$found" >&2
        status=1
    else
        grep -E 'number_of_executed_units|new_units_added' "$build/$name.log" || true
    fi
done
exit $status
