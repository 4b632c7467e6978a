/* SPDX-License-Identifier: Apache-2.0 */
/* model_text: see model_text.h. */
#include "base/model_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

#define MODEL_TEXT_NAME_MAX 1024

static void model_text_put_name(struct strbuf *out, const char *name) {
    char clean[MODEL_TEXT_NAME_MAX];
    (void)text_sanitize(clean, sizeof clean, name ? name : "?");
    (void)strbuf_adds(out, clean);
}

static void model_text_put_holder(struct strbuf *out, const struct model_snapshot *s) {
    const char *name = NULL;
    for (size_t i = 0; i < s->n_threads && !name; i++)
        if (s->threads[i].tid == s->gil_tid)
            name = s->threads[i].name ? s->threads[i].name : s->threads[i].native_name;
    (void)strbuf_adds(out, "held by ");
    model_text_put_name(out, name);
    (void)strbuf_addf(out, " (%" PRId64 ")", s->gil_tid);
}

static void model_text_put_gil(struct strbuf *out, const struct model_snapshot *s) {
    if (s->gil_enabled == 0) {
        (void)strbuf_adds(out, ", no GIL");
    } else if (s->gil_tid == MODEL_UNKNOWN || s->gil_tid == 0) {
        (void)strbuf_adds(out, s->gil_tid == 0 ? ", GIL held by nobody" : ", GIL holder unknown");
    } else {
        (void)strbuf_adds(out, ", GIL ");
        model_text_put_holder(out, s);
    }
    (void)strbuf_adds(out, s->gc_running == 1 ? ", collecting garbage\n" : "\n");
}

/* A thread and the GIL: how long it has waited and who holds it, or how long it has held it. */
static void model_text_put_thread_gil(struct strbuf *out, const struct model_snapshot *s,
                                      const struct model_thread *t) {
    const char *name = model_gil_name(t->gil);
    if (!t->has_python || s->gil_enabled == 0)
        return;
    if (t->gil == MODEL_GIL_WAITING)
        (void)strbuf_adds(out, ", waiting for the GIL");
    else
        (void)strbuf_addf(out, ", GIL %s", name ? name : "unknown");
    if (t->gil_for_us > 0 && (t->gil == MODEL_GIL_WAITING || t->gil == MODEL_GIL_HOLDING))
        (void)strbuf_addf(out, " for at least %.1f s", t->gil_for_us / 1e6);
    if (t->gil == MODEL_GIL_WAITING && s->gil_tid > 0 && s->gil_tid != t->tid) {
        (void)strbuf_adds(out, ", ");
        model_text_put_holder(out, s);
    }
}

static void model_text_put_head(struct strbuf *out, const struct model_target *t,
                                const struct model_snapshot *s) {
    (void)strbuf_addf(out, "Process %" PRId64 ": ", t->pid);
    model_text_put_name(out, t->cmdline);
    (void)strbuf_adds(out, "\nPython ");
    model_text_put_name(out, t->python);
    if (t->torch) {
        (void)strbuf_adds(out, ", torch ");
        model_text_put_name(out, t->torch);
    }
    if (t->rank != MODEL_UNKNOWN)
        (void)strbuf_addf(out, ", rank %" PRId64, t->rank);
    model_text_put_gil(out, s);
    if (s->sampling == MODEL_SAMPLING_GENTLE)
        (void)strbuf_adds(out, "Stacks of running threads may be torn; those that are say so\n");
    if (t->mode == MODEL_MODE_RECORDED) {
        (void)strbuf_adds(out, "As it was last: ");
        model_text_put_name(out, t->mode_reason);
        (void)strbuf_addc(out, '\n');
    }
    if (t->mode == MODEL_MODE_READONLY) {
        (void)strbuf_adds(out, "Read from outside: ");
        model_text_put_name(out, t->mode_reason);
        (void)strbuf_addc(out, '\n');
    }
}

static void model_text_put_locals(struct strbuf *out, const struct model_locals *l) {
    if (!l) {
        (void)strbuf_adds(out, "        (locals are not known)\n");
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        (void)strbuf_adds(out, "        ");
        model_text_put_name(out, l->items[i].name);
        (void)strbuf_adds(out, ": ");
        model_text_put_name(out, l->items[i].type);
        (void)strbuf_adds(out, " = ");
        model_text_put_name(out, l->items[i].text);
        (void)strbuf_addc(out, '\n');
    }
    if (l->truncated)
        (void)strbuf_adds(out, "        ... (more left out)\n");
}

/* How native frames differ from what was asked for. */
static void model_text_put_native(struct strbuf *out, const struct model_thread *t) {
    if (t->native == MODEL_NATIVE_APART)
        (void)strbuf_adds(
            out, "    (native and Python frames do not fit together: all native ones, then all of Python)\n");
    else if (t->native == MODEL_NATIVE_UNKNOWN)
        (void)strbuf_adds(out, "    (native frames are not known)\n");
}

