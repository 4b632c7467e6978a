/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_export: makes a job for the exporter from what the screens show: the text of the screen, the
 * snapshot, or the samples of the window, as the screen has selected them. It takes no new samples.
 * Pure but for a check whether a file exists; one thread.
 */
#ifndef TUI_CORE_APP_EXPORT_H
#define TUI_CORE_APP_EXPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "client/export/export.h"

struct app;
struct export_job;

/* Why the format cannot be made from what is shown (tables cannot); NULL: it can. */
const char *app_export_why_not(const struct app *app, const struct export_format *f);

/* A name for the file: the target, the time and the format. */
void app_export_name(const struct app *app, const struct export_format *f, char *buf, size_t cap);

/* Write it to `path` ("~/" is the home folder). False, with a message, if it cannot begin;
 * `*exists` is set if the file exists and `overwrite` is not. */
bool app_export(struct app *app, const struct export_format *f, const char *path, bool overwrite,
                bool *exists);

/* The job is done; takes ownership. */
void app_export_done(struct app *app, struct export_job *job);

/* The rows that are shown, as text, without overlays. */
void app_put_screen(struct app *app, struct strbuf *out);

#endif
