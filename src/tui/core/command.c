/* SPDX-License-Identifier: Apache-2.0 */
/* command: see command.h. The rows are in command_table.c. */
#include "tui/core/command.h"

#include <stdio.h>
#include <string.h>

#include "tui/core/action_table.h"
#include "tui/core/app.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"

#define COMMAND_ARENA ((size_t)256 * 1024)

enum action_context command_context(struct app *app) {
    struct app_screen *s = app_top(app);
    return screen_context(s->def, s->state);
}

static struct command_def command_all[COMMAND_MAX_ROWS];

/* Append rows; the last one is left free, because it ends the table. Returns their number. */
static size_t command_add(size_t n, const struct command_def *rows) {
    for (const struct command_def *d = rows; d && d->name && n + 1 < COMMAND_MAX_ROWS; d++)
        command_all[n++] = *d;
    return n;
}

const struct command_def *command_rows(void) {
    size_t n = 0;
    if (command_all[0].name)
        return command_all;
    for (const struct screen_def *const *s = screen_list; *s; s++)
        n = command_add(n, (*s)->commands);
    command_add(n, command_table);
    return command_all;
}

const struct command_def *command_find(const char *name, enum action_context context) {
    for (const struct command_def *d = command_rows(); d->name; d++)
        if ((d->contexts & ACTION_IN(context)) && strcmp(d->name, name) == 0)
            return d;
    return NULL;
}

size_t command_first_word(const char **line) {
    *line += strspn(*line, " :");
    return strcspn(*line, " ");
}

/* ---- what may stand there ---- */

const char *command_word(const struct command_choices *c) { return c->line + c->from; }

bool command_next_word(struct command_choices *c) {
    const char *word = command_word(c);
    size_t len = strcspn(word, " ");
    if (!word[len])
        return false;
    c->from += len + strspn(word + len, " ");
    return true;
}

void command_offer(struct command_choices *c, const char *text, const char *help) {
    const char *word = command_word(c);
    if (c->n == COMMAND_MAX_CHOICES || strncmp(text, word, strlen(word)) != 0)
        return;
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->items[i].text, text) == 0)
            return;
    const char *copy = arena_strdup(&c->arena, text);
    if (copy)
        c->items[c->n++] = (struct command_choice){copy, help};
}

void command_complete(struct app *app, const char *line, struct command_choices *out) {
    char word[64];
    enum action_context context = command_context(app);
    const char *first = line;
    size_t len = command_first_word(&first);
    *out = (struct command_choices){.line = line, .from = (size_t)(first - line)};
    arena_init(&out->arena, COMMAND_ARENA);
    if (first[len]) {
        snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), first);
        const struct command_def *d = command_find(word, context);
        command_next_word(out);
        if (d && d->complete)
            d->complete(app, out);
        return;
    }
    for (const struct command_def *d = command_rows(); d->name; d++)
        if (d->contexts & ACTION_IN(context))
            command_offer(out, d->name, d->help);
    for (const struct action_def *d = action_table(); d->action; d++)
        if ((d->contexts & ACTION_IN(context)) && d->action != ACTION_COMMAND_LINE)
            command_offer(out, d->name, d->help);
}

void command_choices_fini(struct command_choices *c) {
    arena_fini(&c->arena);
    c->n = 0;
}