/* "func (file:line) [module]", or "module+0x12ab" if the function is unknown. */
static void model_text_put_native_frame(struct strbuf *out, const struct model_frame *f) {
    const char *slash = f->module ? strrchr(f->module, '/') : NULL;
    const char *module = slash ? slash + 1 : f->module;
    (void)strbuf_adds(out, "    ");
    if (!f->func && !f->module && !f->address) {
        (void)strbuf_adds(out, "? (native frames here are not known)\n");
        return;
    }
    if (!f->func) {
        model_text_put_name(out, module ? module : "");
        (void)strbuf_addf(out, "%s0x%" PRIx64 "\n", module ? "+" : "", f->address);
        return;
    }
    model_text_put_name(out, f->func);
    if (f->file) {
        (void)strbuf_adds(out, " (");
        model_text_put_name(out, f->file);
        if (f->line > 0)
            (void)strbuf_addf(out, ":%d", f->line);
        (void)strbuf_addc(out, ')');
    }
    (void)strbuf_adds(out, " [");
    model_text_put_name(out, module);
    (void)strbuf_adds(out, "]\n");
}

static void model_text_put_frame(struct strbuf *out, const char *indent, const struct model_frame *f) {
    (void)strbuf_adds(out, indent);
    model_text_put_name(out, f->func);
    (void)strbuf_adds(out, " (");
    model_text_put_name(out, f->file);
    if (f->line > 0)
        (void)strbuf_addf(out, ":%d", f->line);
    (void)strbuf_adds(out, ")\n");
}

/* Names of the tasks that wait for this one; finished ones have none. */
static void model_text_put_awaiters(struct strbuf *out, const struct model_snapshot *s,
                                    const struct model_task *t) {
    for (size_t i = 0; i < t->n_awaited_by; i++) {
        const struct model_task *by = NULL;
        for (size_t k = 0; k < s->n_tasks && !by; k++)
            if (s->tasks[k].id == t->awaited_by[i])
                by = &s->tasks[k];
        (void)strbuf_adds(out, i ? ", " : ", awaited by ");
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
        (void)strbuf_adds(out, "    Task ");
        if (t->name) {
            model_text_put_name(out, t->name);
            (void)strbuf_addc(out, ' ');
        }
        model_text_put_name(out, t->coro);
        (void)strbuf_addf(out, ", %s", state ? state : "state unknown");
        model_text_put_awaiters(out, s, t);
        (void)strbuf_addc(out, '\n');
        for (size_t k = 0; k < t->n_frames; k++)
            model_text_put_frame(out, "        ", &t->frames[k]);
        if (t->truncated)
            (void)strbuf_adds(out, "        ... (more left out)\n");
    }
}

static void model_text_put_thread_line(struct strbuf *out, const struct model_snapshot *s,
                                       const struct model_thread *t) {
    (void)strbuf_adds(out, "Thread ");
    model_text_put_name(out, t->name ? t->name : t->native_name);
    (void)strbuf_addf(out, " (%" PRId64 ") %c", t->tid, t->state ? t->state : '?');
    model_text_put_thread_gil(out, s, t);
    if (t->gc == 1)
        (void)strbuf_adds(out, ", collecting garbage");
    if (!isnan(t->cpu_pct))
        (void)strbuf_addf(out, ", CPU %.0f%%", t->cpu_pct);
    if (t->torn)
        (void)strbuf_adds(out, ", moved while it was read");
    if (t->stopped_us)
        (void)strbuf_addf(out, ", stopped for %.2f ms", (double)t->stopped_us / 1000);
    if (!t->has_python)
        (void)strbuf_adds(out, ", no Python");
    (void)strbuf_addc(out, '\n');
}

static void model_text_put_thread(struct strbuf *out, const struct model_snapshot *s,
                                  const struct model_thread *t, bool locals) {
    (void)strbuf_addc(out, '\n');
    model_text_put_thread_line(out, s, t);
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
        (void)strbuf_adds(out, "    ... (outer frames left out)\n");
    model_text_put_tasks(out, s, t->tid);
}

static bool model_text_has_thread(const struct model_snapshot *s, int64_t tid) {
    for (size_t i = 0; i < s->n_threads; i++)
        if (s->threads[i].tid == tid)
            return true;
    return false;
}

void model_text_put_backtrace(struct strbuf *out, const struct model_target *t,
                              const struct model_snapshot *s, bool locals) {
    model_text_put_head(out, t, s);
    for (size_t i = 0; i < s->n_threads; i++)
        model_text_put_thread(out, s, &s->threads[i], locals);
    for (size_t i = 0; i < s->n_tasks; i++)
        if (!model_text_has_thread(s, s->tasks[i].tid) &&
            (i == 0 || s->tasks[i].tid != s->tasks[i - 1].tid)) {
            (void)strbuf_adds(out, "\nTasks of a loop whose thread is not known\n");
            model_text_put_tasks(out, s, s->tasks[i].tid);
        }
    if (s->note) {
        (void)strbuf_adds(out, "\n(");
        model_text_put_name(out, s->note);
        (void)strbuf_adds(out, ")\n");
    }
    if (s->incomplete)
        (void)strbuf_adds(out, "\n(a limit left threads, frames or tasks out)\n");
}

void model_text_put_threads(struct strbuf *out, const struct model_snapshot *s) {
    for (size_t i = 0; i < s->n_threads; i++)
        model_text_put_thread_line(out, s, &s->threads[i]);
}
