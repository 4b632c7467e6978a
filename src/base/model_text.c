/* SPDX-License-Identifier: Apache-2.0 */
/* model_text: see model_text.h. */
#include "base/model_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"

#define MODEL_TEXT_NAME_MAX 1024

static void model_text_put_name(struct strbuf *out, const char *name) {
    char clean[MODEL_TEXT_NAME_MAX];
    text_sanitize(clean, sizeof clean, name ? name : "?");
    strbuf_adds(out, clean);
}

static void model_text_put_holder(struct strbuf *out, const struct model_snapshot *s) {
    const char *name = NULL;
    for (size_t i = 0; i < s->n_threads && !name; i++)
        if (s->threads[i].tid == s->gil_tid)
            name = s->threads[i].name ? s->threads[i].name : s->threads[i].native_name;
    strbuf_adds(out, "held by ");
    model_text_put_name(out, name);
    strbuf_addf(out, " (%" PRId64 ")", s->gil_tid);
}

static void model_text_put_gil(struct strbuf *out, const struct model_snapshot *s) {
    if (s->gil_enabled == 0) {
        strbuf_adds(out, ", no GIL");
    } else if (s->gil_tid == MODEL_UNKNOWN || s->gil_tid == 0) {
        strbuf_adds(out, s->gil_tid == 0 ? ", GIL held by nobody" : ", GIL holder unknown");
    } else {
        strbuf_adds(out, ", GIL ");
        model_text_put_holder(out, s);
    }
    strbuf_adds(out, s->gc_running == 1 ? ", collecting garbage\n" : "\n");
}

/* A thread and the GIL: how long it has waited and who holds it, or how long it has held it. */
static void model_text_put_thread_gil(struct strbuf *out, const struct model_snapshot *s,
                                      const struct model_thread *t) {
    const char *name = model_gil_name(t->gil);
    if (!t->has_python || s->gil_enabled == 0)
        return;
    if (t->gil == MODEL_GIL_WAITING)
        strbuf_adds(out, ", waiting for the GIL");
    else
        strbuf_addf(out, ", GIL %s", name ? name : "unknown");
    if (t->gil_for_us > 0 && (t->gil == MODEL_GIL_WAITING || t->gil == MODEL_GIL_HOLDING))
        strbuf_addf(out, " for at least %.1f s", t->gil_for_us / 1e6);
    if (t->gil == MODEL_GIL_WAITING && s->gil_tid > 0 && s->gil_tid != t->tid) {
        strbuf_adds(out, ", ");
        model_text_put_holder(out, s);
    }
}

static void model_text_put_head(struct strbuf *out, const struct model_target *t,
                                const struct model_snapshot *s) {
    strbuf_addf(out, "Process %" PRId64 ": ", t->pid);
    model_text_put_name(out, t->cmdline);
    strbuf_adds(out, "\nPython ");
    model_text_put_name(out, t->python);
    if (t->torch) {
        strbuf_adds(out, ", torch ");
        model_text_put_name(out, t->torch);
    }
    if (t->rank != MODEL_UNKNOWN)
        strbuf_addf(out, ", rank %" PRId64, t->rank);
    model_text_put_gil(out, s);
    if (s->sampling == MODEL_SAMPLING_GENTLE)
        strbuf_adds(out, "Stacks of running threads may be torn; those that are say so\n");
    if (t->mode == MODEL_MODE_RECORDED) {
        strbuf_adds(out, "Last known state: ");
        model_text_put_name(out, t->mode_reason);
        strbuf_addc(out, '\n');
    }
    if (t->mode == MODEL_MODE_READONLY) {
        strbuf_adds(out, "Read from outside: ");
        model_text_put_name(out, t->mode_reason);
        strbuf_addc(out, '\n');
    }
}

