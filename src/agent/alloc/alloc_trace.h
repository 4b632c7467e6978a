/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_trace: the lease "alloc": allocations are sampled by bytes, and added up by site.
 *
 * The python worker puts the hooks in and takes them out (alloc_python.h). Samples are
 * read ten times a second; once a second the changed sites become rows of memory_allocations. If the
 * samples take more of the job's time than they may, their distance grows. Functions are for the
 * sampler's thread, unless described otherwise.
 */
#ifndef AGENT_ALLOC_ALLOC_TRACE_H
#define AGENT_ALLOC_ALLOC_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/alloc/alloc_native.h"
#include "agent/alloc/alloc_samples.h"
#include "agent/alloc/alloc_sites.h"
#include "agent/python/worker.h"
#include "agent/tables/record.h"
#include "base/trie.h"

#define ALLOC_TRACE_NOTE 400
#define ALLOC_TRACE_EVERY_MIN 1024
#define ALLOC_TRACE_EVERY_MAX ((int64_t)1 << 40)

enum alloc_trace_phase {
    ALLOC_TRACE_IDLE = 0,
    ALLOC_TRACE_ENTERS, /* the worker puts the hooks in */
    ALLOC_TRACE_RUNS,
    ALLOC_TRACE_LEAVES, /* the worker takes them out */
};

/* Who has the interpreter's reader and the numbers of stacks: the sampler. */
struct alloc_trace_host {
    void *arg;
    struct pystack *(*pystack)(void *arg); /* NULL if there is no Python */
    /* A stack's number in the tables, innermost frame first; RING_INT_NULL if it has none. */
    int64_t (*number)(void *arg, const struct model_frame *frames, size_t n);
};

#define ALLOC_TRACE_CALLERS 256
#define ALLOC_TRACE_CALLER_SHIFT 56
struct alloc_trace_caller {
    uint64_t address;
    struct alloc_native_caller of;
};

struct alloc_trace {
    struct worker *worker;
    struct record *record;
    struct alloc_trace_host host;
    enum alloc_trace_phase phase;
    struct worker_job *job; /* NULL if none is running */
    uint64_t every;         /* bytes between two samples, as asked for */
    uint64_t mean;          /* and as it is */
    uint64_t next_every;    /* it was asked for again while the last one left; 0: it was not */
    uint64_t begun_ns, row_ns, account_ns, checked_ns, retry_ns, next_ns;
    struct alloc_sites sites;
    struct trie stacks;                 /* of the sites */
    uint64_t overflowed;                /* stacks that found no room there */
    struct alloc_samples_stats seen;    /* at the last account */
    uint64_t lost_bytes[ALLOC_DOMAINS]; /* that were added */
    double call_ns;                     /* what a call of a hook costs */
    double spent_ns;                    /* so far, on the job's threads */
    double pct;                         /* of one core since the account before */
    bool is_busy;                       /* the last reading found many samples */
    bool is_lost;                       /* the interpreter has ended */
    uint64_t loads;                     /* of libraries, when they were examined */
    struct alloc_trace_caller callers[ALLOC_TRACE_CALLERS];
    char lacks[200]; /* what could not be hooked, and why; "" if all was */
    char note[ALLOC_TRACE_NOTE];
};

/* The result of a poll. */
enum alloc_trace_end {
    ALLOC_TRACE_GOES_ON = 0,
    ALLOC_TRACE_OVER,
    ALLOC_TRACE_REFUSED, /* with the error */
};

void alloc_trace_init(struct alloc_trace *t, struct worker *worker, struct record *record,
                      const struct alloc_trace_host *host);
void alloc_trace_fini(struct alloc_trace *t);

/* Start: a sample every `every` bytes. 0, or -1 with the error. */
int alloc_trace_begin(struct alloc_trace *t, uint64_t every, uint64_t now_ns, struct err *e);

/* Continue. `wanted`: somebody still wants it. */
enum alloc_trace_end alloc_trace_poll(struct alloc_trace *t, bool wanted, uint64_t now_ns, struct err *e);

static inline bool alloc_trace_is_busy(const struct alloc_trace *t) { return t->phase != ALLOC_TRACE_IDLE; }

/* Share of one core that it has taken from the job since it began; NAN unknown. */
double alloc_trace_pct(const struct alloc_trace *t, uint64_t now_ns);

/* The interpreter is gone. */
void alloc_trace_lose(struct alloc_trace *t);

/* True if there are hooks in the job. Any thread. */
bool alloc_trace_is_in(void);

/* From the server's thread: take the hooks out before the agent leaves, and put none in any more.
 * 0, or -1 with the error. */
int alloc_trace_leave(struct worker *w, struct err *e);

/* The same: the agent does not leave after all. */
void alloc_trace_stay(void);

size_t alloc_trace_bytes(const struct alloc_trace *t);

#endif
