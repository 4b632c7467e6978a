/* SPDX-License-Identifier: Apache-2.0 */
/* export_flame: stacks as lines and as a picture, written by src/flame. */
#include <time.h>

#include "client/export/export_formats.h"
#include "flame/flame_svg.h"

#define EXPORT_SVG_THRESHOLD_PCT 0.01
#define EXPORT_SVG_FRAMES 20000 /* a browser has to move them all */

/* Files of this folder that the assembler includes unchanged (mk/build.mk knows of them). */
__asm__(".pushsection .rodata\n"
        ".global export_svg_style\n"
        ".hidden export_svg_style\n"
        ".type export_svg_style, @object\n"
        "export_svg_style:\n"
        ".incbin \"src/client/export/export_svg.css\"\n"
        ".byte 0\n"
        ".size export_svg_style, . - export_svg_style\n"
        ".global export_svg_script\n"
        ".hidden export_svg_script\n"
        ".type export_svg_script, @object\n"
        "export_svg_script:\n"
        ".incbin \"src/client/export/export_svg.js\"\n"
        ".byte 0\n"
        ".size export_svg_script, . - export_svg_script\n"
        ".popsection\n");

struct flame_stacks export_get_stacks(const struct export_data *data) {
    const struct export_request *r = data->request;
    return (struct flame_stacks){.counts = data->counts,
                                 .pid = data->target->pid,
                                 .process = r->process,
                                 .threads = r->threads,
                                 .by_function = r->by_function,
                                 .in_us = r->unit == EXPORT_US};
}

int export_render_folded(const struct export_data *data, struct strbuf *out, struct err *e) {
    struct flame_stacks stacks = export_get_stacks(data);
    if (flame_stacks_put_folded(&stacks, out) == 0)
        return 0;
    out->failed = true;
    return err_set(e, ERR_FAILED, "out of memory for the folded stacks");
}

/* The start of the sampling, as text in `buf`; NULL if unknown. */
static const char *export_began(const struct export_data *data, char *buf, size_t cap) {
    time_t from = (time_t)(data->until_s - data->elapsed_s);
    struct tm tm;
    bool is_known = data->until_s > 0 && data->until_s < 1e11 && gmtime_r(&from, &tm) &&
                    strftime(buf, cap, "%Y-%m-%d %H:%M:%S UTC", &tm);
    return is_known ? buf : NULL;
}

int export_render_svg(const struct export_data *data, struct strbuf *out, struct err *e) {
    char began[64];
    struct flame_svg picture = {.stacks = export_get_stacks(data),
                                .target = data->target,
                                .choice = data->choice,
                                .style = export_svg_style,
                                .script = export_svg_script,
                                .elapsed_s = data->elapsed_s,
                                .began = export_began(data, began, sizeof began),
                                .threshold_pct = EXPORT_SVG_THRESHOLD_PCT,
                                .max_frames = EXPORT_SVG_FRAMES};
    picture.stacks.in_us = data->request->unit != EXPORT_SAMPLES; /* time, if there is any */
    return flame_svg_put(&picture, out) == 0 ? 0
                                             : err_set(e, ERR_FAILED, "out of memory for the flame graph");
}