static void model_text_put_locals(struct strbuf *out, const struct model_locals *l) {
    if (!l) {
        strbuf_adds(out, "        (locals are not known)\n");
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        strbuf_adds(out, "        ");
        model_text_put_name(out, l->items[i].name);
        strbuf_adds(out, ": ");
        model_text_put_name(out, l->items[i].type);
        strbuf_adds(out, " = ");
        model_text_put_name(out, l->items[i].text);
        strbuf_addc(out, '\n');
    }
    if (l->truncated)
        strbuf_adds(out, "        ... (more left out)\n");
}

/* How native frames differ from what was asked for. */
static void model_text_put_native(struct strbuf *out, const struct model_thread *t) {
    if (t->native == MODEL_NATIVE_APART)
        strbuf_adds(
            out, "    (native and Python frames do not fit together: all native ones, then all of Python)\n");
    else if (t->native == MODEL_NATIVE_UNKNOWN)
        strbuf_adds(out, "    (native frames are not known)\n");
}

/* "func (file:line) [module]", or "module+0x12ab" if the function is unknown. */
static void model_text_put_native_frame(struct strbuf *out, const struct model_frame *f) {
    const char *slash = f->module ? strrchr(f->module, '/') : NULL;
    const char *module = slash ? slash + 1 : f->module;
    strbuf_adds(out, "    ");
    if (!f->func && !f->module && !f->address) {
        strbuf_adds(out, "? (native frames here are not known)\n");
        return;
    }
    if (!f->func) {
        model_text_put_name(out, module ? module : "");
        strbuf_addf(out, "%s0x%" PRIx64 "\n", module ? "+" : "", f->address);
        return;
    }
    model_text_put_name(out, f->func);
    if (f->file) {
        strbuf_adds(out, " (");
        model_text_put_name(out, f->file);
        if (f->line > 0)
            strbuf_addf(out, ":%d", f->line);
        strbuf_addc(out, ')');
    }
    strbuf_adds(out, " [");
    model_text_put_name(out, module);
    strbuf_adds(out, "]\n");
}

static void model_text_put_frame(struct strbuf *out, const char *indent, const struct model_frame *f) {
    strbuf_adds(out, indent);
    model_text_put_name(out, f->func);
    strbuf_adds(out, " (");
    model_text_put_name(out, f->file);
    if (f->line > 0)
        strbuf_addf(out, ":%d", f->line);
    strbuf_adds(out, ")\n");
}

/* Names of the tasks that wait for this one; finished ones have none. */
static void model_text_put_awaiters(struct strbuf *out, const struct model_snapshot *s,
                                    const struct model_task *t) {
    for (size_t i = 0; i < t->n_awaited_by; i++) {
        const struct model_task *by = NULL;
        for (size_t k = 0; k < s->n_tasks && !by; k++)
            if (s->tasks[k].id == t->awaited_by[i])
                by = &s->tasks[k];
        strbuf_adds(out, i ? ", " : ", awaited by ");
        model_text_put_name(out, by ? by->name ? by->name : by->coro : NULL);
    }
}

/* The tasks of the loop that thread `tid` runs. */
static void model_text_put_tasks(struct strbuf *out, const struct model_snapshot *s, int64_t tid) {
    for (size_t i = 0; i < s->n_tasks; i++) {
        const struct model_task *t = &s->tasks[i];
        const char *state = model_task_state_name(t->state);
        if (t->tid != tid)
            continue;
        strbuf_adds(out, "    Task ");
        if (t->name) {
            model_text_put_name(out, t->name);
            strbuf_addc(out, ' ');
        }
        model_text_put_name(out, t->coro);
        strbuf_addf(out, ", %s", state ? state : "state unknown");
        model_text_put_awaiters(out, s, t);
        strbuf_addc(out, '\n');
        for (size_t k = 0; k < t->n_frames; k++)
            model_text_put_frame(out, "        ", &t->frames[k]);
        if (t->truncated)
            strbuf_adds(out, "        ... (more left out)\n");
    }
}

/* ---- what a thread waits for ---- */

static const struct model_thread *model_text_find_thread(const struct model_snapshot *s, uint64_t tid) {
    for (size_t i = 0; i < s->n_threads; i++)
        if (tid && (uint64_t)s->threads[i].tid == tid)
            return &s->threads[i];
    return NULL;
}

