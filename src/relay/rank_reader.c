/* SPDX-License-Identifier: Apache-2.0 */
/* rank_reader: see rank_reader.h. */
#include "relay/rank_reader.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/strbuf.h"
#include "client/session/call.h"
#include "client/target/rings.h"
#include "client/target/target.h"
#include "pystack/pystack.h"
#include "store/ring/ring_reader.h"
#include "store/ring/ring_tables.h"
#include "wire/wire.h"

#define RANK_READER_BLOCKED_MS 2000U       /* a rank that takes longer blocks */
#define RANK_READER_CHILD_MS (600 * 1000U) /* then the child is replaced */
/* before a rank that blocked is tried again: each time the others wait for it */
#define RANK_READER_BLOCKED_NS (30 * CLOCK_NS_PER_S)
#define RANK_READER_COLLECTIVES 64 /* newest rows in which an open one is looked for */
#define RANK_READER_PACKET ((size_t)96 * 1024)
#define RANK_READER_RETRY_NS (5 * CLOCK_NS_PER_S) /* to find an interpreter, or tables */
#define RANK_READER_FRAMES 512                    /* kept of a stack, half of them at either end */

/* What the child sends of one rank; a message with the frames follows it. */
struct rank_packet {
    size_t source;
    bool is_gone;
    char state;
    double taken_at, cpu_pct, thread_cpu_pct;
    int64_t rss_bytes;
    int64_t agent, step;
    double step_at, step_ms, data_ms, gc_ms, comm_ms;
    char open_op[64]; /* a collective that goes on; "" none is known */
    char note[256];
};

/* ---- the child ---- */

/* What the child keeps of a rank. */
struct rank_memory {
    struct pystack *ps;
    int64_t tid; /* of its main thread, as it numbers it */
    uint64_t tried_ns;
    uint64_t cpu_ticks, cpu_ns; /* of the round before */
    struct err why;             /* there is no `ps` */
    struct call *call;          /* to its agent, which is asked instead */
    uint64_t called_ns;
    struct ring_reader *steps, *collectives;
    struct rings_place place;
    uint64_t searched_ns;
    bool has_place;
};

static bool rank_is_due(uint64_t *last_ns, uint64_t now) {
    if (*last_ns && now - *last_ns < RANK_READER_RETRY_NS)
        return false;
    *last_ns = now;
    return true;
}

/* The kernel's facts. False: it has ended. */
static bool rank_read_process(const struct rank_source *s, struct rank_memory *m, struct rank_packet *p) {
    struct procfs_stat st;
    uint64_t now = clock_mono_ns();
    if (procfs_is_gone(s->pid) || procfs_read_stat(s->pid, 0, &st) != 0 ||
        (s->start_ticks && st.start_ticks != s->start_ticks))
        return false;
    uint64_t ticks = st.utime_ticks + st.stime_ticks;
    p->state = st.state;
    p->rss_bytes = st.rss_pages * procfs_page_size();
    if (m->cpu_ns && now > m->cpu_ns && ticks >= m->cpu_ticks)
        p->cpu_pct = 100.0 * (double)(ticks - m->cpu_ticks) / (double)procfs_ticks_per_s() /
                     ((double)(now - m->cpu_ns) / (double)CLOCK_NS_PER_S);
    m->cpu_ticks = ticks;
    m->cpu_ns = now;
    return true;
}

static double rank_cell(const struct ring_cell *c) {
    return c->kind == RING_CELL_REAL ? c->f : c->kind == RING_CELL_INT ? (double)c->i : NAN;
}

/* Load columns of the newest chunk of a table; `column` gets their numbers there. False: it has no rows. */
static bool rank_load(struct ring_reader *ring, enum ring_table table, const int *wanted, size_t n,
                      size_t *column, struct ring_block *block) {
    const struct ring_info *info = ring_reader_info(ring);
    uint64_t columns = 0;
    size_t n_chunks;
    for (size_t i = 0; i < n; i++) {
        const char *name = RING_TABLES[table].columns[wanted[i]].name;
        for (column[i] = 0; column[i] < info->n_columns; column[i]++)
            if (strcmp(info->columns[column[i]].name, name) == 0)
                break;
        columns |= column[i] < info->n_columns ? 1ULL << column[i] : 0;
    }
    if (ring_reader_refresh(ring, NULL) != 0)
        return false;
    const struct ring_chunk *chunks = ring_reader_chunks(ring, &n_chunks);
    return n_chunks > 0 && ring_reader_load(ring, &chunks[n_chunks - 1], columns, block) == 1 &&
           block->rows > 0;
}

