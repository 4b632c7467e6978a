#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Gives the tests what other programs' authors have published about the files that exports write: Perfetto's and pprof's classes of
# Protocol Buffers and a reader of JSON schemas (pip, for the Python that runs the tests), and speedscope's schema (npm). Nothing is installed
# anywhere else. Without a network the tests that need it are skipped.
#
# usage: tools/readers.sh FOLDER      prints FOLDER's absolute path; in it python/ and speedscope.json

set -u

SPEEDSCOPE=speedscope@1.25.0
SPEEDSCOPE_SCHEMA=package/dist/release/file-format-schema.json
PACKAGES="protobuf>=6.31.1 jsonschema==4.26.0"
# Of these the descriptions of messages are read and no code is run: they need nothing else.
DESCRIPTIONS="perfetto==0.59.1 austin-python==2.4.0"

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
printf '%s\n' "$folder"
say() { printf 'readers: %s\n' "$*" >&2; }
# The one that runs the tests, see tests/run.
for python in "${PYTHON3:-python3}" python3 /usr/bin/python3; do
    ! "$python" -c 'import pytest' >/dev/null 2>&1 || break
done

# One at a time; and when it failed a few minutes ago it is not tried again.
if command -v flock >/dev/null 2>&1; then
    exec 9>"$folder/lock"
    flock 9
fi
[ -z "$(find "$folder" -maxdepth 1 -name failed -mmin -10 2>/dev/null)" ] || exit 0
rm -f "$folder/failed"

# Debian's own Python has pip in virtual environments alone.
find_pip() {
    if "$python" -m pip --version >/dev/null 2>&1; then
        printf '%s\n' "$python"
    elif [ -x "$folder/venv/bin/python" ] || "$python" -m venv "$folder/venv" >>"$folder/pip.log" 2>&1; then
        printf '%s\n' "$folder/venv/bin/python"
    fi
}

install() { # pip's arguments
    [ -n "$pip" ] && timeout 90 "$pip" -m pip install -q --disable-pip-version-check --no-input --retries 0 --timeout 10 \
        --only-binary :all: --target "$folder/python.new" "$@" >>"$folder/pip.log" 2>&1
}

# What was installed for another Python, or of other versions, is not used.
wanted=$("$python" -c 'import sys; print(sys.version_info[:2], end=" ")' 2>/dev/null)"$PACKAGES $DESCRIPTIONS"
if [ "$(cat "$folder/python/wanted" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$folder/python" "$folder/python.new" "$folder/pip.log"
    pip=$(find_pip)
    # shellcheck disable=SC2086
    if install $PACKAGES && install --no-deps $DESCRIPTIONS; then
        printf '%s\n' "$wanted" >"$folder/python.new/wanted"
        mv "$folder/python.new" "$folder/python"
    else
        rm -rf "$folder/python.new"
        say "no published classes of Perfetto and pprof, see $folder/pip.log"
        : >"$folder/failed"
    fi
fi

if [ "$(cat "$folder/speedscope.version" 2>/dev/null)" != "$SPEEDSCOPE" ]; then
    rm -f "$folder"/speedscope.json "$folder"/speedscope-*.tgz
    if ! command -v npm >/dev/null 2>&1; then
        say "no schema of speedscope: npm is not installed"
    elif (cd "$folder" && timeout 90 npm pack --silent "$SPEEDSCOPE" >npm.log 2>&1) &&
        tar -xzOf "$folder"/speedscope-*.tgz "$SPEEDSCOPE_SCHEMA" >"$folder/speedscope.new" 2>>"$folder/npm.log"; then
        mv "$folder/speedscope.new" "$folder/speedscope.json"
        printf '%s\n' "$SPEEDSCOPE" >"$folder/speedscope.version"
    else
        rm -f "$folder/speedscope.new"
        say "no schema of speedscope, see $folder/npm.log"
        : >"$folder/failed"
    fi
    rm -f "$folder"/speedscope-*.tgz
fi
exit 0
