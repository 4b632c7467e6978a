/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_links: see fleet_links.h. */
#include "client/fleet/fleet_links.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/text.h"
#include "client/fleet/jobs_here.h"
#include "client/guard.h"
#include "version.h"
#include "wire/pipe.h"
#include "wire/wire.h"

#define LINK_RANKS_MAX 4096 /* of a host */
#define LINK_REPORT_BYTES ((size_t)8 * 1024 * 1024)
#define LINK_STACK_BYTES ((size_t)1024 * 1024)
#define LINK_STACKS_MAX 8192 /* kept; then those that no rank has are forgotten */
#define LINK_READ 65536
#define LINK_FIND_NS (60 * CLOCK_NS_PER_S) /* for the job to be found: processes may block their readers */
#define LINK_ANSWER_NS (30 * CLOCK_NS_PER_S)
#define LINK_SILENT_NS (5 * CLOCK_NS_PER_S) /* then its ranks have no news */
#define LINK_RETRY_MIN_NS (CLOCK_NS_PER_S / 4)
#define LINK_RETRY_MAX_NS (5 * CLOCK_NS_PER_S)
#define LINK_TICK_MS 250
#define LINK_END_NS (300 * CLOCK_NS_PER_MS) /* for a relay to end by itself */

/* The request that waits for its answer: there is one at a time, so whatever else comes was not asked for. */
enum link_request { LINK_NOTHING, LINK_HELLO, LINK_JOB, LINK_RANKS, LINK_STACKS };

/* Texts of the newest answer, and those that the fleet was made of, which stay until it is made again. */
struct link_texts {
    struct arena newest, used;
    bool is_newer; /* the fleet is made of `used` */
};

/* One relay. */
struct fleet_link {
    pid_t child;
    int fd; /* -1: there is none */
    struct pipe_reader in;
    struct strbuf out;
    size_t out_from;
    enum link_request request;
    uint32_t id;
    uint64_t sent_ns;
    uint64_t retry_at_ns, retry_ns; /* when it is started again; how long it waits then */
    /* what it has answered */
    char host[256];
    bool has_job;
    struct report_job job;
    struct link_texts job_texts;
    int64_t found, round; /* of its newest ranks */
    struct report_rank *ranks;
    size_t n_ranks;
    size_t n_asked; /* of those: their stacks are known, or were asked for */
    struct link_texts ranks_texts;
    uint64_t seen_ns; /* its last answer; 0 none */
    double seen_at, rtt_ms;
    bool is_silent; /* as the fleet has it */
    char note[512];
};

struct fleet_links {
    struct fleet fleet;
    fleet_serve_fn serve;
    char target[WIRE_ROWS_ARG_TEXT];
    int epoll, timer;
    struct fleet_link *links;
    size_t n_links;
    struct fleet_stack **stacks;
    size_t n_stacks, cap_stacks;
    struct err error;
};

/* ---- stacks ---- */

/* A stack with the memory of its frames. */
struct link_stack {
    struct fleet_stack stack; /* first */
    struct arena arena;
    bool is_used;
};

static void link_stack_free(struct fleet_stack *s) {
    struct link_stack *mine = (struct link_stack *)(void *)s;
    arena_fini(&mine->arena);
    free(mine);
}

