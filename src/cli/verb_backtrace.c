/* SPDX-License-Identifier: Apache-2.0 */
/* verb_backtrace: every thread with its stack, as a person reads it or as the JSON document. */
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "client/call.h"
#include "client/document.h"
#include "client/target.h"

#define BACKTRACE_LOOK_INTERVAL_MS 100 /* two looks tell what is on the CPU */
#define BACKTRACE_NAME_MAX 1024

const struct option_def cli_backtrace_rows[] = {
    {"no-inject", 0, OPTION_FLAG, offsetof(struct cli_backtrace_options, no_inject), NULL,
     "put no agent into the target: read it from outside", 0, 0},
    {"block", 0, OPTION_FLAG, offsetof(struct cli_backtrace_options, block), NULL,
     "the same, stopping running threads while they are read: exact stacks", 0, 0},
    {"locals", 'l', OPTION_FLAG, offsetof(struct cli_backtrace_options, locals), NULL,
     "arguments and local variables of every frame, with their values", 0, 0},
    {"native", 'n', OPTION_FLAG, offsetof(struct cli_backtrace_options, native), NULL,
     "C and C++ frames too, in the order of the calls", 0, 0},
    {"repr", 'r', OPTION_FLAG, offsetof(struct cli_backtrace_options, repr), NULL,
     "the same, by the repr() of the job's own classes: runs code of the job", 0, 0},
    {"tasks", 'a', OPTION_FLAG, offsetof(struct cli_backtrace_options, tasks), NULL,
     "tasks of asyncio, with what each awaits, below the thread of their loop", 0, 0},
    {.name = NULL},
};

static void backtrace_put_name(struct strbuf *out, const char *name) {
    char clean[BACKTRACE_NAME_MAX];
    (void)text_sanitize(clean, sizeof clean, name ? name : "?");
    (void)strbuf_adds(out, clean);
}

static void backtrace_put_holder(struct strbuf *out, const struct model_snapshot *s) {
    const char *name = NULL;
    for (size_t i = 0; i < s->n_threads && !name; i++)
        if (s->threads[i].tid == s->gil_tid)
            name = s->threads[i].name ? s->threads[i].name : s->threads[i].native_name;
    (void)strbuf_adds(out, "held by ");
    backtrace_put_name(out, name);
    (void)strbuf_addf(out, " (%" PRId64 ")", s->gil_tid);
}

static void backtrace_put_gil(struct strbuf *out, const struct model_snapshot *s) {
    if (s->gil_enabled == 0) {
        (void)strbuf_adds(out, ", no GIL");
    } else if (s->gil_tid == MODEL_UNKNOWN || s->gil_tid == 0) {
        (void)strbuf_adds(out, s->gil_tid == 0 ? ", GIL held by nobody" : ", GIL holder unknown");
    } else {
        (void)strbuf_adds(out, ", GIL ");
        backtrace_put_holder(out, s);
    }
    (void)strbuf_adds(out, s->gc_running == 1 ? ", collecting garbage\n" : "\n");
}

/* A thread and the GIL: for how long it has waited for it, and who has it; or for how long nobody else has had it. */
static void backtrace_put_thread_gil(struct strbuf *out, const struct model_snapshot *s,
                                     const struct model_thread *t) {
    const char *name = model_gil_name(t->gil);
    if (!t->has_python || s->gil_enabled == 0)
        return;
    if (t->gil == MODEL_GIL_WAITING)
        (void)strbuf_adds(out, ", waiting for the GIL");
    else
        (void)strbuf_addf(out, ", GIL %s", name ? name : "unknown");
    if (t->gil_for_us > 0 && (t->gil == MODEL_GIL_WAITING || t->gil == MODEL_GIL_HELD))
        (void)strbuf_addf(out, " for at least %.1f s", t->gil_for_us / 1e6);
    if (t->gil == MODEL_GIL_WAITING && s->gil_tid > 0 && s->gil_tid != t->tid) {
        (void)strbuf_adds(out, ", ");
        backtrace_put_holder(out, s);
    }
}

