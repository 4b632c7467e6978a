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
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
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
#define RANK_READER_STEPS 512 /* rows of a table that are read at once, the newest */
#define RANK_READER_MEETINGS 4096
#define RANK_READER_TIMES 256                     /* rows in a packet */
#define RANK_READER_TIMES_MAX 65536               /* rows of a reading */
#define RANK_READER_RETRY_NS (5 * CLOCK_NS_PER_S) /* to find an interpreter, or tables */
#define RANK_READER_FRAMES 512                    /* kept of a stack, half of them at either end */

/* The beginning of what the child sends. */
struct rank_head {
    size_t source;
    size_t n_times; /* so many struct rank_time follow, and nothing else; 0: it is a struct rank_packet */
};

/* What the child sends of one rank, after its times; a message with the frames follows it. */
struct rank_packet {
    struct rank_head head;
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
    uint64_t next_step, next_collective; /* rows that were not sent yet */
    struct rank_packet newest;           /* the step in it is the newest */
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

/* Rows that are on their way to the parent. */
struct rank_times {
    int fd;
    struct rank_head head;
    struct rank_time rows[RANK_READER_TIMES];
};

static void rank_send_times(struct rank_times *t) {
    struct iovec parts[] = {{.iov_base = &t->head, .iov_len = sizeof t->head},
                            {.iov_base = t->rows, .iov_len = t->head.n_times * sizeof t->rows[0]}};
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 2};
    if (t->head.n_times)
        sendmsg(t->fd, &packet, MSG_NOSIGNAL);
    t->head.n_times = 0;
}

static void rank_add_time(struct rank_times *t, const struct rank_time *row) {
    t->rows[t->head.n_times++] = *row;
    if (t->head.n_times == RANK_READER_TIMES)
        rank_send_times(t);
}

/* A row of a table that is read. */
struct rank_row {
    const struct ring_reader *ring;
    const struct ring_block *block;
    const size_t *column;
    uint32_t row;
};

static struct ring_cell rank_get(const struct rank_row *r, size_t which) {
    struct ring_cell cell = {.kind = RING_CELL_NULL};
    if (r->column[which] < ring_reader_info(r->ring)->n_columns)
        ring_block_get(r->block, r->column[which], r->row, &cell);
    return cell;
}

static double rank_get_real(const struct rank_row *r, size_t which) {
    struct ring_cell cell = rank_get(r, which);
    return rank_cell(&cell);
}

static bool rank_is_text(const struct ring_cell *c, const char *text) {
    return c->kind == RING_CELL_TEXT && c->len == strlen(text) && memcmp(c->s, text, c->len) == 0;
}

#define RANK_COLUMNS 16

/* A table of a rank, and what is done with its rows. */
struct rank_table {
    enum ring_table table;
    int columns[RANK_COLUMNS];
    size_t n;
    uint64_t most; /* rows at once */
    /* True: `out` is to be sent. */
    bool (*take)(const struct rank_row *r, struct rank_time *out);
    /* `r` is the newest row. */
    void (*finish)(struct rank_row *r, struct rank_memory *m);
};

enum {
    RANK_STEP_AT,
    RANK_STEP_STEP,
    RANK_STEP_MS,
    RANK_STEP_DATA,
    RANK_STEP_FORWARD,
    RANK_STEP_BACKWARD,
    RANK_STEP_OPTIMIZER,
    RANK_STEP_GC,
    RANK_STEP_OTHER,
    RANK_STEP_COMM,
};

static bool rank_take_step(const struct rank_row *r, struct rank_time *out) {
    struct ring_cell step = rank_get(r, RANK_STEP_STEP);
    out->step = step.i;
    out->at = rank_get_real(r, RANK_STEP_AT);
    out->ms = (float)rank_get_real(r, RANK_STEP_MS);
    out->data_ms = (float)rank_get_real(r, RANK_STEP_DATA);
    out->forward_ms = (float)rank_get_real(r, RANK_STEP_FORWARD);
    out->backward_ms = (float)rank_get_real(r, RANK_STEP_BACKWARD);
    out->optimizer_ms = (float)rank_get_real(r, RANK_STEP_OPTIMIZER);
    out->gc_ms = (float)rank_get_real(r, RANK_STEP_GC);
    out->other_ms = (float)rank_get_real(r, RANK_STEP_OTHER);
    return step.kind == RING_CELL_INT;
}

