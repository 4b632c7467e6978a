/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of torch's flight recorder that are any bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/python/flight.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void check_text(const char *text, size_t cap) {
    check(memchr(text, 0, cap) != NULL, "a text has no end");
    check(!strchr(text, 0x1b) && !strchr(text, '\n'), "a text is not safe for a terminal");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct flight f;
    struct err e;
    int rc = flight_read(&f, (const char *)data, size, &e);
    check(rc == 0 || (f.n == 0 && !f.groups), "a document with an error has groups");
    for (size_t i = 0; i < f.n; i++) {
        const struct flight_group *g = &f.groups[i];
        check(g->number >= 0, "a group has no number");
        check_text(g->name, sizeof g->name);
        check_text(g->desc, sizeof g->desc);
        check_text(g->backend, sizeof g->backend);
        check_text(g->open_op, sizeof g->open_op);
        check_text(g->open_dtype, sizeof g->open_dtype);
        check(g->last < 0 || g->completed <= g->enqueued, "more has completed than was enqueued");
        check(g->last < 0 || g->enqueued >= g->last, "an entry is not counted");
    }
    flight_fini(&f);
    return 0;
}
