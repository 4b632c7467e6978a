/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_tables: tables that Python makes in the job when they are asked for, and who waits for one.
 *
 * A table is a PYTHON_TABLE of store/ring/tables.def, which names the unit of Python and the function that make it (worker_rows.h). The
 * sampler never waits: it submits a job, and looks again when the worker has woken it, or at a deadline. Then the answer goes out with what
 * there is, and its note says what could not be had. Belongs to the sampler's thread.
 */
#ifndef AGENT_PYTHON_VIRTUAL_TABLES_H
#define AGENT_PYTHON_VIRTUAL_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/python/worker.h"
#include "base/model.h"
#include "pystack/pystack.h"
#include "wire/wire.h"

#define VIRTUAL_TABLES_MAX 6         /* questions that wait at the same time */
#define VIRTUAL_TABLES_LIMIT_MS 3000 /* after that an answer has what there is by then */
#define VIRTUAL_TABLES_STILL_MS 500  /* a worker that has not got on for so long does not have the GIL */

struct virtual_tables_table {
    const char *name, *unit, *function;
    bool roots; /* it looks at variables of running frames */
};

/* The table of that name; NULL: there is none. */
const struct virtual_tables_table *virtual_tables_find_table(const char *name);

/* Who asked. */
struct virtual_tables_item {
    struct worker_job *job; /* NULL: free */
    uint32_t peer, id;
    uint64_t deadline_ns, moved_ns, progress;
    bool stopped;
};

struct virtual_tables {
    struct worker *worker;
    /* The answer, or NULL and the error. */
    void (*answer)(void *arg, uint32_t peer, uint32_t id, const struct wire_rows *r, const struct err *e);
    void *arg;
    struct virtual_tables_item items[VIRTUAL_TABLES_MAX];
    uint64_t look_ns; /* when those that wait are looked at again */
};

/* Have a question answered, at once or later. `roots`: a snapshot with locals when the table wants them; NULL: there is none. */
void virtual_tables_begin(struct virtual_tables *m, uint32_t peer, uint32_t id,
                          const struct wire_rows_ask *ask, const struct model_snapshot *roots);

/* Answer what is ready or late. `ps`: to tell who holds the GIL; may be NULL. */
void virtual_tables_poll(struct virtual_tables *m, struct pystack *ps);

/* When to look again at the latest; UINT64_MAX: nothing waits. */
uint64_t virtual_tables_next_ns(const struct virtual_tables *m);

/* Nobody gets an answer any more. */
void virtual_tables_fini(struct virtual_tables *m);

#endif
