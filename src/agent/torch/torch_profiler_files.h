/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_profiler_files: names of the files that torch.profiler's traces are written to, and how many of them stay: in a folder of the
 * user's, beside the folders of tables, whoever of his processes has written them.
 */
#ifndef AGENT_TORCH_TORCH_PROFILER_FILES_H
#define AGENT_TORCH_TORCH_PROFILER_FILES_H

#include <stddef.h>

#define TORCH_PROFILER_FILES_KEPT 8

/* A name for the next one in `base`, now: into `path`. */
void torch_profiler_files_name(const char *base, char *path, size_t cap);

/* Make room for another: of those in `base` the newest stay, so that there are no more than TORCH_PROFILER_FILES_KEPT with it. What cannot be
 * removed stays too. */
void torch_profiler_files_prune(const char *base);

#endif
