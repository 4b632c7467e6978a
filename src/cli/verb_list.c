/* SPDX-License-Identifier: Apache-2.0 */
/* verb_list: the Python processes of this machine as a table. One row of list_columns is one
 * column. */
#include "cli/cli.h"

#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "client/export/document.h"
#include "client/output.h"
#include "client/target/target.h"
#include "client/target/target_tree.h"

#define LIST_CELL_MAX 256
#define LIST_GAP 2

struct list_options {
    struct cli_options common; /* first */
    bool tree;
};

static const struct option_def list_options[] = {
    {"tree", 0, OPTION_FLAG, offsetof(struct list_options, tree),
     .help = "show child processes below their parent"},
    {.name = NULL},
};

/* A process, and the branches of the tree before its command. */
struct list_row {
    const struct target_process *process;
    char prefix[TARGET_TREE_PREFIX];
};

struct list_column {
    const char *title;
    bool right; /* aligned right, for numbers */
    void (*format)(const struct target_process *p, char *buf, size_t cap);
};

static void list_pid(const struct target_process *p, char *buf, size_t cap) {
    snprintf(buf, cap, "%d", (int)p->pid);
}

static void list_user(const struct target_process *p, char *buf, size_t cap) {
    snprintf(buf, cap, "%s", p->user);
}

static void list_python(const struct target_process *p, char *buf, size_t cap) {
    snprintf(buf, cap, "%s", p->python[0] ? p->python : "?");
}

static void list_torch(const struct target_process *p, char *buf, size_t cap) {
    snprintf(buf, cap, "%s", p->torch[0] ? p->torch : "-");
}

static void list_cpu(const struct target_process *p, char *buf, size_t cap) {
    if (isnan(p->cpu_pct))
        snprintf(buf, cap, "?");
    else
        snprintf(buf, cap, "%.1f", p->cpu_pct);
}

static void list_rss(const struct target_process *p, char *buf, size_t cap) {
    text_human_bytes(buf, cap, p->rss_bytes);
}

static void list_uptime(const struct target_process *p, char *buf, size_t cap) {
    text_human_duration(buf, cap, p->uptime_s);
}

static void list_agent(const struct target_process *p, char *buf, size_t cap) {
    snprintf(buf, cap, "%s",
             p->held          ? "no answer"
             : p->attached    ? "yes"
             : p->inspectable ? "-"
             : p->readable    ? "outside"
                              : "refused");
}

static void list_command(const struct target_process *p, char *buf, size_t cap) {
    snprintf(buf, cap, "%s", p->cmdline);
}

static const struct list_column list_columns[] = {
    {"PID", true, list_pid},       {"USER", false, list_user},   {"PYTHON", false, list_python},
    {"TORCH", false, list_torch},  {"CPU%", true, list_cpu},     {"RSS", true, list_rss},
    {"UPTIME", true, list_uptime}, {"AGENT", false, list_agent}, {"COMMAND", false, list_command},
};

#define LIST_N_COLUMNS (sizeof list_columns / sizeof list_columns[0])

/* Append a cell's text; with `row` NULL the title. */
static void list_cell(const struct list_column *c, const struct list_row *row, char *buf, size_t cap) {
    char raw[4096];
    size_t used = row && c->format == list_command ? (size_t)snprintf(raw, sizeof raw, "%s", row->prefix) : 0;
    if (row)
        c->format(row->process, raw + used, sizeof raw - used);
    else
        snprintf(raw, sizeof raw, "%s", c->title);
    text_sanitize(buf, cap, raw);
}

static void list_put_row(struct strbuf *out, const struct list_row *p, const int *widths, int screen) {
    char cell[4096];
    int used = 0;
    for (size_t i = 0; i < LIST_N_COLUMNS; i++) {
        const struct list_column *c = &list_columns[i];
        list_cell(c, p, cell, sizeof cell);
        bool last = i + 1 == LIST_N_COLUMNS;
        if (last && screen > 0)
            cell[text_fit(cell, screen > used ? screen - used : 0)] = '\0';
        int pad = last ? 0 : widths[i] - text_width(cell);
        strbuf_addf(out, "%*s%s%*s", c->right ? pad : 0, "", cell, last ? 0 : (c->right ? 0 : pad) + LIST_GAP,
                    "");
        used += widths[i] + LIST_GAP;
    }
    strbuf_addc(out, '\n');
}

