/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's parts that need no process around them: the queue to a client, costs. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/server/reply.h"
#include "agent/sampler/signal_sampler.h"
#include "agent/server/mailbox.h"
#include "agent/server/peer.h"
#include "agent/server/queue.h"
#include "base/clock.h"
#include "base/cost.h"
#include "base/procfs.h"

/* ---- queue ---- */

static struct queue_item *item(enum queue_kind kind, size_t len) {
    struct strbuf b;
    strbuf_init(&b, 0);
    char *text = calloc(1, len);
    assert_non_null(text);
    assert_int_equal(strbuf_add(&b, text, len), 0);
    struct queue_item *i = queue_item_new(queue_bytes_new(&b), kind, 1);
    assert_non_null(i);
    free(text);
    strbuf_fini(&b);
    return i;
}

/* Of answers so many bytes, but for those that a client has one of at a time. What several wait for is counted once. */
static void check_queue_bounds_bytes(void **state) {
    (void)state;
    struct queue q = {0}, other = {0};
    struct queue_budget room = {.most = 3 * 1024 * 1024};
    struct queue_item *long_one = item(QUEUE_ANSWER, 2 * QUEUE_MAX_ANSWER_BYTES);
    long_one->looked = true;
    assert_int_equal(queue_push(&q, long_one), 0);
    assert_int_equal(queue_push(&q, item(QUEUE_ANSWER, QUEUE_MAX_ANSWER_BYTES)), 0);
    struct queue_item *more = item(QUEUE_ANSWER, 1);
    assert_int_equal(queue_push(&q, more), -1);
    queue_item_free(more);
    queue_fini(&q);
    assert_int_equal(q.answer_bytes, 0);
    struct queue_item *shared = item(QUEUE_SNAPSHOT, 2 * 1024 * 1024);
    struct queue_bytes *bytes = queue_bytes_ref(shared->bytes);
    assert_int_equal(queue_push(&q, shared), 0);
    assert_int_equal(queue_push(&other, queue_item_new(bytes, QUEUE_SNAPSHOT, 2)), 0);
    queue_bytes_count(bytes, &room);
    queue_bytes_count(bytes, &room);
    assert_int_equal(room.used, 2 * 1024 * 1024);
    assert_false(queue_budget_is_over(&room));
    queue_fini(&q);
    assert_int_equal(room.used, 2 * 1024 * 1024);
    queue_fini(&other);
    assert_int_equal(room.used, 0);
}

static void check_queue_drops_the_oldest_notification(void **state) {
    (void)state;
    struct queue q = {0};
    assert_int_equal(queue_push(&q, item(QUEUE_SNAPSHOT, 7)), 0);
    assert_int_equal(queue_push(&q, item(QUEUE_ANSWER, 1)), 0);
    for (size_t i = 1; i < QUEUE_MAX_NOTES; i++) {
        assert_int_equal(queue_push(&q, item(QUEUE_SNAPSHOT, 10 + i)), 0);
        assert_null(queue_overflow(&q));
    }
    assert_int_equal(queue_push(&q, item(QUEUE_SNAPSHOT, 500)), 0);
    struct queue_item *dropped = queue_overflow(&q);
    assert_non_null(dropped);
    assert_int_equal(dropped->bytes->len, 7);
    queue_item_free(dropped);
    assert_null(queue_overflow(&q));
    struct queue_item *first = queue_pop(&q);
    assert_int_equal(first->kind, QUEUE_ANSWER); /* answers stay, in their place */
    queue_item_free(first);
    queue_fini(&q);
    assert_int_equal(q.n_notes + q.n_answers + q.note_bytes, 0);
}

static void check_queue_counts_bytes(void **state) {
    (void)state;
    struct queue q = {0};
    assert_int_equal(queue_push(&q, item(QUEUE_SNAPSHOT, QUEUE_MAX_NOTE_BYTES + 1)), 0);
    assert_null(queue_overflow(&q)); /* one is taken, whatever its length */
    assert_int_equal(queue_push(&q, item(QUEUE_SAMPLES, 100)), 0);
    struct queue_item *dropped = queue_overflow(&q);
    assert_non_null(dropped);
    assert_int_equal(dropped->kind, QUEUE_SNAPSHOT);
    queue_item_free(dropped);
    assert_null(queue_overflow(&q));
    assert_null(queue_take_kind(&q, QUEUE_SNAPSHOT));
    queue_item_free(queue_take_kind(&q, QUEUE_SAMPLES));
    assert_null(q.head);
    assert_null(q.tail);
}

