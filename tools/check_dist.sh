#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that the programs and the agent in a folder need no C library newer than glibc 2.17 and no library but those of glibc, and that the
# relay needs nothing.
#
# usage: tools/check_dist.sh FOLDER

set -u

status=0
for name in probing-top probing libprobing.so; do
    file=$1/$name
    complain() { printf 'check-dist: %s: %s\n' "$file" "$*" >&2; status=1; }
    [ -f "$file" ] || { complain "not built"; continue; }
    needed=$(readelf -dW "$file" | sed -nE 's/.*\(NEEDED\).*\[(.*)\].*/\1/p')
    for library in $needed; do
        case $library in
        libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | libutil.so.1 | ld-linux-x86-64.so.2) ;;
        *) complain "needs $library" ;;
        esac
    done
    newest=$(readelf -VW "$file" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
    [ -n "$newest" ] && [ "$(printf '%s\n2.17\n' "$newest" | sort -V | tail -n 1)" = 2.17 ] || complain "needs glibc '$newest'"
    # Where it was built is nobody's business, and would be different bytes elsewhere.
    ! grep -qaF "$(cd "$1/.." && pwd)" "$file" || complain "contains the name of the folder it was built in"
    printf 'check-dist: %s: %s bytes, glibc %s, needs %s\n' "$name" "$(wc -c <"$file")" "$newest" "$(echo $needed | tr ' ' ',')"
done
file=$1/probing-relay
[ -f "$file" ] || complain "not built"
! readelf -lW "$file" | grep -q INTERP || complain "is not static"
[ -z "$(readelf -dW "$file" | grep NEEDED)" ] || complain "needs a library"
size=$(wc -c <"$file")
[ "$size" -le 8388608 ] || complain "is $size bytes; at most 8388608"
! grep -qaF "$(cd "$1/.." && pwd)" "$file" || complain "contains the name of the folder it was built in"
printf 'check-dist: probing-relay: %s bytes, static\n' "$size"
exit $status
