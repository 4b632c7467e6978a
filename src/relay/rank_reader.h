/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_reader: the ranks of a job on this host, each read once a round, in a child.
 *
 * A rank is read from outside: the kernel's facts, the stack of its main thread (pystack), its newest
 * steps and collectives out of the tables of its agent, if it has one. Nothing is written to it, and it is asked nothing,
 * unless its memory may not be read: then its agent is.
 * A rank whose memory or files block whoever reads them loses its child (client/guard.h): it is left out
 * from then on, and another child continues behind it.
 */
#ifndef RELAY_RANK_READER_H
#define RELAY_RANK_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/model.h"
#include "client/fleet/report.h"
#include "client/guard.h"

/* A rank that is read. */
struct rank_source {
    pid_t pid;
    uint64_t start_ticks; /* another start is another process; 0 unknown */
    int32_t rank, local_rank;
    bool agent;          /* it had one when it was found */
    bool is_blocked;     /* it did not answer, and is left out, */
    uint64_t blocked_ns; /* since then */
};

/* A step or a collective that has ended, out of the tables of its agent. */
struct rank_time {
    int64_t seq;  /* its row in that table */
    char op[32];  /* "all_reduce"; "": it is a step */
    int64_t step; /* the number of a step */
    double at;    /* the end of a step, the begin of a collective; seconds since the epoch */
    /* of a collective only the first; NAN unknown */
    float ms, data_ms, forward_ms, backward_ms, optimizer_ms, gc_ms, other_ms;
};

/* What was read of one. */
struct rank_reading {
    size_t source;                    /* its number in the list */
    struct report_rank report;        /* without round, stack and since; texts live until the next call */
    bool is_gone;                     /* the process has ended */
    const struct model_frame *frames; /* of its main thread, innermost first; NULL unknown */
    size_t n_frames;
    const struct rank_time *times; /* that are new since the reading before, or the newest; may repeat */
    size_t n_times;
};

struct rank_reader {
    struct rank_source *list; /* the caller's */
    size_t n;
    struct guard guard; /* the child; none: guard.child 0 */
    bool is_reading;    /* a round is under way, */
    size_t next;        /* and this one is to come */
    uint64_t asked_ns, started_ns;
    struct model_snapshot snapshot; /* of the last reading */
    struct rank_time *times;        /* of the reading that is under way */
    size_t n_times, cap_times;
    bool has_given_times; /* they are those of the last reading */
    char note[256], what[128];
};

/* For a list that stays in its place until rank_reader_stop. */
void rank_reader_init(struct rank_reader *r, struct rank_source *list, size_t n);
void rank_reader_stop(struct rank_reader *r);

/* Begin a round. 0, or -1 with the error: no child can be made. */
int rank_reader_begin(struct rank_reader *r, struct err *e);

/* To be polled for POLLIN while a round is under way; -1: there is no child. */
int rank_reader_fd(const struct rank_reader *r);

/* Take the next reading of the round. 1; 0: none yet; -1: the round is over. Called when the descriptor
 * is readable, and some times a second besides. */
int rank_reader_take(struct rank_reader *r, struct rank_reading *out);

/* Processor time of this process and of the child. */
uint64_t rank_reader_cpu_ns(const struct rank_reader *r);

#endif
