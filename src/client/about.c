/* SPDX-License-Identifier: Apache-2.0 */
/* about: see about.h. */
#include "client/about.h"

#include <elfutils/version.h>
#include <features.h>
#include <histedit.h>
#include <libunwind.h>
#include <libwebsockets.h>
#include <msgpack/version_master.h>
#include <ncurses.h>
#include <sqlite3.h>
#include <zlib.h>

#include "version.h"

#ifdef __clang__
#define ABOUT_COMPILER "" /* __VERSION__ has the name */
#else
#define ABOUT_COMPILER "GCC "
#endif

void about_put(struct strbuf *out, const char *program, const char *commit) {
    strbuf_addf(out, "%s %s\n", program, PROBING_VERSION);
    strbuf_addf(out, "commit     %s\n", commit);
    strbuf_addf(out, "compiler   " ABOUT_COMPILER "%s\n", __VERSION__);
#ifdef __GLIBC__ /* not in the static relay, which does not call this */
    strbuf_addf(out, "C library  glibc %d.%d\n", __GLIBC__, __GLIBC_MINOR__);
#endif
    strbuf_addf(out, "libraries  elfutils 0.%d, libedit %d.%d, libunwind %d.%d.%d, libwebsockets %d.%d.%d,\n",
                _ELFUTILS_VERSION, LIBEDIT_MAJOR, LIBEDIT_MINOR, UNW_VERSION_MAJOR, UNW_VERSION_MINOR,
                UNW_VERSION_EXTRA, LWS_LIBRARY_VERSION_MAJOR, LWS_LIBRARY_VERSION_MINOR,
                LWS_LIBRARY_VERSION_PATCH);
    strbuf_addf(out, "           msgpack-c %d.%d.%d, ncurses %s, SQLite %s, zlib %s\n", MSGPACK_VERSION_MAJOR,
                MSGPACK_VERSION_MINOR, MSGPACK_VERSION_REVISION, NCURSES_VERSION, SQLITE_VERSION,
                ZLIB_VERSION);
}