static struct ring_cell rank_get(const struct ring_reader *ring, const struct ring_block *block,
                                 size_t column, uint32_t row) {
    struct ring_cell cell = {.kind = RING_CELL_NULL};
    if (column < ring_reader_info(ring)->n_columns)
        ring_block_get(block, column, row, &cell);
    return cell;
}

/* The newest row of python.steps. */
static void rank_read_newest_step(struct ring_reader *steps, struct rank_packet *p) {
    static const int wanted[] = {RING_STEPS_TIMESTAMP, RING_STEPS_STEP,    RING_STEPS_DURATION_MS,
                                 RING_STEPS_DATA_MS,   RING_STEPS_COMM_MS, RING_STEPS_GC_MS};
    enum { WANTED = sizeof wanted / sizeof wanted[0] };
    double *const to[WANTED] = {&p->step_at, NULL, &p->step_ms, &p->data_ms, &p->comm_ms, &p->gc_ms};
    size_t column[WANTED];
    struct ring_block block = {.data = NULL};
    if (rank_load(steps, RING_STEPS, wanted, WANTED, column, &block))
        for (size_t i = 0; i < WANTED; i++) {
            struct ring_cell cell = rank_get(steps, &block, column[i], block.rows - 1);
            if (to[i])
                *to[i] = rank_cell(&cell);
            else if (cell.kind == RING_CELL_INT)
                p->step = cell.i;
        }
    ring_block_fini(&block);
}

/* A collective that goes on: of the newest rows one whose seq has no later row. */
static void rank_read_open_collective(struct ring_reader *ring, struct rank_packet *p) {
    static const int wanted[] = {RING_COLLECTIVES_SEQ, RING_COLLECTIVES_STATE, RING_COLLECTIVES_OP};
    size_t column[3], n_seen = 0;
    int64_t seen[RANK_READER_COLLECTIVES];
    struct ring_block block = {.data = NULL};
    if (!rank_load(ring, RING_COLLECTIVES, wanted, 3, column, &block)) {
        ring_block_fini(&block);
        return;
    }
    for (uint32_t row = block.rows; row > 0 && n_seen < RANK_READER_COLLECTIVES && !p->open_op[0]; row--) {
        struct ring_cell seq = rank_get(ring, &block, column[0], row - 1);
        struct ring_cell state = rank_get(ring, &block, column[1], row - 1);
        struct ring_cell op = rank_get(ring, &block, column[2], row - 1);
        bool is_later = false;
        for (size_t i = 0; i < n_seen; i++)
            is_later = is_later || seen[i] == seq.i;
        if (seq.kind != RING_CELL_INT || is_later)
            continue;
        seen[n_seen++] = seq.i;
        if (state.kind == RING_CELL_TEXT && state.len == 4 && memcmp(state.s, "open", 4) == 0 &&
            op.kind == RING_CELL_TEXT)
            snprintf(p->open_op, sizeof p->open_op, "%.*s", (int)op.len, op.s);
    }
    ring_block_fini(&block);
}

static struct ring_reader *rank_open_table(const struct rings_place *place, enum ring_table table) {
    char path[RING_DIR_PATH + RING_MAX_NAME + sizeof RING_DIR_SUFFIX];
    snprintf(path, sizeof path, "%s/%s%s", place->path, RING_TABLES[table].name, RING_DIR_SUFFIX);
    return ring_reader_open(path, place->owner, NULL);
}

/* Its tables, if its agent keeps any. */
static void rank_read_steps(const struct rank_source *s, struct rank_memory *m, struct rank_packet *p) {
    if (rank_is_due(&m->searched_ns, clock_mono_ns())) {
        struct rings_place place = {.pid = 0};
        bool found = rings_find(s->pid, &place) == 1;
        if (!found || !m->has_place || strcmp(place.path, m->place.path) != 0) {
            ring_reader_close(m->steps);
            ring_reader_close(m->collectives);
            m->steps = m->collectives = NULL;
        }
        m->has_place = found;
        m->place = place;
        if (found && !m->steps)
            m->steps = rank_open_table(&place, RING_STEPS);
        if (found && !m->collectives)
            m->collectives = rank_open_table(&place, RING_COLLECTIVES);
    }
    p->agent = m->has_place ? m->place.alive : s->agent;
    if (m->steps)
        rank_read_newest_step(m->steps, p);
    if (m->collectives)
        rank_read_open_collective(m->collectives, p);
}

