/* SPDX-License-Identifier: Apache-2.0 */
/* saves: see saves.h. Functions: torch/serialization.py, torch/distributed/checkpoint/state_dict_saver.py (save calls
 * torch.save for what is no tensor: the outermost counts; async_save returns early and saves on a thread of its own),
 * safetensors/torch.py. */
#include "agent/saves.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SAVES_NONE 1
#define SAVES_FIRST 2
#define SAVES_LOST_S 2.0   /* a thread without samples for so long, */
#define SAVES_BEGUN 2      /* intervals after the first sample */
#define SAVES_LOST_TIMES 5 /* or for so many intervals, has ended */

/* A function that saves, by its name and the end of its file. */
static const struct {
    const char *func, *file, *name;
} saves_functions[] = {
    {"save", "torch/serialization.py", "torch.save"},
    {"save", "torch/distributed/checkpoint/state_dict_saver.py", "torch.distributed.checkpoint.save"},
    {"save_state_dict", "torch/distributed/checkpoint/state_dict_saver.py",
     "torch.distributed.checkpoint.save_state_dict"},
    {"async_save", "torch/distributed/checkpoint/state_dict_saver.py",
     "torch.distributed.checkpoint.async_save"},
    {"save_file", "safetensors/torch.py", "safetensors.torch.save_file"},
};
#define SAVES_FUNCTIONS (sizeof saves_functions / sizeof saves_functions[0])

static bool saves_ends(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n > k && text[n - k - 1] == '/' && strcmp(text + n - k, end) == 0;
}

static uint8_t saves_look(const struct model_frame *f) {
    for (size_t i = 0; f->func && f->file && i < SAVES_FUNCTIONS; i++)
        if (strcmp(f->func, saves_functions[i].func) == 0 && saves_ends(f->file, saves_functions[i].file))
            return (uint8_t)(SAVES_FIRST + i);
    return SAVES_NONE;
}

/* Room for what is known of all stacks there are. 0, or -1 without memory. */
static int saves_make_room(struct saves *s, size_t n_stacks) {
    size_t n = s->n_known ? s->n_known : 1024;
    if (n_stacks < s->n_known)
        return 0;
    while (n <= n_stacks)
        n *= 2;
    uint8_t *known = realloc(s->known, n);
    if (!known)
        return -1;
    memset(known + s->n_known, 0, n - s->n_known);
    s->known = known;
    s->n_known = n;
    return 0;
}

/* What is known of a stack. Parents have smaller numbers, so what is new is filled from the outermost frame on: the first
 * function that saves is the one. */
static uint8_t saves_find(struct saves *s, const struct trie *t, uint32_t stack) {
    uint32_t path[256];
    size_t n = 0;
    uint32_t at = stack;
    while (at && !s->known[at]) {
        if (n == sizeof path / sizeof path[0]) { /* a deep one: its outer part first */
            (void)saves_find(s, t, at);
            break;
        }
        path[n++] = at;
        at = t->stacks[at - 1].parent_id;
    }
    uint8_t is = at ? s->known[at] : SAVES_NONE;
    while (n > 0) {
        const struct model_stack_def *def = &t->stacks[path[--n] - 1];
        if (is == SAVES_NONE)
            is = saves_look(&t->frames[def->frame_id - 1].frame);
        s->known[path[n]] = is;
    }
    return is;
}

static void saves_end(struct saves_open *o, double ended, const struct saves_handler *h) {
    struct saves_save save = {.name = saves_functions[o->row].name,
                              .tid = o->tid,
                              .step = o->step,
                              .began = o->began,
                              .ended = ended};
    o->tid = 0;
    h->on_save(h->arg, &save);
}

static struct saves_open *saves_of(struct saves *s, int64_t tid) {
    for (size_t i = 0; i < SAVES_THREADS; i++)
        if (s->open[i].tid == tid)
            return &s->open[i];
    return NULL;
}

static double saves_limit(double period_s) {
    return SAVES_LOST_TIMES * period_s > SAVES_LOST_S ? SAVES_LOST_TIMES * period_s : SAVES_LOST_S;
}

void saves_take(struct saves *s, const struct trie *t, uint32_t epoch, const struct model_sample *sample,
                double period_s, int64_t step, const struct saves_handler *h) {
    struct saves_open *o = saves_of(s, sample->tid);
    if (epoch != s->epoch && s->known)
        memset(s->known, 0, s->n_known);
    s->epoch = epoch;
    if (s->last == 0 || sample->timestamp - s->last > saves_limit(period_s))
        s->from = sample->timestamp;
    s->last = sample->timestamp;
    if (sample->torn || !sample->stack_id || sample->stack_id > t->n_stacks ||
        saves_make_room(s, t->n_stacks) != 0)
        return; /* it says nothing */
    uint8_t is = saves_find(s, t, sample->stack_id);
    size_t row = is < SAVES_FIRST ? 0 : (size_t)(is - SAVES_FIRST);
    if (o && (is == SAVES_NONE || o->row != row)) {
        saves_end(o, (o->last + sample->timestamp) / 2, h);
        o = NULL;
    }
    if (is == SAVES_NONE)
        return;
    bool is_new = sample->timestamp - s->from < SAVES_BEGUN * period_s; /* nobody looked before */
    if (!o && (o = saves_of(s, 0)))
        *o = (struct saves_open){.tid = sample->tid,
                                 .step = step,
                                 .row = row,
                                 .began = is_new ? NAN : sample->timestamp - period_s / 2};
    if (o)
        o->last = sample->timestamp;
}

void saves_settle(struct saves *s, double now, double period_s, const struct saves_handler *h) {
    for (size_t i = 0; i < SAVES_THREADS; i++)
        if (s->open[i].tid && now - s->open[i].last > saves_limit(period_s))
            saves_end(&s->open[i], s->open[i].last + period_s / 2, h);
}

size_t saves_bytes(const struct saves *s) { return s->n_known; }

void saves_fini(struct saves *s) {
    free(s->known);
    *s = (struct saves){.epoch = 0};
}