static const struct fleet_stack *link_find_stack(const struct fleet_links *l, int64_t id) {
    size_t low = 0, high = l->n_stacks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->stacks[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->n_stacks && l->stacks[low]->id == id ? l->stacks[low] : NULL;
}

/* Put it in its place; it belongs to the links then, on failure too. */
static void link_put_stack(struct fleet_links *l, struct link_stack *s) {
    if (s->arena.failed || link_find_stack(l, s->stack.id) ||
        grow_array(&l->stacks, sizeof *l->stacks, l->n_stacks + 1, &l->cap_stacks) != 0) {
        link_stack_free(&s->stack);
        return;
    }
    fleet_stack_describe(&s->stack);
    size_t at = l->n_stacks++;
    for (; at > 0 && l->stacks[at - 1]->id > s->stack.id; at--)
        l->stacks[at] = l->stacks[at - 1];
    l->stacks[at] = &s->stack;
}

/* Forget the stacks that no rank has, once there are many. The fleet is made again after this. */
static void link_drop_stacks(struct fleet_links *l) {
    size_t kept = 0;
    if (l->n_stacks < LINK_STACKS_MAX)
        return;
    for (size_t i = 0; i < l->n_links; i++)
        for (size_t k = 0; k < l->links[i].n_ranks; k++) {
            const struct fleet_stack *s = link_find_stack(l, l->links[i].ranks[k].stack);
            if (s)
                ((struct link_stack *)(void *)s)->is_used = true;
        }
    for (size_t i = 0; i < l->n_stacks; i++) {
        struct link_stack *s = (struct link_stack *)(void *)l->stacks[i];
        if (s->is_used)
            l->stacks[kept++] = l->stacks[i];
        else
            link_stack_free(l->stacks[i]);
        if (kept && l->stacks[kept - 1] == &s->stack)
            s->is_used = false;
    }
    l->n_stacks = kept;
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

/* In the child. */
static _Noreturn void link_run_child(fleet_serve_fn serve, int fd, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    guard_drop_files(fd);
    _exit(serve(fd, fd) == 0 ? 0 : 1);
}

static int link_start(struct fleet_links *l, struct fleet_link *k, struct err *e) {
    int fds[2];
    sigset_t all, kept;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot start the relay of this host");
    /* no handler of ours runs in the child */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &kept);
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        link_run_child(l->serve, fds[1], parent);
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &kept, NULL);
    close(fds[1]);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[0]};
    if (child < 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0 ||
        epoll_ctl(l->epoll, EPOLL_CTL_ADD, fds[0], &event) != 0) {
        saved = child < 0 ? saved : errno;
        close(fds[0]);
        return err_set_errno(e, ERR_FAILED, saved, "cannot start the relay of this host");
    }
    k->child = child;
    k->fd = fds[0];
    pipe_reader_init(&k->in, false);
    strbuf_init(&k->out, 0);
    k->out_from = 0;
    k->request = LINK_NOTHING;
    k->found = k->round = 0;
    return 0;
}

