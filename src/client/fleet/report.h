/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: what a relay answers, as rows of a few tables; both ends use these.
 *
 * They travel as answers to the method `rows` (wire/wire.h). A reader finds columns by name: what it does
 * not know it passes over, what is missing is unknown. To carry something new, add a row to a list. Texts
 * are made safe for a terminal as they are read.
 *
 *   job     {name}: the job that a target names, and its ranks on that host: one row
 *   ranks   {after}: the ranks, once their round number is above `after`: a row each
 *   stacks  {ids}: the frames of stacks, innermost first, by their ids in hexadecimal digits
 *   clock   {}: the time there
 *   times   {}: steps and collectives that have ended since they were asked for last; the newest at first
 *   states  {counters}: what a verdict is made of (rank_probe.h): a reading of each rank, which is made now;
 *           with `counters` its agent is asked, too
 *   groups  {}: the counters of that reading: a row for each process group of a rank
 *   attach  {}: the agent into each rank of the job that was asked for: a row each, when all are done
 *   detach  {}: the agent out of each
 *   to      {pid, attach}: a row, and from there on all bytes of the pipe are those of the socket of that
 *           process's agent, which is loaded before with `attach`
 */
#ifndef CLIENT_FLEET_REPORT_H
#define CLIENT_FLEET_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "wire/wire.h"

#define REPORT_JOB "job"
#define REPORT_RANKS "ranks"
#define REPORT_STACKS "stacks"
#define REPORT_TIMES "times"
#define REPORT_STATES "states"
#define REPORT_GROUPS "groups"
#define REPORT_ATTACH "attach"
#define REPORT_DETACH "detach"
#define REPORT_TO "to"
#define REPORT_CLOCK "clock"
#define REPORT_IDS_MAX 7 /* of stacks that are asked for together */

#define REPORT_NO_INT INT64_MIN /* unknown; numbers are NAN, texts NULL */

/* A job on a host. */
#define REPORT_JOB_FIELDS(X)                                                                                 \
    X(INT, found) /* how often the ranks were found */                                                       \
    X(TEXT, name)                                                                                            \
    X(TEXT, ranks)                                                                                           \
    X(TEXT, missing)                                                                                         \
    X(TEXT, elsewhere)                                                                                       \
    X(INT, world)                                                                                            \
    X(INT, launcher)                                                                                         \
    X(INT, restarts)                                                                                         \
    X(TEXT, found_by)                                                                                        \
    X(TEXT, user)                                                                                            \
    X(TEXT, note)

/* A rank at a time. */
#define REPORT_RANK_FIELDS(X)                                                                                \
    X(INT, found)                                                                                            \
    X(INT, round)                                                                                            \
    X(REAL, taken_at)                                                                                        \
    X(INT, rank)                                                                                             \
    X(INT, local_rank)                                                                                       \
    X(INT, pid)                                                                                              \
    X(TEXT, state)          /* the kernel's letter of its main thread */                                     \
    X(REAL, cpu_pct)        /* of the process, */                                                            \
    X(REAL, thread_cpu_pct) /* and of the main thread: of one core, since the round before */                \
    X(INT, rss_bytes)                                                                                        \
    X(REAL, gpu_util)   /* of its GPUs: the mean, in percent, */                                             \
    X(REAL, gpu_mem_mb) /* and the memory in use there, of all processes */                                  \
    X(INT, gc)                                                                                               \
    X(TEXT, wait_kind)                                                                                       \
    X(TEXT, wait_what)                                                                                       \
    X(INT, stack)                                                                                            \
    X(REAL, since) /* every round since then had this stack */                                               \
    X(INT, agent)                                                                                            \
    X(INT, step)                                                                                             \
    X(REAL, step_at)                                                                                         \
    X(REAL, step_ms)                                                                                         \
    X(REAL, data_ms)                                                                                         \
    X(REAL, gc_ms)                                                                                           \
    X(REAL, comm_ms)                                                                                         \
    X(REAL, cost_pct) /* of the relay, of one core */                                                        \
    X(TEXT, note)

/* A frame of a stack. */
#define REPORT_FRAME_FIELDS(X)                                                                               \
    X(INT, stack)                                                                                            \
    X(TEXT, func)                                                                                            \
    X(TEXT, file)                                                                                            \
    X(INT, line)

/* A step or a collective of a rank. */
#define REPORT_TIME_FIELDS(X)                                                                                \
    X(INT, rank)                                                                                             \
    X(INT, pid)                                                                                              \
    X(INT, seq) /* its row in the table of the agent */                                                      \
    X(TEXT, op) /* of a collective; NULL: it is a step */                                                    \
    X(INT, step)                                                                                             \
    X(REAL, at) /* the end of a step, the begin of a collective */                                           \
    X(REAL, ms)                                                                                              \
    X(REAL, data_ms)                                                                                         \
    X(REAL, forward_ms)                                                                                      \
    X(REAL, backward_ms)                                                                                     \
    X(REAL, optimizer_ms)                                                                                    \
    X(REAL, gc_ms)                                                                                           \
    X(REAL, other_ms)

