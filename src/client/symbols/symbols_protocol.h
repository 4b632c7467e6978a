/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_protocol: the packets between the client and its helper for symbols.
 *
 * One packet each (SOCK_SEQPACKET): the client asks and the helper answers. During an answer the
 * helper may ask for files of debug information, because it can open none. Both are the same
 * program, so numbers are in machine order. The helper reads what strangers wrote, so its
 * answers are checked as if a stranger had sent them (symbols_answer_read).
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_PROTOCOL_H
#define CLIENT_SYMBOLS_SYMBOLS_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "client/symbols/symbol.h"

#define SYMBOLS_SOCKET 3            /* the helper's end */
#define SYMBOLS_MAX_MODULES 1000U   /* files that one helper reads */
#define SYMBOLS_MANGLED_MAX 2048U   /* bytes of the linker's name, with the NUL */
#define SYMBOLS_PLAIN_MAX 4096U     /* and of its readable form; a longer one stays mangled */
#define SYMBOLS_PATH_MAX 4096U      /* of a source file, with the NUL */
#define SYMBOLS_BUILD_ID_MAX 64U    /* bytes */
#define SYMBOLS_LINK_MAX 1024U      /* bytes of the name of a debug file, with the NUL */
#define SYMBOLS_MAX_FILES_ASKED 24U /* for one question */

enum symbols_what {
    /* The client's. */
    SYMBOLS_OPEN = 1, /* `module` is the file that comes along; the answer has no symbols */
    SYMBOLS_FIND,     /* the functions at `address` of `module` */
    /* the readable form of `name`: the answer has one symbol, or none if it stays as it is */
    SYMBOLS_PLAIN,
    SYMBOLS_FILE, /* the requested file, which comes along; without one there is no such file */
    /* The helper's. */
    SYMBOLS_ANSWER,
    /* a file of debug information: the one with this build id, or of this name */
    SYMBOLS_WANT_DEBUG,
    SYMBOLS_WANT_ALT, /* one that the last of those refers to */
};

struct symbols_question {
    uint32_t what;
    uint32_t module; /* below SYMBOLS_MAX_MODULES */
    uint64_t address;
    char name[SYMBOLS_MANGLED_MAX]; /* sent up to its NUL */
};

struct symbols_want {
    uint32_t what;
    uint32_t number; /* 0 the first candidate, then the next */
    uint32_t id_len; /* 0: no build id */
    uint8_t id[SYMBOLS_BUILD_ID_MAX];
    char name[SYMBOLS_LINK_MAX]; /* "": any */
};

struct symbols_answer {
    uint32_t what;
    uint32_t n; /* up to SYMBOLS_MAX_INLINED */
    uint32_t role;
    struct {
        int32_t line;
        uint16_t func, file; /* bytes with the NUL; 0 unknown */
    } list[SYMBOLS_MAX_INLINED];
    /* then the texts, in this order */
};

#define SYMBOLS_ANSWER_MAX                                                                                   \
    (sizeof(struct symbols_answer) + SYMBOLS_MAX_INLINED * (SYMBOLS_PLAIN_MAX + SYMBOLS_PATH_MAX))

/* Copy a name without the linker's suffix ("name@@VERSION"), cut to `cap`. True if a C++ or Rust
 * compiler has made it. */
bool symbols_strip_version(const char *symbol, char *out, size_t cap);

/* Parse an answer of `len` bytes at `packet` into `list`, which has room for
 * SYMBOLS_MAX_INLINED; strings go to the arena. Returns their number, or -1 if it is not an
 * answer, or without memory (then the arena has failed). */
int symbols_answer_read(const void *packet, size_t len, struct arena *text, struct symbol *list,
                        enum native_role *role);

/* Parse a helper's request for a file into `out`. 0, or -1 if it is not one. */
int symbols_want_read(const void *packet, size_t len, struct symbols_want *out);

#endif
