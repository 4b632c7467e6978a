/* SPDX-License-Identifier: Apache-2.0 */
/* rank_probe: see rank_probe.h. */
#include "client/fleet/rank_probe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/text.h"
#include "client/session/call.h"
#include "client/target/exit_reason.h"
#include "client/target/rings.h"
#include "client/target/target.h"

#define RANK_PROBE_ASK_NS (1200 * CLOCK_NS_PER_MS) /* for an agent to answer */
#define RANK_PROBE_REST_NS (4 * CLOCK_NS_PER_S)    /* until a silent one is asked again */

enum rank_probe_kind { RANK_PROBE_STATE, RANK_PROBE_GROUP, RANK_PROBE_END };

/* What the child sends, up to the part that its kind has. */
struct rank_probe_message {
    enum rank_probe_kind kind;
    union {
        struct rank_state state;
        struct rank_group group;
        struct {
            enum rank_answer answer;
            double asked_s;
            char why[160];
        } end;
    };
};

void rank_reading_fini(struct rank_reading *r) {
    free(r->groups);
    *r = (struct rank_reading){.n_groups = 0};
}

/* ---- in the child ---- */

struct rank_probe_child {
    pid_t pid;
    int fd;
    struct pystack *python;
    struct call *call; /* to its agent; NULL: not connected */
    uint64_t until_ns; /* of a question */
    uint64_t rest_ns;  /* not before that is it asked again */
    char ended[160];   /* how it has ended; "" it has not */
};

static bool rank_probe_is_late(void *arg) {
    const struct rank_probe_child *c = arg;
    return clock_mono_ns() > c->until_ns;
}

static void rank_probe_send(const struct rank_probe_child *c, const struct rank_probe_message *m) {
    send(c->fd, m, sizeof *m, MSG_NOSIGNAL);
}

/* 1 connected, 0 there is no agent, -1 it does not answer. */
static int rank_probe_connect(struct rank_probe_child *c, struct err *e) {
    struct target_address addr = {.pid = c->pid};
    if (c->call)
        return 1;
    int rc = target_find_endpoint(&addr, e);
    if (rc <= 0)
        return rc;
    c->call = call_open_stoppable(&addr, rank_probe_is_late, c, e);
    return c->call ? 1 : -1;
}

static enum rank_answer rank_probe_ask_agent(struct rank_probe_child *c, struct err *e) {
    struct wire_rows_ask ask = {.n_args = 0};
    struct rank_group *groups = NULL;
    if (clock_mono_ns() < c->rest_ns)
        return RANK_SILENT;
    c->until_ns = clock_mono_ns() + RANK_PROBE_ASK_NS;
    int rc = rank_probe_connect(c, e);
    if (rc == 0)
        return RANK_NOT_ASKED;
    snprintf(ask.table, sizeof ask.table, "%s", RANK_GROUP_TABLE);
    if (rc > 0)
        call_set_stop(c->call, rank_probe_is_late, c);
    struct wire_message *answer = rc > 0 ? call_ask(c->call, WIRE_ROWS, &ask, e) : NULL;
    if (!answer) {
        bool refused = rc > 0 && !rank_probe_is_late(c) && !call_is_lost(c->call);
        call_close(c->call);
        c->call = NULL;
        c->rest_ns = clock_mono_ns() + RANK_PROBE_REST_NS;
        return refused ? RANK_REFUSED : RANK_SILENT;
    }
    groups = calloc(RANK_GROUPS_MAX, sizeof *groups);
    ssize_t n = groups ? rank_groups_read(answer, groups, RANK_GROUPS_MAX, e) : -1;
    for (ssize_t i = 0; i < n; i++)
        rank_probe_send(c, &(struct rank_probe_message){.kind = RANK_PROBE_GROUP, .group = groups[i]});
    wire_message_free(answer);
    free(groups);
    return n < 0 || (n == 0 && e->text[0]) ? RANK_REFUSED : RANK_ANSWERED;
}

