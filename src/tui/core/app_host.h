/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_host: what the app requests from the program around it: the terminal, files, the job, other
 * threads. The host of src/tui/host does it; a test gives one that notes the requests.
 *
 * The app and its screens call these while they handle a key, data or a tick. So no function here
 * changes the app's data or screens before the app has returned: it acts outwards immediately, or
 * notes the request and does it on the host's next turn, before the next event. The result, a
 * failure included, reaches the app by the app's functions (app_take_..., app_repl_refused ...) on
 * such a turn; only a message may come immediately. A function that returns int reports its failure
 * itself: 0, or -1 with the error.
 *
 * Called from app_new on, when the host must be able to note requests already, and never from
 * app_free. All on one thread.
 */
#ifndef TUI_CORE_APP_HOST_H
#define TUI_CORE_APP_HOST_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "client/history.h"
#include "client/repl/magic.h"
#include "wire/wire.h"

struct export_job;

struct app_host {
    void *arg; /* the first parameter of every function */

    /* ---- the program and its terminal ---- */
    void (*quit)(void *arg);
    void (*suspend)(void *arg);
    void (*repaint)(void *arg); /* the whole terminal, as after garbage */
    void (*set_mouse)(void *arg, bool on);
    void (*set_theme)(void *arg, const char *name); /* with the colours that are set */
    void (*list_themes)(void *arg);                 /* answered by app_take_themes */

    /* ---- files of the user ---- */
    void (*save_settings)(void *arg); /* to config.config_path */
    /* Fill `h`, which is empty, with what earlier runs left under that name (history_path). */
    int (*open_history)(void *arg, const char *name, struct history *h, struct err *e);
    /* To the clipboard; `what`: "the frame" */
    void (*copy)(void *arg, const char *what, const char *text, size_t len);
    void (*write)(void *arg, struct export_job *job); /* taken over; answered by app_export_done */
    /* `file` as the process names it; `pid` 0: it is not known, or gone; `line` 0: not known. */
    void (*edit)(void *arg, pid_t pid, const char *file, int line);
    /* The lines of app->source_asked, of the target; answered by app_take_source */
    void (*read_source)(void *arg);

    /* ---- targets ---- */
    void (*list_processes)(void *arg);          /* answered by app_take_processes */
    void (*attach)(void *arg, pid_t pid);       /* answered by app_attach_done */
    void (*show_target)(void *arg, int target); /* by its number in app->targets */
    void (*open_diff)(void *arg, const char *name);

    /* ---- the target that is shown ---- */
    /* WIRE_THREADS, WIRE_STATUS or WIRE_INTERRUPT */
    void (*request)(void *arg, enum wire_method method);
    /* Answered by app_take_locals */
    int (*ask_details)(void *arg, const struct wire_threads *want, struct err *e);
    int (*arm)(void *arg, const struct wire_arm *want, struct err *e);
    int (*disarm)(void *arg, const struct wire_arm *want, struct err *e);
    int (*configure)(void *arg, const struct wire_config *want, struct err *e);
    /* What is asked for stays the app's until the answer: app_repl_take, app_debug_take or
     * app_repl_refused. */
    void (*eval)(void *arg, const struct wire_eval *want);
    /* WIRE_DEBUG, _PAUSE, _CATCH */
    void (*debug)(void *arg, enum wire_method method, const struct wire_debug *want);

    /* ---- its tables ---- */
    /* Begin what app->query.pending says, once nothing runs; answered by app_take_answer */
    void (*run_query)(void *arg);
    void (*cancel_query)(void *arg);
    /* Run the feeds that app_feed_next names, in turn; answered by app_take_feed. */
    void (*read_feeds)(void *arg);
    /* Moved out of *m; answered by app_repl_take_query. */
    void (*run_magic)(void *arg, struct magic *m, int cols);
    void (*cancel_magic)(void *arg);
};

/* Does nothing: for pictures of a screen, where nobody presses keys. */
extern const struct app_host app_host_none;

#endif
