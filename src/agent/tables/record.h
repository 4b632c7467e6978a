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
#include "agent/torch/hooks.h"
#include "agent/sampler/thread_sampler.h"
#include "agent/tables/checkpoints.h"
#include "agent/torch/steps.h"
#include "base/config.h"
#include "base/model.h"
#include "pystack/loaders.h"
#include "store/ring/ring_set.h"
#include "store/ring/ring_tables.h"

#define RECORD_NEVER UINT64_MAX
#define RECORD_STEP_ENDS 256
#define RECORD_STEPS_KEPT 32

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

/* What torch tells of its operations, on the way into the tables. */
struct record_steps {
    bool told;    /* it tells */
    bool refused; /* it cannot: `note` says why */
    bool looks;   /* backward passes are looked at, since look_ns; else from look_due_ns on */
    uint64_t look_ns, look_due_ns;
    bool hold; /* and are to be, for somebody who looks at modules */
    uint64_t events, lost;
    struct record_step_end {
        uint64_t end_ns;
        int64_t step;
    } ends[RECORD_STEP_ENDS];                       /* of the last steps, by their numbers */
    struct record_step_end kept[RECORD_STEPS_KEPT]; /* of the first steps since somebody wanted them kept */
    size_t n_kept;
    bool keeps;
    char note[160];
    struct steps steps;
};

/* An iterator of a DataLoader. */
struct record_loader {
    uint64_t addr;
    int64_t yielded; /* at the last look; MODEL_UNKNOWN: there was none */
    bool processes;
};

struct record_waits {
    uint64_t ns, n;
};

struct record_loaders {
    struct record_loader known[PYSTACK_LOADERS];
    size_t n;
    uint64_t found_ns;            /* when they were looked for */
    bool used;                    /* batches were fetched since we came */
    struct record_waits waits[2]; /* in this second, for loaders without and with worker processes */
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
    size_t thread_guess;
    struct collect collect;
    struct record_facts facts;
    struct record_gc gc;
    int64_t gc_objects; /* of the main interpreter (pystack.h: long_lived) */
    struct record_steps steps;
    struct checkpoints saves;
    struct hooks hooks;
    struct record_loaders loaders;
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
    struct worker *worker;   /* has the GIL at times */
};

void record_init(struct record *r, const struct config *config);

/* Make the tables, when that was not done yet. */
void record_begin(struct record *r);

/* Flush and close; `remove`: the files too. */
void record_end(struct record *r, bool remove);

/* Take in what was set. Another limit of memory begins the tables anew. */
void record_configure(struct record *r, const struct config *config);

/* When once a second's rows are due; RECORD_NEVER without tables. */
uint64_t record_due_ns(const struct record *r);

/* Write the samples that the profile has collected since the last call. Before it clears a batch. True: the tables no longer hold
 * the definitions of all stacks of this epoch, so a new one should begin. */
bool record_take(struct record *r, const struct thread_sampler *p);

/* Write what is due now. */
void record_second(struct record *r, const struct thread_sampler *p, const struct record_view *view);

/* Is it time to make what there is visible to readers? */
bool record_is_due(const struct record *r);

/* Make it visible, if there is something and it is time. */
void record_flush(struct record *r);

/* For status; table names are static. Number of tables, at most RING_TABLE_KEPT. */
size_t record_list(const struct record *r, struct model_table *out);

/* Memory held beside the tables. */
size_t record_bytes(const struct record *r);

/* ---- within record*.c ---- */

void record_ids_fini(struct record_ids *ids);

/* The table's id of a stack of the trie, written if it was not; RING_INT_NULL when it has none or memory is short. */
int64_t record_stack(struct record *r, const struct trie *t, uint32_t stack_id);

/* Begin with the numbers of the trie's epoch. */
void record_epoch(struct record *r, const struct thread_sampler *p);

/* Are definitions of this epoch gone from their tables? */
bool record_outgrown(const struct record *r);

/* `ps` reads the interpreter; NULL: there is none. */
void record_facts(struct record *r, const char *python, struct pystack *ps, uint64_t now_ns,
                  double timestamp);
/* Something that a client has had done; kept at once. `uid`, `pid` of the client; -1 not known. */
void record_event(struct record *r, const char *kind, int64_t uid, int64_t pid, const char *text);

/* What garbage collectors have counted since the last time; `ps` NULL: there are none. */
void record_gc(struct record *r, struct pystack *ps, double timestamp);

/* The same of counters that were read: `n` interpreters', the last time's being in r->gc. */
void record_gc_counts(struct record *r, const struct pystack_gc *now, size_t n, double timestamp);

/* A collection that was told; `begin_s`: when it began, seconds since the epoch. */
void record_gc_event(struct record *r, const struct spans_gc *g, double begin_s, int64_t step);

/* A value that is watched; `e` is of the kind SPANS_VALUE. */
void record_value(struct record *r, const struct spans_event *e, double timestamp, int64_t step);

/* Have torch tell what it does, once it is there and as long as that is wanted; and take what it has told. */
void record_steps_second(struct record *r);
void record_steps_take(struct record *r);
void record_steps_end(struct record *r);

/* Checkpoints that are being saved, as samples show them: one of them; and once a second. */
void record_saves_sample(struct record *r, const struct thread_sampler *p, const struct model_sample *s);
void record_saves_second(struct record *r, const struct thread_sampler *p, double now);

/* DataLoaders: a fetch that has ended; and once a second. */
void record_loaders_span(struct record *r, const struct steps_span *s);
void record_loaders_second(struct record *r, struct pystack *ps, uint64_t now_ns);

/* Durations of the last steps that began at `since_ns` or later and have ended by `until_ns`, monotonic, the latest first; as many
 * as there are and `cap` lets. Those between which a step is missing are left out. */
size_t record_steps_durations(const struct record *r, uint64_t since_ns, uint64_t until_ns, double *ns,
                              size_t cap);

/* The step that ended at `ns`, monotonic, or the next that did after that or will: then it is the one that goes on. -1: not known, or not any
 * more: RECORD_STEP_ENDS others have ended since. */
int64_t record_steps_at(const struct record *r, uint64_t ns);
/* From now on the first RECORD_STEPS_KEPT steps that end stay known, however many come after them; or no longer. */
void record_steps_keep(struct record *r, bool on);

void record_process(struct record *r, uint64_t now_ns, double timestamp);
void record_threads(struct record *r, const struct thread_sampler *p, uint64_t now_ns, double timestamp);
void record_status(struct record *r, const struct record_view *view, uint64_t now_ns, double timestamp);

/* Append a row to a table, if it is there. */
void record_append(struct record *r, enum ring_table table, const union ring_value *row);

#endif
