#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Puts probing.pth and what it loads into the site-packages of a Python, or takes them out.
#
# usage: tools/install_python.sh install|uninstall PYTHON AGENT [DESTDIR]

set -eu

what=$1
python=$2
agent=$3
destdir=${4:-}
source=$(cd "$(dirname "$0")/../python" && pwd)

fail() { printf 'install-python: %s\n' "$*" >&2; exit 1; }

[ -n "$python" ] || fail "which Python? make $what-python PYTHON=/path/to/venv/bin/python"
# Debian's Python looks into dist-packages, which site knows and sysconfig does not; an old virtualenv's site has no such function.
folder=$(PROBING=0 "$python" -c '
import site, sysconfig
print((getattr(site, "getsitepackages", list)() or [sysconfig.get_paths()["purelib"]])[0])' 2>/dev/null) ||
    fail "$python does not report its site-packages: give a Python"
folder=$destdir$folder

case $what in
install)
    [ -f "$destdir$agent" ] || fail "$destdir$agent is missing: 'make install' with the same PREFIX and DESTDIR first"
    mkdir -p "$folder" || fail "$folder cannot be made"
    [ -w "$folder" ] || fail "$folder cannot be written to: run this as its owner"
    sed "s|@AGENT@|$agent|" "$source/_probing_start.py" >"$folder/_probing_start.py"
    cp "$source/probing.pth" "$folder/probing.pth"
    chmod 644 "$folder/_probing_start.py" "$folder/probing.pth"
    printf 'install-python: %s heeds $PROBING now (%s/probing.pth)\n' "$python" "$folder"
    ;;
uninstall)
    rm -f "$folder/probing.pth" "$folder/_probing_start.py" "$folder"/__pycache__/_probing_start.*.pyc
    printf 'install-python: nothing of ours is in %s any more\n' "$folder"
    ;;
esac
