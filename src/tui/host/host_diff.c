/* SPDX-License-Identifier: Apache-2.0 */
/* host_diff: see host_diff.h. */
#include "tui/host/host_diff.h"

#include "client/target/target.h"
#include "tui/core/app_diff.h"
#include "tui/core/app.h"
#include "tui/core/app_screen.h"

int host_diff_resolve(const char *text, struct target_address *addr, struct err *e) {
    if (target_resolve(text, addr, e) != 0)
        return -1;
    if (addr->recorded[0])
        return 0;
    return err_set(e, ERR_USAGE,
                   "'%.200s' is running: --diff takes a recording, or a process that has ended; 'probing PID "
                   "record -o FILE' makes one",
                   text);
}

static void host_diff_on_samples(void *arg, struct model_sample_batch *batch) {
    struct host_diff *r = arg;
    app_diff_take_samples(r->app, batch);
    app_screen_update_all(r->app);
    r->changed(r->arg);
}

static void host_diff_on_state(void *arg, enum session_state state, const struct err *why) {
    struct host_diff *r = arg;
    if (state != SESSION_FAILED && state != SESSION_LOST)
        return;
    app_diff_fail(r->app, why ? why->text : "it cannot be read");
    r->changed(r->arg);
}

static int host_diff_start(struct host_diff *r, const char *name, struct err *e) {
    static const struct session_handler handler = {.on_state = host_diff_on_state,
                                                   .on_samples = host_diff_on_samples};
    struct target_address addr;
    if (host_diff_resolve(name, &addr, e) != 0)
        return -1;
    host_diff_close(r);
    r->session = session_new(r->loop, &addr, &handler, r, e);
    if (!r->session)
        return -1;
    app_diff_expect(r->app, name);
    return session_subscribe(r->session, WIRE_STREAM_SAMPLES, r->app->config.sample_hz, e);
}

void host_diff_open(struct host_diff *r, const char *name) {
    struct err e;
    if (host_diff_start(r, name, &e) != 0)
        app_refuse(r->app, "%s", e.text);
    app_screen_update_all(r->app);
}

void host_diff_close(struct host_diff *r) {
    session_free(r->session);
    r->session = NULL;
}
