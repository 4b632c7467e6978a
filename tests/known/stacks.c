/* SPDX-License-Identifier: Apache-2.0 */
/* stacks: see stacks.h. */
#include "known/stacks.h"

#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/strbuf.h"

#define STACKS_MAX (1U << 17)
#define STACKS_PAUSE_NS 20000 /* on average, between two samples */

struct stacks_one {
    char *text;
    uint64_t seen, torn;
};

static struct stacks_one *stacks;
static size_t n_stacks;
static uint64_t stacks_random;

int stacks_init(void) {
    stacks = calloc(STACKS_MAX, sizeof *stacks);
    return stacks ? 0 : -1;
}

void stacks_count(const struct model_frame *frames, size_t n, bool torn) {
    struct strbuf b;
    strbuf_init(&b, 1 << 20);
    for (size_t i = n; i-- > 0;)
        (void)strbuf_addf(&b, "\t%s\t%s\t%d", frames[i].func ? frames[i].func : "?",
                          frames[i].file ? frames[i].file : "?", frames[i].line);
    const char *text = strbuf_str(&b);
    size_t at = hash_bytes(text, strlen(text)) % STACKS_MAX;
    while (stacks[at].text && strcmp(stacks[at].text, text) != 0)
        at = (at + 1) % STACKS_MAX;
    if (!stacks[at].text && n_stacks < STACKS_MAX / 2) {
        stacks[at].text = strdup(text);
        n_stacks++;
    }
    stacks[at].seen++;
    stacks[at].torn += torn;
    strbuf_fini(&b);
}

void stacks_write(FILE *f) {
    for (size_t i = 0; i < STACKS_MAX; i++)
        if (stacks[i].text)
            (void)fprintf(f, "stack %" PRIu64 " %" PRIu64 "%s\n", stacks[i].seen, stacks[i].torn,
                          stacks[i].text);
}

static void stacks_put(pid_t tid, int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(tid, sizeof one, &one);
}

void stacks_pin(pid_t target) {
    cpu_set_t all;
    int first = -1, second = -1;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    for (int i = 0; i < CPU_SETSIZE && second < 0; i++)
        if (CPU_ISSET(i, &all)) {
            second = first >= 0 ? i : -1;
            first = first >= 0 ? first : i;
        }
    if (second < 0)
        return;
    stacks_put(target, first);
    stacks_put(0, second);
}

void stacks_pause(void) {
    stacks_random = hash_mix(stacks_random + 1);
    uint64_t until = clock_mono_ns() + stacks_random % (2 * STACKS_PAUSE_NS);
    while (clock_mono_ns() < until) {
    }
}
