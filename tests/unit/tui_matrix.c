/* SPDX-License-Identifier: Apache-2.0 */
/* tui_matrix: see tui_matrix.h. */
#include "unit/tui_matrix.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/core/app_history.h"
#include "tui/core/app_job.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "unit/tui_fixture.h"
#include "unit/tui_job.h"
#include "unit/tui_repl.h"
#include "unit/tui_samples.h"
#include "unit/tui_sql.h"
#include "unit/tui_tables.h"

#define MATRIX_BATCHES 40

static const char *const matrix_names[] = {
    [MATRIX_NORMAL] = "normal",
    [MATRIX_PAUSED] = "paused",
    [MATRIX_FILTERED] = "filtered",
    [MATRIX_EMPTY] = "empty",
    [MATRIX_DISCONNECTED] = "disconnected",
    [MATRIX_HUGE] = "huge",
    [MATRIX_HOSTILE] = "hostile",
};

const char *matrix_state_name(enum matrix_state state) { return matrix_names[state]; }

bool matrix_has(const struct matrix_row *row, enum matrix_state state) {
    unsigned states = row->states ? row->states : MATRIX_ALL;
    return (states & MATRIX_IN(state)) && (state != MATRIX_FILTERED || row->filter);
}

static enum fixture_kind matrix_kind(enum matrix_state state) {
    return state == MATRIX_HUGE ? FIXTURE_HUGE : state == MATRIX_HOSTILE ? FIXTURE_NAMES : FIXTURE_NORMAL;
}

static void matrix_feed(struct app *a, enum fixture_kind kind, int step) {
    struct model_snapshot s;
    samples_feed(a, kind, MATRIX_BATCHES);
    fixture_snapshot(&s, kind, step);
    app_take_snapshot(a, &s);
}

static void matrix_end(struct app *a) {
    struct err why = {ERR_LOST, "process 4242 has ended"};
    app_set_state(a, SESSION_LOST, &why, 0);
}

/* A target, some snapshots, the screen opened, samples for those that want them. */
static struct app *matrix_make_plain(const struct matrix_row *row, enum matrix_state state, bool ascii) {
    enum fixture_kind kind = matrix_kind(state);
    struct app *a = fixture_app(kind, state == MATRIX_EMPTY ? 0 : 3, ascii);
    assert_non_null(a);
    fixture_press(a, row->keys);
    if (state == MATRIX_EMPTY)
        return a;
    matrix_feed(a, kind, 40);
    tables_answer_all(a, state == MATRIX_HUGE      ? TABLES_HUGE
                         : state == MATRIX_HOSTILE ? TABLES_NAMES
                                                   : TABLES_NORMAL);
    if (state == MATRIX_FILTERED)
        fixture_press(a, row->filter);
    if (state == MATRIX_PAUSED) {
        app_set_paused(a, true);
        matrix_feed(a, kind, 80);
    }
    if (state == MATRIX_DISCONNECTED)
        matrix_end(a);
    return a;
}

static struct app *matrix_make_picker(enum matrix_state state, bool ascii) {
    struct app *a = fixture_picker(ascii);
    assert_non_null(a);
    if (state == MATRIX_FILTERED)
        fixture_press(a, "\\ \"python Enter j");
    if (state == MATRIX_EMPTY)
        app_take_processes(a, NULL, 0, "");
    return a;
}

static struct app *matrix_make_job_picker(enum matrix_state state, bool ascii) {
    struct app *a = job_fixture_picker(ascii);
    if (state == MATRIX_FILTERED)
        fixture_press(a, "\\ \"ended Enter j");
    if (state == MATRIX_EMPTY) {
        struct engine_jobs none = {.n = 0};
        app_take_jobs(a, &none, NULL);
    }
    return a;
}

static struct app *matrix_make_sql(enum matrix_state state, bool ascii) {
    struct app *a = sql_fixture_app(ascii);
    assert_non_null(a);
    if (state == MATRIX_EMPTY)
        return a;
    sql_fixture_paste(a, "SELECT timestamp, tid, thread, share, fold(stack_id) AS stack\n"
                         "FROM python.samples WHERE thread <> '\xe8\xa8\x93\xe7\xb7\xb4' LIMIT 40;");
    fixture_press(a, "Enter");
    sql_fixture_answer(a, sql_fixture_rows(state == MATRIX_HUGE ? 100000 : 40), 0.0123);
    fixture_press(a, "Esc j j Right Right Right Space b");
    if (state == MATRIX_FILTERED)
        fixture_press(a, "/ \"evil Enter");
    if (state == MATRIX_DISCONNECTED)
        matrix_end(a);
    return a;
}

static struct app *matrix_make_setup(enum matrix_state state, bool ascii) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    assert_non_null(a);
    a->config.config_path = "/home/ada/.config/probing-top/config";
    fixture_press(a, state == MATRIX_FILTERED ? "F2 / \"theme Enter" : "F2 j j Right");
    return a;
}

