/* SPDX-License-Identifier: Apache-2.0 */
/* config: see config.h. */
#include "base/config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cost.h"
#include "base/procfs.h"

#define CONFIG_TEXT_MAX 64

const struct config_def config_defs[] = {
    [CONFIG_BUDGET] = {"probing.budget", "PROBING_BUDGET", "% of a core",
                       "what sampling may cost at most; looks are taken less often to stay within it",
                       COST_BUDGET_PCT, 0.01, 100},
};
_Static_assert(sizeof config_defs / sizeof config_defs[0] == CONFIG_KEYS, "a key has no row");

void config_init(struct config *c) {
    *c = (struct config){.given = {false}};
    for (size_t i = 0; i < CONFIG_KEYS; i++)
        c->values[i] = config_defs[i].otherwise;
}

int config_set(struct config *c, enum config_key key, const char *name, const char *text, struct err *e) {
    const struct config_def *d = &config_defs[key];
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || *end || errno || !(v >= d->min && v <= d->max))
        return err_set(e, ERR_USAGE, "%s takes a number from %g to %g (%s), not '%s'", name, d->min, d->max,
                       d->unit, text);
    c->values[key] = v;
    c->given[key] = true;
    return 0;
}

int config_read_environ(struct config *c, pid_t pid, struct err *e) {
    char text[CONFIG_TEXT_MAX];
    int rc = 0;
    for (size_t i = 0; i < CONFIG_KEYS; i++)
        if (procfs_read_environ(pid, config_defs[i].env, text, sizeof text) == 0 && text[0] &&
            config_set(c, (enum config_key)i, config_defs[i].env, text, rc == 0 ? e : NULL) != 0)
            rc = -1;
    return rc;
}
