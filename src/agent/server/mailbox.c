/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox: see mailbox.h. futex(2). */
#include "agent/server/mailbox.h"

#include <linux/futex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/access/endpoints_file.h"
#include "agent/tables/record.h"
#include "base/clock.h"
#include "store/ring/ring_tables.h"

int mailbox_init(struct mailbox *m) {
    *m = (struct mailbox){.status.of = {.us_per_sample = NAN,
                                        .us_per_signal = NAN,
                                        .kept_hz = NAN,
                                        .collect_pct = NAN,
                                        .collect_us_per_s = NAN,
                                        .collect_threads_s = NAN,
                                        .us_per_span = NAN,
                                        .phases_pct = NAN}};
    m->last_step = -1;
    m->rooms[0].most = MAILBOX_MOST;
    m->rooms[1].most = MAILBOX_LOOKERS_MOST;
    config_init(&m->config);
    if (pthread_mutex_init(&m->lock, NULL) != 0)
        return -1;
    m->made = true;
    return 0;
}

void mailbox_reading_free(struct mailbox_reading *r) {
    model_snapshot_fini(&r->frames);
    free(r);
}

static void mailbox_free_readings(struct mailbox_reading *r) {
    for (struct mailbox_reading *next; r; r = next) {
        next = r->next;
        mailbox_reading_free(r);
    }
}

void mailbox_fini(struct mailbox *m) {
    if (!m->made)
        return;
    for (struct queue_item *item = m->head, *next; item; item = next) {
        next = item->next;
        queue_item_free(item);
    }
    mailbox_free_readings(m->to_read);
    mailbox_free_readings(m->read);
    pthread_mutex_destroy(&m->lock);
    *m = (struct mailbox){0};
}

static void mailbox_lock(struct mailbox *m) { pthread_mutex_lock(&m->lock); }

static void mailbox_unlock(struct mailbox *m) { pthread_mutex_unlock(&m->lock); }

/* Unlock and wake the sampler. */
static void mailbox_changed(struct mailbox *m) {
    bool asleep = m->asleep;
    __atomic_add_fetch(&m->changes, 1, __ATOMIC_RELEASE);
    mailbox_unlock(m);
    if (asleep)
        syscall(SYS_futex, &m->changes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Without the lock: a sampler that is about to sleep may miss it. */
void mailbox_wake(struct mailbox *m) {
    __atomic_add_fetch(&m->changes, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &m->changes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* A condition variable of the C library would work, but a thread that wakes from one takes the
 * mutex as if others waited for it, so each unlock is a call of the kernel. */
void mailbox_sleep(struct mailbox *m, uint64_t until_ns) {
    struct timespec ts = {.tv_sec = (time_t)(until_ns / CLOCK_NS_PER_S),
                          .tv_nsec = (long)(until_ns % CLOCK_NS_PER_S)};
    uint32_t seen = __atomic_load_n(&m->changes, __ATOMIC_ACQUIRE);
    m->asleep = true;
    mailbox_unlock(m);
    syscall(SYS_futex, &m->changes, FUTEX_WAIT_BITSET_PRIVATE, seen, until_ns == MAILBOX_FOREVER ? NULL : &ts,
            NULL, FUTEX_BITSET_MATCH_ANY);
    mailbox_lock(m);
    m->asleep = false;
}

static struct mailbox_slot *mailbox_find(struct mailbox *m, uint32_t peer) {
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        if (m->slots[i].peer == peer)
            return &m->slots[i];
    return NULL;
}

struct queue_budget *mailbox_budget(struct mailbox *m, bool looker) {
    return &m->rooms[looker];
}

int mailbox_attach(struct mailbox *m, uint32_t peer, bool looker) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, 0);
    if (slot)
        *slot = (struct mailbox_slot){.peer = peer, .looker = looker, .uid = -1, .pid = -1};
    mailbox_unlock(m);
    return slot ? 0 : -1;
}

void mailbox_detach(struct mailbox *m, uint32_t peer) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, peer);
    if (slot)
        *slot = (struct mailbox_slot){0};
    mailbox_changed(m);
}

