/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_spawner: starts threads that have the job's own descriptors.
 *
 * Threads of the agent have a separate table of descriptors (fds.h), and so have the threads
 * that they start: a number there refers to another file than in the job. Code of the job must
 * not run on them. So a thread that was started before that sleeps until it is to start one. It
 * works the same if the table is the job's anyway.
 */
#ifndef AGENT_PYTHON_THREAD_SPAWNER_H
#define AGENT_PYTHON_THREAD_SPAWNER_H

#include <pthread.h>

/* Called by the agent's first thread, before it has a table of its own. 0, or an errno value:
 * then thread_spawner_create fails. */
int thread_spawner_begin(void);

/* End the thread. The threads that it has started continue. */
void thread_spawner_end(void);

/* As threads_create_deep, for a joinable thread. 0 or an errno value. One thread at a time. */
int thread_spawner_create(pthread_t *thread, void *(*fn)(void *), void *arg);

/* In the child of a fork, where the thread does not exist. */
void thread_spawner_in_child(void);

#endif
