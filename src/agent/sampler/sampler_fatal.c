/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler_fatal: the record of a fatal signal (fatal.h): rows with the stacks of every thread,
 * and a text beside the tables.
 *
 * The thread that received it waits, and may have any lock of the process, including malloc's.
 * So the parts that need no lock are written first: a row and the head of the text. Then the
 * stacks; if that does not proceed, the process ends without them.
 */
#include "agent/sampler/sampler_internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/debug/fatal.h"
#include "base/clock.h"
#include "base/model_text.h"
#include "base/procfs.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "pystack/native_label.h"
#include "pystack/native_merge.h"
#include "store/ring/ring_dir.h"

#define FATAL_TEXT_MAX ((size_t)1024 * 1024)
#define FATAL_EVENT_MAX 1500 /* bytes of a stack in the table of events */
#define FATAL_NAME_MAX 128
/* running threads usually copy their frames within this time */
#define FATAL_ANSWERS_NS (5 * CLOCK_NS_PER_MS)
#define FATAL_MAPS_NS (20 * CLOCK_NS_PER_MS)

struct fatal_work {
    struct sampler *s;
    struct fatal_record *record;
    char name[FATAL_NAME_MAX]; /* of the thread that received it */
    char what[256]; /* "SIGSEGV (nothing is mapped there, address 0x0) in thread MainThread (12)" */
    char path[RING_DIR_PATH + sizeof RING_DIR_FATAL];
    int fd; /* -1 if there is no text */
};

/* A thread may have just started, or been renamed: its name is read now, so that the one row of
 * this crash has it. */
static void fatal_name_thread(struct fatal_work *w) {
    const struct thread_sampler *p = &w->s->profile;
    char raw[FATAL_NAME_MAX] = "", now[FATAL_NAME_MAX] = "";
    if (procfs_read_comm(0, (pid_t)w->record->tid, raw, sizeof raw) != 0)
        raw[0] = '\0';
    if (w->record->tid == getpid()) /* Python's name for it if no other is known */
        snprintf(raw, sizeof raw, "MainThread");
    for (size_t i = 0; i < p->n_threads; i++)
        if (p->threads[i].py.tid == w->record->tid && p->threads[i].name)
            snprintf(raw, sizeof raw, "%s", p->threads[i].name);
    if (w->s->ps && pystack_read_name(w->s->ps, w->record->ident, now, sizeof now) == 0 && now[0])
        memcpy(raw, now, sizeof raw);
    text_sanitize(w->name, sizeof w->name, raw[0] ? raw : "?");
}

static void fatal_say_what(struct fatal_work *w) {
    const struct fatal_record *r = w->record;
    const char *reason = fatal_reason(r->signal, r->code);
    char how[128] = "";
    if (r->code > 0)
        snprintf(how, sizeof how, " (%s%saddress 0x%" PRIx64 ")", reason ? reason : "", reason ? ", " : "",
                 r->address);
    else if (r->sender == getpid())
        snprintf(how, sizeof how, " (raised by the process itself)");
    else if (r->sender)
        snprintf(how, sizeof how, " (sent by process %" PRId64 ")", r->sender);
    snprintf(w->what, sizeof w->what, "%s%s in thread %s (%" PRId64 ")", fatal_name(r->signal), how, w->name,
             r->tid);
}

static void fatal_write(const struct fatal_work *w, const char *text, size_t n) {
    while (w->fd >= 0 && n > 0) {
        ssize_t done = write(w->fd, text, n);
        if (done <= 0)
            return;
        text += done;
        n -= (size_t)done;
    }
}

/* The head of the text, with the registers: uses no allocated memory. */
static void fatal_write_head(struct fatal_work *w) {
    static const char *const names[NATIVE_REGS] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
                                                   "rbp", "rsp", "r8",  "r9",  "r10", "r11",
                                                   "r12", "r13", "r14", "r15", "rip"};
    const struct fatal_record *r = w->record;
    struct timespec now = {0};
    char line[1024];
    clock_gettime(CLOCK_REALTIME, &now);
    int n = snprintf(line, sizeof line,
                     "%s\nprocess %d, signal %d, code %d, at %lld.%03ld (seconds since 1970)\n", w->what,
                     (int)getpid(), r->signal, r->code, (long long)now.tv_sec, now.tv_nsec / 1000000);
    fatal_write(w, line, (size_t)n);
    for (size_t i = 0; i < NATIVE_REGS && r->native.known; i++) {
        n = snprintf(line, sizeof line, "%s 0x%" PRIx64 "%s", names[i], r->native.regs[i],
                     i % 6 == 5 || i + 1 == NATIVE_REGS ? "\n" : "  ");
        fatal_write(w, line, (size_t)n);
    }
}

