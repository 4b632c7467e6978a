#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes the table of supported Pythons into the README, between its two marks, from the descriptor that the code uses.
#
# usage: tools/readme_versions.sh BUILD [README]

set -eu

readme=${2:-$(dirname "$0")/../README.md}
table=$("$1/tests/tools/pystack_versions")
grep -q '^<!-- versions -->$' "$readme" && grep -q '^<!-- versions end -->$' "$readme" ||
    { echo "readme_versions: $readme has no marks for the table" >&2; exit 1; }
awk -v table="$table" '
    /^<!-- versions end -->$/ { inside = 0 }
    !inside { print }
    /^<!-- versions -->$/ { print table; inside = 1 }
    ' "$readme" >"$readme.new"
cat "$readme.new" >"$readme"
rm -f "$readme.new"
