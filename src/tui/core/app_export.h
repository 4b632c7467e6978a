/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_export: what the screens show, made into a job for the exporter: the text of the screen, the snapshot that is shown, or the
 * samples of the window that is shown, those that the screen has chosen. No new sampling. Pure but for a look whether a file is there; one thread.
 */
#ifndef TUI_CORE_APP_EXPORT_H
#define TUI_CORE_APP_EXPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "client/export/export.h"

struct app;
struct export_job;

/* Can the format be made of what is shown? Tables are not: NULL, or why not. */
const char *app_export_why_not(const struct app *app, const struct export_format *f);

/* A name for the file: what it is of, when, and the format. */
void app_export_name(const struct app *app, const struct export_format *f, char *buf, size_t cap);

/* Have it written to `path` ("~/" is the home folder). False, with a message, when it cannot be begun; `*exists` is set
 * when a file is there already and `overwrite` is not. */
bool app_export(struct app *app, const struct export_format *f, const char *path, bool overwrite,
                bool *exists);

/* It is done; takes the job. */
void app_export_done(struct app *app, struct export_job *job);

/* The rows that are shown as text, without what lies over the screen. */
void app_put_screen(struct app *app, struct strbuf *out);

#endif
