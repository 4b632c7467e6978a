/* SPDX-License-Identifier: Apache-2.0 */
/* spans: see spans.h. */
#include "agent/torch/spans.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* A cell is free for the event of number `turn` if it has that number, and contains it if its
 * number is one more. Memory starts as zeros: numbers are stored minus the index of their cell,
 * so that all of them are free at first. */
struct spans_cell {
    uint64_t turn; /* atomic */
    struct spans_event event;
};

#define SPANS_TEXTS 512      /* waiting values; a power of two */
#define SPANS_TEXT_TRIES 16U /* slots that are tried */

struct spans_text {
    uint32_t used; /* atomic */
    char func[SPANS_FUNC], text[SPANS_TEXT];
};

static struct spans_text spans_texts[SPANS_TEXTS];
static uint32_t spans_text_at;      /* atomic */
static uint64_t spans_n_texts_lost; /* atomic */
static struct spans_cell spans_cells[SPANS_CAP];
static uint64_t spans_put_at, spans_take_at; /* numbers of events; the first is atomic */
static uint64_t spans_n_lost;                /* atomic */

static struct spans_cell *spans_cell(uint64_t number) { return &spans_cells[number % SPANS_CAP]; }

static uint64_t spans_turn(uint64_t number) { return number - number % SPANS_CAP; }

/* A cell for event `*number`; NULL if there is no room. */
static struct spans_cell *spans_claim(uint64_t *number) {
    uint64_t at = __atomic_load_n(&spans_put_at, __ATOMIC_RELAXED);
    for (;;) {
        struct spans_cell *c = spans_cell(at);
        int64_t ahead = (int64_t)(__atomic_load_n(&c->turn, __ATOMIC_ACQUIRE) - spans_turn(at));
        if (ahead < 0) {
            __atomic_add_fetch(&spans_n_lost, 1, __ATOMIC_RELEASE);
            return NULL;
        }
        if (ahead == 0 && __atomic_compare_exchange_n(&spans_put_at, &at, at + 1, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
            *number = at;
            return c;
        }
        if (ahead > 0)
            at = __atomic_load_n(&spans_put_at, __ATOMIC_RELAXED);
    }
}

static void spans_publish(struct spans_cell *c, uint64_t number) {
    __atomic_store_n(&c->turn, spans_turn(number) + 1, __ATOMIC_RELEASE);
}

void spans_begin(uint64_t key, const char *name) {
    uint64_t number, ns = clock_mono_ns();
    struct spans_cell *c = spans_claim(&number);
    if (!c)
        return;
    size_t n = 0;
    for (; name && name[n] && n < SPANS_NAME - 1; n++)
        c->event.name[n] = name[n];
    if (n < SPANS_NAME)
        c->event.name[n] = '\0';
    c->event.ns = ns;
    c->event.key = key;
    c->event.lost = spans_lost();
    c->event.tid = (int32_t)syscall(SYS_gettid);
    c->event.what = SPANS_BEGIN;
    spans_publish(c, number);
}

void spans_end(uint64_t key, uint64_t ns) {
    uint64_t number;
    struct spans_cell *c = spans_claim(&number);
    if (!c)
        return;
    c->event = (struct spans_event){.ns = ns, .key = key, .lost = spans_lost(), .what = SPANS_END};
    spans_publish(c, number);
}

void spans_report(const struct spans_event *e) {
    uint64_t number;
    struct spans_cell *c = spans_claim(&number);
    if (!c)
        return;
    c->event = *e;
    c->event.lost = spans_lost();
    c->event.tid = (int32_t)syscall(SYS_gettid);
    spans_publish(c, number);
}

/* ---- texts ---- */

static size_t spans_copy(char *to, size_t cap, const char *from) {
    size_t n = strnlen(from, cap - 1);
    memcpy(to, from, n);
    to[n] = '\0';
    return n;
}

int32_t spans_put_text(const char *func, const char *text) {
    for (uint32_t tries = 0; tries < SPANS_TEXT_TRIES; tries++) {
        uint32_t i = __atomic_fetch_add(&spans_text_at, 1, __ATOMIC_RELAXED) % SPANS_TEXTS, free = 0;
        struct spans_text *t = &spans_texts[i];
        if (!__atomic_compare_exchange_n(&t->used, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        spans_copy(t->func, sizeof t->func, func);
        spans_copy(t->text, sizeof t->text, text);
        return (int32_t)i;
    }
    __atomic_add_fetch(&spans_n_texts_lost, 1, __ATOMIC_RELAXED);
    return -1;
}

void spans_take_text(int32_t place, char *func, char *text) {
    struct spans_text *t = &spans_texts[(uint32_t)place % SPANS_TEXTS];
    spans_copy(func, SPANS_FUNC, t->func);
    spans_copy(text, SPANS_TEXT, t->text);
    __atomic_store_n(&t->used, 0, __ATOMIC_RELEASE);
}

uint64_t spans_texts_lost(void) { return __atomic_load_n(&spans_n_texts_lost, __ATOMIC_RELAXED); }

/* ---- reading ---- */

bool spans_take(struct spans_event *out) {
    struct spans_cell *c = spans_cell(spans_take_at);
    if (__atomic_load_n(&c->turn, __ATOMIC_ACQUIRE) != spans_turn(spans_take_at) + 1)
        return false;
    *out = c->event;
    __atomic_store_n(&c->turn, spans_turn(spans_take_at) + SPANS_CAP, __ATOMIC_RELEASE);
    spans_take_at++;
    for (char *p = out->name; out->what == SPANS_BEGIN && *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    return true;
}

uint64_t spans_lost(void) { return __atomic_load_n(&spans_n_lost, __ATOMIC_ACQUIRE); }

void spans_begin_anew(void) {
    memset(spans_cells, 0, sizeof spans_cells);
    memset(spans_texts, 0, sizeof spans_texts);
    spans_put_at = spans_take_at = spans_n_lost = 0;
}