bool mailbox_begin_snapshot(struct mailbox *m, struct mailbox_slot *slot, enum wire_method method) {
    bool looks = method == WIRE_THREADS || method == WIRE_TABLES;
    if (!looks && method != WIRE_PULL)
        return true;
    bool others = slot->looker && (m->looked_for || m->looker_bytes > 0);
    m->held |= others;
    if (others || (looks && slot->looking))
        return false;
    slot->looking |= looks;
    if (slot->looker)
        m->looked_for = slot->peer;
    return true;
}

void mailbox_end_snapshot(struct mailbox *m, uint32_t peer) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, peer);
    if (m->looked_for == peer)
        m->looked_for = 0;
    if (slot)
        slot->looking = false;
    if (m->held || (slot && slot->n_asks > 0))
        mailbox_changed(m);
    else
        mailbox_unlock(m);
}

void mailbox_end_pull(struct mailbox *m, uint32_t peer) {
    mailbox_lock(m);
    if (m->looked_for == peer)
        m->looked_for = 0;
    mailbox_changed(m);
}

void mailbox_introduce(struct mailbox *m, uint32_t peer, int64_t uid, int64_t pid) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, peer);
    if (slot) {
        slot->uid = uid;
        slot->pid = pid;
    }
    mailbox_unlock(m);
}

void mailbox_get_client(struct mailbox *m, uint32_t peer, int64_t *uid, int64_t *pid) {
    mailbox_lock(m);
    const struct mailbox_slot *slot = mailbox_find(m, peer);
    *uid = slot ? slot->uid : -1;
    *pid = slot ? slot->pid : -1;
    mailbox_unlock(m);
}

bool mailbox_has(struct mailbox *m, uint32_t peer) {
    mailbox_lock(m);
    bool there = mailbox_find(m, peer) != NULL;
    mailbox_unlock(m);
    return there;
}

/* With the lock: true if one more request of the client may wait. */
static bool mailbox_may_ask(const struct mailbox_slot *slot, enum wire_method method) {
    for (size_t k = 0; k < slot->n_asks; k++)
        if (slot->asks[k].method == WIRE_PULL && method == WIRE_PULL)
            return false;
    return slot->n_asks < MAILBOX_MAX_ASKS;
}

int mailbox_ask(struct mailbox *m, uint32_t peer, const struct mailbox_ask *ask) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, peer);
    if (!slot || !mailbox_may_ask(slot, ask->method)) {
        mailbox_unlock(m);
        return -1;
    }
    slot->asks[slot->n_asks++] = *ask;
    slot->leaving |= ask->method == WIRE_UNSUBSCRIBE;
    if (ask->method == WIRE_THREADS) {
        m->spoken = true;
        m->spoken_mode = ask->threads.mode;
    }
    mailbox_changed(m);
    return 0;
}

/* Append to a list, whose order is that of the requests. */
static void mailbox_append_reading(struct mailbox_reading **at, struct mailbox_reading *r) {
    r->next = NULL;
    while (*at)
        at = &(*at)->next;
    *at = r;
}

void mailbox_ask_reading(struct mailbox *m, struct mailbox_reading *r) {
    mailbox_lock(m);
    mailbox_append_reading(&m->to_read, r);
    mailbox_changed(m);
}

void mailbox_post_reading(struct mailbox *m, struct mailbox_reading *r) {
    mailbox_lock(m);
    mailbox_append_reading(&m->read, r);
    mailbox_unlock(m);
}

struct mailbox_reading *mailbox_take_readings(struct mailbox *m) {
    mailbox_lock(m);
    struct mailbox_reading *r = m->read;
    m->read = NULL;
    mailbox_unlock(m);
    return r;
}

