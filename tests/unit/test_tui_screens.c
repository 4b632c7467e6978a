/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden screens: every screen and state, painted through ncurses into a terminal emulator, compared with the file of that
 * name in tests/screens. UPDATE_GOLDEN=1 writes the files anew; the difference is to be read like code.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit/tui_capture.h"
#include "unit/tui_children.h"
#include "unit/tui_diff.h"
#include "unit/tui_fixture.h"
#include "unit/tui_job.h"
#include "unit/tui_scenes.h"
#include "unit/tui_sql.h"
#include "tui/core/app.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"
#include "tui/core/targets.h"
#include "tui/core/tour.h"

struct scene {
    const char *name;
    struct app *(*make)(bool ascii);
};

static struct app *scene_normal(bool ascii) { return fixture_app(FIXTURE_NORMAL, 24, ascii); }

static struct app *scene_paused(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 9, ascii);
    fixture_press(a, "Z");
    struct model_snapshot s;
    fixture_snapshot(&s, FIXTURE_NORMAL, 30);
    app_take_snapshot(a, &s);
    return a;
}

static struct app *scene_filtered(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, "\\ \"queue|OMP Enter");
    return a;
}

static struct app *scene_searching(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, "/ \"forward");
    return a;
}

static struct app *scene_stack(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, "Enter j j j");
    return a;
}

/* Names and stack are scrolled sideways: signs stand where text goes on. */
static struct app *scene_scrolled(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, "Right Enter Right Right");
    return a;
}

static struct app *scene_locals(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, ascii);
    struct model_snapshot s;
    fixture_press(a, "Enter j j j j j v");
    fixture_locals(&s);
    app_take_locals(a, &s);
    return a;
}

static struct app *scene_native(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, ascii);
    struct model_snapshot s;
    fixture_press(a, "Enter c");
    fixture_native(&s, MODEL_NATIVE_MERGED);
    app_take_locals(a, &s);
    return a;
}

static struct app *scene_tasks(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, ascii);
    struct model_snapshot s;
    fixture_press(a, "Enter t");
    fixture_tasks(&s);
    app_take_locals(a, &s);
    return a;
}

static struct app *scene_empty(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 0, ascii);
    return a;
}

static struct app *scene_reconnecting(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    struct err why = {ERR_FAILED, "the connection broke"};
    app_set_state(a, SESSION_RECONNECTING, &why, 1.5);
    app_set_time(a, FIXTURE_NOW_S + 1, FIXTURE_EPOCH_S + 1);
    return a;
}

static struct app *scene_gone(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    struct err why = {ERR_LOST, "process 4242 has ended"};
    app_set_state(a, SESSION_LOST, &why, 0);
    app_set_time(a, FIXTURE_NOW_S + 3600, FIXTURE_EPOCH_S + 3600);
    return a;
}

static struct app *scene_names(bool ascii) { return fixture_app(FIXTURE_NAMES, 2, ascii); }

static struct app *scene_huge(bool ascii) { return fixture_app(FIXTURE_HUGE, 2, ascii); }

static struct app *scene_unknown(bool ascii) { return fixture_app(FIXTURE_UNKNOWN, 1, ascii); }

static struct app *scene_help(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, "?");
    return a;
}

static struct app *scene_top(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, "4");
    fixture_samples(a, 40);
    struct model_snapshot s;
    fixture_snapshot(&s, FIXTURE_NORMAL, 40);
    app_take_snapshot(a, &s);
    return a;
}

static struct app *scene_top_calls(bool ascii) {
    struct app *a = scene_top(ascii);
    fixture_press(a, "> / \"_call Enter Enter j");
    return a;
}

static struct app *scene_top_lines(bool ascii) {
    struct app *a = scene_top(ascii);
    fixture_press(a, "l W a ) + + + + \\ \"train Enter Z");
    return a;
}

static struct app *scene_top_empty(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, "4");
    return a;
}

static struct app *scene_flame(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, "3");
    fixture_samples(a, 40);
    return a;
}

/* Deep in the tree, flipped, all time, by line, with what was searched for. */
static struct app *scene_flame_zoom(bool ascii) {
    struct app *a = scene_flame(ascii);
    fixture_press(a, "a l / \"forward Enter k Enter j j F");
    return a;
}

