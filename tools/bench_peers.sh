#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the samplers that bench/sampler.py measures itself against (austin, py-spy) into BUILD/bench-venv. Without a
# network the benchmark runs without them.
#
# usage: tools/bench_peers.sh BUILD

set -eu

venv=$1/bench-venv
runs() { "$venv/bin/$1" --version >/dev/null 2>&1; }
runs austin && runs py-spy && exit 0
echo "bench: installing austin and py-spy into $venv" >&2
python3 -m venv "$venv" >/dev/null 2>&1 || {
    echo "bench: no virtual environment could be made; measuring without them" >&2
    exit 0
}
install() { "$venv/bin/pip" install -q --disable-pip-version-check "$1" >/dev/null 2>&1; }
runs py-spy || install py-spy || true
runs austin || install austin-dist || true
# The newest austin wants a newer C library than some systems have; the one before runs on all.
runs austin || install 'austin-dist<4' || true
for peer in austin py-spy; do
    runs "$peer" || echo "bench: $peer could not be installed; measuring without it" >&2
done
