#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the libraries of deps.lock, static and position-independent, into a folder (default build/deps).
#
# usage: tools/deps.sh [FOLDER]
#
# A source comes from upstream's release address or, where that is out of reach, from the Debian source package through
# the apt mirror this system already uses, in an apt configuration of its own: the system's lists are not touched.
# Files already in FOLDER/src with the right SHA-256 are not fetched again; with nothing to do it does nothing.
# One run at a time works in a folder; a second waits for it.

set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
lock=$here/deps.lock
mkdir -p "${1:-$here/build/deps}"
dest=$(cd "${1:-$here/build/deps}" && pwd)
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

say() { printf 'deps: %s\n' "$*"; }
die() { printf 'deps: %s\n' "$*" >&2; exit 1; }

for tool in cmake make tar sha256sum flock; do
    command -v $tool >/dev/null 2>&1 || die "$tool is missing; ./run deps installs what is needed"
done
CC=${DEPS_CC:-$(command -v gcc || command -v cc || command -v clang || true)}
[ -n "$CC" ] || die "no C compiler; ./run deps installs what is needed"

# What a finished build stands for: the pins and the way they are built.
wanted=$(cat "$lock" "$0" | sha256sum | cut -d' ' -f1)
done_already() { [ "$(cat "$dest/stamp" 2>/dev/null)" = "$wanted" ]; }

exec 9>"$dest/.lock"
flock 9
if done_already; then
    touch "$dest/stamp"
    exit 0
fi
mkdir -p "$dest/src" "$dest/work"

sha_ok() { [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$2" ]; }

# --- sources ----------------------------------------------------------------------------------------------------

fetch_upstream() { # url file
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL --connect-timeout 8 --max-time 300 -o "$2" "$1" 2>/dev/null
    elif command -v wget >/dev/null 2>&1; then
        wget -q --connect-timeout=8 --tries=1 -O "$2" "$1" 2>/dev/null
    else
        return 1
    fi
}

# The archives this system installs from, one per line: "URI KEYRING-OR-EMPTY".
system_archives() {
    for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$f" ] || continue
        sed -nE 's/^deb[[:space:]]+(\[[^]]*signed-by=([^] ]+)[^]]*\][[:space:]]+|\[[^]]*\][[:space:]]+)?([a-z+]+:[^[:space:]]+).*/\3 \2/p' "$f"
    done
    for f in /etc/apt/sources.list.d/*.sources; do
        [ -f "$f" ] || continue
        awk 'function out() { n = split(uris, u, " "); for (i = 1; i <= n; i++) print u[i], key; uris = key = "" }
             /^[[:space:]]*$/ { out(); next }
             /^URIs:/ { sub(/^URIs:[ \t]*/, ""); uris = $0 }
             /^Signed-By:[ \t]*\// { key = $2 }
             END { out() }' "$f"
    done
}

apt_private() { # program arguments...
    prog=$1
    shift
    "$prog" -o Dir::State="$dest/apt/state" -o Dir::State::status="$dest/apt/status" -o Dir::Cache="$dest/apt/cache" \
        -o Dir::Etc::SourceList="$dest/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=2 "$@"
}

apt_prepared=
prepare_apt() {
    [ -z "$apt_prepared" ] || return 0
    command -v apt-get >/dev/null 2>&1 || return 1
    mkdir -p "$dest/apt/state/lists/partial" "$dest/apt/cache/archives/partial"
    : >"$dest/apt/status"
    : >"$dest/apt/sources.list"
    system_archives | sort -u | while read -r uri key; do
        case $uri in *security*) continue ;; esac
        for suite in trixie testing unstable; do
            # A mirror need not carry every suite; one that is missing must not spoil the others.
            opts=${key:+signed-by=$key}
            printf 'deb-src [%s] %s %s main\n' "${opts:-arch=any}" "$uri" $suite
        done
    done >"$dest/apt/sources.list"
    [ -s "$dest/apt/sources.list" ] || return 1
    apt_private apt-get -qq update >"$dest/apt/update.log" 2>&1 || true
    apt_prepared=1
}

# The Debian version whose .orig.tar has the pinned hash.
debian_version_with() { # package sha256
    apt_private apt-cache showsrc "$1" 2>/dev/null |
        awk -v sha="$2" '/^Version:/ { v = $2 } $1 == sha && /\.orig\.tar/ { print v; exit }'
}

