/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: any text as what is typed, pasted, completed and drawn in the SQL editor, as a file of the history, and as values in a
 * sheet and a pager.
 *
 * The first byte chooses what of these (two bits), the place of the cursor and the width; the rest is the text.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/history.h"
#include "client/sql/result_stats.h"
#include "client/sql/sql_complete.h"
#include "tui/view/editor.h"
#include "tui/view/pager.h"
#include "tui/view/sheet.h"

#define FUZZ_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_editor(const char *text, unsigned choice, struct grid *g) {
    struct editor e;
    struct sql_completion done;
    static struct catalog *c; /* it stays as it is */
    int row, col;
    c = c ? c : catalog_of_definitions();
    if (editor_init(&e) != 0 || !c)
        abort();
    editor_paste(&e, text);
    e.cursor = e.len ? choice % (e.len + 1) : 0;
    while (e.cursor > 0 && ((unsigned char)e.text[e.cursor] & 0xc0) == 0x80)
        e.cursor--;
    if (sql_complete(&done, c, e.text, e.cursor) != 0 || done.from > done.to || done.to > e.len)
        abort();
    if (done.n) {
        (void)sql_complete_common(&done);
        editor_replace(&e, done.from, done.to, done.items[done.n - 1].text);
    }
    sql_complete_fini(&done);
    for (enum action a = ACTION_EDIT_LEFT; a <= ACTION_EDIT_REDO; a++) {
        (void)editor_act(&e, a);
        if (e.cursor > e.len || strlen(e.text) != e.len)
            abort();
        if ((unsigned)a % 4 != choice % 4) /* drawing takes the longest */
            continue;
        editor_mark_error(&e, (long)choice);
        editor_draw(&e, g, grid_rect(g), &row, &col);
        if (row < 0 || row >= g->rows || col < 0 || col >= g->cols)
            abort();
    }
    editor_fini(&e);
}

static void fuzz_values(const char *text, size_t len, unsigned choice, struct grid *g) {
    struct result *r = result_new(2, 8, 1 << 20);
    struct sheet s;
    struct pager p;
    if (!r || result_name_column(r, 0, text, "timestamp") != 0)
        abort();
    for (int i = 0; i < 3; i++) {
        double number = 0;
        memcpy(&number, text, len < sizeof number ? len : sizeof number);
        if (result_add_row(r) != 0 || result_put_text(r, 1, SQL_TEXT, text, len) != 0)
            abort();
        result_put_real(r, 0, i ? number : (double)len);
    }
    result_unref(result_describe(r, 0));
    result_unref(result_frequency(r, 1));
    if (sheet_init(&s, r) != 0 || pager_init(&p, text, len) != 0)
        abort();
    for (enum action a = ACTION_SHEET_OPEN; a <= ACTION_SHEET_LAST_COLUMN; a++) {
        (void)sheet_act(&s, a);
        if ((unsigned)a % 4 == choice % 4)
            sheet_draw(&s, g, grid_rect(g), true);
    }
    pager_draw(&p, g, grid_rect(g));
    pager_fini(&p);
    sheet_fini(&s);
}

static void fuzz_history(const uint8_t *data, size_t size) {
    char path[64];
    struct history h;
    struct err e;
    int fd = memfd_create("history", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)history_open(&h, path, &e); /* a link: refused */
    history_fini(&h);
    (void)close(fd);
    (void)snprintf(path, sizeof path, "/dev/shm/fuzz_history.%d", (int)getpid());
    FILE *f = fopen(path, "w");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
    if (history_open(&h, path, &e) != 0 || history_add(&h, "SELECT 1;", &e) != 0 || h.n == 0 ||
        strcmp(h.entries[h.n - 1], "SELECT 1;") != 0)
        abort();
    history_fini(&h);
    (void)unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[FUZZ_MAX + 1];
    struct grid g;
    if (size < 1)
        return 0;
    size_t len = size - 1 < FUZZ_MAX ? size - 1 : FUZZ_MAX;
    memcpy(text, data + 1, len);
    text[len] = '\0';
    if (grid_init(&g, 5, 10 + data[0] % 40) != 0)
        abort();
    g.ascii = data[0] & 1;
    if (data[0] >> 6 == 0)
        fuzz_history(data + 1, len);
    else if (data[0] >> 6 == 1)
        fuzz_values(text, len, data[0], &g);
    else
        fuzz_editor(text, data[0], &g);
    grid_fini(&g);
    return 0;
}
