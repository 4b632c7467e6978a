/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints: see checkpoints.h. Functions: torch/serialization.py,
 * torch/distributed/checkpoint/state_dict_saver.py (save calls torch.save for objects that are
 * not tensors: the outermost counts; async_save returns early and saves on a thread of its own),
 * safetensors/torch.py. */
#include "agent/tables/checkpoints.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CHECKPOINTS_NONE 1
#define CHECKPOINTS_FIRST 2
#define CHECKPOINTS_LOST_S 2.0   /* a thread without samples for so long */
#define CHECKPOINTS_BEGUN 2      /* maximum number of intervals before the first sample */
#define CHECKPOINTS_LOST_TIMES 5 /* or for so many intervals has ended */

/* A function that saves, identified by its name and the end of its file. */
static const struct {
    const char *func, *file, *name;
} checkpoints_functions[] = {
    {"save", "torch/serialization.py", "torch.save"},
    {"save", "torch/distributed/checkpoint/state_dict_saver.py", "torch.distributed.checkpoint.save"},
    {"save_state_dict", "torch/distributed/checkpoint/state_dict_saver.py",
     "torch.distributed.checkpoint.save_state_dict"},
    {"async_save", "torch/distributed/checkpoint/state_dict_saver.py",
     "torch.distributed.checkpoint.async_save"},
    {"save_file", "safetensors/torch.py", "safetensors.torch.save_file"},
};
#define CHECKPOINTS_FUNCTIONS (sizeof checkpoints_functions / sizeof checkpoints_functions[0])

static bool checkpoints_ends(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n > k && text[n - k - 1] == '/' && strcmp(text + n - k, end) == 0;
}

static uint8_t checkpoints_find_frame(const struct model_frame *f) {
    for (size_t i = 0; f->func && f->file && i < CHECKPOINTS_FUNCTIONS; i++)
        if (strcmp(f->func, checkpoints_functions[i].func) == 0 &&
            checkpoints_ends(f->file, checkpoints_functions[i].file))
            return (uint8_t)(CHECKPOINTS_FIRST + i);
    return CHECKPOINTS_NONE;
}

/* Make room for the facts about all stacks. 0, or -1 without memory. */
static int checkpoints_reserve(struct checkpoints *s, size_t n_stacks) {
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

/* The facts about a stack. Parents have smaller numbers, so new ones are filled in from the
 * outermost frame on: the first function that saves counts. */
static uint8_t checkpoints_find(struct checkpoints *s, const struct trie *t, uint32_t stack) {
    uint32_t path[256];
    size_t n = 0;
    uint32_t at = stack;
    while (at && !s->known[at]) {
        if (n == sizeof path / sizeof path[0]) { /* a deep one: its outer part first */
            checkpoints_find(s, t, at);
            break;
        }
        path[n++] = at;
        at = t->stacks[at - 1].parent_id;
    }
    uint8_t is = at ? s->known[at] : CHECKPOINTS_NONE;
    while (n > 0) {
        const struct model_stack_def *def = &t->stacks[path[--n] - 1];
        if (is == CHECKPOINTS_NONE)
            is = checkpoints_find_frame(&t->frames[def->frame_id - 1].frame);
        s->known[path[n]] = is;
    }
    return is;
}

static void checkpoints_end(struct checkpoints_open *o, double ended, const struct checkpoints_handler *h) {
    struct checkpoints_save save = {.name = checkpoints_functions[o->row].name,
                                    .tid = o->tid,
                                    .step = o->step,
                                    .began = o->began,
                                    .ended = ended};
    o->tid = 0;
    h->on_save(h->arg, &save);
}

static struct checkpoints_open *checkpoints_of(struct checkpoints *s, int64_t tid) {
    for (size_t i = 0; i < CHECKPOINTS_THREADS; i++)
        if (s->open[i].tid == tid)
            return &s->open[i];
    return NULL;
}

static double checkpoints_limit(double period_s) {
    return CHECKPOINTS_LOST_TIMES * period_s > CHECKPOINTS_LOST_S ? CHECKPOINTS_LOST_TIMES * period_s
                                                                  : CHECKPOINTS_LOST_S;
}

void checkpoints_take(struct checkpoints *s, const struct trie *t, uint32_t epoch,
                      const struct model_sample *sample, double period_s, int64_t step,
                      const struct checkpoints_handler *h) {
    struct checkpoints_open *o = checkpoints_of(s, sample->tid);
    if (epoch != s->epoch && s->known)
        memset(s->known, 0, s->n_known);
    s->epoch = epoch;
    if (s->last == 0 || sample->timestamp - s->last > checkpoints_limit(period_s))
        s->from = sample->timestamp;
    s->last = sample->timestamp;
    /* no information */
    if (sample->torn || !sample->stack_id || sample->stack_id > t->n_stacks ||
        checkpoints_reserve(s, t->n_stacks) != 0)
        return;
    uint8_t is = checkpoints_find(s, t, sample->stack_id);
    size_t row = is < CHECKPOINTS_FIRST ? 0 : (size_t)(is - CHECKPOINTS_FIRST);
    if (o && (is == CHECKPOINTS_NONE || o->row != row)) {
        checkpoints_end(o, (o->last + sample->timestamp) / 2, h);
        o = NULL;
    }
    if (is == CHECKPOINTS_NONE)
        return;
    /* there were no samples before */
    bool is_new = sample->timestamp - s->from < CHECKPOINTS_BEGUN * period_s;
    if (!o && (o = checkpoints_of(s, 0)))
        *o = (struct checkpoints_open){.tid = sample->tid,
                                       .step = step,
                                       .row = row,
                                       .began = is_new ? NAN : sample->timestamp - period_s / 2};
    if (o)
        o->last = sample->timestamp;
}

void checkpoints_settle(struct checkpoints *s, double now, double period_s,
                        const struct checkpoints_handler *h) {
    for (size_t i = 0; i < CHECKPOINTS_THREADS; i++)
        if (s->open[i].tid && now - s->open[i].last > checkpoints_limit(period_s))
            checkpoints_end(&s->open[i], s->open[i].last + period_s / 2, h);
}

size_t checkpoints_bytes(const struct checkpoints *s) { return s->n_known; }

void checkpoints_fini(struct checkpoints *s) {
    free(s->known);
    *s = (struct checkpoints){.epoch = 0};
}
