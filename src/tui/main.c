/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main: `probing-top`. Reads the command line, attaches, and hands over to the screens or to an export.
 *
 * Whatever can go wrong with what was typed goes wrong here, before the terminal is touched: one line on stderr and the
 * exit status of DESIGN: 0 done, 1 failed, 2 usage, 3 cannot attach, 4 target lost.
 */
#include <locale.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/option.h"
#include "base/text.h"
#include "client/export.h"
#include "client/output.h"
#include "tui/action.h"
#include "tui/attach.h"
#include "tui/runner.h"
#include "tui/screen_text.h"
#include "tui/startup.h"
#include "tui/theme.h"
#include "version.h"

struct main_options {
    const char *delay, *theme, *color, *filter, *export, *output, *unit, *sql, *budget;
    bool ascii, no_color, no_mouse, list_keys, print_config, once, threads, process, by_function, gentle,
        locals, native, version, help;
    double duration_s;
    bool no_inject, block;
};

#define AT(field) offsetof(struct main_options, field)

static const struct option_def main_table[] = {
    {"no-inject", 0, OPTION_FLAG, AT(no_inject), NULL, "put no agent into the target: read it from outside",
     0, 0},
    {"block", 0, OPTION_FLAG, AT(block), NULL,
     "the same, stopping running threads while they are read: exact stacks", 0, 0},
    {"delay", 'd', OPTION_STRING, AT(delay), "DELAY",
     "time between two snapshots: 5 (tenths of a second), 250ms, 2s", 0, 0},
    {"filter", 'F', OPTION_STRING, AT(filter), "TEXT",
     "show only rows that match; !TEXT hides them, A|B either", 0, 0},
    {"theme", 0, OPTION_STRING, AT(theme), "NAME|FILE", "colours: one of those below, or a theme file", 0, 0},
    {"color", 0, OPTION_STRING, AT(color), "WHEN", "auto, always, never, 16 or 256", 0, 0},
    {"no-color", 'C', OPTION_FLAG, AT(no_color), NULL, "no colours (as NO_COLOR in the environment)", 0, 0},
    {"ascii", 0, OPTION_FLAG, AT(ascii), NULL, "draw with ASCII characters only", 0, 0},
    {"no-unicode", 0, OPTION_FLAG, AT(ascii), NULL, "the same", 0, 0},
    {"no-mouse", 'M', OPTION_FLAG, AT(no_mouse), NULL, "leave the mouse to the terminal", 0, 0},
    {"export", 0, OPTION_STRING, AT(export), "FORMAT", "write this instead of opening screens", 0, 0},
    {"output", 'o', OPTION_STRING, AT(output), "FILE", "with --export: write there; - is standard output", 0,
     0},
    {"sql", 0, OPTION_STRING, AT(sql), "QUERY", "with --export json, ndjson or csv: the rows of this query",
     0, 0},
    {"once", 0, OPTION_FLAG, AT(once), NULL, "with --export: one look", 0, 0},
    {"duration", 0, OPTION_SECONDS, AT(duration_s), "TIME", "with --export: look for so long", 0.001, 86400},
    {"threads", 0, OPTION_FLAG, AT(threads), NULL, "with --export: a frame for the thread", 0, 0},
    {"process", 0, OPTION_FLAG, AT(process), NULL, "with --export: a frame for the process", 0, 0},
    {"by-function", 0, OPTION_FLAG, AT(by_function), NULL, "with --export: functions, not lines", 0, 0},
    {"locals", 0, OPTION_FLAG, AT(locals), NULL, "with --export: variables of every frame", 0, 0},
    {"native", 'n', OPTION_FLAG, AT(native), NULL, "with --export: C and C++ frames too, as they were called",
     0, 0},
    {"unit", 0, OPTION_STRING, AT(unit), "UNIT", "with --export: samples, or us", 0, 0},
    {"gentle", 0, OPTION_FLAG, AT(gentle), NULL,
     "send no signals: stacks of threads that run may be torn, and are marked", 0, 0},
    {"budget", 0, OPTION_STRING, AT(budget), "PCT",
     "what looking may cost the machine, in percent of a core (an agent: 1)", 0, 0},
    {"list-keys", 0, OPTION_FLAG, AT(list_keys), NULL, "print every key and what it does", 0, 0},
    {"print-config", 0, OPTION_FLAG, AT(print_config), NULL,
     "print all settings and keys as a settings file, and where each is from", 0, 0},
    {"version", 'V', OPTION_FLAG, AT(version), NULL, "print the version", 0, 0},
    {"help", 'h', OPTION_FLAG, AT(help), NULL, "print this", 0, 0},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static void main_put_help(struct strbuf *out) {
    (void)strbuf_adds(
        out, "usage: probing-top [OPTION...] [TARGET]\n\n"
             "Shows what every thread of a running Python process is doing. The job runs on, undisturbed.\n"
             "TARGET is a pid, the name of a process, or unix:PATH; without it there is a list to choose "
             "from.\n\n");
    option_format_help(main_table, out);
    (void)strbuf_adds(out, "\nFORMAT is\n");
    for (const struct export_format *f = export_formats; f->name; f++) {
        (void)strbuf_addf(out, "  %-10s %s\n  %-10s takes ", f->name, f->help, "");
        export_put_options(f, out);
        (void)strbuf_addc(out, '\n');
    }
    (void)strbuf_adds(out,
                      "\nIn the screens ? shows the keys and q quits.\n"
                      "Exit status: 0 done, 1 failed, 2 usage, 3 cannot attach, 4 the target is gone.\n");
}

/* The wish of --budget, 0 when there is none. */
static int main_parse_budget(const char *text, double *out, struct err *e) {
    struct config wish;
    *out = 0;
    config_init(&wish);
    if (!text || !*text)
        return 0;
    if (config_set(&wish, CONFIG_BUDGET, "--budget", text, e) != 0)
        return -1;
    *out = wish.values[CONFIG_BUDGET];
    return 0;
}

/* Everything about the export's options that is wrong without --export. */
static int main_check(const struct main_options *o, struct err *e) {
    enum theme_depth depth;
    const char *stray = o->output            ? "--output"
                        : o->sql             ? "--sql"
                        : o->once            ? "--once"
                        : o->duration_s != 0 ? "--duration"
                        : o->unit            ? "--unit"
                        : o->threads         ? "--threads"
                        : o->process         ? "--process"
                        : o->by_function     ? "--by-function"
                        : o->locals          ? "--locals"
                        : o->native          ? "--native"
                                             : NULL;
    if (stray && !o->export)
        return err_set(e, ERR_USAGE, "%s is for --export: add --export %s", stray,
                       o->unit || o->threads ? "folded" : "json");
    const struct export_format *format = o->export ? export_find(o->export, e) : NULL;
    if (o->export &&
        (!format || (o->filter && export_check_option(format, EXPORT_TAKES_SCREEN, "--filter", e) != 0)))
        return -1;
    return theme_choose_depth(o->color, NULL, 256, &depth, e);
}

/* Columns of plain text: $COLUMNS, the terminal's, or 80. */
static int main_text_cols(void) {
    struct winsize w;
    const char *env = getenv("COLUMNS");
    long cols = env ? strtol(env, NULL, 10) : 0;
    if (cols <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0)
        cols = w.ws_col;
    return cols <= 0 ? 80 : cols > 1000 ? 1000 : (int)cols;
}

static int main_export(const struct main_options *o, const char *target, struct err *e) {
    struct screen_text_config text = {
        .cols = main_text_cols(), .ascii = o->ascii || !term_is_utf8(), .filter = o->filter};
    struct export_renderer screen = {.render = screen_text_render, .arg = &text};
    struct export_request request = {
        .target = target,
        .format = o->export,
        .once = o->once,
        .sql = o->sql,
        .duration_s = o->duration_s,
        .output = o->output,
        .threads = o->threads,
        .process = o->process,
        .by_function = o->by_function,
        .gentle = o->gentle,
        .locals = o->locals,
        .native = o->native,
        .screen = &screen,
        .how = {.no_inject = o->no_inject, .block = o->block},
    };
    if ((o->unit && export_parse_unit(o->unit, &request.unit, e) != 0) ||
        main_parse_budget(o->budget, &request.budget_pct, e) != 0)
        return -1;
    struct strbuf note;
    strbuf_init(&note, 4096);
    request.note = &note;
    int rc = export_run(&request, e);
    if (rc == 0 && note.len)
        (void)fprintf(stderr, "probing-top: %s\n", strbuf_str(&note));
    strbuf_fini(&note);
    return rc;
}

/* The settings file and the command line over it; what is wrong in the file is said at once. */
static int main_begin(const struct main_options *o, struct startup *s, struct err *e) {
    struct startup_options options = {
        .delay = o->delay,
        .theme = o->theme,
        .color = o->color,
        .filter = o->filter,
        .budget = o->budget,
        .ascii = o->ascii,
        .no_color = o->no_color,
        .no_mouse = o->no_mouse,
        .gentle = o->gentle,
    };
    return startup_read(s, &options, e);
}

/* Text that depends on the settings file. */
static int main_put_settings(const struct main_options *o, struct strbuf *out, struct err *e) {
    struct startup begun;
    int rc = main_begin(o, &begun, e);
    if (rc == 0 && o->list_keys)
        action_list_keys(out);
    else if (rc == 0)
        config_file_print(&begun.settings, begun.config_path, out);
    (void)fprintf(stderr, "%s", strbuf_str(&begun.warnings));
    startup_fini(&begun);
    return rc;
}

static int main_open(const struct main_options *o, struct startup *begun, const char *target, struct err *e) {
    const struct settings *set = &begun->settings;
    struct session_address addr;
    char greeting[200];
    struct runner_config config = {
        .app = {.pick = !target,
                .is_utf8 = term_is_utf8(),
                .settings = set,
                .config_path = begun->config_path},
        .term = {.in_fd = STDIN_FILENO, .out_fd = STDOUT_FILENO, .theme = &begun->theme},
    };
    config.sampling = settings_is_on(set, SETTINGS_GENTLE) ? MODEL_SAMPLING_GENTLE : MODEL_SAMPLING_EXACT;
    config.term.mouse = settings_is_on(set, SETTINGS_MOUSE);
    config.term.color = set->values[SETTINGS_COLOR];
    config.term.no_color = getenv("NO_COLOR");
    if (main_parse_budget(set->values[SETTINGS_BUDGET], &config.budget_pct, e) != 0)
        return -1;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(e, ERR_USAGE, "this is no terminal: use --export txt --once%s",
                       target ? "" : " with a TARGET");
    int rc = startup_load_theme(begun, e);
    (void)fprintf(stderr, "%s", strbuf_str(&begun->warnings));
    if (rc != 0)
        return -1;
    config.how = (struct target_options){.no_inject = o->no_inject, .block = o->block};
    startup_greeting(begun, greeting, sizeof greeting);
    config.greeting = *greeting ? greeting : NULL;
    config.app.began_s = (double)clock_mono_ns() / 1e9;
    if (target) {
        struct attach attach;
        if (attach_start(&attach, target, &config.how, e) != 0 || attach_finish(&attach, &addr, e) != 0)
            return -1;
        config.address = &addr;
    }
    return runner_run(&config, e);
}

static int main_screens(const struct main_options *o, const char *target, struct err *e) {
    struct startup begun;
    int rc = main_begin(o, &begun, e);
    if (rc == 0)
        rc = main_open(o, &begun, target, e);
    startup_fini(&begun);
    return rc;
}

/* Exit status; or -1 with the error. */
static int main_run(int argc, char **argv, struct err *e) {
    struct main_options o;
    const char **operands = calloc((size_t)argc + 1, sizeof *operands);
    memset(&o, 0, sizeof o);
    if (!operands)
        return err_set(e, ERR_FAILED, "out of memory");
    int n = option_parse(main_table, &o, argc, argv, operands, false, e);
    const char *target = n > 0 ? operands[0] : NULL, *extra = n > 1 ? operands[1] : NULL;
    free(operands);
    if (n < 0)
        return -1;
    struct strbuf out;
    strbuf_init(&out, 1 << 20);
    int rc = 0;
    if (o.help)
        main_put_help(&out);
    else if (o.version)
        (void)strbuf_addf(&out, "probing-top %s\n", PROBING_VERSION);
    else if (o.list_keys || o.print_config)
        rc = main_put_settings(&o, &out, e);
    else if (extra)
        rc = err_set(e, ERR_USAGE, "one TARGET at a time: '%s' is too many", extra);
    else if ((rc = main_check(&o, e)) == 0)
        rc = o.export ? main_export(&o, target, e) : main_screens(&o, target, e);
    if (rc == 0 && out.len)
        rc = output_write(NULL, &out, e);
    strbuf_fini(&out);
    return rc;
}

int main(int argc, char **argv) {
    struct err e = {0};
    (void)setlocale(LC_ALL, "");
    int rc = main_run(argc, argv, &e);
    if (rc >= 0)
        return rc;
    char text[2 * sizeof e.text];
    (void)text_sanitize(text, sizeof text, err_text(&e));
    (void)fprintf(stderr, "probing-top: %s\n", text);
    return err_exit_status(&e);
}
