/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols: names, files and lines of native code, from the files that a process has mapped.
 *
 * Symbol tables and DWARF are read by elfutils (libdw), C++ and Rust names turned back by libiberty, both in a process of their own
 * (symbols_helper.h), because a file may be made to harm who reads it. Files are opened through the process's own root, so a
 * container's are its own; one that was replaced since it was mapped has no names. What is not found is unknown. Nothing is fetched
 * from anywhere. Answers are remembered, within a bound. One thread at a time.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_H
#define CLIENT_SYMBOLS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/symbols/symbol.h"

struct symbols;

/* The first call of main(): a program that was started as a helper is one and does not return. One that does not call this has no names. */
void symbols_begin(int argc, char **argv);

/* For the files of process `pid`. NULL without memory. */
struct symbols *symbols_new(pid_t pid);
void symbols_free(struct symbols *s);

/* What is at `address` of `module` (struct model_frame). Valid until the next call. */
const struct symbols_place *symbols_find(struct symbols *s, const char *module, uint64_t address);

/* Why there are fewer names than there could be, since this was asked last: a line; NULL nothing. Valid until the next call. */
const char *symbols_take_note(struct symbols *s);

/* A name as people write it: demangled if it is mangled, without what a linker appends. Cut to `cap`. One that stands for more than
 * 4 KB, or takes long, stays mangled. Any thread. */
void symbols_demangle(const char *symbol, char *out, size_t cap);

#endif
