/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_fixture: targets, snapshots and processes made by hand, always the same, for tests of the screens.
 */
#ifndef TESTS_TUI_FIXTURE_H
#define TESTS_TUI_FIXTURE_H

#include "client/target/target.h"
#include "tui/core/app.h"

#define FIXTURE_NOW_S 5000.0         /* the frozen clock */
#define FIXTURE_EPOCH_S 1700000000.0 /* 22:13:20 UTC */

enum fixture_kind {
    FIXTURE_NORMAL,  /* a training job: main thread with the GIL, loader, autograd, native threads */
    FIXTURE_NAMES,   /* CJK, combining characters, escape sequences, overlong names */
    FIXTURE_HUGE,    /* 200 threads, large numbers everywhere */
    FIXTURE_UNKNOWN, /* nothing but thread ids is known */
};

/* A snapshot; `step` moves what moves (CPU, inner frames) and the time by a quarter of a second. */
void fixture_snapshot(struct model_snapshot *s, enum fixture_kind kind, int step);
void fixture_target(struct model_target *t, enum fixture_kind kind);

/* Processes for the picker; owned by the caller (target_list_free). */
struct target_process *fixture_processes(size_t *n);

/* An app that has received `steps` snapshots of a kind over a good connection, drawn at no time yet. */
struct app *fixture_app(enum fixture_kind kind, int steps, bool ascii);

/* Give an app `batches` batches of samples, a quarter of a second apart: the main thread trains (recursive calls of a module,
 * two lines of a step), the feeder waits, one thread has no frame, and one has names nobody should draw as they are. */
void fixture_samples(struct app *a, int batches);

/* An app in the picker. */
struct app *fixture_picker(bool ascii);

/* An answer with the locals of the main thread of FIXTURE_NORMAL. */
void fixture_locals(struct model_snapshot *s);
void fixture_tasks(struct model_snapshot *s);

/* An answer with native frames of the same thread: merged, apart, or not known. */
void fixture_native(struct model_snapshot *s, enum model_native how);

/* The screen as text, a line a row. Valid until the next call. */
const char *fixture_draw(struct app *a, int rows, int cols);

/* Fail unless it has a text on it; if it has. */
void fixture_shows(struct app *a, int rows, int cols, const char *what);
void fixture_hides(struct app *a, int rows, int cols, const char *what);

/* Press keys by name, separated by blanks; a word in quotes ("text) is typed letter by letter. */
void fixture_press(struct app *a, const char *keys);

#endif
