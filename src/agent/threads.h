/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads: the agent's own threads: creation, ids, CPU time.
 *
 * One mutex of its own. Every thread of the agent is registered from threads_begin to
 * threads_end.
 */
#ifndef AGENT_THREADS_H
#define AGENT_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREADS_MAX 8

/* Create a thread with all signals blocked and a small stack. 0 or an errno value. */
int threads_create(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached);

/* The same with a stack as large as the job's own threads have, because code of the job runs on
 * it. */
int threads_create_deep(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached);

/* The first and the last call of each thread: set its name, count its CPU time, exclude it from
 * snapshots. */
void threads_begin(const char *name);
void threads_end(void);

/* Unregister another thread of ours that will never get to its last call. */
void threads_forget(int64_t tid);

/* The thread that is starting the agent counts as ours; 0: it has gone. */
void threads_set_guest(int64_t tid);

/* OS ids of our threads and of the guest. Returns their number. */
size_t threads_own_tids(int64_t *tids, size_t cap);

/* CPU time of this run's threads so far, including ended ones. */
uint64_t threads_cpu_ns(void);

/* The same without the calling thread. */
uint64_t threads_others_cpu_ns(void);

/* A run is over: the next one counts from 0. */
void threads_clear_cpu(void);

/* A cache of the size of a thread's own stack; zeroed to begin. */
struct threads_stack {
    uint64_t at_ns; /* time of the measurement */
    size_t bytes;
};

/* Resident bytes of the calling thread's stack, measured every few seconds. 0 if unknown. */
size_t threads_stack_bytes(struct threads_stack *s);

/* In the child of a fork, where none of them exists. */
void threads_in_child(void);

#endif
