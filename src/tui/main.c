/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main: `probing-top`. Reads the command line, attaches, and hands over to the screens or to an export.
 *
 * Whatever can go wrong with what was typed goes wrong here, before the terminal is touched: one line on stderr and the
 * exit status of DESIGN: 0 done, 1 failed, 2 usage, 3 cannot attach, 4 target lost.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <locale.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/config.h"
#include "base/option.h"
#include "base/text.h"
#include "client/export.h"
#include "client/output.h"
#include "tui/action.h"
#include "tui/attach.h"
#include "tui/runner.h"
#include "tui/screen_text.h"
#include "tui/theme.h"
#include "version.h"

#define MAIN_DEFAULT_DELAY_S 0.25
#define MAIN_MAX_PATH 4096

struct main_options {
    const char *delay, *theme, *color, *filter, *export, *output, *unit, *sql, *budget;
    bool ascii, no_color, no_mouse, list_keys, once, threads, process, by_function, gentle, locals, native,
        version, help;
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
    {"theme", 0, OPTION_STRING, AT(theme), "NAME|FILE", "colours: default, light, mono, or a theme file", 0,
     0},
    {"color", 0, OPTION_STRING, AT(color), "WHEN", "auto, always, never, 16 or 256", 0, 0},
    {"no-color", 'C', OPTION_FLAG, AT(no_color), NULL, "no colours (as NO_COLOR in the environment)", 0, 0},
    {"ascii", 0, OPTION_FLAG, AT(ascii), NULL, "draw with ASCII characters only", 0, 0},
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

/* "5" is tenths of a second, as in top and htop; with a unit it is what it says. */
static int main_parse_delay(const char *text, double *out, struct err *e) {
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    double unit = !*end ? 0.1 : strcmp(end, "ms") == 0 ? 0.001 : strcmp(end, "s") == 0 ? 1 : 0;
    if (end == text || errno || unit == 0 || !(v * unit >= APP_MIN_DELAY_S && v * unit <= APP_MAX_DELAY_S))
        return err_set(e, ERR_USAGE,
                       "--delay takes tenths of a second, or a time such as 250ms or 2s, from 50ms to 60s, "
                       "not '%s'",
                       text);
    *out = v * unit;
    return 0;
}

/* The wish of --budget, 0 when there is none. */
static int main_parse_budget(const char *text, double *out, struct err *e) {
    struct config wish;
    *out = 0;
    config_init(&wish);
    if (!text)
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

/* Where themes lie: the user's, the installed, and those beside this program. */
struct main_themes {
    char user[MAIN_MAX_PATH], beside[MAIN_MAX_PATH], above[MAIN_MAX_PATH];
    struct theme_path path;
};

static void main_find_themes(struct main_themes *t) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char exe[PATH_MAX];
    size_t n = 0;
    memset(t, 0, sizeof *t);
    if (config && *config)
        (void)snprintf(t->user, sizeof t->user, "%s/probing-top/themes", config);
    else if (home && *home)
        (void)snprintf(t->user, sizeof t->user, "%s/.config/probing-top/themes", home);
    if (*t->user)
        t->path.dirs[n++] = t->user;
    ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (len > 0) {
        exe[len] = '\0';
        const char *dir = dirname(exe);
        (void)snprintf(t->beside, sizeof t->beside, "%.*s/themes", MAIN_MAX_PATH - 16, dir);
        (void)snprintf(t->above, sizeof t->above, "%.*s/../themes", MAIN_MAX_PATH - 16, dir);
        t->path.dirs[n++] = t->beside;
        t->path.dirs[n++] = t->above;
    }
    t->path.dirs[n] = PROBING_DATADIR "/themes";
}

/* The theme, and what was wrong with it: printed now, and counted for the first message. */
static int main_load_theme(const struct main_options *o, struct theme *theme, char *greeting, size_t cap,
                           struct err *e) {
    struct main_themes themes;
    struct strbuf warnings;
    main_find_themes(&themes);
    strbuf_init(&warnings, 65536);
    int rc = theme_load(theme, o->theme ? o->theme : "default", &themes.path, &warnings, e);
    if (warnings.len) {
        int lines = 0;
        for (const char *p = strbuf_str(&warnings); *p; p++)
            lines += *p == '\n';
        (void)fprintf(stderr, "%s", strbuf_str(&warnings));
        (void)snprintf(greeting, cap, "theme: %d warning%s, first: %.*s", lines, lines == 1 ? "" : "s",
                       (int)strcspn(strbuf_str(&warnings), "\n"), strbuf_str(&warnings));
    }
    strbuf_fini(&warnings);
    return rc;
}

static int main_screens(const struct main_options *o, const char *target, struct err *e) {
    struct theme theme;
    struct session_address addr;
    char greeting[200] = "";
    struct runner_config config = {
        .app = {.delay_s = MAIN_DEFAULT_DELAY_S, .filter = o->filter, .pick = !target, .mouse = !o->no_mouse},
        .term = {.in_fd = STDIN_FILENO, .out_fd = STDOUT_FILENO, .theme = &theme, .mouse = !o->no_mouse},
    };
    config.sampling = o->gentle ? MODEL_SAMPLING_GENTLE : MODEL_SAMPLING_EXACT;
    config.app.ascii = o->ascii || !term_is_utf8();
    config.term.color = o->no_color ? "never" : o->color;
    config.term.no_color = getenv("NO_COLOR");
    if ((o->delay && main_parse_delay(o->delay, &config.app.delay_s, e) != 0) ||
        main_parse_budget(o->budget, &config.budget_pct, e) != 0)
        return -1;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(e, ERR_USAGE, "this is no terminal: use --export txt --once%s",
                       target ? "" : " with a TARGET");
    if (main_load_theme(o, &theme, greeting, sizeof greeting, e) != 0)
        return -1;
    config.how = (struct target_options){.no_inject = o->no_inject, .block = o->block};
    config.greeting = *greeting ? greeting : NULL;
    if (target) {
        struct attach attach;
        if (attach_start(&attach, target, &config.how, e) != 0 || attach_finish(&attach, &addr, e) != 0)
            return -1;
        config.address = &addr;
    }
    return runner_run(&config, e);
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
    else if (o.list_keys)
        action_list_keys(&out);
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
