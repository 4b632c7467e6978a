#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs benchmarks one after the other. Each prints JSON on stdout, which is also kept in BUILD/bench/NAME.json.
#
# usage: tools/bench.sh BUILD PROGRAM-OR-SCRIPT...

set -eu

build=$1
shift
PROBING_BUILD=$(cd "$build" && pwd)
PYTHON=$(tools/python_with_torch.sh "${VENV:-build/venv}")
export PROBING_BUILD PYTHON
mkdir -p "$build/bench"
status=0
for bench in "$@"; do
    name=$(basename "$bench" .py)
    out=$build/bench/$name.json
    case $bench in
    *.py) "${PYTHON3:-python3}" "$bench" >"$out" || status=1 ;;
    *) "$bench" >"$out" || status=1 ;;
    esac
    printf '%s:\n' "$name"
    cat "$out"
done
exit $status
