/* SPDX-License-Identifier: Apache-2.0 */
/* config: see config.h. */
#include "base/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/address.h"
#include "base/cost.h"
#include "base/option.h"
#include "base/procfs.h"
#include "base/watch.h"

#define CONFIG_PREFIX "probing."
#define CONFIG_MIB 1048576.0

const struct config_def config_defs[] = {
    [CONFIG_BUDGET] = {"probing.budget", "PROBING_BUDGET", "% of a core",
                       "what sampling may cost at most; looks are taken less often to stay within it",
                       COST_BUDGET_PCT, 0.01, 100, CONFIG_PERCENT, NULL, false},
    [CONFIG_SAMPLE_RATE] = {"probing.sample_rate", "PROBING_SAMPLE_RATE", "Hz",
                            "looks at each thread a second that are always taken and kept; 0: none", 10, 0,
                            1000, CONFIG_RATE, NULL, false},
    [CONFIG_GENTLE] = {"probing.gentle", "PROBING_GENTLE", "on or off",
                       "on: these looks send no signals; stacks of running threads may be torn", 0, 0, 1,
                       CONFIG_SWITCH, NULL, false},
    [CONFIG_NATIVE] = {"probing.native", "PROBING_NATIVE", "on or off",
                       "on: stacks that are kept have C and C++ frames among those of Python; a look costs "
                       "about twice as much",
                       0, 0, 1, CONFIG_SWITCH, NULL, false},
    [CONFIG_STEPS] = {"probing.steps", "PROBING_STEPS", "on or off",
                      "on: torch tells of its optimizer steps, batches and collectives (python.steps, "
                      "profiling_data)",
                      1, 0, 1, CONFIG_SWITCH, NULL, false},
    [CONFIG_TRACE_SHARE] =
        {"probing.look_share", "PROBING_LOOK_SHARE", "% of time",
         "what reading loss, learning rate and the like at the ends of steps may take of the "
         "job's time: the others are left out; 100: none is, as where values are watched",
         0.07, 0, 100, CONFIG_PERCENT, NULL, false},
    [CONFIG_TORCH_PROFILING] =
        {"probing.torch_profiling", "PROBING_TORCH_PROFILING", "on or off,exprs=...",
         "what is looked at in training: on traces modules (python.torch_trace), "
         "exprs=loss@train,model.scale watches values of variables (python.variables, training_logs)",
         0, 0, 0, CONFIG_WATCH, "", false},
    [CONFIG_TRACE_RATE] = {"probing.trace_rate", "PROBING_TRACE_RATE", "% of steps",
                           "training steps that are looked into while modules are traced; fewer where that "
                           "would take more than 0.5 % of the job's time",
                           5, 0.1, 100, CONFIG_PERCENT, NULL, false},
    [CONFIG_EVAL] = {"probing.eval", "PROBING_EVAL", "on or off",
                     "off: nobody can have code run in the job (eval, execute)", 1, 0, 1, CONFIG_SWITCH, NULL,
                     false},
    [CONFIG_MAX_MEMORY] = {"probing.max_memory", "PROBING_MAX_MEMORY", "bytes",
                           "what the tables may take at most, 0: there are none; a change begins them anew",
                           32 * CONFIG_MIB, 0, 16384 * CONFIG_MIB, CONFIG_BYTES, NULL, false},
    [CONFIG_RETENTION] = {"probing.retention", "PROBING_RETENTION", "s",
                          "rows older than this are forgotten; 0: each table as it is", 0, 0, 31536000,
                          CONFIG_SECONDS, NULL, false},
    [CONFIG_RETENTION_DAYS] = {"probing.retention_days", "PROBING_RETENTION_DAYS", "days",
                               "tables of dead processes are removed after this, when an agent starts", 7, 0,
                               3650, CONFIG_DAYS, NULL, true},
    [CONFIG_DATA_DIR] = {"probing.data_dir", "PROBING_DATA_DIR", "path",
                         "where the tables lie; else below /dev/shm, else /tmp, else in memory", 0, 0, 0,
                         CONFIG_PATH, "", true},
    [CONFIG_ENV_ALLOW] = {"probing.env_allow", "PROBING_ENV_ALLOW", "names",
                          "variables of the job's environment that probing.facts tells, as 'A,B'; else none",
                          0, 0, 0, CONFIG_NAMES, "", true},
    [CONFIG_LISTEN] = {"probing.addr", "PROBING_ADDR", "address",
                       "where the agent listens for TCP, as 127.0.0.1:3344; else nowhere ('listen' opens it "
                       "later)",
                       0, 0, 0, CONFIG_ADDRESS, "", true},
};
_Static_assert(sizeof config_defs / sizeof config_defs[0] == CONFIG_KEYS, "a key has no row");

