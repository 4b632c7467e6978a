/* SPDX-License-Identifier: Apache-2.0 */
/* rank_others: see rank_others.h. */
#include "tui/view/rank_others.h"

#include <math.h>
#include <stdlib.h>

#include "tui/view/rank_text.h"

/* The host of a rank, if it gives no news; -1. */
static int32_t rank_others_silent(const struct job_shot *s, const struct job_shot_rank *r) {
    return r->host >= 0 && (size_t)r->host < s->n_hosts && s->hosts[r->host].silent ? r->host : -1;
}

size_t rank_others_list(const struct job_shot *s, struct rank_others **out) {
    struct rank_others *list = *out = calloc(FLEET_STATE_COUNT + s->n_hosts, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; list && i < s->n_ranks; i++) {
        const struct job_shot_rank *r = &s->ranks[i];
        int32_t silent = rank_others_silent(s, r);
        struct rank_others *o = &list[silent >= 0 ? FLEET_STATE_COUNT + (size_t)silent : r->state];
        if (r->class_number >= 0)
            continue;
        if (o->n++ == 0)
            *o = (struct rank_others){.state = r->state, .silent = silent, .n = 1, .since_s = NAN};
        /* nobody has seen since when the ranks of a silent host do what they do now */
        if (silent < 0)
            o->since_s = fmin(o->since_s, r->since_s);
        o->note = o->note ? o->note : r->note;
    }
    for (size_t i = 0; list && i < FLEET_STATE_COUNT + s->n_hosts; i++)
        if (list[i].n > 0)
            list[n++] = list[i];
    return n;
}

int rank_others_ranks(const struct job_shot *s, const struct rank_others *o, struct rank_set *out) {
    int rc = 0;
    for (size_t i = 0; i < s->n_ranks; i++) {
        const struct job_shot_rank *r = &s->ranks[i];
        int32_t silent = rank_others_silent(s, r);
        if (r->class_number < 0 && silent == o->silent && (silent >= 0 || r->state == o->state))
            rc |= rank_set_add(out, r->rank, r->rank);
    }
    return rc;
}

void rank_others_put(const struct job_shot *s, const struct rank_others *o, struct strbuf *out) {
    if (o->silent >= 0) {
        const struct job_shot_host *h = &s->hosts[o->silent];
        strbuf_addf(out, "(%s%s%s)", h->name, *h->name ? ": " : "", o->note ? o->note : h->silent);
    } else
        strbuf_addf(out, "(%s%s%s)", rank_text_signs[o->state].word, o->note ? ": " : "",
                    o->note ? o->note : "");
}
