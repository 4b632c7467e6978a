/* SPDX-License-Identifier: Apache-2.0 */
/* rank_env: see rank_env.h. */
#include "base/rank_env.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "base/text.h"

#define RANK_ENV_BYTES ((size_t)1024 * 1024) /* of an environment that are read */
#define RANK_ENV_VALUE 512                   /* bytes of a name that count, with the NUL */

/* torchrun: torch/distributed/elastic/agent/server/local_elastic_agent.py. Slurm: srun(1), "OUTPUT
 * ENVIRONMENT VARIABLES". Open MPI: "Environment variables" of its FAQ. PMI: the launcher of MPICH
 * (hydra) and of Intel. mpirun may run in a step of Slurm and leaves its ranks the step's variables;
 * srun sets none of Open MPI's. */
const struct rank_env_source rank_env_sources[] = {
    {.name = "torchrun",
     .rank = "RANK",
     .world = "WORLD_SIZE",
     .local = "LOCAL_RANK",
     .locals = "LOCAL_WORLD_SIZE",
     .node = "GROUP_RANK",
     .nodes = "GROUP_WORLD_SIZE"},
    {.name = "openmpi",
     .rank = "OMPI_COMM_WORLD_RANK",
     .world = "OMPI_COMM_WORLD_SIZE",
     .local = "OMPI_COMM_WORLD_LOCAL_RANK",
     .locals = "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {.name = "slurm",
     .rank = "SLURM_PROCID",
     .world = "SLURM_STEP_NUM_TASKS SLURM_NTASKS",
     .local = "SLURM_LOCALID",
     .locals = "SLURM_STEP_TASKS_PER_NODE SLURM_TASKS_PER_NODE",
     .node = "SLURM_NODEID",
     .nodes = "SLURM_STEP_NUM_NODES SLURM_NNODES",
     .needs = "SLURM_STEP_ID SLURM_STEPID",
     .needs_step = true},
    {.name = "pmix", .rank = "PMIX_RANK", .needs = "PMIX_NAMESPACE", .no_world = true},
    {.name = "pmi",
     .rank = "PMI_RANK",
     .world = "PMI_SIZE",
     .local = "MPI_LOCALRANKID",
     .locals = "MPI_LOCALNRANKS"},
    {.name = NULL},
};

struct rank_env_block {
    const char *bytes;
    size_t len;
};

/* The value of the first of `names` that is there; `*len` its bytes. NULL: none is. A variable
 * without an end is cut, and left out. */
static const char *rank_env_find(const struct rank_env_block *b, const char *names, size_t *len) {
    while (names && *names) {
        size_t n = strcspn(names, " ");
        for (size_t at = 0; at < b->len;) {
            size_t here = strnlen(b->bytes + at, b->len - at);
            if (at + here < b->len && here > n && b->bytes[at + n] == '=' &&
                memcmp(b->bytes + at, names, n) == 0) {
                *len = here - n - 1;
                return b->bytes + at + n + 1;
            }
            at += here + 1;
        }
        names += n + strspn(names + n, " ");
    }
    return NULL;
}

/* A number below `limit`, with nothing but digits before one of `ends`; `missing` if it is not. */
static int64_t rank_env_number(const struct rank_env_block *b, const char *names, const char *ends,
                               int64_t limit, int64_t missing) {
    size_t len = 0, i = 0;
    const char *text = rank_env_find(b, names, &len);
    int64_t v = 0;
    for (; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
        v = v * 10 + (text[i] - '0');
        if (v >= limit)
            return missing;
    }
    return i > 0 && (i == len || (text[i] && strchr(ends, text[i]))) ? v : missing;
}

/* Numbers that Slurm gives to more than its steps: the script of sbatch, what salloc starts (slurm.h,
 * SLURM_BATCH_SCRIPT and others). */
#define RANK_ENV_STEPS 0xfffffff0LL

static bool rank_env_has_needs(const struct rank_env_block *b, const struct rank_env_source *s) {
    size_t len;
    if (s->needs_step)
        return rank_env_number(b, s->needs, "", RANK_ENV_STEPS, -1) >= 0;
    return !s->needs || (rank_env_find(b, s->needs, &len) && len > 0);
}

