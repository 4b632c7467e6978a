/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols: names, files and lines of native code, from the files that a process has mapped.
 *
 * elfutils (libdw) reads symbol tables and DWARF, libiberty demangles C++ and Rust names, both
 * in a process of their own (symbols_helper.h), because a file may be made to harm its reader.
 * Files are opened through the process's own root, so a container's are its own; one that was
 * replaced since it was mapped has no names. What is not found is unknown. Nothing is
 * downloaded. Answers are cached, within a bound. One thread at a time.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_H
#define CLIENT_SYMBOLS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/symbols/symbol.h"

struct symbols;

/* The first call of main(): a program that was started as a helper becomes one, and this does
 * not return. Without this call there are no names. */
void symbols_begin(int argc, char **argv);

/* For the files of process `pid`. NULL without memory. */
struct symbols *symbols_new(pid_t pid);
void symbols_free(struct symbols *s);

/* The functions at `address` of `module` (struct model_frame). Valid until the next call. */
const struct symbols_place *symbols_find(struct symbols *s, const char *module, uint64_t address);

/* Why there are fewer names than possible, since the last call: a line; NULL nothing. Valid
 * until the next call. */
const char *symbols_take_note(struct symbols *s);

/* The readable form of a name: demangled, and without the linker's suffix. Cut to `cap`. A name
 * that expands to more than 4 KB, or takes long, stays mangled. Any thread. */
void symbols_demangle(const char *symbol, char *out, size_t cap);

#endif
