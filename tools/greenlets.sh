#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Gives the tests a greenlet module for every Python they find: FOLDER/3.11/greenlet and so on, by that Python's own pip. Nothing is
# installed into the Pythons themselves. Without a network the tests that need one are skipped.
#
# usage: tools/greenlets.sh FOLDER [MODULE [WANTED [OLDEST]]]     prints FOLDER's absolute path
#
# Another MODULE than greenlet in the same way: what pip is to install (debugpy==1.8.14), for Python 3.OLDEST and later.

set -u

folder=$1
module=${2:-greenlet}
wanted=${3:-$module}
oldest=${4:-6}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
printf '%s\n' "$folder"
say() { printf 'tests: %s\n' "$*" >&2; }

# One at a time; and when it failed a few minutes ago it is not tried again.
if command -v flock >/dev/null 2>&1; then
    exec 9>"$folder/lock"
    flock 9
fi
[ -z "$(find "$folder" -maxdepth 1 -name failed -mmin -10 2>/dev/null)" ] || exit 0
rm -f "$folder/failed"

pythons=$(printf '%s' "${PROBING_TEST_PYTHONS:-}" | tr ':' '\n')
for minor in 6 7 8 9 10 11 12 13 14 15; do
    pythons="$pythons $(command -v "python3.$minor" || true)"
done
for python in $pythons "$HOME"/.pyenv/versions/*/bin/python3; do
    [ -x "$python" ] || continue
    minor=$("$python" -c 'import pip, sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    [ ! -e "$folder/$minor" ] || continue
    case $minor in 2.* | 3.[0-5]) continue ;; esac
    [ "${minor#3.}" -ge "$oldest" ] || continue
    "$python" -c "import $module" >/dev/null 2>&1 && continue
    begun=$(date +%s)
    if timeout 60 "$python" -m pip install -q --disable-pip-version-check --no-input --retries 0 --timeout 10 \
        --only-binary :all: --target "$folder/$minor.new" "$wanted" >"$folder/$minor.log" 2>&1; then
        mv "$folder/$minor.new" "$folder/$minor"
    else
        rm -rf "$folder/$minor.new"
        say "no $module for Python $minor, see $folder/$minor.log"
        : >"$folder/failed"
        [ $(($(date +%s) - begun)) -lt 8 ] || break # no network: it would take as long for the others
    fi
done
exit 0
