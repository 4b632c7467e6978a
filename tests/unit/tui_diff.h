/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_diff: samples of a job that does other work from some moment on, for tests of what compares two times.
 */
#ifndef TESTS_TUI_DIFF_H
#define TESTS_TUI_DIFF_H

#include "tui/core/app.h"

/* Shares of what the main thread does, in percent: main calls load, train (which calls forward), sync, evaluate. */
enum diff_fixture_work {
    DIFF_FIXTURE_BEFORE, /* load 40, forward 40, evaluate 20 */
    DIFF_FIXTURE_NOW,    /* load 20, forward 50, sync 30 */
};

/* So many seconds of it, four batches a second; the app's clock moves on. */
void diff_fixture_feed(struct app *a, int seconds, enum diff_fixture_work work);

/* The same as a recording has it: of another thread of that name, with other numbers. */
void diff_fixture_record(struct app *a, int seconds, enum diff_fixture_work work);

#endif