/* "in func (file.py:7)", of the innermost Python frame. */
static void model_text_put_place(struct strbuf *out, const struct model_thread *t) {
    const struct model_frame *f = NULL;
    for (size_t i = 0; i < t->n_frames && !f; i++)
        if (t->frames[i].kind == MODEL_FRAME_PYTHON)
            f = &t->frames[i];
    if (!f)
        return;
    const char *slash = f->file ? strrchr(f->file, '/') : NULL;
    strbuf_adds(out, " in ");
    model_text_put_name(out, f->func);
    strbuf_adds(out, " (");
    model_text_put_name(out, slash ? slash + 1 : f->file);
    if (f->line > 0)
        strbuf_addf(out, ":%d", f->line);
    strbuf_addc(out, ')');
}

static void model_text_put_wait_holder(struct strbuf *out, const struct model_snapshot *s,
                                       const struct model_wait *w, bool brief) {
    const struct model_thread *holder = model_text_find_thread(s, w->tid);
    const char *name = holder ? holder->name ? holder->name : holder->native_name : NULL;
    if (brief) {
        strbuf_adds(out, w->flags & MODEL_WAIT_LIKELY ? " (likely " : " (");
        if (name)
            model_text_put_name(out, name);
        else
            strbuf_addf(out, "%" PRIu64, w->tid);
        strbuf_addc(out, ')');
        return;
    }
    strbuf_adds(out, w->kind == MODEL_WAIT_THREAD    ? ", which is"
                     : w->flags & MODEL_WAIT_GUESSED ? ", perhaps held by "
                     : w->flags & MODEL_WAIT_LIKELY  ? ", likely held by "
                                                     : ", held by ");
    if (w->kind != MODEL_WAIT_THREAD) {
        model_text_put_name(out, name);
        strbuf_addf(out, " (%" PRIu64 ")", w->tid);
    } else
        strbuf_addf(out, " %" PRIu64, w->tid);
    if (holder)
        model_text_put_place(out, holder);
}

static void model_text_put_seconds(struct strbuf *out, const char *before, double s, const char *after) {
    char text[32];
    if (s < 0.05)
        snprintf(text, sizeof text, "under 0.1 s");
    else if (s < 60)
        snprintf(text, sizeof text, "%.1f s", s);
    else
        text_human_duration(text, sizeof text, s);
    strbuf_addf(out, "%s%s%s", before, text, after);
}

/* Who has what the thread waits for, and for how long. */
static void model_text_put_wait_details(struct strbuf *out, const struct model_snapshot *s,
                                        const struct model_thread *t, bool brief) {
    const struct model_wait *w = &t->wait;
    if (w->pid)
        strbuf_addf(out, " (pid %" PRIu64 ")", w->pid);
    if (w->detail) {
        strbuf_adds(out, ": ");
        model_text_put_name(out, w->detail);
    }
    if (w->tid)
        model_text_put_wait_holder(out, s, w, brief);
    if (w->left_us)
        model_text_put_seconds(out, ", ", (double)w->left_us / 1e6,
                               w->kind == MODEL_WAIT_SLEEP ? " left" : " until it gives up");
    /* not for how long it has had the same stack: it may have waited again and again */
    if (!brief && w->for_us >= 1000000)
        model_text_put_seconds(out, ", for at least ", (double)w->for_us / 1e6, "");
}

void model_text_put_wait(struct strbuf *out, const struct model_snapshot *s, const struct model_thread *t,
                         bool brief) {
    const struct model_wait *w = &t->wait;
    const char *what = w->what ? w->what : model_wait_kind_name(w->kind);
    if (w->kind == MODEL_WAIT_UNKNOWN || !what)
        return;
    if (w->kind == MODEL_WAIT_UNRECORDED) {
        strbuf_adds(out, "(not recorded)");
        return;
    }
    if (brief && w->flags & MODEL_WAIT_DEADLOCK)
        strbuf_adds(out, "DEADLOCK: ");
    model_text_put_name(out, what);
    model_text_put_wait_details(out, s, t, brief);
}