static void rank_finish_steps(struct rank_row *r, struct rank_memory *m) {
    struct ring_cell step = rank_get(r, RANK_STEP_STEP);
    m->newest.step = step.kind == RING_CELL_INT ? step.i : REPORT_NO_INT;
    m->newest.step_at = rank_get_real(r, RANK_STEP_AT);
    m->newest.step_ms = rank_get_real(r, RANK_STEP_MS);
    m->newest.data_ms = rank_get_real(r, RANK_STEP_DATA);
    m->newest.gc_ms = rank_get_real(r, RANK_STEP_GC);
    m->newest.comm_ms = rank_get_real(r, RANK_STEP_COMM);
}

static const struct rank_table rank_steps = {
    .table = RING_STEPS,
    .columns = {[RANK_STEP_AT] = RING_STEPS_TIMESTAMP,
                [RANK_STEP_STEP] = RING_STEPS_STEP,
                [RANK_STEP_MS] = RING_STEPS_DURATION_MS,
                [RANK_STEP_DATA] = RING_STEPS_DATA_MS,
                [RANK_STEP_FORWARD] = RING_STEPS_FORWARD_MS,
                [RANK_STEP_BACKWARD] = RING_STEPS_BACKWARD_MS,
                [RANK_STEP_OPTIMIZER] = RING_STEPS_OPTIMIZER_MS,
                [RANK_STEP_GC] = RING_STEPS_GC_MS,
                [RANK_STEP_OTHER] = RING_STEPS_OTHER_MS,
                [RANK_STEP_COMM] = RING_STEPS_COMM_MS},
    .n = RANK_STEP_COMM + 1,
    .most = RANK_READER_STEPS,
    .take = rank_take_step,
    .finish = rank_finish_steps,
};

enum {
    RANK_MEETING_AT,
    RANK_MEETING_SEQ,
    RANK_MEETING_STATE,
    RANK_MEETING_OP,
    RANK_MEETING_MS,
    RANK_MEETING_P2P,
};

static bool rank_take_meeting(const struct rank_row *r, struct rank_time *out) {
    struct ring_cell state = rank_get(r, RANK_MEETING_STATE), op = rank_get(r, RANK_MEETING_OP);
    struct ring_cell p2p = rank_get(r, RANK_MEETING_P2P);
    out->at = rank_get_real(r, RANK_MEETING_AT);
    out->ms = (float)rank_get_real(r, RANK_MEETING_MS);
    if (op.kind == RING_CELL_TEXT)
        snprintf(out->op, sizeof out->op, "%.*s", (int)op.len, op.s);
    return rank_is_text(&state, "done") && out->op[0] && isfinite(out->ms) &&
           !(p2p.kind == RING_CELL_INT && p2p.i);
}

/* A collective that goes on: of the newest rows one whose seq has no later row. */
static void rank_finish_meetings(struct rank_row *r, struct rank_memory *m) {
    int64_t seen[RANK_READER_COLLECTIVES];
    size_t n_seen = 0;
    m->newest.open_op[0] = '\0';
    for (uint32_t row = r->row + 1; row > 0 && n_seen < RANK_READER_COLLECTIVES && !m->newest.open_op[0];
         row--) {
        r->row = row - 1;
        struct ring_cell seq = rank_get(r, RANK_MEETING_SEQ), state = rank_get(r, RANK_MEETING_STATE);
        struct ring_cell op = rank_get(r, RANK_MEETING_OP);
        bool is_later = false;
        for (size_t i = 0; i < n_seen; i++)
            is_later = is_later || seen[i] == seq.i;
        if (seq.kind != RING_CELL_INT || is_later)
            continue;
        seen[n_seen++] = seq.i;
        if (rank_is_text(&state, "open") && op.kind == RING_CELL_TEXT)
            snprintf(m->newest.open_op, sizeof m->newest.open_op, "%.*s", (int)op.len, op.s);
    }
}

static const struct rank_table rank_meetings = {
    .table = RING_COLLECTIVES,
    .columns = {[RANK_MEETING_AT] = RING_COLLECTIVES_TIMESTAMP,
                [RANK_MEETING_SEQ] = RING_COLLECTIVES_SEQ,
                [RANK_MEETING_STATE] = RING_COLLECTIVES_STATE,
                [RANK_MEETING_OP] = RING_COLLECTIVES_OP,
                [RANK_MEETING_MS] = RING_COLLECTIVES_DURATION_MS,
                [RANK_MEETING_P2P] = RING_COLLECTIVES_P2P},
    .n = RANK_MEETING_P2P + 1,
    .most = RANK_READER_MEETINGS,
    .take = rank_take_meeting,
    .finish = rank_finish_meetings,
};

