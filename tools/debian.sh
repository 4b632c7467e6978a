# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/fresh.sh and tools/matrix.sh: makes a minimal Debian from the mirror that this system's apt uses.
# shellcheck shell=bash

# The first archive of this system that is not the security archive, one of Debian if there is one.
system_mirror() {
    {
        cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
            sed -nE 's/^deb[[:space:]]+(\[[^]]*\][[:space:]]+)?([a-z+]+:[^[:space:]]+).*/\2/p'
        cat /etc/apt/sources.list.d/*.sources 2>/dev/null | sed -nE 's/^URIs:[[:space:]]*([^[:space:]]+).*/\1/p'
    } | grep -v security | awk 'NR == 1 { first = $0 } /debian/ { first = $0; exit } END { if (first) print first }'
}

# A minimal system of a suite in a folder that does not exist yet, with more packages if they are named. 0, or 1 with the
# reason on stderr.
make_debian() { # suite folder log [package...]
    local suite=$1 folder=$2 log=$3 mirror include=() keyring=()
    shift 3
    command -v debootstrap >/dev/null || { echo "debootstrap is missing" >&2; return 1; }
    mirror=$(system_mirror)
    [ -n "$mirror" ] || { echo "this system has no apt source to take Debian from" >&2; return 1; }
    [ -f /usr/share/keyrings/debian-archive-keyring.gpg ] && keyring=(--keyring=/usr/share/keyrings/debian-archive-keyring.gpg)
    [ $# -eq 0 ] || include=("--include=$(IFS=,; echo "$*")")
    rm -rf --one-file-system "$folder"
    debootstrap "${keyring[@]}" "${include[@]}" --variant=minbase "$suite" "$folder" "$mirror" >"$log" 2>&1 && return 0
    tail -n 5 "$log" >&2
    echo "debootstrap of $suite failed; see $log" >&2
    return 1
}
