/* SPDX-License-Identifier: Apache-2.0 */
/* arena: see arena.h. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_CHUNK ((size_t)16 * 1024)

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* bytes in data */
    size_t used;
    max_align_t data[];
};

void arena_init(struct arena *a, size_t limit) { *a = (struct arena){.limit = limit}; }

void arena_fini(struct arena *a) {
    struct arena_chunk *c = a->head;
    while (c) {
        struct arena_chunk *next = c->next;
        free(c);
        c = next;
    }
    *a = (struct arena){.limit = a->limit};
}

static struct arena_chunk *arena_grow(struct arena *a, size_t size) {
    size_t want = size > ARENA_CHUNK ? size : ARENA_CHUNK;
    size_t total = want + sizeof(struct arena_chunk);
    if (total < want || total > a->limit || a->used > a->limit - total)
        return NULL;
    struct arena_chunk *c = malloc(total);
    if (!c)
        return NULL;
    *c = (struct arena_chunk){.next = a->head, .size = want};
    a->head = c;
    a->used += total;
    return c;
}

void *arena_alloc(struct arena *a, size_t size) {
    const size_t align = sizeof(max_align_t);
    if (size > SIZE_MAX - align) {
        a->failed = true;
        return NULL;
    }
    size = (size + align - 1) / align * align;
    struct arena_chunk *c = a->head;
    if (!c || c->size - c->used < size)
        c = arena_grow(a, size);
    if (!c) {
        a->failed = true;
        return NULL;
    }
    void *p = (char *)c->data + c->used;
    c->used += size;
    memset(p, 0, size);
    return p;
}

void *arena_calloc(struct arena *a, size_t n, size_t size) {
    if (size && n > SIZE_MAX / size) {
        a->failed = true;
        return NULL;
    }
    return arena_alloc(a, n * size);
}

char *arena_strndup(struct arena *a, const char *s, size_t len) {
    if (len == SIZE_MAX) {
        a->failed = true;
        return NULL;
    }
    char *p = arena_alloc(a, len + 1);
    if (p)
        memcpy(p, s, len);
    return p;
}

char *arena_strdup(struct arena *a, const char *s) { return s ? arena_strndup(a, s, strlen(s)) : NULL; }
