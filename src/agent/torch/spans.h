/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans: begins and ends of operations, reported by the job's own threads to the sampler.
 *
 * A bounded queue of fixed memory: threads of the job write without waiting, locking or
 * allocating; an event without room is dropped and counted. One thread reads: the sampler's.
 * Nothing is ever freed, so a thread that is still within spans_put when nobody reads any longer
 * does no harm. D. Vyukov's bounded queue of many producers (a sequence number in each cell).
 */
#ifndef AGENT_TORCH_SPANS_H
#define AGENT_TORCH_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPANS_CAP 16384U /* waiting events; a power of two */
#define SPANS_NAME 64    /* bytes of a stored name, with its NUL */

enum spans_what {
    SPANS_BEGIN = 0,
    SPANS_END,
    /* values that an optimizer step left in variables, or had as gradients; within it */
    SPANS_READING,
    SPANS_VALUE, /* of a watched expression */
    SPANS_GC,    /* a garbage collection */
    SPANS_COMM,  /* what torch knows of the collective of that key, right after its begin */
};

/*
 * The values at the end of an optimizer step. A number itself may be NAN. `grad_norm` is
 * computed by the job; `read_norm` is of the gradients of all of the optimizer's parameters when
 * its step began, and infinite if not all are finite.
 */
struct spans_reading {
    double loss, lr, grad_norm, read_norm;
    int64_t epoch;
    bool has_loss, has_lr, has_grad_norm, has_read_norm, has_epoch;
    uint64_t optimizer; /* its address; 0 if unknown */
};

/* A value: the number, if it is one; function and text are in a slot of their own until they are
 * read. */
struct spans_value {
    double number;
    uint32_t expr, set; /* index of the expression, and number of the watch list */
    int32_t text;
    bool is_number, is_known;
};

struct spans_gc {
    uint64_t duration_ns;
    int64_t collected, uncollectable;
    int32_t generation;
};

/* A collective of NCCL (comm_info.h). */
#define SPANS_PG 43 /* bytes of a group's name: with them an event is no larger than with a name */
struct spans_comm {
    int64_t elements; /* of its inputs */
    int64_t seq;      /* its number in its group; -1 if unknown */
    int32_t size;     /* ranks of the group; 0: nothing is known */
    int8_t dtype;     /* c10::ScalarType */
    char pg[SPANS_PG];
};

struct spans_event {
    uint64_t ns;   /* monotonic clock */
    uint64_t key;  /* the same at both ends of an operation, and of no other current one */
    uint64_t lost; /* events dropped before this one was stored: some before it are missing */
    int32_t tid;   /* 0 if not given: for an end */
    enum spans_what what;
    union {
        char name[SPANS_NAME]; /* of a begin: printable ASCII, with '?' for all else */
        struct spans_reading reading;
        struct spans_value value;
        struct spans_gc gc;
        struct spans_comm comm;
    };
};

/* On a thread of the job: an operation begins now, or ended at `ns`. */
void spans_begin(uint64_t key, const char *name);
void spans_end(uint64_t key, uint64_t ns);

/* Report any other event: all of `e` except `lost` and `tid`, which is the calling thread. */
void spans_report(const struct spans_event *e);

/* Store the function and the text of a value. Returns the number of the slot, for spans_report;
 * -1: all are in use, the value is dropped. */
#define SPANS_TEXT 200
#define SPANS_FUNC 128
int32_t spans_put_text(const char *func, const char *text);

/* On the sampler's thread: read a slot and free it. */
void spans_take_text(int32_t place, char *func, char *text);

/* On the sampler's thread: the oldest event. False if there is none. */
bool spans_take(struct spans_event *out);

/* The number of events dropped so far; of values. */
uint64_t spans_texts_lost(void);
uint64_t spans_lost(void);

/* Reset, in the child of a fork, where a thread that no longer exists may have left an event
 * half written. Nobody may report or read anything meanwhile. */
void spans_begin_anew(void);

#endif
