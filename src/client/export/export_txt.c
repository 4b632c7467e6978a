/* SPDX-License-Identifier: Apache-2.0 */
/* export_txt: the screen as text; drawn by whoever has screens. */
#include "client/export/export_formats.h"

int export_render_txt(const struct export_data *data, struct strbuf *out, struct err *e) {
    const struct export_renderer *screen = data->request->screen;
    return screen->render(screen->arg, data->address, data->target, data->snapshot, out, e);
}
