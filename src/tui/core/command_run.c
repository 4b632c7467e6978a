/* SPDX-License-Identifier: Apache-2.0 */
/* command_run: see command_run.h. */
#include "tui/core/command_run.h"

#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "tui/core/action_table.h"
#include "tui/core/app_act.h"
#include "tui/core/app_message.h"
#include "tui/core/command.h"

#define COMMAND_MAX_NAMES 512

static void command_unknown(struct app *app, const char *word) {
    const char *names[COMMAND_MAX_NAMES];
    enum action_context context = command_context(app);
    size_t n = 0;
    for (const struct command_def *d = command_rows(); d->name && n + 1 < COMMAND_MAX_NAMES; d++)
        if (d->contexts & ACTION_IN(context))
            names[n++] = d->name;
    for (const struct action_def *d = action_table(); d->action && n + 1 < COMMAND_MAX_NAMES; d++)
        if (d->contexts & ACTION_IN(context))
            names[n++] = d->name;
    names[n] = NULL;
    const char *near = option_suggest(word, names);
    if (near)
        app_refuse(app, "there is no command '%s' here: did you mean '%s'?", word, near);
    else
        app_refuse(app, "there is no command '%s' here: Tab lists those there are", word);
}

void command_run(struct app *app, const char *line) {
    char word[64], argument[PROMPT_MAX];
    enum action_context context = command_context(app);
    size_t len = command_first_word(&line);
    if (len == 0)
        return;
    snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), line);
    line += len + strspn(line + len, " ");
    snprintf(argument, sizeof argument, "%s", line);
    for (size_t n = strlen(argument); n > 0 && argument[n - 1] == ' ';)
        argument[--n] = '\0';
    log_add(app->log, app->epoch_s, LOG_LEVEL_INFO, ":%s%s%s", word, *argument ? " " : "", argument);
    const struct command_def *command = command_find(word, context);
    const struct action_def *action = command ? NULL : action_named(word, context);
    if (command && *argument && !*command->arguments)
        app_refuse(app, ":%s takes no argument", word);
    else if (command)
        command->run(app, argument);
    else if (action && *argument)
        app_refuse(app, ":%s takes no argument", word);
    else if (action)
        app_act(app, action->action);
    else
        command_unknown(app, word);
}

void command_run_typed(struct app *app) {
    char line[PROMPT_MAX];
    struct err e;
    snprintf(line, sizeof line, "%s", app->prompt.text);
    app->prompt_for = ACTION_NONE;
    app->message[0] = '\0';
    int rc = history_add(&app->command.history, line, &e);
    command_run(app, line);
    if (rc != 0 && !*app->message)
        app_message(app, true, "%s", e.text);
}
