/* SPDX-License-Identifier: Apache-2.0 */
/* net_library: see net_library.h. */
#include "agent/server/net_library.h"

#include <stdlib.h>

#include <libwebsockets.h>

static bool net_library_lacked; /* one server at a time is made, by its own thread */

static void *net_library_realloc(void *at, size_t size, const char *reason) {
    (void)reason;
    if (!size) {
        free(at);
        return NULL;
    }
    void *got = realloc(at, size);
    if (!got)
        net_library_lacked = true;
    return got;
}

static void net_library_log_nowhere(int level, const char *line) {
    (void)level;
    (void)line;
}

void net_library_begin(void) {
    lws_set_log_level(0, net_library_log_nowhere);
    lws_set_allocator(net_library_realloc);
    net_library_lacked = false;
}

bool net_library_lacks_memory(void) { return net_library_lacked; }