static void model_text_put_wait_line(struct strbuf *out, const struct model_snapshot *s,
                                     const struct model_thread *t) {
    if (!model_wait_is_known(&t->wait) || t->wait.kind == MODEL_WAIT_GIL)
        return; /* the thread's line has the GIL, and the foot what was not recorded */
    if (t->wait.kind == MODEL_WAIT_SLEEP) {
        strbuf_adds(out, "    sleeping");
        model_text_put_wait_details(out, s, t, false);
    } else {
        strbuf_addf(out, "    %swaits for ", t->wait.flags & MODEL_WAIT_DEADLOCK ? "DEADLOCK: " : "");
        model_text_put_wait(out, s, t, false);
    }
    strbuf_addc(out, '\n');
}

static void model_text_put_thread_line(struct strbuf *out, const struct model_snapshot *s,
                                       const struct model_thread *t) {
    strbuf_adds(out, "Thread ");
    model_text_put_name(out, t->name ? t->name : t->native_name);
    strbuf_addf(out, " (%" PRId64 ") %c", t->tid, t->state ? t->state : '?');
    model_text_put_thread_gil(out, s, t);
    if (t->gc == 1)
        strbuf_adds(out, ", collecting garbage");
    if (!isnan(t->cpu_pct))
        strbuf_addf(out, ", CPU %.0f%%", t->cpu_pct);
    if (t->torn)
        strbuf_adds(out, ", moved while it was read");
    if (t->stopped_us)
        strbuf_addf(out, ", stopped for %.2f ms", (double)t->stopped_us / 1000);
    if (!t->has_python)
        strbuf_adds(out, ", no Python");
    strbuf_addc(out, '\n');
}

static void model_text_put_thread(struct strbuf *out, const struct model_snapshot *s,
                                  const struct model_thread *t, bool locals) {
    strbuf_addc(out, '\n');
    model_text_put_thread_line(out, s, t);
    model_text_put_wait_line(out, s, t);
    model_text_put_native(out, t);
    for (size_t i = 0; i < t->n_frames; i++) {
        const struct model_frame *f = &t->frames[i];
        if (f->kind == MODEL_FRAME_NATIVE) {
            model_text_put_native_frame(out, f);
            continue;
        }
        model_text_put_frame(out, "    ", f);
        if (locals && f->kind == MODEL_FRAME_PYTHON)
            model_text_put_locals(out, t->locals ? t->locals[i] : NULL);
    }
    if (t->truncated)
        strbuf_adds(out, "    ... (outer frames left out)\n");
    model_text_put_tasks(out, s, t->tid);
}

static bool model_text_has_thread(const struct model_snapshot *s, int64_t tid) {
    for (size_t i = 0; i < s->n_threads; i++)
        if (s->threads[i].tid == tid)
            return true;
    return false;
}

static void model_text_put_foot(struct strbuf *out, const struct model_snapshot *s) {
    if (s->note) {
        strbuf_adds(out, "\n(");
        model_text_put_name(out, s->note);
        strbuf_adds(out, ")\n");
    }
    if (s->incomplete)
        strbuf_adds(out, "\n(a limit left threads, frames or tasks out)\n");
}

void model_text_put_backtrace(struct strbuf *out, const struct model_target *t,
                              const struct model_snapshot *s, bool locals) {
    model_text_put_head(out, t, s);
    for (size_t i = 0; i < s->n_threads; i++)
        model_text_put_thread(out, s, &s->threads[i], locals);
    for (size_t i = 0; i < s->n_tasks; i++)
        if (!model_text_has_thread(s, s->tasks[i].tid) &&
            (i == 0 || s->tasks[i].tid != s->tasks[i - 1].tid)) {
            strbuf_adds(out, "\nTasks of a loop whose thread is not known\n");
            model_text_put_tasks(out, s, s->tasks[i].tid);
        }
    model_text_put_foot(out, s);
}

