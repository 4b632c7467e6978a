/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main: `probing-top`. Reads the command line, attaches, and hands over to the screens or to an
 * export.
 *
 * Mistakes in what was typed are found here, before the terminal is touched: one line on stderr and
 * the exit status: 0 success, 1 failed, 2 usage, 3 cannot attach, 4 target lost.
 */
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/option.h"
#include "base/text.h"
#include "client/about.h"
#include "client/complete.h"
#include "client/export/export.h"
#include "client/fleet/fleet_open.h"
#include "client/jobs/jobs_here.h"
#include "client/output.h"
#include "client/symbols/symbols.h"
#include "client/target/tcp.h"
#include "relay/relay.h"
#include "tui/core/action_keys.h"
#include "tui/core/screen.h"
#include "tui/host/attach_all.h"
#include "tui/info.h"
#include "tui/job_choice.h"
#include "tui/job_picture.h"
#include "tui/main_complete.h"
#include "tui/main_options.h"
#include "tui/host/host.h"
#include "tui/host/host_diff.h"
#include "tui/host/tour_job.h"
#include "tui/screen_picture.h"
#include "tui/screen_text.h"
#include "tui/startup.h"
#include "tui/theme/theme.h"
#include "commit.h"

static void main_put_help(struct strbuf *out) {
    strbuf_adds(out,
                "usage: probing-top [OPTION...] [TARGET...]\n\nShows what every thread of a running Python "
                "process is doing. The job keeps running, undisturbed.\nTARGET is a pid, the name of a "
                "process, HOST:PORT or unix:PATH of its agent; of several, or a name\nthat several have, one "
                "is shown at a time (p switches); without it there is a list to choose from.\n"
                "New here? probing-top --tour\n\n");
    option_format_help(main_table, out);
    strbuf_adds(out, "\nFORMAT is\n");
    for (const struct export_format *f = export_formats; f->name; f++) {
        strbuf_addf(out, "  %-10s %s\n  %-10s takes ", f->name, f->help, "");
        export_put_options(f, out);
        strbuf_addc(out, '\n');
    }
    strbuf_addf(out, "\nScreens of --export txt; ranks and stacks of json, too:\n  %s.\n",
                screen_picture_names());
    strbuf_adds(out, "\nTHEME, for --theme NAME, is one of\n");
    startup_put_themes(out);
    strbuf_adds(out, "\nIn the screens ? shows the keys and q quits.\n"
                     "Exit status: 0 done, 1 failed, 2 usage, 3 cannot attach, 4 the target is gone.\n");
}

/* The value of --budget; 0: none. */
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

/* Reject options of the export without --export. */
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
                        : o->rows            ? "--rows"
                        : o->cols            ? "--cols"
                                             : NULL;
    if (o->readonly && o->block)
        return err_set(e, ERR_USAGE,
                       "--readonly changes nothing, and --block stops threads: give one of them");
    if (stray && !o->export)
        return err_set(e, ERR_USAGE, "%s is for --export: add --export %s", stray,
                       o->unit || o->threads ? "folded" : "json");
    const struct export_format *format = o->export ? export_find(o->export, e) : NULL;
    const char *of_screen = o->screen   ? "--screen"
                            : o->rows   ? "--rows"
                            : o->cols   ? "--cols"
                            : o->filter ? "--filter"
                                        : NULL;
    bool of_job = format && job_picture_find(o->screen, NULL) && strcmp(format->name, "json") == 0;
    if (o->export && !of_job &&
        (!format || (of_screen && export_check_option(format, EXPORT_TAKES_SCREEN, of_screen, e) != 0)))
        return -1;
    if (o->rows && !o->screen)
        return err_set(e, ERR_USAGE, "--rows is for --screen: without it all threads are written");
    if (o->tour && o->export)
        return err_set(e, ERR_USAGE, "--tour is for the screens, not for --export");
    if (o->diff && o->export)
        return err_set(e, ERR_USAGE, "--diff is for the screens, not for --export");
    return theme_choose_depth(o->color, NULL, 256, &depth, e);
}

