/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codes: cached facts about code objects: name, file, line table.
 *
 * A stack is read many times and code objects hardly change. Addresses are reused, so an entry
 * is keyed by everything in the code object that names it, and is read again when it is old.
 * Bounded in number and bytes. Owned by one pystack, used by its thread.
 */
#ifndef PYSTACK_CODES_H
#define PYSTACK_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "pystack/offsets.h"
#include "pystack/reader.h"

#define PYSTACK_CODES_WAYS 4
#define PYSTACK_CODES_SETS 1024
#define PYSTACK_CODES_FILES 256
#define PYSTACK_CODES_SEARCHES 4

#define PYSTACK_CODE_PRINT 180

/* The constant beginning of a str or bytes object. */
struct pystack_code_print {
    uint64_t length;
    /* of a str: the kind, compact and ascii bits of its state; 0 for bytes */
    uint32_t form;
    uint8_t data[PYSTACK_CODE_PRINT]; /* zeros after its end */
};

/* Everything in the code object that names it. Code that is made and dropped again and again
 * gets the same addresses for its parts too, so the beginnings of their contents are included. */
struct pystack_code_key {
    uint64_t addr, type, size, name, qualname, filename, table;
    int32_t firstlineno, firsttraceable;
    struct pystack_code_print name_print, file_print,
        table_print; /* of the qualified name, if there is one */
};

/* Working memory for reading many keys together. */
#define PYSTACK_CODES_AT_ONCE 16
#define PYSTACK_CODES_WORK_BYTES 1024
struct pystack_codes_work {
    struct iovec *pieces; /* 3 * PYSTACK_CODES_AT_ONCE */
    uint8_t *bytes;       /* PYSTACK_CODES_AT_ONCE * PYSTACK_CODES_WORK_BYTES */
    size_t n_pieces;
};

struct pystack_code;
struct pystack_codes_group;

struct pystack_codes {
    struct pystack_code **slots; /* SETS x WAYS */
    size_t bytes;                /* of all entries */
    /* number of the public call: entries checked within it are believed */
    uint64_t call;
    uint64_t now_ns;     /* when that call began */
    struct arena *arena; /* strings of this call are shared within it */
    size_t lines_left;   /* bytes of long line tables that this call may still read */
    /* searches of all entries for a file that this call may still make */
    unsigned searches_left;
    /* Slot of the last entry of a file whose str has this hash; it may belong to another by now. */
    uint16_t by_file[PYSTACK_CODES_FILES];
    struct pystack_codes_group *group; /* see pystack_codes_expect; NULL: they are read one by one */
};

/* 0, or -1 without memory. */
int pystack_codes_init(struct pystack_codes *c);
void pystack_codes_fini(struct pystack_codes *c);

/* Start a public call: strings returned from now on live in `arena`. */
void pystack_codes_begin(struct pystack_codes *c, struct arena *arena);

/* Begin one more stack within the same call: it may read as much as the first. */
void pystack_codes_next(struct pystack_codes *c);

/* Before the code objects of a stack are asked for: those that are known and have to be checked are
 * checked together, with few calls of the kernel. */
void pystack_codes_expect(struct pystack_codes *c, struct pystack_reader *r, uint64_t addr);
void pystack_codes_check_expected(struct pystack_codes *c, struct pystack_reader *r);

/* The code object at `addr`, or NULL if there is none. Valid until the next call of this
 * function. */
struct pystack_code *pystack_codes_get(struct pystack_codes *c, struct pystack_reader *r, uint64_t addr);

/* The same of a frame that is on a stack: one that has been settled for long is not read each
 * time, but at least every 2 s. */
struct pystack_code *pystack_codes_get_running(struct pystack_codes *c, struct pystack_reader *r,
                                               uint64_t addr);

/* Read the key of the code object at `addr`. 0, or -1 if there is none. Async-signal-safe with a
 * reader of one's own. */
int pystack_codes_read_key(struct pystack_reader *r, uint64_t addr, struct pystack_code_key *key);

/* The same for `n` keys whose addresses are set, with few calls of the kernel. The type of a key
 * becomes 0 if there is no code object. Async-signal-safe too. */
void pystack_codes_read_keys(struct pystack_reader *r, struct pystack_code_key *keys, size_t n,
                             struct pystack_codes_work *w);

/* The code object that was at `addr` at the time `taken_ns`; NULL if another may have been
 * there. `then`: its key as read at that time, or NULL if it was not read. */
struct pystack_code *pystack_codes_get_old(struct pystack_codes *c, struct pystack_reader *r, uint64_t addr,
                                           const struct pystack_code_key *then, uint64_t taken_ns);

/* True if it has been there for a while, at an address at which code objects do not come and go. */
bool pystack_code_is_settled(const struct pystack_code *code);

/* Name (qualified where the interpreter has one) and file, in the arena of the call; NULL
 * without memory. */
const char *pystack_code_func(struct pystack_codes *c, struct pystack_code *code);
const char *pystack_code_file(struct pystack_codes *c, struct pystack_code *code);

/* Line of the instruction at byte `at`; 0 if there is none, or if the call has read too much of
 * long tables already. */
int pystack_code_line(struct pystack_codes *c, struct pystack_code *code, const struct pystack_reader *r,
                      int64_t at);

/* Byte of the code before which a frame has not begun (_co_firsttraceable). */
int64_t pystack_code_first_byte(const struct pystack_code *code);

/* Bytes of code in the object (3.11 on; 0 before). */
int64_t pystack_code_n_bytes(const struct pystack_code *code);

/*
 * ---- the line of an instruction, from the forms of line table that CPython has had ----
 *
 * Pure functions over bytes that may be anything; a table that ends early gives what was known until then, or 0.
 * Sources: Objects/lnotab_notes.txt (up to 3.10), Objects/locations.md and Objects/codeobject.c (3.11 on).
 */

/* Line of the instruction at byte `at` of the code; 0 if the table has none. A negative `at`
 * (not yet begun) gives the first line. */
int pystack_find_line(enum pystack_line_style style, const uint8_t *table, size_t n, int first, int64_t at);

#endif
