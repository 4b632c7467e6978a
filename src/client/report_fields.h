/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_fields: the columns of what is reported of the ranks of a job: what relays answer
 * (fleet/report.h) and what a database keeps (engine/engine_schema.h). Each is INT, REAL or TEXT.
 */
#ifndef CLIENT_REPORT_FIELDS_H
#define CLIENT_REPORT_FIELDS_H

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
    X(INT, gpus) /* of the host */                                                                           \
    X(TEXT, note)

/* The same, of a job that is looked at; a database lacks them. */
#define REPORT_JOB_NOW_FIELDS(X) X(INT, unread) /* processes that may be ranks which are missing */

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
    X(REAL, gpu_util)    /* of its GPUs: the mean, in percent, */                                            \
    X(REAL, gpu_mem_mb)  /* and the memory in use there, of all processes, */                                \
    X(REAL, gpu_power_w) /* and their power together */                                                      \
    X(TEXT, gpu_devices) /* "0,1": their numbers */                                                          \
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
    X(REAL, asked_age_s)                                                                                     \
    X(REAL, gpu_util)                                                                                        \
    X(REAL, gpu_power_w)

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

/* What NCCL's RAS service knows of a rank; as struct ras_fact. */
#define REPORT_RAS_FIELDS(X)                                                                                 \
    X(INT, rank)                                                                                             \
    X(INT, state)                                                                                            \
    X(INT, pid)                                                                                              \
    X(TEXT, host)                                                                                            \
    X(INT, behind)                                                                                           \
    X(TEXT, op)                                                                                              \
    X(TEXT, note)

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

/* What is kept of a table. */
#define REPORT_SIZE_FIELDS(X)                                                                                \
    X(INT, rows)                                                                                             \
    X(REAL, oldest) /* seconds since the epoch */                                                            \
    X(REAL, newest)

/* The time of a host, seconds since the epoch. */
#define REPORT_CLOCK_FIELDS(X) X(REAL, at)

#endif