struct config_unit {
    const char *name;
    double factor;
};

static const struct config_unit config_no_units[] = {{NULL, 0}};
static const struct config_unit config_percents[] = {{"%", 1}, {NULL, 0}};
static const struct config_unit config_rates[] = {{"Hz", 1}, {"kHz", 1000}, {NULL, 0}};
static const struct config_unit config_bytes[] = {{"B", 1},
                                                  {"K", 1024},
                                                  {"KB", 1024},
                                                  {"KiB", 1024},
                                                  {"M", CONFIG_MIB},
                                                  {"MB", CONFIG_MIB},
                                                  {"MiB", CONFIG_MIB},
                                                  {"G", 1024 * CONFIG_MIB},
                                                  {"GB", 1024 * CONFIG_MIB},
                                                  {"GiB", 1024 * CONFIG_MIB},
                                                  {NULL, 0}};
static const struct config_unit config_seconds[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1},     {"m", 60},
                                                    {"min", 60},  {"h", 3600},  {"d", 86400}, {NULL, 0}};
static const struct config_unit config_days[] = {{"d", 1},        {"days", 1}, {"day", 1},
                                                 {"h", 1.0 / 24}, {"w", 7},    {NULL, 0}};

/* What may follow the number of each type; the first that divides a value evenly enough is what it is printed with. */
static const struct config_unit *const config_units[] = {
    [CONFIG_NUMBER] = config_no_units, [CONFIG_PERCENT] = config_percents, [CONFIG_RATE] = config_rates,
    [CONFIG_BYTES] = config_bytes,     [CONFIG_SECONDS] = config_seconds,  [CONFIG_DAYS] = config_days,
};

static const struct config_unit config_switch[] = {
    {"on", 1}, {"true", 1}, {"yes", 1}, {"1", 1}, {"off", 0}, {"false", 0}, {"no", 0}, {"0", 0}, {NULL, 0}};

static const struct config_unit *config_find_unit(const struct config_unit *units, const char *name) {
    while (units->name && strcasecmp(units->name, name) != 0)
        units++;
    return units->name ? units : NULL;
}

/* A number with or without a unit. 0, or -1 when it is none. */
static int config_parse(enum config_type type, const char *text, double *out) {
    const struct config_unit *unit = NULL;
    if (type == CONFIG_SWITCH) {
        unit = config_find_unit(config_switch, text);
        *out = unit ? unit->factor : 0;
        return unit ? 0 : -1;
    }
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || errno)
        return -1;
    while (*end == ' ')
        end++;
    if (*end && !(unit = config_find_unit(config_units[type], end)))
        return -1;
    *out = unit ? v * unit->factor : v;
    return 0;
}

static bool config_is_text(enum config_type type) {
    return type == CONFIG_PATH || type == CONFIG_NAMES || type == CONFIG_ADDRESS || type == CONFIG_WATCH;
}

/* Where the text of a key is kept. */
static size_t config_text_at(enum config_key key) {
    return key == CONFIG_ENV_ALLOW         ? offsetof(struct config, env_allow)
           : key == CONFIG_LISTEN          ? offsetof(struct config, address)
           : key == CONFIG_TORCH_PROFILING ? offsetof(struct config, torch_profiling)
                                           : offsetof(struct config, data_dir);
}

/* Names that a shell could have set, with commas between them; or nothing. */
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

