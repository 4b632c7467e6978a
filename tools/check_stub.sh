#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that machine code which is copied into another process refers to nothing outside its own section: a constant
# that the compiler put elsewhere, or a call, would read or jump to whatever lies there in the other process.
#
# usage: tools/check_stub.sh OBJECT SECTION

set -u

object=$1
section=$2
# Section numbers: of the section itself, and of every symbol a relocation in it names.
own=$(readelf -SW "$object" | sed -nE "s/^ *\[ *([0-9]+)\] $section .*/\1/p")
[ -n "$own" ] || { echo "check-stub: $object: no section $section" >&2; exit 1; }

outside=$(
    {
        readelf -sW "$object" | awk 'NF >= 7 && $1 ~ /^[0-9]+:$/ { sub(":", "", $1); print "symbol", $1, $7, $8 }'
        readelf -rW "$object" | awk -v wanted="'.rela$section'" '
            /^Relocation section/ { inside = index($0, wanted) > 0; next }
            inside && $1 ~ /^[0-9a-f]+$/ { print "relocation", $1, substr($2, 1, length($2) - 8), $5 }'
    } | awk -v own="$own" '
        function hex(s,    i, n) {
            n = 0
            for (i = 1; i <= length(s); i++)
                n = n * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
            return n
        }
        $1 == "symbol" { home[$2] = $3 }
        $1 == "relocation" && home[hex($3)] != own { print $4 " at 0x" $2 }'
)
[ -z "$outside" ] && exit 0
printf '%s\n' "$outside" | while read -r line; do
    echo "check-stub: $object: $section refers to $line, which is outside of it" >&2
done
exit 1
