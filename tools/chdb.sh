#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Gives the tests the newest dialect of ClickHouse: a virtual environment with chdb, the engine as a Python module (0.9 GB). Without a network
# the tests that need it are skipped.
#
# usage: tools/chdb.sh FOLDER      prints the path of its Python; nothing where it cannot be made

set -u

WANTED=chdb==4.4.0

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
if [ "$(cat "$folder/wanted" 2>/dev/null)" != "$WANTED" ]; then
    rm -rf "$folder/venv"
    for python in "${PYTHON3:-python3}" python3 /usr/bin/python3; do
        ! "$python" -m venv "$folder/venv" >"$folder/log" 2>&1 || break
    done
    if timeout 300 "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --retries 1 --timeout 10 \
        --only-binary :all: "$WANTED" >>"$folder/log" 2>&1 && "$folder/venv/bin/python" -c 'import chdb' >>"$folder/log" 2>&1; then
        printf '%s\n' "$WANTED" >"$folder/wanted"
    else
        printf 'tests: no chdb, see %s\n' "$folder/log" >&2
        exit 0
    fi
fi
printf '%s\n' "$folder/venv/bin/python"
