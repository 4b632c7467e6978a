/* SPDX-License-Identifier: Apache-2.0 */
/* config: see config.h. */
#include "base/config.h"

#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/cost.h"
#include "base/procfs.h"
#include "base/watch.h"

#define CONFIG_PREFIX "probing."
#define CONFIG_MIB 1048576.0

/* ---- what texts have to be ---- */

static bool config_is_path(const char *text) { return !text[0] || text[0] == '/'; }

static bool config_is_address(const char *text) {
    struct address where;
    return !text[0] || address_parse(&where, text, NULL) == 0;
}

/* True for names that a shell could set, separated by commas, or for "". */
static bool config_are_names(const char *text) {
    bool first = true;
    for (const char *p = text; *p; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
        bool digit = *p >= '0' && *p <= '9';
        if (!letter && (first || (!digit && *p != ',')))
            return false;
        first = *p == ',';
    }
    return !first || !text[0];
}

/* ---- the table ---- */

/* Rows that take text say where it is kept. */
const struct option_def config_defs[] = {
    [CONFIG_BUDGET] =
        {.name = "probing.budget",
         .kind = OPTION_PERCENT,
         .help = "the limit of the cost of sampling; samples are taken less often to stay within it",
         .min = 0.01,
         .max = 100,
         .env = "PROBING_BUDGET",
         .unit = "% of a core",
         .default_number = COST_BUDGET_PCT},
    [CONFIG_SAMPLE_RATE] = {.name = "probing.sample_rate",
                            .kind = OPTION_RATE,
                            .help = "samples of each thread a second that are always taken and kept; 0: none",
                            .max = 1000,
                            .env = "PROBING_SAMPLE_RATE",
                            .unit = "Hz",
                            .default_number = 10},
    [CONFIG_GENTLE] = {.name = "probing.gentle",
                       .kind = OPTION_SWITCH,
                       .help = "on: these samples send no signals; stacks of running threads may be torn",
                       .env = "PROBING_GENTLE",
                       .unit = "on or off"},
    [CONFIG_NATIVE] = {.name = "probing.native",
                       .kind = OPTION_SWITCH,
                       .help = "on: kept stacks have C and C++ frames among those of Python; a sample costs "
                               "about twice as much",
                       .env = "PROBING_NATIVE",
                       .unit = "on or off"},
    [CONFIG_STEPS] =
        {.name = "probing.steps",
         .kind = OPTION_SWITCH,
         .help = "on: torch reports optimizer steps, batches and collectives (python.steps, profiling_data)",
         .env = "PROBING_STEPS",
         .unit = "on or off",
         .default_number = 1},
    [CONFIG_TRACE_SHARE] =
        {.name = "probing.look_share",
         .kind = OPTION_PERCENT,
         .help = "the share of the job's time for reading loss, learning rate and other values at the end of "
                 "a step; other steps are skipped; 100: none is skipped, as where values are watched",
         .max = 100,
         .env = "PROBING_LOOK_SHARE",
         .unit = "% of time",
         .default_number = 0.07},
    [CONFIG_TORCH_PROFILING] =
        {.name = "probing.torch_profiling",
         .kind = OPTION_TEXT,
         .offset = offsetof(struct config, torch_profiling),
         .help = "what is traced in training: on traces modules (python.torch_trace), "
                 "exprs=loss@train,model.scale watches values of variables (python.variables, training_logs)",
         .env = "PROBING_TORCH_PROFILING",
         .unit = "on or off,exprs=...",
         .default_value = ""},
    [CONFIG_TRACE_RATE] = {.name = "probing.trace_rate",
                           .kind = OPTION_PERCENT,
                           .help = "share of training steps that are traced while modules are traced; fewer "
                                   "where that would take more than 0.5 % of the job's time",
                           .min = 0.1,
                           .max = 100,
                           .env = "PROBING_TRACE_RATE",
                           .unit = "% of steps",
                           .default_number = 5},
    [CONFIG_MEMORY_TRACE] = {.name = "probing.memory_trace",
                             .kind = OPTION_SWITCH,
                             .help = "on: trace memory allocations (memory_allocations)",
                             .env = "PROBING_MEMORY_TRACE",
                             .unit = "on or off"},
    [CONFIG_MEMORY_EVERY] = {.name = "probing.memory_every",
                             .kind = OPTION_BYTES,
                             .help = "bytes between two sampled allocations, on average, from the next start "
                                     "of tracing; fewer are more exact and cost more",
                             .min = 1024,
                             .max = 1024 * CONFIG_MIB,
                             .env = "PROBING_MEMORY_EVERY",
                             .unit = "bytes",
                             .default_number = CONFIG_MIB / 2},
    [CONFIG_EVAL] = {.name = "probing.eval",
                     .kind = OPTION_SWITCH,
                     .help = "off: nobody can run code in the job (eval, execute)",
                     .env = "PROBING_EVAL",
                     .unit = "on or off",
                     .default_number = 1},
    [CONFIG_MAX_MEMORY] = {.name = "probing.max_memory",
                           .kind = OPTION_BYTES,
                           .help = "the size limit of the tables, 0: no tables; a change empties them",
                           .max = 16384 * CONFIG_MIB,
                           .env = "PROBING_MAX_MEMORY",
                           .unit = "bytes",
                           .default_number = 32 * CONFIG_MIB},
    [CONFIG_RETENTION] = {.name = "probing.retention",
                          .kind = OPTION_DURATION,
                          .help = "rows older than this are deleted; 0: each table's own limit",
                          .max = 31536000,
                          .env = "PROBING_RETENTION",
                          .unit = "s"},
    [CONFIG_RETENTION_DAYS] =
        {.name = "probing.retention_days",
         .kind = OPTION_DAYS,
         .help = "age after which tables of dead processes are removed, when an agent starts",
         .max = 3650,
         .env = "PROBING_RETENTION_DAYS",
         .unit = "days",
         .default_number = 7,
         .at_start = true},
    [CONFIG_DATA_DIR] = {.name = "probing.data_dir",
                         .kind = OPTION_TEXT,
                         .offset = offsetof(struct config, data_dir),
                         .help =
                             "the folder of the tables (default: below /dev/shm, else /tmp, else in memory)",
                         .env = "PROBING_DATA_DIR",
                         .unit = "path",
                         .default_value = "",
                         .takes = "an absolute path",
                         .check = config_is_path,
                         .at_start = true},
    [CONFIG_ENV_ALLOW] =
        {.name = "probing.env_allow",
         .kind = OPTION_TEXT,
         .offset = offsetof(struct config, env_allow),
         .help = "variables of the job's environment that probing.facts shows, as 'A,B' (default: none)",
         .env = "PROBING_ENV_ALLOW",
         .unit = "names",
         .default_value = "",
         .takes = "names of variables with commas between them",
         .check = config_are_names,
         .at_start = true},
    [CONFIG_LISTEN] =
        {.name = "probing.addr",
         .kind = OPTION_TEXT,
         .offset = offsetof(struct config, address),
         .help =
             "where the agent listens for TCP, as 127.0.0.1:3344 (default: nowhere; 'listen' opens it later)",
         .env = "PROBING_ADDR",
         .unit = "address",
         .default_value = "",
         .takes = "an address as 127.0.0.1:3344 or [::1]:3344",
         .check = config_is_address,
         .at_start = true},
};
_Static_assert(sizeof config_defs / sizeof config_defs[0] == CONFIG_KEYS, "a key has no row");

