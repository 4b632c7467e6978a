/* SPDX-License-Identifier: Apache-2.0 */
/* option: see option.h. */
#include "base/option.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* ---- numbers with units ---- */

#define OPTION_MIB 1048576.0

struct option_unit {
    const char *name; /* "": of a number alone, which is 1 without such a row */
    double factor;
};

static const struct option_unit option_none[] = {{NULL, 0}};
static const struct option_unit option_percents[] = {{"%", 1}, {NULL, 0}};
static const struct option_unit option_rates[] = {{"Hz", 1}, {"kHz", 1000}, {NULL, 0}};
static const struct option_unit option_bytes[] = {{"B", 1},
                                                  {"K", 1024},
                                                  {"KB", 1024},
                                                  {"KiB", 1024},
                                                  {"M", OPTION_MIB},
                                                  {"MB", OPTION_MIB},
                                                  {"MiB", OPTION_MIB},
                                                  {"G", 1024 * OPTION_MIB},
                                                  {"GB", 1024 * OPTION_MIB},
                                                  {"GiB", 1024 * OPTION_MIB},
                                                  {NULL, 0}};
static const struct option_unit option_durations[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1},     {"m", 60},
                                                      {"min", 60},  {"h", 3600},  {"d", 86400}, {NULL, 0}};
static const struct option_unit option_days[] = {{"d", 1},        {"days", 1}, {"day", 1},
                                                 {"h", 1.0 / 24}, {"w", 7},    {NULL, 0}};
static const struct option_unit option_seconds[] = {
    {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}, {NULL, 0}};
static const struct option_unit option_delays[] = {{"", 0.1}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};
static const struct option_unit option_switch[] = {
    {"on", 1}, {"true", 1}, {"yes", 1}, {"1", 1}, {"off", 0}, {"false", 0}, {"no", 0}, {"0", 0}, {NULL, 0}};

/* What may follow the number of each kind. */
static const struct option_unit *const option_units[] = {
    [OPTION_INT] = option_none,   [OPTION_SECONDS] = option_seconds, [OPTION_PERCENT] = option_percents,
    [OPTION_RATE] = option_rates, [OPTION_BYTES] = option_bytes,     [OPTION_DURATION] = option_durations,
    [OPTION_DAYS] = option_days,  [OPTION_DELAY] = option_delays,
};

/* Flags and delays take their units as they are written here, others in any case and behind a
 * space. */
static bool option_is_strict(enum option_kind kind) {
    return kind == OPTION_INT || kind == OPTION_SECONDS || kind == OPTION_DELAY;
}

static const struct option_unit *option_find_unit(const struct option_unit *units, const char *name,
                                                  bool strict) {
    while (units->name && (strict ? strcmp(units->name, name) : strcasecmp(units->name, name)) != 0)
        units++;
    return units->name ? units : NULL;
}

/* A number with or without a unit. NAN is what is none that can be worked with. 0, or -1. */
static int option_read_number(enum option_kind kind, const char *text, double *out) {
    bool strict = option_is_strict(kind);
    const struct option_unit *unit;
    char *end;
    errno = 0;
    if (kind == OPTION_SWITCH) {
        unit = option_find_unit(option_switch, text, false);
        *out = unit ? unit->factor : 0;
        return unit ? 0 : -1;
    }
    double v = kind == OPTION_INT ? (double)strtol(text, &end, 10) : strtod(text, &end);
    if (end == text || (errno && kind == OPTION_INT))
        return -1;
    while (!strict && *end == ' ')
        end++;
    unit = option_find_unit(option_units[kind], end, strict);
    if (!unit && *end)
        return -1;
    *out = errno ? NAN : unit ? v * unit->factor : v;
    return 0;
}

static bool option_is_within(const struct option_def *d, double v) {
    return !isnan(v) && ((d->min == 0 && d->max == 0) || (v >= d->min && v <= d->max));
}

/* ---- settings ---- */

bool option_is_number(const struct option_def *d) {
    return d->kind >= OPTION_PERCENT && d->kind <= OPTION_SWITCH;
}

