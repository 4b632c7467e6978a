/* SPDX-License-Identifier: Apache-2.0 */
/* sql_pick: the selected cell of a result and its row, as they are copied. */
#include "tui/pick.h"
#include "tui/screens/sql_state.h"

/* A value as it would be written into a file, without controls. */
static void sql_put_value(const struct rowset *r, size_t row, size_t column, struct strbuf *out) {
    struct strbuf text;
    strbuf_init(&text, PICK_MAX);
    rowset_put_whole(r, row, column, &text);
    pick_put_text(out, strbuf_str(&text));
    strbuf_fini(&text);
}

bool sql_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
              struct strbuf *whole) {
    const struct sql_state *s = state;
    const struct sql_view *v = s->n_views ? &s->views[s->n_views - 1] : NULL;
    (void)app;
    (void)what;
    if (!s->in_sheet || !v || !sql_view_is_sheet(v) || !sheet_has_cell(&v->sheet))
        return false;
    const struct rowset *r = v->sheet.rows;
    size_t row = sheet_row(&v->sheet, v->sheet.list.selected);
    bool first = true;
    sql_put_value(r, row, (size_t)v->sheet.column, one);
    for (size_t i = 0; i < r->n_columns; i++) {
        if (v->sheet.columns[i].hidden)
            continue;
        if (!first)
            (void)strbuf_addc(whole, '\t');
        first = false;
        sql_put_value(r, row, i, whole);
    }
    return true;
}