/* The frames that are kept of a long stack: the innermost and the outermost. */
static void rank_shorten(struct model_thread *t) {
    size_t half = RANK_READER_FRAMES / 2;
    if (t->n_frames <= RANK_READER_FRAMES)
        return;
    memmove(t->frames + half, t->frames + t->n_frames - half, half * sizeof *t->frames);
    t->n_frames = RANK_READER_FRAMES;
}

/* Where its memory may not be read, as with Yama's ptrace_scope 1, its agent is asked. 0, or -1 with the
 * error: it has none, or that does not answer. */
static int rank_ask_agent(const struct rank_source *s, struct rank_memory *m, struct model_snapshot *out,
                          struct err *e) {
    const struct wire_threads only = {.tid = m->tid};
    if (!m->call && rank_is_due(&m->called_ns, clock_mono_ns())) {
        struct target_address addr = {.pid = s->pid};
        m->call = target_find_endpoint(&addr, e) == 1 ? call_open(&addr, e) : NULL;
    }
    if (!m->call)
        return -1;
    if (call_details(m->call, &only, out, e) == 0)
        return 0;
    model_snapshot_fini(out);
    call_close(m->call);
    m->call = NULL;
    return -1;
}

/* The stack of its main thread; 0, or -1 with the reason in the packet. */
static int rank_read_stack(const struct rank_source *s, struct rank_memory *m, struct model_snapshot *out,
                           struct rank_packet *p) {
    struct procfs_status st;
    struct err e;
    if (!m->ps && rank_is_due(&m->tried_ns, clock_mono_ns())) {
        m->ps = pystack_open(s->pid, &m->why);
        m->tid = procfs_read_status(s->pid, 0, &st) == 0 && st.ns_pid > 0 ? st.ns_pid : s->pid;
    }
    const struct pystack_locals_request only = {.tid = m->tid, .without_locals = true, .alone = true};
    int rc = m->ps ? pystack_snapshot_locals(m->ps, NULL, 0, &only, out, &e) : -1;
    if (!m->ps && rank_ask_agent(s, m, out, &e) == 0)
        rc = 0;
    if (rc != 0) {
        snprintf(p->note, sizeof p->note, "%.*s", (int)sizeof p->note - 1, err_text(m->ps ? &e : &m->why));
        if (m->ps)
            model_snapshot_fini(out);
        /* it may run another program now */
        pystack_close(m->ps);
        m->ps = NULL;
        return -1;
    }
    if (out->n_threads == 1) {
        p->thread_cpu_pct = out->threads[0].cpu_pct;
        rank_shorten(&out->threads[0]);
    }
    return 0;
}

/* True if it could be sent. */
static bool rank_send(int fd, const struct rank_packet *p, const struct strbuf *message) {
    struct iovec parts[] = {{.iov_base = (void *)p, .iov_len = sizeof *p},
                            {.iov_base = message->data, .iov_len = message->failed ? 0 : message->len}};
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(fd, &packet, MSG_NOSIGNAL) >= (ssize_t)sizeof *p;
}

static bool rank_read(const struct rank_source *s, size_t number, struct rank_memory *m, int fd) {
    struct rank_packet p = {.source = number, .state = '?', .rss_bytes = REPORT_NO_INT};
    struct model_snapshot snapshot;
    struct strbuf message;
    strbuf_init(&message, 0);
    p.taken_at = clock_epoch_s();
    p.cpu_pct = p.thread_cpu_pct = p.step_at = p.step_ms = p.data_ms = p.gc_ms = p.comm_ms = NAN;
    p.step = REPORT_NO_INT;
    p.is_gone = !rank_read_process(s, m, &p);
    if (!p.is_gone && rank_read_stack(s, m, &snapshot, &p) == 0) {
        if (wire_put_threads_notify_most(&message, &snapshot, RANK_READER_PACKET) == 0)
            wire_put_dropped(&message, 0);
        model_snapshot_fini(&snapshot);
    }
    if (!p.is_gone)
        rank_read_steps(s, m, &p);
    bool sent = rank_send(fd, &p, &message);
    strbuf_fini(&message);
    return sent;
}

/* A round is a number: that of the rank with which it begins. */
static void rank_reader_work(void *arg, int fd) {
    const struct rank_reader *r = arg;
    struct rank_memory *memory = calloc(r->n + 1, sizeof *memory);
    size_t at;
    while (memory && recv(fd, &at, sizeof at, 0) == sizeof at)
        for (size_t i = at; i < r->n; i++)
            if (!r->list[i].is_blocked && !rank_read(&r->list[i], i, &memory[i], fd))
                return;
}