static struct app *scene_flame_thread(bool ascii) {
    struct app *a = scene_flame(ascii);
    fixture_press(a, "a W ) ) G");
    return a;
}

/* The view stands, whatever comes; names that nobody should draw as they are, in stacks that match. */
static struct app *scene_flame_paused(bool ascii) {
    struct app *a = scene_flame(ascii);
    fixture_press(a, "a \\ \"evil|AdamW Enter Z j j Right");
    fixture_samples(a, 40);
    return a;
}

/* Modules that are below a tenth share a cell, where one of them is selected. */
static struct app *scene_flame_modules(bool ascii) {
    struct app *a = scene_flame(ascii);
    fixture_press(a, "a a + + + + + + l l j Right Right");
    fixture_press(a, "a a");
    return a;
}

/* Who calls it, whom it calls, its lines. */
static struct app *scene_flame_details(bool ascii) {
    struct app *a = scene_flame(ascii);
    struct source_text *t = calloc(1, sizeof *t);
    assert_non_null(t);
    fixture_press(a, "o / \"train_step Enter Esc");
    (void)snprintf(t->path, sizeof t->path, "%s", a->source_asked.path);
    t->from = a->source_asked.from;
    for (int i = 0; i < SOURCE_MAX_LINES; i++)
        (void)snprintf(t->lines[t->n++], SOURCE_LINE,
                       "        loss = step(model, %d)  # \033[2J\350\250\223\347\267\264", i);
    app_take_source(a, t);
    return a;
}

static struct app *scene_flame_empty(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, "3");
    return a;
}

/* With what only the kernel and the agent's status tell, and some events. */
static struct app *scene_overview(bool ascii) {
    struct app *a = scene_normal(ascii);
    struct proc_stats v = {
        .state = 'R', .rss_bytes = 1, .group_bytes = 15LL << 30, .limit_bytes = 16LL << 30};
    struct model_status status = {.budget_pct = 1.0, .strategy = "a borrowed thread"};
    fixture_press(a, "1");
    fixture_samples(a, 40);
    app_take_proc_stats(a, &v);
    app_take_status(a, &status);
    log_add(a->log, FIXTURE_EPOCH_S + 10, LOG_LEVEL_WARN, "garbage collection: about 90 ms in MainThread");
    fixture_press(a, "j j");
    return a;
}

static struct app *scene_overview_unknown(bool ascii) {
    struct app *a = scene_unknown(ascii);
    fixture_press(a, "1");
    return a;
}

static struct app *scene_log(bool ascii) {
    struct app *a = scene_overview(ascii);
    for (int i = 0; i < 3; i++)
        log_add(a->log, FIXTURE_EPOCH_S + 20 + i, LOG_LEVEL_INFO, "connected again");
    log_add_of(a->log, 4301, FIXTURE_EPOCH_S + 30, LOG_LEVEL_BAD,
               "the target is gone: process 4301 \033[2J was killed by signal 9 \xe8\xa8\x93\xe7\xb7\xb4, "
               "and what it was doing when "
               "that happened is on the screen still");
    fixture_press(a, "L");
    return a;
}

/* Three targets: one is shown, one goes on aside, one has ended. */
static struct app *scene_targets(bool ascii) {
    struct app *a = scene_normal(ascii);
    struct err why = {ERR_LOST, "process 7002 was killed by signal 9"};
    (void)targets_add(a, 4242, "4242");
    for (int i = 1; i <= 2; i++) {
        struct model_target t;
        struct model_snapshot s;
        (void)targets_add(a, 7000 + i, "serve");
        fixture_target(&t, FIXTURE_NORMAL);
        t.pid = 7000 + i;
        t.cmdline = "python serve.py --port 8080";
        fixture_snapshot(&s, FIXTURE_NORMAL, i);
        targets_take_state(a, i, SESSION_CONNECTED, NULL, 0);
        targets_take_target(a, i, &t);
        targets_take_snapshot(a, i, &s);
    }
    targets_take_state(a, 2, SESSION_LOST, &why, 0);
    return a;
}

