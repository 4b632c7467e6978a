/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: writes the tables: the sampler's results, and once a second the kernel's data about
 * the job.
 *
 * Ids in the tables are unique over the agent's life: the numbers of the sampler's trie, which
 * start again when it is full, plus an offset that grows then. A stack is written with its first
 * sample. The rows of each second are written at a tick of the sampler if there is one, so the
 * thread wakes no more often. Their cost is counted separately from that of sampling. All
 * functions are called by the sampler's thread, except record_event: a row about what a client
 * does must be in its file before that is done, and the server's thread does not wait for the
 * sampler's.
 */
#ifndef AGENT_TABLES_RECORD_H
#define AGENT_TABLES_RECORD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/tables/collect.h"
#include "agent/tables/standstill.h"
#include "base/config.h"
#include "base/cost.h"
#include "base/model.h"
#include "base/trie.h"
#include "pystack/pystack.h"
#include "store/ring/ring_set.h"
#include "store/ring/ring_tables.h"

#define RECORD_NEVER UINT64_MAX

/* The numbers of the trie that were written. */
struct record_seen {
    uint8_t *bits;
    size_t n; /* capacity in numbers */
};

/* Maps numbers of the trie to those of the tables. */
struct record_ids {
    uint32_t epoch;
    uint64_t stack_base, frame_base; /* added to the trie's */
    uint64_t stack_last, frame_last; /* the largest number in this epoch */
    struct record_seen stacks, frames;
    uint64_t stack_rows, frame_rows; /* written before this epoch */
};

/* The current contents of the table of facts. */
struct record_facts {
    bool told;       /* the constant facts are written */
    char python[64]; /* "" if there is no interpreter, or an unknown one */
    char torch[64];  /* "" if not seen */
    struct pystack_modules modules;
    bool torch_module; /* Python has one */
    uint64_t torch_due_ns, torch_every_ns;
};

/* Counters of an interpreter's garbage collector at the last row. */
struct record_gc_seen {
    struct pystack_gc at;
    unsigned waited; /* readings in a row during a collection */
};

/* Collections of a generation that were reported one by one and do not yet appear in the
 * counters. */
struct record_gc_reported {
    int64_t collections, collected, uncollectable;
    double duration_s;
    unsigned waited; /* readings in a row with more counted than reported */
};

struct record_gc {
    bool begun;  /* the earlier count is known */
    bool failed; /* the last reading was not one */
    unsigned waited;
    struct record_gc_seen seen[PYSTACK_MAX_COUNTERS];
    size_t n;
    struct record_gc_reported told[PYSTACK_GENERATIONS]; /* of the main interpreter */
    const char *note; /* why there are no rows, or some are missing; NULL if all is well */
};

/* The samples being collected. Borrowed from the sampler. */
struct record_samples {
    const struct trie *trie;
    uint32_t epoch; /* of the trie's numbers */
    const struct model_sample *samples;
    size_t n;         /* number of samples; the last ones are the newest */
    uint64_t total;   /* samples so far, including those of earlier batches */
    double period_us; /* mean time between two ticks of this batch */
    /* Python's name of a thread; with `any` the kernel's if there is none, also for threads that
     * have ended. NULL if unknown. */
    const char *(*thread_name)(struct record_samples *s, int64_t tid, bool any);
    const void *sampler; /* its argument, which knows the names */
    size_t guess;        /* and a hint for the next look-up */
};

/* Another writer of rows: called by the sampler's thread; its cost counts as the record's. */
struct record_producer {
    /* True if it has work although there are no new samples. */
    bool (*is_on)(const void *arg);
    /* Called before new samples are written; after each sample; and once a second, before old
     * rows are removed. */
    void (*take)(void *arg);
    void (*on_sample)(void *arg, const struct record_samples *s, const struct model_sample *sample);
    void (*second)(void *arg, const struct record_samples *s, struct pystack *ps, uint64_t now_ns,
                   double timestamp);
    /* The tables are about to be closed or replaced. */
    void (*close)(void *arg);
};

/* The tables, for all threads that write events. The lock is held for one row, for making rows
 * visible, and while the tables are made, closed or expire. Only with it may the table of events
 * be touched. */
struct record_shared {
    pthread_mutex_t lock;
    bool opened; /* the tables were made, or could not be made */
    struct ring_set *set;
    char note[256]; /* the error, if there is one; otherwise "" */
};