/* Rows or columns of text: as given, $LINES or $COLUMNS, the terminal's, or `usual`. */
static int main_text_size(long told, const char *variable, bool rows, int usual) {
    struct winsize w;
    const char *env = getenv(variable);
    long n = told ? told : env ? strtol(env, NULL, 10) : 0;
    if (n <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0)
        n = rows ? w.ws_row : w.ws_col;
    return n <= 0 ? usual : n > SCREEN_PICTURE_MAX ? SCREEN_PICTURE_MAX : (int)n;
}

/* A job that was named, which of its ranks, and where they are. */
struct main_job {
    struct fleet_reach reach;
    char target[512]; /* "": none */
    char filter[256]; /* of the Ranks screen; "": all */
    pid_t pid;        /* the only rank that was named; 0: all or several */
    bool is_closed;   /* there is no way to the hosts of its ranks */
    bool may_choose;  /* there are screens: a job of a database need not be named, */
    bool is_choice;   /* and one is to be chosen */
};

static bool main_is_job(const char *typed) { return jobs_is_target(typed) || fleet_open_is_database(typed); }

/* A job of a database. */
static int main_read_database(const char *typed, struct main_job *job, struct err *e) {
    job->is_closed = !job->reach.via.via;
    if (strlen(typed) >= sizeof job->target)
        return err_set(e, ERR_USAGE, "the address of the database is too long");
    int rc = job_choice_read(typed, job->may_choose, job->target, sizeof job->target, e);
    job->is_choice = rc == 1;
    return rc < 0 ? -1 : 0;
}

/* Read "job:NAME/RANKS". 0, or -1 with the error: there is none here. */
static int main_read_job(const char *typed, struct main_job *job, struct err *e) {
    pid_t *pids = NULL;
    if (fleet_open_is_database(typed))
        return main_read_database(typed, job, e);
    const char *ranks = strchr(typed, '/');
    ssize_t n = job->reach.hosts.n ? 0 : jobs_here_resolve(typed, &pids, e);
    if (n < 0)
        return -1;
    snprintf(job->target, sizeof job->target, "%.*s", (int)(ranks ? ranks - typed : INT_MAX), typed);
    if (ranks)
        snprintf(job->filter, sizeof job->filter, "rank:%s", ranks + 1);
    job->pid = ranks && n == 1 ? pids[0] : 0;
    free(pids);
    return 0;
}

static int main_run_export(const struct main_options *o, const char *target, double rate_hz,
                           const struct export_renderer *screen, struct err *e) {
    struct export_request request = {
        .target = target,
        .format = o->export,
        .once = o->once,
        .sql = o->sql,
        .duration_s = o->duration_s,
        .rate_hz = rate_hz,
        .output = o->output,
        .threads = o->threads,
        .process = o->process,
        .by_function = o->by_function,
        .gentle = o->gentle,
        .locals = o->locals,
        .native = o->native,
        .screen = screen,
        .how = {.no_inject = o->no_inject, .block = o->block, .readonly = o->readonly},
    };
    if ((o->unit && export_parse_unit(o->unit, &request.unit, e) != 0) ||
        main_parse_budget(o->budget, &request.budget_pct, e) != 0)
        return -1;
    struct strbuf note;
    strbuf_init(&note, 4096);
    request.note = &note;
    int rc = export_run(&request, e);
    if (rc == 0 && note.len)
        output_say("probing-top: %s\n", strbuf_str(&note));
    strbuf_fini(&note);
    return rc;
}

