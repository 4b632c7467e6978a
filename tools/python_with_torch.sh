#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of a Python that has torch: the caller's $PYTHON, else python3, else a virtual environment that it
# makes under build/ and keeps. It reports on stderr what it does; status 1 if none is available.
#
# usage: tools/python_with_torch.sh [VENV-FOLDER]

set -u

TORCH_VERSION=2.13.0
venv=${1:-build/venv}
mkdir -p "$(dirname "$venv")"
venv=$(cd "$(dirname "$venv")" && pwd)/$(basename "$venv")
say() { printf '%s\n' "$*" >&2; }
real_path() { "$1" -c 'import sys; print(sys.executable)' 2>/dev/null; }
has_torch() { "$1" -c 'import torch' >/dev/null 2>&1; }

use_if_torch() {
    if [ -n "$1" ] && command -v "$1" >/dev/null 2>&1 && has_torch "$1"; then
        real_path "$1"
        exit 0
    fi
}
use_if_torch "${PYTHON:-}"
use_if_torch python3
exec 9>"$venv.lock"
flock 9
use_if_torch "$venv/bin/python"
if [ -n "${PYTHON:-}" ]; then
    say "PYTHON=$PYTHON has no torch"
fi
if [ -e "$venv/failed" ] && [ -z "$(find "$venv/failed" -mmin +10 2>/dev/null)" ]; then
    say "torch could not be installed a few minutes ago; see $venv/pip.log"
    exit 1
fi

# Distribution Pythons first: a virtual environment on one of them stays valid.
base=
for python in /usr/bin/python3 python3; do
    if "$python" -c 'import venv, ensurepip, sys; assert sys.version_info >= (3, 9)' >/dev/null 2>&1; then
        base=$python
        break
    fi
done
if [ -z "$base" ]; then
    say "no Python here has torch, and none can make a virtual environment (on Debian: apt-get install python3-venv)"
    exit 1
fi

say "no Python here has torch: making one in $venv (pip install torch==$TORCH_VERSION; a few minutes, once)"
rm -rf "$venv"
mkdir -p "$venv"
if "$base" -m venv "$venv" >"$venv/pip.log" 2>&1 &&
    "$venv/bin/python" -m pip install --disable-pip-version-check "torch==$TORCH_VERSION" >>"$venv/pip.log" 2>&1 &&
    has_torch "$venv/bin/python"; then
    real_path "$venv/bin/python"
    exit 0
fi
tail -n 5 "$venv/pip.log" >&2
touch "$venv/failed"
say "torch could not be installed; the whole log is $venv/pip.log. Use PYTHON=/path/to/a/python/with/torch or DEMO_JOB=plain"
exit 1