static void backtrace_put_head(struct strbuf *out, const struct model_target *t,
                               const struct model_snapshot *s) {
    (void)strbuf_addf(out, "Process %" PRId64 ": ", t->pid);
    backtrace_put_name(out, t->cmdline);
    (void)strbuf_adds(out, "\nPython ");
    backtrace_put_name(out, t->python);
    if (t->torch) {
        (void)strbuf_adds(out, ", torch ");
        backtrace_put_name(out, t->torch);
    }
    if (t->rank != MODEL_UNKNOWN)
        (void)strbuf_addf(out, ", rank %" PRId64, t->rank);
    backtrace_put_gil(out, s);
    if (s->sampling == MODEL_SAMPLING_GENTLE)
        (void)strbuf_adds(out, "Stacks of running threads may be torn; those that are say so\n");
    if (t->mode == MODEL_MODE_RECORDED) {
        (void)strbuf_adds(out, "As it was last: ");
        backtrace_put_name(out, t->mode_reason);
        (void)strbuf_addc(out, '\n');
    }
    if (t->mode == MODEL_MODE_READONLY) {
        (void)strbuf_adds(out, "Read from outside: ");
        backtrace_put_name(out, t->mode_reason);
        (void)strbuf_addc(out, '\n');
    }
}

static void backtrace_put_locals(struct strbuf *out, const struct model_locals *l) {
    if (!l) {
        (void)strbuf_adds(out, "        (locals are not known)\n");
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        (void)strbuf_adds(out, "        ");
        backtrace_put_name(out, l->items[i].name);
        (void)strbuf_adds(out, ": ");
        backtrace_put_name(out, l->items[i].type);
        (void)strbuf_adds(out, " = ");
        backtrace_put_name(out, l->items[i].text);
        (void)strbuf_addc(out, '\n');
    }
    if (l->truncated)
        (void)strbuf_adds(out, "        ... (more left out)\n");
}

/* What is not as it was asked for. */
static void backtrace_put_native(struct strbuf *out, const struct model_thread *t) {
    if (t->native == MODEL_NATIVE_APART)
        (void)strbuf_adds(
            out, "    (native and Python frames do not fit together: all native ones, then all of Python)\n");
    else if (t->native == MODEL_NATIVE_UNKNOWN)
        (void)strbuf_adds(out, "    (native frames are not known)\n");
}

/* "func (file:line) [module]", or "module+0x12ab" where the function is not known. */
static void backtrace_put_native_frame(struct strbuf *out, const struct model_frame *f) {
    const char *slash = f->module ? strrchr(f->module, '/') : NULL;
    const char *module = slash ? slash + 1 : f->module;
    (void)strbuf_adds(out, "    ");
    if (!f->func && !f->module && !f->address) {
        (void)strbuf_adds(out, "? (native frames here are not known)\n");
        return;
    }
    if (!f->func) {
        backtrace_put_name(out, module ? module : "");
        (void)strbuf_addf(out, "%s0x%" PRIx64 "\n", module ? "+" : "", f->address);
        return;
    }
    backtrace_put_name(out, f->func);
    if (f->file) {
        (void)strbuf_adds(out, " (");
        backtrace_put_name(out, f->file);
        if (f->line > 0)
            (void)strbuf_addf(out, ":%d", f->line);
        (void)strbuf_addc(out, ')');
    }
    (void)strbuf_adds(out, " [");
    backtrace_put_name(out, module);
    (void)strbuf_adds(out, "]\n");
}

static void backtrace_put_frame(struct strbuf *out, const char *indent, const struct model_frame *f) {
    (void)strbuf_adds(out, indent);
    backtrace_put_name(out, f->func);
    (void)strbuf_adds(out, " (");
    backtrace_put_name(out, f->file);
    if (f->line > 0)
        (void)strbuf_addf(out, ":%d", f->line);
    (void)strbuf_adds(out, ")\n");
}

/* Names of the tasks that wait for one; those that are done by now have none. */
static void backtrace_put_awaiters(struct strbuf *out, const struct model_snapshot *s,
                                   const struct model_task *t) {
    for (size_t i = 0; i < t->n_awaited_by; i++) {
        const struct model_task *by = NULL;
        for (size_t k = 0; k < s->n_tasks && !by; k++)
            if (s->tasks[k].id == t->awaited_by[i])
                by = &s->tasks[k];
        (void)strbuf_adds(out, i ? ", " : ", awaited by ");
        backtrace_put_name(out, by ? by->name ? by->name : by->coro : NULL);
    }
}

