/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen_picture: any tab as text, for --export txt --screen NAME: what a terminal of that size
 * would show.
 *
 * A screen of samples is fed with them while they arrive. One thread.
 */
#ifndef TUI_SCREEN_PICTURE_H
#define TUI_SCREEN_PICTURE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/model.h"
#include "base/strbuf.h"
#include "client/export/export.h"
#include "tui/core/app.h"

#define SCREEN_PICTURE_S 3.0    /* how long samples are taken by default */
#define SCREEN_PICTURE_MAX 1000 /* rows and columns */

struct screen_picture {
    const struct screen_def *def;
    int rows, cols;
    struct app *app;
    struct export_renderer renderer; /* for export_request.screen */
};

/* "flame|threads|top|..": the screens that can be pictured; owned by the call's static buffer. */
const char *screen_picture_names(void);

/* Begin a picture of the screen of that name. 0, or -1 with ERR_USAGE and a suggestion; call
 * screen_picture_fini after a failure, too, and after the export. */
int screen_picture_init(struct screen_picture *p, const char *name, int rows, int cols,
                        const struct app_config *config, struct err *e);
void screen_picture_fini(struct screen_picture *p);

/* Run the queries that the screen of an app wants, of a process or a job in a database; NULL: it is not one. */
void screen_picture_read_feeds(struct app *app, const struct target_address *addr, const char *job);

#endif
