#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes src/tui/theme/theme_default.c from themes/default.theme.
set -eu
cd "$(dirname "$0")/.."
out=src/tui/theme/theme_default.c
tmp=$out.new
{
    sed '/^const char/q' "$out"
    sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/    "&\\n"/; $s/$/;/' themes/default.theme
    echo '/* clang-format on */'
} >"$tmp"
mv "$tmp" "$out"