fetch_debian() { # name sha256 file
    prepare_apt || return 1
    deb_version=$(debian_version_with "$1" "$2")
    [ -n "$deb_version" ] || return 1
    rm -rf "$dest/apt/get"
    mkdir -p "$dest/apt/get"
    (cd "$dest/apt/get" && apt_private apt-get -qq source --download-only --tar-only "$1=$deb_version") \
        >"$dest/apt/source.log" 2>&1 || return 1
    for f in "$dest"/apt/get/*.orig.tar.*; do
        if sha_ok "$f" "$2"; then
            mv "$f" "$3"
            return 0
        fi
    done
    return 1
}

get_source() { # name version sha256 url -> $dest/src/name-version.tar
    file=$dest/src/$1-$2.tar
    sha_ok "$file" "$3" && return 0
    say "$1 $2: fetching upstream's release"
    if fetch_upstream "$4" "$file.part" && sha_ok "$file.part" "$3"; then
        mv "$file.part" "$file"
        return 0
    fi
    rm -f "$file.part"
    say "$1 $2: upstream is out of reach, taking the Debian source package"
    fetch_debian "$1" "$3" "$file" && return 0
    die "no source for $1 $2: tried $4 and the Debian source packages of this system's apt mirror (trixie, testing, unstable);" \
        "put the file with SHA-256 $3 at $file and run make deps again"
}

# --- builds -----------------------------------------------------------------------------------------------------

unpack() { # name version
    rm -rf "$dest/work/$1"
    mkdir -p "$dest/work/$1"
    tar -xf "$dest/src/$1-$2.tar" -C "$dest/work/$1" --strip-components=1
}

logged() { # log command...
    log=$dest/work/$1.log
    shift
    "$@" >>"$log" 2>&1 || {
        tail -n 25 "$log" >&2
        die "the build failed; the whole log is $log"
    }
}

common_flags='-fPIC -fvisibility=hidden -ffunction-sections -fdata-sections'

# 4.3.5 goes on using a connection that it freed when the peer closes before the handshake is written: the caller is
# told "alive" (0) instead of "gone" (-1).
mend_libwebsockets() {
    file=$dest/work/libwebsockets/lib/roles/http/client/client-http.c
    sed '/"cws");/{n;s/return 0;/return -1;/;}' "$file" >"$file.new"
    cmp -s "$file" "$file.new" && die "client-http.c of libwebsockets is not the one this script mends"
    mv "$file.new" "$file"
}

# In the target process: no TLS, no plugins, no proxy from the environment, no netlink socket, SIGPIPE left alone.
build_libwebsockets() { # version
    unpack libwebsockets "$1"
    mend_libwebsockets
    : >"$dest/work/libwebsockets.log"
    logged libwebsockets cmake -S "$dest/work/libwebsockets" -B "$dest/work/libwebsockets/out" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=MinSizeRel -DCMAKE_C_FLAGS="$common_flags" \
        -DCMAKE_INSTALL_PREFIX="$dest" -DCMAKE_INSTALL_LIBDIR=lib \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DLWS_STATIC_PIC=ON -DLWS_WITH_STATIC=ON -DLWS_WITH_SHARED=OFF \
        -DLWS_WITH_SSL=OFF -DLWS_WITH_HTTP2=OFF -DLWS_WITHOUT_EXTENSIONS=ON -DLWS_WITH_ZLIB=OFF \
        -DLWS_HAVE_LIBCAP=0 -DLWS_HAVE_SYS_CAPABILITY_H=0 -DLWS_AVOID_SIGPIPE_IGN=ON \
        -DLWS_UNIX_SOCK=ON -DLWS_IPV6=ON -DLWS_ROLE_RAW_FILE=ON -DLWS_CLIENT_HTTP_PROXYING=OFF \
        -DLWS_WITH_NETLINK=OFF -DLWS_WITH_SYS_SMD=OFF -DLWS_WITH_CONMON=OFF -DLWS_WITH_HTTP_BASIC_AUTH=OFF \
        -DLWS_WITH_EVLIB_PLUGINS=OFF -DLWS_WITH_LIBUV=OFF -DLWS_WITH_LIBEV=OFF -DLWS_WITH_LIBEVENT=OFF \
        -DLWS_WITH_GLIB=OFF -DLWS_WITH_DIR=OFF -DLWS_WITH_LEJP_CONF=OFF -DLWS_LOG_TAG_LIFECYCLE=OFF \
        -DLWS_WITHOUT_TESTAPPS=ON -DLWS_WITH_MINIMAL_EXAMPLES=OFF \
        -DDISABLE_WERROR=ON
    logged libwebsockets cmake --build "$dest/work/libwebsockets/out" -j "$jobs"
    logged libwebsockets cmake --install "$dest/work/libwebsockets/out"
}

build_libunwind() { # version
    unpack libunwind "$1"
    : >"$dest/work/libunwind.log"
    logged libunwind env -C "$dest/work/libunwind" ./configure --prefix="$dest" --libdir="$dest/lib" CC="$CC" \
        CFLAGS="-O2 $common_flags" --enable-static --disable-shared --with-pic --enable-ptrace --disable-setjmp \
        --disable-coredump --disable-nto --disable-tests --disable-documentation --disable-minidebuginfo \
        --disable-zlibdebuginfo --disable-cxx-exceptions
    logged libunwind make -C "$dest/work/libunwind" -j "$jobs"
    logged libunwind make -C "$dest/work/libunwind" install
}

rm -f "$dest/stamp"
pins=$(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$lock")
printf '%s\n' "$pins" | while read -r name version sha url; do
    get_source "$name" "$version" "$sha" "$url"
    say "$name $version: building"
    build_"$name" "$version"
done
for lib in libwebsockets libunwind libunwind-ptrace; do
    [ -f "$dest/lib/$lib.a" ] || die "the build of $lib.a left no library; see $dest/work"
done
rm -rf "$dest/work" "$dest/apt"
printf '%s\n' "$wanted" >"$dest/stamp"
say "done, in $dest"