/* ---- the parent ---- */

void rank_reader_init(struct rank_reader *r, struct rank_source *list, size_t n) {
    *r = (struct rank_reader){.list = list, .n = n};
}

static void rank_reader_end_child(struct rank_reader *r, pid_t about) {
    if (r->guard.child > 0)
        guard_stop(&r->guard, about);
    r->guard = (struct guard){.fd = -1};
}

void rank_reader_stop(struct rank_reader *r) {
    rank_reader_end_child(r, 0);
    model_snapshot_fini(&r->snapshot);
    r->is_reading = false;
}

int rank_reader_fd(const struct rank_reader *r) { return r->guard.child > 0 ? r->guard.fd : -1; }

/* Let a child read from the rank `next` on. 0, or -1 with the error. */
static int rank_reader_ask(struct rank_reader *r, struct err *e) {
    uint64_t now = clock_mono_ns();
    if (r->guard.child > 0 && now - r->started_ns > RANK_READER_CHILD_MS * CLOCK_NS_PER_MS)
        rank_reader_end_child(r, 0);
    if (r->guard.child <= 0) {
        if (guard_start(&r->guard, rank_reader_work, r, 0, RANK_READER_CHILD_MS + RANK_READER_BLOCKED_MS) !=
            0)
            return err_set_errno(e, ERR_FAILED, errno, "cannot start the process that reads the ranks");
        r->started_ns = now;
    }
    r->asked_ns = now;
    if (send(r->guard.fd, &r->next, sizeof r->next, MSG_NOSIGNAL) == sizeof r->next)
        return 0;
    rank_reader_end_child(r, 0);
    return err_set(e, ERR_FAILED, "the process that reads the ranks has ended");
}

int rank_reader_begin(struct rank_reader *r, struct err *e) {
    r->next = 0;
    r->is_reading = true;
    for (size_t i = 0; i < r->n; i++)
        if (r->list[i].is_blocked && !guard_is_blocked(r->list[i].pid) &&
            clock_mono_ns() - r->list[i].blocked_ns > RANK_READER_BLOCKED_NS) {
            r->list[i].is_blocked = false;
            rank_reader_end_child(r, 0); /* it would leave this one out */
        }
    if (rank_reader_ask(r, e) == 0)
        return 0;
    r->is_reading = false;
    return -1;
}

static void rank_reader_fill(const struct rank_reader *r, size_t number, struct rank_reading *out) {
    *out = (struct rank_reading){.source = number};
    report_clear(&REPORT_TABLE_RANK, &out->report);
    out->report.rank = r->list[number].rank;
    out->report.pid = r->list[number].pid;
    if (r->list[number].local_rank >= 0)
        out->report.local_rank = r->list[number].local_rank;
    out->report.taken_at = clock_epoch_s();
}

static const char *rank_reader_letter(char state) {
    static const char *const letters[] = {"R", "S", "D", "T", "t", "Z", "X", "I", NULL};
    size_t i = 0;
    while (letters[i] && letters[i][0] != state)
        i++;
    return letters[i];
}

/* One that is not read: what the kernel knows of it without reading its memory. */
static void rank_reader_fill_blocked(struct rank_reader *r, struct rank_reading *out) {
    const struct rank_source *s = &r->list[r->next];
    struct procfs_stat st;
    rank_reader_fill(r, r->next++, out);
    out->is_gone =
        procfs_read_stat(s->pid, 0, &st) != 0 || (s->start_ticks && st.start_ticks != s->start_ticks);
    if (!out->is_gone) {
        out->report.state = rank_reader_letter(st.state);
        out->report.rss_bytes = st.rss_pages * procfs_page_size();
    }
    out->report.note = r->note;
}

/* The frames, from the message behind the packet. */
static void rank_reader_get_frames(struct rank_reader *r, const char *data, size_t len,
                                   struct rank_reading *out) {
    struct err e;
    struct wire_message *m = wire_parse(data, len, &e);
    model_snapshot_fini(&r->snapshot);
    if (m && wire_get_snapshot(m, &r->snapshot, &e) == 0 && r->snapshot.n_threads == 1) {
        const struct model_thread *t = &r->snapshot.threads[0];
        out->frames = t->n_frames ? t->frames : NULL;
        out->n_frames = t->n_frames;
        out->report.gc = t->gc == MODEL_UNKNOWN ? REPORT_NO_INT : t->gc;
        if (model_wait_is_known(&t->wait)) {
            out->report.wait_kind = model_wait_kind_name(t->wait.kind);
            out->report.wait_what = t->wait.what;
        }
    }
    wire_message_free(m);
}

