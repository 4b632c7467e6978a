#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the samplers that bench/sampler.py measures itself against (austin, py-spy) into BUILD/bench-venv. Without a
# network the benchmark runs without them.
#
# usage: tools/bench_peers.sh BUILD

set -eu

venv=$1/bench-venv
[ -x "$venv/bin/austin" ] && [ -x "$venv/bin/py-spy" ] && exit 0
echo "bench: installing austin and py-spy into $venv" >&2
python3 -m venv "$venv" >/dev/null 2>&1 || {
    echo "bench: no virtual environment could be made; measuring without them" >&2
    exit 0
}
for package in austin-dist py-spy; do
    "$venv/bin/pip" install -q --disable-pip-version-check "$package" >/dev/null 2>&1 ||
        echo "bench: $package could not be installed; measuring without it" >&2
done
