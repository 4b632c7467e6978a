/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_tables: tables that Python makes in the job on request, and the requests that wait for
 * them.
 *
 * A table is a PYTHON_TABLE of store/ring/tables.def, which names its unit of Python and its
 * function (worker_rows.h). The server never waits: it submits a job, and checks it again when
 * the worker has woken it, or at a deadline. Then the answer is sent with the available rows,
 * and its note lists the missing data. Belongs to the server's thread.
 */
#ifndef AGENT_SERVER_VIRTUAL_TABLES_H
#define AGENT_SERVER_VIRTUAL_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/python/worker.h"
#include "agent/server/call.h"
#include "base/model.h"
#include "pystack/gate.h"

#define VIRTUAL_TABLES_MAX 6         /* requests that wait at the same time */
#define VIRTUAL_TABLES_LIMIT_MS 3000 /* after that the answer has the rows so far */
/* a worker without progress for so long does not have the GIL */
#define VIRTUAL_TABLES_STILL_MS 500

struct virtual_tables_table {
    const char *name, *unit, *function;
    bool roots; /* it reads variables of running frames */
};

/* The table with that name; NULL if there is none. */
const struct virtual_tables_table *virtual_tables_find_table(const char *name);

/* A request that the worker has. */
struct virtual_tables_item {
    struct worker_job *job; /* NULL if free */
    struct call *call;
    uint64_t deadline_ns, moved_ns, progress;
    bool stopped;
};

struct virtual_tables {
    struct worker *worker;
    void (*wake)(void *arg); /* makes the server's thread poll; any thread */
    void *arg;
    struct virtual_tables_item items[VIRTUAL_TABLES_MAX];
    uint64_t look_ns; /* time of the next check of waiting requests */
};

/* Answer a request, immediately or later. `roots`: a snapshot with locals if the table needs
 * them; NULL if there is none. */
void virtual_tables_begin(struct virtual_tables *m, struct call *call, const struct model_snapshot *roots);

/* Answer a request that has not got the GIL in time; `gate` NULL: its state is unknown. */
void virtual_tables_explain(struct call *call, const struct pystack_gate *gate);

/* Nobody waits for this request any longer. */
void virtual_tables_forget(struct virtual_tables *m, const struct call *call);

/* Answer what is ready or late. */
void virtual_tables_poll(struct virtual_tables *m);

/* The latest time of the next poll; UINT64_MAX if nothing waits. */
uint64_t virtual_tables_next_ns(const struct virtual_tables *m);

/* From now on nobody gets an answer. */
void virtual_tables_fini(struct virtual_tables *m);

#endif
