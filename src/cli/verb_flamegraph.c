/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_flamegraph: sampled stacks of a target as a flame graph or in another format made of
 * samples; and as pprof.
 *
 * The rows of export_formats are those of `probing-top --export`; these verbs offer them under
 * the names that people look for.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "client/export/export.h"
#include "client/output.h"

#define FLAMEGRAPH_S 5.0 /* default duration */

struct flamegraph_options {
    struct cli_options common; /* first */
    const char *format, *output, *unit;
    double duration_s, rate_hz;
    bool threads, process, by_function, native, gentle, no_inject, block;
};

#define AT(field) offsetof(struct flamegraph_options, field)

/* Formats that are made of samples. */
static const char *flamegraph_choose_format(int i) {
    const struct export_format *f = export_formats;
    for (; f->name; f++)
        if (f->wants_samples && i-- == 0)
            break;
    return f->name;
}

static const struct option_def flamegraph_options[] = {
    {"format", 0, OPTION_STRING, AT(format), .arg = "FORMAT",
     .help = "svg (default), folded, json, speedscope, perfetto or pprof",
     .choice = flamegraph_choose_format},
    {"threads", 0, OPTION_FLAG, AT(threads), .help = "add a frame for the thread"},
    {"process", 0, OPTION_FLAG, AT(process), .help = "add a frame for the process"},
    {"unit", 0, OPTION_STRING, AT(unit), .arg = "UNIT", .help = "samples or us",
     .choice = export_choose_unit},
    {.name = NULL},
};

/* The options that pprof has, too. */
static const struct option_def flamegraph_more[] = {
    {"output", 'o', OPTION_STRING, AT(output), .arg = "FILE",
     .help = "write to FILE (- is standard output; default on a terminal: flame-PID.svg)"},
    {"duration", 'd', OPTION_SECONDS, AT(duration_s), .arg = "TIME", .help = "sample for TIME (5s)",
     .min = 0.001, .max = 86400},
    {"rate", 0, OPTION_RATE, AT(rate_hz), .arg = "HZ", .help = "samples per second of each thread (100)",
     .min = WIRE_MIN_HZ, .max = WIRE_MAX_SAMPLE_HZ, .unit = "Hz"},
    {"by-function", 0, OPTION_FLAG, AT(by_function), .help = "merge the lines of a function"},
    {"native", 'n', OPTION_FLAG, AT(native), .help = "show C and C++ frames too"},
    {"gentle", 0, OPTION_FLAG, AT(gentle),
     .help = "send no signals; torn stacks of running threads are left out"},
    {"no-inject", 0, OPTION_FLAG, AT(no_inject),
     .help = "do not load the agent: read the process from outside"},
    {"block", 0, OPTION_FLAG, AT(block),
     .help = "like --no-inject, but stop running threads to read exact stacks"},
    {.name = NULL},
};

/* The format, if it is made of samples. */
static const struct export_format *flamegraph_format(const struct flamegraph_options *o, struct err *e) {
    if (o->common.json && o->format && strcmp(o->format, "json") != 0) {
        err_set(e, ERR_USAGE, "--json and the format %s exclude each other", o->format);
        return NULL;
    }
    const struct export_format *f = export_find(o->common.json ? "json" : o->format ? o->format : "svg", e);
    if (!f || f->wants_samples)
        return f;
    struct strbuf names;
    strbuf_init(&names, 256);
    for (const struct export_format *g = export_formats; g->name; g++)
        if (g->wants_samples)
            strbuf_addf(&names, "%s%s", names.len ? "|" : "", g->name);
    err_set(e, ERR_USAGE, "%s is not a profile format: give one of %s", f->name, strbuf_str(&names));
    strbuf_fini(&names);
    return NULL;
}

static int flamegraph_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                           struct err *e) {
    const struct flamegraph_options *mine = (const struct flamegraph_options *)(const void *)o;
    const struct export_format *f = flamegraph_format(mine, e);
    if (!f)
        return -1;
    struct export_request request = {
        .target = o->targets.items[0],
        .address = addr,
        .format = f->name,
        .duration_s = mine->duration_s != 0 ? mine->duration_s : FLAMEGRAPH_S,
        .rate_hz = mine->rate_hz,
        .output = mine->output,
        .threads = mine->threads,
        .process = mine->process,
        .by_function = mine->by_function,
        .native = mine->native,
        .gentle = mine->gentle,
        .how = {.no_inject = mine->no_inject, .block = mine->block, .readonly = o->readonly},
    };
    /* A page of SVG is of no use on a terminal. */
    char name[64];
    if (!mine->output && strcmp(f->name, "svg") == 0 && isatty(STDOUT_FILENO)) {
        if (addr->pid > 0)
            snprintf(name, sizeof name, "flame-%d.svg", (int)addr->pid);
        else
            snprintf(name, sizeof name, "flame.svg");
        request.output = name;
    }
    if (mine->unit && export_parse_unit(mine->unit, &request.unit, e) != 0)
        return -1;
    (void)out; /* an export is written to its own file, as a whole */
    return cli_export(f, &request, e);
}

static int pprof_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    struct flamegraph_options mine = *(const struct flamegraph_options *)(const void *)o;
    mine.format = "pprof";
    return flamegraph_exec(&mine.common, addr, out, e);
}

const struct cli_verb verb_flamegraph = {
    .name = "flamegraph",
    .aliases = "flame",
    .group = "Profile",
    .help = "sample for some seconds; write a flame graph (SVG)",
    .example = "probing 4242 flamegraph --duration 2s --output flame.svg",
    .needs_target = true,
    .options = flamegraph_options,
    .more = flamegraph_more,
    .options_size = sizeof(struct flamegraph_options),
    .exec = flamegraph_exec,
};

const struct cli_verb verb_pprof = {
    .name = "pprof",
    .group = "Profile",
    .help = "the same samples as a profile for pprof",
    .example = "probing 4242 pprof --duration 2s --output profile.pb.gz",
    .needs_target = true,
    .options = flamegraph_more,
    .options_size = sizeof(struct flamegraph_options),
    .exec = pprof_exec,
};