static void check_queue_bounds_answers(void **state) {
    (void)state;
    struct queue q = {0};
    for (size_t i = 0; i < QUEUE_MAX_ANSWERS; i++)
        assert_int_equal(queue_push(&q, item(QUEUE_ANSWER, 1)), 0);
    struct queue_item *more = item(QUEUE_ANSWER, 1);
    assert_int_equal(queue_push(&q, more), -1);
    queue_item_free(more);
    assert_int_equal(queue_push(&q, item(QUEUE_BYE, 1)), 0);
    queue_fini(&q);
}

/* ---- peer ---- */

static void no_status(void *arg, struct model_status *out) {
    (void)arg;
    out->clients = 1;
}

static enum peer_verdict say(struct peer *p, struct strbuf *b) {
    enum peer_verdict v = peer_receive(p, b->data, b->len, true, no_status, NULL);
    strbuf_fini(b);
    return v;
}

static struct wire_message *next_message(struct peer *p) {
    struct strbuf frame;
    struct err e = {0};
    strbuf_init(&frame, 0);
    if (peer_next_frame(p, &frame) != 1)
        return NULL;
    struct wire_message *m = wire_parse(frame.data, frame.len, &e);
    assert_non_null(m);
    strbuf_fini(&frame);
    return m;
}

static void expect_error(struct peer *p, enum wire_error wanted) {
    enum wire_error code = 0;
    struct wire_message *m = next_message(p);
    assert_non_null(m);
    assert_non_null(wire_message_error(m, &code));
    assert_int_equal(code, wanted);
    wire_message_free(m);
}

static void open_peer(struct peer *p, struct mailbox *m) {
    struct strbuf b;
    assert_int_equal(mailbox_init(m), 0);
    assert_int_equal(peer_init(p, 1, m, WIRE_OWNS), 0);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_hello(&b, 1, "test"), 0);
    assert_int_equal(say(p, &b), PEER_OK);
}

static void check_peer_wants_hello_first(void **state) {
    (void)state;
    struct mailbox m;
    struct peer p;
    struct strbuf b;
    assert_int_equal(mailbox_init(&m), 0);
    assert_int_equal(peer_init(&p, 1, &m, WIRE_OWNS), 0);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_request(&b, 1, WIRE_EJECT), 0);
    assert_int_equal(say(&p, &b), PEER_OK);
    expect_error(&p, WIRE_E_BAD_PARAMS);
    static const char other_version[] = "\x94\x00\x01\xa5hello\x81\xa7version\x09";
    assert_int_equal(peer_receive(&p, other_version, sizeof other_version - 1, true, no_status, NULL),
                     PEER_OK);
    expect_error(&p, WIRE_E_VERSION);
    static const char unknown[] = "\x94\x00\x02\xa5"
                                  "dance\x80";
    assert_int_equal(peer_receive(&p, unknown, sizeof unknown - 1, true, no_status, NULL), PEER_OK);
    expect_error(&p, WIRE_E_UNKNOWN_METHOD);
    assert_int_equal(peer_receive(&p, "rubbish", 7, true, no_status, NULL), PEER_CLOSE);
    peer_fini(&p);
    mailbox_fini(&m);
}

static void check_peer_bounds_what_comes_in(void **state) {
    (void)state;
    struct mailbox m;
    struct peer p;
    static char megabyte[1024 * 1024];
    open_peer(&p, &m);
    assert_int_equal(peer_receive(&p, megabyte, sizeof megabyte, false, no_status, NULL), PEER_OK);
    assert_int_equal(peer_receive(&p, megabyte, 1, false, no_status, NULL), PEER_CLOSE);
    peer_fini(&p);
    mailbox_fini(&m);
}

