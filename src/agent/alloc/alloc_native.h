/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_native: hooks in the words through which libraries call malloc and its kin (their global
 * offset tables), torch's CPU allocator among them.
 *
 * A word is changed only if it holds the address of the function that the program itself would call;
 * so a library with an allocator of its own keeps that, and an allocator that was preloaded is called
 * by the hooks. Each library stays loaded while words of it are changed. Words are put back by an exchange:
 * one that somebody else has changed since stays as it is. Called by the python worker, without the
 * GIL: the loader's lock is taken.
 */
#ifndef AGENT_ALLOC_ALLOC_NATIVE_H
#define AGENT_ALLOC_ALLOC_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Put hooks into all libraries that have none yet. Returns the number of words that have one; -1
 * with the reason in `why`. */
int alloc_native_insert(char *why, size_t cap);

/* Put all words back. Returns the number of those that somebody else had changed. */
int alloc_native_remove(void);

/* True if they were put in and not taken out. Any thread. */
bool alloc_native_is_in(void);

/* How often libraries were loaded: another number means that there may be new ones. Any thread. */
uint64_t alloc_native_loads(void);

/* Who called, for the sampler's thread, while hooks are in. */
struct alloc_native_caller {
    const char *library; /* its path; NULL unknown */
    bool is_torch;       /* torch's CPU allocator */
    char function[128];  /* "" unknown */
};
void alloc_native_find_caller(uint64_t address, struct alloc_native_caller *out);

#endif