/* Send the rows from `*next` on, and finish with the newest one. */
static void rank_read_table(struct ring_reader *ring, const struct rank_table *t, uint64_t *next,
                            struct rank_memory *m, struct rank_times *to) {
    const struct ring_info *info = ring_reader_info(ring);
    size_t column[RANK_COLUMNS], n_chunks;
    uint64_t columns = 0, oldest, end;
    for (size_t i = 0; i < t->n; i++) {
        const char *name = RING_TABLES[t->table].columns[t->columns[i]].name;
        for (column[i] = 0; column[i] < info->n_columns; column[i]++)
            if (strcmp(info->columns[column[i]].name, name) == 0)
                break;
        columns |= column[i] < info->n_columns ? 1ULL << column[i] : 0;
    }
    if (ring_reader_refresh(ring, NULL) != 0)
        return;
    ring_reader_range(ring, &oldest, &end);
    uint64_t from = *next <= end ? *next : 0;
    from = end > t->most && end - t->most > from ? end - t->most : from;
    const struct ring_chunk *chunks = ring_reader_chunks(ring, &n_chunks);
    for (size_t i = 0; i < n_chunks; i++) {
        struct ring_block block = {.data = NULL};
        bool is_newest = i + 1 == n_chunks;
        if ((chunks[i].first_seq + chunks[i].rows <= from && !is_newest) ||
            ring_reader_load(ring, &chunks[i], columns, &block) != 1) {
            ring_block_fini(&block);
            continue;
        }
        struct rank_row r = {.ring = ring, .block = &block, .column = column};
        for (r.row = 0; r.row < block.rows; r.row++) {
            struct rank_time time = {.seq = (int64_t)(block.first_seq + r.row)};
            if (block.first_seq + r.row >= from && t->take(&r, &time))
                rank_add_time(to, &time);
        }
        if (is_newest && block.rows > 0) {
            r.row = block.rows - 1;
            t->finish(&r, m);
        }
        ring_block_fini(&block);
    }
    rank_send_times(to);
    *next = end;
}

/* Open the table that is in its place now: an agent that was loaded again has made another one of that name.
 * True: it is another one, or has gone. */
static bool rank_open_table(const struct rank_memory *m, enum ring_table table, struct ring_reader **ring,
                            uint64_t *next) {
    char path[RING_DIR_PATH + RING_MAX_NAME + sizeof RING_DIR_SUFFIX];
    snprintf(path, sizeof path, "%s/%s%s", m->place.path, RING_TABLES[table].name, RING_DIR_SUFFIX);
    struct ring_reader *now = m->has_place ? ring_reader_open(path, m->place.owner, NULL) : NULL;
    if (now && *ring ? ring_reader_info(now)->created_at == ring_reader_info(*ring)->created_at
                     : now == *ring) {
        ring_reader_close(now);
        return false;
    }
    ring_reader_close(*ring);
    *ring = now;
    *next = 0;
    return true;
}

/* Nothing is known of its steps. */
static void rank_clear_steps(struct rank_packet *p) {
    p->step = REPORT_NO_INT;
    p->step_at = p->step_ms = p->data_ms = p->gc_ms = p->comm_ms = NAN;
    p->open_op[0] = '\0';
}

