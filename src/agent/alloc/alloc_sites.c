/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_sites: see alloc_sites.h. */
#include "agent/alloc/alloc_sites.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"

/* A block is sampled with probability `1 - exp(-size / mean)`; above this many means it is as good
 * as certain. */
#define ALLOC_SITES_CERTAIN 50.0

int alloc_sites_init(struct alloc_sites *s, size_t entries) {
    *s = (struct alloc_sites){.n_samples = entries};
    s->samples = calloc(entries, sizeof *s->samples);
    return s->samples ? 0 : -1;
}

void alloc_sites_fini(struct alloc_sites *s) {
    free(s->sites);
    free(s->samples);
    table_fini(&s->by_key);
    *s = (struct alloc_sites){.n = 0};
}

double alloc_sites_weight(struct alloc_sites_size of) {
    double means = (double)of.size / (double)of.mean;
    if (means > ALLOC_SITES_CERTAIN)
        return 1;
    /* exp(-x) is 1 - x + x * x / 2 for the small ones, where the difference would lose digits */
    double chance = means < 1e-5 ? means - means * means / 2 : 1 - exp(-means);
    return chance > 0 ? 1 / chance : 0;
}

static uint64_t alloc_sites_hash(uint32_t stack, uint8_t domain) {
    return hash_mix((uint64_t)stack << 8 | domain);
}

static uint32_t alloc_sites_find(const struct alloc_sites *s, uint32_t stack, uint8_t domain) {
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&s->by_key, alloc_sites_hash(stack, domain), &at)) != TABLE_NONE;)
        if (s->sites[i].stack == stack && s->sites[i].domain == domain)
            return i;
    return TABLE_NONE;
}

/* A new one; TABLE_NONE if there is no room. The last places are for the sites without a stack. */
static uint32_t alloc_sites_new(struct alloc_sites *s, uint32_t stack, uint8_t domain) {
    if (s->n >= (stack ? ALLOC_SITES_MAX - 8 : ALLOC_SITES_MAX))
        return TABLE_NONE;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 256;
        struct alloc_site *more = realloc(s->sites, cap * sizeof *more);
        if (!more)
            return TABLE_NONE;
        s->sites = more;
        s->cap = cap;
    }
    if (table_add(&s->by_key, alloc_sites_hash(stack, domain), (uint32_t)s->n) != 0)
        return TABLE_NONE;
    s->sites[s->n] = (struct alloc_site){.stack = stack, .domain = domain};
    return (uint32_t)s->n++;
}

static uint32_t alloc_sites_get(struct alloc_sites *s, uint32_t stack, uint8_t domain) {
    uint32_t site = alloc_sites_find(s, stack, domain);
    return site == TABLE_NONE ? alloc_sites_new(s, stack, domain) : site;
}

bool alloc_sites_free(struct alloc_sites *s, uint32_t entry, uint64_t serial) {
    if (entry >= s->n_samples || s->samples[entry].serial != serial)
        return false;
    struct alloc_sites_sample *sample = &s->samples[entry];
    sample->serial = 0;
    if (sample->site == TABLE_NONE)
        return true;
    struct alloc_site *site = &s->sites[sample->site];
    site->changed = true;
    site->freed += sample->bytes;
    site->live -= sample->bytes;
    return true;
}

void alloc_sites_add(struct alloc_sites *s, uint32_t stack, uint8_t domain, struct alloc_sites_size of,
                     uint32_t entry, uint64_t serial) {
    double calls = alloc_sites_weight(of), bytes = calls * (double)of.size;
    uint32_t at = alloc_sites_get(s, stack, domain);
    if (at == TABLE_NONE) {
        s->homeless++;
        at = alloc_sites_get(s, 0, domain);
    }
    if (entry < s->n_samples && s->samples[entry].serial)
        alloc_sites_free(s, entry, s->samples[entry].serial);
    if (entry < s->n_samples)
        s->samples[entry] = (struct alloc_sites_sample){.serial = serial, .site = at, .bytes = bytes};
    if (at == TABLE_NONE)
        return;
    struct alloc_site *site = &s->sites[at];
    site->changed = true;
    site->allocated += bytes;
    site->calls += calls;
    site->live += bytes;
    site->unfollowed += entry < s->n_samples ? 0 : bytes;
}

void alloc_sites_add_unknown(struct alloc_sites *s, uint8_t domain, double bytes) {
    uint32_t at = alloc_sites_get(s, 0, domain);
    if (at == TABLE_NONE)
        return;
    s->sites[at].changed = true;
    s->sites[at].allocated += bytes;
}

static double alloc_sites_moved(const struct alloc_site *site) { return site->allocated + site->freed; }

size_t alloc_sites_changed(const struct alloc_sites *s, uint32_t *list, size_t cap) {
    size_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!s->sites[i].changed ||
            (n == cap && alloc_sites_moved(&s->sites[list[n - 1]]) >= alloc_sites_moved(&s->sites[i])))
            continue;
        size_t at = n < cap ? n++ : n - 1;
        for (; at > 0 && alloc_sites_moved(&s->sites[list[at - 1]]) < alloc_sites_moved(&s->sites[i]); at--)
            list[at] = list[at - 1];
        list[at] = i;
    }
    return n;
}

void alloc_sites_settle(struct alloc_sites *s, uint32_t site) {
    struct alloc_site *of = &s->sites[site];
    /* Rows have whole numbers: what was rounded off is part of the next one, so that sums over rows do
     * not drift apart. */
    of->allocated -= round(of->allocated);
    of->calls -= round(of->calls);
    of->freed -= round(of->freed);
    of->changed = false;
}

size_t alloc_sites_bytes(const struct alloc_sites *s) {
    return s->cap * sizeof *s->sites + s->n_samples * sizeof *s->samples + table_bytes(&s->by_key);
}
