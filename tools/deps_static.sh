# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/deps.sh --static: how the libraries of deps-static.lock are built. What is left out of them is what the programs
# do not use, or what would make them load other libraries.
# shellcheck shell=sh disable=SC2154

# What only these libraries need: elfutils m4, SQLite tclsh, ncurses tic, the archives of sources the rest.
for tool in m4 tclsh tic xz bzip2; do
    command -v $tool >/dev/null 2>&1 || die "$tool is missing; ./run dist installs what is needed"
done

# The static relay is linked with SQLite and MessagePack alone, and what deps.lock has.
relay_only=${DEPS_RELAY_ONLY-}
static_flags="-O2 -g0 $common_flags"

# An archive of sources, without the library's own way of building it.
archive() { # name library flags source...
    archive_name=$1
    archive_out=$dest/lib/$2
    archive_flags=$3
    shift 3
    mkdir -p "$dest/lib" "$dest/work/$archive_name/out"
    for source in "$@"; do
        # shellcheck disable=SC2086
        logged "$archive_name" "$CC" $static_flags $archive_flags -c "$source" \
            -o "$dest/work/$archive_name/out/$(basename "$source" .c).o"
    done
    rm -f "$archive_out"
    logged "$archive_name" ar rcsD "$archive_out" "$dest/work/$archive_name"/out/*.o
}

begin() { # name version
    unpack "$1" "$2"
    : >"$dest/work/$1.log"
    mkdir -p "$dest/include" "$dest/lib"
}

configure() { # name argument...
    configure_name=$1
    shift
    logged "$configure_name" env -C "$dest/work/$configure_name" ./configure --prefix="$dest" --libdir="$dest/lib" \
        CC="$CC" AR=ar RANLIB=ranlib CFLAGS="$static_flags" CPPFLAGS="-I$dest/include" LDFLAGS="-L$dest/lib" "$@"
}

build_zlib() {
    [ -z "$relay_only" ] || return 0
    begin zlib "$1"
    z=$dest/work/zlib
    archive zlib libz.a "-D_LARGEFILE64_SOURCE=1 -DHAVE_UNISTD_H -I$z" "$z"/adler32.c "$z"/compress.c "$z"/crc32.c "$z"/deflate.c \
        "$z"/gzclose.c "$z"/gzlib.c "$z"/gzread.c "$z"/gzwrite.c "$z"/infback.c "$z"/inffast.c "$z"/inflate.c "$z"/inftrees.c \
        "$z"/trees.c "$z"/uncompr.c "$z"/zutil.c
    cp "$z/zlib.h" "$z/zconf.h" "$dest/include/"
}

# Only what unpacks: .gnu_debugdata of Fedora's and Red Hat's libraries, which libdw reads.
build_xz_utils() {
    [ -z "$relay_only" ] || return 0
    begin xz-utils "$1"
    configure xz-utils --disable-shared --enable-static --with-pic --disable-encoders --enable-decoders=lzma1,lzma2,x86,delta \
        --enable-threads=no --disable-xz --disable-xzdec --disable-lzmadec --disable-lzmainfo --disable-scripts --disable-doc --disable-nls
    logged xz-utils make -C "$dest/work/xz-utils/src/liblzma" -j "$jobs"
    logged xz-utils make -C "$dest/work/xz-utils/src/liblzma" install
}

build_elfutils() {
    [ -z "$relay_only" ] || return 0
    begin elfutils "$1"
    e=$dest/work/elfutils
    configure elfutils --enable-static --disable-debuginfod --disable-libdebuginfod --disable-demangler --disable-nls --disable-symbol-versioning \
        --with-zlib --with-lzma --without-bzlib --without-zstd
    for folder in lib libelf libcpu backends libebl libdwelf libdwfl libdw; do
        case $folder in
        libelf | libdw) want=$folder.a ;;
        *) want=all ;;
        esac
        logged elfutils make -C "$e/$folder" -j "$jobs" $want
    done
    cp "$e/libelf/libelf.a" "$e/libdw/libdw.a" "$e/lib/libeu.a" "$dest/lib/"
    mkdir -p "$dest/include/elfutils"
    cp "$e/libelf/libelf.h" "$e/libelf/gelf.h" "$e/libelf/nlist.h" "$e/libelf/elf.h" "$e/libdw/dwarf.h" "$dest/include/" 2>/dev/null || true
    cp "$e/libelf/elf-knowledge.h" "$e/libdw/libdw.h" "$e/libdw/known-dwarf.h" "$e/libdwfl/libdwfl.h" "$e/libdwelf/libdwelf.h" \
        "$e/libebl/libebl.h" "$e/version.h" "$dest/include/elfutils/"
}

# The demanglers alone: their files may be linked into any program, unlike others of libiberty.
build_libiberty() {
    [ -z "$relay_only" ] || return 0
    begin libiberty "$1"
    i=$dest/work/libiberty
    archive libiberty libiberty.a "-I$i/include -DHAVE_STDLIB_H -DHAVE_STRING_H -DHAVE_LIMITS_H -DHAVE_ALLOCA_H" \
        "$i"/libiberty/cp-demangle.c "$i"/libiberty/rust-demangle.c "$i"/libiberty/safe-ctype.c
    mkdir -p "$dest/include/libiberty"
    cp "$i/include/demangle.h" "$i/include/ansidecl.h" "$i/include/libiberty.h" "$dest/include/libiberty/"
}

# Options as Debian's where they change what SQL may say.
build_sqlite3() {
    begin sqlite3 "$1"
    s=$dest/work/sqlite3
    logged sqlite3 env -C "$s" ./configure CC="${HOST_CC:-cc}" BCC="${HOST_CC:-cc}" --disable-shared --disable-readline
    logged sqlite3 make -C "$s" sqlite3.c sqlite3.h
    archive sqlite3 libsqlite3.a "-I$s -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_ENABLE_MATH_FUNCTIONS
        -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_ENABLE_FTS3 -DSQLITE_ENABLE_FTS4 -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_RTREE
        -DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_LIKE_DOESNT_MATCH_BLOBS -DSQLITE_SOUNDEX -DSQLITE_USE_URI=1" "$s/sqlite3.c"
    cp "$s/sqlite3.h" "$dest/include/"
}

build_msgpack_c() {
    begin msgpack-c "$1"
    m=$dest/work/msgpack-c
    logged msgpack-c cmake -S "$m" -B "$m/cmake" -DCMAKE_C_COMPILER="$CC" -DMSGPACK_BUILD_TESTS=OFF -DMSGPACK_BUILD_EXAMPLES=OFF \
        -DMSGPACK_ENABLE_SHARED=OFF -DCMAKE_INSTALL_PREFIX="$dest" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_C_FLAGS="$static_flags"
    logged msgpack-c cmake --build "$m/cmake" -j "$jobs"
    logged msgpack-c cmake --install "$m/cmake"
}

# The terminal's description is read from where any distribution has it; the common ones are built in, for systems that have none.
build_ncurses() {
    [ -z "$relay_only" ] || return 0
    begin ncurses "$1"
    command -v tic >/dev/null || die "tic is missing (package ncurses-bin)"
    configure ncurses --enable-widec --without-shared --with-normal --without-debug --without-ada --without-cxx --without-cxx-binding \
        --without-manpages --without-progs --without-tests --without-gpm --disable-db-install --enable-ext-colors --enable-ext-mouse \
        --disable-stripping --with-default-terminfo-dir=/usr/share/terminfo \
        --with-terminfo-dirs=/etc/terminfo:/lib/terminfo:/usr/share/terminfo:/usr/lib/terminfo:/usr/local/share/terminfo \
        --with-fallbacks=xterm-256color,xterm,screen-256color,screen,tmux-256color,tmux,linux,vt100,ansi,dumb
    logged ncurses make -C "$dest/work/ncurses" -j "$jobs" libs
    logged ncurses make -C "$dest/work/ncurses" install.libs install.includes
    ln -sf libncursesw.a "$dest/lib/libncurses.a"
    cp "$dest"/include/ncursesw/*.h "$dest/include/"
}

build_libedit() {
    [ -z "$relay_only" ] || return 0
    begin libedit "$1"
    configure libedit --disable-shared --enable-static --with-pic --disable-examples
    logged libedit make -C "$dest/work/libedit/src" -j "$jobs"
    logged libedit make -C "$dest/work/libedit/src" install
}