/* A screen of all ranks: of the job that is named, or that the process is a rank of. */
static int main_export_job(const struct main_options *o, const struct fleet_reach *hosts, const char *target,
                           struct err *e) {
    struct main_job job = {.target = ""};
    struct target_address addr;
    struct strbuf out;
    if (!target && hosts->hosts.n)
        target = JOBS_TARGET;
    job.reach = *hosts;
    if (!target)
        return err_set(e, ERR_USAGE, "no TARGET given: try probing-top job: --export txt --screen %s",
                       o->screen);
    if (o->filter && strcmp(o->export, "json") == 0 && job_picture_find(o->screen, NULL) == &screen_stacks)
        return err_set(e, ERR_USAGE, "--filter is not for the stacks as json: take --export txt");
    if (main_is_job(target)) {
        if (main_read_job(target, &job, e) != 0)
            return -1;
    } else {
        if (target_resolve(target, &addr, e) != 0)
            return -1;
        snprintf(job.target, sizeof job.target, JOBS_TARGET "%d", (int)addr.pid);
    }
    bool ascii = o->ascii || !term_is_utf8();
    const struct app_config config = {.ascii = ascii, .is_utf8 = !ascii};
    struct job_picture picture = {.target = job.target,
                                  .filter = o->filter     ? o->filter
                                            : *job.filter ? job.filter
                                                          : NULL,
                                  .screen = job_picture_find(o->screen, job.target),
                                  .rows = main_text_size(o->rows, "LINES", true, 40),
                                  .cols = main_text_size(o->cols, "COLUMNS", false, 80),
                                  .json = strcmp(o->export, "json") == 0,
                                  .reach = &job.reach};
    strbuf_init(&out, 0);
    signal(SIGPIPE, SIG_IGN); /* a relay that has ended is seen as EPIPE */
    int rc = job_picture_put(&picture, &config, &out, e);
    if (rc == 0)
        rc = output_write(o->output, &out, e);
    strbuf_fini(&out);
    return rc;
}

static int main_export(const struct main_options *o, const char *target, struct err *e) {
    double rate_hz = 0;
    char rank[16];
    pid_t pid = 0;
    if (job_picture_find(o->screen, target)) {
        struct fleet_reach reach;
        int failed = fleet_reach_init(&reach, &o->reach, relay_serve, e);
        if (failed == 0)
            failed = main_export_job(o, &reach, target, e);
        fleet_reach_fini(&reach);
        return failed;
    }
    if (target && jobs_is_target(target)) {
        if (jobs_here_resolve_one(target, &pid, e) != 0)
            return -1;
        snprintf(rank, sizeof rank, "%d", (int)pid);
        target = rank;
    }
    if (o->rate && option_read(&settings_table[SETTINGS_RATE], "--rate", o->rate, &rate_hz, e) != 0)
        return -1;
    int cols = main_text_size(o->cols, "COLUMNS", false, 80);
    struct screen_text_config text = {
        .cols = cols, .ascii = o->ascii || !term_is_utf8(), .filter = o->filter};
    struct export_renderer all = {.render = screen_text_render, .arg = &text};
    struct app_config config = {
        .ascii = text.ascii, .is_utf8 = !text.ascii, .filter = o->filter, .sample_hz = rate_hz};
    struct screen_picture picture = {0};
    int rc = o->screen ? screen_picture_init(&picture, o->screen, main_text_size(o->rows, "LINES", true, 40),
                                             cols, &config, e)
                       : 0;
    if (rc == 0)
        rc = main_run_export(o, target, rate_hz, o->screen ? &picture.renderer : &all, e);
    screen_picture_fini(&picture);
    return rc;
}

/* Text that depends on the settings file. */
static int main_put_settings(const struct main_options *o, struct strbuf *out, struct err *e) {
    struct startup begun;
    int rc = startup_read(&begun, o, e);
    if (rc == 0 && o->list_keys)
        action_list_keys(out);
    else if (rc == 0 && o->info)
        info_put(&begun, out);
    else if (rc == 0)
        config_file_print(&begun.settings, begun.config_path, out);
    output_say("%s", strbuf_str(&begun.warnings));
    startup_fini(&begun);
    return rc;
}

/* A target that is not there is the first thing to know. */
static int main_refuse_no_terminal(const struct attach_all *targets, const struct main_job *job,
                                   struct err *e) {
    struct target_address addr;
    if (targets->n == 1 && target_resolve(targets->texts[0], &addr, e) != 0)
        return -1;
    return err_set(e, ERR_USAGE, "not a terminal: add --export txt --once%s for a screen as text",
                   targets->n || job->target[0] ? "" : " and a TARGET");
}

/* The job that "job:NAME" means is watched; of "job:NAME/3" the rank is the target, too; "job:NAME/0-7"
 * shows these. 0, or -1 with the error. */
static int main_read_targets(const char *typed, struct main_job *job, struct attach_all *targets,
                             struct err *e) {
    char pid[24];
    const char *const rank[] = {pid};
    if (main_read_job(typed, job, e) != 0)
        return -1;
    snprintf(pid, sizeof pid, "%d", (int)job->pid);
    return job->pid ? attach_all_read(targets, rank, 1, e) : 0;
}

