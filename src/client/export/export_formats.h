/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_formats: the renderers behind the rows of export_formats (export.c). One file each;
 * pure: data to text.
 */
#ifndef CLIENT_EXPORT_EXPORT_FORMATS_H
#define CLIENT_EXPORT_EXPORT_FORMATS_H

#include "base/err.h"
#include "base/strbuf.h"
#include "client/export/export.h"
#include "flame/flame_stacks.h"

/* 0, or -1 with the error. */
int export_render_json(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_folded(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_svg(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_pprof(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_speedscope(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_perfetto(const struct export_data *data, struct strbuf *out, struct err *e);
int export_render_txt(const struct export_data *data, struct strbuf *out, struct err *e);

/* The stacks of an export, to be written as its request says (flame/flame_stacks.h). */
struct flame_stacks export_get_stacks(const struct export_data *data);

/* The style and script of an SVG: the files export_svg.css and export_svg.js. Neither contains
 * "]]>". */
extern const char export_svg_style[];
extern const char export_svg_script[];

/* A format without a renderer, or with --sql: for the target at `addr`, which was reached. */
int export_run_tables(const struct export_request *request, double duration_s, struct target_address *addr,
                      struct strbuf *out, struct err *e);

#endif
