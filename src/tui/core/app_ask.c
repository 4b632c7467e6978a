/* SPDX-License-Identifier: Apache-2.0 */
/* app_ask: see app_ask.h. */
#include "tui/core/app_ask.h"

#include "tui/keys/input.h"

/* torch.profiler is not here: its key counts first what it would cost, and that is its question. */
static const struct {
    enum action action;
    const char *question;
} app_ask_questions[] = {
    {ACTION_DEBUG, "Start debugpy in the job? Anyone who reaches its port can run code there."},
    {ACTION_NAN_SEARCH, "Search the next steps for NaN? They take longer."},
    {ACTION_TRACE, "Time the modules of some training steps? These take longer."},
    {ACTION_TRACE_MEMORY, "Trace allocations? It costs the job about 1 % of a core."},
    {ACTION_REPR, "Show values by repr()? It runs code of the job."},
};

const char *app_ask_question(enum action action) {
    for (size_t i = 0; i < sizeof app_ask_questions / sizeof app_ask_questions[0]; i++)
        if (app_ask_questions[i].action == action)
            return app_ask_questions[i].question;
    return NULL;
}

/* Does it end what was begun from here, or only show what others have begun? */
static bool app_ask_ends(const struct app *a, enum action action) {
    enum arm_kind kind = arms_find(action);
    if (kind != ARM_KINDS)
        return a->data.arms.kinds[kind].mine;
    return action == ACTION_DEBUG && (a->debug.debugs || debuggers_have(&a->data.holds, "debug"));
}

bool app_ask_first(struct app *a, enum action action) {
    const struct data *d = &a->data;
    bool has_agent = d->state == SESSION_CONNECTED && d->has_target && d->target.mode == MODEL_MODE_AGENT;
    if (!app_ask_question(action) || !has_agent || a->ask.agreed[action] || app_ask_ends(a, action))
        return false;
    a->ask.action = action;
    return true;
}

bool app_ask_answer(struct app *a, uint32_t key, enum action *action) {
    *action = a->ask.action;
    a->ask.action = ACTION_NONE;
    if (key != 'y' && key != 'Y') {
        app_message(a, false, "no: nothing was done");
        return false;
    }
    a->ask.agreed[*action] = true;
    return true;
}

void app_ask_forget(struct app *a) {
    if (!a->ask.action)
        return;
    a->ask.action = ACTION_NONE;
    app_message(a, false, "another target is shown now: nothing was done");
}
