/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trie: stacks as numbers. A stack is its innermost node; a node is a frame below the node of
 * its caller.
 *
 * Numbers count from 1 and parents come before children, so what a reader has not seen is the
 * tail of the two tables. The size is bounded. When it is full everything is forgotten
 * (trie_reset) and numbers start again. Used by the sampler's thread.
 */
#ifndef BASE_TRIE_H
#define BASE_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/model.h"
#include "base/table.h"

#define TRIE_FULL UINT32_MAX
#define TRIE_TRUNCATED "(frames left out)"

struct trie {
    struct model_frame_def *frames; /* number n is at n - 1 */
    size_t n_frames, cap_frames;
    struct model_stack_def *stacks; /* number n is at n - 1 */
    size_t n_stacks, cap_stacks;
    const char **strings;
    size_t n_strings, cap_strings;
    struct table by_frame, by_stack, by_string; /* of places in the arrays */
    struct arena text;                          /* the strings' bytes */
    size_t max_stacks;                          /* nodes */
    size_t max_bytes;                           /* of everything */
};

/* An empty trie; takes no memory yet. */
void trie_init(struct trie *t, size_t max_stacks, size_t max_bytes);

/* Free and forget everything; usable again. */
void trie_reset(struct trie *t);

/* The number of the stack of `n` frames, innermost first; strings are copied. 0 if n is 0;
 * TRIE_FULL when a limit or memory is exhausted (call trie_reset; earlier numbers are valid
 * until then). */
uint32_t trie_add(struct trie *t, const struct model_frame *frames, size_t n);

/* The same, faster if the stack numbered `like` has the same outer frames; 0 or a forgotten
 * number: no stack has. */
uint32_t trie_add_like(struct trie *t, uint32_t like, const struct model_frame *frames, size_t n);

/* The same for a stack whose outermost frames were left out: a frame named TRIE_TRUNCATED stands
 * for them. */
uint32_t trie_add_truncated(struct trie *t, const struct model_frame *frames, size_t n);

/* True if it will soon be full: about an eighth of the numbers is left, or little memory. */
bool trie_is_nearly_full(const struct trie *t);

/* Bytes in use. */
size_t trie_bytes(const struct trie *t);

#endif
