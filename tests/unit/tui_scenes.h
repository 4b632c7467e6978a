/* SPDX-License-Identifier: Apache-2.0 */
/* tui_scenes: screens with tagged rows, menus of rows, and debuggers in the job, for the golden screens. */
#ifndef TESTS_TUI_SCENES_H
#define TESTS_TUI_SCENES_H

#include "tui/core/app.h"

struct app *scenes_tagged(bool ascii); /* two threads */
struct app *scenes_tagged_timeline(bool ascii);
struct app *scenes_tagged_top(bool ascii); /* those alone */
struct app *scenes_tagged_sql(bool ascii);
struct app *scenes_tagged_log(bool ascii);
struct app *scenes_tagged_flame(bool ascii);
struct app *scenes_tagged_picker(bool ascii);
struct app *scenes_tagged_modules(bool ascii);      /* one, with what it holds */
struct app *scenes_tagged_modules_only(bool ascii); /* and that alone */
struct app *scenes_menu_timeline(bool ascii);
struct app *scenes_menu_overview(bool ascii);

/* The job's threads are held by a debugger; a thread is kept that has raised. */
struct app *scenes_held(bool ascii);
struct app *scenes_kept(bool ascii);

/* A span of the Timeline is the window, another one what it is compared with. */
struct app *scenes_spans(bool ascii);

#endif