/* Its tables, if its agent keeps any. */
static void rank_read_steps(const struct rank_source *s, struct rank_memory *m, struct rank_packet *p,
                            int fd) {
    static struct rank_times times;
    if (rank_is_due(&m->searched_ns, clock_mono_ns())) {
        m->place = (struct rings_place){.pid = 0};
        m->has_place = rings_find(s->pid, &m->place) == 1;
        bool is_other = rank_open_table(m, RING_STEPS, &m->steps, &m->next_step);
        if (rank_open_table(m, RING_COLLECTIVES, &m->collectives, &m->next_collective) || is_other)
            rank_clear_steps(&m->newest);
    }
    p->agent = m->has_place ? m->place.alive : s->agent;
    times.fd = fd;
    times.head = p->head;
    if (m->steps)
        rank_read_table(m->steps, &rank_steps, &m->next_step, m, &times);
    if (m->collectives)
        rank_read_table(m->collectives, &rank_meetings, &m->next_collective, m, &times);
    if (!m->steps && !m->collectives)
        return;
    p->step = m->newest.step;
    p->step_at = m->newest.step_at;
    p->step_ms = m->newest.step_ms;
    p->data_ms = m->newest.data_ms;
    p->gc_ms = m->newest.gc_ms;
    p->comm_ms = m->newest.comm_ms;
    memcpy(p->open_op, m->newest.open_op, sizeof p->open_op);
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
    struct rank_packet p = {.head.source = number, .state = '?', .rss_bytes = REPORT_NO_INT};
    struct model_snapshot snapshot;
    struct strbuf message;
    strbuf_init(&message, 0);
    p.taken_at = clock_epoch_s();
    p.cpu_pct = p.thread_cpu_pct = NAN;
    rank_clear_steps(&p);
    p.is_gone = !rank_read_process(s, m, &p);
    if (!p.is_gone && rank_read_stack(s, m, &snapshot, &p) == 0) {
        if (wire_put_threads_notify_most(&message, &snapshot, RANK_READER_PACKET) == 0)
            wire_put_dropped(&message, 0);
        model_snapshot_fini(&snapshot);
    }
    if (!p.is_gone)
        rank_read_steps(s, m, &p, fd);
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
    free(r->times);
    r->times = NULL;
    r->n_times = r->cap_times = 0;
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

/* One that is not read: what the kernel knows of it without reading its memory. */
static void rank_reader_fill_blocked(struct rank_reader *r, struct rank_reading *out) {
    const struct rank_source *s = &r->list[r->next];
    struct procfs_stat st;
    rank_reader_fill(r, r->next++, out);
    out->is_gone =
        procfs_read_stat(s->pid, 0, &st) != 0 || (s->start_ticks && st.start_ticks != s->start_ticks);
    if (!out->is_gone) {
        out->report.state = report_letter(st.state);
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

/* Keep rows that came before the rank itself. 0, or -1: they are not valid. */
static int rank_reader_keep_times(struct rank_reader *r, const struct rank_head *head, const char *data,
                                  size_t len) {
    if (head->n_times > RANK_READER_TIMES || len != head->n_times * sizeof *r->times ||
        head->source < r->next)
        return -1;
    if (r->has_given_times)
        r->n_times = 0;
    r->has_given_times = false;
    if (r->n_times + head->n_times > RANK_READER_TIMES_MAX ||
        grow_array(&r->times, sizeof *r->times, r->n_times + head->n_times, &r->cap_times) != 0)
        return 0;
    memcpy(r->times + r->n_times, data, len);
    for (size_t i = 0; i < head->n_times; i++) {
        struct rank_time *t = &r->times[r->n_times++];
        t->op[sizeof t->op - 1] = '\0';
    }
    return 0;
}

static int rank_reader_receive(struct rank_reader *r, struct rank_reading *out) {
    static _Alignas(struct rank_packet) char data[sizeof(struct rank_packet) + 2 * RANK_READER_PACKET];
    struct rank_packet p;
    struct rank_head head;
    ssize_t n;
    for (;;) {
        n = recv(r->guard.fd, data, sizeof data, MSG_DONTWAIT);
        if (n < (ssize_t)sizeof head)
            return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
        memcpy(&head, data, sizeof head);
        if (!head.n_times)
            break;
        if (rank_reader_keep_times(r, &head, data + sizeof head, (size_t)n - sizeof head) != 0)
            return -1;
        r->asked_ns = clock_mono_ns();
    }
    if (n < (ssize_t)sizeof p)
        return -1;
    memcpy(&p, data, sizeof p);
    if (head.source >= r->n)
        return -1;
    p.note[sizeof p.note - 1] = '\0';
    snprintf(r->note, sizeof r->note, "%s", p.note);
    rank_reader_fill(r, head.source, out);
    struct report_rank *to = &out->report;
    out->is_gone = p.is_gone;
    to->taken_at = p.taken_at;
    to->state = report_letter(p.state);
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
    if (!r->has_given_times) {
        out->times = r->times;
        out->n_times = r->n_times;
    }
    r->has_given_times = true;
    r->next = head.source + 1;
    r->asked_ns = clock_mono_ns();
    return 1;
}

/* The rank that blocks the child, or has crashed it: known by what the kernel says. */
static void rank_reader_give_up(struct rank_reader *r, bool blocked, struct rank_reading *out) {
    struct rank_source *s = &r->list[r->next];
    struct err why;
    rank_reader_end_child(r, s->pid);
    r->has_given_times = true;
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

uint64_t rank_reader_cpu_ns(const struct rank_reader *r) {
    struct timespec child;
    clockid_t clock;
    uint64_t cpu = clock_process_cpu_ns();
    if (r->guard.child > 0 && clock_getcpuclockid(r->guard.child, &clock) == 0 &&
        clock_gettime(clock, &child) == 0)
        cpu += (uint64_t)child.tv_sec * CLOCK_NS_PER_S + (uint64_t)child.tv_nsec;
    return cpu;
}
