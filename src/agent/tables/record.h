/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record: writes the tables: what the sampler sees, and once a second what the kernel says of the job.
 *
 * Ids in the tables are unique over the agent's life: those of the sampler's trie, which begin anew when it is full, and an
 * offset that grows then. A stack is written when the first sample has it. The rows of each second are written at a tick of the sampler
 * if there is one, so the thread wakes no more often. Their cost is counted apart from that of sampling. All functions
 * are called by the sampler's thread.
 */
#ifndef AGENT_TABLES_RECORD_H
#define AGENT_TABLES_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/tables/collect.h"
#include "base/config.h"
#include "base/cost.h"
#include "base/model.h"
#include "base/trie.h"
#include "pystack/pystack.h"
#include "store/ring/ring_set.h"
#include "store/ring/ring_tables.h"

#define RECORD_NEVER UINT64_MAX

/* Which numbers of the trie have been written. */
struct record_seen {
    uint8_t *bits;
    size_t n; /* numbers there is room for */
};

/* From numbers of the trie to those of the tables. */
struct record_ids {
    uint32_t epoch;
    uint64_t stack_base, frame_base; /* added to the trie's */
    uint64_t stack_last, frame_last; /* the largest number of this epoch */
    struct record_seen stacks, frames;
    uint64_t stack_rows, frame_rows; /* written before this epoch */
};

/* What the table of facts says now. */
struct record_facts {
    bool told;       /* those that do not change */
    char python[64]; /* "": no interpreter, or one that is not known */
    char torch[64];  /* "" not seen */
    struct pystack_modules modules;
    bool torch_module; /* Python has one */
    uint64_t torch_due_ns, torch_every_ns;
};

/* What was told of an interpreter's garbage collector. */
struct record_gc_seen {
    struct pystack_gc at;
    unsigned waited; /* looks in a row at which a collection was going on */
};

/* Collections of a generation that were told one by one, and that the counters have not been seen to count yet. */
struct record_gc_reported {
    int64_t collections, collected, uncollectable;
    double duration_s;
    unsigned waited; /* looks in a row at which more were counted than told */
};

struct record_gc {
    bool begun; /* what was counted before is known */
    unsigned waited;
    struct record_gc_seen seen[PYSTACK_MAX_COUNTERS];
    size_t n;
    struct record_gc_reported told[PYSTACK_GENERATIONS]; /* of the main interpreter */
    const char *note; /* why there are no rows, or some are missing; NULL */
};

/* The samples that are being collected. Borrowed of the sampler. */
struct record_samples {
    const struct trie *trie;
    uint32_t epoch; /* of the trie's numbers */
    const struct model_sample *samples;
    size_t n;         /* of them; the last are the newest */
    uint64_t total;   /* samples so far, those of batches before included */
    double period_us; /* mean time between two ticks of this batch */
    /* Python's name of a thread; with `any` the kernel's where there is none, also of threads that have ended. NULL: not known. */
    const char *(*thread_name)(struct record_samples *s, int64_t tid, bool any);
    const void *sampler; /* who knows the names, */
    size_t guess;        /* and where the next one may be */
};

/* Who else writes rows: called by the sampler's thread, their cost counts as the record's. */
struct record_producer {
    /* Is there something to take, though there are no new samples? */
    bool (*is_on)(const void *arg);
    /* Before new samples are written; each of them, once it is; and once a second, before what is too old goes. */
    void (*take)(void *arg);
    void (*on_sample)(void *arg, const struct record_samples *s, const struct model_sample *sample);
    void (*second)(void *arg, const struct record_samples *s, struct pystack *ps, uint64_t now_ns,
                   double timestamp);
    /* The tables are about to be closed, or begun anew. */
    void (*close)(void *arg);
};

struct record {
    struct ring_set *set; /* NULL: not begun, or not possible */
    bool begun;
    uint64_t began_ns;
    struct config config;
    char note[256]; /* what could not be done, and why; "" nothing */
    uint64_t second_due_ns, flushed_ns, expired_ns;
    bool unflushed;
    struct record_ids ids;
    uint64_t taken;  /* samples of the profile, since it began, that were looked at */
    uint64_t missed; /* samples that were gone before they were taken, or whose stack could not be written */
    struct collect collect;
    struct record_facts facts;
    struct record_gc gc;
    bool gc_events;     /* Python tells of each collection of the main interpreter: record_gc_event */
    int64_t gc_objects; /* of the main interpreter (pystack.h: long_lived) */
    const struct record_producer *producer; /* NULL: there is none */
    void *producer_arg;
    uint64_t cost_ns; /* CPU time of all this so far */
    struct cost_meter meter;
    double cost_pct; /* of a core, over the last seconds; NAN unknown */
};

/* What only the sampler knows, for the table of status. */
struct record_view {
    double overhead_pct, us_per_sample, rate_hz;
    uint64_t samples, torn, dropped;
    int64_t rss_bytes, clients;
    uint64_t cpu_ns;
    const char *python;      /* version of the interpreter; NULL: there is none */
    struct pystack *pystack; /* reads it; NULL: there is none */
};

void record_init(struct record *r, const struct config *config);

/* `arg` writes rows too, from now on. */
void record_add_producer(struct record *r, const struct record_producer *producer, void *arg);

/* Make the tables, when that was not done yet. */
void record_begin(struct record *r);

/* Flush and close; `remove`: the files too. */
void record_end(struct record *r, bool remove);

/* Take in what was set. Another limit of memory begins the tables anew. */
void record_configure(struct record *r, const struct config *config);

/* When once a second's rows are due; RECORD_NEVER without tables. */
uint64_t record_due_ns(const struct record *r);

/* Write the samples that were collected since the last call. Before a batch is cleared. True: the tables no longer hold the
 * definitions of all stacks of this epoch, so a new one should begin. */
bool record_take(struct record *r, struct record_samples *s);

/* Write what is due now. */
void record_second(struct record *r, struct record_samples *s, const struct record_view *view);

/* Is it time to make what there is visible to readers? */
bool record_is_due(const struct record *r);

/* Make it visible, if there is something and it is time. */
void record_flush(struct record *r);

/* For status; table names are static. Number of tables, at most RING_TABLE_KEPT. */
size_t record_list(const struct record *r, struct model_table *out);

/* Memory held beside the tables. */
size_t record_bytes(const struct record *r);

/* Something that a client has had done; kept at once. `uid`, `pid` of the client; -1 not known. */
void record_event(struct record *r, const char *kind, int64_t uid, int64_t pid, const char *text);

/* What garbage collectors have counted since the last time; `ps` NULL: there are none. */
void record_gc(struct record *r, struct pystack *ps, double timestamp);

/* The same of counters that were read: `n` interpreters', the last time's being in r->gc. */
void record_gc_counts(struct record *r, const struct pystack_gc *now, size_t n, double timestamp);

/* A collection that was told. */
struct record_gc_row {
    double begin_s; /* since the epoch */
    uint64_t duration_ns;
    int64_t step, collected, uncollectable; /* step RING_INT_NULL, the others < 0: not known */
    int generation;
};
void record_gc_event(struct record *r, const struct record_gc_row *row);

/* Append a row to a table, if it is there. */
void record_append(struct record *r, enum ring_table table, const union ring_value *row);

#endif
