/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks: the rank that a process has in torch.distributed: see pystack_find_rank in pystack.h.
 *
 * torch.distributed.distributed_c10d._pg_group_ranks has a dict for each process group, of the rank
 * in the job of each member. The group is pybind11's instance, with a pointer to the C++ object
 * behind the head of the Python object (pybind11/detail/common.h, simple_value_holder). That is
 * c10d::ProcessGroup: the pointer of its class, a count of references of one or two words, the store
 * (from 2.6 on), then `int rank_, size_` (ProcessGroup.hpp). So they are 24 or 32 bytes behind its beginning.
 */
#include "base/rank_env.h"
#include "pystack/pystack_internal.h"

#define RANKS_MODULE "torch.distributed.distributed_c10d"
#define RANKS_FIRST 24 /* where rank_ may be */
#define RANKS_LAST 32
#define RANKS_ENTRIES 262144 /* groups and ranks that are counted, whatever the dicts claim */

/* The group with the most ranks. */
struct ranks_search {
    uint64_t group;
    uint32_t world, n; /* its ranks; those of the group that is counted */
    uint32_t left;
};

static int ranks_count_entry(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                             void *arg) {
    struct ranks_search *s = arg;
    (void)r;
    (void)index;
    (void)key;
    (void)value;
    s->n++;
    return s->left == 0 || --s->left == 0;
}

static int ranks_compare_group(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                               void *arg) {
    struct ranks_search *s = arg;
    (void)index;
    s->n = 0;
    if (s->left == 0 || --s->left == 0)
        return 1;
    if (pystack_dict_each(r, value, ranks_count_entry, s) == 0 && s->n > s->world) {
        s->world = s->n;
        s->group = key;
    }
    return 0;
}

/* The list begins with the newest: the main one comes last. */
static int ranks_find_modules(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    uint64_t *modules = arg;
    (void)id;
    if (pystack_read_u64_at(&ps->reader, interp, ps->reader.off.interp_modules, modules) != 0)
        *modules = 0;
    return 0;
}

int pystack_find_rank(struct pystack *ps, int32_t *rank, int32_t *world) {
    struct pystack_reader *r = &ps->reader;
    struct ranks_search s = {.left = RANKS_ENTRIES};
    uint64_t modules = 0, module, dict, groups, object, pair;
    if (pystack_each_interpreter(ps, ranks_find_modules, &modules) < 0 || !modules ||
        pystack_dict_find(r, modules, RANKS_MODULE, NULL, &module) != 0 ||
        pystack_read_u64_at(r, module, r->off.module_dict, &dict) != 0 ||
        pystack_dict_find(r, dict, "_pg_group_ranks", NULL, &groups) != 0 ||
        pystack_dict_each(r, groups, ranks_compare_group, &s) < 0 || s.world == 0 ||
        pystack_read_u64_at(r, s.group, r->off.object_type + 8, &object) != 0 || !pystack_is_pointer(object))
        return -1;
    for (int32_t at = RANKS_FIRST; at <= RANKS_LAST; at += 8)
        if (pystack_read_u64_at(r, object, at, &pair) == 0 && pair >> 32 == s.world &&
            (uint32_t)pair < s.world) {
            *rank = (int32_t)(uint32_t)pair;
            *world = (int32_t)s.world;
            return 0;
        }
    return -1;
}

int32_t pystack_choose_rank(struct pystack *ps, int32_t rank, int32_t world) {
    int32_t own, of;
    if ((rank >= 0 && world != 1) || !ps || pystack_find_rank(ps, &own, &of) != 0)
        return rank;
    return rank < 0 || of > 1 ? own : rank;
}

int32_t pystack_rank_of(pid_t pid) {
    char version[32];
    int32_t world, rank = rank_env_rank(pid, &world);
    if ((rank >= 0 && world != 1) || pystack_find_torch(pid, version, sizeof version) != 0)
        return rank;
    struct pystack *ps = pystack_open(pid, NULL);
    rank = pystack_choose_rank(ps, rank, world);
    pystack_close(ps);
    return rank;
}