struct record {
    struct record_shared shared;
    struct ring_set *set; /* shared.set, once the sampler's thread has begun; NULL if there is none */
    bool begun;
    uint64_t began_ns;
    struct config config;
    char note[256]; /* a copy of shared.note */
    uint64_t second_due_ns, flushed_ns, expired_ns;
    bool unflushed; /* atomic */
    struct record_ids ids;
    uint64_t taken; /* samples of the profile, since its start, that were processed */
    /* samples that were gone before they were taken, or whose stack could not be written */
    uint64_t missed;
    struct collect collect;
    bool ran; /* somebody has, since threads were collected */
    struct standstill standstill;
    struct record_facts facts;
    struct record_gc gc;
    /* Python reports each collection of the main interpreter: record_gc_event */
    bool gc_events;
    /* Atomic: torch's allocator on GPUs, in KiB, and when that was read; 0 never. */
    int64_t gpu_allocated, gpu_reserved;
    uint64_t gpu_ns;
    int64_t gc_objects;                     /* of the main interpreter (pystack.h: long_lived) */
    const struct record_producer *producer; /* NULL if there is none */
    void *producer_arg;
    uint64_t cost_ns; /* CPU time of all this so far */
    struct cost_meter meter;
    double cost_pct; /* of a core, over the last seconds; NAN if unknown */
};

/* The sampler's values for the table of status. */
struct record_view {
    double overhead_pct, us_per_sample, rate_hz;
    uint64_t samples, torn, dropped;
    int64_t rss_bytes, clients;
    uint64_t cpu_ns;
    uint64_t self_cpu_ns;    /* of the calling thread, when it began: what the rows cost counts from there */
    const char *python;      /* version of the interpreter; NULL if there is none */
    struct pystack *pystack; /* reads it; NULL if there is none */
    /* since the last call no thread has run that can change what it reads */
    bool nobody_ran;
};

void record_init(struct record *r, const struct config *config);

/* Register `arg` as a writer of rows. */
void record_add_producer(struct record *r, const struct record_producer *producer, void *arg);

/* Make the tables, unless they exist. Its caller counts the cost. */
void record_begin(struct record *r);

/* Flush and close; with `remove`, also remove the files. */
void record_end(struct record *r, bool remove);

/* Read the changed settings. A new limit of memory starts new tables. */
void record_configure(struct record *r, const struct config *config);

/* The time at which the rows of each second are due; RECORD_NEVER without tables. */
uint64_t record_due_ns(const struct record *r);

/* Write the samples collected since the last call. Called before a batch is cleared. True if the
 * tables no longer hold the definitions of all stacks of this epoch, so a new one should start. */
bool record_take(struct record *r, struct record_samples *s);

/* Write the rows that are due now. */
void record_second(struct record *r, struct record_samples *s, const struct record_view *view);

/* True if it is time to make new rows visible to readers. */
bool record_is_due(const struct record *r);

/* Make new rows visible, if there are any and it is time. */
void record_flush(struct record *r);

/* Make them visible now. Does nothing if another thread keeps the lock for 0.2 s: the end of a job
 * that has crashed must not wait for a thread that will not release it. */
void record_flush_now(struct record *r);

/* For status; table names are static. Returns the number of tables, at most RING_TABLE_KEPT. */
size_t record_list(struct record *r, struct model_table *out);

/* Memory in use besides the tables. */
size_t record_bytes(const struct record *r);

/* An action of a client. Afterwards its row is in the file. The tables are made if there are none
 * yet. `uid`, `pid` of the client; -1 if unknown. Any thread of the agent. */
void record_event(struct record *r, const char *kind, int64_t uid, int64_t pid, const char *text);

/* What torch's allocator has on all GPUs, in MiB, as just read: for rows of python.memory of the next
 * seconds. Any thread of the agent. */
void record_set_gpu(struct record *r, double allocated_mb, double reserved_mb);

/* Write the counts of garbage collectors since the last time; `ps` NULL if there are none. */
void record_gc(struct record *r, struct pystack *ps, double timestamp);

/* The same for counters already read: of `n` interpreters; the previous ones are in r->gc. */
void record_gc_counts(struct record *r, const struct pystack_gc *now, size_t n, double timestamp);

/* A reported collection. */
struct record_gc_row {
    double begin_s; /* since the epoch */
    uint64_t duration_ns;
    int64_t step, collected, uncollectable; /* step RING_INT_NULL, the others < 0: unknown */
    int generation;
};
void record_gc_event(struct record *r, const struct record_gc_row *row);

/* The number of a stack of the trie in the tables, where it is written if it is not there yet;
 * RING_INT_NULL if that is not possible. */
int64_t record_number_stack(struct record *r, const struct record_samples *p, uint32_t stack_id);

/* Append a row to a table, if the table exists. */
void record_append(struct record *r, enum ring_table table, const union ring_value *row);

#endif
