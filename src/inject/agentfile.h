/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentfile: the file of libprobing.so, read whole and checked before anything else happens.
 *
 * It must be an x86-64 shared object that exports the agent's entry and has the version of this
 * program.
 */
#ifndef INJECT_AGENTFILE_H
#define INJECT_AGENTFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inject/target.h"

#define AGENTFILE_MAX ((size_t)64 * 1024 * 1024)
#define AGENTFILE_VERSION_MAX 64

/* Read and check. 0 with bytes that the caller frees, or -1 with the error. */
int agentfile_read(const char *path, uint8_t **bytes, size_t *size, struct err *e);

/* The version inside a shared object's bytes. 0; -1 for an unusable ELF file; -2 if it is not an
 * agent (entry or version missing). */
int agentfile_version(const uint8_t *bytes, size_t size, char version[AGENTFILE_VERSION_MAX]);

/* Find the entry of an agent that is already mapped in the target (t->agent). 0, or -1 with the
 * error: another version, or something else of that name. */
int agentfile_find_mapped(struct target *t, uint64_t *entry, struct err *e);

#endif
