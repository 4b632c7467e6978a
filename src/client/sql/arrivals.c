/* SPDX-License-Identifier: Apache-2.0 */
/* arrivals: see arrivals.h. */
#include "client/sql/arrivals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ARRIVALS_OPEN 64 /* collectives that still lack ranks; the oldest gives way */

/* A collective of which some rows are known. */
struct arrivals_open {
    uint32_t op, n;
    double first_end;
    int64_t *rows; /* of each rank; -1 */
};

struct arrivals {
    struct arrival *rows;
    uint32_t ranks;
    /* the oldest first */
    struct arrivals_open open[ARRIVALS_OPEN];
    size_t n;
    int64_t *memory;
};

struct arrivals_order {
    double end;
    size_t row;
};

static int arrivals_compare(const void *a, const void *b) {
    const struct arrivals_order *x = a, *y = b;
    return x->end < y->end ? -1 : x->end > y->end ? 1 : x->row < y->row ? -1 : x->row > y->row;
}

static void arrivals_close(struct arrivals *a, size_t i) {
    int64_t *rows = a->open[i].rows;
    memmove(&a->open[i], &a->open[i + 1], (a->n - i - 1) * sizeof a->open[0]);
    a->n--;
    /* its memory is that of the next one */
    a->open[a->n].rows = rows;
}

/* All ranks have it. */
static void arrivals_settle(struct arrivals *a, size_t i) {
    const struct arrivals_open *o = &a->open[i];
    int64_t last = o->rows[0];
    for (uint32_t r = 1; r < a->ranks; r++)
        if (a->rows[o->rows[r]].begin > a->rows[last].begin)
            last = o->rows[r];
    for (uint32_t r = 0; r < a->ranks; r++)
        a->rows[o->rows[r]].last = last;
    arrivals_close(a, i);
}

static void arrivals_take(struct arrivals *a, size_t row) {
    const struct arrival *r = &a->rows[row];
    while (a->n && a->open[0].first_end + ARRIVALS_ENDS_S < r->end)
        arrivals_close(a, 0);
    size_t i = 0;
    while (i < a->n &&
           (a->open[i].op != r->op || a->open[i].rows[r->rank] >= 0 || r->begin > a->open[i].first_end))
        i++;
    if (i == a->n) {
        if (a->n == ARRIVALS_OPEN)
            arrivals_close(a, 0);
        i = a->n++;
        a->open[i].op = r->op;
        a->open[i].n = 0;
        a->open[i].first_end = r->end;
        for (uint32_t k = 0; k < a->ranks; k++)
            a->open[i].rows[k] = -1;
    }
    a->open[i].rows[r->rank] = (int64_t)row;
    if (++a->open[i].n == a->ranks)
        arrivals_settle(a, i);
}

int arrivals_match(struct arrival *rows, size_t n, uint32_t ranks) {
    struct arrivals a = {.rows = rows, .ranks = ranks};
    for (size_t i = 0; i < n; i++)
        rows[i].last = -1;
    if (ranks < 2 || ranks > ARRIVALS_RANKS || n == 0)
        return 0;
    struct arrivals_order *order = calloc(n, sizeof *order);
    a.memory = calloc((size_t)ranks * ARRIVALS_OPEN, sizeof *a.memory);
    int rc = order && a.memory ? 0 : -1;
    size_t used = 0;
    for (size_t i = 0; rc == 0 && i < ARRIVALS_OPEN; i++)
        a.open[i].rows = a.memory + i * ranks;
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (rows[i].rank < ranks && isfinite(rows[i].begin) && isfinite(rows[i].end) &&
            rows[i].begin <= rows[i].end)
            order[used++] = (struct arrivals_order){rows[i].end, i};
    if (rc == 0)
        qsort(order, used, sizeof *order, arrivals_compare);
    for (size_t i = 0; rc == 0 && i < used; i++)
        arrivals_take(&a, order[i].row);
    free(order);
    free(a.memory);
    return rc;
}