static struct app *matrix_make_themes(enum matrix_state state, bool ascii) {
    static char names[][THEME_MAX_NAME] = {"auto", "light", "mine", "mono"};
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    assert_non_null(a);
    fixture_press(a, "alt-t");
    if (state == MATRIX_EMPTY)
        return a;
    app_take_themes(a, names, sizeof names / sizeof names[0]);
    fixture_press(a, state == MATRIX_FILTERED ? "/ \"mi Enter" : "j");
    return a;
}

/* A screen of a table that the job makes: the rows come by a feed. */
static struct app *matrix_make_tables(enum matrix_state state, bool ascii, const char *keys,
                                      const char *moves, const char *filter) {
    struct app *a = fixture_app(matrix_kind(state), 3, ascii);
    assert_non_null(a);
    fixture_press(a, keys);
    if (state == MATRIX_EMPTY)
        return a;
    tables_answer_all(a, state == MATRIX_HUGE      ? TABLES_HUGE
                         : state == MATRIX_HOSTILE ? TABLES_NAMES
                                                   : TABLES_NORMAL);
    fixture_press(a, state == MATRIX_FILTERED ? filter : moves);
    if (state == MATRIX_PAUSED) {
        app_set_paused(a, true);
        fixture_press(a, "r");
        tables_answer_all(a, TABLES_LATER);
    }
    if (state == MATRIX_DISCONNECTED)
        matrix_end(a);
    return a;
}

static struct app *matrix_make_tensors(enum matrix_state state, bool ascii) {
    return matrix_make_tables(state, ascii, "7", "* j j", "\\ \"layers|train Enter");
}

static struct app *matrix_make_modules(enum matrix_state state, bool ascii) {
    return matrix_make_tables(state, ascii, "8", "* j j", "\\ \"attn|Linear Enter");
}

static struct app *matrix_make_loader(enum matrix_state state, bool ascii) {
    return matrix_make_tables(state, ascii, "9", "j j", "\\ \"collate|Text Enter");
}

static struct app *matrix_make_memory(enum matrix_state state, bool ascii) {
    return matrix_make_tables(state, ascii, "M", "' j", "\\ \"train|token Enter");
}

static struct app *matrix_make_gpu(enum matrix_state state, bool ascii) {
    return matrix_make_tables(state, ascii, "0", "j j", "\\ \"heat|MIG Enter");
}

/* Long enough for the largest terminal to be full of it. */
static const char *matrix_repl_lines(void) {
    static char text[6000];
    size_t used = 0;
    for (int i = 0; i < 200; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "step %d loss %d.%d\n", i, 9 - i / 25, i % 10);
    return text;
}

static struct app *matrix_make_repl(enum matrix_state state, bool ascii) {
    struct app *a = fixture_app(matrix_kind(state), 3, ascii);
    assert_non_null(a);
    fixture_press(a, "R");
    if (state == MATRIX_EMPTY)
        return a;
    repl_fixture_run(a, "model.lr * 2", NULL, "0.0006", NULL);
    repl_fixture_look(a, "%threads", MAGIC_QUERY,
                      " tid | name       | file\n-----+------------+-----------\n"
                      "4242 | MainThread | \xe2\x80\xa6/train.py\n(1 row, 0.2 ms)\n",
                      NULL);
    repl_fixture_run(a, "for p in list(model.parameters())[:2]:\n    print(p.shape)\n",
                     "torch.Size([512, 512])\ntorch.Size([512])\n", NULL, NULL);
    if (state == MATRIX_HUGE)
        repl_fixture_run(a, "print(log)", matrix_repl_lines(), NULL, NULL);
    if (state == MATRIX_HOSTILE)
        repl_fixture_run(a, "names", "\033[2Jevil\x01\x02\n\xe8\xa8\x93\xe7\xb7\xb4 e\xcc\x81 \xff\xfe\n",
                         "'\x1b]0;title\x07'", NULL);
    repl_fixture_run(a, "int('x')", NULL, NULL,
                     "Traceback (most recent call last):\n  File \"<repl>\", line 1, in <module>\n"
                     "ValueError: invalid literal for int() with base 10: 'x'\n");
    if (state == MATRIX_NORMAL)
        repl_fixture_complete(a, "model.la", "layer_norm\nlayers\nlayout");
    if (state == MATRIX_FILTERED)
        fixture_press(a, "Esc / \"torch Enter");
    if (state == MATRIX_PAUSED) {
        app_set_paused(a, true);
        repl_fixture_paste(a, "def f(x):\n    return x");
    }
    if (state == MATRIX_DISCONNECTED) {
        repl_fixture_paste(a, "import time; time.sleep(30)");
        fixture_press(a, "F5");
        matrix_end(a);
    }
    return a;
}

static struct app *matrix_make_job(enum matrix_state state, bool ascii, const char *keys,
                                   const char *filter) {
    enum job_fixture kind = state == MATRIX_HUGE      ? JOB_FIXTURE_1000
                            : state == MATRIX_HOSTILE ? JOB_FIXTURE_NAMES
                            : state == MATRIX_NORMAL  ? JOB_FIXTURE_HUNG
                                                      : JOB_FIXTURE_64;
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, ascii);
    assert_non_null(a);
    app_job_watch(a, "job:train.py");
    fixture_press(a, keys);
    if (state == MATRIX_EMPTY)
        return a;
    app_job_take(a, job_fixture(kind));
    if (state == MATRIX_FILTERED)
        fixture_press(a, filter);
    if (state == MATRIX_PAUSED) {
        app_set_paused(a, true);
        app_job_take(a, job_fixture(JOB_FIXTURE_HEALTHY));
    }
    if (state == MATRIX_DISCONNECTED) {
        struct err why = {ERR_ATTACH, "no job is named 'train.py' any longer"};
        app_job_refused(a, &why);
    }
    return a;
}

