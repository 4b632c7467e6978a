/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_frames: which frames of a counts are of one function, and what frames and threads are
 * called in a file.
 *
 * For formats that keep frames, functions and stacks in tables. Names come from the job: here
 * they become valid UTF-8 without control characters, of at most EXPORT_NAME_MAX bytes. Pure but
 * for its own memory; one thread.
 */
#ifndef CLIENT_EXPORT_EXPORT_FRAMES_H
#define CLIENT_EXPORT_EXPORT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "flame/stack_counts.h"

#define EXPORT_NAME_MAX 4096

struct export_frames {
    uint32_t *function; /* of each frame of the counts: the number of its function, from 0 */
    uint32_t *frame;    /* of each function: its first frame */
    size_t n_functions;
};

/* Group frames by function: the same name, file, module and kind, whatever their lines. Native
 * frames without a name differ by address, or, with `by_function`, by module. 0, or -1 without
 * memory; free it in either case. */
int export_frames_init(struct export_frames *x, const struct stack_counts *f, bool by_function);
void export_frames_fini(struct export_frames *x);

/* Numbers of a stack's frames. */
struct export_path {
    uint32_t *at;
    size_t n, cap;
};

/* Those of a stack, root first, in place of what was there: frames of the counts, or, with `map`
 * (export_frames.function), what it says of each. 0, or -1 without memory; `at` is to be freed. */
int export_path_set(struct export_path *path, const struct stack_counts *f, uint32_t stack,
                    const uint32_t *map);

/* Room for `n`. 0, or -1 without memory. */
int export_path_reserve(struct export_path *path, size_t n);

/* ---- names, each in place of what is in `out`; whose `failed` stays ---- */

/* Name of a frame's function, without file and line; "module+0x12ab" for a native one without a
 * name ("module" alone with `by_function`), "?" if unknown. */
void export_name_function(struct strbuf *out, const struct model_frame *f, bool by_function);

/* Name of a thread, "?" if unknown. */
void export_name_thread(struct strbuf *out, const struct stack_counts *f, int64_t tid);

/* Any text. */
void export_name_text(struct strbuf *out, const char *text);

#endif
