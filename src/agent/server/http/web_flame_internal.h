/* SPDX-License-Identifier: Apache-2.0 */
/* web_flame_internal: what web_flame.c adds up and web_flame_svg.c draws. */
#ifndef AGENT_SERVER_HTTP_WEB_FLAME_INTERNAL_H
#define AGENT_SERVER_HTTP_WEB_FLAME_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "agent/server/http/web_flame.h"
#include "base/arena.h"

#define WEB_FLAME_NODES 16384U /* functions below their callers, the root included */
#define WEB_FLAME_FUNCTIONS 4096U
#define WEB_FLAME_DEPTH 512U
#define WEB_FLAME_ROOT 0U
#define WEB_FLAME_NONE 0U /* not known, or no room */

struct web_flame_function {
    const char *func, *file; /* NULL unknown */
    uint64_t hash;           /* of both */
};

struct web_flame_node {
    uint32_t parent, function; /* the latter from 1 */
    uint32_t depth;            /* of the root 0 */
    uint32_t in_bucket, child, sibling;
    uint64_t samples, on_cpu; /* in which it was the innermost */
    double us;
};

/* What ids of an epoch are here: numbers that count from 1, 0 unknown. */
struct web_flame_ids {
    uint32_t *of;
    size_t cap;
};

struct web_flame {
    int64_t tid;
    uint32_t epoch;
    struct arena names;
    struct web_flame_function functions[WEB_FLAME_FUNCTIONS];
    uint32_t n_functions;
    struct web_flame_node *nodes; /* parents before their callees */
    uint32_t n_nodes;
    uint32_t *buckets;
    struct web_flame_ids frames, stacks;
    uint64_t samples, torn, frameless, left_out, dropped;
};

/* "func (file.py)" */
void web_flame_name(const struct web_flame *f, uint32_t node, struct strbuf *out);

#endif