static struct app *matrix_make_ranks(enum matrix_state state, bool ascii) {
    return matrix_make_job(state, ascii, "p", "\\ \"rank:16-23|stopped Enter j");
}

static struct app *matrix_make_stacks(enum matrix_state state, bool ascii) {
    return matrix_make_job(state, ascii, "O", "\\ \"rank:19|attention Enter");
}

#define SCREEN(name) #name, &screen_##name

/* Screens whose pictures need more than the key that opens them. */
static const struct matrix_row matrix_known[] = {
    {SCREEN(log), NULL, "\\ \"agent|!gone Enter", 0, NULL},
    {SCREEN(threads), "", "\\ \"queue|OMP|\xe6\x95\xb0 Enter", 0, NULL},
    {SCREEN(top), NULL, "\\ \"train Enter", 0, NULL},
    {SCREEN(flame), NULL, "\\ \"AdamW|evil Enter j j", 0, NULL},
    {SCREEN(timeline), NULL, "\\ \"train|AdamW Enter", 0, NULL},
    {SCREEN(steps), NULL, "\\ \"slow Enter", 0, NULL},
    {SCREEN(tensors), NULL, "\\", 0, matrix_make_tensors},
    {SCREEN(modules), NULL, "\\", 0, matrix_make_modules},
    {SCREEN(loader), NULL, "\\", 0, matrix_make_loader},
    {SCREEN(memory), NULL, "\\", 0, matrix_make_memory},
    {SCREEN(gpu), NULL, "\\", 0, matrix_make_gpu},
    {SCREEN(help), "?", "/ \"sort Enter", MATRIX_IN(MATRIX_NORMAL) | MATRIX_IN(MATRIX_FILTERED), NULL},
    {SCREEN(menu), NULL, "/ \"copy Enter",
     MATRIX_IN(MATRIX_NORMAL) | MATRIX_IN(MATRIX_FILTERED) | MATRIX_IN(MATRIX_EMPTY), NULL},
    {SCREEN(export), NULL, NULL, MATRIX_IN(MATRIX_NORMAL) | MATRIX_IN(MATRIX_EMPTY), NULL},
    {SCREEN(sql), NULL, "/", MATRIX_ALL & ~MATRIX_IN(MATRIX_PAUSED), matrix_make_sql},
    {SCREEN(repl), NULL, "/", 0, matrix_make_repl},
    {SCREEN(ranks), NULL, "\\", 0, matrix_make_ranks},
    {SCREEN(stacks), NULL, "\\", 0, matrix_make_stacks},
    {SCREEN(picker), "", "\\",
     MATRIX_IN(MATRIX_NORMAL) | MATRIX_IN(MATRIX_FILTERED) | MATRIX_IN(MATRIX_EMPTY), matrix_make_picker},
    {SCREEN(job_picker), "", "\\",
     MATRIX_IN(MATRIX_NORMAL) | MATRIX_IN(MATRIX_FILTERED) | MATRIX_IN(MATRIX_EMPTY), matrix_make_job_picker},
    {SCREEN(setup), NULL, "/", MATRIX_IN(MATRIX_NORMAL) | MATRIX_IN(MATRIX_FILTERED), matrix_make_setup},
    {SCREEN(themes), NULL, "/",
     MATRIX_IN(MATRIX_NORMAL) | MATRIX_IN(MATRIX_FILTERED) | MATRIX_IN(MATRIX_EMPTY), matrix_make_themes},
};

/* All screens of the list, in its order; those that are not known here are opened by their key, in every state but filtered. */
const struct matrix_row *matrix_rows(void) {
    static struct matrix_row rows[MATRIX_MAX_ROWS + 1];
    for (size_t n = 0; screen_list[n] && n < MATRIX_MAX_ROWS; n++) {
        rows[n] = (struct matrix_row){.symbol = screen_list[n]->name, .screen = screen_list[n]};
        for (size_t i = 0; i < sizeof matrix_known / sizeof matrix_known[0]; i++)
            if (matrix_known[i].screen == screen_list[n])
                rows[n] = matrix_known[i];
        if (!rows[n].keys)
            rows[n].keys = screen_list[n]->opens[0].keys[0];
    }
    return rows;
}

struct app *matrix_make(const struct matrix_row *row, enum matrix_state state, bool ascii) {
    struct app *a = row->make ? row->make(state, ascii) : matrix_make_plain(row, state, ascii);
    if (app_screen_top(a)->def != row->screen)
        fail_msg("the keys '%s' of the row '%s' open the screen '%s'", row->keys, row->symbol,
                 app_screen_top(a)->def->name);
    return a;
}
