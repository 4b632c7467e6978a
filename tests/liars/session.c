/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session: many lies in little time: the sessions of the client's own library in front of the hostile agent, in one program.
 *
 * usage: session SEED LIES FOLDER [PATH...]
 *
 * Asks for all that verbs ask for, and shows what comes as they do, until so many answers were lies. Exit status 0; 1 when something
 * was shown that a terminal obeys, or JSON that is none: then it is on stderr, with the seed of the connection. FOLDER is where the
 * socket lies meanwhile; PATHs are what the agent names.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/model_json.h"
#include "base/model_text.h"
#include "client/session/call.h"
#include "client/sql/database.h"
#include "client/export/export_formats.h"
#include "flame/stack_counts.h"
#include "client/sql/result.h"
#include "client/session/status_text.h"
#include "client/session/debug_command.h"
#include "client/samples/thread_runs.h"
#include "lies.h"
#include "support/fuzz_json.h"

#define SESSION_SAMPLES_S 0.004
#define SESSION_STREAM_MS 1
#define SESSION_HANGUP_MS 40
#define SESSION_THREADS 8

static _Thread_local struct lies draws; /* what is asked next */
static _Atomic uint64_t connections, said, failures;
static uint64_t seed;

/* Of each kind the first is told. */
static void complain(const char *what, const struct strbuf *out) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *told[32];
    size_t n = 0, at = 0;
    (void)pthread_mutex_lock(&lock);
    while (n < 31 && told[n] && strcmp(told[n], what) != 0)
        n++;
    bool first = !told[n];
    told[n] = what;
    failures++;
    (void)pthread_mutex_unlock(&lock);
    if (!first)
        return;
    while (at < out->len &&
           ((unsigned char)out->data[at] >= 32 || out->data[at] == '\n' || out->data[at] == '\t'))
        at++;
    struct strbuf line;
    strbuf_init(&line, 0);
    for (size_t i = at < 60 ? 0 : at - 60; i < out->len && i < at + 60; i++)
        (void)strbuf_addf(
            &line, (unsigned char)out->data[i] < 32 || (unsigned char)out->data[i] > 126 ? "\\x%02x" : "%c",
            (unsigned char)out->data[i]);
    (void)fprintf(stderr, "seed %" PRIu64 ": %s is not what it has to be: %s\n", seed, what,
                  strbuf_str(&line));
    strbuf_fini(&line);
}

static void text_shown(const char *what, struct strbuf *out) {
    if (!out->failed && !fuzz_text_is_plain(strbuf_str(out), out->len))
        complain(what, out);
    strbuf_fini(out);
}

static void json_shown(const char *what, struct strbuf *out) {
    if (!out->failed && !fuzz_json_is(strbuf_str(out), out->len))
        complain(what, out);
    strbuf_fini(out);
}

static void error_shown(const struct err *e) {
    /* As main() of the programs prints it. */
    struct strbuf out;
    strbuf_init(&out, 0);
    (void)strbuf_add_clean(&out, e->text, strlen(e->text));
    text_shown("an error", &out);
}

static void ask_status(struct call *c, struct err *e) {
    struct model_status s;
    struct strbuf out;
    struct json j;
    if (call_status(c, &s, e) == 0) {
        strbuf_init(&out, 0);
        status_text_put(&out, call_get_target(c), &s);
        text_shown("status", &out);
        strbuf_init(&out, 0);
        json_init(&j, &out, 2);
        model_json_put_status(&j, call_get_target(c), &s);
        json_shown("status --json", &out);
    } else {
        error_shown(e);
    }
    model_status_fini(&s);
}

static void ask_threads(struct call *c, struct err *e) {
    struct wire_threads want = {.locals = lies_chance(&draws, 500), .tasks = lies_chance(&draws, 500)};
    struct model_snapshot s;
    struct strbuf out;
    struct json j;
    if (call_details(c, &want, &s, e) == 0) {
        strbuf_init(&out, 0);
        model_text_put_backtrace(&out, call_get_target(c), &s, true);
        model_text_put_threads(&out, &s);
        text_shown("backtrace", &out);
        strbuf_init(&out, 0);
        json_init(&j, &out, 0);
        json_object_begin(&j);
        model_json_put_backtrace(&j, call_get_target(c), &s, true, true);
        json_object_end(&j);
        json_shown("backtrace --json", &out);
    } else {
        error_shown(e);
    }
    model_snapshot_fini(&s);
}

