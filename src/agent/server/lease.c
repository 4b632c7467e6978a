/* SPDX-License-Identifier: Apache-2.0 */
/* lease: see lease.h. */
#include "agent/server/lease.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/option.h"

#define LEASE_NAME(kind, name, steps, most, limit_s, help) [kind] = name,
static const char *const lease_names[LEASE_KIND_COUNT + 1] = {LEASE_KINDS(LEASE_NAME)};

#define LEASE_LIMITS(kind, name, steps, most, limit_s, help) [kind] = {steps, most, limit_s},
static const struct {
    int64_t steps, most;
    double limit_s;
} lease_limits[LEASE_KIND_COUNT] = {LEASE_KINDS(LEASE_LIMITS)};

const char *lease_name(enum lease_kind kind) { return lease_names[kind]; }

int lease_find(const char *name, struct err *e) {
    for (int i = 0; i < LEASE_KIND_COUNT; i++)
        if (strcmp(lease_names[i], name) == 0)
            return i;
    const char *near = option_suggest(name, lease_names);
    return err_set(e, ERR_USAGE, "there is no lease named '%s'%s%s%s", name, near ? ": did you mean " : "",
                   near ? near : "", near ? "?" : "");
}

int lease_fit(enum lease_kind kind, struct wire_arm *want, struct err *e) {
    int64_t most = lease_limits[kind].most;
    if (most && want->steps > most)
        return err_set(e, ERR_USAGE, "'%s' traces up to %lld steps, not %lld", lease_names[kind],
                       (long long)most, (long long)want->steps);
    if (want->steps == 0)
        want->steps = lease_limits[kind].steps;
    if (want->limit_s == 0)
        want->limit_s = lease_limits[kind].limit_s;
    return 0;
}

static size_t lease_owner(const struct lease *l, uint32_t owner) {
    size_t i = 0;
    while (i < l->n && l->owners[i] != owner)
        i++;
    return i;
}

static void lease_drop(struct lease *l, size_t i) {
    l->n--;
    l->owners[i] = l->owners[l->n];
    l->until_ns[i] = l->until_ns[l->n];
}

int lease_arm(struct lease *l, uint32_t owner, const struct wire_arm *want, uint64_t now_ns, struct err *e) {
    size_t i = lease_owner(l, owner);
    if (!(want->limit_s >= 0 && want->limit_s <= LEASE_LONGEST_S))
        return err_set(e, ERR_USAGE, "a lease lasts up to %g s, not %g", LEASE_LONGEST_S, want->limit_s);
    if (want->steps < 0)
        return err_set(e, ERR_USAGE, "there are no %lld steps", (long long)want->steps);
    if (i == LEASE_OWNERS)
        return err_set(e, ERR_FAILED, "too many clients have it already");
    if (l->n == 0) {
        *l = (struct lease){.since_ns = now_ns, .compiled = want->compiled, .steps_left = -1};
        if (want->steps > 0)
            l->steps_left = want->steps;
    }
    l->owners[i] = owner;
    l->until_ns[i] = want->limit_s > 0 ? now_ns + (uint64_t)(want->limit_s * 1e9) : LEASE_FOREVER;
    l->n += i == l->n;
    return 0;
}

bool lease_disarm(struct lease *l, uint32_t owner) {
    size_t i = lease_owner(l, owner);
    bool had = i < l->n;
    if (had)
        lease_drop(l, i);
    return had;
}

void lease_expire(struct lease *l, uint64_t now_ns, const uint32_t *peers, size_t n_peers) {
    for (size_t i = l->n; i-- > 0;) {
        bool there = l->owners[i] == LEASE_BY_CONFIG;
        for (size_t k = 0; k < n_peers && !there; k++)
            there = peers[k] == l->owners[i];
        if (!there || l->until_ns[i] <= now_ns)
            lease_drop(l, i);
    }
}

uint64_t lease_next_ns(const struct lease *l) {
    uint64_t next = LEASE_FOREVER;
    for (size_t i = 0; i < l->n; i++)
        next = l->until_ns[i] < next ? l->until_ns[i] : next;
    return next;
}

void lease_end(struct lease *l) { l->n = 0; }
