/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans: what the job's own threads tell when they begin and end an operation, on the way to the sampler.
 *
 * A bounded queue of fixed memory: threads of the job put in without waiting, locking or allocating; what finds no room is
 * lost and counted. One thread takes out: the sampler's. Nothing is ever freed, so a thread that is still within spans_put
 * when nobody listens any more does no harm. D. Vyukov's bounded queue of many producers (a sequence number in each cell).
 */
#ifndef AGENT_SPANS_H
#define AGENT_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPANS_CAP 4096U /* events that wait; a power of two */
#define SPANS_NAME 64   /* bytes of a name that are kept, with its NUL */

enum spans_what { SPANS_BEGIN = 0, SPANS_END };

struct spans_event {
    uint64_t ns;  /* monotonic clock */
    uint64_t key; /* the same at both ends of an operation, and of no other that goes on meanwhile */
    int32_t tid;  /* 0 not told: of an end */
    enum spans_what what;
    char name[SPANS_NAME]; /* of a beginning: printable ASCII, the rest of it is '?' */
};

/* On a thread of the job: an operation begins now, or ended at `ns`. */
void spans_begin(uint64_t key, const char *name);
void spans_end(uint64_t key, uint64_t ns);

/* On the sampler's thread: the oldest event. False when there is none. */
bool spans_take(struct spans_event *out);

/* Events that found no room, so far. */
uint64_t spans_lost(void);

#endif
