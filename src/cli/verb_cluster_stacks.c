/* SPDX-License-Identifier: Apache-2.0 */
/* verb_cluster_stacks: the stacks of all ranks of a job as one tree: who stands where. */
#include "cli/cli.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/fleet/fleet_open.h"
#include "client/export/export_formats.h"
#include "client/fleet/fleet_tables.h"
#include "client/fleet/fleet_text.h"
#include "client/output.h"
#include "client/progress.h"

#define STACKS_DURATION_S 1.0
#define STACKS_JOB 512
#define STACKS_EXTRA_S 30.0 /* for the ranks to be found, beside the duration */

struct stacks_options {
    struct cli_options common; /* first */
    const char *format;
    double duration_s;
};

static const char *const stacks_formats[] = {"text", "json", "ndjson", "csv", "folded", "svg", NULL};

static const char *stacks_choose_format(int i) { return stacks_formats[i]; }

static const struct option_def stacks_options[] = {
    {"format", 0, OPTION_STRING, offsetof(struct stacks_options, format), .arg = "FORMAT",
     .help = "text, json, ndjson, csv, folded or svg", .choice = stacks_choose_format},
    {"duration", 'd', OPTION_SECONDS, offsetof(struct stacks_options, duration_s), .arg = "TIME",
     .help = "read the ranks once a second for TIME (1s)", .min = 0, .max = 86400},
    {.name = NULL},
};

static const struct stacks_options stacks_default = {.duration_s = STACKS_DURATION_S};

/* Rows for programs. */
static int stacks_put_rows(const struct fleet *f, const char *format, double elapsed_s, struct strbuf *out,
                           struct err *e) {
    const struct result_format *form = result_find_format(format, e);
    struct result *rows = form ? fleet_table_rows(f, FLEET_TABLE_STACKS) : NULL;
    if (!rows)
        return form ? err_set(e, ERR_FAILED, "out of memory for the rows") : -1;
    rows->elapsed_s = elapsed_s;
    result_write(rows, form, isatty(STDOUT_FILENO), out);
    result_unref(rows);
    return 0;
}

/* A flame graph of the samples. */
static int stacks_put_flame(const struct fleet *f, const struct stack_counts *counts, const char *format,
                            double elapsed_s, struct strbuf *out, struct err *e) {
    const struct export_format *form = export_find(format, e);
    const struct export_request request = {.format = format, .unit = EXPORT_SAMPLES};
    const struct model_target target = {.host = f->n_nodes ? f->nodes[0].host : NULL,
                                        .cmdline = f->job,
                                        .rank = MODEL_UNKNOWN,
                                        .started_at = NAN,
                                        .mode = MODEL_MODE_READONLY};
    const struct export_data data = {.request = &request,
                                     .target = &target,
                                     .counts = counts,
                                     .choice = "the main thread of each rank",
                                     .elapsed_s = elapsed_s,
                                     .until_s = f->taken_at};
    return form ? form->render(&data, out, e) : -1;
}

static int stacks_put(const struct fleet *f, const struct stack_counts *counts, const char *format,
                      double elapsed_s, struct strbuf *out, struct err *e) {
    if (strcmp(format, "text") == 0)
        fleet_put_tree(f, output_columns(), out);
    else if (strcmp(format, "folded") == 0 || strcmp(format, "svg") == 0)
        return stacks_put_flame(f, counts, format, elapsed_s, out, e);
    else
        return stacks_put_rows(f, format, elapsed_s, out, e);
    return 0;
}

/* Read the ranks for a while, and count what they do. 0, or -1 with the error. */
static int stacks_read(struct fleet_source *l, double duration_s, struct stack_counts *counts,
                       struct err *e) {
    unsigned rounds = 1 + (unsigned)duration_s;
    double limit_s = duration_s + STACKS_EXTRA_S;
    uint64_t began = clock_mono_ns();
    for (unsigned i = 0; i < rounds; i++) {
        double left_s = limit_s - (double)(clock_mono_ns() - began) / 1e9;
        uint64_t before = fleet_source_get(l)->round;
        if (fleet_source_fill(l, 1, left_s > 0 ? left_s : 0, NULL, NULL, e) != 0)
            return -1;
        if (fleet_source_get(l)->round == before)
            break;
        if (fleet_count_stacks(fleet_source_get(l), counts) != 0)
            return err_set(e, ERR_FAILED, "out of memory for the stacks");
    }
    return 0;
}

static int stacks_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e) {
    const struct stacks_options *mine = (const struct stacks_options *)(const void *)o;
    const char *format = mine->format ? mine->format : o->json ? "json" : "text";
    uint64_t began = clock_mono_ns();
    (void)addr;
    if (cli_check_format(o, mine->format, e) != 0)
        return -1;
    bool known = false;
    for (size_t i = 0; stacks_formats[i]; i++)
        known |= strcmp(stacks_formats[i], format) == 0;
    if (!known)
        return err_set(e, ERR_USAGE,
                       "cluster stacks has no format '%s': text, json, ndjson, csv, folded or svg", format);
    if (strcmp(format, "svg") == 0 && isatty(STDOUT_FILENO))
        return err_set(e, ERR_USAGE, "an SVG picture is of no use on a terminal: give --output FILE");
    if (o->targets.n && fleet_open_find_ranks(o->targets.items[0]))
        return err_set(e, ERR_USAGE, "cluster stacks merges all ranks of a job: leave out '%s'",
                       fleet_open_find_ranks(o->targets.items[0]));
    struct fleet_reach reach;
    char job[STACKS_JOB];
    struct fleet_source *l =
        cli_read_reach(o, &reach, job, sizeof job, e) == 0 ? fleet_open(job, &reach, e) : NULL;
    struct stack_counts *counts = stack_counts_new();
    int rc = l ? 0 : -1;
    if (rc == 0 && !counts)
        rc = err_set(e, ERR_FAILED, "out of memory for the stacks");
    progress_begin("reading the ranks", mine->duration_s, NULL);
    if (rc == 0)
        rc = stacks_read(l, mine->duration_s, counts, e);
    progress_end();
    if (rc == 0)
        rc = stacks_put(fleet_source_get(l), counts, format, (double)(clock_mono_ns() - began) / 1e9, out, e);
    if (rc == 0)
        cli_note_fleet(l);
    stack_counts_free(counts);
    fleet_source_close(l);
    fleet_reach_fini(&reach);
    return rc;
}

const struct cli_verb verb_cluster_stacks = {
    .name = "cluster stacks",
    .noun = "cluster",
    .group = "Cluster",
    .help = "the stacks of all ranks of a job, merged: which ranks stand where",
    .example = "probing cluster stacks job:4242",
    .takes_job = true,
    .takes_hosts = true,
    .options = stacks_options,
    .options_size = sizeof(struct stacks_options),
    .options_default = &stacks_default,
    .exec = stacks_exec,
};
