/* SPDX-License-Identifier: Apache-2.0 */
/* relay_calls: see relay_calls.h. */
#include "client/fleet/relay_calls.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/fleet/clock_offset.h"
#include "client/jobs/jobs_here.h"
#include "client/fleet/report.h"
#include "version.h"
#include "wire/pipe.h"

#define CALLS_START_NS (20 * CLOCK_NS_PER_S) /* until it has greeted, and told its time */
#define CALLS_STARTS 8                       /* at a time */
/* so long does one count among them: ssh's own ConnectTimeout is 5 s, and whoever takes longer hangs and must not keep
 * the others from being started */
#define CALLS_STARTS_NS (5 * CLOCK_NS_PER_S)
#define CALLS_POLL_MS 50
#define CALLS_RETRY_NS (5 * CLOCK_NS_PER_S) /* until a silent host is tried again */
#define CALLS_CLOCK 4                       /* questions for its time */
#define CALLS_READ 65536
#define CALLS_TEXT ((size_t)64 * 1024)

enum call_state {
    CALL_OFF, /* there is no relay */
    CALL_STARTING,
    CALL_IDLE,
    CALL_ASKED,
};

struct relay_call {
    struct relay_host host;
    char name[HOST_NAME_SIZE], note[512];
    struct relay_words words;
    struct relay_child child;
    struct pipe_reader in;
    struct strbuf out;
    size_t out_from;
    enum call_state state;
    bool is_done; /* in this run */
    uint32_t id;
    uint64_t started_ns, failed_ns; /* 0: it has not failed */
    /* connecting */
    struct clock_offset clock;
    double asked_at;
    uint64_t asked_ns;
    unsigned clocks;
    bool has_job;
    char job[WIRE_ROWS_ARG_TEXT];
    struct rank_set claims; /* ranks that it says it has */
};

struct relay_calls {
    char target[WIRE_ROWS_ARG_TEXT], job[WIRE_ROWS_ARG_TEXT];
    bool is_part;
    struct rank_set only; /* the ranks that are meant, if not all */
    relay_serve_fn serve;
    struct relay_call *hosts;
    size_t n;
};

/* ---- one relay ---- */

static void call_end(struct relay_call *h, bool hard) {
    if (h->state == CALL_OFF)
        return;
    relay_child_end(&h->child, hard);
    pipe_reader_fini(&h->in);
    strbuf_fini(&h->out);
    h->state = CALL_OFF;
    h->host.is_there = false;
}

static void call_fail(struct relay_call *h, const char *why) {
    char clean[256], errors[sizeof h->child.said];
    text_sanitize(clean, sizeof clean, why);
    relay_child_put_errors(&h->child, errors, sizeof errors);
    if (h->state == CALL_STARTING && !h->in.is_begun && errors[0])
        snprintf(h->note, sizeof h->note, "no relay: %.240s", errors);
    else
        snprintf(h->note, sizeof h->note, "%s%s%.200s", clean, errors[0] ? ": " : "", errors);
    h->failed_ns = clock_mono_ns();
    call_end(h, true);
    h->host.is_there = false;
}

static void call_start(struct relay_calls *c, struct relay_call *h) {
    struct err e = {0};
    h->started_ns = clock_mono_ns();
    if (relay_child_start(&h->child, h->words.n ? h->words.words : NULL, c->serve, &e) != 0) {
        snprintf(h->note, sizeof h->note, "%s", err_text(&e));
        h->failed_ns = h->started_ns;
        return;
    }
    pipe_reader_init(&h->in, false);
    strbuf_init(&h->out, 0);
    h->out_from = 0;
    h->state = CALL_STARTING;
    h->clock = (struct clock_offset){.n = 0};
    h->clocks = 0;
    h->has_job = false;
    if (h->words.script)
        strbuf_adds(&h->out, h->words.script);
}

