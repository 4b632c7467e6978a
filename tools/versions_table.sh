#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes the table of supported Pythons into docs/pythons.md, between its two marks, from the descriptor that the code uses.
#
# usage: tools/page_versions.sh BUILD [PAGE]

set -eu

page=${2:-$(dirname "$0")/../docs/pythons.md}
table=$("$1/tests/tools/pystack_versions")
grep -q '^<!-- versions -->$' "$page" && grep -q '^<!-- versions end -->$' "$page" ||
    { echo "versions_table: $page has no marks for the table" >&2; exit 1; }
awk -v table="$table" '
    /^<!-- versions end -->$/ { inside = 0 }
    !inside { print }
    /^<!-- versions -->$/ { print table; inside = 1 }
    ' "$page" >"$page.new"
cat "$page.new" >"$page"
rm -f "$page.new"
