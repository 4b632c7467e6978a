/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that python workers answer: who waits for which, whoever goes first. There is no interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "agent/python/worker.h"
#include "agent/server/calls.h"
#include "agent/server/mailbox.h"
#include "base/clock.h"

struct fixture {
    struct mailbox m;
    struct calls c;
    int due, woken;
    struct queue_item *answers; /* that were taken out of the mailbox */
};

static void on_due(void *arg) { ((struct fixture *)arg)->due++; }

static void on_wake(void *arg) { __atomic_add_fetch(&((struct fixture *)arg)->woken, 1, __ATOMIC_RELAXED); }

static void ignore(void *arg) { (void)arg; }

/* Clients 1 to `n`. */
static void begin(struct fixture *f, uint32_t n) {
    struct err e;
    *f = (struct fixture){.due = 0};
    assert_int_equal(mailbox_init(&f->m), 0);
    f->m.worker = worker_new(ignore, NULL, false, &e);
    f->m.evaluator = worker_new(ignore, NULL, false, &e);
    assert_true(f->m.worker && f->m.evaluator);
    calls_init(&f->c, &f->m, on_due, on_wake, f);
    for (uint32_t peer = 1; peer <= n; peer++)
        assert_int_equal(mailbox_attach(&f->m, peer, false), 0);
}

static void end(struct fixture *f) {
    assert_null(f->answers);
    calls_fini(&f->c);
    worker_free(f->m.worker);
    worker_free(f->m.evaluator);
    mailbox_fini(&f->m);
}

static int eval(struct fixture *f, uint32_t peer, uint32_t id, int64_t tid) {
    const struct wire_eval want = {
        .code = "1+1", .code_len = 3, .name = "<t>", .timeout_s = 5, .output_bytes = 100, .tid = tid};
    return calls_add_eval(&f->c, peer, id, &want);
}

static int rows(struct fixture *f, uint32_t peer, uint32_t id, const char *table) {
    struct wire_rows_ask want = {.n_args = 0};
    (void)snprintf(want.table, sizeof want.table, "%s", table);
    return calls_add_rows(&f->c, peer, id, &want);
}

/* The error that some client is answered with; NULL if nobody has an answer. */
static const char *answer_of(struct fixture *f, uint32_t *peer, uint32_t *id) {
    static char text[512];
    if (!f->answers)
        f->answers = mailbox_take(&f->m);
    struct queue_item *item = f->answers;
    if (!item)
        return NULL;
    f->answers = item->next;
    item->next = NULL;
    *peer = item->peer;
    assert_true(item->pulled);
    struct err e;
    struct wire_message *m = wire_parse(item->bytes->text.data, item->bytes->len, &e);
    assert_non_null(m);
    *id = wire_message_id(m);
    enum wire_error code;
    const char *error = wire_message_error(m, &code);
    (void)snprintf(text, sizeof text, "%s", error ? error : "");
    wire_message_free(m);
    queue_item_free(item);
    return text;
}

/* The same of this client and request. */
static const char *answer(struct fixture *f, uint32_t peer, uint32_t id) {
    uint32_t of_peer = peer, of_id = id;
    const char *text = answer_of(f, &of_peer, &of_id);
    assert_int_equal(of_peer, peer);
    assert_int_equal(of_id, id);
    return text;
}

/* As the sampler does. */
static struct mailbox_reading *take_to_read(struct fixture *f) {
    struct mailbox_reading *r = f->m.to_read;
    f->m.to_read = NULL;
    return r;
}

static void one_at_a_time(void **state) {
    struct fixture f;
    (void)state;
    begin(&f, MAILBOX_SLOTS);
    assert_true(calls_next_ns(&f.c) == UINT64_MAX);
    for (uint32_t peer = 1; peer <= MAILBOX_SLOTS; peer++)
        assert_int_equal(peer % 2 ? eval(&f, peer, 1, 0) : rows(&f, peer, 1, "python.modules"), 0);
    assert_int_equal(f.due, MAILBOX_SLOTS);
    assert_true(calls_next_ns(&f.c) == 0);
    assert_int_equal(eval(&f, 1, 2, 0), -1);  /* it waits already */
    assert_int_equal(eval(&f, 99, 1, 0), -1); /* nobody else has a place */
    struct wire_debug want = {.action = WIRE_DEBUG_STATUS, .timeout_s = 1};
    assert_int_equal(calls_add_debug(&f.c, 2, 3, WIRE_DEBUG, &want), -1);
    calls_forget(&f.c, 2);
    want = (struct wire_debug){.action = WIRE_DEBUG_STATUS, .timeout_s = 1};
    assert_int_equal(calls_add_debug(&f.c, 2, 3, WIRE_DEBUG, &want), 0);
    assert_false(calls_are_evaluating(&f.c));
    end(&f); /* with all that waits */
}

