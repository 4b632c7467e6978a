/* SPDX-License-Identifier: Apache-2.0 */
/* stack: see stack.h. */
#include "tui/view/stack.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/model/data.h"

#define STACK_DEPTH_COLS 4
#define STACK_WAITS_ROWS 4 /* with less, frames need the room */

void stack_follow(struct stack_pane *p, const struct model_thread *t) {
    int n = t ? (int)t->n_frames : 0;
    int64_t tid = t ? t->tid : 0;
    if (tid != p->tid) {
        p->tid = tid;
        p->list.selected = p->list.top = 0;
    } else if (p->list.selected > 0) {
        /* Outer frames last longer than inner ones: keep the distance from the outermost. */
        int by = n - p->n_frames;
        p->list.selected = p->list.selected + by > 0 ? p->list.selected + by : 0;
        p->list.top = p->list.top + by > 0 ? p->list.top + by : 0;
    }
    p->n_frames = n;
    list_fit(&p->list, n, p->list.page);
}

/* The text in the column of functions: for a native frame without a name its place in the
 * module. */
static const char *stack_label(const struct model_frame *f, char *buf, size_t cap) {
    const char *slash = f->module ? strrchr(f->module, '/') : NULL;
    if (f->func)
        return f->func;
    if (f->kind != MODEL_FRAME_NATIVE || (!f->module && !f->address))
        return "?";
    snprintf(buf, cap, "%.80s%s0x%llx",
             slash       ? slash + 1
             : f->module ? f->module
                         : "",
             f->module ? "+" : "", (unsigned long long)f->address);
    return buf;
}

/* And in the column of files. */
static const char *stack_file(const struct model_frame *f) {
    if (f->file || f->kind != MODEL_FRAME_NATIVE)
        return f->file ? f->file : "?";
    return f->module ? f->module : f->address || f->func ? "" : "native frames here are not known";
}

int stack_func_cols(const struct model_thread *t, int cols) {
    int most = cols * 45 / 100, width = 12;
    for (size_t i = 0; i < t->n_frames && width < most; i++) {
        char label[128];
        int w = text_width(stack_label(&t->frames[i], label, sizeof label));
        if (w > width)
            width = w;
    }
    return width > most ? most : width;
}

void stack_draw_frame(const struct model_frame *f, int depth, int func_cols, int scroll, struct grid *g,
                      struct rect area, int row) {
    char line[32], file[2048], label[128];
    snprintf(line, sizeof line, "%d", depth);
    grid_text_fit(g, area, row, 0, STACK_DEPTH_COLS, ROLE_DEPTH, GRID_RIGHT, line);
    int col = STACK_DEPTH_COLS + 1;
    enum theme_role role = data_frame_role(f);
    const char *func = stack_label(f, label, sizeof label);
    grid_text_scroll(g, area, row, col, func_cols, scroll, role, GRID_LEFT, func);
    col += func_cols + 2;
    if (f->line > 0)
        snprintf(line, sizeof line, ":%d", f->line);
    else
        snprintf(line, sizeof line, f->kind == MODEL_FRAME_PYTHON ? ":?" : "");
    text_sanitize(file, sizeof file, stack_file(f));
    int room = area.cols - col - text_width(line), width = grid_text_width(g, file);
    if (room > 0)
        grid_text_scroll(g, area, row, col, room, scroll, ROLE_FILE, GRID_TAIL, file);
    /* The sign of a file that is scrolled away stays. */
    if (scroll > 0 && width > 0)
        width = width > scroll ? width - scroll : 1;
    grid_text(g, area, row, col + (width < room ? width : room), ROLE_LINE, line);
}

/* The thread's relation to the GIL, if it is worth a word. */
static bool stack_gil_text(const struct model_thread *t, char *buf, size_t cap) {
    double s = t->gil_for_us / 1e6;
    if (t->gc == 1)
        snprintf(buf, cap, ", collecting garbage");
    else if (t->gil == MODEL_GIL_WAITING && s > 0)
        snprintf(buf, cap, ", waiting for the GIL for at least %.1f s", s);
    else if (t->gil == MODEL_GIL_WAITING)
        snprintf(buf, cap, ", waiting for the GIL");
    else
        return false;
    return true;
}