/* More requests than may wait: each gets an answer at once that says so, and a client that never reads is closed. */
static void check_peer_bounds_requests(void **state) {
    (void)state;
    struct mailbox m;
    struct peer p;
    struct strbuf b;
    enum peer_verdict v = PEER_OK;
    open_peer(&p, &m);
    strbuf_init(&b, 0);
    int n = 0;
    for (; n < 1000 && v == PEER_OK; n++) {
        assert_int_equal(wire_put_request(&b, (uint32_t)n, WIRE_THREADS), 0);
        v = say(&p, &b);
    }
    assert_int_equal(v, PEER_CLOSE);
    assert_true(n >= MAILBOX_MAX_ASKS && n < 100);
    expect_error(&p, WIRE_E_UNAVAILABLE);
    peer_fini(&p);
    mailbox_fini(&m);
}

/* A client has one answer full of rows under way, whatever it asks for. */
static void check_peer_pulls_one_at_a_time(void **state) {
    (void)state;
    static const struct wire_pull want = {.table = "t", .making = 1};
    struct mailbox m;
    struct peer p;
    struct strbuf b;
    struct err e = {.code = ERR_FAILED, .text = "why"};
    open_peer(&p, &m);
    for (uint32_t round = 0; round < 3; round++) {
        strbuf_init(&b, 0);
        assert_int_equal(wire_put_pull(&b, 10, &want), 0);
        assert_int_equal(say(&p, &b), PEER_OK);
        assert_null(next_message(&p));
        for (int again = 0; again < 2; again++) { /* while it is made, and while it waits to be sent */
            if (again)
                reply_rows(&m, 1, 10, round % 2 ? NULL : &(struct wire_pulled){.pieces = "rows", .len = 4},
                           &e);
            if (again)
                assert_int_equal(peer_accept(&p, mailbox_take(&m)), PEER_OK);
            strbuf_init(&b, 0);
            assert_int_equal(wire_put_pull(&b, 11, &want), 0);
            assert_int_equal(say(&p, &b), PEER_OK);
            if (!again)
                expect_error(&p, WIRE_E_UNAVAILABLE);
        }
        struct wire_message *answer = next_message(&p);
        assert_int_equal(wire_message_id(answer), 10);
        wire_message_free(answer);
        expect_error(&p, WIRE_E_UNAVAILABLE);
        m.slots[0].n_asks = 0; /* taken */
    }
    peer_fini(&p);
    mailbox_fini(&m);
}

static void subscribe(struct peer *p, enum wire_stream stream) {
    struct strbuf b;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_subscribe(&b, 5, &(struct wire_subscribe){.stream = stream, .rate_hz = 1e9}),
                     0);
    assert_int_equal(say(p, &b), PEER_OK);
    struct wire_message *m = next_message(p);
    assert_non_null(m);
    assert_null(wire_message_error(m, NULL));
    wire_message_free(m);
}

static struct queue_item *snapshot_item(void) {
    struct strbuf b;
    struct model_snapshot s = {.timestamp = 1};
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_threads_notify_open(&b, &s), 0);
    struct queue_item *i = queue_item_new(queue_bytes_new(&b), QUEUE_SNAPSHOT, 1);
    strbuf_fini(&b);
    return i;
}

static void check_peer_tells_what_was_dropped(void **state) {
    (void)state;
    struct mailbox m;
    struct peer p;
    struct err e = {0};
    open_peer(&p, &m);
    subscribe(&p, WIRE_STREAM_THREADS);
    assert_true(m.slots[0].rate_hz[WIRE_STREAM_THREADS] == WIRE_MAX_SNAPSHOT_HZ);
    for (int i = 0; i < QUEUE_MAX_NOTES + 5; i++)
        assert_int_equal(peer_accept(&p, snapshot_item()), PEER_OK);
    struct wire_message *message = next_message(&p);
    struct model_snapshot s;
    assert_non_null(message);
    assert_int_equal(wire_get_snapshot(message, &s, &e), 0);
    assert_int_equal(s.dropped, 5);
    model_snapshot_fini(&s);
    wire_message_free(message);
    peer_fini(&p);
    mailbox_fini(&m);
}

