/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_spawner: begins threads that have the job's own descriptors.
 *
 * Threads of the agent have a table of descriptors of their own (fds.h), and so has what they start: a number there means another file than
 * it does to the job. Code of the job's must not run on them. So a thread that was started before that sleeps until it is to start
 * one. Where the table is the job's anyway it does the same.
 */
#ifndef AGENT_PYTHON_THREAD_SPAWNER_H
#define AGENT_PYTHON_THREAD_SPAWNER_H

#include <pthread.h>

/* By the agent's first thread, before it has a table of its own. 0, or an errno value: then thread_spawner_create fails. */
int thread_spawner_begin(void);

/* End the thread. Those that it has started go on. */
void thread_spawner_end(void);

/* As threads_create_deep, of a thread that can be joined. 0 or an errno value. By one thread at a time. */
int thread_spawner_create(pthread_t *thread, void *(*fn)(void *), void *arg);

/* In the child of a fork there is no thread. */
void thread_spawner_in_child(void);

#endif