/* ---- for a terminal ---- */

#define SUMMARY_BOLD "\x1b[1m"
#define SUMMARY_DIM "\x1b[2m"
#define SUMMARY_WARN "\x1b[33m"
#define SUMMARY_PLAIN "\x1b[0m"
#define SUMMARY_ELLIPSIS "..."
#define SUMMARY_PATH_LEAST 12 /* columns that remain of a path */

struct summary {
    struct strbuf *out;
    const struct model_snapshot *s;
    int width;
    bool colour;
};

static void summary_paint(const struct summary *m, const char *colour) {
    if (m->colour)
        strbuf_adds(m->out, colour);
}

static bool summary_same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* True if both threads are at the same place, in the same state. */
static bool summary_is_equal(const struct model_thread *a, const struct model_thread *b) {
    if (a->n_frames != b->n_frames || a->n_frames == 0 || a->state != b->state || a->gil != b->gil ||
        a->wait.kind != b->wait.kind || a->wait.flags != b->wait.flags || a->wait.tid != b->wait.tid ||
        a->truncated != b->truncated || !summary_same_text(a->wait.what, b->wait.what) ||
        !summary_same_text(a->wait.detail, b->wait.detail))
        return false;
    for (size_t i = 0; i < a->n_frames; i++) {
        const struct model_frame *f = &a->frames[i], *g = &b->frames[i];
        if (f->kind != g->kind || f->line != g->line || f->address != g->address ||
            !summary_same_text(f->func, g->func) || !summary_same_text(f->file, g->file))
            return false;
    }
    return true;
}

/* The end of a path that fits into `room` columns. */
static void summary_put_path(const struct summary *m, const char *path, int room) {
    char clean[MODEL_TEXT_NAME_MAX];
    text_sanitize(clean, sizeof clean, path ? path : "?");
    const char *from = clean, *end = clean + strlen(clean);
    if (room < SUMMARY_PATH_LEAST)
        room = SUMMARY_PATH_LEAST;
    if (text_width(clean) <= room) {
        strbuf_adds(m->out, clean);
        return;
    }
    while (from < end && text_width(from) > room - (int)strlen(SUMMARY_ELLIPSIS)) {
        uint32_t cp;
        from += text_utf8_next(from, (size_t)(end - from), &cp);
    }
    strbuf_adds(m->out, SUMMARY_ELLIPSIS);
    strbuf_adds(m->out, from);
}

static void summary_put_frame(const struct summary *m, const struct model_frame *f) {
    char func[MODEL_TEXT_NAME_MAX], line[16] = "";
    bool native = f->kind == MODEL_FRAME_NATIVE;
    if (native) {
        summary_paint(m, SUMMARY_DIM);
        model_text_put_native_frame(m->out, f);
        summary_paint(m, SUMMARY_PLAIN);
        return;
    }
    text_sanitize(func, sizeof func, f->func ? f->func : "?");
    if (f->line > 0)
        snprintf(line, sizeof line, ":%d", f->line);
    bool library = !f->file || path_is_library(f->file);
    summary_paint(m, library ? SUMMARY_DIM : "");
    strbuf_addf(m->out, "    %s (", func);
    summary_put_path(m, f->file, m->width - 4 - text_width(func) - 2 - (int)strlen(line) - 1);
    strbuf_addf(m->out, "%s)", line);
    summary_paint(m, library ? SUMMARY_PLAIN : "");
    strbuf_addc(m->out, '\n');
}

