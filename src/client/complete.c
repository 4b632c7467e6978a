/* SPDX-License-Identifier: Apache-2.0 */
/* complete: see complete.h. */
#include "client/complete.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/err.h"
#include "base/text.h"
#include "client/jobs/jobs_here.h"
#include "client/sql/catalog.h"
#include "client/sql/sql_complete.h"
#include "client/target/target.h"

#define COMPLETE_HELP_COLS 200 /* the shells cut it to their width */
/* Who pressed Tab waits for it. Most machines need some 20 ms. */
#define COMPLETE_LIST_MS 500U

void complete_init(struct complete *c, struct strbuf *out, const char *word) {
    *c = (struct complete){.out = out, .word = word, .part = word};
}

/* Append a line: what stands before the completed part, and the new part. */
static void complete_add(struct complete *c, const char *text, const char *help) {
    char shown[512];
    text_sanitize(shown, sizeof shown, help ? help : "");
    size_t fits = text_fit(shown, COMPLETE_HELP_COLS);
    strbuf_addf(c->out, "%.*s%s\t%.*s\n", (int)(c->part - c->word), c->word, text, (int)fits, shown);
    c->n++;
}

void complete_put(struct complete *c, const char *text, const char *help) {
    if (strncmp(text, c->part, strlen(c->part)) == 0)
        complete_add(c, text, help);
}

void complete_put_files(struct complete *c) { strbuf_adds(c->out, ":files\n"); }

void complete_put_commands(struct complete *c) { strbuf_adds(c->out, ":commands\n"); }

/* ---- options ---- */

void complete_put_options(struct complete *c, const struct option_def *rows) {
    for (const struct option_def *d = rows; d->name; d++) {
        char text[64];
        snprintf(text, sizeof text, "--%s", d->name);
        complete_put(c, text, d->help);
    }
}

static const struct option_def *complete_find(const struct option_def *rows, const char *name, size_t len) {
    for (const struct option_def *d = rows; d->name; d++)
        if (strlen(d->name) == len && memcmp(d->name, name, len) == 0)
            return d;
    return NULL;
}

const struct option_def *complete_expects(const struct option_def *rows, const char *word, bool *is_option) {
    *is_option = word[0] == '-' && word[1] != '\0';
    if (!*is_option)
        return NULL;
    if (word[1] == '-') {
        const struct option_def *d = complete_find(rows, word + 2, strlen(word + 2));
        return d && d->kind != OPTION_FLAG ? d : NULL;
    }
    for (const char *letter = word + 1; *letter; letter++)
        for (const struct option_def *d = rows; d->name; d++)
            if (d->letter == *letter && d->kind != OPTION_FLAG)
                return letter[1] ? NULL : d;
    return NULL;
}

const struct option_def *complete_find_value(struct complete *c, const struct option_def *rows) {
    const char *equals = strchr(c->word, '=');
    if (strncmp(c->word, "--", 2) != 0 || !equals)
        return NULL;
    c->part = equals + 1;
    return complete_find(rows, c->word + 2, (size_t)(equals - c->word) - 2);
}

/* ---- values ---- */

/* A command line without the folders of the interpreter and of the script. */
static void complete_brief_command(const char *cmdline, char *buf, size_t cap) {
    size_t n = 0;
    bool is_script = false, is_done = false;
    while (*cmdline && n + 1 < cap) {
        size_t len = strcspn(cmdline, " "), skip = 0;
        bool shortens = !is_done && (n == 0 || cmdline[0] != '-');
        for (size_t i = 0; shortens && i + 1 < len; i++)
            if (cmdline[i] == '/')
                skip = i + 1;
        is_done |= is_script && shortens;
        is_script |= shortens;
        int added = snprintf(buf + n, cap - n, "%s%.*s", n ? " " : "", (int)(len - skip), cmdline + skip);
        n += added > 0 ? (size_t)added : 0;
        cmdline += len + strspn(cmdline + len, " ");
    }
    if (n == 0)
        buf[0] = '\0';
}

void complete_put_targets(struct complete *c) {
    struct target_process *list;
    struct err e;
    bool is_number = c->part[strspn(c->part, "0123456789")] == '\0';
    ssize_t n = is_number ? target_list_brief(&list, COMPLETE_LIST_MS, NULL, &e) : 0;
    for (ssize_t i = 0; i < n; i++) {
        char pid[16], command[256];
        snprintf(pid, sizeof pid, "%d", (int)list[i].pid);
        complete_brief_command(list[i].cmdline, command, sizeof command);
        complete_put(c, pid, command);
    }
    if (is_number && n >= 0)
        target_list_free(list, (size_t)n);
    if (c->n == 0 && *c->part) /* a recording */
        complete_put_files(c);
}