/* The listeners of the processes with an agent: a table below the other, if there are any. */
static void list_put_endpoints(struct strbuf *out, const struct target_process *list, size_t n) {
    int width = (int)strlen("ADDRESS");
    bool any = false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < list[i].doors.n; k++) {
            int w = text_width(list[i].doors.all[k].address);
            width = w > width ? w : width;
            any = true;
        }
    if (any)
        strbuf_addf(out, "\n%7s  %-8s  %-*s  %s\n", "PID", "LISTENER", width, "ADDRESS", "ACCESS");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < list[i].doors.n; k++) {
            const struct endpoints_one *one = &list[i].doors.all[k];
            char address[LIST_CELL_MAX];
            text_sanitize(address, sizeof address, one->address);
            int pad = width - text_width(address);
            strbuf_addf(out, "%7d  %-8s  %s%*s  %s%s\n", (int)list[i].pid, endpoints_kinds[one->kind].title,
                        address, pad > 0 ? pad : 0, "", endpoints_who(one),
                        one->kind != ENDPOINTS_UNIX ? ""
                        : list[i].doors.eval == 0   ? "; probing.eval is off"
                        : list[i].doors.eval < 0    ? "; other listeners are unknown"
                                                    : "");
        }
}

static void list_put_table(struct strbuf *out, const struct list_row *list, size_t n) {
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
    int screen = output_columns();
    list_put_row(out, NULL, widths, screen);
    for (size_t k = 0; k < n; k++)
        list_put_row(out, &list[k], widths, screen);
}

/* The rows in order: by pid, or as a tree. NULL without memory. */
static struct list_row *list_make_rows(const struct target_process *list, size_t n, bool tree) {
    struct list_row *rows = calloc(n + 1, sizeof *rows);
    const struct target_process **plain = calloc(n + 1, sizeof *plain);
    struct target_tree_row *arranged = calloc(n + 1, sizeof *arranged);
    bool ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    for (size_t i = 0; plain && i < n; i++)
        plain[i] = &list[i];
    if (rows && plain && arranged && tree)
        target_tree_arrange(plain, n, arranged);
    for (size_t i = 0; rows && plain && arranged && i < n; i++) {
        rows[i].process = tree ? arranged[i].process : plain[i];
        if (tree)
            target_tree_prefix(&arranged[i], ascii, rows[i].prefix);
    }
    if (!plain || !arranged) {
        free(rows);
        rows = NULL;
    }
    free(plain);
    free(arranged);
    return rows;
}

static int list_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                     struct err *e) {
    const struct list_options *mine = (const struct list_options *)(const void *)o;
    (void)addr;
    char hidden[TARGET_HIDDEN_MAX];
    struct target_process *list;
    int rc = 0;
    target_sweep();
    target_hidden(hidden, sizeof hidden);
    ssize_t n = target_list(&list, e);
    if (n < 0)
        return -1;
    if (o->json) {
        struct json j;
        json_init(&j, out, 2);
        document_put_processes(&j, list, (size_t)n, hidden);
        strbuf_addc(out, '\n');
    } else {
        struct list_row *rows = list_make_rows(list, (size_t)n, mine->tree);
        if (rows)
            list_put_table(out, rows, (size_t)n);
        if (rows)
            list_put_endpoints(out, list, (size_t)n);
        else
            rc = err_set(e, ERR_FAILED, "out of memory for the list of processes");
        free(rows);
        for (ssize_t i = 0; i < n; i++)
            if (list[i].held)
                strbuf_addf(out, "(%s)\n", list[i].why_not);
        if (hidden[0])
            strbuf_addf(out, "(%s)\n", hidden);
    }
    target_list_free(list, (size_t)n);
    return rc;
}

const struct cli_verb verb_list = {
    .name = "list",
    .aliases = "ps ls",
    .group = "Look",
    .help = "Python processes on this machine, and whether you can attach",
    .example = "probing list --tree",
    .options = list_options,
    .options_size = sizeof(struct list_options),
    .exec = list_exec,
};
