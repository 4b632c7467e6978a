/* SPDX-License-Identifier: Apache-2.0 */
/* armed: see armed.h. */
#include "cli/armed.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/progress.h"

#define ARMED_POLL_S 0.1 /* between two checks of the lease */
#define ARMED_ABSENT 2   /* checks that do not find the lease: it is over */
#define ARMED_QUERY_S 20.0
#define ARMED_QUERY_MAX 4096

static volatile sig_atomic_t armed_interrupted;

static void armed_on_signal(int number) {
    (void)number;
    armed_interrupted = 1;
}

bool armed_is_interrupted(void) { return armed_interrupted != 0; }

/* Read the state of the lease from the agent's status. */
static int armed_poll(struct armed *a, struct err *e) {
    struct model_status status;
    bool found = false, listed = false;
    if (call_status(a->call, &status, e) != 0) {
        model_status_fini(&status);
        return -1;
    }
    for (size_t i = 0; i < status.n_leases; i++) {
        const struct model_lease *l = &status.leases[i];
        if (!l->what || strcmp(l->what, a->want.what) != 0)
            continue;
        listed = true;
        found = l->owners > 0 || l->by_config || l->armed;
        a->looks = l->looks - a->before;
        a->cost_pct = isnan(l->cost_pct) ? a->cost_pct : l->cost_pct;
        snprintf(a->note, sizeof a->note, "%s", l->note ? l->note : "");
        snprintf(a->file, sizeof a->file, "%s", l->file ? l->file : "");
    }
    model_status_fini(&status);
    if (!found && !listed) /* earlier notes do not explain how it ended */
        a->note[0] = '\0';
    /* An agent that has just agreed may not report the lease yet. */
    a->absent = found ? 0 : a->absent + 1;
    a->over = a->absent > 0 && (a->seen || a->absent >= ARMED_ABSENT);
    a->seen |= found;
    return 0;
}

int armed_begin(struct armed *a, const struct cli_options *o, struct target_address *addr,
                const struct wire_arm *want, struct err *e) {
    struct sigaction action = {.sa_handler = armed_on_signal, .sa_flags = (int)SA_RESETHAND};
    *a = (struct armed){.want = *want, .cost_pct = NAN};
    if (cli_open_database(o, addr, false, &a->database, e) != 0)
        return -1;
    a->call = call_open(addr, e);
    if (!a->call || armed_poll(a, e) != 0)
        return -1;
    a->before = a->seen ? a->looks : 0; /* another client has it already */
    a->seen = a->over = false;
    a->absent = 0;
    a->looks = 0;
    a->note[0] = a->file[0] = '\0';
    /* From here on, before the lease begins, ^C ends it in order. */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    a->began_s = clock_epoch_s();
    return call_arm(a->call, want, e);
}

/* What the user waits for. */
static void armed_show(const struct armed *a, double duration_s) {
    static const struct {
        const char *what, *text, *unit;
        bool has_time; /* it takes all of its time */
    } kinds[] = {
        {"trace", "tracing", "steps", false},
        {"nan", "searching", "steps", false},
        {"profiler", "profiling", "steps", false},
        {"alloc", "tracing allocations", "samples", true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(a->want.what, kinds[i].what) == 0)
            progress_begin(a->want.dry ? "counting operations" : kinds[i].text,
                           kinds[i].has_time ? duration_s : 0, "^C ends it");
}

static void armed_show_steps(const struct armed *a) {
    bool is_alloc = strcmp(a->want.what, "alloc") == 0;
    if (is_alloc)
        progress_note("%lld samples", (long long)a->looks);
    else if (a->want.steps > 0)
        progress_note("%lld of %lld steps", (long long)a->looks, (long long)a->want.steps);
    else
        progress_note("%lld steps", (long long)a->looks);
}

static int armed_wait_for(struct armed *a, double duration_s, bool (*is_done)(struct armed *a),
                          struct err *e) {
    double until_s = clock_epoch_s() + duration_s;
    for (;;) {
        double now_s = clock_epoch_s();
        if (armed_poll(a, e) != 0)
            return -1;
        armed_show_steps(a);
        bool enough = a->want.steps > 0 && a->looks >= a->want.steps && !a->ends;
        a->cut = armed_interrupted != 0;
        if (enough || a->over || a->cut || now_s >= until_s || (is_done && is_done(a)))
            return 0;
        if (call_rest(a->call, fmin(ARMED_POLL_S, until_s - now_s), e) != 0)
            return -1;
    }
}

int armed_wait(struct armed *a, double duration_s, bool (*is_done)(struct armed *a), struct err *e) {
    armed_show(a, duration_s);
    int rc = armed_wait_for(a, duration_s, is_done, e);
    progress_end();
    return rc;
}

int armed_renew(struct armed *a, int64_t steps, struct err *e) {
    a->want.steps = steps;
    a->before = a->looks = 0; /* each lease counts from 0 */
    a->seen = a->over = false;
    a->absent = 0;
    return call_arm(a->call, &a->want, e);
}

struct result *armed_ask(struct armed *a, const char *text, struct err *e) {
    struct sql_query q = {.timeout_s = ARMED_QUERY_S};
    char whole[ARMED_QUERY_MAX], since[32];
    const char *at = strstr(text, "%.6f");
    snprintf(since, sizeof since, "%.6f", a->began_s);
    snprintf(whole, sizeof whole, "%.*s%s%s", at ? (int)(at - text) : 0, text, at ? since : "",
             at ? at + strlen("%.6f") : text);
    if (database_refresh(a->database, e) != 0)
        return NULL;
    return database_take(a->database, whole, &q, RESULT_BYTES, e);
}

void armed_end(struct armed *a) {
    struct err late;
    if (a->call && a->began_s > 0 && !a->over)
        call_disarm(a->call, &a->want, &late);
    call_close(a->call);
    database_close(a->database);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}