static void link_reap(pid_t child) {
    uint64_t until = clock_mono_ns() + LINK_END_NS;
    bool killed = false;
    while (waitpid(child, NULL, WNOHANG) == 0) {
        if (clock_mono_ns() > until) {
            if (killed)
                return; /* it is stuck in the kernel, and ends when that lets go of it */
            kill(child, SIGKILL);
            killed = true;
            until = clock_mono_ns() + LINK_END_NS;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    }
}

/* End it: by the end of its input, and with `hard` at once. */
static void link_stop(struct fleet_link *k, bool hard) {
    if (k->fd < 0)
        return;
    close(k->fd);
    k->fd = -1;
    if (hard)
        kill(k->child, SIGKILL);
    link_reap(k->child);
    k->child = 0;
    pipe_reader_fini(&k->in);
    strbuf_fini(&k->out);
    k->request = LINK_NOTHING;
}

/* It is of no use any longer: start it again after a while. */
static void link_fail(struct fleet_link *k, const char *why) {
    char clean[sizeof k->note];
    text_sanitize(clean, sizeof clean, why);
    snprintf(k->note, sizeof k->note, "its relay failed: %.400s", clean);
    link_stop(k, true);
    k->retry_ns = k->retry_ns ? k->retry_ns * 2 : LINK_RETRY_MIN_NS;
    k->retry_ns = k->retry_ns < LINK_RETRY_MAX_NS ? k->retry_ns : LINK_RETRY_MAX_NS;
    k->retry_at_ns = clock_mono_ns() + k->retry_ns;
}

/* ---- requests ---- */

/* Write what waits. False: the relay is gone. */
static bool link_flush(struct fleet_link *k) {
    while (k->out_from < k->out.len) {
        ssize_t n = send(k->fd, k->out.data + k->out_from, k->out.len - k->out_from, MSG_NOSIGNAL);
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
    /* the name that it has found stays the job's, whatever the text would name now */
    snprintf(ask.args[0].text, sizeof ask.args[0].text, "%s", l->target);
    link_ask_rows(k, LINK_JOB, &ask);
}

static void link_ask_ranks(struct fleet_link *k) {
    struct wire_rows_ask ask = {
        .table = REPORT_RANKS, .args = {{.key = "after", .number = k->round}}, .n_args = 1};
    link_ask_rows(k, LINK_RANKS, &ask);
}

/* Ask for the next stacks that are not known yet. False: there are none. */
static bool link_ask_stacks(const struct fleet_links *l, struct fleet_link *k) {
    struct wire_rows_ask ask = {
        .table = REPORT_STACKS, .args = {{.key = "ids", .is_text = true}}, .n_args = 1};
    char *text = ask.args[0].text;
    int n = 0;
    for (; k->n_asked < k->n_ranks && n < REPORT_IDS_MAX; k->n_asked++) {
        char id[24];
        int64_t stack = k->ranks[k->n_asked].stack;
        if (stack == REPORT_NO_INT || link_find_stack(l, stack))
            continue;
        /* all digits, so that none is a part of another */
        snprintf(id, sizeof id, "%016" PRIx64, (uint64_t)stack);
        if (strstr(text, id))
            continue;
        size_t at = strlen(text);
        snprintf(text + at, sizeof ask.args[0].text - at, "%s%s", at ? "," : "", id);
        n++;
    }
    if (n > 0)
        link_ask_rows(k, LINK_STACKS, &ask);
    return n > 0;
}

/* ---- answers ---- */

static bool link_take_hello(struct fleet_link *k, const struct wire_message *m, struct err *e) {
    struct model_target t;
    bool ok = wire_get_target(m, &t, e) == 0;
    if (ok)
        text_sanitize(k->host, sizeof k->host, t.host ? t.host : "");
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
    k->job = row;
    k->has_job = true;
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
    free(k->ranks);
    k->ranks = rows;
    k->n_ranks = n;
    k->n_asked = 0;
    link_put_texts(&k->ranks_texts, &texts);
    return true;
}

static struct link_stack *link_new_stack(int64_t id) {
    struct link_stack *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->stack.id = id;
    arena_init(&s->arena, LINK_STACK_BYTES);
    s->stack.frames = arena_calloc(&s->arena, STACK_CLASSES_DEPTH * 2, sizeof *s->stack.frames);
    return s;
}

static bool link_take_stacks(struct fleet_links *l, const struct wire_message *m, struct err *e) {
    struct report_reader reader;
    struct report_frame row;
    struct link_stack *s = NULL;
    struct arena texts;
    int rc = -1;
    arena_init(&texts, LINK_REPORT_BYTES);
    if (report_begin(&reader, &REPORT_TABLE_FRAME, m, e) == 0)
        while ((rc = report_next(&reader, &row, &texts)) == 1) {
            if (s && s->stack.id != row.stack) {
                link_put_stack(l, s);
                s = NULL;
            }
            s = s ? s : link_new_stack(row.stack);
            if (!s || !s->stack.frames || s->stack.n_frames == (size_t)STACK_CLASSES_DEPTH * 2)
                continue;
            struct model_frame *f = &s->stack.frames[s->stack.n_frames++];
            *f = (struct model_frame){.func = arena_strdup(&s->arena, row.func),
                                      .file = arena_strdup(&s->arena, row.file),
                                      .line = row.line > 0 && row.line <= INT32_MAX ? (int)row.line : 0};
        }
    if (s)
        link_put_stack(l, s);
    arena_fini(&texts);
    if (rc == 0)
        return true;
    err_set(e, ERR_FAILED, "its answer about stacks is not valid");
    return false;
}

/* The fleet, of what is known now. */
static void link_build(struct fleet_links *l, bool round) {
    size_t n = 0, at = 0;
    for (size_t i = 0; i < l->n_links; i++)
        n += l->links[i].n_ranks;
    struct fleet_report *reports = calloc(n + 1, sizeof *reports);
    struct fleet_node *nodes = calloc(l->n_links + 1, sizeof *nodes);
    if (reports && nodes) {
        link_drop_stacks(l);
        for (size_t i = 0; i < l->n_links; i++) {
            const struct fleet_link *k = &l->links[i];
            nodes[i] = (struct fleet_node){.host = k->host,
                                           .via = "local",
                                           .state = k->is_silent     ? "no answer"
                                                    : k->job.missing ? "ranks missing"
                                                                     : "ok",
                                           .job = k->job,
                                           .rtt_ms = k->rtt_ms,
                                           .cost_pct = k->n_ranks ? k->ranks[0].cost_pct : NAN,
                                           .seen_at = k->seen_at,
                                           .note = k->note[0] ? k->note : NULL};
            for (size_t r = 0; r < k->n_ranks; r++)
                reports[at++] = (struct fleet_report){.row = k->ranks[r],
                                                      .node = (uint32_t)i,
                                                      .stack = k->ranks[r].stack == REPORT_NO_INT
                                                                   ? NULL
                                                                   : link_find_stack(l, k->ranks[r].stack),
                                                      .is_silent = k->is_silent};
        }
        if (fleet_build(&l->fleet, nodes, l->n_links, reports, n) == 0)
            l->fleet.round += round;
        for (size_t i = 0; i < l->n_links; i++) {
            link_drop_texts(&l->links[i].job_texts);
            link_drop_texts(&l->links[i].ranks_texts);
        }
    }
    free(reports);
    free(nodes);
}

/* The next request, after an answer. True: the ranks of a round are complete. */
static bool link_go_on(struct fleet_links *l, struct fleet_link *k, enum link_request done) {
    switch (done) {
    case LINK_HELLO:
        link_ask_job(l, k);
        return false;
    case LINK_JOB:
        link_ask_ranks(k);
        return false;
    case LINK_RANKS:
    case LINK_STACKS:
        return !link_ask_stacks(l, k);
    case LINK_NOTHING:
        break;
    }
    return true;
}

/* Take the answer to the request that waits. True: the fleet has changed. */
static bool link_on_answer(struct fleet_links *l, struct fleet_link *k, const struct wire_message *m,
                           struct err *e) {
    enum link_request done = k->request;
    enum wire_error code;
    const char *why = wire_message_error(m, &code);
    bool ok = false;
    if (why && done == LINK_JOB && !k->has_job) {
        char clean[sizeof l->error.text];
        text_sanitize(clean, sizeof clean, why);
        err_set(&l->error, ERR_ATTACH, "%s", clean);
        link_stop(k, true);
        k->retry_at_ns = UINT64_MAX; /* another relay would find the same */
        return false;
    }
    if (why) {
        err_set(e, ERR_FAILED, "%.400s", why);
        link_fail(k, err_text(e));
        return false;
    }
    if (done == LINK_HELLO)
        ok = link_take_hello(k, m, e);
    else if (done == LINK_JOB)
        ok = link_take_job(k, m, e);
    else if (done == LINK_RANKS)
        ok = link_take_ranks(k, m, e);
    else if (done == LINK_STACKS)
        ok = link_take_stacks(l, m, e);
    if (!ok) {
        link_fail(k, err_text(e));
        return false;
    }
    k->request = LINK_NOTHING;
    k->seen_ns = clock_mono_ns();
    k->seen_at = clock_epoch_s();
    if (done == LINK_HELLO || done == LINK_STACKS)
        k->rtt_ms = (double)(k->seen_ns - k->sent_ns) / (double)CLOCK_NS_PER_MS;
    if (!link_go_on(l, k, done))
        return false;
    k->retry_ns = 0;
    k->note[0] = '\0';
    k->is_silent = false;
    link_build(l, true);
    if (k->found != k->job.found)
        link_ask_job(l, k);
    else
        link_ask_ranks(k);
    return true;
}

/* True: the fleet has changed. */
static bool link_on_message(struct fleet_links *l, struct fleet_link *k, const void *data, size_t len) {
    struct err e = {0};
    struct wire_message *m = wire_parse(data, len, &e);
    bool changed = false;
    if (!m)
        link_fail(k, err_text(&e));
    else if (wire_message_type(m) != WIRE_RESPONSE || k->request == LINK_NOTHING ||
             wire_message_id(m) != k->id)
        link_fail(k, "it sent what it was not asked for");
    else
        changed = link_on_answer(l, k, m, &e);
    wire_message_free(m);
    return changed;
}

static bool link_read(struct fleet_links *l, struct fleet_link *k) {
    static const char gone[] = "it has ended";
    char data[LINK_READ];
    const void *message;
    size_t len;
    struct err e = {0};
    bool changed = false;
    ssize_t n = recv(k->fd, data, sizeof data, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0 || pipe_reader_add(&k->in, data, (size_t)n) != 0) {
        char why[160];
        snprintf(why, sizeof why, "%s%s%s", n <= 0 ? gone : "out of memory",
                 k->in.banner[0] ? "; it printed: " : "", k->in.banner);
        link_fail(k, why);
        return false;
    }
    int rc = 0;
    while (k->fd >= 0 && (rc = pipe_reader_next(&k->in, &message, &len, &e)) == 1)
        changed |= link_on_message(l, k, message, len);
    if (k->fd >= 0 && rc < 0)
        link_fail(k, err_text(&e));
    return changed;
}

/* ---- time ---- */

/* Start it again if that is due; give up a request without an answer; notice its silence. */
static bool link_tick(struct fleet_links *l, struct fleet_link *k, uint64_t now) {
    struct err e;
    uint64_t limit = k->request == LINK_JOB ? LINK_FIND_NS : LINK_ANSWER_NS;
    if (k->fd >= 0 && k->request != LINK_NOTHING && now - k->sent_ns > limit)
        link_fail(k, "it did not answer in time");
    if (k->fd < 0 && now >= k->retry_at_ns && k->retry_at_ns != UINT64_MAX) {
        if (link_start(l, k, &e) != 0)
            link_fail(k, err_text(&e));
        else
            link_ask_hello(k);
    }
    if (k->fd >= 0 && k->out.len > 0 && !link_flush(k))
        link_fail(k, "it has ended");
    bool silent = k->seen_ns && now - k->seen_ns > LINK_SILENT_NS;
    if (silent == k->is_silent || !k->n_ranks)
        return false;
    k->is_silent = silent;
    if (silent && !k->note[0])
        snprintf(k->note, sizeof k->note, "its relay does not answer");
    return true;
}

/* ---- for the owner ---- */

struct fleet_links *fleet_links_open(const char *target, fleet_serve_fn serve, struct err *e) {
    struct fleet_links *l = calloc(1, sizeof *l);
    struct fleet_link *links = calloc(1, sizeof *links);
    if (jobs_is_target(target))
        target += strlen(JOBS_TARGET);
    if (!l || !links) {
        free(l);
        free(links);
        err_set(e, ERR_FAILED, "out of memory for the ranks of a job");
        return NULL;
    }
    l->serve = serve;
    l->links = links;
    l->n_links = 1;
    l->fleet.taken_at = NAN;
    links->fd = -1;
    links->rtt_ms = links->seen_at = NAN;
    report_clear(&REPORT_TABLE_JOB, &links->job);
    snprintf(l->target, sizeof l->target, "%.*s", (int)strcspn(target, "/"), target);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct itimerspec tick = {.it_interval.tv_nsec = LINK_TICK_MS * (long)CLOCK_NS_PER_MS,
                              .it_value.tv_nsec = LINK_TICK_MS * (long)CLOCK_NS_PER_MS};
    struct epoll_event event = {.events = EPOLLIN, .data.fd = l->timer};
    int rc = l->epoll < 0 || l->timer < 0 || timerfd_settime(l->timer, 0, &tick, NULL) != 0 ||
                     epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->timer, &event) != 0
                 ? err_set_errno(e, ERR_FAILED, errno, "cannot watch the ranks of a job")
                 : 0;
    if (rc == 0)
        rc = link_start(l, links, e);
    if (rc != 0) {
        fleet_links_close(l);
        return NULL;
    }
    link_ask_hello(links);
    return l;
}

void fleet_links_close(struct fleet_links *l) {
    if (!l)
        return;
    for (size_t i = 0; i < l->n_links; i++) {
        struct fleet_link *k = &l->links[i];
        link_stop(k, false);
        link_texts_fini(&k->job_texts);
        link_texts_fini(&k->ranks_texts);
        free(k->ranks);
    }
    fleet_fini(&l->fleet);
    for (size_t i = 0; i < l->n_stacks; i++)
        link_stack_free(l->stacks[i]);
    free(l->stacks);
    free(l->links);
    if (l->epoll >= 0)
        close(l->epoll);
    if (l->timer >= 0)
        close(l->timer);
    free(l);
}

int fleet_links_fd(const struct fleet_links *l) { return l->epoll; }

const struct fleet *fleet_links_get(const struct fleet_links *l) { return &l->fleet; }

const struct err *fleet_links_error(const struct fleet_links *l) { return &l->error; }

bool fleet_links_advance(struct fleet_links *l) {
    bool changed = false;
    uint64_t ticks, now = clock_mono_ns();
    bool tick = read(l->timer, &ticks, sizeof ticks) == sizeof ticks;
    for (size_t i = 0; i < l->n_links; i++) {
        if (l->links[i].fd >= 0)
            changed |= link_read(l, &l->links[i]);
        if (tick && link_tick(l, &l->links[i], now)) {
            link_build(l, false);
            changed = true;
        }
    }
    return changed;
}

int fleet_links_fill(struct fleet_links *l, unsigned rounds, double limit_s, bool (*stop)(void *arg),
                     void *arg, struct err *e) {
    uint64_t until = clock_mono_ns() + (uint64_t)(limit_s * (double)CLOCK_NS_PER_S), now;
    uint64_t wanted = l->fleet.round + rounds;
    while ((now = clock_mono_ns()) < until && l->fleet.round < wanted && l->error.code == ERR_OK &&
           !(stop && stop(arg))) {
        struct pollfd p = {.fd = l->epoll, .events = POLLIN};
        if (poll(&p, 1, LINK_TICK_MS) > 0)
            fleet_links_advance(l);
    }
    if (l->error.code != ERR_OK) {
        *e = l->error;
        return -1;
    }
    if (l->fleet.n_ranks > 0)
        return 0;
    return err_set(e, ERR_ATTACH, "the ranks could not be read: %s",
                   l->links[0].note[0] ? l->links[0].note : "the relay of this host did not answer in time");
}
