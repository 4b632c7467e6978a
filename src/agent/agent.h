/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent: the life cycle: started, running, ejected, parked, started again; and what its threads have in common.
 *
 * All of it is behind one mutex. The state PARKED is the last thing a run writes: nothing of it touches anything after.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/agent_abi.h"

#define AGENT_MAX_TIDS 8

/* What probing_start does; see base/agent_abi.h. `args` has been checked. `invited`: a client is about to connect and say what it
 * wants. */
int agent_start(struct agent_start *args, bool invited);

/* Was it, in this run? */
bool agent_is_invited(void);

/* enum agent_way: how the agent that runs came in. */
uint32_t agent_came_by(void);

/* ---- for the agent's own threads ---- */

/* A thread with all signals blocked and a small stack. 0 or an errno value. */
int agent_thread_create(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached);

/* The same with a stack as large as the job's own threads have: code of the job runs on it. */
int agent_thread_create_deep(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached);

/* First and last call of each: name it, count its CPU time, leave it out of snapshots. */
void agent_thread_begin(const char *name);
void agent_thread_end(void);

/* Another thread of ours will never get to its last call. */
void agent_thread_forget(int64_t tid);

/* OS ids of our threads and of the one that is just bringing us in. Number stored. */
size_t agent_own_tids(int64_t *tids, size_t cap);

/* CPU time of this run's threads so far, ended ones included. */
uint64_t agent_cpu_ns(void);

/* The same without the calling thread. */
uint64_t agent_others_cpu_ns(void);

/* ---- for the server ---- */

/* The run is ending: whoever starts an agent now waits until it has. */
void agent_set_ending(void);

/* If the thread that brought us in has ended, join it and unmap what it ran on. False when it still runs. */
bool agent_reap(void);

#endif
