/* SPDX-License-Identifier: Apache-2.0 */
/* rank_set: see rank_set.h. */
#include "client/jobs/rank_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define RANK_SET_SHOWN 40 /* bytes of a wrong text in an error */

void rank_set_fini(struct rank_set *s) {
    free(s->ranges);
    *s = (struct rank_set){.n = 0};
}

static int rank_set_reserve(struct rank_set *s, size_t n) {
    return grow_array(&s->ranges, sizeof *s->ranges, n, &s->cap);
}

/* The number of ranges that end before `rank`. */
static size_t rank_set_before(const struct rank_set *s, int32_t rank) {
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->ranges[middle].last < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Add a range that begins no earlier than the last one; there is room for it. */
static void rank_set_append(struct rank_set *s, const struct rank_range *r) {
    struct rank_range *before = s->n ? &s->ranges[s->n - 1] : NULL;
    if (before && r->first <= before->last + 1)
        before->last = r->last > before->last ? r->last : before->last;
    else
        s->ranges[s->n++] = *r;
}

int rank_set_add(struct rank_set *s, int32_t first, int32_t last) {
    first = first < 0 ? 0 : first;
    last = last >= RANK_SET_LIMIT ? RANK_SET_LIMIT - 1 : last;
    if (first > last)
        return 0;
    if (rank_set_reserve(s, s->n + 1) != 0)
        return -1;
    /* those that overlap or touch it are at `at` to `end` */
    size_t at = rank_set_before(s, first - 1), end = at;
    while (end < s->n && s->ranges[end].first <= last + 1)
        end++;
    if (end > at) {
        first = s->ranges[at].first < first ? s->ranges[at].first : first;
        last = s->ranges[end - 1].last > last ? s->ranges[end - 1].last : last;
    }
    memmove(s->ranges + at + 1, s->ranges + end, (s->n - end) * sizeof *s->ranges);
    s->ranges[at] = (struct rank_range){first, last};
    s->n = s->n - (end - at) + 1;
    return 0;
}

int rank_set_join(struct rank_set *s, const struct rank_set *from) {
    struct rank_set all = {.n = 0};
    if (!from->n)
        return 0;
    if (rank_set_reserve(&all, s->n + from->n) != 0)
        return -1;
    for (size_t i = 0, k = 0; i < s->n || k < from->n;) {
        bool is_own = k == from->n || (i < s->n && s->ranges[i].first <= from->ranges[k].first);
        rank_set_append(&all, is_own ? &s->ranges[i++] : &from->ranges[k++]);
    }
    rank_set_fini(s);
    *s = all;
    return 0;
}

int rank_set_join_text(struct rank_set *s, const char *text) {
    struct rank_set part = {.n = 0};
    bool ok = text && rank_set_parse(&part, text, NULL) == 0 && part.n <= RANK_SET_TEXT_RANGES;
    int rc = ok ? rank_set_join(s, &part) : 0;
    rank_set_fini(&part);
    return rc;
}

int rank_set_remove(struct rank_set *s, const struct rank_set *from) {
    struct rank_set left = {.n = 0};
    /* each removed range splits at most one */
    if (rank_set_reserve(&left, s->n + from->n) != 0)
        return -1;
    size_t k = 0;
    for (size_t i = 0; i < s->n; i++) {
        int32_t first = s->ranges[i].first, last = s->ranges[i].last;
        while (k < from->n && from->ranges[k].last < first)
            k++;
        for (size_t m = k; m < from->n && from->ranges[m].first <= last && first <= last; m++) {
            if (from->ranges[m].first > first)
                left.ranges[left.n++] = (struct rank_range){first, from->ranges[m].first - 1};
            first = from->ranges[m].last + 1;
        }
        if (first <= last)
            left.ranges[left.n++] = (struct rank_range){first, last};
    }
    rank_set_fini(s);
    *s = left;
    return 0;
}

bool rank_set_has(const struct rank_set *s, int32_t rank) {
    size_t at = rank_set_before(s, rank);
    return at < s->n && s->ranges[at].first <= rank;
}

int32_t rank_set_count(const struct rank_set *s) {
    int32_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->ranges[i].last - s->ranges[i].first + 1;
    return n;
}

void rank_set_put(const struct rank_set *s, size_t most, struct strbuf *out) {
    for (size_t i = 0; i < s->n; i++) {
        const struct rank_range *r = &s->ranges[i];
        if (most && i == most) {
            strbuf_adds(out, ",...");
            return;
        }
        strbuf_addf(out, "%s%d", i ? "," : "", r->first);
        if (r->last > r->first)
            strbuf_addf(out, "-%d", r->last);
    }
}

/* How many ranges from `at` on are one rank each, at equal distances. */
static size_t rank_set_equal(const struct rank_set *s, size_t at) {
    size_t n = 0;
    while (at + n < s->n && s->ranges[at + n].first == s->ranges[at + n].last &&
           (n < 2 || s->ranges[at + n].first - s->ranges[at + n - 1].first ==
                         s->ranges[at + 1].first - s->ranges[at].first))
        n++;
    return n;
}

void rank_set_put_steps(const struct rank_set *s, struct strbuf *out) {
    for (size_t i = 0, n; i < s->n; i += n) {
        const struct rank_range *r = &s->ranges[i];
        n = rank_set_equal(s, i);
        n = n < 3 ? 1 : n;
        strbuf_addf(out, "%s%d", i ? "," : "", r->first);
        if (n > 1)
            strbuf_addf(out, "-%d/%d", r[n - 1].first, r[1].first - r->first);
        else if (r->last > r->first)
            strbuf_addf(out, "-%d", r->last);
    }
}

/* Read a number and go behind it. -1: it is not one, or is too large. */
static int32_t rank_set_number(const char **at) {
    int32_t v = 0;
    size_t n = strspn(*at, "0123456789");
    for (size_t i = 0; i < n; i++) {
        v = v * 10 + ((*at)[i] - '0');
        if (v >= RANK_SET_LIMIT)
            return -1;
    }
    *at += n;
    return n ? v : -1;
}

static int rank_set_refuse(const char *part, struct err *e) {
    size_t n = strcspn(part, ",]");
    const char *dots = n > RANK_SET_SHOWN ? "..." : "";
    n = n > RANK_SET_SHOWN ? RANK_SET_SHOWN : n;
    return err_set(e, ERR_USAGE, "'%.*s%s' is not a rank or a range of ranks: write 0-16,18 (below %d)",
                   (int)n, part, dots, RANK_SET_LIMIT);
}

static int rank_set_compare(const void *a, const void *b) {
    const struct rank_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Ranges in any order become a set. */
static void rank_set_order(struct rank_set *s) {
    size_t n = s->n;
    if (n)
        qsort(s->ranges, n, sizeof *s->ranges, rank_set_compare);
    s->n = 0;
    for (size_t i = 0; i < n; i++)
        rank_set_append(s, &(struct rank_range){s->ranges[i].first, s->ranges[i].last});
}

static int rank_set_read(struct rank_set *s, const char *text, struct err *e) {
    bool bracket = text[0] == '[';
    const char *at = text + bracket;
    for (;;) {
        const char *part = at;
        int32_t first = rank_set_number(&at), last = first, step = 1;
        bool is_range = first >= 0 && *at == '-';
        if (is_range) {
            at++;
            last = rank_set_number(&at);
        }
        if (is_range && *at == '/') {
            at++;
            step = rank_set_number(&at);
        }
        if (first < 0 || last < first || step < 1)
            return rank_set_refuse(part, e);
        size_t n = step == 1 ? 1 : (size_t)((last - first) / step) + 1;
        if (s->n + n > RANK_SET_LIMIT)
            return rank_set_refuse(part, e);
        if (rank_set_reserve(s, s->n + n) != 0)
            return err_set(e, ERR_FAILED, "out of memory for a set of ranks");
        for (size_t i = 0; i < n; i++, first += step)
            s->ranges[s->n++] = (struct rank_range){first, step == 1 ? last : first};
        if (*at != ',') {
            if (bracket ? at[0] != ']' || at[1] : at[0])
                return rank_set_refuse(part, e);
            return 0;
        }
        at++;
    }
}

int rank_set_parse(struct rank_set *s, const char *text, struct err *e) {
    s->n = 0;
    if (strnlen(text, RANK_SET_TEXT_MAX + 1) > RANK_SET_TEXT_MAX)
        return err_set(e, ERR_USAGE, "a set of ranks has at most %zu bytes", RANK_SET_TEXT_MAX);
    int rc = rank_set_read(s, text, e);
    if (rc == 0)
        rank_set_order(s);
    else
        s->n = 0;
    return rc;
}
