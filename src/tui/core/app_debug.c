/* SPDX-License-Identifier: Apache-2.0 */
/* app_debug: see app_debug.h. */
#include "tui/core/app_debug.h"

#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "tui/core/app.h"
#include "tui/core/app_repl.h"
#include "tui/core/app_screen.h"
#include "tui/core/command.h"
#include "tui/view/pager.h"

#define DEBUG_COMMAND_WORDS 16

/* The options of a command. */
struct debug_command_line {
    struct debug_command_request wish;
    bool keep;
};

#define AT(member) offsetof(struct debug_command_line, member)
#define DEBUG_COMMAND_COMMON                                                                                 \
    {"off", 0, OPTION_FLAG, AT(wish.off), .help = "end it"},                                                 \
        {"status", 0, OPTION_FLAG, AT(wish.status), .help = "only show its state"}, {                        \
        "keep", 0, OPTION_FLAG, AT(keep), .help = "it stays when probing-top ends"                           \
    }

static const struct option_def debug_command_debug_rows[] = {
    DEBUG_COMMAND_COMMON,
    {"path", 0, OPTION_STRING, AT(wish.path), .arg = "DIR", .help = "the folder that holds debugpy"},
    {"exposed", 0, OPTION_FLAG, AT(wish.exposed), .help = "others may reach it, and run code in the job"},
    {.name = NULL},
};

static const struct option_def debug_state_rows[] = {
    DEBUG_COMMAND_COMMON,
    {"limit", 0, OPTION_SECONDS, AT(wish.limit_s), .arg = "TIME", .help = "so long at most (5m)", .min = 1,
     .max = WIRE_DEBUG_LIMIT_MAX_S},
    {.name = NULL},
};

static const struct option_def *debug_command_rows(const struct debug_command_def *def) {
    return def == &debug_command_debug ? debug_command_debug_rows : debug_state_rows;
}

/* ---- asking ---- */

static void debug_command_ask_job(struct app *a, const struct debug_command_def *def,
                                  const struct debug_command_request *wish, const char *typed) {
    struct app_debug *t = &a->debug;
    struct wire_debug want;
    struct err e;
    const char *why = app_repl_why_not(a);
    if (!why)
        why = app_repl_why_busy(a);
    if (why) {
        app_refuse(a, "%s", why);
        return;
    }
    if (debug_command_request_wire(def, wish, a->pid, &want, &e) != 0) {
        app_refuse(a, "%s", e.text);
        wire_debug_fini(&want);
        return;
    }
    wire_debug_fini(&t->want);
    t->def = def;
    t->want = want;
    t->exposed = wish->exposed;
    if (!app_repl_ask(a, REPL_DEBUG, "", 0))
        t->def = NULL;
    else {
        char line[PROMPT_MAX + 64];
        snprintf(line, sizeof line, ":%s", typed);
        app_repl_say(a, PAGER_STRONG, line);
        a->repl.to_output = true;
        app_screen_open(a, ACTION_SHOW_REPL);
        app_screen_update_all(a);
    }
}

/* Parse what was typed; `words` is cut up. 0, or -1 with the error. */
static int debug_command_parse(const struct debug_command_def *def, char *words,
                               struct debug_command_line *line, struct err *e) {
    const char *operands[DEBUG_COMMAND_WORDS];
    char *argv[DEBUG_COMMAND_WORDS + 1], *at = NULL;
    char name[] = "probing-top";
    int argc = 1;
    argv[0] = name;
    for (char *word = strtok_r(words, " ", &at); word; word = strtok_r(NULL, " ", &at)) {
        if (argc == DEBUG_COMMAND_WORDS)
            return err_set(e, ERR_USAGE, "too many arguments");
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    int n = option_parse(debug_command_rows(def), line, argc, argv, operands, false, e);
    if (n > 1)
        return err_set(e, ERR_USAGE, "one address, not '%s' too", operands[1]);
    if (n == 1)
        line->wish.address = operands[0];
    line->wish.leased = !line->keep;
    return n < 0 ? -1 : 0;
}

void app_debug_command(struct app *a, const struct debug_command_def *def, const char *argument) {
    struct debug_command_line line = {.wish = {.timeout_s = def->timeout_s, .limit_s = def->limit_s}};
    char words[PROMPT_MAX], typed[PROMPT_MAX + 32];
    struct err e;
    snprintf(words, sizeof words, "%s", argument);
    snprintf(typed, sizeof typed, "%s%s%s", def->command, *argument ? " " : "", argument);
    if (a->row_actions.readonly)
        app_refuse(a, "--readonly: %s would run code in the job or change it", def->command);
    else if (debug_command_parse(def, words, &line, &e) != 0)
        app_refuse(a, "%s", e.text);
    else
        debug_command_ask_job(a, def, &line.wish, typed);
}

void app_debug_complete(const struct debug_command_def *def, struct command_choices *out) {
    while (command_next_word(out))
        ;
    for (const struct option_def *d = debug_command_rows(def); d->name; d++) {
        char text[32];
        snprintf(text, sizeof text, "--%s", d->name);
        command_offer(out, text, d->help);
    }
}

bool app_debug_act(struct app *a, enum action action) {
    if (action != ACTION_DEBUG)
        return false;
    bool theirs = !a->debug.debugs && debuggers_have(&a->data.holds, "debug");
    app_debug_command(a, &debug_command_debug, a->debug.debugs ? "--off" : theirs ? "--status" : "");
    return true;
}

/* ---- the answer ---- */

static void app_debug_put(struct app *a, const struct wire_debugger *what) {
    struct app_debug *t = &a->debug;
    const struct debug_command_def *def = t->def;
    struct strbuf text;
    struct err e;
    t->def = NULL;
    if (!def)
        return;
    if (debug_command_check(def, what, t->want.timeout_s, def->failed, &e) != 0) {
        app_repl_say(a, PAGER_BAD, e.text);
        app_message(a, true, "%s", e.text);
        return;
    }
    strbuf_init(&text, DEBUG_COMMAND_TEXTS_MAX);
    def->put_text(&text, what, a->pid);
    app_repl_say(a, PAGER_PLAIN, strbuf_str(&text));
    app_message(a, false, "%.*s", (int)strcspn(strbuf_str(&text), "\n"), strbuf_str(&text));
    if (t->exposed)
        app_repl_say(a, PAGER_BAD,
                     "anyone who can reach this address can run code in the job without a password");
    strbuf_clear(&a->repl.last);
    def->put_copy(&a->repl.last, what, a->pid);
    if (!a->repl.last.len)
        strbuf_add(&a->repl.last, strbuf_str(&text), text.len);
    strbuf_fini(&text);
    if (def == &debug_command_debug && t->want.action != WIRE_DEBUG_STATUS)
        t->debugs = t->want.action == WIRE_DEBUG_BEGIN;
    a->data.pulse.status_at_s = 0; /* request the status soon */
}

void app_debug_take(struct app *a, const struct wire_debugger *what) {
    if (a->repl.engine.asked != REPL_DEBUG)
        return;
    app_debug_put(a, what);
    app_repl_end(a, APP_REPL_ANSWERED);
}

void app_debug_forget(struct app *a) {
    wire_debug_fini(&a->debug.want);
    a->debug = (struct app_debug){.def = NULL};
}
