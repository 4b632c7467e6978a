/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_formats: the renderers behind the rows of export_formats (export.c). One file each; pure: data to text.
 */
#ifndef CLIENT_EXPORT_FORMATS_H
#define CLIENT_EXPORT_FORMATS_H

#include "base/err.h"
#include "base/strbuf.h"
#include "client/export.h"

/* 0, or -1 with the error. */
int export_render_json(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_folded(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_txt(const struct export_data *data, struct strbuf *out, struct err *e);

/* A format without a renderer, or with --sql: of the target at `addr`, which was reached. */
int export_run_tables(const struct export_request *request, double duration_s, struct session_address *addr,
                      struct strbuf *out, struct err *e);

#endif