/* Write what waits. False: the relay is gone. */
static bool call_flush(struct relay_call *h) {
    while (h->out_from < h->out.len) {
        ssize_t n = write(h->child.in, h->out.data + h->out_from, h->out.len - h->out_from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        h->out_from += (size_t)n;
    }
    strbuf_clear(&h->out);
    h->out_from = 0;
    return true;
}

/* `message` is freed. 1, or -1: the host is silent now. */
static int call_send(struct relay_call *h, struct strbuf *message) {
    bool ok = !message->failed && pipe_put(&h->out, message->data, message->len) == 0;
    strbuf_fini(message);
    h->state = CALL_ASKED;
    h->asked_ns = clock_mono_ns();
    if (ok && call_flush(h))
        return 1;
    call_fail(h, "a request could not be sent");
    return -1;
}

int relay_calls_ask(struct relay_calls *c, size_t i, const struct wire_rows_ask *ask) {
    struct relay_call *h = &c->hosts[i];
    struct strbuf message;
    strbuf_init(&message, WIRE_MAX_MESSAGE);
    wire_put_rows_ask(&message, ++h->id, ask);
    return call_send(h, &message);
}

/* ---- the loop ---- */

static bool call_is_stopped(const struct relay_calls_limit *limit) {
    return limit->stop && limit->stop(limit->arg);
}

static void call_step(struct relay_calls *c, size_t i, relay_calls_step step, void *arg,
                      const struct wire_message *m, const char *why) {
    struct relay_call *h = &c->hosts[i];
    struct err e = {0};
    int rc = step(arg, i, m, why, &e);
    if (rc < 0 && h->state != CALL_OFF)
        call_fail(h, err_text(&e));
    if (rc <= 0)
        h->is_done = true;
}

static void call_on_message(struct relay_calls *c, size_t i, relay_calls_step step, void *arg,
                            const void *data, size_t len) {
    struct relay_call *h = &c->hosts[i];
    struct err e = {0};
    enum wire_error code;
    struct wire_message *m = wire_parse(data, len, &e);
    if (!m)
        call_fail(h, err_text(&e));
    else if (wire_message_type(m) != WIRE_RESPONSE || h->state != CALL_ASKED || wire_message_id(m) != h->id)
        call_fail(h, "it sent what it was not asked for");
    else {
        h->state = CALL_IDLE;
        call_step(c, i, step, arg, m, wire_message_error(m, &code));
    }
    wire_message_free(m);
}

static void call_read(struct relay_calls *c, size_t i, relay_calls_step step, void *arg) {
    struct relay_call *h = &c->hosts[i];
    char data[CALLS_READ];
    const void *message;
    size_t len;
    struct err e = {0};
    ssize_t n = read(h->child.out, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || pipe_reader_add(&h->in, data, (size_t)n) != 0) {
        relay_child_read_errors(&h->child);
        call_fail(h, n <= 0 ? "its relay has ended" : "out of memory for an answer");
        return;
    }
    int rc = 0;
    while (h->state != CALL_OFF && (rc = pipe_reader_next(&h->in, &message, &len, &e)) == 1)
        call_on_message(c, i, step, arg, message, len);
    if (h->state != CALL_OFF && rc < 0)
        call_fail(h, err_text(&e));
    else if (h->state == CALL_STARTING && h->in.is_begun) {
        h->state = CALL_IDLE;
        call_step(c, i, step, arg, NULL, NULL);
    }
}

static size_t call_count_starting(const struct relay_calls *c) {
    uint64_t now = clock_mono_ns();
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->hosts[i].state == CALL_STARTING && now < c->hosts[i].started_ns + CALLS_STARTS_NS;
    return n;
}

/* One turn of waiting for the hosts that are not done. */
static void call_wait(struct relay_calls *c, relay_calls_step step, void *arg, struct pollfd *fds) {
    for (size_t i = 0; i < c->n; i++) {
        const struct relay_call *h = &c->hosts[i];
        bool waits = !h->is_done && h->state != CALL_OFF;
        fds[3 * i] = (struct pollfd){.fd = waits ? h->child.out : -1, .events = POLLIN};
        fds[3 * i + 1] = (struct pollfd){.fd = waits ? h->child.errors : -1, .events = POLLIN};
        fds[3 * i + 2] = (struct pollfd){.fd = waits && h->out.len ? h->child.in : -1, .events = POLLOUT};
    }
    poll(fds, 3 * c->n, CALLS_POLL_MS);
    for (size_t i = 0; i < c->n; i++) {
        struct relay_call *h = &c->hosts[i];
        if (fds[3 * i + 1].revents && relay_child_read_errors(&h->child) != 0)
            call_fail(h, "it prints errors without an end");
        if (fds[3 * i + 2].revents && h->state != CALL_OFF && !call_flush(h))
            call_fail(h, "its relay has ended");
        if (fds[3 * i].revents && h->state != CALL_OFF)
            call_read(c, i, step, arg);
        bool is_new = h->state == CALL_STARTING || (h->state == CALL_ASKED && h->clocks < CALLS_CLOCK);
        if (is_new && clock_mono_ns() - h->started_ns > CALLS_START_NS)
            call_fail(h, "its relay did not answer in time");
        h->is_done |= h->state == CALL_OFF && h->failed_ns;
    }
}

/* Until all are done. `starts`: relays that are off are started. */
static int call_run(struct relay_calls *c, const struct relay_calls_limit *limit, relay_calls_step step,
                    void *arg, bool starts) {
    uint64_t until = clock_mono_ns() + (uint64_t)(limit->limit_s * (double)CLOCK_NS_PER_S);
    struct pollfd *fds = calloc(3 * c->n, sizeof *fds);
    bool waits = fds != NULL, stopped = false;
    for (size_t i = 0; i < c->n; i++)
        if (!c->hosts[i].is_done && c->hosts[i].state == CALL_IDLE)
            call_step(c, i, step, arg, NULL, NULL);
    while (waits && !(stopped = call_is_stopped(limit)) && clock_mono_ns() < until) {
        waits = false;
        for (size_t i = 0; i < c->n; i++) {
            struct relay_call *h = &c->hosts[i];
            if (starts && !h->is_done && h->state == CALL_OFF && relay_child_is_over(&h->child) &&
                call_count_starting(c) < CALLS_STARTS)
                call_start(c, h);
            h->is_done |= h->state == CALL_OFF && h->failed_ns;
            waits |= !h->is_done;
        }
        if (waits)
            call_wait(c, step, arg, fds);
    }
    for (size_t i = 0; i < c->n; i++)
        if (!c->hosts[i].is_done && !stopped)
            call_fail(&c->hosts[i], c->hosts[i].state == CALL_OFF ? "it was not reached in time"
                                                                  : "it did not answer in time");
    free(fds);
    return stopped ? -1 : 0;
}

int relay_calls_run(struct relay_calls *c, const struct relay_calls_limit *limit, relay_calls_step step,
                    void *arg) {
    for (size_t i = 0; i < c->n; i++)
        c->hosts[i].is_done = !c->hosts[i].host.is_there;
    return call_run(c, limit, step, arg, false);
}

void relay_calls_drop(struct relay_calls *c) {
    for (size_t i = 0; i < c->n; i++)
        if (c->hosts[i].state == CALL_ASKED)
            call_end(&c->hosts[i], true);
}

/* ---- connecting ---- */

static int call_ask_hello(struct relay_call *h) {
    struct strbuf message;
    strbuf_init(&message, WIRE_MAX_MESSAGE);
    wire_put_hello(&message, ++h->id, PROBING_VERSION);
    return call_send(h, &message);
}

static int call_ask_clock(struct relay_calls *c, size_t i) {
    c->hosts[i].clocks++;
    c->hosts[i].asked_at = clock_epoch_s();
    return relay_calls_ask(c, i, &(struct wire_rows_ask){.table = REPORT_CLOCK});
}

static int call_ask_job(struct relay_calls *c, size_t i) {
    struct wire_rows_ask ask = {.table = REPORT_JOB, .args = {{.key = "name", .is_text = true}}, .n_args = 1};
    snprintf(ask.args[0].text, sizeof ask.args[0].text, "%s", c->job[0] ? c->job : c->target);
    return relay_calls_ask(c, i, &ask);
}

static int call_take_clock(struct relay_call *h, const struct wire_message *m, struct err *e) {
    struct report_reader reader;
    struct report_clock row;
    struct arena texts;
    arena_init(&texts, CALLS_TEXT);
    bool ok =
        report_begin(&reader, &REPORT_TABLE_CLOCK, m, e) == 0 && report_next(&reader, &row, &texts) == 1;
    arena_fini(&texts);
    if (!ok)
        return err_set(e, ERR_FAILED, "its answer about its clock is not valid");
    double took_s = (double)(clock_mono_ns() - h->asked_ns) / (double)CLOCK_NS_PER_S;
    clock_offset_add(&h->clock, h->asked_at, row.at, h->asked_at + took_s, took_s);
    return 0;
}

static int call_take_job(struct relay_call *h, const struct wire_message *m, struct err *e) {
    struct report_reader reader;
    struct report_job row;
    struct arena texts;
    arena_init(&texts, 4 * CALLS_TEXT);
    bool ok = report_begin(&reader, &REPORT_TABLE_JOB, m, e) == 0 &&
              report_next(&reader, &row, &texts) == 1 && row.name;
    if (ok) {
        snprintf(h->job, sizeof h->job, "%s", row.name);
        h->has_job = true;
        ok = rank_set_parse(&h->claims, row.ranks ? row.ranks : "", NULL) == 0 || !row.ranks;
    }
    arena_fini(&texts);
    return ok ? 0 : err_set(e, ERR_FAILED, "its answer about the job is not valid");
}

static int call_connect_step(void *arg, size_t i, const struct wire_message *m, const char *why,
                             struct err *e) {
    struct relay_calls *c = arg;
    struct relay_call *h = &c->hosts[i];
    if (!m)
        return h->clocks ? call_ask_job(c, i) : call_ask_hello(h);
    if (why && h->clocks < CALLS_CLOCK)
        return err_set(e, ERR_FAILED, "%.400s", why);
    if (why) { /* it has no such job: that is an answer */
        text_sanitize(h->note, sizeof h->note, why);
        h->has_job = false;
        return 0;
    }
    if (h->clocks == 0) {
        struct model_target t;
        int rc = wire_get_target(m, &t, e);
        model_target_fini(&t);
        return rc != 0 ? -1 : call_ask_clock(c, i);
    }
    if (h->asked_at > 0) {
        if (call_take_clock(h, m, e) != 0)
            return -1;
        if (h->clocks < CALLS_CLOCK)
            return call_ask_clock(c, i);
        h->asked_at = 0;
        return call_ask_job(c, i);
    }
    return call_take_job(h, m, e);
}

/* Leave those that are meant. 0, or -1 without memory. */
static int call_choose_ranks(const struct relay_calls *c, struct relay_host *h) {
    struct rank_set others = {.n = 0};
    int rc =
        c->is_part && (rank_set_join(&others, &h->ranks) != 0 || rank_set_remove(&others, &c->only) != 0 ||
                       rank_set_remove(&h->ranks, &others) != 0)
            ? -1
            : 0;
    h->is_part = others.n > 0;
    rank_set_fini(&others);
    return rc;
}

/* Each rank is the first host's that has it. 0, or -1 without memory. */
static int call_share_ranks(struct relay_calls *c) {
    struct rank_set taken = {.n = 0};
    int rc = 0;
    for (size_t i = 0; i < c->n && rc == 0; i++) {
        struct relay_call *h = &c->hosts[i];
        double ahead_ms, error_ms;
        h->host.is_there = h->state == CALL_IDLE && h->has_job && strcmp(h->job, c->job) == 0;
        rank_set_fini(&h->host.ranks);
        if (!h->host.is_there)
            continue;
        h->note[0] = '\0';
        bool known = clock_offset_get(&h->clock, &ahead_ms, &error_ms);
        h->host.ahead_s = known && fabs(ahead_ms) > error_ms ? ahead_ms / 1e3 : 0;
        if (rank_set_join(&h->host.ranks, &h->claims) != 0 || rank_set_remove(&h->host.ranks, &taken) != 0 ||
            rank_set_join(&taken, &h->host.ranks) != 0 || call_choose_ranks(c, &h->host) != 0)
            rc = -1;
    }
    rank_set_fini(&taken);
    return rc;
}

static int call_explain(const struct relay_calls *c, struct err *e) {
    struct strbuf text;
    strbuf_init(&text, 0);
    relay_calls_put_silent(c, &text);
    int rc = err_set(e, ERR_ATTACH, "no host has ranks of the job: %.400s", strbuf_str(&text));
    strbuf_fini(&text);
    return rc;
}

int relay_calls_connect(struct relay_calls *c, const struct relay_calls_limit *limit, struct err *e) {
    uint64_t now = clock_mono_ns();
    bool any = false;
    for (size_t i = 0; i < c->n; i++) {
        struct relay_call *h = &c->hosts[i];
        h->is_done = h->failed_ns && now - h->failed_ns <= CALLS_RETRY_NS;
        if (!h->is_done) {
            h->failed_ns = 0;
            /* until it has answered: ranks may have been started since, or moved to another host */
            h->host.is_there = false;
        }
        any |= !h->is_done;
    }
    if (any && call_run(c, limit, call_connect_step, c, true) != 0)
        return err_set(e, ERR_FAILED, "interrupted");
    for (size_t i = 0; i < c->n && !c->job[0]; i++)
        if (c->hosts[i].state == CALL_IDLE && c->hosts[i].has_job)
            snprintf(c->job, sizeof c->job, "%s", c->hosts[i].job);
    /* a host may have taken another job for the only one */
    any = false;
    for (size_t i = 0; i < c->n; i++) {
        struct relay_call *h = &c->hosts[i];
        h->is_done = h->state != CALL_IDLE || !h->has_job || strcmp(h->job, c->job) == 0;
        any |= !h->is_done;
    }
    if (any && call_run(c, limit, call_connect_step, c, false) != 0)
        return err_set(e, ERR_FAILED, "interrupted");
    if (call_share_ranks(c) != 0)
        return err_set(e, ERR_FAILED, "out of memory for the ranks of the hosts");
    for (size_t i = 0; i < c->n; i++)
        if (c->hosts[i].host.is_there)
            return 0;
    return call_explain(c, e);
}

/* ---- for the owner ---- */

struct relay_calls *relay_calls_new(const char *target, const struct fleet_reach *reach, struct err *e) {
    struct relay_calls *c = calloc(1, sizeof *c);
    if (c)
        c->hosts = calloc(reach->hosts.n + 1, sizeof *c->hosts);
    if (!c || !c->hosts) {
        free(c);
        err_set(e, ERR_FAILED, "out of memory for %zu hosts", reach->hosts.n);
        return NULL;
    }
    if (jobs_is_target(target))
        target += strlen(JOBS_TARGET);
    snprintf(c->target, sizeof c->target, "%.*s", (int)strcspn(target, "/"), target);
    c->is_part = strchr(target, '/') != NULL;
    if (c->is_part && rank_set_parse(&c->only, strchr(target, '/') + 1, e) != 0) {
        relay_calls_free(c);
        return NULL;
    }
    c->serve = reach->serve;
    c->n = reach->hosts.n;
    for (size_t i = 0; i < c->n; i++) {
        struct relay_call *h = &c->hosts[i];
        h->child = (struct relay_child){.in = -1, .out = -1, .errors = -1};
        snprintf(h->name, sizeof h->name, "%s", reach->hosts.names[i]);
        h->host.name = h->name;
        h->host.note = h->note;
        if (relay_via_words(&reach->via, h->name, &h->words, e) != 0) {
            relay_calls_free(c);
            return NULL;
        }
    }
    return c;
}

void relay_calls_free(struct relay_calls *c) {
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        call_end(&c->hosts[i], c->hosts[i].state == CALL_ASKED);
    for (size_t i = 0; i < c->n; i++) {
        while (!relay_child_is_over(&c->hosts[i].child))
            nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
        rank_set_fini(&c->hosts[i].host.ranks);
        rank_set_fini(&c->hosts[i].claims);
    }
    rank_set_fini(&c->only);
    free(c->hosts);
    free(c);
}

bool relay_calls_is_part(const struct relay_calls *c) { return c->is_part; }

size_t relay_calls_count(const struct relay_calls *c) { return c->n; }

const struct relay_host *relay_calls_host(const struct relay_calls *c, size_t i) { return &c->hosts[i].host; }

const char *relay_calls_job(const struct relay_calls *c) { return c->job; }

void relay_calls_put_silent(const struct relay_calls *c, struct strbuf *out) {
    for (size_t i = 0; i < c->n; i++) {
        const struct relay_call *h = &c->hosts[i];
        if (h->host.is_there)
            continue;
        strbuf_addf(out, "%s%s", out->len ? "; " : "", h->name);
        if (h->note[0])
            strbuf_addf(out, " (%s)", h->note);
    }
}