static int main_open(const struct main_options *o, struct startup *begun, struct attach_all *targets,
                     const struct main_job *job, struct err *e) {
    const struct settings *set = &begun->settings;
    struct target_address diff;
    bool watches = job->target[0] && targets->n == 0,
         chosen = set->origins[SETTINGS_SCREEN] == SETTINGS_BY_COMMAND_LINE;
    struct host_config config = {
        .reach = &job->reach,
        .app = {.pick = targets->n == 0 && !watches,
                .job = job->target[0] && !job->is_choice ? job->target : NULL,
                .job_server = job->is_choice ? job->target : NULL,
                .job_filter = watches ? job->filter : NULL,
                .job_is_closed = job->is_closed,
                .screen = watches && !chosen ? &screen_ranks : NULL,
                .is_utf8 = term_draws_unicode(getenv("TERM")),
                .tour = o->tour,
                .settings = set,
                .config_path = begun->config_path},
        .term = {.in_fd = STDIN_FILENO, .out_fd = STDOUT_FILENO, .theme = &begun->theme},
        .themes = &begun->theme_path,
    };
    config.sampling = settings_is_on(set, SETTINGS_GENTLE) ? MODEL_SAMPLING_GENTLE : MODEL_SAMPLING_EXACT;
    config.term.mouse = settings_is_on(set, SETTINGS_MOUSE);
    config.term.color = set->values[SETTINGS_COLOR];
    config.term.no_color = getenv("NO_COLOR");
    if (main_parse_budget(set->values[SETTINGS_BUDGET], &config.budget_pct, e) != 0)
        return -1;
    if (settings_is_on(set, SETTINGS_READONLY) && o->block)
        return err_set(e, ERR_USAGE, "--block stops threads, and %s says readonly = on: give one of them",
                       begun->config_path);
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return main_refuse_no_terminal(targets, job, e);
    int rc = startup_load_theme(begun, e);
    output_say("%s", strbuf_str(&begun->warnings));
    if (rc != 0)
        return -1;
    config.app.readonly = settings_is_on(set, SETTINGS_READONLY);
    config.how = (struct target_options){
        .no_inject = o->no_inject, .block = o->block, .readonly = config.app.readonly};
    config.warnings = strbuf_str(&begun->warnings);
    config.app.began_s = (double)clock_mono_ns() / 1e9;
    if (o->diff && host_diff_resolve(o->diff, &diff, e) != 0)
        return -1;
    config.app.diff = o->diff;
    if (attach_all_run(targets, &config.how, e) != 0)
        return -1;
    config.address = targets->n ? targets->addrs : NULL;
    config.names = targets->names;
    config.n_targets = targets->n;
    return host_run(&config, e);
}

/* One of several words is not a target: maybe it is a verb of `probing`, or a program to start. */
static int main_explain_words(const char *const *typed, int n, struct err *e) {
    struct err why = *e;
    if (n < 2 || why.code != ERR_ATTACH)
        return -1;
    if (strncmp(typed[0], "python", 6) == 0)
        err_set(e, ERR_ATTACH, "%s; to start a job with the agent in it: probing launch %s %s", why.text,
                typed[0], typed[1]);
    else if (typed[1][strspn(typed[1], "abcdefghijklmnopqrstuvwxyz")] == '\0')
        err_set(e, ERR_ATTACH, "%s; verbs belong to the other program: probing %s %s", why.text, typed[0],
                typed[1]);
    return -1;
}