static void fatal_open(struct fatal_work *w) {
    const char *dir = w->s->always.record.set ? ring_set_path(w->s->always.record.set) : "";
    w->fd = -1;
    if (!dir[0])
        return;
    snprintf(w->path, sizeof w->path, "%s/%s", dir, RING_DIR_FATAL);
    unlink(w->path);
    w->fd = open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

static void fatal_report(struct fatal_work *w) {
    char text[sizeof w->what + sizeof w->path + 32];
    snprintf(text, sizeof text, "%s%s%s", w->what, w->fd >= 0 ? "; stacks in " : "",
             w->fd >= 0 ? w->path : "");
    record_event(&w->s->always.record, RING_EVENT_FATAL, -1, -1, text);
}

/* ---- stacks ---- */

/* The objects needed to make a native stack. Any of them may be NULL without memory. */
struct fatal_native {
    struct native *native;
    struct native_labels *labels;
    struct model_frame frames[NATIVE_MAX_FRAMES];
    enum native_role roles[NATIVE_MAX_FRAMES];
};

/* The native frames of the thread that received the signal start below the handler: they are
 * read from the registers and the stack, which does not change. */
static void fatal_put_own(struct fatal_work *w, struct fatal_native *f, struct model_thread *t,
                          struct arena *arena) {
    struct native_copy *copy = &w->record->native;
    size_t n = 0, python = 0;
    while (python < t->n_frames && t->frames[python].kind == MODEL_FRAME_NATIVE)
        python++;
    if (f->native && copy->known) {
        native_copy_stack(copy, getpid());
        n = native_unwind(f->native, copy, f->frames, NATIVE_MAX_FRAMES);
    }
    struct model_frame *list = arena_calloc(arena, n + t->n_frames - python + 1, sizeof *list);
    if (!list)
        return;
    memcpy(list, f->frames, n * sizeof *list);
    if (t->n_frames > python)
        memcpy(list + n, t->frames + python, (t->n_frames - python) * sizeof *list);
    t->frames = list;
    t->n_frames = n + t->n_frames - python;
}

/* Names are found by the same pointer as in the list of modules. */
static void fatal_find_module(const struct native_maps *maps, struct model_frame *f) {
    for (size_t i = 0; f->module && i < maps->n_paths; i++)
        if (maps->paths[i] == f->module || strcmp(maps->paths[i], f->module) == 0) {
            f->module = maps->paths[i];
            return;
        }
}

/* Give native frames their names, and Python frames their places among them. */
static void fatal_merge(struct fatal_native *f, struct native_maps *maps, struct model_thread *t,
                        struct arena *arena) {
    size_t n = 0;
    while (n < t->n_frames && n < NATIVE_MAX_FRAMES && t->frames[n].kind == MODEL_FRAME_NATIVE)
        n++;
    uint32_t *order = arena_calloc(arena, t->n_frames + 1, sizeof *order);
    struct model_frame *list = arena_calloc(arena, t->n_frames + 1, sizeof *list);
    if (!order || !list || !f->labels || !maps)
        return;
    for (size_t i = 0; i < n; i++)
        fatal_find_module(maps, &t->frames[i]);
    native_label(f->labels, maps, t->frames, n, f->roles);
    size_t shown = native_merge(t->frames, t->n_frames, f->roles, n, t->truncated, order, &t->native);
    for (size_t i = 0; i < shown; i++) {
        list[i] = t->frames[order[i]];
        if (list[i].kind == MODEL_FRAME_NATIVE && list[i].func)
            list[i].func = arena_strdup(arena, list[i].func);
    }
    t->frames = list;
    t->n_frames = shown;
}

/* The owner of the names of modules, to be freed after they are written; NULL without memory. */
static struct native *fatal_merge_all(struct fatal_work *w, struct model_snapshot *snap) {
    struct fatal_native *f = arena_calloc(&snap->arena, 1, sizeof *f);
    if (!f)
        return NULL;
    f->native = native_new(0);
    f->labels = native_labels_new();
    if (f->native)
        native_refresh(f->native, 0);
    for (size_t i = 0; i < snap->n_threads; i++) {
        struct model_thread *t = &snap->threads[i];
        if (t->tid == w->record->tid)
            fatal_put_own(w, f, t, &snap->arena);
        fatal_merge(f, f->native ? native_get_maps(f->native) : NULL, t, &snap->arena);
    }
    native_labels_free(f->labels);
    return f->native;
}

/* The thread that received the signal; NULL if the snapshot does not have it. */
static const struct model_thread *fatal_find(const struct fatal_work *w, const struct model_snapshot *snap) {
    for (size_t i = 0; i < snap->n_threads; i++)
        if (snap->threads[i].tid == w->record->tid)
            return &snap->threads[i];
    return NULL;
}

static void fatal_report_stack(struct fatal_work *w, const struct model_thread *t) {
    char text[FATAL_EVENT_MAX] = "", line[512], func[160], file[256];
    size_t n = 0;
    for (size_t i = 0; t && i < t->n_frames; i++) {
        const struct model_frame *f = &t->frames[i];
        if (f->kind != MODEL_FRAME_PYTHON)
            continue;
        text_sanitize(func, sizeof func, f->func ? f->func : "?");
        text_sanitize(file, sizeof file, f->file ? f->file : "?");
        int length = snprintf(line, sizeof line, "%s (%s:%d)\n", func, file, f->line);
        if (n == 0) {
            fatal_write(w, RING_FATAL_AT, sizeof RING_FATAL_AT - 1);
            fatal_write(w, line, (size_t)length);
        }
        if (n + (size_t)length >= sizeof text)
            break;
        memcpy(text + n, line, (size_t)length + 1);
        n += (size_t)length;
    }
    if (n > 0)
        record_event(&w->s->always.record, RING_EVENT_FATAL_STACK, -1, -1, text);
}

static void fatal_keep_stacks(struct fatal_work *w) {
    const struct snapshot_request wishes = {.native = {.wanted = true, .max_age_ns = FATAL_MAPS_NS}};
    struct sampler *s = w->s;
    struct model_snapshot snap;
    struct model_target target;
    struct strbuf out;
    struct err e = {0};
    pystack_read_names_anew(s->ps);
    if (snapshot_request_snapshot(s->ps, &s->profile, &wishes, &snap, &e) == 0) {
        fatal_report_stack(w, fatal_find(w, &snap));
        struct native *native = fatal_merge_all(w, &snap);
        pystack_read_target(0, s->ps, &target);
        strbuf_init(&out, FATAL_TEXT_MAX);
        strbuf_addc(&out, '\n');
        model_text_put_backtrace(&out, &target, &snap, false);
        fatal_write(w, strbuf_str(&out), strlen(strbuf_str(&out)));
        strbuf_fini(&out);
        model_target_fini(&target);
        native_free(native);
    } else {
        fatal_write(w, e.text, strlen(e.text));
    }
    model_snapshot_fini(&snap);
}

/* A sample of every thread, for the tables, with native frames: the last state shown of the
 * process. */
static void fatal_keep_samples(struct fatal_work *w) {
    struct sampler *s = w->s;
    struct timespec pause = {.tv_nsec = (long)FATAL_ANSWERS_NS};
    thread_sampler_set_timed(&s->profile, s->ps, false); /* answers are waited for once */
    thread_sampler_settle(&s->profile, s->ps);
    thread_sampler_set_native(&s->profile, s->ps, s->profile.native_sent, true);
    signal_sampler_set_native(s->profile.native);
    s->profile.listed_ns = 0; /* there may be new threads */
    thread_sampler_tick(&s->profile, s->ps, CLOCK_NS_PER_S / 10);
    if (s->profile.exact)
        nanosleep(&pause, NULL);
    thread_sampler_collect(&s->profile, s->ps);
    thread_sampler_settle(&s->profile, s->ps);
    struct record_samples samples = background_samples(&s->profile);
    s->always.outgrown |= record_take(&s->always.record, &samples);
    record_flush_now(&s->always.record);
}

void sampler_note_fatal(void *arg) { mailbox_wake(arg); }

void sampler_keep_fatal(struct sampler *s) {
    struct fatal_work w = {.s = s, .record = fatal_begin(), .fd = -1};
    if (!w.record)
        return;
    fatal_name_thread(&w);
    fatal_say_what(&w);
    record_begin(&s->always.record);
    fatal_open(&w);
    fatal_report(&w);
    fatal_write_head(&w);
    signal_sampler_leave_out(w.record->tid);
    if (s->ps) {
        fatal_keep_stacks(&w);
        fatal_keep_samples(&w);
    }
    if (w.fd >= 0)
        close(w.fd);
    signal_sampler_leave_out(0);
    s->replan = true;
    fatal_end();
}
