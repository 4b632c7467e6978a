/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads: the agent's own threads: how they are created, who they are, what CPU time they have used.
 *
 * One mutex of its own. Every thread of the agent is in the register from threads_begin to threads_end.
 */
#ifndef AGENT_THREADS_H
#define AGENT_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREADS_MAX 8

/* A thread with all signals blocked and a small stack. 0 or an errno value. */
int threads_create(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached);

/* The same with a stack as large as the job's own threads have: code of the job runs on it. */
int threads_create_deep(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached);

/* First and last call of each: name it, count its CPU time, leave it out of snapshots. */
void threads_begin(const char *name);
void threads_end(void);

/* Another thread of ours will never get to its last call. */
void threads_forget(int64_t tid);

/* The thread that is just bringing us in counts as one of ours; 0: it has gone. */
void threads_set_guest(int64_t tid);

/* OS ids of our threads and of the guest. Number stored. */
size_t threads_own_tids(int64_t *tids, size_t cap);

/* CPU time of this run's threads so far, ended ones included. */
uint64_t threads_cpu_ns(void);

/* The same without the calling thread. */
uint64_t threads_others_cpu_ns(void);

/* A run is over: the next one counts from 0. */
void threads_clear_cpu(void);

/* What a thread of ours knows of its own stack; zeroed to begin. */
struct threads_stack {
    uint64_t at_ns; /* when it was counted */
    size_t bytes;
};

/* Resident bytes of the calling thread's stack, counted every few seconds. 0: not known. */
size_t threads_stack_bytes(struct threads_stack *s);

/* In the child of a fork none of them exists. */
void threads_in_child(void);

#endif
