/* SPDX-License-Identifier: Apache-2.0 */
/* export_json: the document of `probing backtrace --json`, with aggregated samples when it looked for a while. */
#include "client/export/export_formats.h"

#include "base/json.h"
#include "client/export/document.h"

int export_render_json(const struct export_data *data, struct strbuf *out, struct err *e) {
    struct json j;
    json_init(&j, out, 2);
    struct wire_threads want = {.locals = data->request->locals};
    document_put_backtrace(&j, data->target, data->snapshot, &want, data->elapsed_s > 0 ? data->fold : NULL,
                           data->elapsed_s);
    (void)strbuf_addc(out, '\n');
    if (json_finish(&j) != 0 || out->failed)
        return err_set(e, ERR_FAILED, "out of memory for the JSON document");
    return 0;
}
