/* SPDX-License-Identifier: Apache-2.0 */
/* verb_list: the Python processes of this machine as a table. One row of list_columns is one column. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "client/document.h"
#include "client/target.h"

#define LIST_CELL_MAX 256
#define LIST_GAP 2

struct list_column {
    const char *title;
    bool right; /* numbers */
    void (*format)(const struct target_process *p, char *buf, size_t cap);
};

static void list_pid(const struct target_process *p, char *buf, size_t cap) {
    (void)snprintf(buf, cap, "%d", (int)p->pid);
}

static void list_user(const struct target_process *p, char *buf, size_t cap) {
    (void)snprintf(buf, cap, "%s", p->user);
}

static void list_python(const struct target_process *p, char *buf, size_t cap) {
    (void)snprintf(buf, cap, "%s", p->python[0] ? p->python : "?");
}

static void list_torch(const struct target_process *p, char *buf, size_t cap) {
    (void)snprintf(buf, cap, "%s", p->torch[0] ? p->torch : "-");
}

static void list_cpu(const struct target_process *p, char *buf, size_t cap) {
    if (isnan(p->cpu_pct))
        (void)snprintf(buf, cap, "?");
    else
        (void)snprintf(buf, cap, "%.1f", p->cpu_pct);
}

static void list_rss(const struct target_process *p, char *buf, size_t cap) {
    text_human_bytes(buf, cap, p->rss_bytes);
}

static void list_uptime(const struct target_process *p, char *buf, size_t cap) {
    text_human_duration(buf, cap, p->uptime_s);
}

static void list_agent(const struct target_process *p, char *buf, size_t cap) {
    (void)snprintf(buf, cap, "%s",
                   p->attached      ? "yes"
                   : p->inspectable ? "-"
                   : p->readable    ? "outside"
                                    : "refused");
}

static void list_command(const struct target_process *p, char *buf, size_t cap) {
    (void)snprintf(buf, cap, "%s", p->cmdline);
}

static const struct list_column list_columns[] = {
    {"PID", true, list_pid},       {"USER", false, list_user},   {"PYTHON", false, list_python},
    {"TORCH", false, list_torch},  {"CPU%", true, list_cpu},     {"RSS", true, list_rss},
    {"UPTIME", true, list_uptime}, {"AGENT", false, list_agent}, {"COMMAND", false, list_command},
};

#define LIST_N_COLUMNS (sizeof list_columns / sizeof list_columns[0])

/* A cell's text; `p` NULL is the title. */
static void list_cell(const struct list_column *c, const struct target_process *p, char *buf, size_t cap) {
    char raw[4096];
    if (p)
        c->format(p, raw, sizeof raw);
    else
        (void)snprintf(raw, sizeof raw, "%s", c->title);
    (void)text_sanitize(buf, cap, raw);
}

static void list_put_row(struct strbuf *out, const struct target_process *p, const int *widths, int screen) {
    char cell[4096];
    int used = 0;
    for (size_t i = 0; i < LIST_N_COLUMNS; i++) {
        const struct list_column *c = &list_columns[i];
        list_cell(c, p, cell, sizeof cell);
        bool last = i + 1 == LIST_N_COLUMNS;
        if (last && screen > 0)
            cell[text_fit(cell, screen > used ? screen - used : 0)] = '\0';
        int pad = last ? 0 : widths[i] - text_width(cell);
        (void)strbuf_addf(out, "%*s%s%*s", c->right ? pad : 0, "", cell,
                          last ? 0 : (c->right ? 0 : pad) + LIST_GAP, "");
        used += widths[i] + LIST_GAP;
    }
    (void)strbuf_addc(out, '\n');
}

/* Columns of the terminal, or 0 when the output is none: then nothing is cut. */
static int list_screen_width(void) {
    struct winsize w;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

static void list_put_table(struct strbuf *out, const struct target_process *list, size_t n) {
    int widths[LIST_N_COLUMNS];
    char cell[LIST_CELL_MAX];
    for (size_t i = 0; i < LIST_N_COLUMNS; i++) {
        widths[i] = (int)strlen(list_columns[i].title);
        for (size_t k = 0; k < n && i + 1 < LIST_N_COLUMNS; k++) {
            list_cell(&list_columns[i], &list[k], cell, sizeof cell);
            int w = text_width(cell);
            widths[i] = w > widths[i] ? w : widths[i];
        }
    }
    int screen = list_screen_width();
    list_put_row(out, NULL, widths, screen);
    for (size_t k = 0; k < n; k++)
        list_put_row(out, &list[k], widths, screen);
}

int cli_run_list(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                 struct err *e) {
    (void)addr;
    char hidden[TARGET_HIDDEN_MAX];
    struct target_process *list;
    target_sweep();
    target_hidden(hidden, sizeof hidden);
    ssize_t n = target_list(&list, e);
    if (n < 0)
        return -1;
    if (o->json) {
        struct json j;
        json_init(&j, out, 2);
        document_put_processes(&j, list, (size_t)n, hidden);
        (void)strbuf_addc(out, '\n');
    } else {
        list_put_table(out, list, (size_t)n);
        if (hidden[0])
            (void)strbuf_addf(out, "(%s)\n", hidden);
    }
    target_list_free(list, (size_t)n);
    return 0;
}
