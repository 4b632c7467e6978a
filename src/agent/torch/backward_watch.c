/* SPDX-License-Identifier: Apache-2.0 */
/* backward_watch: see backward_watch.h. */
#include "agent/torch/backward_watch.h"

#include "base/clock.h"

#define BACKWARD_WATCH_JUDGE_NS CLOCK_NS_PER_S /* between two judgements after the first */
/* for a complete step; the cost of a longer one is judged before its end */
#define BACKWARD_WATCH_LONG_NS (5 * CLOCK_NS_PER_S)
/* so many times as long they are not watched after they cost too much, */
#define BACKWARD_WATCH_REST 19
#define BACKWARD_WATCH_PAUSE_NS CLOCK_NS_PER_S /* and at least for that long */

static void backward_watch_open(struct backward_watch *b, const struct backward_watch_now *n) {
    b->from_ns = n->now_ns;
    b->nodes = n->nodes;
    b->wait_ns = n->wait_ns;
}

/* Is what was reported since from_ns enough to judge? */
static bool backward_watch_can_judge(const struct backward_watch *b, const struct backward_watch_now *n) {
    uint64_t ns = n->now_ns - b->from_ns, least = b->from_ns == b->begin_ns ? 1 : BACKWARD_WATCH_JUDGE_NS;
    return ns >= (n->whole ? least : BACKWARD_WATCH_LONG_NS);
}

bool backward_watch_is_due(struct backward_watch *b, const struct backward_watch_now *n) {
    if (!b->on)
        return n->wanted || n->now_ns >= b->due_ns;
    if (!backward_watch_can_judge(b, n))
        return true;
    uint64_t cost_ns = (n->nodes - b->nodes) * BACKWARD_WATCH_NODE_NS + (n->wait_ns - b->wait_ns);
    uint64_t ns = n->now_ns - b->from_ns;
    b->judged_ns += ns;
    b->cost_ns += cost_ns;
    backward_watch_open(b, n);
    return n->wanted || (double)cost_ns <= BACKWARD_WATCH_BUDGET * (double)ns;
}

void backward_watch_turn(struct backward_watch *b, bool on, const struct backward_watch_now *n) {
    b->on = on;
    if (on) {
        b->begin_ns = n->now_ns;
        backward_watch_open(b, n);
        return;
    }
    uint64_t watched_ns = n->now_ns - b->begin_ns;
    watched_ns = watched_ns < BACKWARD_WATCH_LONG_NS ? watched_ns : BACKWARD_WATCH_LONG_NS;
    uint64_t rest_ns = BACKWARD_WATCH_REST * watched_ns;
    b->due_ns = n->now_ns + (rest_ns > BACKWARD_WATCH_PAUSE_NS ? rest_ns : BACKWARD_WATCH_PAUSE_NS);
}