/* The tasks of the loop that thread `tid` runs. */
static void backtrace_put_tasks(struct strbuf *out, const struct model_snapshot *s, int64_t tid) {
    for (size_t i = 0; i < s->n_tasks; i++) {
        const struct model_task *t = &s->tasks[i];
        const char *state = model_task_state_name(t->state);
        if (t->tid != tid)
            continue;
        (void)strbuf_adds(out, "    Task ");
        if (t->name) {
            backtrace_put_name(out, t->name);
            (void)strbuf_addc(out, ' ');
        }
        backtrace_put_name(out, t->coro);
        (void)strbuf_addf(out, ", %s", state ? state : "state unknown");
        backtrace_put_awaiters(out, s, t);
        (void)strbuf_addc(out, '\n');
        for (size_t k = 0; k < t->n_frames; k++)
            backtrace_put_frame(out, "        ", &t->frames[k]);
        if (t->truncated)
            (void)strbuf_adds(out, "        ... (more left out)\n");
    }
}

static void backtrace_put_thread(struct strbuf *out, const struct model_snapshot *s,
                                 const struct model_thread *t, bool locals) {
    (void)strbuf_adds(out, "\nThread ");
    backtrace_put_name(out, t->name ? t->name : t->native_name);
    (void)strbuf_addf(out, " (%" PRId64 ") %c", t->tid, t->state ? t->state : '?');
    backtrace_put_thread_gil(out, s, t);
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
    backtrace_put_native(out, t);
    for (size_t i = 0; i < t->n_frames; i++) {
        const struct model_frame *f = &t->frames[i];
        if (f->kind == MODEL_FRAME_NATIVE) {
            backtrace_put_native_frame(out, f);
            continue;
        }
        backtrace_put_frame(out, "    ", f);
        if (locals && f->kind == MODEL_FRAME_PYTHON)
            backtrace_put_locals(out, t->locals ? t->locals[i] : NULL);
    }
    if (t->truncated)
        (void)strbuf_adds(out, "    ... (outer frames left out)\n");
    backtrace_put_tasks(out, s, t->tid);
}

static bool backtrace_has_thread(const struct model_snapshot *s, int64_t tid) {
    for (size_t i = 0; i < s->n_threads; i++)
        if (s->threads[i].tid == tid)
            return true;
    return false;
}

static void backtrace_put_text(struct strbuf *out, const struct model_target *t,
                               const struct model_snapshot *s, bool locals) {
    backtrace_put_head(out, t, s);
    for (size_t i = 0; i < s->n_threads; i++)
        backtrace_put_thread(out, s, &s->threads[i], locals);
    for (size_t i = 0; i < s->n_tasks; i++)
        if (!backtrace_has_thread(s, s->tasks[i].tid) && (i == 0 || s->tasks[i].tid != s->tasks[i - 1].tid)) {
            (void)strbuf_adds(out, "\nTasks of a loop whose thread is not known\n");
            backtrace_put_tasks(out, s, s->tasks[i].tid);
        }
    if (s->note) {
        (void)strbuf_adds(out, "\n(");
        backtrace_put_name(out, s->note);
        (void)strbuf_adds(out, ")\n");
    }
    if (s->incomplete)
        (void)strbuf_adds(out, "\n(a limit left threads, frames or tasks out)\n");
}

int cli_run_backtrace(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                      struct err *e) {
    const struct cli_backtrace_options *mine = (const struct cli_backtrace_options *)(const void *)o;
    struct target_options how = {.no_inject = mine->no_inject, .block = mine->block};
    if (mine->native && mine->no_inject && !mine->block)
        return err_set(
            e, ERR_USAGE,
            "--native with --no-inject needs --block too: native frames of a thread are known from "
            "outside only while it is stopped");
    if (target_reach(addr, &how, e) != 0)
        return -1;
    struct call *c = call_open(addr, e);
    if (!c)
        return -1;
    struct model_snapshot snapshot;
    struct wire_threads want = {.locals = mine->locals || mine->repr,
                                .repr = mine->repr,
                                .tasks = mine->tasks,
                                .native = mine->native};
    int rc = want.locals || want.tasks || want.native
                 ? call_details_measured(c, &want, BACKTRACE_LOOK_INTERVAL_MS, &snapshot, e)
                 : call_snapshot_measured(c, BACKTRACE_LOOK_INTERVAL_MS, &snapshot, e);
    if (rc == 0 && o->json) {
        struct json j;
        json_init(&j, out, 2);
        document_put_backtrace(&j, call_get_target(c), &snapshot, &want, NULL, 0);
        (void)strbuf_addc(out, '\n');
    } else if (rc == 0) {
        backtrace_put_text(out, call_get_target(c), &snapshot, want.locals);
    }
    model_snapshot_fini(&snapshot);
    call_close(c);
    return rc;
}
