/* SPDX-License-Identifier: Apache-2.0 */
/* training_logs: see training_logs.h. */
#include "client/sql/training_logs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"

#define TRAINING_LOGS "training_logs"
#define TRAINING_LOGS_BYTES ((size_t)64 * 1024)
#define TRAINING_LOGS_NAME 256 /* of a column */

static const struct sql_column_info logs_columns[] = {
    {"timestamp", "s", "when the step ended, in seconds since the epoch, UTC", RING_TIMESTAMP},
    {"step", "", "its number, as in python.steps", RING_INT64},
    {"epoch", "", "the job's own number of it; NULL: not known", RING_INT64},
    {"loss", "", "the loss; after it comes a column for each expression that was watched", RING_DOUBLE},
};

void training_logs_info(struct sql_table_info *out) {
    *out = (struct sql_table_info){.name = TRAINING_LOGS,
                                   .alias = "",
                                   .help = "a training step with its loss, epoch and what is watched "
                                           "(probing.torch_profiling); of python.steps and python.variables",
                                   .cost = RING_COST_NOW,
                                   .oldest = NAN,
                                   .newest = NAN,
                                   .columns = logs_columns,
                                   .n_columns = sizeof logs_columns / sizeof logs_columns[0]};
}

static void logs_put_quoted(struct strbuf *out, const char *text, char quote) {
    strbuf_addc(out, quote);
    for (; *text; text++) {
        if (*text == quote)
            strbuf_addc(out, quote);
        strbuf_addc(out, *text);
    }
    strbuf_addc(out, quote);
}

/* True if a column may have that name: the other columns of the view have theirs. */
static bool logs_is_free(const char *name) {
    static const char *const taken[] = {"rank", "host", "pid", "timestamp", "step", "epoch", "loss", NULL};
    for (size_t i = 0; taken[i]; i++)
        if (strcasecmp(taken[i], name) == 0)
            return false;
    return true;
}

/* True if the name of an earlier column differs from this one only in case: they are one to SQLite. */
static bool logs_is_second(char (*names)[TRAINING_LOGS_NAME], size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(names[i], name) == 0)
            return true;
    return false;
}

/* One column for each name: its last value within the step. "loss" exists already. */
static void logs_put_columns(struct sql *s, struct strbuf *inner, struct strbuf *outer) {
    static const struct sql_query limited = {.max_rows = TRAINING_LOGS_MAX};
    char names[TRAINING_LOGS_MAX][TRAINING_LOGS_NAME] = {{0}};
    size_t n = 0;
    struct err e = {.text = ""};
    struct sql_result *r =
        sql_begin(s, "SELECT DISTINCT name FROM python.variables WHERE step IS NOT NULL ORDER BY name",
                  &limited, NULL, NULL, &e);
    while (r && sql_next(r, &e) > 0) {
        size_t len;
        const char *name = sql_result_text(r, 0, &len);
        if (!name || !logs_is_free(name))
            continue;
        strbuf_adds(inner, ", max(CASE WHEN name = ");
        logs_put_quoted(inner, name, '\'');
        strbuf_addf(inner, " THEN last END) AS v%zu", n);
        strbuf_addf(outer, ", v.v%zu AS ", n);
        char title[TRAINING_LOGS_NAME + 16], behind[16] = "";
        if (logs_is_second(names, n, name))
            snprintf(behind, sizeof behind, "_%zu", n + 1);
        snprintf(names[n], sizeof names[n], "%s", name);
        snprintf(title, sizeof title, "%s%s", names[n], behind);
        logs_put_quoted(outer, title, '"');
        n++;
    }
    sql_end(r);
}

/* True if the text contains the name. If that is in a string, the view is made needlessly. */
static bool logs_is_asked_for(const char *text) {
    for (; *text; text++)
        if (strncasecmp(text, TRAINING_LOGS, strlen(TRAINING_LOGS)) == 0)
            return true;
    return false;
}

void training_logs_make(struct sql *s, const char *text) {
    struct strbuf inner, outer, all;
    if (!logs_is_asked_for(text))
        return;
    strbuf_init(&inner, TRAINING_LOGS_BYTES);
    strbuf_init(&outer, TRAINING_LOGS_BYTES);
    strbuf_init(&all, 2 * TRAINING_LOGS_BYTES);
    logs_put_columns(s, &inner, &outer);
    /* A watched "loss" fills in for steps without a loss of their own. */
    strbuf_adds(&all, "CREATE TEMP VIEW " TRAINING_LOGS
                      " AS SELECT s.rank, s.host, s.pid, s.timestamp, s.step, s.epoch, "
                      "coalesce(s.loss, v.probing_loss) AS loss");
    strbuf_adds(&all, strbuf_str(&outer));
    /* The other values of a row with a max() are those of that maximum: the last of the step. */
    strbuf_adds(&all, " FROM python.steps AS s LEFT JOIN (SELECT host, pid, step, "
                      "max(CASE WHEN name = 'loss' THEN number END) AS probing_loss");
    strbuf_adds(&all, strbuf_str(&inner));
    strbuf_adds(&all, " FROM (SELECT host, pid, step, name, value AS number, coalesce(value, text) AS last, "
                      "max(timestamp) FROM python.variables WHERE step IS NOT NULL GROUP BY host, pid, step, "
                      "name) GROUP BY host, pid, step) AS v "
                      "ON v.step = s.step AND v.pid = s.pid AND v.host IS s.host");
    if (!inner.failed && !outer.failed && !all.failed &&
        sql_execute(s, "DROP VIEW IF EXISTS temp." TRAINING_LOGS) == 0)
        sql_execute(s, strbuf_str(&all));
    strbuf_fini(&inner);
    strbuf_fini(&outer);
    strbuf_fini(&all);
}
