/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lies: what a hostile agent answers, made of the tables that both ends use: methods, fields of messages, tables of rows.
 *
 * A request goes in, the bytes of an answer come out: well formed with hostile values (texts that a terminal obeys, paths of victims,
 * the ends of every number), or with types, counts, keys and bytes that are wrong. The same seed gives the same answers to the same
 * requests. One thread at a time for one `struct lies`.
 */
#ifndef LIARS_LIES_H
#define LIARS_LIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "wire/wire.h"

#define LIES_RINGS 6 /* tables that it has */

struct ring_reader;

struct lies {
    uint64_t state;           /* of the numbers that are drawn */
    int64_t pid, uid;         /* that it claims to be, when it does not lie about it */
    const char *const *paths; /* of victims; ends with NULL */
    size_t n_paths;
    bool plausible; /* all that is said is well formed: what is wrong with it is what it says */
    uint32_t epoch;
    char armed[32]; /* what was armed last, */
    unsigned looks; /* and how often the status was asked for since */
    struct ring_reader *rings[LIES_RINGS];
    uint64_t said; /* answers that hold at least one lie */
};

/* `paths` is borrowed and ends with NULL. */
void lies_init(struct lies *l, uint64_t seed, int64_t pid, int64_t uid, const char *const *paths);
void lies_fini(struct lies *l);

/* A number below `n` (n > 0), and whether something is so that is in `permille` of 1000 cases. */
uint64_t lies_below(struct lies *l, uint64_t n);
bool lies_chance(struct lies *l, unsigned permille);

/* A text that somebody shows or acts upon; `*len` is its length (it may hold NULs). Borrowed until the next call. */
const char *lies_text(struct lies *l, size_t *len);

/* Append the answer to `m`, a request. Hello is answered so that most clients go on. */
void lies_answer(struct lies *l, const struct wire_message *m, struct strbuf *out);

/* Append a notification that nobody need have asked for. */
void lies_notify(struct lies *l, enum wire_stream stream, struct strbuf *out);

#endif