struct sink {
    struct stack_counts *counts;
    struct thread_runs *runs;
};

static int take_batch(void *arg, struct model_sample_batch *b) {
    struct sink *sink = arg;
    if (stack_counts_add_batch(sink->counts, b) != 0)
        return -1;
    const uint32_t *entries = stack_counts_batch_entries(sink->counts);
    for (size_t i = 0; i < b->n_samples; i++) {
        const struct model_sample *s = &b->samples[i];
        uint32_t entry = entries[i] == STACK_COUNTS_NO_ENTRY ? THREAD_RUNS_NO_ENTRY : entries[i];
        struct thread_runs_sample sample = {s->timestamp, stack_counts_sample_us(b, i), s->tid, entry,
                                            thread_runs_flags(s)};
        (void)thread_runs_add(sink->runs, &sample);
    }
    return 0;
}

static void ask_samples(struct call *c, struct err *e) {
    static const struct export_request request = {.threads = true, .process = true};
    struct model_snapshot snapshot = {.timestamp = 1};
    struct sink sink = {stack_counts_new(), thread_runs_new_sized(4096, 4096)};
    double elapsed;
    if (!sink.counts || !sink.runs)
        return;
    if (call_sample(c, 100, SESSION_SAMPLES_S, take_batch, &sink, &elapsed, e) != 0)
        error_shown(e);
    struct export_data d = {.request = &request,
                            .target = call_get_target(c),
                            .snapshot = &snapshot,
                            .counts = sink.counts,
                            .runs = sink.runs,
                            .elapsed_s = 1};
    struct strbuf out;
    struct err why;
    strbuf_init(&out, 0);
    if (export_render_folded(&d, &out, &why) == 0)
        text_shown("folded", &out);
    else
        strbuf_fini(&out);
    strbuf_init(&out, 0);
    if (export_render_speedscope(&d, &out, &why) == 0)
        json_shown("speedscope", &out);
    else
        strbuf_fini(&out);
    strbuf_init(&out, 0);
    if (lies_chance(&draws, 100) && export_render_svg(&d, &out, &why) == 0)
        text_shown("svg", &out);
    else
        strbuf_fini(&out);
    stack_counts_free(sink.counts);
    thread_runs_free(sink.runs);
}

static void ask_debugger(struct call *c, struct err *e) {
    static const struct debug_command_def *const defs[] = {&debug_command_debug, &debug_command_pause,
                                                           &debug_command_catch};
    const struct debug_command_def *def = defs[lies_below(&draws, 3)];
    const struct wire_debug want = {.action = WIRE_DEBUG_BEGIN, .timeout_s = 1, .limit_s = 1};
    struct wire_debugger d;
    struct strbuf out;
    if (call_debug(c, def->method, &want, &d, e) != 0 ||
        debug_command_check(def, &d, 1, def->failed, e) != 0) {
        error_shown(e);
    } else {
        strbuf_init(&out, 0);
        def->put_text(&out, &d, 0);
        text_shown(def->name, &out);
        strbuf_init(&out, 0);
        def->put_copy(&out, &d, 0);
        text_shown("what is copied", &out);
        strbuf_init(&out, 0);
        def->put_json(&out, &d, 0);
        json_shown("its JSON", &out);
    }
    wire_debugger_fini(&d);
}

static void ask_small(struct call *c, struct err *e) {
    struct wire_listen listen = {.address = "127.0.0.1:0"};
    struct wire_config config = {.key = "probing.rate", .value = "10"};
    struct wire_arm arm = {.what = "profile", .steps = 1};
    struct wire_listening what;
    int rc;
    switch (lies_below(&draws, 4)) {
    case 0:
        rc = call_listen(c, &listen, &what, e);
        break;
    case 1:
        rc = call_configure(c, &config, e);
        break;
    case 2:
        rc = call_arm(c, &arm, e);
        break;
    default:
        rc = call_disarm(c, &arm, e);
        break;
    }
    if (rc != 0)
        error_shown(e);
}

static void ask_call(const struct target_address *addr) {
    static void (*const asks[])(struct call *, struct err *) = {ask_status, ask_threads, ask_samples,
                                                                ask_debugger, ask_small};
    struct err e;
    struct call *c = call_open(addr, &e);
    if (!c) {
        error_shown(&e);
        return;
    }
    for (int i = 0; i < 40 && !call_is_lost(c); i++) {
        e.text[0] = '\0';
        asks[lies_below(&draws, 5)](c, &e);
    }
    call_close(c);
}

