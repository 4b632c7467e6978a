/* SPDX-License-Identifier: Apache-2.0 */
/* verb_report: one document about a target, for somebody else (client/export/report.h). */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "client/export/report.h"
#include "client/output.h"

struct report_options {
    struct cli_options common; /* first */
    const char *format, *output;
    double duration_s, rate_hz;
    bool no_inject, block;
};

#define AT(field) offsetof(struct report_options, field)

static const char *report_choose_format(int i) { return report_formats[i].name; }

static const struct option_def report_options[] = {
    {"format", 0, OPTION_STRING, AT(format), .arg = "FORMAT",
     .help = "html (one page), md (short, for an issue) or json", .choice = report_choose_format},
    {"output", 'o', OPTION_STRING, AT(output), .arg = "FILE",
     .help = "write to FILE; - is standard output (default: probing-report-PID.html; other formats -)"},
    {"duration", 'd', OPTION_SECONDS, AT(duration_s), .arg = "TIME", .help = "sample for TIME (5s)",
     .min = 0.001, .max = 86400},
    {"seconds", 0, OPTION_SECONDS, AT(duration_s), .arg = "TIME", .help = "like --duration", .min = 0.001,
     .max = 86400},
    {"rate", 0, OPTION_RATE, AT(rate_hz), .arg = "HZ", .help = "samples per second of each thread (100)",
     .min = WIRE_MIN_HZ, .max = WIRE_MAX_SAMPLE_HZ, .unit = "Hz"},
    {"no-inject", 0, OPTION_FLAG, AT(no_inject),
     .help = "do not load the agent: read the process from outside"},
    {"block", 0, OPTION_FLAG, AT(block),
     .help = "like --no-inject, but stop running threads to read exact stacks"},
    {.name = NULL},
};

static int report_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e) {
    const struct report_options *mine = (const struct report_options *)(const void *)o;
    if (o->json && mine->format && strcmp(mine->format, "json") != 0)
        return err_set(e, ERR_USAGE, "--json and the format %s exclude each other", mine->format);
    const struct export_format *f = report_find(o->json        ? "json"
                                                : mine->format ? mine->format
                                                               : report_formats[0].name,
                                                e);
    if (!f)
        return -1;
    char file[64];
    snprintf(file, sizeof file, "probing-report-%d.html", (int)addr->pid);
    if (addr->pid <= 0)
        snprintf(file, sizeof file, "probing-report.html");
    struct export_request request = {
        .target = o->targets.items[0],
        .address = addr,
        .duration_s = mine->duration_s,
        .rate_hz = mine->rate_hz,
        .output = mine->output              ? mine->output
                  : f == &report_formats[0] ? file
                                            : NULL,
        .how = {.no_inject = mine->no_inject, .block = mine->block, .readonly = o->readonly},
    };
    (void)out; /* it is written to its own file, as a whole */
    return cli_export(f, &request, e);
}

const struct cli_verb verb_report = {
    .name = "report",
    .group = "Look",
    .help = "a page to share: verdict, steps, flame graph, stacks, memory",
    .example = "probing 4242 report --duration 2s --output report.html",
    .needs_target = true,
    .options = report_options,
    .options_size = sizeof(struct report_options),
    .exec = report_exec,
};
