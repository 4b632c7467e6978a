#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the libraries of deps.lock, static and position-independent, into a folder (default build/deps); with --static those of
# deps-static.lock, too, and with the compiler $DEPS_CC.
#
# usage: tools/deps.sh [--static] [FOLDER]
#
# A source comes from upstream's release address or, where that is out of reach, from the Debian source package through
# the apt mirror this system already uses, in an apt configuration of its own: the system's lists are not touched.
# Files already in FOLDER/src with the right SHA-256 are not fetched again; with nothing to do it does nothing.
# One run at a time works in a folder; a second waits for it.

set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
locks=$here/deps.lock
recipes=$0
if [ "${1-}" = --static ]; then
    shift
    locks="$here/deps.lock $here/deps-static.lock"
    recipes="$0 $here/tools/deps_static.sh"
fi
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
# shellcheck disable=SC2086
wanted=$(cat $locks $recipes | sha256sum | cut -d' ' -f1)
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
        for suite in bookworm trixie testing unstable; do
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
    if [ "$4" != - ] && fetch_upstream "$4" "$file.part" && sha_ok "$file.part" "$3"; then
        mv "$file.part" "$file"
        return 0
    fi
    rm -f "$file.part"
    say "$1 $2: upstream is out of reach, taking the Debian source package"
    fetch_debian "$1" "$3" "$file" && return 0
    die "no source for $1 $2: tried $4 and the Debian source packages of this system's apt mirror (bookworm, trixie, testing, unstable);" \
        "put the file with SHA-256 $3 at $file and run make deps again"
}

# --- builds -----------------------------------------------------------------------------------------------------

unpack() { # name version
    rm -rf "$dest/work/$1"
    mkdir -p "$dest/work/$1" "$dest/licences/$1"
    tar -xf "$dest/src/$1-$2.tar" -C "$dest/work/$1" --strip-components=1
    # What tools/third_party.py quotes.
    (cd "$dest/work/$1" && find . -maxdepth 2 \( -name 'LICEN[CS]E*' -o -name 'COPYING*' \) -exec cp --parents {} "$dest/licences/$1/" \;)
}

logged() { # log command...
    log=$dest/work/$1.log
    shift
    "$@" >>"$log" 2>&1 || {
        tail -n 25 "$log" >&2
        die "the build failed; the whole log is $log"
    }
}

# The folder is not to be seen in what is built.
common_flags="-fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -ffile-prefix-map=$dest=/deps"

# What 4.3.5 does wrongly, mended in its source; a place that is not found is another version's, and ends the build.
mend() { # file, how many lines say so then, sed script
    file=$dest/work/libwebsockets/lib/$1
    sed -E "$3" "$file" >"$file.new"
    [ "$(grep -c 'mended' "$file.new")" = "$2" ] || die "$1 of libwebsockets is not the one this script mends"
    mv "$file.new" "$file"
}

mend_libwebsockets() {
    # It goes on using a connection that it freed when the peer closes before the handshake is written: it returns "alive" (0)
    # instead of "gone" (-1).
    mend roles/http/client/client-http.c 1 '/"cws"\);/{n;s|return 0;|return -1; /* mended */|;}'
    # A server must close where a frame comes without a mask (RFC 6455, 5.1); it reads them.
    mend roles/ws/ops-ws.c 1 '/this_frame_masked = !!\(c & 0x80\);/a\
		if (!wsi->ws->this_frame_masked) { /* mended */\
			lws_close_reason(wsi, LWS_CLOSE_STATUS_PROTOCOL_ERR, (uint8_t *)"no mask", 7);\
			return -1;\
		}'
    # What turns out to be no HTTP is given to another protocol, but only from the read in which that was seen: what came in pieces
    # lacked its beginning. It is kept, as far as it may still be the beginning of HTTP; who has said more is closed.
    mend roles/http/private-lib-roles-http.h 1 '/^struct allocated_headers \{/a\
	uint8_t said[64]; /* mended */\
	size_t n_said;'
    mend roles/http/parsers.c 1 '/^_lws_header_table_reset/,/^}/s|^	ah->unk_pos = 0;|&\
	ah->n_said = 0; /* mended */|'
    mend roles/http/server/server.c 1 '/^int$/{N;/\nlws_handshake_server/i\
/* mended */\
static void\
lws_http_keep_said(struct allocated_headers *ah, const unsigned char *buf, size_t len)\
{\
	if (ah->n_said > sizeof(ah->said) || len > sizeof(ah->said) - ah->n_said) {\
		ah->n_said = sizeof(ah->said) + 1;\
		return;\
	}\
	memcpy(ah->said + ah->n_said, buf, len);\
	ah->n_said += len;\
}\
\
static int\
lws_http_to_fallback_whole(struct lws *wsi, unsigned char *obuf, size_t olen)\
{\
	unsigned char whole[sizeof(wsi->http.ah->said) + 8192];\
	size_t n = wsi->http.ah->n_said;\
\
	if (n > sizeof(wsi->http.ah->said) || n + olen > sizeof(whole))\
		return 1;\
	memcpy(whole, wsi->http.ah->said, n);\
	memcpy(whole + n, obuf, olen);\
	return lws_http_to_fallback(wsi, whole, n + olen);\
}\

    }'
    mend roles/http/server/server.c 3 '/^lws_handshake_server/,/^}/{
        s/if \(lws_http_to_fallback\(wsi, obuf, olen\)\) \{/if (lws_http_to_fallback_whole(wsi, obuf, olen)) { \/* mended *\//
        /parser_state != WSI_PARSING_COMPLETE\)/{N;s/\n.*continue;/ { \/* mended *\/\
			lws_http_keep_said(wsi->http.ah, obuf, olen);\
			continue;\
		}/;}
    }'
    # Who asks for an upgrade that it does not know is answered 403, and goes on to be asked whether they may upgrade: where the connection is
    # kept open that is done with headers that were freed (CVE-2025-11677). Nobody is kept open by us; now it is closed in any case.
    mend roles/http/server/server.c 4 '/Unknown upgrade/,/goto bail_nuke_ah;/s|^.*goto bail_nuke_ah;|&\
				goto bail_nuke_ah; /* mended */|'
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

case $locks in
*static*)
    # shellcheck source=tools/deps_static.sh
    . "$here/tools/deps_static.sh"
    ;;
esac

rm -f "$dest/stamp"
# shellcheck disable=SC2086
pins=$(cat $locks | sed -e 's/#.*//' -e '/^[[:space:]]*$/d')
printf '%s\n' "$pins" | while read -r name version sha url; do
    get_source "$name" "$version" "$sha" "$url"
    say "$name $version: building"
    build_"$(printf '%s' "$name" | tr - _)" "$version"
done
for lib in libwebsockets libunwind libunwind-ptrace; do
    [ -f "$dest/lib/$lib.a" ] || die "the build of $lib.a left no library; see $dest/work"
done
rm -rf "$dest/work" "$dest/apt"
printf '%s\n' "$wanted" >"$dest/stamp"
say "done, in $dest"
