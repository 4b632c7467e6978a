/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_formats: the renderers behind the rows of export_formats (export.c). One file each; pure: data to text.
 */
#ifndef CLIENT_EXPORT_EXPORT_FORMATS_H
#define CLIENT_EXPORT_EXPORT_FORMATS_H

#include "base/err.h"
#include "base/strbuf.h"
#include "client/export/export.h"

/* 0, or -1 with the error. */
int export_render_json(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_folded(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_svg(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_pprof(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_speedscope(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_perfetto(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_txt(const struct export_data *data, struct strbuf *out, struct err *e);

/* Names as lines of the folded export have them, cleaned: "func (file.py:12)", "process 12", "thread NAME (TID)". */
void export_put_frame(struct strbuf *out, const struct model_frame *frame, bool by_function);
void export_put_process(struct strbuf *out, const struct export_data *data);
void export_put_thread(struct strbuf *out, const struct export_data *data, int64_t tid);

/* A format without a renderer, or with --sql: of the target at `addr`, which was reached. */
int export_run_tables(const struct export_request *request, double duration_s, struct target_address *addr,
                      struct strbuf *out, struct err *e);

#endif
