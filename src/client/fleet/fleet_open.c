/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_open: see fleet_open.h. */
#include "client/fleet/fleet_open.h"

#include <math.h>
#include <string.h>

#include "client/fleet/fleet_engine.h"
#include "client/fleet/fleet_links.h"

/* The first that takes a target opens it; the last takes every one. */
static const struct fleet_source_kind *const open_kinds[] = {&fleet_engine_kind, &fleet_links_kind};

static const struct fleet_source_kind *open_kind(const char *target) {
    size_t i = 0;
    while (i + 1 < sizeof open_kinds / sizeof open_kinds[0] && !open_kinds[i]->takes(target))
        i++;
    return open_kinds[i];
}

struct fleet_source *fleet_open(const char *target, const struct fleet_reach *reach, struct err *e) {
    return open_kind(target)->open(target, reach, NULL, e);
}

struct fleet_source *fleet_open_work(const char *target, const struct fleet_reach *reach, const char *work,
                                     struct err *e) {
    return open_kind(target)->open(target, reach, work, e);
}

const char *fleet_open_find_ranks(const char *target) {
    return fleet_open_is_database(target) ? NULL : strchr(target, '/');
}

double fleet_open_at(const char *target) {
    const struct fleet_source_kind *k = open_kind(target);
    return k->at ? k->at(target) : NAN;
}

int fleet_open_put_at(const char *target, double at, struct strbuf *out, struct err *e) {
    const struct fleet_source_kind *k = open_kind(target);
    if (k->put_at)
        return k->put_at(target, at, out, e);
    if (!isnan(at))
        return err_set(e, ERR_USAGE, "the past of a job is known of a database, not of its hosts");
    strbuf_adds(out, target);
    return 0;
}

bool fleet_open_is_database(const char *target) { return open_kind(target)->is_database; }

bool fleet_open_is_far(const char *target, const struct fleet_reach *reach) {
    return reach->hosts.n > 0 || fleet_open_is_database(target);
}