void mailbox_subscribe(struct mailbox *m, uint32_t peer, enum wire_stream stream, double rate_hz,
                       enum model_sampling mode) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, peer);
    if (slot) {
        if (stream == WIRE_STREAM_SAMPLES && (slot->rate_hz[stream] == 0 || slot->leaving)) {
            slot->sent = (struct queue_mark){.generation = slot->sent.generation + 1};
            slot->first_sample = MAILBOX_NEXT_SAMPLE;
            slot->began = slot->sent.generation;
            slot->leaving = false;
        }
        if (stream == WIRE_STREAM_THREADS)
            slot->due_ns = 0;
        slot->rate_hz[stream] = rate_hz;
        slot->mode[stream] = mode;
        m->spoken |= rate_hz > 0;
        m->spoken_mode = rate_hz > 0 ? mode : m->spoken_mode;
    }
    mailbox_changed(m);
}

void mailbox_end_samples(struct mailbox *m, uint32_t peer) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, peer);
    if (slot && slot->leaving) {
        slot->rate_hz[WIRE_STREAM_SAMPLES] = slot->batch_s = 0;
        slot->leaving = slot->native = false;
    }
    mailbox_changed(m);
}

int mailbox_configure(struct mailbox *m, const char *key, const char *value, struct err *e) {
    int k = config_find(key, e);
    if (k < 0)
        return -1;
    if (config_defs[k].at_start)
        return err_set(e, ERR_USAGE, "%s is read when an agent starts: set %s for the job",
                       config_defs[k].name, config_defs[k].env);
    mailbox_lock(m);
    int rc = config_set(&m->config, (enum config_key)k, config_defs[k].name, value, e);
    m->config_changes += rc == 0;
    bool eval = m->config.values[CONFIG_EVAL] != 0;
    mailbox_changed(m);
    endpoints_file_set_eval(eval);
    return rc;
}

bool mailbox_would_allow_eval(struct mailbox *m, const char *key, const char *value) {
    struct config scratch;
    config_init(&scratch);
    if (config_find(key, NULL) != CONFIG_EVAL || config_set(&scratch, CONFIG_EVAL, key, value, NULL) != 0)
        return false;
    mailbox_lock(m);
    bool off = m->config.values[CONFIG_EVAL] == 0;
    mailbox_unlock(m);
    return off && scratch.values[CONFIG_EVAL] != 0;
}

void mailbox_set_batch(struct mailbox *m, uint32_t peer, double batch_s) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, peer);
    if (slot)
        slot->batch_s = batch_s;
    mailbox_changed(m);
}

void mailbox_set_native(struct mailbox *m, uint32_t peer, bool native) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, peer);
    if (slot)
        slot->native = native;
    mailbox_changed(m);
}

void mailbox_set_budget(struct mailbox *m, uint32_t peer, enum wire_stream stream, double budget_pct) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, peer);
    if (slot)
        slot->budget_pct[stream] = budget_pct;
    mailbox_changed(m);
}

static size_t mailbox_min(size_t a, size_t b) { return a < b ? a : b; }

void mailbox_rollback(struct mailbox *m, uint32_t peer, const struct queue_mark *mark) {
    mailbox_lock(m);
    struct mailbox_slot *slot = mailbox_find(m, peer);
    if (slot && slot->sent.generation == mark->generation) {
        struct queue_mark *sent = &slot->sent;
        /* Of another epoch than the lost batch began in, nothing has arrived. */
        bool same = sent->epoch == mark->epoch;
        sent->generation++;
        sent->frames = same ? mailbox_min(sent->frames, mark->frames) : 0;
        sent->stacks = same ? mailbox_min(sent->stacks, mark->stacks) : 0;
        sent->names = same ? mailbox_min(sent->names, mark->names) : 0;
    }
    mailbox_unlock(m);
}