/* Fill in the rank, if the source is whole. */
static bool rank_env_use(struct rank_env *r, const struct rank_env_block *b,
                         const struct rank_env_source *s) {
    int32_t rank = (int32_t)rank_env_number(b, s->rank, "", RANK_ENV_LIMIT, -1);
    int32_t world = (int32_t)rank_env_number(b, s->world, "", RANK_ENV_LIMIT + 1, 0);
    if (rank < 0 || (world == 0 && !s->no_world) || (world > 0 && rank >= world) || !rank_env_has_needs(b, s))
        return false;
    r->source = s;
    r->rank = rank;
    r->world = world;
    r->node = (int32_t)rank_env_number(b, s->node, "", RANK_ENV_LIMIT, -1);
    r->nodes = (int32_t)rank_env_number(b, s->nodes, "", RANK_ENV_LIMIT + 1, 0);
    /* Slurm's is "2", "2(x3)" or "2,1": the last says nothing about this host */
    r->local = (int32_t)rank_env_number(b, s->local, "", RANK_ENV_LIMIT, -1);
    r->locals = (int32_t)rank_env_number(b, s->locals, "(", RANK_ENV_LIMIT + 1, 0);
    if (r->local >= 0 && r->locals > 0 && r->local >= r->locals)
        r->local = -1, r->locals = 0;
    return true;
}

/* What Slurm's own namespaces of PMIx begin with (src/plugins/mpi/pmix/pmixp_info.c). */
#define RANK_ENV_SLURM_SPACE "slurm.pmix."

/* A launcher in a step of Slurm leaves its ranks the step's variables, too. PMI with another number
 * of ranks than the step is the launcher's, and so is PMIx, which has no number, with a namespace
 * that is not Slurm's. */
static void rank_env_use_inner(struct rank_env *r, const struct rank_env_block *b) {
    for (const struct rank_env_source *s = r->source + 1; s->name; s++) {
        struct rank_env inner = *r;
        size_t len = 0, n = strlen(RANK_ENV_SLURM_SPACE);
        if (!rank_env_use(&inner, b, s))
            continue;
        const char *space = rank_env_find(b, s->needs, &len);
        bool is_of_slurm =
            inner.world ? inner.world == r->world : len >= n && memcmp(space, RANK_ENV_SLURM_SPACE, n) == 0;
        if (!is_of_slurm) {
            *r = inner;
            return;
        }
    }
}

/* Add a name of the job to a hash, with which of them it is. */
static uint64_t rank_env_hash(uint64_t h, const char *which, const char *value, size_t len) {
    h = hash_fnv_text(h ? h : HASH_FNV_START, which);
    h = hash_fnv(h, value, len);
    return hash_fnv(h, "", 1);
}

/* What names the job: which variables must agree, and whether they outlast a restart. */
enum {
    RANK_ENV_RUN,
    RANK_ENV_SLURM_JOB,
    RANK_ENV_STEP,
    RANK_ENV_SPACE,
    RANK_ENV_ADDRESS,
    RANK_ENV_PORT,
};
static const struct {
    const char *names;
    const char *nothing; /* a value that names no job */
    bool stays;
} rank_env_keys[] = {
    [RANK_ENV_RUN] = {"TORCHELASTIC_RUN_ID", "none", true}, /* torchrun's default */
    [RANK_ENV_SLURM_JOB] = {"SLURM_JOB_ID SLURM_JOBID", NULL, true},
    [RANK_ENV_STEP] = {"SLURM_STEP_ID SLURM_STEPID", NULL, true},
    [RANK_ENV_SPACE] = {"PMIX_NAMESPACE", NULL, true},
    [RANK_ENV_ADDRESS] = {"MASTER_ADDR", NULL, false},
    [RANK_ENV_PORT] = {"MASTER_PORT", NULL, false},
};

/* The value of a key, or NULL: it names no job. */
static const char *rank_env_key(const struct rank_env_block *b, size_t key, size_t *len) {
    const char *nothing = rank_env_keys[key].nothing;
    const char *value = rank_env_find(b, rank_env_keys[key].names, len);
    if (!value || *len == 0 || (nothing && *len == strlen(nothing) && memcmp(value, nothing, *len) == 0))
        return NULL;
    *len = *len < RANK_ENV_VALUE ? *len : RANK_ENV_VALUE;
    return value;
}

/* Is this the key of whoever started the launcher? Each host's torchrun may be a step of its own, and
 * so may what starts Open MPI's ranks there: it counts only where the launcher itself gave no name. */
