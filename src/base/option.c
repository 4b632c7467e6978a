/* SPDX-License-Identifier: Apache-2.0 */
/* option: see option.h. */
#include "base/option.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_WORD_MAX 64

static const struct option_def *option_find_long(const struct option_def *table, const char *name,
                                                 size_t len) {
    for (const struct option_def *d = table; d->name; d++)
        if (strlen(d->name) == len && strncmp(d->name, name, len) == 0)
            return d;
    return NULL;
}

static const struct option_def *option_find_letter(const struct option_def *table, char c) {
    for (const struct option_def *d = table; d->name; d++)
        if (d->letter == c)
            return d;
    return NULL;
}

/* Seconds from "2", "2s", "250ms", "1m", "1h". 0 or -1. */
static int option_parse_seconds(const char *text, double *out) {
    char *end;
    double v = strtod(text, &end);
    if (end == text)
        return -1;
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].suffix) == 0) {
            *out = v * units[i].factor;
            return 0;
        }
    return -1;
}

static int option_check_range(const struct option_def *d, double v, const char *text, struct err *e) {
    bool any = d->min == 0 && d->max == 0;
    if (v == v && (any || (v >= d->min && v <= d->max)))
        return 0;
    return err_set(e, ERR_USAGE, "--%s %s: out of range, give %g to %g", d->name, text, d->min, d->max);
}

static int option_store(const struct option_def *d, void *into, const char *value, struct err *e) {
    char *field = (char *)into + d->offset;
    if (d->kind == OPTION_FLAG) {
        *(bool *)(void *)field = true;
        return 0;
    }
    if (d->kind == OPTION_STRING) {
        *(const char **)(void *)field = value;
        return 0;
    }
    if (d->kind == OPTION_LIST) {
        struct option_list *list = (struct option_list *)(void *)field;
        if (list->n == OPTION_LIST_MAX)
            return err_set(e, ERR_USAGE, "--%s %s: given more than %d times", d->name, value,
                           OPTION_LIST_MAX);
        list->items[list->n++] = value;
        return 0;
    }
    if (d->kind == OPTION_SECONDS) {
        double s;
        if (option_parse_seconds(value, &s) != 0)
            return err_set(e, ERR_USAGE, "--%s %s: not a duration, give for example 2s or 250ms", d->name,
                           value);
        *(double *)(void *)field = s;
        return option_check_range(d, s, value, e);
    }
    char *end;
    errno = 0;
    long v = strtol(value, &end, 10);
    if (end == value || *end || errno)
        return err_set(e, ERR_USAGE, "--%s %s: not a number", d->name, value);
    *(long *)(void *)field = v;
    return option_check_range(d, (double)v, value, e);
}

/* Damerau-free edit distance of two short words. */
static size_t option_distance(const char *a, const char *b) {
    size_t row[OPTION_WORD_MAX + 1], la = strlen(a), lb = strlen(b);
    if (la > OPTION_WORD_MAX || lb > OPTION_WORD_MAX)
        return OPTION_WORD_MAX;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < least ? change : least;
        }
    }
    return row[lb];
}

const char *option_suggest(const char *word, const char *const *candidates) {
    const char *best = NULL;
    size_t best_distance = 3;
    for (; *candidates; candidates++) {
        size_t d = option_distance(word, *candidates);
        if (d < best_distance && d * 2 < strlen(word) + 1) {
            best = *candidates;
            best_distance = d;
        }
    }
    return best;
}

static int option_unknown(const struct option_def *table, const char *arg, size_t len, struct err *e) {
    char word[OPTION_WORD_MAX];
    const char *names[128];
    size_t n = 0;
    for (const struct option_def *d = table; d->name && n + 1 < sizeof names / sizeof names[0]; d++)
        names[n++] = d->name;
    names[n] = NULL;
    if (len >= sizeof word)
        len = sizeof word - 1;
    memcpy(word, arg, len);
    word[len] = '\0';
    const char *near = option_suggest(word + strspn(word, "-"), names);
    if (near)
        return err_set(e, ERR_USAGE, "unknown option %s: did you mean --%s?", word, near);
    return err_set(e, ERR_USAGE, "unknown option %s: --help lists the options", word);
}

/* A position in the arguments. */
struct option_cursor {
    const struct option_def *table;
    void *into;
    int argc, at;
    char **argv;
};

static int option_take_value(struct option_cursor *c, const struct option_def *d, const char *attached,
                             struct err *e) {
    if (d->kind == OPTION_FLAG)
        return attached ? err_set(e, ERR_USAGE, "--%s takes no value", d->name)
                        : option_store(d, c->into, NULL, e);
    if (!attached) {
        if (c->at + 1 >= c->argc)
            return err_set(e, ERR_USAGE, "--%s needs a value: --%s %s", d->name, d->name, d->arg);
        attached = c->argv[++c->at];
    }
    return option_store(d, c->into, attached, e);
}

static int option_take_long(struct option_cursor *c, struct err *e) {
    const char *arg = c->argv[c->at];
    const char *eq = strchr(arg, '=');
    size_t len = eq ? (size_t)(eq - arg) : strlen(arg);
    const struct option_def *d = option_find_long(c->table, arg + 2, len - 2);
    return d ? option_take_value(c, d, eq ? eq + 1 : NULL, e) : option_unknown(c->table, arg, len, e);
}

static int option_take_letters(struct option_cursor *c, struct err *e) {
    const char *arg = c->argv[c->at];
    for (size_t i = 1; arg[i]; i++) {
        const struct option_def *d = option_find_letter(c->table, arg[i]);
        if (!d)
            return option_unknown(c->table, arg, strlen(arg), e);
        bool has_rest = d->kind != OPTION_FLAG && arg[i + 1];
        if (option_take_value(c, d, has_rest ? arg + i + 1 : NULL, e) != 0)
            return -1;
        if (d->kind != OPTION_FLAG)
            break;
    }
    return 0;
}

/* A text that begins with a comment of SQL is no option: no option has a space in its name. */
static bool option_is_operand(const char *arg) {
    return arg[0] != '-' || arg[1] == '\0' || (arg[1] == '-' && isspace((unsigned char)arg[2]));
}

int option_parse(const struct option_def *table, void *into, int argc, char **argv, const char **operands,
                 bool stop_at_operand, struct err *e) {
    struct option_cursor c = {.table = table, .into = into, .argc = argc, .argv = argv};
    int n = 0;
    bool only_operands = false;
    for (c.at = 1; c.at < argc; c.at++) {
        const char *arg = argv[c.at];
        if (only_operands || option_is_operand(arg)) {
            operands[n++] = arg;
            only_operands |= stop_at_operand;
        } else if (strcmp(arg, "--") == 0)
            only_operands = true;
        else if ((arg[1] == '-' ? option_take_long(&c, e) : option_take_letters(&c, e)) != 0)
            return -1;
    }
    return n;
}

void option_format_help(const struct option_def *table, struct strbuf *out) {
    size_t width = 0;
    for (const struct option_def *d = table; d->name; d++) {
        size_t w = strlen(d->name) + (d->arg ? strlen(d->arg) + 1 : 0);
        width = w > width ? w : width;
    }
    for (const struct option_def *d = table; d->name; d++) {
        if (d->letter)
            strbuf_addf(out, "  -%c, ", d->letter);
        else
            strbuf_adds(out, "      ");
        size_t w = strlen(d->name) + (d->arg ? strlen(d->arg) + 1 : 0);
        strbuf_addf(out, "--%s%s%s%*s  %s\n", d->name, d->arg ? " " : "", d->arg ? d->arg : "",
                    (int)(width - w), "", d->help);
    }
}