/* "sleeping, 0.4 s left", "waiting for RLock cache, held by ...", "running". */
static void summary_put_state(const struct summary *m, const struct model_thread *t) {
    const char *state = t->on_cpu == 1 ? "running" : "sleeping";
    if (t->wait.kind == MODEL_WAIT_SLEEP) {
        strbuf_adds(m->out, "sleeping");
        model_text_put_wait_details(m->out, m->s, t, false);
        return;
    }
    if (model_wait_is_known(&t->wait) && t->wait.kind != MODEL_WAIT_GIL) {
        summary_paint(m, t->wait.flags & MODEL_WAIT_DEADLOCK ? SUMMARY_WARN : "");
        strbuf_adds(m->out, t->wait.flags & MODEL_WAIT_DEADLOCK ? "DEADLOCK: waiting for " : "waiting for ");
        model_text_put_wait(m->out, m->s, t, false);
        summary_paint(m, t->wait.flags & MODEL_WAIT_DEADLOCK ? SUMMARY_PLAIN : "");
        return;
    }
    if (t->state == 'R')
        state = "running";
    else if (t->state == 'D')
        state = "waiting for a device";
    else if (t->state == 'T' || t->state == 't')
        state = "stopped";
    else if (t->state == 'Z' || t->state == 'X')
        state = "ended";
    strbuf_adds(m->out, state);
}

static void summary_put_name(const struct summary *m, const struct model_thread *t) {
    model_text_put_name(m->out, t->name ? t->name : t->native_name);
    strbuf_addf(m->out, " (%" PRId64 ")", t->tid);
}

/* One thread, or several with the same stack. */
static void summary_put_group(const struct summary *m, size_t first, bool *is_done) {
    const struct model_thread *t = &m->s->threads[first];
    size_t n = 0;
    for (size_t i = first; i < m->s->n_threads; i++)
        n += !is_done[i] && (i == first || summary_is_equal(t, &m->s->threads[i]));
    strbuf_addc(m->out, '\n');
    summary_paint(m, SUMMARY_BOLD);
    if (n > 1)
        strbuf_addf(m->out, "%zu threads: ", n);
    else
        strbuf_adds(m->out, "Thread ");
    size_t put = 0;
    for (size_t i = first; i < m->s->n_threads; i++)
        if (!is_done[i] && (i == first || summary_is_equal(t, &m->s->threads[i]))) {
            strbuf_adds(m->out, put++ ? ", " : "");
            summary_put_name(m, &m->s->threads[i]);
            is_done[i] = true;
        }
    summary_paint(m, SUMMARY_PLAIN);
    strbuf_adds(m->out, n > 1 ? "\n    each " : "  ");
    summary_put_state(m, t);
    if (t->gil == MODEL_GIL_WAITING || t->gil == MODEL_GIL_HOLDING)
        model_text_put_thread_gil(m->out, m->s, t);
    if (t->gc == 1)
        strbuf_adds(m->out, ", collecting garbage");
    if (n == 1 && !isnan(t->cpu_pct) && t->cpu_pct >= 0.5)
        strbuf_addf(m->out, ", CPU %.0f %%", t->cpu_pct);
    if (t->torn)
        strbuf_adds(m->out, ", moved while it was read");
    if (!t->has_python)
        strbuf_adds(m->out, ", no Python");
    strbuf_addc(m->out, '\n');
    model_text_put_native(m->out, t);
    for (size_t i = 0; i < t->n_frames; i++)
        summary_put_frame(m, &t->frames[i]);
    if (t->truncated)
        strbuf_adds(m->out, "    ... (outer frames left out)\n");
}

void model_text_put_summary(struct strbuf *out, const struct model_target *t, const struct model_snapshot *s,
                            int width, bool colour) {
    const struct summary m = {.out = out, .s = s, .width = width, .colour = colour};
    bool *is_done = calloc(s->n_threads + 1, sizeof *is_done);
    out->failed = out->failed || !is_done;
    model_text_put_head(out, t, s);
    for (size_t i = 0; is_done && i < s->n_threads; i++)
        if (!is_done[i])
            summary_put_group(&m, i, is_done);
    free(is_done);
    model_text_put_foot(out, s);
}

void model_text_put_threads(struct strbuf *out, const struct model_snapshot *s) {
    for (size_t i = 0; i < s->n_threads; i++)
        model_text_put_thread_line(out, s, &s->threads[i]);
}
