/* SPDX-License-Identifier: Apache-2.0 */
/* tensors_one: see tensors_one.h. */
#include "tui/screens/tensors/tensors_one.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static void tensor_one_query(const char *table, int64_t id, char *buf, size_t cap) {
    (void)snprintf(buf, cap, "SELECT * FROM %s WHERE id = %lld", table, (long long)id);
}

void tensor_one_ask(struct app *app, const struct tensor_row *t) {
    char text[APP_FEED_TEXT], size[24];
    const struct app_feed *f = app_feed_get(app, FEED_TENSOR);
    if (t->id == APP_FEED_UNKNOWN) {
        app_refuse(app, "this tensor has no id to be asked by");
        return;
    }
    if (f->wanted || f->running) {
        app_message(app, false, "the values of the one before are still being read");
        return;
    }
    text_human_bytes(size, sizeof size, t->bytes);
    tensor_one_query("python.tensor_statistics", t->id, text, sizeof text);
    app_feed_ask(app, FEED_TENSOR, text);
    tensor_one_query("python.tensor_holders", t->id, text, sizeof text);
    app_feed_ask(app, FEED_HOLDERS, text);
    app_message(app, false, "its values (%s, in slices) and what holds it were asked for", size);
}

/* The feed, if it is of that tensor; NULL it is of none or another. */
static const struct app_feed *tensor_one_feed(const struct app *app, enum app_feed_id id, const char *table,
                                              const struct tensor_row *t) {
    char text[APP_FEED_TEXT];
    const struct app_feed *f = app_feed_get(app, id);
    tensor_one_query(table, t->id, text, sizeof text);
    return strcmp(f->text, text) == 0 ? f : NULL;
}

/* Why there are no rows of a feed; false: there are. */
static bool tensor_one_why(struct facts *f, const struct app_feed *feed) {
    bool is_busy = feed->wanted || feed->running;
    if (is_busy)
        facts_add(f, "", ROLE_MUTED, "reading ...");
    else if (feed->failed_s > 0)
        facts_add(f, "", ROLE_STATUS_BAD, "%s", feed->error.text);
    else if (!feed->rows || !feed->rows->n_rows)
        facts_add(f, "", ROLE_MUTED, "%s", feed->note[0] ? feed->note : "it is not there any more");
    else
        return false;
    return true;
}

static void tensor_one_add_holders(struct facts *f, const struct app_feed *feed) {
    const struct result *rows = feed->rows;
    facts_add(f, "", ROLE_TITLE, "held by");
    if (tensor_one_why(f, feed))
        return;
    for (size_t i = 0; i < rows->n_rows; i++) {
        const char *holder = app_feed_text(rows, i, app_feed_column(rows, "holder"));
        const char *kind = app_feed_text(rows, i, app_feed_column(rows, "kind"));
        const char *root = app_feed_text(rows, i, app_feed_column(rows, "root"));
        facts_add(f, kind ? kind : "?", ROLE_FUNC, "%s%s%s", holder ? holder : "?", root ? "   in " : "",
                  root ? root : "");
    }
}

void tensor_one_add(struct facts *f, const struct app *app, const struct tensor_row *t,
                    const struct grid *g) {
    static const char *const but[] = {"rank",  "host",   "pid",       "id", "shape",
                                      "dtype", "device", "histogram", NULL};
    const struct app_feed *values = tensor_one_feed(app, FEED_TENSOR, "python.tensor_statistics", t);
    const struct app_feed *holders = tensor_one_feed(app, FEED_HOLDERS, "python.tensor_holders", t);
    char size[24];
    if (!values || !holders) {
        text_human_bytes(size, sizeof size, t->bytes);
        facts_add(f, "", ROLE_STATUS_ON, "v reads its values (%s, in slices), and what holds it", size);
        return;
    }
    facts_add(f, "", ROLE_TITLE, "values");
    if (!tensor_one_why(f, values)) {
        const char *histogram = app_feed_text(values->rows, 0, app_feed_column(values->rows, "histogram"));
        facts_add_row(f, values->rows, 0, but);
        if (histogram)
            facts_add_bars(f, g, "histogram", histogram);
        facts_add(f, "", ROLE_MUTED, "read in %.0f ms", values->elapsed_s * 1000);
    }
    tensor_one_add_holders(f, holders);
}
