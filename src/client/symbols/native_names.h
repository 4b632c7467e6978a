/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_names: shared by the files of native. Private to it.
 */
#ifndef CLIENT_SYMBOLS_NATIVE_NAMES_H
#define CLIENT_SYMBOLS_NATIVE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/model.h"
#include "base/trie.h"
#include "pystack/native_merge.h"
#include "client/symbols/symbols.h"

struct native_stream_frame {
    bool defined;
    struct model_frame frame;
};

/* Definitions of a stream in its epoch, and our own. */
struct native_stream {
    bool has_epoch;
    uint32_t epoch, own_epoch;
    struct native_stream_frame *frames; /* by the stream's number; strings in `text` */
    size_t n_frames;
    struct model_stack_def *stacks; /* by the stream's number */
    uint32_t *own;                  /* our number of the same; 0 unknown yet */
    size_t n_stacks;
    struct arena text;
    struct trie trie; /* of stacks as they are shown */
    size_t sent_frames, sent_stacks;
    struct model_frame *path; /* of one stack */
    size_t cap_path;
};

struct native_names {
    struct symbols *symbols;
    struct native_stream stream;
    enum native_role *roles; /* of the stack being merged */
    uint32_t *order;
    size_t cap;
    struct model_frame *list; /* the merged stack */
    size_t *from;             /* index of the same frame before the merge, SIZE_MAX for a new one */
    size_t n_list, cap_list;
};

void native_stream_init(struct native_stream *s);
void native_stream_fini(struct native_stream *s);

/* Merge one stack into names->list; strings of native frames go to the arena, others are
 * borrowed. 0, or -1 without memory. */
int native_names_merge(struct native_names *names, const struct model_frame *frames, size_t n, bool truncated,
                       struct arena *arena, enum model_native *how);

/* Append one frame to names->list; NULL without memory. */
struct model_frame *native_names_append(struct native_names *names);

#endif
