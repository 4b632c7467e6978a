/* SPDX-License-Identifier: Apache-2.0 */
/* app_screen: the stack of open screens, and what the topmost one does, itself or by its view. */
#ifndef TUI_CORE_APP_SCREEN_H
#define TUI_CORE_APP_SCREEN_H

#include "tui/core/app.h"
#include "tui/core/screen.h"

struct app_screen *app_screen_top(struct app *a);

/* Open a screen above the others; close the topmost. */
void app_screen_push(struct app *a, const struct screen_def *def);
void app_screen_pop(struct app *a);

/* Close all screens, including those that were kept. */
void app_screen_drop_all(struct app *a);

/* Can it be opened? Screens that change the job are not offered if that is refused. */
bool app_screen_is_offered(const struct app *a, const struct screen_def *def);

/* Is a process or a job to be chosen first? Then there are no tabs, and nothing is said of a target. */
bool app_screen_is_choice(const struct app *a);

/* The tab that is shown, or that is below what is shown; NULL: there is none. */
const struct screen_def *app_screen_tab(const struct app *a);

/* Show the tab after (1) or before (-1) it, round and round. */
void app_screen_step(struct app *a, int step);

/* Open the screen of an action as its key does; it is topmost then. False: the action opens
 * none. */
bool app_screen_open(struct app *a, enum action action);

/* Update all open screens from the data. */
void app_screen_update_all(struct app *a);

/* Does the screen of a context show native frames? Toggle that: samples include them while any
 * screen shows them. */
bool app_screen_shows_native(const struct app *a, enum action_context context);
void app_screen_toggle_native(struct app *a, enum action_context context);

/* ---- what an open screen does, itself or by its view ---- */

struct view *app_screen_view(const struct app_screen *s);
bool app_screen_act(const struct app_screen *s, struct app *app, enum action action);
bool app_screen_mouse(const struct app_screen *s, struct app *app, const struct input_event *e);
bool app_screen_pick(const struct app_screen *s, const struct app *app, struct screen_pick *what,
                     struct strbuf *one, struct strbuf *whole);
bool app_screen_can_pick(const struct app_screen *s);

/* Does the screen take typed text? Then `typed` gets it. The text that a prompt begins with. */
bool app_screen_can_type(const struct app_screen *s);
bool app_screen_typed(const struct app_screen *s, struct app *app, enum action what, const char *text,
                      enum screen_typed phase);
const char *app_screen_typed_before(const struct app_screen *s, enum action what);

bool app_screen_is_on(const struct app_screen *s, const struct app *app, enum action action);

#endif
