/* SPDX-License-Identifier: Apache-2.0 */
/* watch: see watch.h. Names are Python's; letters beyond ASCII are accepted unchecked. */
#include "base/watch.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WATCH_EXPRS "exprs="
#define WATCH_TAKES "on, off, or 'on,exprs=loss@train,model.scale@train'"

static bool watch_is_first(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool watch_is_later(char c) { return watch_is_first(c) || (c >= '0' && c <= '9'); }

/* Parse a name at `*p`, which moves behind it. 0 or -1. */
static int watch_take_name(const char **p, struct watch_part *part) {
    size_t n = 0;
    if (!watch_is_first(**p))
        return -1;
    while (watch_is_later((*p)[n]))
        n++;
    if (n >= sizeof part->name)
        return -1;
    memcpy(part->name, *p, n);
    part->name[n] = '\0';
    *p += n;
    return 0;
}

/* Parse the content of brackets: a number or a quoted text; `*p` is behind the opening one. 0 or
 * -1. */
static int watch_take_index(const char **p, struct watch_part *part) {
    char quote = **p, *end;
    if (quote == '\'' || quote == '"') {
        const char *close = strchr(*p + 1, quote);
        size_t n = close ? (size_t)(close - *p - 1) : 0;
        if (!close || n >= sizeof part->name || memchr(*p + 1, '\\', n))
            return -1;
        part->kind = WATCH_KEY;
        memcpy(part->name, *p + 1, n);
        *p = close + 1;
    } else {
        if (quote != '-' && (quote < '0' || quote > '9'))
            return -1;
        part->kind = WATCH_INDEX;
        part->index = strtoll(*p, &end, 10);
        if (end == *p)
            return -1;
        *p = end;
    }
    if (**p != ']')
        return -1;
    ++*p;
    return 0;
}

/* Check the function after the @: names with dots between them, some of them Python's own, such
 * as <locals>. 0 or -1. */
static int watch_check_function(const char *p) {
    bool first = true;
    for (; *p; p++) {
        bool fits = first ? watch_is_first(*p) || *p == '<' : watch_is_later(*p) || *p == '>' || *p == '.';
        if (!fits)
            return -1;
        first = *p == '.';
    }
    return first ? -1 : 0;
}

/* Parse an expression of `n` bytes. 0 or -1. */
static int watch_take_expr(struct watch_expr *x, const char *text, size_t n) {
    *x = (struct watch_expr){.n = 0};
    char whole[2 * WATCH_TEXT];
    if (n == 0 || n >= sizeof whole)
        return -1;
    memcpy(whole, text, n);
    whole[n] = '\0';
    const char *p = whole;
    struct watch_part *part = &x->parts[x->n++];
    int rc = watch_take_name(&p, part);
    while (rc == 0 && (*p == '.' || *p == '[') && x->n < WATCH_PARTS) {
        part = &x->parts[x->n++];
        rc = *p++ == '.' ? watch_take_name(&p, part) : watch_take_index(&p, part);
    }
    size_t length = (size_t)(p - whole);
    if (rc != 0 || (*p && *p != '@') || length >= sizeof x->name || strlen(p) > sizeof x->func)
        return -1;
    memcpy(x->name, whole, length);
    x->name[length] = '\0';
    if (*p == '@') {
        memcpy(x->func, p + 1, strlen(p));
        return watch_check_function(p + 1);
    }
    return 0;
}

/* Bytes up to the next comma outside quotes. */
static size_t watch_length(const char *p) {
    char quote = '\0';
    size_t n = 0;
    for (; p[n] && (quote || p[n] != ','); n++)
        if (quote ? p[n] == quote : p[n] == '\'' || p[n] == '"')
            quote = quote ? '\0' : p[n];
    return n;
}

static bool watch_is_word(const char *p, size_t n, const char *const *words) {
    for (; *words; words++)
        if (strlen(*words) == n && strncasecmp(p, *words, n) == 0)
            return true;
    return false;
}

int watch_parse(struct watch *w, const char *name, const char *text, struct err *e) {
    static const char *const on[] = {"on", "true", "yes", "1", NULL}, *const off[] = {"off", "false", "no",
                                                                                      "0", NULL};
    struct watch none;
    bool exprs = false;
    w = w ? w : &none;
    *w = (struct watch){.on = false};
    for (const char *p = text; *p;) {
        size_t n = watch_length(p);
        const char *item = p;
        p += n + (p[n] == ',');
        if (!exprs && (watch_is_word(item, n, on) || watch_is_word(item, n, off))) {
            w->on = watch_is_word(item, n, on);
            w->off = !w->on;
            continue;
        }
        if (n >= strlen(WATCH_EXPRS) && strncmp(item, WATCH_EXPRS, strlen(WATCH_EXPRS)) == 0) {
            exprs = true;
            item += strlen(WATCH_EXPRS);
            n -= strlen(WATCH_EXPRS);
        }
        if (!exprs)
            return err_set(e, ERR_USAGE, "%s takes " WATCH_TAKES ", not '%.*s'", name, (int)n, item);
        if (w->n == WATCH_MAX)
            return err_set(e, ERR_USAGE, "%s takes at most %d expressions", name, WATCH_MAX);
        if (watch_take_expr(&w->exprs[w->n++], item, n) != 0)
            return err_set(e, ERR_USAGE,
                           "%s: '%.*s' is not an expression like loss, model.scale or sizes[0]['a']@train",
                           name, (int)n, item);
    }
    return 0;
}