static struct queue_item *samples_item(const struct mailbox *m, uint32_t n, size_t stacks) {
    struct queue_item *i = item(QUEUE_SAMPLES, 100000);
    i->mark = m->slots[0].sent;
    i->mark.n_samples = n;
    i->mark.stacks = stacks;
    return i;
}

/* When a batch is lost, all after it build on its definitions: they go too, and the sampler begins again where it began. */
static void check_lost_samples_are_begun_again(void **state) {
    (void)state;
    struct mailbox m;
    struct peer p;
    open_peer(&p, &m);
    subscribe(&p, WIRE_STREAM_SAMPLES);
    uint32_t generation = m.slots[0].sent.generation;
    m.slots[0].sent.stacks = 1000;
    int sent = 0;
    while (p.dropped_samples == 0 && sent < 1000) {
        assert_int_equal(peer_accept(&p, samples_item(&m, 10, (size_t)sent * 10 + 5)), PEER_OK);
        sent++;
    }
    assert_int_equal(p.dropped_samples, 10 * sent);
    assert_null(p.queue.head);
    assert_int_equal(m.slots[0].sent.generation, generation + 1);
    assert_int_equal(m.slots[0].sent.stacks, 5);
    struct queue_item *late = samples_item(&m, 7, 0);
    late->mark.generation = generation;
    assert_int_equal(peer_accept(&p, late), PEER_OK); /* it was on its way */
    assert_null(p.queue.head);
    assert_int_equal(p.dropped_samples, 10 * sent + 7);
    assert_int_equal(m.status.of.dropped, 10 * sent + 7);
    assert_int_equal(peer_accept(&p, samples_item(&m, 7, 0)), PEER_OK);
    assert_non_null(p.queue.head);
    peer_fini(&p);
    mailbox_fini(&m);
}

/* The batch with which an epoch began is lost: threads whose names were sent in the epoch before are named again. */
static void check_a_lost_epoch_names_all_threads(void **state) {
    struct mailbox m;
    struct peer p;
    (void)state;
    open_peer(&p, &m);
    subscribe(&p, WIRE_STREAM_SAMPLES);
    struct queue_mark *sent = &m.slots[0].sent;
    uint32_t generation = sent->generation;
    const struct queue_mark before = {
        .generation = generation, .epoch = 1, .frames = 8, .stacks = 9, .names = 7};
    *sent =
        (struct queue_mark){.generation = generation, .epoch = 2, .frames = 80, .stacks = 90, .names = 70};
    mailbox_rollback(&m, p.id, &before);
    assert_int_equal(sent->generation, generation + 1);
    assert_int_equal(sent->epoch, 2);
    assert_int_equal(sent->frames + sent->stacks + sent->names, 0);
    peer_fini(&p);
    mailbox_fini(&m);
}

/* The end of samples is answered by the sampler, behind the last of them, unless the client has come back meanwhile. */
static void check_who_leaves_is_answered_last(void **state) {
    (void)state;
    struct mailbox m;
    struct peer p;
    struct strbuf b;
    open_peer(&p, &m);
    subscribe(&p, WIRE_STREAM_SAMPLES);
    uint32_t generation = m.slots[0].sent.generation;
    m.slots[0].n_asks = 0; /* hello */
    strbuf_init(&b, 0);
    for (int back = 0; back < 2; back++) {
        assert_int_equal(wire_put_unsubscribe(&b, 6, WIRE_STREAM_SAMPLES), 0);
        assert_int_equal(say(&p, &b), PEER_OK);
        assert_null(next_message(&p));                            /* nothing is said yet, */
        assert_true(m.slots[0].rate_hz[WIRE_STREAM_SAMPLES] > 0); /* and the stream goes on */
        assert_int_equal(m.slots[0].n_asks, 1);
        assert_int_equal(m.slots[0].asks[0].method, WIRE_UNSUBSCRIBE);
        assert_int_equal(m.slots[0].asks[0].id, 6);
        m.slots[0].n_asks = 0; /* the sampler has taken it */
        if (!back)
            subscribe(&p, WIRE_STREAM_SAMPLES);
        mailbox_end_samples(&m, p.id);
        assert_int_equal(m.slots[0].rate_hz[WIRE_STREAM_SAMPLES] > 0, !back);
        assert_int_equal(m.slots[0].sent.generation, generation + 1); /* a new stream has all definitions */
        assert_true(m.slots[0].first_sample == MAILBOX_NEXT_SAMPLE);
    }
    /* What was under way when it came back is of no use to it, and no loss either. */
    struct queue_item *old = samples_item(&m, 7, 0);
    old->mark.generation = generation;
    assert_int_equal(peer_accept(&p, old), PEER_OK);
    assert_null(p.queue.head);
    assert_int_equal(p.dropped_samples, 0);
    strbuf_fini(&b);
    peer_fini(&p);
    mailbox_fini(&m);
}