static bool rank_env_is_outer(const struct rank_env *r, const struct rank_env_block *b, size_t key) {
    const char *source = r->source->name;
    size_t len;
    if (strcmp(source, "torchrun") == 0 && (key == RANK_ENV_STEP || key == RANK_ENV_SPACE))
        return rank_env_key(b, RANK_ENV_RUN, &len) ||
               (rank_env_key(b, RANK_ENV_ADDRESS, &len) && !r->is_loopback);
    if ((strcmp(source, "openmpi") == 0 || strcmp(source, "pmix") == 0) && key == RANK_ENV_STEP)
        return rank_env_key(b, RANK_ENV_SPACE, &len) != NULL;
    return false;
}

static void rank_env_name_job(struct rank_env *r, const struct rank_env_block *b) {
    bool has_run = false, left_out = false;
    for (size_t i = 0; i < sizeof rank_env_keys / sizeof rank_env_keys[0]; i++) {
        size_t len = 0;
        const char *names = rank_env_keys[i].names;
        const char *value = rank_env_key(b, i, &len);
        if (!value)
            continue;
        if (rank_env_is_outer(r, b, i)) {
            left_out = true;
            continue;
        }
        has_run |= i == RANK_ENV_RUN;
        r->job = rank_env_hash(r->job, names, value, len);
        /* the address takes the place of the step: two jobs of an allocation have two names */
        if (rank_env_keys[i].stays || (i == RANK_ENV_ADDRESS && left_out && !has_run))
            r->run = rank_env_hash(r->run, names, value, len);
    }
}

static bool rank_env_is_loopback(const struct rank_env_block *b) {
    static const char *const hosts[] = {"localhost", "127.", "::1"};
    size_t len = 0;
    const char *value = rank_env_find(b, "MASTER_ADDR", &len);
    for (size_t i = 0; value && i < sizeof hosts / sizeof hosts[0]; i++)
        if (len >= strlen(hosts[i]) && memcmp(value, hosts[i], strlen(hosts[i])) == 0)
            return true;
    return false;
}

static void rank_env_title(struct rank_env *r, const struct rank_env_block *b) {
    size_t len = 0;
    char raw[RANK_ENV_VALUE];
    const char *value = rank_env_find(b, "SLURM_JOB_NAME", &len);
    if (!value)
        return;
    len = len < sizeof raw ? len : sizeof raw - 1;
    memcpy(raw, value, len);
    raw[len] = '\0';
    text_sanitize(r->title, sizeof r->title, raw);
}

void rank_env_parse(struct rank_env *r, const char *env, size_t len) {
    const struct rank_env_block b = {env, len};
    size_t ignored;
    *r = (struct rank_env){.rank = -1, .local = -1, .node = -1};
    r->is_local_rank = rank_env_find(&b, "LOCAL_RANK", &ignored) != NULL;
    const struct rank_env_source *s = rank_env_sources;
    while (s->name && !rank_env_use(r, &b, s))
        s++;
    if (!r->source)
        return;
    if (r->source->needs_step)
        rank_env_use_inner(r, &b);
    r->restarts = (int32_t)rank_env_number(&b, "TORCHELASTIC_RESTART_COUNT", "", RANK_ENV_LIMIT, 0);
    r->is_loopback = rank_env_is_loopback(&b);
    rank_env_name_job(r, &b);
    rank_env_title(r, &b);
}

static int rank_env_read_file(struct strbuf *env, pid_t pid) {
    char path[48] = "/proc/self/environ";
    if (pid > 0)
        snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    strbuf_init(env, RANK_ENV_BYTES);
    return strbuf_read_file(env, path);
}

int rank_env_read(struct rank_env *r, pid_t pid) {
    struct strbuf env;
    int rc = rank_env_read_file(&env, pid);
    rank_env_parse(r, strbuf_str(&env), env.len);
    strbuf_fini(&env);
    return rc;
}

int32_t rank_env_rank(pid_t pid, int32_t *world) {
    struct strbuf env;
    struct rank_env r;
    rank_env_read_file(&env, pid);
    rank_env_parse(&r, strbuf_str(&env), env.len);
    const struct rank_env_block b = {strbuf_str(&env), env.len};
    int32_t rank = r.source ? r.rank : (int32_t)rank_env_number(&b, "RANK", "", RANK_ENV_LIMIT, -1);
    *world = r.world;
    strbuf_fini(&env);
    return rank;
}
