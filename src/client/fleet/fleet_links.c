/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_links: see fleet_links.h. */
#include "client/fleet/fleet_links.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/text.h"
#include "client/fleet/clock_offset.h"
#include "client/fleet/ras.h"
#include "client/jobs/jobs_here.h"
#include "version.h"
#include "wire/pipe.h"
#include "wire/wire.h"

#define LINK_RANKS_MAX 4096 /* of a host */
#define LINK_REPORT_BYTES ((size_t)8 * 1024 * 1024)
#define LINK_FRAMES_MAX ((size_t)STACK_CLASSES_DEPTH * 2)
#define LINK_READ 65536
#define LINK_FIND_NS (60 * CLOCK_NS_PER_S) /* for the job to be found: processes may block their readers */
#define LINK_ANSWER_NS (30 * CLOCK_NS_PER_S)
#define LINK_GROUPS_MAX 65536 /* of all ranks of a host */
#define LINK_WORK_NS (180 * CLOCK_NS_PER_S)
#define LINK_SILENT_NS (5 * CLOCK_NS_PER_S) /* then its ranks have no news */
#define LINK_RETRY_MIN_NS (CLOCK_NS_PER_S / 4)
#define LINK_RETRY_MAX_NS (5 * CLOCK_NS_PER_S)
#define LINK_GOOD_NS (5 * CLOCK_NS_PER_S) /* one that has lived so long is started again at once */
#define LINK_STARTS 8                     /* at a time */
/* so long does one count among them: ssh's own ConnectTimeout is 5 s, and whoever takes longer hangs and must not keep
 * the others from being started */
#define LINK_STARTS_NS (5 * CLOCK_NS_PER_S)
#define LINK_START_NS (20 * CLOCK_NS_PER_S)
#define LINK_AWAIT_NS (8 * CLOCK_NS_PER_S) /* then a round is read without a host that has not answered yet */
#define LINK_STATES_NS (3 * CLOCK_NS_PER_S) /* the same of readings, once it has given one; they take 2 s */
#define LINK_ABSENT_NS (5 * CLOCK_NS_PER_S) /* until a host is asked again for a job that it does not have */
#define LINK_FAILS 2                        /* then it is said that a host cannot be reached */
#define LINK_CLOCK_NS (10 * CLOCK_NS_PER_S) /* between two questions for the time of a host */
#define LINK_TICK_MS 250
#define LINK_END_MS 1

/* The request that waits for its answer: there is one at a time, so whatever else comes was not asked for. */
enum link_request {
    LINK_NOTHING,
    LINK_HELLO,
    LINK_JOB,
    LINK_RANKS,
    LINK_STACKS,
    LINK_TIMES,
    LINK_CLOCK,
    LINK_WORK,
    LINK_GROUPS,
    LINK_RAS
};

/* Texts of the newest answer, and those that the fleet was made of, which stay until it is made again. */
struct link_texts {
    struct arena newest, used;
    bool is_newer; /* the fleet is made of `used` */
};

/* One relay. */
struct fleet_link {
    struct relay_words words;
    char name[HOST_NAME_SIZE]; /* as its owner has named it; "": this host */
    struct relay_child child;  /* child.out is -1: there is none */
    bool is_ending;            /* but an old one is not over yet */
    bool is_greeted;           /* it has answered */
    uint64_t started_ns;
    unsigned fails; /* in succession */
    struct pipe_reader in;
    struct strbuf out;
    size_t out_from;
    enum link_request request;
    uint32_t id;
    uint64_t sent_ns;
    uint64_t retry_at_ns, retry_ns; /* when it is started again; how long it waits then */
    struct fleet_host *said;        /* what it has answered, for the fleet */
    char version[32];
    bool is_named;      /* the request is for the name that all hosts have */
    uint64_t ask_at_ns; /* when it is asked again for a job that it does not have */
    struct link_texts job_texts;
    int64_t found, round;           /* of its newest ranks */
    size_t n_asked;                 /* of the next ranks: their stacks are known, or were asked for */
    int64_t stacks[REPORT_IDS_MAX]; /* that the request is for */
    size_t n_stacks;
    struct link_texts ranks_texts;
    struct arena next_texts;
    /* instead of ranks */
    struct report_task *tasks;
    size_t n_tasks;
    struct report_state *states;
    size_t n_states;
    struct report_group *groups;
    size_t n_groups, groups_from; /* those before the last request stay */
    bool has_more_groups;
    struct report_ras *ras;
    size_t n_ras;
    struct arena tasks_texts, groups_texts, ras_texts;
    bool is_done;
    bool is_failed;   /* since the fleet was made */
    bool is_lacking;  /* there is no probing */
    bool is_fresh;    /* its round is complete, and that of all is not */
    uint64_t seen_ns; /* its last answer, */
    uint64_t news_ns; /* and the last one about ranks; 0 none */
    struct clock_offset clock;
    double asked_at;   /* when it was asked for its time */
    uint64_t clock_ns; /* when that was answered last */
};

struct fleet_links {
    struct fleet_source source; /* first; its descriptor is an epoll's */
    relay_serve_fn serve;
    const char *work; /* NULL: the ranks are read */
    bool counters;    /* of states */
    char target[WIRE_ROWS_ARG_TEXT];
    char job[WIRE_ROWS_ARG_TEXT]; /* its name, as the first host has answered; "" unknown */
    bool is_here;                 /* there is one link, to this host */
    bool is_changed;              /* since the fleet was made */
    bool is_asked;                /* for states, and the round is not complete */
    int timer;
    struct fleet_link *links;
    size_t n_links;
};

static struct fleet_links *link_of(struct fleet_source *s) { return (struct fleet_links *)(void *)s; }

static const struct fleet_links *link_of_const(const struct fleet_source *s) {
    return (const struct fleet_links *)(const void *)s;
}

