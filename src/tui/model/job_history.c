/* SPDX-License-Identifier: Apache-2.0 */
/* job_history: see job_history.h. */
#include "tui/model/job_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void job_history_fini(struct job_history *p) {
    for (size_t i = 0; i < p->n; i++)
        job_shot_free(p->items[i]);
    free(p->items);
    *p = (struct job_history){.n = 0};
}

static void job_history_drop(struct job_history *p, size_t i) {
    p->bytes -= job_shot_bytes(p->items[i]);
    job_shot_free(p->items[i]);
    p->n--;
    memmove(&p->items[i], &p->items[i + 1], (p->n - i) * sizeof *p->items);
}

/* The one without which the gap is smallest for its age, but not the newest nor `shown`, and the oldest only if there is no other. `p->n`: there is none. */
static size_t job_history_least(const struct job_history *p, const struct job_shot *shown) {
    size_t least = p->n;
    double now_s = p->items[p->n - 1]->at_s, of_least = INFINITY;
    for (size_t i = 0; i + 1 < p->n; i++) {
        double age_s = fmax(1, now_s - p->items[i]->at_s);
        double gap = i > 0 ? (p->items[i + 1]->at_s - p->items[i - 1]->at_s) / age_s : INFINITY;
        if (p->items[i] != shown && (least == p->n || gap < of_least)) {
            least = i;
            of_least = gap;
        }
    }
    return least;
}

int job_history_add(struct job_history *p, struct job_shot *shot, const struct job_shot *shown,
                    size_t limit) {
    if (grow_array(&p->items, sizeof *p->items, p->n + 1, &p->cap) != 0)
        return -1;
    p->items[p->n++] = shot;
    p->bytes += job_shot_bytes(shot);
    while (p->bytes > limit) {
        size_t i = job_history_least(p, shown);
        if (i == p->n && p->items[p->n - 1] != shown)
            i = p->n - 1;
        if (i == p->n)
            break;
        job_history_drop(p, i);
    }
    return 0;
}

const struct job_shot *job_history_find(const struct job_history *p, double at_s) {
    for (size_t i = p->n; i > 0; i--)
        if (p->items[i - 1]->at_s <= at_s)
            return p->items[i - 1];
    return NULL;
}

size_t job_history_index(const struct job_history *p, const struct job_shot *shot) {
    size_t i = 0;
    while (i < p->n && p->items[i] != shot)
        i++;
    return i;
}