/* A main thread that sleeps waits for the collective that goes on, if nothing better is known: below
 * `backward` no frame of Python names it. */
static void rank_reader_put_collective(struct rank_reader *r, const struct rank_packet *p,
                                       struct rank_reading *out) {
    const char *kind = out->report.wait_kind;
    bool is_open = p->open_op[0] && memchr(p->open_op, '\0', sizeof p->open_op);
    if (!is_open || p->state != 'S' ||
        (kind && strcmp(kind, model_wait_kind_name(MODEL_WAIT_NATIVE_LOCK)) != 0))
        return;
    snprintf(r->what, sizeof r->what, "%s of torch.distributed", p->open_op);
    out->report.wait_kind = model_wait_kind_name(MODEL_WAIT_COLLECTIVE);
    out->report.wait_what = r->what;
}

static int rank_reader_receive(struct rank_reader *r, struct rank_reading *out) {
    static _Alignas(struct rank_packet) char data[sizeof(struct rank_packet) + 2 * RANK_READER_PACKET];
    struct rank_packet p;
    ssize_t n = recv(r->guard.fd, data, sizeof data, MSG_DONTWAIT);
    if (n < (ssize_t)sizeof p)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    memcpy(&p, data, sizeof p);
    if (p.source >= r->n)
        return -1;
    p.note[sizeof p.note - 1] = '\0';
    snprintf(r->note, sizeof r->note, "%s", p.note);
    rank_reader_fill(r, p.source, out);
    struct report_rank *to = &out->report;
    out->is_gone = p.is_gone;
    to->taken_at = p.taken_at;
    to->state = rank_reader_letter(p.state);
    to->cpu_pct = p.cpu_pct;
    to->thread_cpu_pct = p.thread_cpu_pct;
    to->rss_bytes = p.rss_bytes;
    to->agent = p.agent;
    to->step = p.step;
    to->step_at = p.step_at;
    to->step_ms = p.step_ms;
    to->data_ms = p.data_ms;
    to->gc_ms = p.gc_ms;
    to->comm_ms = p.comm_ms;
    to->note = r->note[0] ? r->note : NULL;
    if ((size_t)n > sizeof p)
        rank_reader_get_frames(r, data + sizeof p, (size_t)n - sizeof p, out);
    rank_reader_put_collective(r, &p, out);
    r->next = p.source + 1;
    r->asked_ns = clock_mono_ns();
    return 1;
}

/* The rank that blocks the child, or has crashed it: known by what the kernel says. */
static void rank_reader_give_up(struct rank_reader *r, bool blocked, struct rank_reading *out) {
    struct rank_source *s = &r->list[r->next];
    struct err why;
    rank_reader_end_child(r, s->pid);
    s->is_blocked = true;
    s->blocked_ns = clock_mono_ns();
    rank_reader_fill_blocked(r, out);
    if (blocked)
        guard_explain_blocked(s->pid, NULL, RANK_READER_BLOCKED_MS, &why);
    else
        err_set(&why, ERR_ATTACH, "process %d: the process that read it has crashed", (int)s->pid);
    snprintf(r->note, sizeof r->note, "%.*s", (int)sizeof r->note - 1, why.text);
    r->asked_ns = clock_mono_ns();
}

int rank_reader_take(struct rank_reader *r, struct rank_reading *out) {
    if (!r->is_reading)
        return -1;
    if (r->next < r->n && r->list[r->next].is_blocked) {
        rank_reader_fill_blocked(r, out);
        snprintf(r->note, sizeof r->note, "process %d did not answer: it is tried again after 30 s",
                 (int)out->report.pid);
        return 1;
    }
    if (r->next == r->n) {
        r->is_reading = false;
        return -1;
    }
    if (r->guard.child <= 0 && rank_reader_ask(r, NULL) != 0) {
        r->is_reading = false;
        return -1;
    }
    int rc = rank_reader_receive(r, out);
    if (rc == 0 && clock_mono_ns() - r->asked_ns < RANK_READER_BLOCKED_MS * CLOCK_NS_PER_MS)
        return 0;
    if (rc <= 0)
        rank_reader_give_up(r, rc == 0, out);
    return 1;
}