static void ask_tables(const struct target_address *addr) {
    static const char *const questions[] = {
        "SELECT * FROM python.samples LIMIT 20",
        "SELECT fold(stack_id), count(*) FROM python.samples GROUP BY 1",
        "SELECT * FROM probing.facts",
        "SELECT * FROM probing.events",
        "SELECT * FROM python.modules LIMIT 20",
        "SELECT * FROM python.tensors LIMIT 20",
        "SELECT * FROM python.backtrace LIMIT 20",
        "SELECT * FROM python.steps LIMIT 20",
        "SELECT * FROM probing.config",
        "SELECT * FROM system.process",
    };
    struct err e;
    struct database *d = database_open(&e);
    if (d && database_add(d, addr, &e) == 0 && database_refresh(d, &e) == 0) {
        struct sql_query q = {.timeout_s = 2};
        struct strbuf out;
        struct sql_result *r = database_begin(
            d, questions[lies_below(&draws, sizeof questions / sizeof questions[0])], &q, NULL, NULL, &e);
        struct result *rows = r ? result_take(r, RESULT_BYTES, &e) : NULL;
        if (rows) {
            strbuf_init(&out, 0);
            result_formats[0].put(rows, true, &out);
            text_shown("rows", &out);
        } else {
            error_shown(&e);
        }
        result_unref(rows);
        sql_end(r);
    } else {
        error_shown(&e);
    }
    database_close(d);
}

static int listen_at(const char *path) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    (void)unlink(path);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof sa) != 0 || listen(fd, 64) != 0) {
        perror(path);
        exit(2);
    }
    return fd;
}

struct side {
    const struct liar_options *o;
    int fd;
};

static void *serve(void *arg) {
    const struct side *s = arg;
    liar_serve(s->o, s->fd);
    return NULL;
}

struct asking {
    const struct target_address *addr;
    const char *const *paths;
    uint64_t seed, wanted;
};

static void *ask(void *arg) {
    const struct asking *a = arg;
    lies_init(&draws, a->seed, 1, 1, a->paths);
    while (said < a->wanted) {
        connections++;
        if (lies_below(&draws, 20) == 0)
            ask_tables(a->addr);
        else
            ask_call(a->addr);
    }
    lies_fini(&draws);
    return NULL;
}

int main(int argc, char **argv) {
    static const char *const none[] = {"/etc/passwd", NULL};
    if (argc < 4) {
        (void)fprintf(stderr, "usage: session SEED LIES FOLDER [PATH...]\n");
        return 2;
    }
    seed = strtoull(argv[1], NULL, 10);
    uint64_t wanted = strtoull(argv[2], NULL, 10);
    const char *const *paths = argc > 4 ? (const char *const *)argv + 4 : none;
    struct liar_options o = {.seed = seed, .pid = getpid(), .uid = getuid(), .paths = paths, .said = &said};
    struct target_address addr = {.pid = 0};
    struct asking asking[SESSION_THREADS];
    pthread_t server, threads[SESSION_THREADS];
    o.slow_ppm = 10;
    o.stream_ms = SESSION_STREAM_MS;
    o.hangup_ms = SESSION_HANGUP_MS;
    (void)snprintf(addr.path, sizeof addr.path, "%s/liar-%d.sock", argv[3], (int)getpid());
    struct side side = {&o, listen_at(addr.path)};
    uint64_t began = clock_mono_ns();
    if (pthread_create(&server, NULL, serve, &side) != 0)
        return 2;
    for (unsigned i = 0; i < SESSION_THREADS; i++) {
        asking[i] = (struct asking){&addr, paths, seed * 1000 + i, wanted};
        if (pthread_create(&threads[i], NULL, ask, &asking[i]) != 0)
            return 2;
    }
    for (unsigned i = 0; i < SESSION_THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    double seconds = (double)(clock_mono_ns() - began) / 1e9;
    (void)unlink(addr.path);
    (void)printf("{\"seed\": %" PRIu64 ", \"lies\": %" PRIu64 ", \"connections\": %" PRIu64
                 ", \"failures\": %" PRIu64 ", \"seconds\": %.1f}\n",
                 seed, (uint64_t)said, (uint64_t)connections, (uint64_t)failures, seconds);
    return failures ? 1 : 0;
}