/* ---- values ---- */

void config_init(struct config *c) {
    *c = (struct config){.given = {false}};
    for (size_t i = 0; i < CONFIG_KEYS; i++)
        c->values[i] = config_defs[i].default_number;
}

int config_find(const char *name, struct err *e) {
    const char *names[CONFIG_KEYS + 1] = {NULL};
    size_t skip = strncmp(name, CONFIG_PREFIX, strlen(CONFIG_PREFIX)) == 0 ? strlen(CONFIG_PREFIX) : 0;
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        names[i] = config_defs[i].name + strlen(CONFIG_PREFIX);
        if (strcmp(names[i], name + skip) == 0)
            return (int)i;
    }
    const char *near = option_suggest(name + skip, names);
    if (near)
        return err_set(e, ERR_USAGE, "unknown setting '%s': did you mean %s%s?", name, CONFIG_PREFIX, near);
    return err_set(e, ERR_USAGE, "unknown setting '%s': 'probing TARGET config' lists them", name);
}

int config_set(struct config *c, enum config_key key, const char *name, const char *text, struct err *e) {
    const struct option_def *d = &config_defs[key];
    double v = 0;
    if (option_read(d, name, text, &v, e) != 0)
        return -1;
    if (option_is_number(d))
        c->values[key] = v;
    else if (strlen(text) >= CONFIG_TEXT_MAX)
        return err_set(e, ERR_USAGE, "%s takes at most %d bytes", name, CONFIG_TEXT_MAX - 1);
    else if (key == CONFIG_TORCH_PROFILING && watch_parse(NULL, name, text, e) != 0)
        return -1; /* it says more about what is wrong than a row can */
    else
        memcpy((char *)c + d->offset, text, strlen(text) + 1);
    c->given[key] = true;
    return 0;
}

void config_format(const struct config *c, enum config_key key, bool def, char *buf, size_t cap) {
    const struct option_def *d = &config_defs[key];
    if (option_is_number(d))
        option_format(d, def ? d->default_number : c->values[key], buf, cap);
    else
        snprintf(buf, cap, "%s", def ? d->default_value : (const char *)c + d->offset);
}

int config_read_environ(struct config *c, pid_t pid, struct err *e) {
    char text[CONFIG_TEXT_MAX * 2]; /* twice the limit, so that a longer text is noticed */
    int rc = 0;
    for (size_t i = 0; i < CONFIG_KEYS; i++)
        if (procfs_read_environ(pid, config_defs[i].env, text, sizeof text) == 0 && text[0] &&
            config_set(c, (enum config_key)i, config_defs[i].env, text, rc == 0 ? e : NULL) != 0)
            rc = -1;
    return rc;
}