static void stack_draw_title(const struct stack_pane *p, const struct model_thread *t, bool focused,
                             struct grid *g, struct rect area) {
    enum theme_role role = focused ? ROLE_TITLE_FOCUS : ROLE_TITLE;
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    if (!t) {
        grid_text(g, area, 0, 0, role, " Stack ");
        return;
    }
    char name[128];
    text_sanitize(name, sizeof name, data_thread_name(t));
    name[text_fit(name, 40)] = '\0';
    int col = grid_printf(g, area, 0, 0, role, " Stack of %s (%lld) ", name, (long long)t->tid);
    col += grid_printf(g, area, 0, col, ROLE_TABLE_HEAD, " %zu frame%s", t->n_frames,
                       t->n_frames == 1 ? "" : "s");
    char gil[64];
    if (stack_gil_text(t, gil, sizeof gil))
        col += grid_text(g, area, 0, col, ROLE_TABLE_HEAD, gil);
    if (t->native == MODEL_NATIVE_APART)
        col += grid_text(g, area, 0, col, ROLE_STATUS_ON, " native frames first: they do not fit together ");
    if (t->native == MODEL_NATIVE_UNKNOWN)
        col += grid_text(g, area, 0, col, ROLE_STATUS_ON, " native frames not known ");
    if (t->torn)
        col += grid_text(g, area, 0, col, ROLE_STATUS_ON, " moved while it was read ");
    if (t->truncated)
        col += grid_text(g, area, 0, col, ROLE_STATUS_ON, " outermost frames left out ");
    if (p->list.count > p->list.page) {
        char place[48];
        snprintf(place, sizeof place, "%d-%d ", p->list.top, p->list.top + p->list.page - 1);
        int width = text_width(place);
        if (col + width < area.cols)
            grid_text(g, area, 0, area.cols - width, ROLE_TABLE_HEAD, place);
    }
}

void stack_draw(struct stack_pane *p, const struct model_thread *t, const char *waits,
                const struct match *search, bool focused, struct grid *g, struct rect area) {
    p->head = waits[0] && area.rows >= STACK_WAITS_ROWS ? 2 : 1;
    list_fit(&p->list, t ? (int)t->n_frames : 0, area.rows - p->head);
    stack_draw_title(p, t, focused, g, area);
    if (p->head > 1) {
        bool dead = t && t->wait.flags & MODEL_WAIT_DEADLOCK;
        int col = grid_text(g, area, 1, 1, ROLE_MUTED, dead ? "DEADLOCK: waits for " : "waits for ") + 1;
        grid_text_fit(g, area, 1, col, area.cols - col, dead ? ROLE_STATE_STOP : ROLE_TEXT, GRID_LEFT, waits);
    }
    if (t && t->n_frames == 0)
        grid_text(g, area, p->head, 1, ROLE_MUTED,
                  t->has_python ? "no Python frame right now" : "a native thread: it has no Python stack");
    int func_cols = t ? stack_func_cols(t, area.cols) : 0;
    for (int i = 0; i < p->list.page && p->list.top + i < p->list.count; i++) {
        int depth = p->list.top + i;
        stack_draw_frame(&t->frames[depth], depth, func_cols, p->scroll, g, area, i + p->head);
        struct rect row = {area.row + i + p->head, area.col, 1, area.cols};
        if (focused && depth == p->list.selected)
            grid_restyle(g, row, ROLE_SELECTION);
        match_highlight(search, g, row, 0);
    }
}

int stack_search(const struct model_thread *t, const struct match *m, int from, int step) {
    int n = t ? (int)t->n_frames : 0;
    for (int i = 0; i < n; i++) {
        int at = ((from + i * step) % n + n) % n;
        if (match_text(m, t->frames[at].func) || match_text(m, t->frames[at].file) ||
            match_text(m, t->frames[at].module))
            return at;
    }
    return -1;
}