static uint32_t link_number(const struct fleet_links *l, const struct fleet_link *k) {
    return (uint32_t)(k - l->links);
}

static struct fleet_stack *link_find_stack(const struct fleet_links *l, const struct fleet_link *k,
                                           int64_t id) {
    return fleet_hosts_find_stack(&l->source.hosts, k->said->stacks, id);
}

/* ---- texts ---- */

static void link_put_texts(struct link_texts *t, const struct arena *texts) {
    if (t->is_newer)
        arena_fini(&t->newest);
    else
        t->used = t->newest;
    t->newest = *texts;
    t->is_newer = true;
}

/* The fleet was made again. */
static void link_drop_texts(struct link_texts *t) {
    if (t->is_newer)
        arena_fini(&t->used);
    t->is_newer = false;
}

static void link_texts_fini(struct link_texts *t) {
    link_drop_texts(t);
    arena_fini(&t->newest);
}

/* ---- the relay's process ---- */

static int link_watch(const struct fleet_links *l, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(l->source.fd, EPOLL_CTL_ADD, fd, &event);
}

static int link_start(struct fleet_links *l, struct fleet_link *k, struct err *e) {
    /* also if that fails: what was never started goes before what has failed */
    k->started_ns = clock_mono_ns();
    if (relay_child_start(&k->child, k->words.n ? k->words.words : NULL, l->serve, e) != 0)
        return -1;
    pipe_reader_init(&k->in, false);
    strbuf_init(&k->out, 0);
    k->out_from = 0;
    k->request = LINK_NOTHING;
    k->found = k->round = 0;
    k->is_greeted = k->said->is_absent = false;
    if (link_watch(l, k->child.out) != 0 || link_watch(l, k->child.errors) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot watch a relay");
    if (k->words.script)
        strbuf_adds(&k->out, k->words.script);
    return 0;
}

/* End it: by the end of its input, and with `hard` at once. */
static void link_stop(struct fleet_link *k, bool hard) {
    if (k->child.out < 0)
        return;
    relay_child_end(&k->child, hard);
    pipe_reader_fini(&k->in);
    strbuf_fini(&k->out);
    arena_fini(&k->next_texts);
    free(k->said->next);
    k->said->next = NULL;
    k->said->n_next = 0;
    k->request = LINK_NOTHING;
    k->is_greeted = false;
    k->is_ending = true;
}

/* Not all at the same time, when a switch or a bastion comes back. */
static uint64_t link_jitter(const struct fleet_link *k, uint64_t ns) {
    uint64_t h = hash_mix(clock_mono_ns() ^ hash_fnv_text(HASH_FNV_START, k->name));
    return ns - ns / 4 + h % (ns / 2);
}

/* It is of no use any longer: start it again after a while. */
static void link_fail(struct fleet_link *k, const char *why) {
    char clean[256], errors[sizeof k->child.said];
    uint64_t now = clock_mono_ns();
    text_sanitize(clean, sizeof clean, why);
    relay_child_read_errors(&k->child); /* what it printed before it ended */
    relay_child_put_errors(&k->child, errors, sizeof errors);
    k->is_lacking = !k->in.is_begun && strstr(errors, "probing") && strstr(errors, "not found");
    if (!k->in.is_begun && errors[0])
        snprintf(k->said->note, sizeof k->said->note, "no relay: %.240s%s", errors,
                 k->is_lacking ? ": install probing there, or copy it by --push" : "");
    else
        snprintf(k->said->note, sizeof k->said->note, "its relay failed: %s%s%.200s", clean,
                 errors[0] ? ": " : "", errors);
    if (k->is_greeted && now - k->started_ns > LINK_GOOD_NS)
        k->retry_ns = 0;
    k->fails += k->fails < LINK_FAILS;
    k->is_failed = true;
    link_stop(k, true);
    k->retry_ns = k->retry_ns ? k->retry_ns * 2 : LINK_RETRY_MIN_NS;
    k->retry_ns = k->retry_ns < LINK_RETRY_MAX_NS ? k->retry_ns : LINK_RETRY_MAX_NS;
    k->retry_at_ns = now + link_jitter(k, k->retry_ns);
}

/* ---- requests ---- */

/* Write what waits. False: the relay is gone. */
static bool link_flush(struct fleet_link *k) {
    while (k->out_from < k->out.len) {
        ssize_t n = write(k->child.in, k->out.data + k->out_from, k->out.len - k->out_from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        k->out_from += (size_t)n;
    }
    strbuf_clear(&k->out);
    k->out_from = 0;
    return true;
}

static void link_send(struct fleet_link *k, enum link_request request, struct strbuf *message) {
    if (!message->failed && pipe_put(&k->out, message->data, message->len) == 0) {
        k->request = request;
        k->sent_ns = clock_mono_ns();
    }
    strbuf_fini(message);
    if (k->request != request || !link_flush(k))
        link_fail(k, "a request could not be sent");
}

static void link_ask_hello(struct fleet_link *k) {
    struct strbuf message;
    strbuf_init(&message, WIRE_MAX_MESSAGE);
    wire_put_hello(&message, ++k->id, PROBING_VERSION);
    link_send(k, LINK_HELLO, &message);
}

static void link_ask_rows(struct fleet_link *k, enum link_request request, const struct wire_rows_ask *ask) {
    struct strbuf message;
    strbuf_init(&message, WIRE_MAX_MESSAGE);
    wire_put_rows_ask(&message, ++k->id, ask);
    link_send(k, request, &message);
}

static void link_ask_job(const struct fleet_links *l, struct fleet_link *k) {
    struct wire_rows_ask ask = {.table = REPORT_JOB, .args = {{.key = "name", .is_text = true}}, .n_args = 1};
    /* the name that the first has found is the job's on all hosts; on this one it stays the job's, whatever
     * the text would name now */
    snprintf(ask.args[0].text, sizeof ask.args[0].text, "%s", l->job[0] ? l->job : l->target);
    k->is_named = l->job[0] != '\0';
    link_ask_rows(k, LINK_JOB, &ask);
}

static void link_ask_work(const struct fleet_links *l, struct fleet_link *k) {
    struct wire_rows_ask ask = {.args = {{.key = "counters", .number = l->counters}},
                                .n_args = strcmp(l->work, REPORT_STATES) == 0};
    snprintf(ask.table, sizeof ask.table, "%s", l->work);
    link_ask_rows(k, LINK_WORK, &ask);
}

static void link_ask_ranks(struct fleet_link *k) {
    struct wire_rows_ask ask = {
        .table = REPORT_RANKS, .args = {{.key = "after", .number = k->round}}, .n_args = 1};
    link_ask_rows(k, LINK_RANKS, &ask);
}

static void link_ask_clock(struct fleet_link *k) {
    struct wire_rows_ask ask = {.table = REPORT_CLOCK};
    k->asked_at = clock_epoch_s();
    link_ask_rows(k, LINK_CLOCK, &ask);
}

/* Ask for those after the first `from`. */
static void link_ask_groups(struct fleet_link *k, size_t from) {
    struct wire_rows_ask ask = {
        .table = REPORT_GROUPS, .args = {{.key = "from", .number = (int64_t)from}}, .n_args = 1};
    k->groups_from = from;
    link_ask_rows(k, LINK_GROUPS, &ask);
}

static void link_ask_ras(struct fleet_link *k) {
    link_ask_rows(k, LINK_RAS, &(struct wire_rows_ask){.table = REPORT_RAS});
}

static void link_ask_times(struct fleet_link *k) {
    struct wire_rows_ask ask = {.table = REPORT_TIMES};
    link_ask_rows(k, LINK_TIMES, &ask);
}

/* Ask for the next stacks that are not known yet. False: there are none. */
static bool link_ask_stacks(const struct fleet_links *l, struct fleet_link *k) {
    struct wire_rows_ask ask = {
        .table = REPORT_STACKS, .args = {{.key = "ids", .is_text = true}}, .n_args = 1};
    char *text = ask.args[0].text;
    size_t n = 0;
    for (; k->n_asked < k->said->n_next && n < REPORT_IDS_MAX; k->n_asked++) {
        char id[24];
        int64_t stack = k->said->next[k->n_asked].stack;
        if (stack == REPORT_NO_INT || link_find_stack(l, k, stack))
            continue;
        /* all digits, so that none is a part of another */
        snprintf(id, sizeof id, "%016" PRIx64, (uint64_t)stack);
        if (strstr(text, id))
            continue;
        size_t at = strlen(text);
        snprintf(text + at, sizeof ask.args[0].text - at, "%s%s", at ? "," : "", id);
        k->stacks[n++] = stack;
    }
    k->n_stacks = n;
    if (n > 0)
        link_ask_rows(k, LINK_STACKS, &ask);
    return n > 0;
}

/* ---- answers ---- */

static bool link_take_hello(struct fleet_link *k, const struct wire_message *m, struct err *e) {
    struct model_target t;
    bool ok = wire_get_target(m, &t, e) == 0;
    if (ok && !k->name[0])
        text_sanitize(k->said->host, sizeof k->said->host, t.host ? t.host : "");
    if (ok)
        text_sanitize(k->version, sizeof k->version, t.agent_version ? t.agent_version : "");
    model_target_fini(&t);
    return ok;
}

static bool link_take_job(struct fleet_link *k, const struct wire_message *m, struct err *e) {
    struct report_reader reader;
    struct report_job row;
    struct arena texts;
    arena_init(&texts, LINK_REPORT_BYTES);
    if (report_begin(&reader, &REPORT_TABLE_JOB, m, e) != 0 || report_next(&reader, &row, &texts) != 1 ||
        !row.name) {
        arena_fini(&texts);
        err_set(e, ERR_FAILED, "its answer about the job is not valid");
        return false;
    }
    link_put_texts(&k->job_texts, &texts);
    k->said->job = row;
    k->said->has_job = true;
    return true;
}

static bool link_take_ranks(struct fleet_link *k, const struct wire_message *m, struct err *e) {
    struct report_reader reader;
    struct arena texts;
    struct report_rank *rows = malloc((LINK_RANKS_MAX + 1) * sizeof *rows);
    size_t n = 0;
    int rc = -1;
    arena_init(&texts, LINK_REPORT_BYTES);
    if (rows && report_begin(&reader, &REPORT_TABLE_RANK, m, e) == 0)
        while (n <= LINK_RANKS_MAX && (rc = report_next(&reader, &rows[n], &texts)) == 1)
            n++;
    if (rc != 0 || n == 0 || rows[0].round <= k->round) {
        free(rows);
        arena_fini(&texts);
        err_set(e, ERR_FAILED, "its answer about the ranks is not valid");
        return false;
    }
    k->found = rows[0].found;
    k->round = rows[0].round;
    free(k->said->next);
    arena_fini(&k->next_texts);
    k->said->next = rows;
    k->said->n_next = n;
    k->n_asked = 0;
    k->next_texts = texts;
    return true;
}

/* Rows of a table behind the first `kept` of `*out`, with their texts in `texts`; what was there before is
 * freed, but for these. `*more`: there are more of them. */
static bool link_take_table(const struct report_table *table, size_t size, size_t most, size_t kept,
                            const struct wire_message *m, void **out, size_t *n_out, struct arena *texts,
                            bool *more, struct err *e) {
    struct report_reader reader;
    size_t n = kept;
    int rc = -1;
    *n_out = 0;
    if (!kept) {
        arena_fini(texts);
        arena_init(texts, LINK_REPORT_BYTES);
    }
    char *rows = realloc(*out, (most + 1) * size);
    *out = rows ? rows : *out;
    if (rows && report_begin(&reader, table, m, e) == 0)
        while (n <= most && (rc = report_next(&reader, rows + n * size, texts)) == 1)
            n++;
    if (rc != 0) {
        err_set(e, ERR_FAILED, "its answer is not valid");
        return false;
    }
    *n_out = n;
    *more = reader.rows.more && n > kept && n < most;
    return true;
}

static bool link_take_work(const struct fleet_links *l, struct fleet_link *k, const struct wire_message *m,
                           struct err *e) {
    void *rows = k->states;
    bool more;
    if (strcmp(l->work, REPORT_STATES) == 0) {
        bool ok = link_take_table(&REPORT_TABLE_STATE, sizeof *k->states, LINK_RANKS_MAX, 0, m, &rows,
                                  &k->n_states, &k->tasks_texts, &more, e);
        k->states = rows;
        return ok;
    }
    rows = k->tasks;
    bool ok = link_take_table(&REPORT_TABLE_TASK, sizeof *k->tasks, LINK_RANKS_MAX, 0, m, &rows, &k->n_tasks,
                              &k->tasks_texts, &more, e);
    k->tasks = rows;
    k->is_done = k->is_fresh = ok;
    return ok;
}

static bool link_take_groups(struct fleet_link *k, const struct wire_message *m, struct err *e) {
    void *rows = k->groups;
    bool ok = link_take_table(&REPORT_TABLE_GROUP, sizeof *k->groups, LINK_GROUPS_MAX, k->groups_from, m,
                              &rows, &k->n_groups, &k->groups_texts, &k->has_more_groups, e);
    k->groups = rows;
    return ok;
}

static bool link_take_ras(struct fleet_link *k, const struct wire_message *m, struct err *e) {
    void *rows = k->ras;
    bool more, ok = link_take_table(&REPORT_TABLE_RAS, sizeof *k->ras, RAS_FACTS, 0, m, &rows, &k->n_ras,
                                    &k->ras_texts, &more, e);
    k->ras = rows;
    /* without it the rest is as good */
    k->n_ras = ok ? k->n_ras : 0;
    return true;
}

/* Keep a stack that was asked for. False: it was not. */
static bool link_put_stack(struct fleet_links *l, const struct fleet_link *k, int64_t id,
                           const struct model_frame *frames, size_t n) {
    for (size_t i = 0; i < k->n_stacks; i++)
        if (k->stacks[i] == id) {
            fleet_hosts_put_stack(&l->source.hosts, k->said->stacks, id, frames, n);
            return true;
        }
    return false;
}

static bool link_take_stacks(struct fleet_links *l, const struct fleet_link *k, const struct wire_message *m,
                             struct err *e) {
    struct report_reader reader;
    struct report_frame row;
    struct model_frame *frames = calloc(LINK_FRAMES_MAX, sizeof *frames);
    struct arena texts;
    int64_t id = 0;
    size_t n = 0;
    int rc = -1;
    bool asked = true;
    arena_init(&texts, LINK_REPORT_BYTES);
    if (frames && report_begin(&reader, &REPORT_TABLE_FRAME, m, e) == 0)
        while (asked && (rc = report_next(&reader, &row, &texts)) == 1) {
            if (n && id != row.stack) {
                asked = link_put_stack(l, k, id, frames, n);
                n = 0;
            }
            id = row.stack;
            if (n < LINK_FRAMES_MAX)
                frames[n++] =
                    (struct model_frame){.func = row.func,
                                         .file = row.file,
                                         .line = row.line > 0 && row.line <= INT32_MAX ? (int)row.line : 0};
        }
    if (n && rc == 0)
        asked = link_put_stack(l, k, id, frames, n);
    free(frames);
    arena_fini(&texts);
    if (rc == 0 && asked)
        return true;
    err_set(e, ERR_FAILED, "its answer about stacks is not valid");
    return false;
}

static bool link_take_clock(struct fleet_links *l, struct fleet_link *k, const struct wire_message *m,
                            struct err *e) {
    struct report_reader reader;
    struct report_clock row;
    struct arena texts;
    uint64_t now = clock_mono_ns();
    bool ok;
    arena_init(&texts, LINK_REPORT_BYTES);
    ok = report_begin(&reader, &REPORT_TABLE_CLOCK, m, e) == 0 && report_next(&reader, &row, &texts) == 1;
    arena_fini(&texts);
    if (!ok) {
        err_set(e, ERR_FAILED, "its answer about its clock is not valid");
        return false;
    }
    k->said->rtt_ms = (double)(now - k->sent_ns) / (double)CLOCK_NS_PER_MS;
    if (clock_offset_add(&k->clock, k->asked_at, row.at, k->asked_at + k->said->rtt_ms / 1e3,
                         k->said->rtt_ms / 1e3))
        fleet_hosts_forget_times(&l->source.hosts, link_number(l, k));
    k->clock_ns = now;
    return true;
}

/* Often at first, then every ten seconds; not of this host. */
static bool link_is_clock_due(const struct fleet_links *l, const struct fleet_link *k) {
    return !l->is_here && (k->clock.n < CLOCK_OFFSET_KEPT || clock_mono_ns() - k->clock_ns > LINK_CLOCK_NS);
}

static bool link_take_times(struct fleet_links *l, struct fleet_link *k, const struct wire_message *m,
                            struct err *e) {
    struct report_reader reader;
    struct report_time row;
    struct arena texts;
    int rc = -1;
    arena_init(&texts, LINK_REPORT_BYTES);
    if (report_begin(&reader, &REPORT_TABLE_TIME, m, e) == 0)
        while ((rc = report_next(&reader, &row, &texts)) == 1)
            if (fleet_hosts_add_time(&l->source.hosts, link_number(l, k), &row))
                k->clock = (struct clock_offset){.n = 0}; /* it is asked for next */
    arena_fini(&texts);
    if (rc == 0)
        return true;
    err_set(e, ERR_FAILED, "its answer about steps is not valid");
    return false;
}

/* ---- the fleet ---- */

/* The fleet, of what is known now. */
static void link_build(struct fleet_links *l, bool round) {
    uint64_t now = clock_mono_ns();
    for (size_t i = 0; i < l->n_links; i++) {
        const struct fleet_link *k = &l->links[i];
        k->said->silent_s = (double)(now - k->news_ns) / (double)CLOCK_NS_PER_S;
        if (k->name[0])
            clock_offset_get(&k->clock, &k->said->ahead_ms, &k->said->error_ms);
        else
            k->said->ahead_ms = k->said->error_ms = 0;
    }
    fleet_hosts_build(&l->source.hosts, round);
    for (size_t i = 0; i < l->n_links; i++) {
        link_drop_texts(&l->links[i].job_texts);
        link_drop_texts(&l->links[i].ranks_texts);
        l->links[i].is_failed = false;
    }
    l->is_changed = false;
}

static bool link_reads_states(const struct fleet_links *l) {
    return l->work && strcmp(l->work, REPORT_STATES) == 0;
}

/* Since when it is waited for its greeting: nobody may have looked since it was started. */
static uint64_t link_since(const struct fleet_link *k) {
    return k->request != LINK_NOTHING ? k->sent_ns : k->started_ns;
}

/* A round is not complete without it. */
static bool link_is_awaited(const struct fleet_links *l, const struct fleet_link *k, uint64_t now) {
    bool is_late = k->started_ns && now - k->started_ns > LINK_AWAIT_NS;
    /* it may hang in the middle of its search for the ranks */
    if (l->work && is_late && !k->states && link_reads_states(l))
        return false;
    if (l->work)
        return !k->is_done && !k->said->is_absent && k->fails < LINK_FAILS &&
               !(k->states && now - k->sent_ns > LINK_STATES_NS);
    if (k->said->is_absent || k->said->is_silent)
        return false;
    return k->is_greeted ? now - k->seen_ns < LINK_AWAIT_NS
                         : !k->said->note[0] && (!k->started_ns || now - link_since(k) < LINK_AWAIT_NS);
}

/* Make the fleet again if it is time. True: it has changed. */
static bool link_build_if_due(struct fleet_links *l, bool tick, uint64_t now) {
    bool complete = true, fresh = false, silent = false;
    for (size_t i = 0; i < l->n_links; i++) {
        const struct fleet_link *k = &l->links[i];
        fresh |= k->is_fresh;
        complete &= k->is_fresh || !link_is_awaited(l, k, now);
        silent |= k->said->is_silent;
        l->is_changed |= k->is_failed;
    }
    /* it shows for how long a host has been silent */
    bool old = silent && now - l->source.hosts.built_ns > CLOCK_NS_PER_S;
    /* hosts that have answered before, and none does now: that is an answer, too */
    fresh |= l->is_asked && l->source.hosts.fleet.round > 0;
    if (fresh && complete) {
        l->is_asked = false;
        for (size_t i = 0; i < l->n_links; i++)
            l->links[i].is_fresh = false;
        link_build(l, true);
        return true;
    }
    if (!tick || (!l->is_changed && !old))
        return false;
    link_build(l, false);
    return true;
}

/* The next request, after an answer. True: the ranks of a round are complete. */
static bool link_go_on(struct fleet_links *l, struct fleet_link *k, enum link_request done) {
    switch (done) {
    case LINK_HELLO:
        if (link_is_clock_due(l, k))
            link_ask_clock(k);
        else
            link_ask_job(l, k);
        return false;
    case LINK_CLOCK:
        /* it was the first question, or comes after a round */
        if (k->said->next)
            return true;
        link_ask_job(l, k);
        return false;
    case LINK_JOB:
        /* it may have taken another for the only one */
        if (!l->is_here && strcmp(l->job, k->said->job.name) != 0)
            link_ask_job(l, k);
        else if (l->work)
            link_ask_work(l, k);
        else
            link_ask_ranks(k);
        return false;
    case LINK_WORK:
        if (strcmp(l->work, REPORT_STATES) == 0)
            link_ask_groups(k, 0);
        return false;
    case LINK_GROUPS:
        if (k->has_more_groups) {
            link_ask_groups(k, k->n_groups);
            return false;
        }
        if (l->counters) {
            link_ask_ras(k);
            return false;
        }
        k->n_ras = 0;
        k->is_done = k->is_fresh = true;
        return false;
    case LINK_RAS:
        k->is_done = k->is_fresh = true;
        return false;
    case LINK_RANKS:
    case LINK_STACKS:
        if (!link_ask_stacks(l, k))
            link_ask_times(k);
        return false;
    case LINK_TIMES:
        if (!link_is_clock_due(l, k))
            return true;
        link_ask_clock(k);
        return false;
    case LINK_NOTHING:
        break;
    }
    return true;
}

/* There is no such job on the host. */
static void link_on_absent(struct fleet_links *l, struct fleet_link *k, const char *why) {
    text_sanitize(k->said->note, sizeof k->said->note, why);
    k->request = LINK_NOTHING;
    k->said->is_absent = true;
    k->said->has_job = false;
    report_clear(&REPORT_TABLE_JOB, &k->said->job);
    k->fails = 0;
    k->seen_ns = clock_mono_ns();
    k->said->seen_at = clock_epoch_s();
    k->ask_at_ns = k->seen_ns + LINK_ABSENT_NS;
    k->said->n_ranks = 0;
    l->is_changed = true;
    if (!l->is_here)
        return;
    err_set(&l->source.error, ERR_ATTACH, "%.400s", k->said->note);
    link_stop(k, true);
    k->retry_at_ns = UINT64_MAX; /* another relay would find the same */
}

/* The ranks of a round are complete. */
static void link_on_round(struct fleet_links *l, struct fleet_link *k) {
    free(k->said->ranks);
    k->said->ranks = k->said->next;
    k->said->n_ranks = k->said->n_next;
    link_put_texts(&k->ranks_texts, &k->next_texts);
    k->said->next = NULL;
    k->said->n_next = 0;
    k->next_texts = (struct arena){0};
    k->fails = 0;
    k->said->note[0] = '\0';
    if (k->version[0] && strcmp(k->version, PROBING_VERSION) != 0)
        snprintf(k->said->note, sizeof k->said->note, "probing %s is there, and %s here: install the same",
                 k->version, PROBING_VERSION);
    k->said->is_silent = false;
    k->is_fresh = l->is_changed = true;
    if (k->found != k->said->job.found)
        link_ask_job(l, k);
    else
        link_ask_ranks(k);
}

/* Take the answer to the request that waits. */
static void link_on_answer(struct fleet_links *l, struct fleet_link *k, const struct wire_message *m,
                           struct err *e) {
    enum link_request done = k->request;
    enum wire_error code;
    const char *why = wire_message_error(m, &code);
    bool ok = false;
    if (why && done == LINK_JOB &&
        (!k->said->has_job || (!l->is_here && strcmp(l->job, k->said->job.name) != 0))) {
        link_on_absent(l, k, why);
        return;
    }
    /* an older relay has none of these */
    if (why && done != LINK_TIMES && done != LINK_CLOCK && done != LINK_RAS) {
        err_set(e, ERR_FAILED, "%.400s", why);
        link_fail(k, err_text(e));
        return;
    }
    if (done == LINK_HELLO)
        ok = link_take_hello(k, m, e);
    else if (done == LINK_JOB)
        ok = link_take_job(k, m, e);
    else if (done == LINK_RANKS)
        ok = link_take_ranks(k, m, e);
    else if (done == LINK_STACKS)
        ok = link_take_stacks(l, k, m, e);
    else if (done == LINK_TIMES)
        ok = why || link_take_times(l, k, m, e);
    else if (done == LINK_CLOCK)
        ok = why || link_take_clock(l, k, m, e);
    else if (done == LINK_WORK)
        ok = link_take_work(l, k, m, e);
    else if (done == LINK_GROUPS)
        ok = link_take_groups(k, m, e);
    else if (done == LINK_RAS)
        ok = why || link_take_ras(k, m, e);
    if (ok && done == LINK_JOB && !l->job[0] && !l->is_here)
        snprintf(l->job, sizeof l->job, "%s", k->said->job.name);
    else if (ok && done == LINK_JOB && k->is_named && strcmp(l->job, k->said->job.name) != 0) {
        err_set(e, ERR_FAILED, "it names another job than it was asked for");
        ok = false;
    }
    if (!ok) {
        link_fail(k, err_text(e));
        return;
    }
    k->request = LINK_NOTHING;
    k->is_greeted = true;
    k->said->is_absent = false;
    k->seen_ns = clock_mono_ns();
    k->said->seen_at = clock_epoch_s();
    if (done != LINK_HELLO && done != LINK_CLOCK && done != LINK_JOB)
        k->news_ns = k->seen_ns;
    if (done == LINK_HELLO || done == LINK_STACKS)
        k->said->rtt_ms = (double)(k->seen_ns - k->sent_ns) / (double)CLOCK_NS_PER_MS;
    if (link_go_on(l, k, done))
        link_on_round(l, k);
}

static void link_on_message(struct fleet_links *l, struct fleet_link *k, const void *data, size_t len) {
    struct err e = {0};
    struct wire_message *m = wire_parse(data, len, &e);
    if (!m)
        link_fail(k, err_text(&e));
    else if (wire_message_type(m) != WIRE_RESPONSE || k->request == LINK_NOTHING ||
             wire_message_id(m) != k->id)
        link_fail(k, "it sent what it was not asked for");
    else
        link_on_answer(l, k, m, &e);
    wire_message_free(m);
}

static void link_read(struct fleet_links *l, struct fleet_link *k) {
    static const char gone[] = "it has ended";
    char data[LINK_READ];
    const void *message;
    size_t len;
    struct err e = {0};
    ssize_t n = read(k->child.out, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || pipe_reader_add(&k->in, data, (size_t)n) != 0) {
        char why[160];
        snprintf(why, sizeof why, "%s%s%s", n <= 0 ? gone : "out of memory",
                 k->in.banner[0] ? "; it printed: " : "", k->in.banner);
        link_fail(k, why);
        return;
    }
    int rc = 0;
    while (k->child.out >= 0 && (rc = pipe_reader_next(&k->in, &message, &len, &e)) == 1)
        link_on_message(l, k, message, len);
    if (k->child.out >= 0 && rc < 0)
        link_fail(k, err_text(&e));
    else if (k->child.out >= 0 && k->in.is_begun && !k->is_greeted && k->request == LINK_NOTHING)
        link_ask_hello(k);
}

/* ---- time ---- */

static size_t link_count_starting(const struct fleet_links *l, uint64_t now) {
    size_t n = 0;
    for (size_t i = 0; i < l->n_links; i++)
        n += l->links[i].child.out >= 0 && !l->links[i].is_greeted &&
             now < l->links[i].started_ns + LINK_STARTS_NS;
    return n;
}

static bool link_has_new(const struct fleet_links *l) {
    for (size_t i = 0; i < l->n_links; i++)
        if (!l->links[i].started_ns)
            return true;
    return false;
}

/* Start it (again) if that is due, and not too many others start: those first that were never started. */
static void link_start_if_due(struct fleet_links *l, struct fleet_link *k, uint64_t now) {
    struct err e;
    if (k->is_done || k->child.out >= 0 || now < k->retry_at_ns || k->retry_at_ns == UINT64_MAX ||
        (k->is_ending && !relay_child_is_over(&k->child)) || (k->fails && link_has_new(l)) ||
        link_count_starting(l, now) >= LINK_STARTS)
        return;
    k->is_ending = false;
    if (link_start(l, k, &e) != 0)
        link_fail(k, err_text(&e));
    else if (!link_flush(k))
        link_fail(k, "it has ended");
}

/* Give up a request without an answer; notice its silence. */
static void link_tick(struct fleet_links *l, struct fleet_link *k, uint64_t now) {
    bool works = k->request == LINK_WORK && !link_reads_states(l);
    uint64_t limit = k->request == LINK_JOB ? LINK_FIND_NS : works ? LINK_WORK_NS : LINK_ANSWER_NS;
    bool open = k->child.out >= 0;
    if (k->is_ending)
        k->is_ending = !relay_child_is_over(&k->child);
    bool is_mute = open && !k->is_greeted && now - link_since(k) > LINK_START_NS;
    if (is_mute)
        k->fails = LINK_FAILS; /* it would be as long again */
    if (is_mute || (open && k->request != LINK_NOTHING && now - k->sent_ns > limit))
        link_fail(k, "it did not answer in time");
    else if (open && k->out.len > 0 && !link_flush(k))
        link_fail(k, "it has ended");
    else if (open && k->said->is_absent && k->request == LINK_NOTHING && now >= k->ask_at_ns)
        link_ask_job(l, k);
    /* a relay that answers, and does not find the ranks any longer, has no news of them */
    bool silent = k->news_ns && now - k->news_ns > LINK_SILENT_NS && k->said->n_ranks;
    if (silent == k->said->is_silent)
        return;
    k->said->is_silent = silent;
    if (silent && !k->said->note[0])
        snprintf(k->said->note, sizeof k->said->note, "its relay does not answer");
    l->is_changed = true;
}

/* ---- for the owner ---- */

static int link_init(struct fleet_link *k, const struct fleet_reach *reach, const char *host, struct err *e) {
    k->child = (struct relay_child){.in = -1, .out = -1, .errors = -1};
    snprintf(k->said->via, sizeof k->said->via, "local");
    if (!host)
        return 0;
    snprintf(k->name, sizeof k->name, "%s", host);
    snprintf(k->said->host, sizeof k->said->host, "%s", host);
    relay_via_name(&reach->via, k->said->via, sizeof k->said->via);
    return relay_via_words(&reach->via, host, &k->words, e);
}

static int link_init_all(struct fleet_links *l, const struct fleet_reach *reach, struct err *e) {
    struct itimerspec tick = {.it_interval.tv_nsec = LINK_TICK_MS * (long)CLOCK_NS_PER_MS,
                              .it_value.tv_nsec = LINK_TICK_MS * (long)CLOCK_NS_PER_MS};
    for (size_t i = 0; i < l->n_links; i++)
        if (link_init(&l->links[i], reach, l->is_here ? NULL : reach->hosts.names[i], e) != 0)
            return -1;
    l->source.fd = epoll_create1(EPOLL_CLOEXEC);
    l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (l->source.fd < 0 || l->timer < 0 || timerfd_settime(l->timer, 0, &tick, NULL) != 0 ||
        link_watch(l, l->timer) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot watch the ranks of a job");
    if (l->is_here)
        return link_start(l, l->links, e);
    for (size_t i = 0; i < l->n_links; i++)
        link_start_if_due(l, &l->links[i], clock_mono_ns());
    return 0;
}

static void link_close(struct fleet_source *source);

static struct fleet_source *link_open(const char *target, const struct fleet_reach *reach, const char *work,
                                      struct err *e) {
    struct fleet_links *l = calloc(1, sizeof *l);
    bool here = reach->hosts.n == 0;
    size_t n = here ? 1 : reach->hosts.n;
    struct fleet_link *links = calloc(n, sizeof *links);
    if (jobs_is_target(target))
        target += strlen(JOBS_TARGET);
    if (!l || !links || fleet_hosts_init(&l->source.hosts, n) != 0) {
        if (l)
            fleet_hosts_fini(&l->source.hosts);
        free(l);
        free(links);
        err_set(e, ERR_FAILED, "out of memory for the ranks of a job");
        return NULL;
    }
    l->source.kind = &fleet_links_kind;
    l->source.read_s = NAN;
    l->source.fd = l->timer = -1;
    l->serve = reach->serve;
    l->links = links;
    l->n_links = n;
    for (size_t i = 0; i < n; i++)
        links[i].said = &l->source.hosts.items[i];
    l->is_here = here;
    l->work = work;
    snprintf(l->target, sizeof l->target, "%.*s", (int)strcspn(target, "/"), target);
    if (link_init_all(l, reach, e) == 0)
        return &l->source;
    link_close(&l->source);
    return NULL;
}

const struct report_task *fleet_links_tasks(const struct fleet_source *s, size_t i, const char **host,
                                            size_t *n) {
    const struct fleet_links *l = link_of_const(s);
    const struct fleet_link *k = s->kind == &fleet_links_kind && i < l->n_links ? &l->links[i] : NULL;
    *host = k ? k->said->host : NULL;
    *n = k ? k->n_tasks : 0;
    return k ? k->tasks : NULL;
}

static void link_ask_all_states(struct fleet_source *s, bool counters) {
    struct fleet_links *l = link_of(s);
    l->counters = counters;
    l->is_asked = true;
    for (size_t i = 0; i < l->n_links; i++) {
        struct fleet_link *k = &l->links[i];
        bool was_done = k->is_done;
        k->is_done = k->is_fresh = false;
        /* first for the job: its ranks may have been started again */
        if (was_done && k->child.out >= 0 && k->request == LINK_NOTHING)
            link_ask_job(l, k);
    }
}

static bool link_states(const struct fleet_source *s, size_t i, struct fleet_states *out) {
    const struct fleet_links *l = link_of_const(s);
    const struct fleet_link *k = i < l->n_links ? &l->links[i] : NULL;
    *out = (struct fleet_states){.n = 0};
    if (k && k->is_done)
        *out = (struct fleet_states){.states = k->states,
                                     .n = k->n_states,
                                     .groups = k->groups,
                                     .n_groups = k->n_groups,
                                     .ras = k->ras,
                                     .n_ras = k->n_ras,
                                     .job = &k->said->job,
                                     .seen_s = (double)k->seen_ns / (double)CLOCK_NS_PER_S};
    return k != NULL;
}

/* All of them at the same time: none is waited for longer than the others. */
static void link_stop_all(struct fleet_links *l) {
    for (size_t i = 0; i < l->n_links; i++)
        link_stop(&l->links[i], false);
    for (size_t i = 0; i < l->n_links; i++)
        while (l->links[i].is_ending && !relay_child_is_over(&l->links[i].child))
            nanosleep(&(struct timespec){.tv_nsec = LINK_END_MS * (long)CLOCK_NS_PER_MS}, NULL);
}

static void link_close(struct fleet_source *source) {
    struct fleet_links *l = link_of(source);
    link_stop_all(l);
    for (size_t i = 0; i < l->n_links; i++) {
        struct fleet_link *k = &l->links[i];
        link_texts_fini(&k->job_texts);
        link_texts_fini(&k->ranks_texts);
        free(k->said->ranks);
        free(k->tasks);
        free(k->states);
        free(k->groups);
        free(k->ras);
        arena_fini(&k->tasks_texts);
        arena_fini(&k->groups_texts);
        arena_fini(&k->ras_texts);
    }
    fleet_hosts_fini(&source->hosts);
    free(l->links);
    if (source->fd >= 0)
        close(source->fd);
    if (l->timer >= 0)
        close(l->timer);
    free(l);
}

size_t fleet_links_count_lacking(const struct fleet_source *s) {
    const struct fleet_links *l = link_of_const(s);
    size_t n = 0;
    for (size_t i = 0; s->kind == &fleet_links_kind && i < l->n_links; i++)
        n += l->links[i].is_lacking;
    return n;
}

const char *fleet_links_note(const struct fleet_source *s, size_t i) {
    const struct fleet_links *l = link_of_const(s);
    return s->kind == &fleet_links_kind && i < l->n_links ? l->links[i].said->note : "";
}

static void link_put_silent(const struct fleet_source *s, struct strbuf *out) {
    const struct fleet_links *l = link_of_const(s);
    for (size_t i = 0; i < l->n_links; i++) {
        const struct fleet_link *k = &l->links[i];
        const struct fleet_host *h = k->said;
        if (l->work ? k->is_done : h->has_job && h->n_ranks && !h->is_silent && k->child.out >= 0)
            continue;
        strbuf_addf(out, "%s%s", out->len ? "; " : "", h->host[0] ? h->host : "this host");
        if (h->note[0])
            strbuf_addf(out, " (%s)", h->note);
        else if (!k->started_ns)
            strbuf_adds(out, " (it was not reached in time)");
        else if (!k->seen_ns)
            strbuf_adds(out, " (it did not answer in time)");
    }
}

/* No host has the job, or none can be reached. */
static void link_judge_all(struct fleet_links *l) {
    const struct fleet_link *absent = NULL;
    if (l->is_here)
        return;
    l->source.error.code = ERR_OK;
    for (size_t i = 0; i < l->n_links; i++) {
        const struct fleet_link *k = &l->links[i];
        if (k->is_done || (!k->said->is_absent && (k->fails < LINK_FAILS || k->said->n_ranks)))
            return;
        absent = k->said->is_absent && !absent ? k : absent;
    }
    if (absent)
        err_set(&l->source.error, ERR_ATTACH, "%.96s: %.380s", absent->said->host, absent->said->note);
    else
        err_set(&l->source.error, ERR_ATTACH, "no host can be reached: %.96s: %.380s", l->links[0].said->host,
                l->links[0].said->note);
}

static bool link_advance(struct fleet_source *source) {
    struct fleet_links *l = link_of(source);
    uint64_t ticks;
    bool tick = read(l->timer, &ticks, sizeof ticks) == sizeof ticks;
    for (size_t i = 0; i < l->n_links; i++) {
        struct fleet_link *k = &l->links[i];
        if (k->child.errors >= 0 && relay_child_read_errors(&k->child) != 0)
            link_fail(k, "it prints errors without an end");
        if (k->child.out >= 0)
            link_read(l, k);
        /* not before: what is read notes the time, too */
        uint64_t now = clock_mono_ns();
        if (tick)
            link_tick(l, k, now);
        link_start_if_due(l, k, now);
    }
    link_judge_all(l);
    return link_build_if_due(l, tick, clock_mono_ns());
}

/* Hosts that cannot be reached are in it, too. */
static int link_settle(struct fleet_source *s, struct err *e) {
    struct fleet_links *l = link_of(s);
    if (!s->hosts.fleet.n_nodes)
        link_build(l, false);
    bool done = false;
    for (size_t i = 0; i < l->n_links; i++)
        done |= l->links[i].is_done;
    if (s->hosts.fleet.n_ranks > 0 || done)
        return 0;
    struct strbuf why;
    strbuf_init(&why, 0);
    if (l->is_here)
        strbuf_adds(&why, l->links[0].said->note[0] ? l->links[0].said->note
                                                    : "the relay of this host did not answer in time");
    else
        link_put_silent(s, &why);
    int rc = err_set(e, ERR_ATTACH, "the ranks could not be read: %.400s", strbuf_str(&why));
    strbuf_fini(&why);
    return rc;
}

static bool link_takes(const char *target) {
    (void)target;
    return true;
}

const struct fleet_source_kind fleet_links_kind = {
    .takes = link_takes,
    .open = link_open,
    .close = link_close,
    .advance = link_advance,
    .settle = link_settle,
    .put_silent = link_put_silent,
    .ask_states = link_ask_all_states,
    .states = link_states,
};