int option_refuse(const struct option_def *d, const char *name, const char *text, struct err *e) {
    const char *takes = d->takes_long ? d->takes_long : d->kind == OPTION_SWITCH ? "on or off" : d->takes;
    if (takes)
        return err_set(e, ERR_USAGE, "%s takes %s, not '%s'", name, takes, text);
    return err_set(e, ERR_USAGE, "%s takes a number from %g to %g (%s), not '%s'", name, d->min, d->max,
                   d->unit, text);
}

static bool option_is_choice(const struct option_def *d, const char *text) {
    const char *word;
    for (int i = 0; (word = d->choice(i)); i++)
        if (strcmp(word, text) == 0)
            return true;
    return false;
}

int option_read(const struct option_def *d, const char *name, const char *text, double *number,
                struct err *e) {
    bool good = !d->check || d->check(text);
    if (d->kind == OPTION_CHOICE)
        good = good && option_is_choice(d, text);
    else if (d->kind != OPTION_TEXT)
        good = good && option_read_number(d->kind, text, number) == 0 && option_is_within(d, *number);
    return good ? 0 : option_refuse(d, name, text, e);
}

/* The largest unit in which the value is a whole number of at least one; otherwise the unit with
 * factor 1. */
static const struct option_unit *option_best_unit(const struct option_unit *units, double v) {
    const struct option_unit *best = NULL;
    for (; units->name; units++) {
        bool fits = v == 0 || (fabs(v) >= units->factor && fmod(v, units->factor) == 0);
        if (units->factor == 1 && !best)
            best = units;
        if (v != 0 && fits && units->factor >= 1 && (!best || units->factor > best->factor))
            best = units;
    }
    return best;
}

void option_format(const struct option_def *d, double number, char *buf, size_t cap) {
    if (d->kind == OPTION_SWITCH)
        snprintf(buf, cap, "%s", number != 0 ? "on" : "off");
    else if (d->kind == OPTION_DELAY)
        snprintf(buf, cap, number < 0.9995 ? "%.4gms" : "%.4gs", number < 0.9995 ? number * 1000 : number);
    else if (d->kind == OPTION_BYTES || d->kind == OPTION_DURATION) {
        const struct option_unit *unit = option_best_unit(option_units[d->kind], number);
        snprintf(buf, cap, "%.10g%s", number / unit->factor, unit->name);
    } else
        snprintf(buf, cap, "%.10g", number);
}

/* ---- flags ---- */

static int option_store(const struct option_def *d, void *into, const char *value, struct err *e) {
    char *field = (char *)into + d->offset;
    double number;
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
    if (option_is_number(d)) {
        char name[OPTION_WORD_MAX];
        snprintf(name, sizeof name, "--%s", d->name);
        return option_read(d, name, value, (double *)(void *)field, e);
    }
    if (option_read_number(d->kind, value, &number) != 0)
        return err_set(e, ERR_USAGE,
                       d->kind == OPTION_INT ? "--%s %s: not a number"
                                             : "--%s %s: not a duration, give for example 2s or 250ms",
                       d->name, value);
    if (d->kind == OPTION_INT)
        *(long *)(void *)field = (long)number;
    else
        *(double *)(void *)field = number;
    if (option_is_within(d, number))
        return 0;
    return err_set(e, ERR_USAGE, "--%s %s: out of range, give %g to %g", d->name, value, d->min, d->max);
}

/* Edit distance of two short words, without transpositions. */
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

/* People mix -v and -V. */
static int option_unknown_letter(const struct option_def *table, const char *arg, char letter,
                                 struct err *e) {
    bool is_upper = isupper((unsigned char)letter);
    char other = (char)(is_upper ? tolower((unsigned char)letter) : toupper((unsigned char)letter));
    const struct option_def *d = option_find_letter(table, other);
    if (!d || other == letter)
        return option_unknown(table, arg, strlen(arg), e);
    return err_set(e, ERR_USAGE, "unknown option -%c: did you mean -%c (--%s)?", letter, other, d->name);
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
            return option_unknown_letter(c->table, arg, arg[i], e);
        bool has_rest = d->kind != OPTION_FLAG && arg[i + 1];
        if (option_take_value(c, d, has_rest ? arg + i + 1 : NULL, e) != 0)
            return -1;
        if (d->kind != OPTION_FLAG)
            break;
    }
    return 0;
}

/* A text that begins with an SQL comment is an operand: no option has a space in its name. */
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
