/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena: a bump allocator; everything is freed together.
 *
 * Everything a snapshot points to lives in one arena. An arena has a limit, so what a target
 * makes us read is bounded. A failed allocation returns NULL and sets `failed`; nothing aborts.
 * One thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *head;
    size_t used;  /* bytes taken from malloc so far */
    size_t limit; /* most bytes to take from malloc */
    bool failed;  /* an allocation was refused since arena_init */
};

/* An empty arena that will take at most `limit` bytes. */
void arena_init(struct arena *a, size_t limit);

/* Free everything; the arena is empty and usable again with the same limit. */
void arena_fini(struct arena *a);

/* `size` zeroed bytes aligned for any type, owned by the arena, or NULL. */
void *arena_alloc(struct arena *a, size_t size);

/* `n` elements of `size` zeroed bytes; NULL on overflow too. */
void *arena_calloc(struct arena *a, size_t n, size_t size);

/* A NUL-terminated copy of `len` bytes, or NULL. */
char *arena_strndup(struct arena *a, const char *s, size_t len);

/* A copy of a C string, or NULL. `s` may be NULL and gives NULL (without setting `failed`). */
char *arena_strdup(struct arena *a, const char *s);

#endif