static struct app *scene_targets_list(bool ascii) {
    struct app *a = scene_targets(ascii);
    fixture_press(a, "p j j");
    return a;
}

static struct app *scene_sql(bool ascii) { return sql_fixture_app(ascii); }

static struct app *scene_sql_result(bool ascii) {
    struct app *a = sql_fixture_app(ascii);
    sql_fixture_paste(a,
                      "SELECT timestamp, tid, thread, share, fold(stack_id) AS stack\nFROM python.samples\n"
                      "WHERE thread <> 'loader-1' LIMIT 40; -- the newest");
    fixture_press(a, "Enter");
    sql_fixture_answer(a, sql_fixture_rows(40), 0.0123);
    fixture_press(a, "Esc j j Right Right Right F6 !");
    return a;
}

static struct app *scene_sql_complete(bool ascii) {
    struct app *a = sql_fixture_app(ascii);
    sql_fixture_paste(a, "SELECT * FROM python.samples WHERE t");
    fixture_press(a, "o Down");
    return a;
}

static struct app *scene_sql_error(bool ascii) {
    struct app *a = sql_fixture_app(ascii);
    sql_fixture_paste(a, "SELECT thread, count(*)\nFROM python.samples\nGROUP BY thred;");
    fixture_press(a, "Enter");
    sql_fixture_fail(a, "no such column: thred (line 3, column 10)", 53);
    return a;
}

static struct app *scene_sql_vertical(bool ascii) {
    struct app *a = scene_sql_result(ascii);
    fixture_press(a, "x / \"evil Enter");
    return a;
}

static struct app *scene_sql_figures(bool ascii) {
    struct app *a = scene_sql_result(ascii);
    fixture_press(a, "F");
    return a;
}

static struct app *scene_sql_saved(bool ascii) {
    struct app *a = sql_fixture_app(ascii);
    fixture_press(a, "F2 j j");
    return a;
}

static struct app *scene_sql_gone(bool ascii) {
    struct app *a = scene_sql_result(ascii);
    struct err why = {ERR_LOST, "process 4242 has ended"};
    app_set_state(a, SESSION_LOST, &why, 0);
    (void)snprintf(a->query.note, sizeof a->query.note,
                   "no history of process 4242: no agent collects it; live tables can be read");
    a->query.answer.is_past = true;
    return a;
}

static struct app *scene_picker(bool ascii) { return fixture_picker(ascii); }

static struct app *scene_picker_refused(bool ascii) {
    struct app *a = fixture_picker(ascii);
    fixture_press(a, "End k Enter");
    return a;
}

static struct app *scene_picker_empty(bool ascii) {
    struct app *a = fixture_picker(ascii);
    app_take_processes(a, NULL, 0, "");
    return a;
}

static struct app *scene_picker_tree(bool ascii) {
    struct app *a = fixture_picker(ascii);
    size_t n = 0;
    struct target_process *list = fixture_family(&n);
    app_take_processes(a, list, n, "");
    fixture_press(a, "j");
    return a;
}

static struct app *scene_children(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    struct children_list l;
    for (int i = 0; i < 3; i++) {
        fixture_children(&l, i / 2);
        app_take_children(a, &l);
    }
    fixture_press(a, "End k k");
    return a;
}

/* Three snapshots back, in the stack of the main thread. */
static struct app *scene_stepped(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 9, ascii);
    fixture_press(a, "Enter j , , ,");
    return a;
}

static struct app *scene_compared(bool ascii, const char *keys) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    fixture_press(a, keys);
    diff_fixture_feed(a, 10, DIFF_FIXTURE_BEFORE);
    diff_fixture_feed(a, 10, DIFF_FIXTURE_NOW);
    return a;
}

static struct app *scene_top_diff(bool ascii) {
    struct app *a = scene_compared(ascii, "4 d");
    fixture_press(a, "j");
    return a;
}

static struct app *scene_flame_diff(bool ascii) {
    struct app *a = scene_compared(ascii, "3 d");
    fixture_press(a, "j");
    return a;
}

static struct app *scene_tour(bool ascii) {
    struct app *a = scene_normal(ascii);
    tour_begin(a);
    fixture_press(a, "Enter Enter");
    fixture_samples(a, 40);
    return a;
}

