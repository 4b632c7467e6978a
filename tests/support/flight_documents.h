/* SPDX-License-Identifier: Apache-2.0 */
/* flight_documents: documents of torch's flight recorder, as its versions write them, out of groups that are made up. */
#ifndef SUPPORT_FLIGHT_DOCUMENTS_H
#define SUPPORT_FLIGHT_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

#define FLIGHT_MADE_MOST 64 /* operations of a group */

/* One group, as a rank is in it: operations are numbered from 1. */
struct flight_made {
    int number;
    const char *name, *desc;
    int enqueued;
    bool over[FLIGHT_MADE_MOST + 1];
    bool p2p;  /* it also sends */
    int first; /* the oldest operation that the ring still has; beyond `enqueued`: none */
};

/* How a version writes. */
struct flight_form {
    const char *version;
    bool status, texts /* its numbers are texts */, pairs /* a name has a description */, nccl, sorted;
};

#define FLIGHT_FORMS 9
extern const struct flight_form flight_forms[FLIGHT_FORMS];

/* The number of operations before the first that is not over. */
int flight_made_completed(const struct flight_made *g);

/* The document of `n` groups in `out`, which is initialised here; with or without entries. */
void flight_made_put(const struct flight_made *groups, size_t n, const struct flight_form *form, bool entries,
                     struct strbuf *out);

#endif
