/* SPDX-License-Identifier: Apache-2.0 */
/* debugger_state: see debugger_state.h. */
#include "agent/debug/debugger_state.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "agent/access/endpoints_file.h"
#include "base/clock.h"

#define DEBUGGER_STATE_TEXT 256

static const char *const debugger_state_names[DEBUGGER_STATE_KINDS] = {"debug", "pause", "catch"};
static const char *const debugger_state_changes[DEBUGGER_STATE_KINDS] = {"debugpy", "pause", "catch"};

struct debugger_state {
    char state[16], address[64], text[DEBUGGER_STATE_TEXT]; /* state is "" if there is none */
    int64_t uid, pid;
    uint64_t since_ns, until_ns; /* until_ns is 0 if there is no limit */
    bool used;
};

static pthread_mutex_t debugger_state_lock = PTHREAD_MUTEX_INITIALIZER;
static struct debugger_state debugger_state_now[DEBUGGER_STATE_KINDS]; /* with the lock */
static int64_t debugger_state_asker[2] = {-1, -1};                     /* uid, pid; with the lock */

void debugger_state_set_asker(int64_t uid, int64_t pid) {
    pthread_mutex_lock(&debugger_state_lock);
    debugger_state_asker[0] = uid;
    debugger_state_asker[1] = pid;
    pthread_mutex_unlock(&debugger_state_lock);
}

static void debugger_state_copy(char *to, size_t cap, const char *from) {
    to[0] = '\0';
    strncat(to, from, cap - 1);
}

void debugger_state_note(enum debugger_state_kind kind, const char *state, const char *address,
                         const char *text, int64_t left_ms, bool used) {
    uint64_t now = clock_mono_ns();
    if ((unsigned)kind >= DEBUGGER_STATE_KINDS)
        return;
    pthread_mutex_lock(&debugger_state_lock);
    struct debugger_state *h = &debugger_state_now[kind];
    if (!h->state[0]) { /* it starts */
        h->uid = debugger_state_asker[0];
        h->pid = debugger_state_asker[1];
    }
    if (strcmp(h->state, state) != 0)
        h->since_ns = now;
    bool moved = strcmp(h->address, address) != 0;
    debugger_state_copy(h->state, sizeof h->state, state);
    debugger_state_copy(h->address, sizeof h->address, address);
    debugger_state_copy(h->text, sizeof h->text, text);
    h->until_ns = left_ms < 0 ? 0 : now + (uint64_t)left_ms * CLOCK_NS_PER_MS;
    h->used = used;
    if (moved)
        endpoints_file_say(debugger_state_changes[kind], h->address);
    pthread_mutex_unlock(&debugger_state_lock);
}

void debugger_state_in_child(void) {
    debugger_state_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    memset(debugger_state_now, 0, sizeof debugger_state_now);
    debugger_state_asker[0] = debugger_state_asker[1] = -1;
}

void debugger_state_fill(struct model_status *out) {
    uint64_t now = clock_mono_ns();
    out->holds = arena_calloc(&out->arena, DEBUGGER_STATE_KINDS, sizeof *out->holds);
    if (!out->holds)
        return;
    pthread_mutex_lock(&debugger_state_lock);
    for (size_t i = 0; i < DEBUGGER_STATE_KINDS; i++) {
        const struct debugger_state *h = &debugger_state_now[i];
        if (!h->state[0])
            continue;
        struct model_debugger *to = &out->holds[out->n_holds++];
        *to = (struct model_debugger){.what = debugger_state_names[i],
                                      .state = arena_strdup(&out->arena, h->state),
                                      .uid = h->uid,
                                      .pid = h->pid,
                                      .held_s = (double)(now - h->since_ns) / 1e9,
                                      .left_s = NAN,
                                      .used = h->used};
        to->address = h->address[0] ? arena_strdup(&out->arena, h->address) : NULL;
        to->text = h->text[0] ? arena_strdup(&out->arena, h->text) : NULL;
        if (h->until_ns)
            to->left_s = h->until_ns > now ? (double)(h->until_ns - now) / 1e9 : 0;
    }
    pthread_mutex_unlock(&debugger_state_lock);
}
