/* SPDX-License-Identifier: Apache-2.0 */
/* background: see background.h. */
#include "agent/sampler/background.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "version.h"

#define BACKGROUND_PATIENCE_NS (3 * CLOCK_NS_PER_S)
/* the client is answered first, then the tables are set up */
#define BACKGROUND_AFTER_NS (150 * CLOCK_NS_PER_MS)
#define BACKGROUND_LATE_NS (300 * CLOCK_NS_PER_MS)  /* maximum time that rows wait for a tick */
#define BACKGROUND_EARLY_NS (300 * CLOCK_NS_PER_MS) /* or are written before they are due, with it */
/* minimum time between two epochs started for the tables */
#define BACKGROUND_EPOCH_NS (10 * CLOCK_NS_PER_S)
#define BACKGROUND_MANY_STACKS 20000

void background_init(struct background *a, struct mailbox *m, bool invited) {
    *a = (struct background){.config = m->config, .config_changes = m->config_changes};
    a->patient_until_ns = invited ? clock_mono_ns() + BACKGROUND_PATIENCE_NS : 0;
    record_init(&a->record, &m->config);
    a->record.second_due_ns += invited ? BACKGROUND_AFTER_NS : 0;
}

void background_read(struct background *a, const struct mailbox *m, struct background_plan *plan) {
    plan->configure = m->config_changes != a->config_changes;
    if (!plan->configure)
        return;
    a->config = m->config;
    a->config_changes = m->config_changes;
}

double background_rate(const struct background *a, const struct mailbox *m, uint64_t now_ns,
                       uint64_t *next_ns) {
    if (!a->record.set)
        return 0;
    if (m->spoken || now_ns >= a->patient_until_ns)
        return a->config.values[CONFIG_SAMPLE_RATE];
    if (a->patient_until_ns < *next_ns)
        *next_ns = a->patient_until_ns;
    return 0;
}

bool background_gentle(const struct background *a, const struct mailbox *m) {
    (void)a;
    return m->spoken && m->spoken_mode == MODEL_SAMPLING_GENTLE;
}

void background_tune(struct background *a, double hz, bool listened, struct background_plan *plan) {
    plan->retune = a->hz > 0 && hz > 0 && (hz != a->hz || listened != a->listened);
    plan->fresh = listened && !a->listened;
    plan->soon = hz > a->hz || plan->fresh;
    a->hz = hz;
    a->listened = listened;
}

uint64_t background_latest_ns(const struct background *a, uint64_t now_ns) {
    uint64_t due = record_due_ns(&a->record);
    if (due == RECORD_NEVER)
        return due;
    /* those that are due are written at this tick */
    return due + BACKGROUND_LATE_NS + (due <= now_ns ? CLOCK_NS_PER_S : 0);
}

void background_plan_second(const struct background *a, bool tick, bool ticking, uint64_t now_ns,
                            struct background_plan *plan, uint64_t *next_ns) {
    uint64_t due = record_due_ns(&a->record);
    if (due == RECORD_NEVER)
        return;
    uint64_t latest = ticking ? due + BACKGROUND_LATE_NS : due;
    uint64_t early_ns = a->record.set ? BACKGROUND_EARLY_NS : 0;
    plan->second = latest <= now_ns || (tick && due <= now_ns + early_ns);
    if (latest < *next_ns)
        *next_ns = latest;
}

void background_publish(struct background *a, const struct training *training, struct mailbox *m) {
    struct mailbox_status *st = &m->status;
    struct record *r = &a->record;
    uint64_t up = clock_mono_ns() - r->began_ns;
    struct model_table tables[RING_TABLE_KEPT];
    /* Before the lock: whoever has the record's may wait for a disk, and the server must not. */
    size_t n_tables = record_list(r, tables);
    _Static_assert(MAILBOX_TABLES >= RING_TABLE_KEPT, "there are more tables than status has room for");
    pthread_mutex_lock(&m->lock);
    memcpy(st->tables, tables, n_tables * sizeof tables[0]);
    st->n_tables = n_tables;
    st->of.always_hz = r->set ? a->config.values[CONFIG_SAMPLE_RATE] : 0;
    st->of.collect_pct = r->cost_pct;
    st->of.collect_us_per_s = up ? (double)r->cost_ns * 1e6 / (double)up : NAN;
    st->of.collect_threads_s = r->collect.threads_stretched
                                   ? (double)(r->collect.threads_due_ns - r->collect.threads_ns) / 1e9 + 0.5
                                   : NAN;
    st->of.collect_missed = r->missed;
    training_publish(training, st);
    snprintf(st->data_dir, sizeof st->data_dir, "%s", r->set ? ring_set_path(r->set) : "");
    const char *gc = r->set && r->gc.note ? r->gc.note : "";
    snprintf(st->collect_note, sizeof st->collect_note, "%s%s%s%s", r->note, r->note[0] && gc[0] ? "; " : "",
             gc[0] ? "python.gc: " : "", gc);
    pthread_mutex_unlock(&m->lock);
}

size_t background_view(const struct background *a, struct mailbox *m, struct record_view *view) {
    (void)a;
    pthread_mutex_lock(&m->lock);
    *view =
        (struct record_view){.dropped = m->status.of.dropped, .us_per_sample = m->status.of.us_per_sample};
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        view->clients += m->slots[i].peer != 0;
    size_t bytes = m->server_bytes;
    pthread_mutex_unlock(&m->lock);
    return bytes;
}

bool background_wants_epoch(struct background *a, const struct thread_sampler *p,
                            const struct background_plan *plan) {
    uint64_t now_ns = clock_mono_ns();
    bool many = plan->retune && plan->fresh && p->trie.n_stacks > BACKGROUND_MANY_STACKS;
    bool due = a->outgrown && now_ns - a->epoch_ns > BACKGROUND_EPOCH_NS;
    if (due)
        a->epoch_ns = now_ns;
    a->outgrown = a->outgrown && !due;
    return many || due;
}

/* Its own name, otherwise the kernel's; NULL if unknown. */
static const char *background_either(const struct thread_sampler_thread *t) {
    return t->name ? t->name : t->native_name[0] ? t->native_name : NULL;
}

/* See struct record_samples. Threads are looked up in about the same order each time. */
static const char *background_thread_name(struct record_samples *s, int64_t tid, bool any) {
    const struct thread_sampler *p = s->sampler;
    for (size_t k = 0; k < p->n_threads; k++) {
        size_t i = (s->guess + k) % p->n_threads;
        if (p->threads[i].py.tid != tid)
            continue;
        s->guess = i + 1;
        return any ? background_either(&p->threads[i]) : p->threads[i].name;
    }
    for (size_t i = 0; any && i < p->n_ended; i++)
        if (p->ended[i].py.tid == tid)
            return background_either(&p->ended[i]);
    return NULL;
}

struct record_samples background_samples(const struct thread_sampler *p) {
    return (struct record_samples){.trie = &p->trie,
                                   .epoch = p->epoch,
                                   .samples = p->samples,
                                   .n = p->n_samples,
                                   .total = p->total_samples,
                                   .period_us = p->period_us,
                                   .thread_name = background_thread_name,
                                   .sampler = p};
}
