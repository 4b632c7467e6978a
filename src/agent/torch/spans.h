/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans: what the job's own threads tell when they begin and end an operation, on the way to the sampler.
 *
 * A bounded queue of fixed memory: threads of the job put in without waiting, locking or allocating; what finds no room is
 * lost and counted. One thread takes out: the sampler's. Nothing is ever freed, so a thread that is still within spans_put
 * when nobody listens any more does no harm. D. Vyukov's bounded queue of many producers (a sequence number in each cell).
 */
#ifndef AGENT_TORCH_SPANS_H
#define AGENT_TORCH_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPANS_CAP 16384U /* events that wait; a power of two */
#define SPANS_NAME 64    /* bytes of a name that are kept, with its NUL */

enum spans_what {
    SPANS_BEGIN = 0,
    SPANS_END,
    SPANS_READING, /* what an optimizer step left in variables, or had as gradients; within it */
    SPANS_VALUE,   /* of an expression that is watched */
    SPANS_GC,      /* garbage was collected */
};

/*
 * What was found at the end of an optimizer step. NAN may be what a number is. `grad_norm` is what the job has computed; `read_norm` is of
 * the gradients of all of the optimizer's parameters as they were when its step began, and infinite if not all are finite.
 */
struct spans_reading {
    double loss, lr, grad_norm, read_norm;
    int64_t epoch;
    bool has_loss, has_lr, has_grad_norm, has_read_norm, has_epoch;
    uint64_t optimizer; /* which it was; 0 not known */
};

/* A value: the number, if it is one; function and text lie in a place of their own until they are taken. */
struct spans_value {
    double number;
    uint32_t expr, set; /* place among the expressions, and the number of their list */
    int32_t text;
    bool is_number, is_known;
};

struct spans_gc {
    uint64_t duration_ns;
    int64_t collected, uncollectable;
    int32_t generation;
};

struct spans_event {
    uint64_t ns;   /* monotonic clock */
    uint64_t key;  /* the same at both ends of an operation, and of no other that goes on meanwhile */
    uint64_t lost; /* events that had found no room when this one found it: some before it are missing */
    int32_t tid;   /* 0 not told: of an end */
    enum spans_what what;
    union {
        char name[SPANS_NAME]; /* of a beginning: printable ASCII, the rest of it is '?' */
        struct spans_reading look;
        struct spans_value value;
        struct spans_gc gc;
    };
};

/* On a thread of the job: an operation begins now, or ended at `ns`. */
void spans_begin(uint64_t key, const char *name);
void spans_end(uint64_t key, uint64_t ns);

/* Any other: of `e` all but `lost` and `tid`, which is the calling thread. */
void spans_report(const struct spans_event *e);

/* A place for the function and the text of a value: its number, for spans_report; -1: all are in use, the value is lost. */
#define SPANS_TEXT 200
#define SPANS_FUNC 128
int32_t spans_put_text(const char *func, const char *text);

/* On the sampler's thread: give a place back, after having taken what lies in it. */
void spans_take_text(int32_t place, char *func, char *text);

/* On the sampler's thread: the oldest event. False when there is none. */
bool spans_take(struct spans_event *out);

/* Events that found no room, so far; values that did not. */
uint64_t spans_texts_lost(void);
uint64_t spans_lost(void);

/* Begin as if nothing had ever been told: in the child of a fork, where a thread that there is no more may have left an
 * event half written. Nobody may tell or take anything meanwhile. */
void spans_begin_anew(void);

#endif