enum mailbox_batch mailbox_judge(struct mailbox *m, uint32_t peer, uint32_t generation) {
    mailbox_lock(m);
    const struct mailbox_slot *slot = mailbox_find(m, peer);
    enum mailbox_batch batch = slot && slot->sent.generation == generation ? MAILBOX_CURRENT : MAILBOX_LOST;
    if (slot && generation < slot->began)
        batch = MAILBOX_OVER;
    mailbox_unlock(m);
    return batch;
}

struct queue_item *mailbox_take(struct mailbox *m) {
    mailbox_lock(m);
    struct queue_item *items = m->head;
    m->head = m->tail = NULL;
    m->n_notes = m->note_bytes = m->looker_bytes = 0;
    bool held = m->held;
    m->held = false;
    if (held)
        mailbox_changed(m);
    else
        mailbox_unlock(m);
    return items;
}

void mailbox_count_dropped(struct mailbox *m, uint64_t samples) {
    mailbox_lock(m);
    m->status.of.dropped += samples;
    mailbox_unlock(m);
}

void mailbox_get_status(struct mailbox *m, struct mailbox_status *out) {
    mailbox_lock(m);
    *out = m->status;
    out->of.rate_hz = 0;
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        if (m->slots[i].rate_hz[WIRE_STREAM_SAMPLES] > out->of.rate_hz)
            out->of.rate_hz = m->slots[i].rate_hz[WIRE_STREAM_SAMPLES];
    mailbox_unlock(m);
}

void mailbox_set_server_bytes(struct mailbox *m, size_t bytes) {
    mailbox_lock(m);
    m->server_bytes = bytes;
    mailbox_unlock(m);
}

void mailbox_stop(struct mailbox *m) {
    mailbox_lock(m);
    m->stop = true;
    mailbox_changed(m);
}

void mailbox_poke(struct mailbox *m) {
    mailbox_lock(m);
    m->poke = true;
    mailbox_changed(m);
}

void mailbox_nudge(struct mailbox *m) {
    mailbox_lock(m);
    m->nudge = true;
    mailbox_changed(m);
}

void mailbox_note_refusal(struct mailbox *m, uint32_t peer, int64_t uid, const char *text) {
    struct refusals row;
    int64_t pid = -1;
    if (peer && mailbox_has(m, peer))
        mailbox_get_client(m, peer, &uid, &pid);
    if (refusals_note(&m->refusals, clock_mono_ns(), uid, pid, text) && refusals_take(&m->refusals, &row) &&
        m->record)
        record_event(m->record, RING_EVENT_REFUSED, row.uid, row.pid, row.text);
}

void mailbox_set_first(struct mailbox *m, size_t n) {
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        if (m->slots[i].first_sample == MAILBOX_NEXT_SAMPLE)
            m->slots[i].first_sample = n;
}

int mailbox_post(struct mailbox *m, struct queue_item *item) {
    if (!item)
        return -1;
    bool note = item->kind == QUEUE_SNAPSHOT || item->kind == QUEUE_SAMPLES;
    mailbox_lock(m);
    const struct mailbox_slot *slot = mailbox_find(m, item->peer);
    bool room = m->n_notes < MAILBOX_MAX_NOTES && m->note_bytes < MAILBOX_MAX_NOTE_BYTES;
    bool looker = slot && slot->looker;
    if (looker) /* one is accepted, however long it is */
        room = room && (m->looker_bytes == 0 || m->looker_bytes + item->bytes->len <= MAILBOX_LOOKER_ANSWER);
    if ((item->pulled || item->looked) && m->looked_for == item->peer)
        m->looked_for = 0;
    if (!slot || (note && !room)) {
        mailbox_unlock(m);
        queue_item_free(item);
        return -1;
    }
    m->n_notes += note;
    m->note_bytes += note ? item->bytes->len : 0;
    m->looker_bytes += looker ? item->bytes->len : 0;
    if (m->tail)
        m->tail->next = item;
    else
        m->head = item;
    m->tail = item;
    mailbox_unlock(m);
    return 0;
}