void complete_put_jobs(struct complete *c) {
    struct jobs_here h;
    struct err e;
    int rc = jobs_here_read(&h, COMPLETE_LIST_MS, &e);
    for (size_t i = 0; rc == 0 && i < h.jobs.n; i++) {
        char help[64];
        snprintf(help, sizeof help, "%zu of %d ranks", h.jobs.items[i].n_ranks, h.jobs.items[i].world);
        complete_put(c, h.jobs.items[i].name, help);
    }
    jobs_here_fini(&h);
}

void complete_put_tables(struct complete *c) {
    struct catalog *all = catalog_of_definitions();
    for (size_t i = 0; all && i < all->n_tables; i++)
        complete_put(c, all->tables[i].name, all->tables[i].help);
    for (size_t i = 0; all && c->n == 0 && i < all->n_tables; i++)
        if (*all->tables[i].alias)
            complete_put(c, all->tables[i].alias, all->tables[i].help);
    catalog_free(all);
}

static void complete_put_choice(struct complete *c, const char *(*choice)(int i)) {
    for (int i = 0; choice(i); i++)
        complete_put(c, choice(i), NULL);
}

static void complete_put_setting(struct complete *c, const struct option_def *d) {
    if (d->choice)
        complete_put_choice(c, d->choice);
    else if (d->kind == OPTION_SWITCH) {
        complete_put(c, "on", NULL);
        complete_put(c, "off", NULL);
    }
}

void complete_put_settings(struct complete *c) {
    const char *equals = strchr(c->part, '='), *whole = c->part;
    if (equals) {
        char name[64];
        struct err e;
        snprintf(name, sizeof name, "%.*s", (int)(equals - c->part), c->part);
        int key = config_find(name, &e);
        c->part = equals + 1;
        if (key >= 0)
            complete_put_setting(c, &config_defs[key]);
        c->part = whole;
        return;
    }
    /* The part before the dot may be left out. */
    for (int brief = 0; brief < 2 && c->n == 0; brief++)
        for (int i = 0; i < CONFIG_KEYS; i++) {
            const struct option_def *d = &config_defs[i];
            const char *dot = strchr(d->name, '.');
            char text[80];
            snprintf(text, sizeof text, "%s%s", brief && dot ? dot + 1 : d->name, d->at_start ? "" : "=");
            complete_put(c, text, d->help);
        }
}

void complete_put_sql(struct complete *c) {
    struct catalog *all = catalog_of_definitions();
    struct sql_completion found;
    size_t len = strlen(c->part);
    if (!all || sql_complete(&found, all, c->part, len) != 0) {
        catalog_free(all);
        return;
    }
    const char *whole = c->part, *typed = c->part + found.from;
    c->part = typed;
    for (size_t i = 0; i < found.n; i++) {
        const struct sql_complete_item *item = &found.items[i];
        /* A shell offers only what begins as the word does. Where nothing is typed yet, all functions
         * and keywords would bury the columns. */
        bool begins = strncasecmp(item->text, typed, strlen(typed)) == 0;
        if (begins && (*typed || len == 0 || item->kind < SQL_COMPLETE_FUNCTION))
            complete_add(c, item->text, item->help);
    }
    c->part = whole;
    sql_complete_fini(&found);
    catalog_free(all);
}

/* Is `word` one of those in `name`, which other characters than letters separate? */
static bool complete_is_named(const char *name, const char *word) {
    size_t len = strlen(word);
    for (const char *at = name; (at = strstr(at, word)); at += len)
        if ((at == name || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[len]))
            return true;
    return false;
}

void complete_put_named(struct complete *c, const char *name) {
    static const struct {
        const char *name;
        void (*put)(struct complete *c);
    } kinds[] = {
        {"TARGET", complete_put_targets}, {"JOB", complete_put_jobs},     {"PID", complete_put_targets},
        {"TABLE", complete_put_tables},   {"KEY", complete_put_settings}, {"SQL", complete_put_sql},
        {"QUERY", complete_put_sql},      {"FILE", complete_put_files},   {"DIR", complete_put_files},
    };
    for (size_t i = 0; name && i < sizeof kinds / sizeof kinds[0]; i++)
        if (complete_is_named(name, kinds[i].name))
            kinds[i].put(c);
}

void complete_put_value(struct complete *c, const struct option_def *d) {
    if (d->choice)
        complete_put_choice(c, d->choice);
    complete_put_named(c, d->arg);
}