/* A reading of a rank; as struct rank_reading. Times are ages when it is sent: clocks differ. */
#define REPORT_STATE_FIELDS(X)                                                                               \
    X(INT, rank)                                                                                             \
    X(INT, pid)                                                                                              \
    X(REAL, uptime_s)                                                                                        \
    X(REAL, age_s)                                                                                           \
    X(INT, gone)                                                                                             \
    X(TEXT, state)                                                                                           \
    X(INT, traced)                                                                                           \
    X(REAL, still_s)                                                                                         \
    X(INT, cpu_ns)                                                                                           \
    X(INT, thread_ns)                                                                                        \
    X(INT, bytes)                                                                                            \
    X(TEXT, wchan)                                                                                           \
    X(INT, has_stack)                                                                                        \
    X(TEXT, why)                                                                                             \
    X(INT, stack)                                                                                            \
    X(TEXT, leaf_func)                                                                                       \
    X(TEXT, leaf_file)                                                                                       \
    X(INT, leaf_line)                                                                                        \
    X(TEXT, own_func)                                                                                        \
    X(TEXT, own_file)                                                                                        \
    X(INT, own_line)                                                                                         \
    X(TEXT, at_func)                                                                                         \
    X(TEXT, at_file)                                                                                         \
    X(INT, at_line)                                                                                          \
    X(TEXT, doing)                                                                                           \
    X(TEXT, phase)                                                                                           \
    X(INT, in_backward)                                                                                      \
    X(TEXT, collective)                                                                                      \
    X(INT, wait)                                                                                             \
    X(REAL, left_s)                                                                                          \
    X(TEXT, waits_for)                                                                                       \
    X(INT, gc)                                                                                               \
    X(INT, has_gil)                                                                                          \
    X(INT, needs_gil)                                                                                        \
    X(TEXT, holder)                                                                                          \
    X(TEXT, holder_func)                                                                                     \
    X(TEXT, holder_file)                                                                                     \
    X(INT, holder_line)                                                                                      \
    X(INT, blocked)                                                                                          \
    X(INT, answer)                                                                                           \
    X(TEXT, answer_why)                                                                                      \
    X(REAL, asked_age_s)

/* A process group in a rank; as struct rank_group. */
#define REPORT_GROUP_FIELDS(X)                                                                               \
    X(INT, rank)                                                                                             \
    X(TEXT, pg)                                                                                              \
    X(TEXT, desc)                                                                                            \
    X(TEXT, backend)                                                                                         \
    X(TEXT, ranks)                                                                                           \
    X(INT, size)                                                                                             \
    X(INT, my_rank)                                                                                          \
    X(INT, enqueued)                                                                                         \
    X(INT, completed)                                                                                        \
    X(INT, p2p)                                                                                              \
    X(TEXT, op)                                                                                              \
    X(TEXT, dtype)                                                                                           \
    X(INT, bytes)                                                                                            \
    X(REAL, since_s)

/* A rank that was worked on. */
#define REPORT_TASK_FIELDS(X)                                                                                \
    X(INT, rank)                                                                                             \
    X(INT, pid)                                                                                              \
    X(INT, failed) /* 1: `note` is why */                                                                    \
    X(TEXT, agent) /* what became of it: "loaded" */                                                         \
    X(REAL, stopped_ms)                                                                                      \
    X(REAL, total_ms)                                                                                        \
    X(TEXT, endpoint)                                                                                        \
    X(TEXT, note)

/* The time of a host, seconds since the epoch. */
#define REPORT_CLOCK_FIELDS(X) X(REAL, at)

#define REPORT_MEMBER_INT int64_t
#define REPORT_MEMBER_REAL double
#define REPORT_MEMBER_TEXT const char *
#define REPORT_MEMBER(kind, name) REPORT_MEMBER_##kind name;

struct report_job {
    REPORT_JOB_FIELDS(REPORT_MEMBER)
};
struct report_rank {
    REPORT_RANK_FIELDS(REPORT_MEMBER)
};
struct report_frame {
    REPORT_FRAME_FIELDS(REPORT_MEMBER)
};
struct report_time {
    REPORT_TIME_FIELDS(REPORT_MEMBER)
};
struct report_clock {
    REPORT_CLOCK_FIELDS(REPORT_MEMBER)
};

struct report_state {
    REPORT_STATE_FIELDS(REPORT_MEMBER)
};
struct report_group {
    REPORT_GROUP_FIELDS(REPORT_MEMBER)
};
struct report_task {
    REPORT_TASK_FIELDS(REPORT_MEMBER)
};

struct report_table;
extern const struct report_table REPORT_TABLE_JOB, REPORT_TABLE_RANK, REPORT_TABLE_FRAME, REPORT_TABLE_TIME,
    REPORT_TABLE_CLOCK, REPORT_TABLE_TASK, REPORT_TABLE_STATE, REPORT_TABLE_GROUP;

/* All of it unknown. */
void report_clear(const struct report_table *t, void *row);

/* The kernel's letter of a process's state as a text that lasts; NULL: it is none. */
const char *report_letter(char state);

/* Append the names of the columns, or a row, for struct wire_rows. 0, or -1 without memory. */
int report_put_columns(const struct report_table *t, struct strbuf *columns);
int report_put(const struct report_table *t, const void *row, struct strbuf *rows);

#define REPORT_MAX_FIELDS 64

/* Reads the rows of an answer. */
struct report_reader {
    const struct report_table *table;
    struct wire_rows rows;
    int column_of[REPORT_MAX_FIELDS]; /* field -> column of the answer; -1 none */
};

/* 0, or -1 with the error. */
int report_begin(struct report_reader *r, const struct report_table *t, const struct wire_message *m,
                 struct err *e);

/* The next row; its texts go to the arena, which has a limit. 1, 0 at the end, -1: it is not valid, or too
 * long. */
int report_next(struct report_reader *r, void *row, struct arena *arena);

#endif