static struct app *scene_tour_sql(bool ascii) {
    struct app *a = scene_normal(ascii);
    tour_begin(a);
    for (int i = 0; i < 8; i++)
        fixture_press(a, "Enter");
    return a;
}

static struct app *scene_ranks(bool ascii) { return job_fixture_app(JOB_FIXTURE_HUNG, "p", ascii); }

static struct app *scene_ranks_healthy(bool ascii) {
    return job_fixture_app(JOB_FIXTURE_HEALTHY, "p j j", ascii);
}

static struct app *scene_ranks_bare(bool ascii) { return job_fixture_app(JOB_FIXTURE_BARE, "p j", ascii); }

static struct app *scene_ranks_64(bool ascii) { return job_fixture_app(JOB_FIXTURE_64, "p j", ascii); }

static struct app *scene_ranks_1000(bool ascii) { return job_fixture_app(JOB_FIXTURE_1000, "p b b", ascii); }

static struct app *scene_ranks_cell(bool ascii) {
    struct app *a = job_fixture_app(JOB_FIXTURE_1000, "p", ascii);
    (void)fixture_draw(a, 24, 80);
    fixture_press(a, "o Right Right");
    return a;
}

static struct app *scene_stacks(bool ascii) { return job_fixture_app(JOB_FIXTURE_HUNG, "O j", ascii); }

static struct app *scene_stacks_1000(bool ascii) { return job_fixture_app(JOB_FIXTURE_1000, "O", ascii); }

/* A rank's own screen while its job is watched. */
static struct app *scene_rank(bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    a->pid = 4302;
    job_fixture_give(a, JOB_FIXTURE_HUNG);
    return a;
}

static struct app *scene_ranks_compare(bool ascii) { return job_fixture_app(JOB_FIXTURE_HUNG, "p d", ascii); }

static struct app *scene_stacks_compare(bool ascii) {
    return job_fixture_app(JOB_FIXTURE_HUNG, "O j d", ascii);
}

static struct app *scene_overview_job(bool ascii) { return job_fixture_app(JOB_FIXTURE_HUNG, "1", ascii); }

static struct app *scene_overview_ranks(bool ascii) { return job_fixture_app(JOB_FIXTURE_1000, "1", ascii); }

static struct app *scene_rank_none(bool ascii) { return job_fixture_app(JOB_FIXTURE_HUNG, "2", ascii); }

static const struct scene scenes[] = {
    {"ranks", scene_ranks},
    {"ranks-healthy", scene_ranks_healthy},
    {"ranks-bare", scene_ranks_bare},
    {"ranks-64", scene_ranks_64},
    {"ranks-1000", scene_ranks_1000},
    {"ranks-cell", scene_ranks_cell},
    {"stacks", scene_stacks},
    {"stacks-1000", scene_stacks_1000},
    {"rank", scene_rank},
    {"rank-none", scene_rank_none},
    {"ranks-compare", scene_ranks_compare},
    {"stacks-compare", scene_stacks_compare},
    {"overview-job", scene_overview_job},
    {"overview-1000", scene_overview_ranks},
    {"tour", scene_tour},
    {"tour-sql", scene_tour_sql},
    {"tagged", scenes_tagged},
    {"tagged-timeline", scenes_tagged_timeline},
    {"tagged-top", scenes_tagged_top},
    {"tagged-sql", scenes_tagged_sql},
    {"tagged-log", scenes_tagged_log},
    {"tagged-flame", scenes_tagged_flame},
    {"tagged-picker", scenes_tagged_picker},
    {"tagged-modules", scenes_tagged_modules},
    {"tagged-modules-only", scenes_tagged_modules_only},
    {"menu-timeline", scenes_menu_timeline},
    {"menu-overview", scenes_menu_overview},
    {"held", scenes_held},
    {"kept", scenes_kept},
    {"timeline-spans", scenes_spans},
    {"threads", scene_normal},
    {"paused", scene_paused},
    {"filtered", scene_filtered},
    {"searching", scene_searching},
    {"stack", scene_stack},
    {"scrolled", scene_scrolled},
    {"locals", scene_locals},
    {"native", scene_native},
    {"tasks", scene_tasks},
    {"empty", scene_empty},
    {"reconnecting", scene_reconnecting},
    {"gone", scene_gone},
    {"names", scene_names},
    {"huge", scene_huge},
    {"unknown", scene_unknown},
    {"help", scene_help},
    {"top", scene_top},
    {"top-calls", scene_top_calls},
    {"top-lines", scene_top_lines},
    {"top-empty", scene_top_empty},
    {"flame", scene_flame},
    {"flame-zoom", scene_flame_zoom},
    {"flame-thread", scene_flame_thread},
    {"flame-paused", scene_flame_paused},
    {"flame-modules", scene_flame_modules},
    {"flame-details", scene_flame_details},
    {"flame-empty", scene_flame_empty},
    {"overview", scene_overview},
    {"overview-unknown", scene_overview_unknown},
    {"log", scene_log},
    {"several", scene_targets},
    {"several-list", scene_targets_list},
    {"sql", scene_sql},
    {"sql-result", scene_sql_result},
    {"sql-complete", scene_sql_complete},
    {"sql-error", scene_sql_error},
    {"sql-vertical", scene_sql_vertical},
    {"sql-figures", scene_sql_figures},
    {"sql-saved", scene_sql_saved},
    {"sql-gone", scene_sql_gone},
    {"picker", scene_picker},
    {"picker-refused", scene_picker_refused},
    {"picker-empty", scene_picker_empty},
    {"picker-tree", scene_picker_tree},
    {"children", scene_children},
    {"stepped", scene_stepped},
    {"top-diff", scene_top_diff},
    {"flame-diff", scene_flame_diff},
};

