/* SPDX-License-Identifier: Apache-2.0 */
/* ring_words: see ring_words.h. */
#include "store/ring/ring_words.h"

#include <stddef.h>

const struct ring_column_def ring_common_columns[RING_COMMON_COLUMNS] = {
    {"rank", RING_INT64, NULL, "the target's rank, from its launcher's variables; NULL when it has none",
     NULL, WIRE_READ_ONLY},
    {"host", RING_TEXT, NULL, "the machine it runs on", NULL, WIRE_READ_ONLY},
    {"pid", RING_INT64, NULL, "the target, as it numbers itself", NULL, WIRE_READ_ONLY},
};

const struct ring_cost_words *ring_cost_words(enum ring_cost cost) {
    static const struct ring_cost_words words[] = {
        [RING_COST_NOW] = {"now", "when read", "made when it is read: one snapshot"},
        [RING_COST_BACKGROUND] = {"always", "always", "collected always, at most 0.1 % of a core"},
        [RING_COST_STEPS] = {"steps", "each step", "collected at every step, at most 0.5 % of a core"},
        [RING_COST_PROBE] = {"probe", "on request", "collected on request"},
    };
    return &words[(size_t)cost < sizeof words / sizeof words[0] ? cost : RING_COST_NOW];
}

const char *ring_type_name(enum ring_type type) {
    switch (type) {
    case RING_TIMESTAMP:
        return "timestamp";
    case RING_DOUBLE:
        return "double";
    case RING_TEXT:
    case RING_ENUM:
        return "text";
    case RING_BOOL:
        return "boolean";
    case RING_INT64:
    case RING_INT32:
    case RING_UINT32:
    case RING_ID:
        break;
    }
    return "integer";
}
