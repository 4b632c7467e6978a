/* SPDX-License-Identifier: Apache-2.0 */
/* sql_pick: the selected cell of a result and its row, as they are copied. */
#include "tui/core/pick.h"
#include "tui/screens/sql/sql_state.h"

/* A value as it would be written into a file, without controls. */
static void sql_put_value(const struct rowset *r, size_t row, size_t column, struct strbuf *out) {
    struct strbuf text;
    strbuf_init(&text, PICK_MAX);
    rowset_put_whole(r, row, column, &text);
    pick_put_text(out, strbuf_str(&text));
    strbuf_fini(&text);
}

/* A row, tabs between its values; what is hidden is left out. */
static void sql_put_row(const struct sheet *sheet, size_t row, struct strbuf *out) {
    bool first = true;
    for (size_t i = 0; i < sheet->rows->n_columns; i++) {
        if (sheet->columns[i].hidden)
            continue;
        if (!first)
            (void)strbuf_addc(out, '\t');
        first = false;
        sql_put_value(sheet->rows, row, i, out);
    }
}

/* The sheet that has the keys; NULL none does. */
static struct sheet *sql_sheet(struct sql_state *s) {
    struct sql_view *v = sql_top_view(s);
    return s->in_sheet && v && sql_view_is_sheet(v) ? &v->sheet : NULL;
}

static const struct sheet *sql_sheet_of(const void *state) {
    const struct sql_state *s = state;
    const struct sql_view *v = s->n_views ? &s->views[s->n_views - 1] : NULL;
    return s->in_sheet && v && sql_view_is_sheet(v) ? &v->sheet : NULL;
}

bool sql_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
              struct strbuf *whole) {
    const struct sheet *sheet = sql_sheet_of(state);
    (void)app;
    (void)what;
    if (!sheet || !sheet_has_cell(sheet))
        return false;
    size_t row = sheet_row(sheet, sheet->list.selected);
    sql_put_value(sheet->rows, row, (size_t)sheet->column, one);
    sql_put_row(sheet, row, whole);
    return true;
}

/* ---- tagged rows ---- */

static struct tags *sql_tags(void *state, struct app *app) {
    struct sheet *sheet = sql_sheet(state);
    (void)app;
    return sheet ? &sheet->tags : NULL;
}

static int sql_count_rows(const void *state, const struct app *app) {
    (void)app;
    return (int)sheet_rows(sql_sheet_of(state));
}

static int sql_selected_row(const void *state, const struct app *app) {
    const struct sheet *sheet = sql_sheet_of(state);
    (void)app;
    return sheet_has_cell(sheet) ? sheet->list.selected : -1;
}

static uint64_t sql_key(const void *state, const struct app *app, int row) {
    (void)app;
    return sheet_row(sql_sheet_of(state), row);
}

static void sql_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                    struct strbuf *one, struct strbuf *whole) {
    const struct sheet *sheet = sql_sheet_of(state);
    (void)app;
    (void)what;
    sql_put_value(sheet->rows, sheet_row(sheet, row), (size_t)sheet->column, one);
    sql_put_row(sheet, sheet_row(sheet, row), whole);
}

static void sql_renew_rows(void *state, struct app *app) {
    (void)app;
    sheet_renew_rows(sql_sheet(state));
}

const struct screen_rows sql_tagged = {.tags = sql_tags,
                                       .count = sql_count_rows,
                                       .selected = sql_selected_row,
                                       .key = sql_key,
                                       .put = sql_put,
                                       .renew = sql_renew_rows};
