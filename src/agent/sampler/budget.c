/* SPDX-License-Identifier: Apache-2.0 */
/* budget: see budget.h. */
#include "agent/sampler/budget.h"

#define BUDGET_LEAST_SHARE 0.25

double budget_choose(const struct config *config, const struct mailbox *m) {
    double configured = config->values[CONFIG_BUDGET], least = 0;
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        for (size_t k = 0; m->slots[i].peer && k < WIRE_STREAM_COUNT; k++) {
            double wish = m->slots[i].budget_pct[k];
            if (m->slots[i].rate_hz[k] > 0 && wish > 0 && (least == 0 || wish < least))
                least = wish;
        }
    const struct option_def *d = &config_defs[CONFIG_BUDGET];
    if (least == 0 || (config->given[CONFIG_BUDGET] && least > configured))
        return configured;
    return least < d->min ? d->min : least > d->max ? d->max : least;
}

double budget_left(double budget_pct, double used_pct) {
    double left = budget_pct - used_pct, least = budget_pct * BUDGET_LEAST_SHARE;
    return left > least ? left : least;
}
