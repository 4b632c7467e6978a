/* SPDX-License-Identifier: Apache-2.0 */
/* modules: which modules an interpreter has: see pystack.h. sys.modules only grows at its end
 * until its table is made again. */
#include "pystack/pystack_internal.h"

#define MODULES_NAME 64
#define MODULES_ENTRY 24 /* bytes of an entry, at most */

static int modules_find_dict(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    uint64_t *dict = arg;
    (void)id;
    /* The list begins with the newest: the main one comes last. */
    if (pystack_read_u64_at(&ps->reader, interp, ps->reader.off.interp_modules, dict) != 0)
        *dict = 0;
    return 0;
}

static bool modules_is_name(struct pystack_reader *r, const struct pystack_dict_table *t, uint32_t i,
                            const char *name) {
    uint8_t entry[MODULES_ENTRY];
    char text[MODULES_NAME];
    uint64_t at = t->entries + (uint64_t)i * t->entry_size;
    return t->entry_size <= sizeof entry && mem_read(&r->mem, at, entry, t->entry_size) == 0 &&
           pystack_get_u64(entry, (int32_t)t->value_at) != 0 &&
           pystack_read_str(r, pystack_get_u64(entry, (int32_t)t->key_at), text, sizeof text) > 0 &&
           strcmp(text, name) == 0;
}

static int modules_find_stdout(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    bool *found = arg;
    uint64_t sysdict, value;
    (void)id;
    *found = pystack_read_u64_at(&ps->reader, interp, ps->reader.off.interp_sysdict, &sysdict) == 0 &&
             (pystack_dict_find(&ps->reader, sysdict, "__stdout__", NULL, &value) == 0 ||
              pystack_dict_find(&ps->reader, sysdict, "stdout", NULL, &value) == 0);
    return 0;
}

bool pystack_has_streams(struct pystack *ps) {
    bool found = false;
    return ps->info.minor > 6 || (pystack_each_interpreter(ps, modules_find_stdout, &found) >= 0 && found);
}

bool pystack_has_module(struct pystack *ps, const char *name, struct pystack_modules *seen) {
    struct pystack_dict_table t;
    uint64_t dict = 0;
    if (pystack_each_interpreter(ps, modules_find_dict, &dict) < 0 || !dict ||
        pystack_dict_open(&ps->reader, dict, &t) != 0 || t.values)
        return false;
    if (seen->entries != t.entries || t.n < seen->n)
        *seen = (struct pystack_modules){.entries = t.entries};
    for (; seen->n < t.n && !seen->found; seen->n++)
        seen->found = modules_is_name(&ps->reader, &t, seen->n, name);
    return seen->found;
}