static int config_set_text(struct config *c, enum config_key key, const char *name, const char *text,
                           struct err *e) {
    enum config_type type = config_defs[key].type;
    if (type == CONFIG_PATH && text[0] && text[0] != '/')
        return err_set(e, ERR_USAGE, "%s takes an absolute path, not '%s'", name, text);
    if (type == CONFIG_NAMES && !config_are_names(text))
        return err_set(e, ERR_USAGE, "%s takes names of variables with commas between them, not '%s'", name,
                       text);
    struct address where;
    if (type == CONFIG_ADDRESS && text[0] && address_parse(&where, text, NULL) != 0)
        return err_set(e, ERR_USAGE, "%s takes an address as 127.0.0.1:3344 or [::1]:3344, not '%s'", name,
                       text);
    if (strlen(text) >= CONFIG_TEXT_MAX)
        return err_set(e, ERR_USAGE, "%s takes at most %d bytes", name, CONFIG_TEXT_MAX - 1);
    if (type == CONFIG_WATCH && watch_parse(NULL, name, text, e) != 0)
        return -1;
    memcpy((char *)c + config_text_at(key), text, strlen(text) + 1);
    c->given[key] = true;
    return 0;
}

void config_init(struct config *c) {
    *c = (struct config){.given = {false}};
    for (size_t i = 0; i < CONFIG_KEYS; i++)
        c->values[i] = config_defs[i].default_value;
}

int config_find(const char *name, struct err *e) {
    const char *names[CONFIG_KEYS + 1] = {NULL};
    size_t skip = strncmp(name, CONFIG_PREFIX, strlen(CONFIG_PREFIX)) == 0 ? strlen(CONFIG_PREFIX) : 0;
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        names[i] = config_defs[i].key + strlen(CONFIG_PREFIX);
        if (strcmp(names[i], name + skip) == 0)
            return (int)i;
    }
    const char *near = option_suggest(name + skip, names);
    if (near)
        return err_set(e, ERR_USAGE, "there is no key '%s': did you mean %s%s?", name, CONFIG_PREFIX, near);
    return err_set(e, ERR_USAGE, "there is no key '%s': 'config' without a key lists them", name);
}

int config_set(struct config *c, enum config_key key, const char *name, const char *text, struct err *e) {
    const struct config_def *d = &config_defs[key];
    double v;
    if (config_is_text(d->type))
        return config_set_text(c, key, name, text, e);
    int rc = config_parse(d->type, text, &v);
    if (d->type == CONFIG_SWITCH && rc != 0)
        return err_set(e, ERR_USAGE, "%s takes on or off, not '%s'", name, text);
    if (rc != 0 || !(v >= d->min && v <= d->max))
        return err_set(e, ERR_USAGE, "%s takes a number from %g to %g (%s), not '%s'", name, d->min, d->max,
                       d->unit, text);
    c->values[key] = v;
    c->given[key] = true;
    return 0;
}

/* The largest unit of which it is a whole number of at least one; else the one with factor 1. */
static const struct config_unit *config_best_unit(const struct config_unit *units, double v) {
    const struct config_unit *best = NULL;
    for (; units->name; units++) {
        bool fits = v == 0 || (fabs(v) >= units->factor && fmod(v, units->factor) == 0);
        if (units->factor == 1 && !best)
            best = units;
        if (v != 0 && fits && units->factor >= 1 && (!best || units->factor > best->factor))
            best = units;
    }
    return best;
}

void config_format(const struct config *c, enum config_key key, bool def, char *buf, size_t cap) {
    const struct config_def *d = &config_defs[key];
    double v = def ? d->default_value : c->values[key];
    if (config_is_text(d->type)) {
        (void)snprintf(buf, cap, "%s", def ? d->text : (const char *)c + config_text_at(key));
    } else if (d->type == CONFIG_SWITCH) {
        (void)snprintf(buf, cap, "%s", v != 0 ? "on" : "off");
    } else if (d->type == CONFIG_BYTES || d->type == CONFIG_SECONDS) {
        const struct config_unit *unit = config_best_unit(config_units[d->type], v);
        (void)snprintf(buf, cap, "%.10g%s", v / unit->factor, unit->name);
    } else {
        (void)snprintf(buf, cap, "%.10g", v);
    }
}

int config_read_environ(struct config *c, pid_t pid, struct err *e) {
    char text[CONFIG_TEXT_MAX * 2]; /* one that is too long is seen to be */
    int rc = 0;
    for (size_t i = 0; i < CONFIG_KEYS; i++)
        if (procfs_read_environ(pid, config_defs[i].env, text, sizeof text) == 0 && text[0] &&
            config_set(c, (enum config_key)i, config_defs[i].env, text, rc == 0 ? e : NULL) != 0)
            rc = -1;
    return rc;
}
