/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete: what Tab offers on the command line of `probing`, from the structs of the verbs.
 *
 * It reads the words as parse.c does, but forgives everything: who presses Tab is not done yet.
 */
#include "client/complete.h"

#include <string.h>

#include "cli/cli.h"

/* What the words before the last one are. */
struct complete_line {
    const struct cli_verb *verb;    /* NULL: none yet */
    const char *noun;               /* the first word of a verb that has two; NULL: none yet */
    bool help;                      /* 'help' stands in its place */
    bool has_target, has_operand;   /* also as options */
    bool in_command;                /* the words belong to the command that the verb starts */
    bool only_operands;             /* behind -- */
    const struct option_def *value; /* the last word is its value; NULL: it is not */
    struct option_def rows[CLI_MAX_ROWS];
};

static bool complete_takes_target(const struct cli_verb *v) {
    return v->needs_target || v->many_targets || v->takes_job;
}

static bool complete_is_target_option(const struct option_def *d) {
    return strcmp(d->name, "target") == 0 || strcmp(d->name, "pid") == 0;
}

static void complete_read_operand(struct complete_line *l, const char *word) {
    if (!l->verb && cli_is_noun(word)) {
        l->noun = word;
        l->rows[0].name = NULL; /* options stand behind the second word */
    } else if (!l->verb && l->noun) {
        l->verb = cli_find_of_noun(l->noun, word);
        cli_put_rows(l->verb, l->rows);
    } else if (!l->verb && !l->help) {
        l->verb = cli_find_verb(word);
        if (!l->verb && l->has_target)
            l->verb = cli_find_prefix(word, NULL);
        l->help = !l->verb && strcmp(word, "help") == 0;
        l->has_target |= !l->verb && !l->help;
        cli_put_rows(l->verb, l->rows);
    } else if (l->help)
        l->has_operand = true;
    else if (l->verb->takes_command)
        l->in_command = true;
    else if (!l->has_target && complete_takes_target(l->verb) &&
             (l->verb->needs_target || l->verb->takes_job || word[strspn(word, "0123456789")] == '\0'))
        l->has_target = true;
    else
        l->has_operand = true;
}

static void complete_read_word(struct complete_line *l, const char *word) {
    bool is_option = false;
    if (l->value) {
        l->has_target |= complete_is_target_option(l->value);
        l->value = NULL;
        return;
    }
    if (l->in_command)
        return;
    if (!l->only_operands)
        l->value = complete_expects(l->rows, word, &is_option);
    l->only_operands |= strcmp(word, "--") == 0;
    l->has_target |= is_option && !l->value &&
                     (strncmp(word, "--target=", 9) == 0 || strncmp(word, "--pid=", 6) == 0 ||
                      (word[1] != '-' && strspn(word + 1, "tp") == 1 && word[2]));
    if (!is_option)
        complete_read_operand(l, word);
}

static void complete_put_verbs(struct complete *c, bool with_help) {
    size_t before = c->n;
    const char *noun = "";
    for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
        if ((*v)->is_internal)
            continue;
        if (!(*v)->noun)
            complete_put(c, (*v)->name, (*v)->help);
        else if (strcmp((*v)->noun, noun) != 0)
            complete_put(c, (*v)->noun, "all ranks of a job");
        noun = (*v)->noun ? (*v)->noun : "";
    }
    if (with_help)
        complete_put(c, "help", "all verbs; help VERB: one");
    for (const struct cli_verb *const *v = cli_verbs; *v && c->n == before; v++) {
        const char *at = (*v)->aliases;
        while (at && *at) {
            char name[32];
            size_t len = strcspn(at, " ");
            if (len < sizeof name) {
                memcpy(name, at, len);
                name[len] = '\0';
                complete_put(c, name, (*v)->help);
            }
            at += len + strspn(at + len, " ");
        }
    }
}

static void complete_put_seconds(struct complete *c, const char *noun) {
    for (const struct cli_verb *const *v = cli_verbs; *v; v++)
        if ((*v)->noun && strcmp((*v)->noun, noun) == 0)
            complete_put(c, (*v)->name + strlen(noun) + 1, (*v)->help);
}

static void complete_put_operand(struct complete *c, const struct complete_line *l) {
    const struct cli_verb *v = l->verb;
    if (l->noun && !v)
        complete_put_seconds(c, l->noun);
    else if (v && v->takes_job && !l->has_target) {
        complete_put_jobs(c);
        complete_put_targets(c);
    } else if (l->help && !l->has_operand)
        complete_put_verbs(c, false);
    else if (!l->help && !v) {
        complete_put_verbs(c, !l->has_target);
        if (!l->has_target && (c->n == 0 || !*c->word))
            complete_put_targets(c);
    } else if (v && v->takes_command) {
        if (l->in_command)
            complete_put_files(c);
        else
            complete_put_commands(c);
    } else if (v && complete_takes_target(v) && !l->has_target) {
        if ((!v->needs_target || *c->word) && !l->has_operand) /* the target may follow, with -t */
            complete_put_named(c, v->operand);
        complete_put_targets(c);
    } else if (v && !l->has_operand)
        complete_put_named(c, v->operand);
}

void cli_complete(int n, char *const *words, struct strbuf *out) {
    struct complete c;
    struct complete_line l = {.verb = NULL};
    cli_put_rows(NULL, l.rows);
    for (int i = 0; i + 1 < n; i++)
        complete_read_word(&l, words[i]);
    complete_init(&c, out, n > 0 ? words[n - 1] : "");
    bool is_operand = l.in_command || l.only_operands || c.word[0] != '-';
    if (!l.value && !is_operand)
        l.value = complete_find_value(&c, l.rows);
    if (l.value)
        complete_put_value(&c, l.value);
    else if (is_operand)
        complete_put_operand(&c, &l);
    else
        complete_put_options(&c, l.rows);
}