static void check_mailbox_is_bounded(void **state) {
    (void)state;
    struct mailbox m;
    assert_int_equal(mailbox_init(&m), 0);
    for (uint32_t i = 1; i <= MAILBOX_SLOTS; i++)
        assert_int_equal(mailbox_attach(&m, i, false), 0);
    assert_int_equal(mailbox_attach(&m, 99, false), -1);
    int posted = 0;
    while (posted < 1000 && mailbox_post(&m, snapshot_item()) == 0)
        posted++;
    assert_int_equal(posted, MAILBOX_MAX_NOTES);
    assert_int_equal(mailbox_post(&m, item(QUEUE_ANSWER, 1)), 0);
    mailbox_detach(&m, 1);
    assert_int_equal(mailbox_post(&m, item(QUEUE_ANSWER, 1)), -1); /* nobody is there to be answered */
    assert_int_equal(mailbox_ask(&m, 1, &(struct mailbox_ask){.method = WIRE_THREADS, .id = 1}), -1);
    assert_int_equal(mailbox_attach(&m, 99, false), 0);
    mailbox_fini(&m); /* with what nobody took */
}

/* ---- cost ---- */

static void check_interval_keeps_the_budget(void **state) {
    (void)state;
    struct cost c = {0};
    bool stretched = true;
    assert_int_equal(cost_interval_ns(&c, 1000000, 1.0, &stretched), 1000000);
    assert_false(stretched);
    cost_add(&c, 50 * 1000 * 1000); /* cold */
    cost_add(&c, 100 * 1000);
    for (int i = 0; i < 100; i++)
        cost_add(&c, 100 * 1000);
    /* 100 us of work every 10 ms is one percent. */
    assert_int_equal(cost_interval_ns(&c, CLOCK_NS_PER_MS, 1.0, &stretched) / 1000, 10000);
    assert_true(stretched);
    assert_int_equal(cost_interval_ns(&c, 20 * CLOCK_NS_PER_MS, 1.0, &stretched), 20 * CLOCK_NS_PER_MS);
    assert_false(stretched);
}

