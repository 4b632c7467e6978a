/* SPDX-License-Identifier: Apache-2.0 */
/* held: see held.h. */
#include "agent/held.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "agent/opened.h"
#include "base/clock.h"

#define HELD_TEXT 256

static const char *const held_names[HELD_KINDS] = {"debug", "pause", "catch"};
static const char *const held_opened[HELD_KINDS] = {"debugpy", "pause", "catch"};

struct held {
    char state[16], address[64], text[HELD_TEXT]; /* state "": there is none */
    int64_t uid, pid;
    uint64_t since_ns, until_ns; /* until_ns 0: no limit */
    bool used;
};

static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static struct held held_now[HELD_KINDS]; /* with the lock */
static int64_t held_asker[2] = {-1, -1}; /* uid, pid; with the lock */

void held_set_asker(int64_t uid, int64_t pid) {
    (void)pthread_mutex_lock(&held_lock);
    held_asker[0] = uid;
    held_asker[1] = pid;
    (void)pthread_mutex_unlock(&held_lock);
}

static void held_copy(char *to, size_t cap, const char *from) {
    to[0] = '\0';
    (void)strncat(to, from, cap - 1);
}

void held_note(enum held_kind kind, const char *state, const char *address, const char *text, int64_t left_ms,
               bool used) {
    uint64_t now = clock_mono_ns();
    if ((unsigned)kind >= HELD_KINDS)
        return;
    (void)pthread_mutex_lock(&held_lock);
    struct held *h = &held_now[kind];
    if (!h->state[0]) { /* it begins */
        h->uid = held_asker[0];
        h->pid = held_asker[1];
    }
    if (strcmp(h->state, state) != 0)
        h->since_ns = now;
    bool moved = strcmp(h->address, address) != 0;
    held_copy(h->state, sizeof h->state, state);
    held_copy(h->address, sizeof h->address, address);
    held_copy(h->text, sizeof h->text, text);
    h->until_ns = left_ms < 0 ? 0 : now + (uint64_t)left_ms * CLOCK_NS_PER_MS;
    h->used = used;
    if (moved)
        opened_say(held_opened[kind], h->address);
    (void)pthread_mutex_unlock(&held_lock);
}

void held_in_child(void) {
    held_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    memset(held_now, 0, sizeof held_now);
    held_asker[0] = held_asker[1] = -1;
}

void held_fill(struct model_status *out) {
    uint64_t now = clock_mono_ns();
    out->holds = arena_calloc(&out->arena, HELD_KINDS, sizeof *out->holds);
    if (!out->holds)
        return;
    (void)pthread_mutex_lock(&held_lock);
    for (size_t i = 0; i < HELD_KINDS; i++) {
        const struct held *h = &held_now[i];
        if (!h->state[0])
            continue;
        struct model_hold *to = &out->holds[out->n_holds++];
        *to = (struct model_hold){.what = held_names[i],
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
    (void)pthread_mutex_unlock(&held_lock);
}
