/* SPDX-License-Identifier: Apache-2.0 */
/* app_life: see app_life.h. */
#include "tui/core/app_life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/engine/engine_address.h"
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_debug.h"
#include "tui/core/app_diff.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_job.h"
#include "tui/core/app_query.h"
#include "tui/core/app_repl.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_settings.h"
#include "tui/core/command.h"
#include "tui/core/job_state.h"
#include "tui/core/row_actions.h"
#include "tui/core/screen.h"
#include "tui/core/targets.h"
#include "tui/core/tour.h"

/* Open the first screen: the one that was asked for, or that of the settings. */
static void app_life_open_first_screen(struct app *a) {
    const struct screen_def *tab = a->config.screen;
    if (tab) {
        app_screen_open(a, tab->opens[0].action);
        return;
    }
    for (int i = 0; (tab = screen_tab(i)); i++)
        if (strcmp(tab->name, a->settings.values[SETTINGS_SCREEN]) == 0)
            app_input_act(a, tab->opens[0].action);
}

struct app *app_new(const struct app_config *config) {
    struct app *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->config = *config;
    a->host = config->host ? *config->host : app_host_none;
    a->mouse = config->mouse;
    app_settings_begin(a, config->settings);
    a->cursor_row = a->footer_row = -1;
    data_init(&a->data);
    a->began_s = a->data.pulse.began_s = config->began_s;
    app_query_init(&a->query);
    app_repl_init(&a->repl);
    job_state_init(&a->job);
    a->log = log_new();
    command_line_init(&a->command);
    row_actions_init(&a->row_actions);
    a->row_actions.readonly = config->readonly;
    app_screen_push(a, config->pick         ? &screen_picker
                       : config->job_server ? &screen_job_picker
                                            : &screen_threads);
    if (a->n_screens == 0) {
        app_free(a);
        return NULL;
    }
    if (config->job)
        app_job_watch(a, config->job);
    if (config->job_filter)
        snprintf(a->job.filter, sizeof a->job.filter, "%s", config->job_filter);
    if (config->tour)
        tour_begin(a);
    else if (!app_screen_is_choice(a))
        app_life_open_first_screen(a);
    if (config->diff)
        a->host.open_diff(a->host.arg, config->diff);
    return a;
}

void app_free(struct app *a) {
    if (!a)
        return;
    a->host = app_host_none; /* it may be gone */
    app_screen_drop_all(a);
    target_list_free(a->processes, a->n_processes);
    engine_jobs_fini(&a->jobs.list);
    targets_fini(a);
    job_state_fini(&a->job);
    data_fini(&a->data);
    app_diff_fini(&a->diff);
    app_query_fini(&a->query);
    app_repl_fini(&a->repl);
    app_debug_forget(a);
    app_feeds_fini(&a->feeds);
    app_forget_source(a);
    log_free(a->log);
    command_line_fini(&a->command);
    tags_fini(&a->threads);
    tags_fini(&a->functions);
    free(a);
}

int app_exit_status(const struct app *a) {
    /* a rank that was opened and has ended is not the target: that is the job */
    return data_is_over(&a->data) && !a->config.job ? ERR_LOST : 0;
}

/* ---- what was chosen ---- */

void app_attach_done(struct app *a, const struct err *why) {
    a->attaching = 0;
    a->attaches_several = false;
    if (a->job.opening >= 0) {
        app_job_attached(a, why);
        return;
    }
    if (why) {
        app_message(a, true, "%s", why->text);
        return;
    }
    a->message[0] = '\0';
    app_screen_drop_all(a);
    app_screen_push(a, &screen_threads);
    app_life_open_first_screen(a);
}

void app_choose_job(struct app *a, const char *name) {
    char target[sizeof a->job.target];
    struct err e;
    if (engine_address_name_job(a->config.job_server, name, target, sizeof target, &e) != 0) {
        app_message(a, true, "%s", e.text);
        return;
    }
    app_screen_drop_all(a);
    app_screen_push(a, &screen_threads);
    app_job_watch(a, target);
    a->config.job = a->job.target;
    app_life_open_first_screen(a);
}

pid_t app_attach_next(struct app *a) {
    if (a->n_attach_more == 0)
        return 0;
    pid_t next = a->attach_more[0];
    a->n_attach_more--;
    memmove(a->attach_more, a->attach_more + 1, (size_t)a->n_attach_more * sizeof next);
    return next;
}