struct look {
    const char *name, *term, *color, *theme;
    bool ascii;
    int rows, cols;
    const char *only; /* this scene alone; NULL all */
};

static const struct look looks[] = {
    {"80x24", "xterm-256color", NULL, NULL, false, 24, 80, NULL},
    {"80x24-mono", "xterm-256color", "never", NULL, false, 24, 80, NULL},
    {"80x24-ascii", "vt100", NULL, NULL, true, 24, 80, NULL},
    {"200x50", "tmux-256color", NULL, NULL, false, 50, 200, NULL},
    {"200x50-mono", "tmux-256color", "never", NULL, false, 50, 200, "threads"},
    {"80x24-16", "xterm-256color", "16", NULL, false, 24, 80, "threads"},
    {"80x24-8", "linux", NULL, NULL, false, 24, 80, "threads"},
    {"80x24-light", "xterm-256color", NULL, "light", false, 24, 80, "threads"},
    {"60x12", "xterm-256color", NULL, NULL, false, 12, 60, "threads"},
    {"100x30", "xterm-256color", NULL, NULL, false, 30, 100, "threads"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "threads"},
    {"40x12-mono", "xterm-256color", "never", NULL, false, 12, 40, "threads"},
    {"20x5", "xterm-256color", NULL, NULL, false, 5, 20, "threads"},
    {"200x50-mono", "tmux-256color", "never", NULL, false, 50, 200, "top"},
    {"60x12", "xterm-256color", NULL, NULL, false, 12, 60, "top"},
    {"100x30", "xterm-256color", NULL, NULL, false, 30, 100, "top"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "top"},
    {"40x12-mono", "xterm-256color", "never", NULL, false, 12, 40, "top"},
    {"200x50-mono", "tmux-256color", "never", NULL, false, 50, 200, "flame"},
    {"80x24-16", "xterm-256color", "16", NULL, false, 24, 80, "flame"},
    {"80x24-16", "xterm-256color", "16", NULL, false, 24, 80, "flame-zoom"},
    {"80x24-8", "linux", NULL, NULL, false, 24, 80, "flame-zoom"},
    {"80x24-light", "xterm-256color", NULL, "light", false, 24, 80, "flame-zoom"},
    {"60x12", "xterm-256color", NULL, NULL, false, 12, 60, "flame"},
    {"60x12", "xterm-256color", NULL, NULL, false, 12, 60, "flame-zoom"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "flame"},
    {"40x12-mono", "xterm-256color", "never", NULL, false, 12, 40, "flame"},
    {"60x12", "xterm-256color", NULL, NULL, false, 12, 60, "overview"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "overview"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "log"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "flame-details"},
    {"80x24-16", "xterm-256color", "16", NULL, false, 24, 80, "sql-result"},
    {"80x24-light", "xterm-256color", NULL, "light", false, 24, 80, "sql-result"},
    {"60x12", "xterm-256color", NULL, NULL, false, 12, 60, "sql-result"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "sql-result"},
    {"60x12", "xterm-256color", NULL, NULL, false, 12, 60, "sql-complete"},
    {"60x12", "xterm-256color", NULL, NULL, false, 12, 60, "picker"},
    {"60x12", "xterm-256color", NULL, NULL, false, 12, 60, "help"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "tagged"},
    {"80x24-16", "xterm-256color", "16", NULL, false, 24, 80, "tagged"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "ranks"},
    {"40x12-mono", "xterm-256color", "never", NULL, false, 12, 40, "ranks"},
    {"160x45", "xterm-256color", NULL, NULL, false, 45, 160, "ranks"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "ranks-64"},
    {"160x45", "xterm-256color", NULL, NULL, false, 45, 160, "ranks-64"},
    {"160x45", "xterm-256color", NULL, NULL, false, 45, 160, "ranks-1000"},
    {"40x12", "xterm-256color", NULL, NULL, false, 12, 40, "stacks"},
    {"160x45", "xterm-256color", NULL, NULL, false, 45, 160, "stacks"},
};

