/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_sites: sampled allocations added up by where they were made.
 *
 * A site is a stack and a domain. A sample of `size` bytes stands for all allocations of that size
 * that were not drawn: for 1 / (1 - exp(-size / mean)) of them. So the sums are estimates without
 * bias, whatever the sizes. Bounded: when there is no room for another site, its samples are added to
 * the site without a stack, and counted. Pure: no clock, no job. Belongs to the sampler's thread.
 */
#ifndef AGENT_ALLOC_ALLOC_SITES_H
#define AGENT_ALLOC_ALLOC_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"

#define ALLOC_SITES_MAX 8192

struct alloc_site {
    uint32_t stack; /* 0: unknown */
    uint8_t domain;
    bool changed;                   /* since the last row */
    double allocated, calls, freed; /* since the last row */
    double live;                    /* of all that was allocated and not freed since the start */
    double unfollowed;              /* of that, bytes whose end will not be seen */
};

/* A sample that lives. */
struct alloc_sites_sample {
    uint64_t serial; /* 0: there is none */
    uint32_t site;
    double bytes; /* that it stands for */
};

struct alloc_sites {
    struct alloc_site *sites;
    size_t n, cap;
    struct table by_key;
    struct alloc_sites_sample *samples; /* by their entry */
    size_t n_samples;                   /* places */
    uint64_t homeless;                  /* samples that found no room for their site */
};

/* For samples with entries below `entries`. 0, or -1 without memory. */
int alloc_sites_init(struct alloc_sites *s, size_t entries);
void alloc_sites_fini(struct alloc_sites *s);

struct alloc_sites_size {
    uint64_t size, mean;
};

/* How many allocations of that size a sample stands for. */
double alloc_sites_weight(struct alloc_sites_size of);

/* Add a sample. `entry` is its place until it is freed; a sample that had it before has ended.
 * UINT32_MAX: its end will not be seen. */
void alloc_sites_add(struct alloc_sites *s, uint32_t stack, uint8_t domain, struct alloc_sites_size of,
                     uint32_t entry, uint64_t serial);

/* Add bytes of which nothing else is known. */
void alloc_sites_add_unknown(struct alloc_sites *s, uint8_t domain, double bytes);

/* The sample with that number at `entry` was freed. False: it was not added yet. */
bool alloc_sites_free(struct alloc_sites *s, uint32_t entry, uint64_t serial);

/* The changed sites with the most bytes since their last rows, at most `cap`, the largest first.
 * Returns their number. */
size_t alloc_sites_changed(const struct alloc_sites *s, uint32_t *list, size_t cap);

/* Its row is written, with rounded numbers. */
void alloc_sites_settle(struct alloc_sites *s, uint32_t site);

size_t alloc_sites_bytes(const struct alloc_sites *s);

#endif
