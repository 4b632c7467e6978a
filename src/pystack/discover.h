/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover: finds the interpreter of a process. See discover.c.
 */
#ifndef PYSTACK_DISCOVER_H
#define PYSTACK_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/procfs.h"
#include "pystack/pystack_internal.h"

/* Fill the offsets and the info of `ps`, whose memory is open, for process `pid` (0: ourselves),
 * by the strategies in their order, or by `only`. 0, or -1 with the error and what is missing. */
int pystack_discover(struct pystack *ps, pid_t pid, const char *only, enum pystack_lack *lack, struct err *e);

/* True for the path of a Python executable or library. Stores the version in its name, 0 if it
 * has none. */
bool pystack_version_of_name(const char *path, int *major, int *minor);

/* ---- what a search knows; for discover.c and its fuzz target ---- */

#define DISCOVER_NAMED_MAX 16   /* images with a Python name */
#define DISCOVER_OTHER_MAX 2048 /* images that may contain Python */
#define DISCOVER_SCAN_BLOCK 65536

/* What was tried, and the best reason for failing. Later values are better reasons. */
enum discover_failure {
    DISCOVER_NOTHING,
    DISCOVER_INCONSISTENT,
    DISCOVER_ENDING,
    DISCOVER_UNINITIALISED,
    DISCOVER_UNSUPPORTED
};

struct discover_image {
    uint64_t base, inode;
    char path[256];
    bool is_exe;
    int major, minor; /* by its name; 0 unknown */
};

struct discover {
    struct pystack *ps;
    struct discover_image named[DISCOVER_NAMED_MAX];
    size_t n_named;
    uint64_t others[DISCOVER_OTHER_MAX];
    size_t n_others;
    size_t n_maps;
    char exe[512];
    struct procfs_map last; /* the mapping before this one */
    uint8_t *block;
    uint64_t scanned;
    enum discover_failure failure;
    bool debug; /* the unsupported version is a debug build */
    char unsupported[48];
};

/* Remember why not, if it is the better reason. */
void discover_fail(struct discover *d, enum discover_failure why);
void discover_note_unsupported(struct discover *d, int major, int minor, const char *what);

/* Try `runtime` as the version `hex` (whose minor decides; `exact`: the whole is known), laid
 * out as `row` says. 0 when everything fits. */
int discover_try_row(struct discover *d, uint64_t runtime, const struct pystack_offsets *row, uint32_t hex,
                     bool exact);

/* The file an image was mapped from, or -1. */
int discover_open_file(struct discover *d, const struct discover_image *image);

/* Strategies for a Python without _PyRuntime. */
int discover_by_interp_head(struct discover *d);
int discover_by_static_scan(struct discover *d);

#endif
