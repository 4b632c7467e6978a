/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torture: native threads of the hostile target. Each does one thing that an injector or a sampler could spoil, and checks
 * the result itself. Their rounds begin with torture_round, where they rest when they are told to.
 */
#ifndef TORTURE_TORTURE_H
#define TORTURE_TORTURE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "page.h"

#define TORTURE_TIMER_SIGNAL (SIGRTMIN + 5)  /* sent by timer_create to its thread */
#define TORTURE_QUEUED_SIGNAL (SIGRTMIN + 6) /* numbered ones, sent with sigqueue */

/* A slot for the calling thread's work; its number, or -1 when there are no more. */
int torture_slot_new(const char *name);

/* A round begins: count it, and rest while that is wanted. */
void torture_round(int slot);

/* Around making a process and waiting for it: false when none is to be made now. */
bool torture_begin_child(void);
void torture_end_child(void);

/* Processes there ever were if none lives now, else a number that was never returned. */
uint64_t torture_count_children(void);

/* A call ended with EINTR while there were children. */
void torture_count_interrupted(void);

/* A check failed. The first reason is kept. */
void torture_fail(int slot, const char *why);

/* torture_fail unless `ok`. */
void torture_check(int slot, bool ok, const char *why);

/* Sleep for `us`, not at all when this is the only thread that does not rest: it is to be caught at work. */
void torture_nap(int slot, unsigned us);

/* Sleep in a call that no injector interrupts. */
void torture_sleep_apart(unsigned us);

/* Is this one to be caught at work? */
bool torture_is_alone(int slot);

/* Pseudo-random, of the state's own. */
uint32_t torture_random(uint64_t *state);

/* Threads, each with its slot. */
void *torture_inspect(void *arg);
void *torture_allocate(void *arg);
void *torture_load(void *arg);
void *torture_fork(void *arg);
void *torture_breed(void *arg);
void *torture_epoll(void *arg);
void *torture_signals(void *arg);
void *torture_queue(void *arg);
void *torture_vectors(void *arg);
void *torture_fma(void *arg);
void *torture_x87(void *arg);
void *torture_locks(void *arg);
void *torture_coroutines(void *arg);
void *torture_calls(void *arg);

/* The thread that takes the queued signals; 0 until it is there. */
extern int64_t torture_signals_tid;

/* A semaphore set of one that stays 0. */
extern int torture_semaphore;

/* Path of the library that is loaded and unloaded. */
extern char torture_plugin[256];

/* In the child of a fork: is it clean of an agent? 0, or the number of the check that failed. */
int torture_check_child(void);

/* One link of a chain of numbers, the same on every run: what `seed` became after `rounds`. */
uint64_t torture_numbers(uint64_t seed, uint64_t rounds);

/* Map `page_path` and start all native threads. 0 or errno. */
int torture_start(const char *page_path, const char *plugin_path);

#endif