/* The kernel's log and what the process has left are read once. */
static void rank_probe_explain_end(struct rank_probe_child *c, struct rank_state *s) {
    struct rings_place place;
    struct err ignored;
    if (!c->ended[0]) {
        if (rings_find_dead(c->pid, &place, &ignored) <= 0)
            place = (struct rings_place){.pid = c->pid};
        exit_reason_explain(&place, c->pid, c->ended, sizeof c->ended);
    }
    text_sanitize(s->why, sizeof s->why, c->ended);
}

static void rank_probe_work(void *arg, int fd) {
    struct rank_probe_child c = {.pid = *(pid_t *)arg, .fd = fd};
    char command;
    while (recv(fd, &command, 1, 0) == 1) {
        struct rank_probe_message m = {.kind = RANK_PROBE_STATE}, end = {.kind = RANK_PROBE_END};
        struct err e = {.code = ERR_OK, .text = ""};
        rank_state_read(&m.state, c.pid, &c.python);
        if (m.state.gone)
            rank_probe_explain_end(&c, &m.state);
        rank_probe_send(&c, &m);
        end.end.asked_s = (double)clock_mono_ns() / 1e9;
        if (command == 'c' && !m.state.gone)
            end.end.answer = rank_probe_ask_agent(&c, &e);
        text_sanitize(end.end.why, sizeof end.end.why, e.text);
        rank_probe_send(&c, &end);
    }
}

/* ---- here ---- */

int rank_probe_start(struct rank_probe *p, pid_t pid, unsigned limit_s) {
    *p = (struct rank_probe){.pid = pid};
    p->running = guard_start(&p->guard, rank_probe_work, &p->pid, pid, limit_s * 1000) == 0;
    return p->running ? 0 : -1;
}

void rank_probe_ask(struct rank_probe *p, bool counters) {
    rank_reading_fini(&p->reading);
    rank_state_init(&p->reading.state);
    p->has_state = false;
    p->pending = p->running && send(p->guard.fd, counters ? "c" : "s", 1, MSG_NOSIGNAL) == 1;
}

static void rank_probe_add(struct rank_probe *p, const struct rank_group *group) {
    struct rank_reading *r = &p->reading;
    struct rank_group *more =
        r->n_groups < RANK_GROUPS_MAX ? realloc(r->groups, (r->n_groups + 1) * sizeof *more) : NULL;
    if (!more)
        return;
    r->groups = more;
    r->groups[r->n_groups++] = *group;
}

bool rank_probe_take(struct rank_probe *p) {
    struct rank_probe_message m;
    while (p->pending) {
        ssize_t n = recv(p->guard.fd, &m, sizeof m, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return false;
        if (n != sizeof m) { /* it has crashed, or its time is over */
            p->pending = false;
            rank_probe_stop(p);
        } else if (m.kind == RANK_PROBE_STATE) {
            p->reading.state = m.state;
            p->has_state = true;
        } else if (m.kind == RANK_PROBE_GROUP) {
            rank_probe_add(p, &m.group);
        } else {
            p->reading.answer = m.end.answer;
            p->reading.asked_s = m.end.asked_s;
            memcpy(p->reading.why, m.end.why, sizeof p->reading.why);
            p->pending = false;
        }
    }
    return true;
}

void rank_probe_end(struct rank_probe *p, struct rank_reading *out) {
    struct rank_reading *r = &p->reading;
    if (!p->has_state) {
        /* the kernel's facts come from here: they do not wait for the process */
        r->blocked = true;
        r->state.at_s = (double)clock_mono_ns() / 1e9;
        r->state.gone = procfs_is_gone(p->pid);
        snprintf(r->state.why, sizeof r->state.why, "the process blocks its reader");
    }
    if (p->pending) {
        r->answer = RANK_SILENT;
        rank_probe_stop(p);
    }
    *out = *r;
    p->reading = (struct rank_reading){.n_groups = 0};
    p->pending = p->has_state = false;
}

void rank_probe_stop(struct rank_probe *p) {
    if (p->running)
        guard_stop(&p->guard, p->pid);
    p->running = false;
}
