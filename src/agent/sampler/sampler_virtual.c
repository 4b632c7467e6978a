/* SPDX-License-Identifier: Apache-2.0 */
/* sampler_virtual: what the python worker is to do for clients: rows that Python makes, and code of theirs; see sampler_internal.h. */
#include <stdlib.h>

#include "agent/server/reply.h"
#include "agent/sampler/snapshot_request.h"
#include "agent/sampler/sampler_internal.h"

/* Variables of frames of a thread, or of all (0). Nothing is to be signalled for that. */
static const struct model_snapshot *sampler_snapshot_roots(struct sampler *s, int64_t tid,
                                                           struct model_snapshot *out) {
    const struct snapshot_request wishes = {.locals = true, .of = {.tid = tid}};
    struct pystack *ps = sampler_pystack(s);
    *out = (struct model_snapshot){0};
    if (!ps)
        return NULL;
    thread_sampler_collect(&s->profile, ps);
    return snapshot_request_snapshot(ps, &s->profile, &wishes, out, NULL) == 0 ? out : NULL;
}

/* The job's last step, for what is compared over steps. */
static void sampler_put_step(const struct sampler *s, struct wire_rows_ask *ask) {
    const struct steps *steps = &s->always.record.steps.steps;
    if (s->always.record.steps.told && ask->n_args < WIRE_ROWS_ARGS)
        ask->args[ask->n_args++] = (struct wire_rows_arg){.key = "step", .number = steps->count};
}

void sampler_answer_virtual(struct sampler *s, const struct sampler_plan *plan) {
    uint64_t cpu = clock_self_cpu_ns();
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        for (size_t k = 0; plan->slots[i].peer && k < plan->slots[i].n_asks; k++) {
            const struct mailbox_slot *slot = &plan->slots[i];
            struct model_snapshot roots;
            if (slot->asks[k].method != WIRE_ROWS)
                continue;
            const struct virtual_tables_table *table = virtual_tables_find_table(slot->rows.table);
            bool wanted = table && table->roots;
            const struct model_snapshot *found = wanted ? sampler_snapshot_roots(s, 0, &roots) : NULL;
            struct wire_rows_ask ask = slot->rows;
            sampler_put_step(s, &ask);
            virtual_tables_begin(&s->made, slot->peer, slot->asks[k].id, &ask, found);
            if (wanted)
                model_snapshot_fini(&roots);
        }
    spending_elsewhere(&s->spending, cpu);
    s->wake(s->arg);
}

void sampler_answer_evals(struct sampler *s, const struct sampler_plan *plan) {
    uint64_t cpu = clock_self_cpu_ns();
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        for (size_t k = 0; plan->slots[i].peer && k < plan->slots[i].n_asks; k++) {
            const struct mailbox_slot *slot = &plan->slots[i];
            struct model_snapshot roots;
            if (slot->asks[k].method != WIRE_EVAL || !slot->eval)
                continue;
            const struct evals_ask ask = {.peer = slot->peer,
                                          .id = slot->asks[k].id,
                                          .uid = slot->uid,
                                          .pid = slot->pid,
                                          .want = slot->eval};
            bool wanted = slot->eval->tid != 0;
            const struct model_snapshot *found =
                wanted ? sampler_snapshot_roots(s, slot->eval->tid, &roots) : NULL;
            evals_begin(&s->evals, &ask, found);
            if (wanted)
                model_snapshot_fini(&roots);
            free(slot->eval);
        }
    spending_elsewhere(&s->spending, cpu);
    s->wake(s->arg);
}