static void check_a_stream_moves(void **state) {
    (void)state;
    struct cost c = {0};
    bool stretched = false;
    const struct {
        uint64_t run_ms, wanted_ms, is_ms;
    } cases[] = {
        {1, 250, 250},    /* within the budget */
        {5, 250, 500},    /* stretched, to stay within */
        {50, 250, 1000},  /* once a second, for five times the budget */
        {400, 250, 4000}, /* ten times the budget is the limit */
        {400, 9000, 9000}, {50, 3000, 3000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        c = (struct cost){.run_ns = (double)cases[i].run_ms * 1e6, .runs = 10};
        assert_int_equal(cost_stream_ns(&c, cases[i].wanted_ms * CLOCK_NS_PER_MS, 1.0, &stretched),
                         cases[i].is_ms * CLOCK_NS_PER_MS);
    }
}

static void check_cost_forgives_one_and_believes_many(void **state) {
    (void)state;
    struct cost c = {0};
    for (int i = 0; i < 20; i++)
        cost_add(&c, i == 2 ? 50 * 1000 * 1000 : 100 * 1000); /* cold for longer than one run */
    assert_true(fabs(c.run_ns - 100e3) < 1);
    cost_add(&c, 50 * 1000 * 1000);
    assert_true(c.run_ns < 150e3);
    for (int i = 0; i < 100; i++)
        cost_add(&c, 50 * 1000 * 1000);
    assert_true(c.run_ns > 49e6);
}

static void check_meter_looks_at_the_last_seconds(void **state) {
    (void)state;
    struct cost_meter m = {0};
    uint64_t now = 1000, cpu = 0;
    assert_true(isnan(cost_meter_add(&m, now, cpu)));
    double pct = 0;
    for (int i = 0; i < 60; i++) {
        now += CLOCK_NS_PER_S;
        cpu += i < 30 ? CLOCK_NS_PER_S / 2 : CLOCK_NS_PER_S / 50;
        pct = cost_meter_add(&m, now, cpu);
        if (i == 29)
            assert_true(fabs(pct - 50) < 1e-6);
    }
    assert_true(fabs(pct - 2) < 1e-6);
}

static void check_pace_is_poisson(void **state) {
    (void)state;
    struct cost_pace p;
    const uint64_t mean = 10 * CLOCK_NS_PER_MS;
    double sum = 0, squares = 0;
    int below = 0;
    const int n = 200000;
    cost_pace_init(&p, 42);
    for (int i = 0; i < n; i++) {
        uint64_t wait = cost_pace_next_ns(&p, mean);
        double w = (double)wait / (double)mean;
        assert_true(wait <= 8 * mean);
        sum += w;
        squares += w * w;
        below += w < 0.6931471805599453;
    }
    double average = sum / n;
    assert_true(fabs(average - 1) < 0.01);
    assert_true(fabs(sqrt(squares / n - average * average) - 1) < 0.02); /* as large as the mean */
    assert_true(fabs((double)below / n - 0.5) < 0.01);                   /* median ln 2 */
}

static void own_handler(int sig) { (void)sig; }

static int add_size(const struct procfs_map *map, void *arg) {
    *(uint64_t *)arg += map->end - map->start;
    return 0;
}

static uint64_t mapped_bytes(void) {
    uint64_t n = 0;
    assert_int_equal(procfs_each_map(0, add_size, &n), 0);
    return n;
}

/* Where the job has a handler of its own nothing is installed, and nothing stays mapped either. */
static void check_exact_leaves_no_memory(void **state) {
    struct signal_sampler_stats stats = {0};
    struct sigaction own = {.sa_handler = own_handler}, before;
    struct err e;
    (void)state;
    uint64_t at_first = mapped_bytes();
    assert_int_equal(sigaction(SIGURG, &own, &before), 0);
    assert_int_equal(signal_sampler_arm(&stats, &e), -1);
    signal_sampler_set_native(true);
    signal_sampler_disarm();
    assert_int_equal(sigaction(SIGURG, &before, NULL), 0);
    assert_true(mapped_bytes() == at_first);
    assert_int_equal(signal_sampler_arm(&stats, &e), 0);
    signal_sampler_set_native(true);
    assert_true(mapped_bytes() > at_first);
    signal_sampler_disarm();
    assert_true(mapped_bytes() == at_first);
}

/* Long answers are made one at a time of each client; and, of who may only look, of all of them. */
static void check_looks_one_at_a_time(void **state) {
    (void)state;
    static struct mailbox m;
    assert_int_equal(mailbox_init(&m), 0);
    for (uint32_t i = 1; i <= 2; i++)
        assert_int_equal(mailbox_attach(&m, i, false), 0);
    for (uint32_t i = 3; i <= 4; i++)
        assert_int_equal(mailbox_attach(&m, i, true), 0);
    struct mailbox_slot *user = &m.slots[0], *looker = &m.slots[2], *other = &m.slots[3];
    assert_true(mailbox_begin_snapshot(&m, user, WIRE_THREADS));
    assert_false(mailbox_begin_snapshot(&m, user, WIRE_THREADS));
    assert_false(mailbox_begin_snapshot(&m, user, WIRE_TABLES));
    assert_true(mailbox_begin_snapshot(&m, user, WIRE_HELLO));
    assert_true(mailbox_begin_snapshot(&m, &m.slots[1], WIRE_THREADS));
    mailbox_end_snapshot(&m, 1);
    assert_true(mailbox_begin_snapshot(&m, user, WIRE_THREADS));
    assert_true(mailbox_begin_snapshot(&m, looker, WIRE_PULL));
    assert_false(mailbox_begin_snapshot(&m, other, WIRE_THREADS));
    assert_true(m.held);
    struct queue_item *answer = item(QUEUE_ANSWER, 100);
    answer->pulled = true;
    answer->peer = 3;
    assert_int_equal(mailbox_post(&m, answer), 0);
    assert_false(mailbox_begin_snapshot(&m, other, WIRE_THREADS)); /* until the server has it */
    queue_item_free(mailbox_take(&m));
    assert_true(mailbox_begin_snapshot(&m, other, WIRE_THREADS));
    mailbox_end_snapshot(&m, 4);
    /* Notifications of theirs: little waits. */
    for (int i = 0; i < 2; i++) {
        struct queue_item *note = item(QUEUE_SNAPSHOT, MAILBOX_LOOKER_ANSWER);
        note->peer = 3;
        assert_int_equal(mailbox_post(&m, note), i == 0 ? 0 : -1);
    }
    queue_item_free(mailbox_take(&m));
    mailbox_fini(&m);
}

/* A message in pieces is the same as whole; what was begun is not counted as waiting for ever. */
static void check_peer_pieces(void **state) {
    (void)state;
    static struct mailbox m;
    struct peer p;
    struct strbuf whole, pieces;
    assert_int_equal(mailbox_init(&m), 0);
    assert_int_equal(peer_init(&p, 1, &m, WIRE_OWNS), 0);
    strbuf_init(&whole, 0);
    strbuf_init(&pieces, 0);
    for (size_t cap = 1; cap <= 4096; cap = cap * 3 + 1) {
        strbuf_clear(&whole);
        strbuf_clear(&pieces);
        for (int i = 0; i < 2; i++) {
            struct queue_item *note = item(QUEUE_SNAPSHOT, 5000);
            assert_int_equal(peer_accept(&p, note), PEER_OK);
        }
        assert_true(p.waits_ns > 0 && m.rooms[0].used == 10000);
        assert_int_equal(peer_next_frame(&p, &whole), 1);
        bool first = true, last = false;
        for (size_t n = 0; !last; n++) {
            assert_int_equal(peer_next_piece(&p, cap, &pieces, &first, &last), 1);
            assert_int_equal(first, n == 0);
        }
        assert_int_equal(whole.len, pieces.len);
        assert_memory_equal(whole.data, pieces.data, whole.len);
        assert_false(peer_has_output(&p) || p.waits_ns);
        assert_int_equal(m.rooms[0].used, 0);
    }
    strbuf_fini(&whole);
    strbuf_fini(&pieces);
    peer_fini(&p);
    mailbox_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_exact_leaves_no_memory),
        cmocka_unit_test(check_queue_drops_the_oldest_notification),
        cmocka_unit_test(check_queue_bounds_bytes),
        cmocka_unit_test(check_looks_one_at_a_time),
        cmocka_unit_test(check_peer_pieces),
        cmocka_unit_test(check_queue_counts_bytes),
        cmocka_unit_test(check_queue_bounds_answers),
        cmocka_unit_test(check_peer_wants_hello_first),
        cmocka_unit_test(check_peer_bounds_what_comes_in),
        cmocka_unit_test(check_peer_bounds_requests),
        cmocka_unit_test(check_peer_pulls_one_at_a_time),
        cmocka_unit_test(check_peer_tells_what_was_dropped),
        cmocka_unit_test(check_lost_samples_are_begun_again),
        cmocka_unit_test(check_a_lost_epoch_names_all_threads),
        cmocka_unit_test(check_mailbox_is_bounded),
        cmocka_unit_test(check_who_leaves_is_answered_last),
        cmocka_unit_test(check_interval_keeps_the_budget),
        cmocka_unit_test(check_a_stream_moves),
        cmocka_unit_test(check_cost_forgives_one_and_believes_many),
        cmocka_unit_test(check_meter_looks_at_the_last_seconds),
        cmocka_unit_test(check_pace_is_poisson),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