static int main_screens(const struct main_options *o, const char *const *typed, int n, struct err *e) {
    struct startup begun;
    struct attach_all *targets = calloc(1, sizeof *targets);
    if (!targets)
        return err_set(e, ERR_FAILED, "out of memory");
    struct main_job job = {.target = "", .may_choose = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    int rc = startup_read(&begun, o, e);
    struct fleet_reach_options reach = o->reach;
    reach.later = n == 1 && fleet_open_is_database(typed[0]);
    if (rc == 0)
        rc = fleet_reach_init(&job.reach, &reach, relay_serve, e);
    const char *of_hosts = job.reach.hosts.n && n == 0 ? JOBS_TARGET : n == 1 ? typed[0] : "";
    if (rc == 0 && main_is_job(of_hosts))
        rc = main_read_targets(of_hosts, &job, targets, e);
    else if (rc == 0 && job.reach.hosts.n)
        rc = err_set(e, ERR_USAGE, "hosts are for a job: probing-top job:NAME --hosts LIST");
    else if (rc == 0 && attach_all_read(targets, typed, n, e) != 0)
        rc = main_explain_words(typed, n, e);
    if (rc == 0)
        rc = main_open(o, &begun, targets, &job, e);
    fleet_reach_fini(&job.reach);
    startup_fini(&begun);
    free(targets);
    return rc;
}

/* The screens, on a job of our own. */
static int main_tour(const struct main_options *o, int n_targets, struct err *e) {
    struct tour_job job;
    char pid[16];
    if (n_targets)
        return err_set(e, ERR_USAGE, "--tour starts a job of its own: give no TARGET with it");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(e, ERR_USAGE, "not a terminal: --tour needs one");
    if (tour_job_start(&job, e) != 0)
        return -1;
    snprintf(pid, sizeof pid, "%d", (int)job.pid);
    const char *const typed[] = {pid};
    int rc = main_screens(o, typed, 1, e);
    tour_job_end(&job);
    if (rc == 0)
        output_say("probing-top: the tour is over, and its job has ended. For your own job: probing-top "
                   "PID, or probing-top to choose one\n");
    return rc;
}

/* An option was refused: maybe it is one of another program, which is done otherwise here. */
static void main_explain_option(int argc, char **argv, struct err *e) {
    for (int i = 1; i < argc; i++)
        for (const struct main_hint *h = main_hints; h->flag; h++)
            if (strcmp(argv[i], h->flag) == 0)
                err_set(e, ERR_USAGE, "there is no %s: %s", h->flag, h->hint);
}

static int main_put_completion(int n, char *const *words, struct err *e) {
    struct strbuf out;
    strbuf_init(&out, 1 << 20);
    main_complete(n, words, &out);
    int rc = output_write(NULL, &out, e);
    strbuf_fini(&out);
    return rc;
}

/* Exit status; or -1 with the error. */
static int main_run(int argc, char **argv, struct err *e) {
    struct main_options o;
    if (argc > 1 && strcmp(argv[1], COMPLETE_COMMAND) == 0)
        return main_put_completion(argc - 2, argv + 2, e);
    const char **operands = calloc((size_t)argc + 1, sizeof *operands);
    memset(&o, 0, sizeof o);
    if (!operands)
        return err_set(e, ERR_FAILED, "out of memory");
    int n = option_parse(main_table, &o, argc, argv, operands, false, e);
    for (size_t i = 0; n >= 0 && i < o.targets.n && n < argc; i++)
        operands[n++] = o.targets.items[i];
    const char *target = n > 0 ? operands[0] : NULL, *extra = n > 1 && o.export ? operands[1] : NULL;
    if (n < 0) {
        main_explain_option(argc, argv, e);
        free(operands);
        return -1;
    }
    tcp_set_token(o.token);
    struct strbuf out;
    strbuf_init(&out, 1 << 20);
    int rc = 0;
    if (o.help)
        main_put_help(&out);
    else if (o.version)
        about_put(&out, "probing-top", PROBING_COMMIT);
    else if (o.list_keys || o.print_config || o.info)
        rc = main_put_settings(&o, &out, e);
    else if (extra)
        rc = err_set(e, ERR_USAGE, "--export takes one TARGET: '%s' is too many", extra);
    else if ((rc = main_check(&o, e)) == 0)
        rc = o.export ? main_export(&o, target, e)
             : o.tour ? main_tour(&o, n, e)
                      : main_screens(&o, operands, n, e);
    if (rc == 0 && out.len)
        rc = output_write(NULL, &out, e);
    strbuf_fini(&out);
    free(operands);
    return rc;
}

int main(int argc, char **argv) {
    struct err e = {0};
    symbols_begin(argc, argv);
    setlocale(LC_ALL, "");
    int rc = main_run(argc, argv, &e);
    if (rc >= 0)
        return rc;
    char text[2 * sizeof e.text];
    text_sanitize(text, sizeof text, err_text(&e));
    output_say("probing-top: %s\n", text);
    return err_exit_status(&e);
}