static void refused(void **state) {
    struct fixture f;
    (void)state;
    begin(&f, 1);
    assert_int_equal(rows(&f, 1, 7, "python.nothing"), 0);
    calls_poll(&f.c);
    assert_string_equal(answer(&f, 1, 7), "this agent has no table 'python.nothing'");
    assert_int_equal(mailbox_configure(&f.m, "probing.eval", "off", NULL), 0);
    assert_int_equal(eval(&f, 1, 8, 0), 0);
    calls_poll(&f.c);
    assert_string_equal(answer(&f, 1, 8), "code is not run in this job: probing.eval is off");
    assert_true(calls_next_ns(&f.c) == UINT64_MAX);
    end(&f);
}

/* What the sampler reads comes back to whoever has asked; also when that client has gone, or another has its place. */
static void what_was_read(void **state) {
    struct fixture f;
    (void)state;
    begin(&f, 2);
    assert_int_equal(eval(&f, 1, 5, 4001), 0);
    calls_poll(&f.c);
    struct mailbox_reading *r = take_to_read(&f);
    assert_true(r && !r->next && r->kind == MAILBOX_READ_FRAMES && r->tid == 4001);
    calls_forget(&f.c, 1);
    assert_null(r->call);
    assert_int_equal(eval(&f, 2, 6, 4002), 0); /* in the same place */
    mailbox_post_reading(&f.m, r);
    calls_poll(&f.c);
    assert_null(answer(&f, 0, 0));
    r = take_to_read(&f);
    assert_true(r && r->tid == 4002);
    mailbox_post_reading(&f.m, r); /* no interpreter was found */
    calls_poll(&f.c);
    assert_non_null(strstr(answer(&f, 2, 6), "thread 4002 has no Python frames"));
    assert_int_equal(rows(&f, 1, 9, "python.modules"), 0);
    calls_poll(&f.c);
    assert_non_null(f.m.to_read); /* and nobody reads it */
    end(&f);
}

/* Poll until somebody has an answer. */
static const char *wait_for(struct fixture *f, uint32_t *peer, uint32_t *id) {
    const struct timespec pause = {.tv_nsec = (long)CLOCK_NS_PER_MS};
    const char *text = NULL;
    for (int i = 0; i < 20000 && !text; i++) {
        calls_poll(&f->c);
        for (struct mailbox_reading *next, *r = take_to_read(f); r; r = next) {
            next = r->next;
            mailbox_post_reading(&f->m, r);
        }
        text = answer_of(f, peer, id);
        nanosleep(&pause, NULL);
    }
    return text;
}

/* A worker that can do nothing says why; the next request is taken. */
static void nothing_was_run(void **state) {
    struct fixture f;
    (void)state;
    begin(&f, 2);
    assert_int_equal(eval(&f, 1, 1, 0), 0);
    calls_poll(&f.c);
    assert_int_equal(eval(&f, 2, 2, 0), 0);
    /* whether the first has failed before the second comes, and who is answered first, is open */
    const char *text;
    for (unsigned answered = 0; answered != 3;) {
        uint32_t peer = 0, id = 0;
        text = wait_for(&f, &peer, &id);
        assert_true(text && (peer == 1 || peer == 2) && id == peer && !(answered & peer));
        assert_true(strstr(text, "; nothing was run, and nothing will be") ||
                    (peer == 2 && strstr(text, "another eval is running")));
        answered |= peer;
    }
    for (uint64_t until_ns = clock_mono_ns() + 30 * CLOCK_NS_PER_S;
         calls_are_evaluating(&f.c) && clock_mono_ns() < until_ns;)
        calls_poll(&f.c);
    assert_false(calls_are_evaluating(&f.c));
    assert_int_equal(rows(&f, 1, 3, "python.modules"), 0);
    uint32_t peer = 0, id = 0;
    text = wait_for(&f, &peer, &id);
    assert_true(peer == 1 && id == 3);
    assert_string_equal(text, ""); /* no rows, and a note */
    assert_true(__atomic_load_n(&f.woken, __ATOMIC_RELAXED) > 0);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(refused),
        cmocka_unit_test(what_was_read),
        cmocka_unit_test(nothing_was_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