static void load_theme(struct theme *t, const char *name) {
    struct theme_path path = {{PROBING_SOURCE_DIR "/themes"}};
    struct err e;
    if (!name)
        theme_init_default(t);
    else
        assert_int_equal(theme_load(t, name, &path, NULL, &e), 0);
}

static bool write_file(const char *path, const struct strbuf *b) {
    FILE *f = fopen(path, "w");
    bool ok = f && fwrite(strbuf_str(b), 1, b->len, f) == b->len;
    return f && fclose(f) == 0 && ok;
}

/* 0 when the picture is as in the file. */
static int compare(const char *name, const struct strbuf *got) {
    char path[1024], mine[1024];
    struct strbuf want;
    (void)snprintf(path, sizeof path, "%s/tests/screens/%s.txt", PROBING_SOURCE_DIR, name);
    if (getenv("UPDATE_GOLDEN"))
        return write_file(path, got) ? 0 : 1;
    strbuf_init(&want, 1 << 20);
    int rc = strbuf_read_file(&want, path);
    bool same = rc == 0 && strcmp(strbuf_str(&want), strbuf_str(got)) == 0;
    strbuf_fini(&want);
    if (same)
        return 0;
    (void)snprintf(mine, sizeof mine, "/tmp/%s.got", name);
    (void)write_file(mine, got);
    print_error("%s differs from what is drawn now: diff %s %s\n", path, path, mine);
    return 1;
}

static int check_look(const struct scene *scene, const struct look *look) {
    struct theme theme;
    struct strbuf got;
    char name[128];
    load_theme(&theme, look->theme);
    struct app *a = scene->make(look->ascii);
    assert_non_null(a);
    struct capture_config config = {
        .rows = look->rows, .cols = look->cols, .term = look->term, .color = look->color, .theme = &theme};
    strbuf_init(&got, 1 << 20);
    assert_true(capture_app(a, &config, &got));
    (void)snprintf(name, sizeof name, "%s-%s", scene->name, look->name);
    int rc = compare(name, &got);
    strbuf_fini(&got);
    app_free(a);
    return rc;
}

static void test_golden(void **state) {
    const struct scene *scene = *state;
    int bad = 0;
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++)
        if (!looks[i].only || strcmp(looks[i].only, scene->name) == 0)
            bad += check_look(scene, &looks[i]);
    assert_int_equal(bad, 0);
}

int main(void) {
    struct CMUnitTest tests[sizeof scenes / sizeof scenes[0]];
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    (void)unsetenv("NO_COLOR");
    tzset();
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
        tests[i] = (struct CMUnitTest){
            .name = scenes[i].name, .test_func = test_golden, .initial_state = (void *)&scenes[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
