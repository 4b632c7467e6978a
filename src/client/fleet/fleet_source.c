/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_source: see fleet_source.h. */
#include "client/fleet/fleet_source.h"

#include <poll.h>

#include "base/clock.h"

#define SOURCE_POLL_MS 250

void fleet_source_close(struct fleet_source *s) {
    if (s)
        s->kind->close(s);
}

int fleet_source_fd(const struct fleet_source *s) { return s->fd; }

bool fleet_source_advance(struct fleet_source *s) { return s->kind->advance(s); }

const struct fleet *fleet_source_get(const struct fleet_source *s) { return &s->hosts.fleet; }

const struct err *fleet_source_error(const struct fleet_source *s) { return &s->error; }

void fleet_source_put_silent(const struct fleet_source *s, struct strbuf *out) {
    s->kind->put_silent(s, out);
}

bool fleet_source_states(const struct fleet_source *s, size_t i, struct fleet_states *out) {
    return s->kind->states(s, i, out);
}

void fleet_source_ask_states(struct fleet_source *s, bool counters) { s->kind->ask_states(s, counters); }

int fleet_source_fill(struct fleet_source *s, unsigned rounds, double limit_s, bool (*stop)(void *arg),
                      void *arg, struct err *e) {
    uint64_t until = clock_mono_ns() + (uint64_t)(limit_s * (double)CLOCK_NS_PER_S);
    uint64_t wanted = s->hosts.fleet.round + rounds;
    while (clock_mono_ns() < until && s->hosts.fleet.round < wanted && s->error.code == ERR_OK &&
           !s->is_final && !(stop && stop(arg))) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        if (poll(&p, 1, SOURCE_POLL_MS) > 0)
            fleet_source_advance(s);
    }
    int rc = s->kind->settle(s, e);
    if (s->error.code == ERR_OK)
        return rc;
    *e = s->error;
    return -1;
}
