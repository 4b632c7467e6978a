/* SPDX-License-Identifier: Apache-2.0 */
/* probes: see probes.h. */
#include "agent/torch/probes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/server/reply.h"
#include "agent/torch/module_hooks.h"
#include "base/clock.h"
#include "base/watch.h"

#define PROBES_POLL_NS (20 * CLOCK_NS_PER_MS)     /* while something is in progress */
#define PROBES_REST_NS (500 * CLOCK_NS_PER_MS)    /* and otherwise, to see which clients are gone */
#define PROBES_JOB_NS (2 * CLOCK_NS_PER_S)        /* for the worker to get the GIL */
#define PROBES_ANSWER_NS (3 * CLOCK_NS_PER_S)     /* a client waits so long for it to be armed */
#define PROBES_STEP_NS (120 * CLOCK_NS_PER_S)     /* a longer step is not traced to its end */
#define PROBES_SOONEST_NS (250 * CLOCK_NS_PER_MS) /* between two traced steps */
#define PROBES_RETRY_NS CLOCK_NS_PER_S            /* after a failed trace */
/* minimum of normal steps between two traced ones */
#define PROBES_BETWEEN 2
/* steps before a traced one, which show the normal duration */
#define PROBES_USUAL 8
/* fraction of a step: maximum delay until its end is noticed */
#define PROBES_FINE 32
#define PROBES_BACKWARD_NS (2 * CLOCK_NS_PER_S) /* for the first report of backward passes */
#define PROBES_LEAVE_NS CLOCK_NS_PER_S
#define PROBES_NONFINITE_NS (5 * CLOCK_NS_PER_S) /* to read and name a finding */
#define PROBES_NUMBER_NS (4 * CLOCK_NS_PER_S)    /* and to learn the number of its step */

static uint32_t probes_leaving; /* atomic: the agent is leaving; nothing is armed any more */
/* atomic: how often it began to. What was armed then is out, even if the sampler looks only after
 * the agent has stayed. */
static uint32_t probes_farewells;

void probes_init(struct probes *p, struct worker *worker, struct mailbox *mailbox, struct training *training,
                 const struct alloc_trace_host *host) {
    *p = (struct probes){.worker = worker,
                         .mailbox = mailbox,
                         .training = training,
                         .next_ns = UINT64_MAX,
                         .usual_ns = NAN,
                         .spread_pct = NAN};
    torch_profiler_init(&p->profiler, worker, training);
    alloc_trace_init(&p->alloc, worker, training->record, host);
    p->farewells = __atomic_load_n(&probes_farewells, __ATOMIC_ACQUIRE);
    __atomic_store_n(&probes_leaving, 0, __ATOMIC_RELEASE);
}

void probes_fini(struct probes *p) {
    module_window_close();
    torch_profiler_fini(&p->profiler);
    alloc_trace_fini(&p->alloc);
    worker_release(p->worker, p->job);
    p->job = NULL;
}

/* ---- owners of leases ---- */

static void probes_note(struct probes *p, enum lease_kind kind, const char *text) {
    snprintf(p->notes[kind], sizeof p->notes[kind], "%s", text);
}

/* Answer the clients that wait for the lease: `e` NULL: it is armed or scheduled. */
static bool probes_answer(struct probes *p, enum lease_kind kind, const struct err *e) {
    size_t kept = 0, before = p->n_asks;
    for (size_t i = 0; i < p->n_asks; i++) {
        const struct probes_ask *ask = &p->asks[i];
        if (ask->kind != kind)
            p->asks[kept++] = *ask;
        else if (e)
            reply_error(p->mailbox, ask->peer, ask->id, e);
        else
            reply_ok(p->mailbox, ask->peer, ask->id);
    }
    p->n_asks = kept;
    return kept != before;
}

/* Start what has its own phases. 0, or -1 with the error. */
static int probes_start(struct probes *p, enum lease_kind kind, const struct wire_arm *want, uint64_t now_ns,
                        struct err *e) {
    double every = p->training->record->config.values[CONFIG_MEMORY_EVERY];
    if (kind == LEASE_PROFILER)
        return torch_profiler_begin(&p->profiler, want, now_ns, e);
    if (kind == LEASE_ALLOC)
        return alloc_trace_begin(&p->alloc, want->every > 0 ? (uint64_t)want->every : (uint64_t)every, now_ns,
                                 e);
    return 0;
}

/* Is it for traced steps? The others have phases of their own, or none. */
static bool probes_is_traced(enum lease_kind kind) { return kind == LEASE_TRACE || kind == LEASE_NAN; }

/* 0, or -1 with the error. */
static int probes_arm(struct probes *p, enum lease_kind kind, uint32_t owner, const struct wire_arm *want,
                      struct err *e) {
    uint64_t now_ns = clock_mono_ns();
    struct wire_arm whole = *want;
    bool first = p->leases[kind].n == 0;
    if (want->dry && kind != LEASE_PROFILER)
        return err_set(e, ERR_USAGE, "the cost of %s is not known before it starts", lease_name(kind));
    if (kind == LEASE_PROFILER && !first)
        return err_set(e, ERR_FAILED, "another client is using it: try again later");
    if (lease_fit(kind, &whole, e) != 0 || lease_arm(&p->leases[kind], owner, &whole, now_ns, e) != 0)
        return -1;
    if (!first)
        return 0;
    if (probes_start(p, kind, &whole, now_ns, e) != 0) {
        lease_end(&p->leases[kind]);
        return -1;
    }
    p->looks[kind] = 0;
    p->notes[kind][0] = '\0';
    p->next_ns = now_ns;
    if (kind == LEASE_PHASES)
        p->phased = p->training->phased;
    if (!probes_is_traced(kind))
        return 0;
    p->due_ns = now_ns;
    if (kind == LEASE_TRACE)
        p->cost = (struct trace_cost){.n = 0};
    p->spread_pct = NAN;
    return 0;
}

void probes_take(struct probes *p, uint32_t peer, const struct mailbox_ask *ask) {
    struct err e = {0};
    int kind = lease_find(ask->arm.what, &e);
    if (kind >= 0 && ask->method == WIRE_DISARM) {
        lease_disarm(&p->leases[kind], peer);
        reply_ok(p->mailbox, peer, ask->id);
        return;
    }
    if (kind >= 0 && p->n_asks == PROBES_ASKS)
        kind = err_set(&e, ERR_FAILED, "too many requests are waiting");
    if (kind < 0 || probes_arm(p, (enum lease_kind)kind, peer, &ask->arm, &e) != 0) {
        reply_error(p->mailbox, peer, ask->id, &e);
        return;
    }
    p->asks[p->n_asks++] = (struct probes_ask){.peer = peer, .id = ask->id, .kind = (enum lease_kind)kind};
}

static bool probes_is_leaving(void) { return __atomic_load_n(&probes_leaving, __ATOMIC_ACQUIRE) != 0; }

/* Who allocates, as the configuration wants it. */
static void probes_second_alloc(struct probes *p) {
    const struct wire_arm want = {.compiled = false};
    struct err e = {0};
    bool on = p->training->record->config.values[CONFIG_MEMORY_TRACE] != 0;
    if (on == p->alloc_on || probes_is_leaving())
        return;
    if (on && probes_arm(p, LEASE_ALLOC, LEASE_BY_CONFIG, &want, &e) != 0)
        probes_note(p, LEASE_ALLOC, e.text);
    if (!on) {
        lease_disarm(&p->leases[LEASE_ALLOC], LEASE_BY_CONFIG);
        p->next_ns = clock_mono_ns();
    }
    p->alloc_on = on;
}

void probes_second(struct probes *p) {
    const char *text = p->training->record->config.torch_profiling;
    const struct wire_arm want = {.compiled = false};
    struct watch watch;
    struct err e = {0};
    probes_second_alloc(p);
    if (strcmp(p->config, text) == 0)
        return;
    snprintf(p->config, sizeof p->config, "%s", text);
    bool on = watch_parse(&watch, "", text, NULL) == 0 && watch.on;
    if (on && !p->config_on && probes_arm(p, LEASE_TRACE, LEASE_BY_CONFIG, &want, &e) != 0)
        probes_note(p, LEASE_TRACE, e.text);
    if (!on && p->config_on) {
        lease_disarm(&p->leases[LEASE_TRACE], LEASE_BY_CONFIG);
        p->next_ns = clock_mono_ns();
    }
    p->config_on = on;
}

static void probes_expire(struct probes *p, uint64_t now_ns) {
    uint32_t peers[MAILBOX_SLOTS];
    size_t n = 0;
    pthread_mutex_lock(&p->mailbox->lock);
    for (size_t i = 0; i < MAILBOX_SLOTS; i++)
        if (p->mailbox->slots[i].peer)
            peers[n++] = p->mailbox->slots[i].peer;
    pthread_mutex_unlock(&p->mailbox->lock);
    for (size_t i = 0; i < LEASE_KIND_COUNT; i++)
        lease_expire(&p->leases[i], now_ns, peers, n);
}

/* It cannot be armed, for the reason in `e`. */
static bool probes_refuse(struct probes *p, const struct err *e) {
    probes_note(p, p->kind, e->text);
    lease_end(&p->leases[p->kind]);
    return probes_answer(p, p->kind, e);
}

/* ---- traced steps ---- */

static void probes_go(struct probes *p, enum probes_phase phase, uint64_t now_ns) {
    p->phase = phase;
    p->phase_ns = now_ns;
}

static bool probes_submit(struct probes *p, struct worker_job *job) {
    struct err e = {0};
    if (job && worker_submit(p->worker, job, &e) == 0) {
        p->job = job;
        return true;
    }
    probes_note(p, p->kind, job ? e.text : "no memory");
    if (job)
        job->fini(job);
    return false;
}

static void probes_release(struct probes *p) {
    p->hold_ns += p->job ? (double)p->job->held_ns : 0;
    worker_release(p->worker, p->job);
    p->job = NULL;
}

static bool probes_wants(const struct probes *p, enum lease_kind *kind) {
    size_t i = LEASE_KIND_COUNT;
    while (i-- > 0)
        if (p->leases[i].n && probes_is_traced((enum lease_kind)i)) {
            *kind = (enum lease_kind)i;
            return true;
        }
    return false;
}

/* After a traced step: plan the next one. `done`: it was successful. */
static void probes_plan_next(struct probes *p, uint64_t now_ns, bool done) {
    double step = isnan(p->usual_ns) ? (double)(p->end_ns - p->begin_ns) : p->usual_ns;
    double rate = p->training->record->config.values[CONFIG_TRACE_RATE], wanted = step * 100 / rate;
    double every = trace_cost_every_ns(&p->cost, step, rate), cost = trace_cost_ns(&p->cost);
    uint64_t soonest = now_ns + (done ? PROBES_SOONEST_NS : PROBES_RETRY_NS);
    uint64_t rested = p->left_ns + (uint64_t)(PROBES_BETWEEN * step);
    p->spread_pct = done && every > wanted ? 100 * cost / wanted : NAN;
    /* from the planned time, so that a late one does not reduce their number */
    p->due_ns += (uint64_t)(done ? every : 0);
    p->due_ns = p->due_ns > rested ? p->due_ns : rested;
    p->due_ns = p->due_ns > soonest ? p->due_ns : soonest;
    if (p->leases[LEASE_NAN].n) /* a client waits for that */
        p->due_ns = now_ns + (p->kind == LEASE_NAN ? PROBES_RETRY_NS : 0);
    p->training->needs_backward = false;
    probes_go(p, PROBES_IDLE, now_ns);
}

/* Make the worker install the hooks. */
static void probes_enter(struct probes *p, enum module_mode mode, uint64_t now_ns) {
    p->hold_ns = 0;
    if (probes_submit(p, probes_job_enter(mode, p->leases[p->kind].compiled, now_ns + PROBES_JOB_NS))) {
        probes_go(p, PROBES_ENTERS, now_ns);
        return;
    }
    p->training->needs_backward = false;
    p->due_ns = now_ns + CLOCK_NS_PER_S;
}

static void probes_begin_trace(struct probes *p, uint64_t now_ns) {
    struct training *training = p->training;
    double before[PROBES_USUAL];
    p->begin_ns = p->end_ns = now_ns;
    p->was_search = false;
    p->usual_ns = NAN;
    if (p->kind == LEASE_NAN) {
        probes_enter(p, MODULE_MODE_NUMBERS, now_ns);
        return;
    }
    if (!training->reports || training->steps.count == 0) {
        probes_note(p, p->kind,
                    training->reports   ? "no training step has ended since the agent was loaded"
                    : training->note[0] ? training->note
                                        : "no training steps seen");
        p->due_ns = now_ns + CLOCK_NS_PER_S;
        return;
    }
    /* ends of backward passes are needed: they are reported from now on */
    training->needs_backward = true;
    training_take(p->training);
    if (!training->backward.on && now_ns - p->due_ns < PROBES_BACKWARD_NS)
        return;
    size_t n = training_durations(p->training, p->left_ns, now_ns, before, PROBES_USUAL);
    p->usual_ns = trace_cost_median(before, n);
    probes_enter(p, MODULE_MODE_TIMES, now_ns);
}

static bool probes_end_enter(struct probes *p, uint64_t now_ns) {
    struct err e = {0};
    enum worker_end end = worker_get_end(p->worker, p->job);
    if (end == WORKER_PENDING)
        return false;
    bool refused = probes_job_is_refused(p->job);
    err_set(&e, ERR_FAILED, "%s", p->job->why);
    probes_release(p);
    if (end == WORKER_DONE) {
        p->notes[p->kind][0] = '\0';
        if (p->kind == LEASE_NAN)
            probes_nonfinite_begin(p);
        else
            module_hooks_open(MODULE_MODE_TIMES, 1, p->training->steps.per_step);
        probes_go(p, PROBES_TRACING, now_ns);
        return probes_answer(p, p->kind, NULL);
    }
    p->end_ns = p->begin_ns = now_ns;
    probes_go(p, PROBES_LEAVES, now_ns); /* one of them may be installed */
    if (refused)
        return probes_refuse(p, &e);
    probes_note(p, p->kind, e.text);
    return false;
}

static void probes_put(struct probes *p, const union ring_value *row) {
    record_append(p->training->record, RING_TRACE, row);
}

/* The rows of a step: itself, and each called module. */
static void probes_write(struct probes *p) {
    const struct module_sum *sums;
    const struct probes_name *names;
    double epoch_s = clock_mono_to_epoch_s();
    size_t n = probes_job_get(p->job, &sums, &names);
    union ring_value v[RING_TRACE_COUNT];
    v[RING_TRACE_TIMESTAMP].f = epoch_s + (double)p->begin_ns / 1e9;
    v[RING_TRACE_STEP].i = p->step < 0 ? RING_INT_NULL : p->step;
    v[RING_TRACE_SEQ].i = 0;
    v[RING_TRACE_OPERATION].s = "step";
    v[RING_TRACE_MODULE].s = NULL;
    v[RING_TRACE_STAGE].i = RING_STAGE_STEP;
    v[RING_TRACE_DURATION_MS].f = (double)(p->end_ns - p->begin_ns) / 1e6;
    v[RING_TRACE_ALLOCATED_MB].f = v[RING_TRACE_MAX_ALLOCATED_MB].f = v[RING_TRACE_CACHED_MB].f = NAN;
    v[RING_TRACE_CALLS].i = 1;
    v[RING_TRACE_BYTES].i = RING_INT_NULL;
    probes_put(p, v);
    for (size_t i = 0; i < n; i++) {
        bool known = names[i].type[0] != '\0';
        v[RING_TRACE_SEQ].i = (int64_t)i + 1;
        v[RING_TRACE_OPERATION].s = known ? names[i].type : "?";
        v[RING_TRACE_MODULE].s = known ? names[i].path : NULL;
        v[RING_TRACE_STAGE].i = RING_STAGE_FORWARD;
        v[RING_TRACE_DURATION_MS].f = sums[i].calls ? (double)sums[i].forward_ns / 1e6 : NAN;
        v[RING_TRACE_CALLS].i = sums[i].calls;
        v[RING_TRACE_BYTES].i = sums[i].bytes < 0 ? RING_INT_NULL : sums[i].bytes;
        probes_put(p, v);
        if (!sums[i].backwards)
            continue;
        v[RING_TRACE_STAGE].i = RING_STAGE_BACKWARD;
        v[RING_TRACE_DURATION_MS].f = (double)sums[i].backward_ns / 1e6;
        v[RING_TRACE_CALLS].i = sums[i].backwards;
        v[RING_TRACE_BYTES].i = RING_INT_NULL;
        probes_put(p, v);
    }
}

/* The hooks are removed: record the cost of that step. */
static void probes_count(struct probes *p, bool done) {
    uint64_t within, outside;
    module_hooks_count(&within, &outside);
    if (p->kind == LEASE_TRACE && done)
        trace_cost_add(&p->cost, &(struct trace_cost_step){.step_ns = (double)(p->end_ns - p->begin_ns),
                                                           .usual_ns = p->usual_ns,
                                                           .own_ns = (double)module_hooks_calls()->own_ns,
                                                           .hold_ns = p->hold_ns,
                                                           .within = (double)within,
                                                           .outside = (double)outside});
    else if (p->kind == LEASE_TRACE)
        trace_cost_add_gil(&p->cost, p->hold_ns);
}

/* The hooks are removed, and the called modules have names. */
static void probes_finish(struct probes *p, uint64_t now_ns) {
    struct lease *l = &p->leases[p->kind];
    bool done = p->end_ns > p->begin_ns;
    if (done)
        probes_write(p);
    probes_release(p);
    probes_count(p, done);
    p->looks[p->kind] += done;
    p->left_ns = now_ns;
    if (done && l->n && l->steps_left > 0 && --l->steps_left == 0)
        lease_end(l);
    probes_plan_next(p, now_ns, done);
}

/* The same for a search, once the step of its finding is known. */
static void probes_finish_nonfinite(struct probes *p, uint64_t now_ns) {
    if (!probes_nonfinite_end(p, now_ns, now_ns - p->phase_ns > PROBES_NUMBER_NS))
        return;
    probes_release(p);
    p->left_ns = now_ns;
    lease_end(&p->leases[LEASE_NAN]);
    probes_plan_next(p, now_ns, false);
}

/* Hooks are being removed; after that there are names. */
static void probes_end_leave(struct probes *p, uint64_t now_ns) {
    bool named = p->was_search || p->end_ns > p->begin_ns;
    if (!p->job) {
        module_window_close();
        probes_submit(p, probes_job_leave(named ? module_hooks_calls() : NULL, p->step, p->was_search,
                                          now_ns + (p->was_search ? PROBES_NONFINITE_NS : PROBES_JOB_NS)));
        return;
    }
    enum worker_end end = worker_get_end(p->worker, p->job);
    if (end == WORKER_DONE && p->was_search)
        probes_finish_nonfinite(p, now_ns);
    else if (end == WORKER_DONE)
        probes_finish(p, now_ns);
    if (end != WORKER_FAILED)
        return;
    probes_note(p, p->kind, p->job->why);
    probes_release(p);
    if (!module_hooks_are_in())
        probes_plan_next(p, now_ns, false);
}

static void probes_end_trace(struct probes *p, uint64_t now_ns) {
    bool done = module_window_get() == MODULE_WINDOW_DONE, is_search = p->kind == LEASE_NAN;
    /* closed: by the agent that was to leave */
    bool given_up = p->leases[p->kind].n == 0 || (!is_search && now_ns - p->phase_ns > PROBES_STEP_NS) ||
                    module_window_get() == MODULE_WINDOW_CLOSED;
    if (is_search && !done)
        probes_nonfinite_wait(p, now_ns);
    if (!done && !given_up)
        return;
    p->begin_ns = p->end_ns = now_ns;
    p->was_search = is_search;
    if (done && !is_search && module_calls_finish(module_hooks_calls()))
        module_window_span(&p->begin_ns, &p->end_ns);
    training_take(p->training); /* the end of that step is reported by now */
    p->step = training_step_at(p->training, p->end_ns);
    probes_go(p, PROBES_LEAVES, now_ns);
    probes_end_leave(p, now_ns);
}

/* The end of a traced step must be noticed soon. */
static uint64_t probes_next_poll_ns(const struct probes *p, uint64_t now_ns) {
    uint64_t begin_ns = now_ns, end_ns, least = CLOCK_NS_PER_MS, latest = now_ns + PROBES_POLL_NS;
    if (isnan(p->usual_ns))
        return latest;
    if (module_window_get() == MODULE_WINDOW_OPEN)
        module_window_span(&begin_ns, &end_ns);
    if (p->usual_ns / PROBES_FINE > (double)least)
        least = (uint64_t)(p->usual_ns / PROBES_FINE);
    uint64_t over = begin_ns + (uint64_t)p->usual_ns, next = over > now_ns + least ? over : now_ns + least;
    return next < latest ? next : latest;
}

static void probes_plan_poll(struct probes *p, uint64_t now_ns) {
    enum lease_kind kind;
    bool yields = p->phase == PROBES_IDLE;
    p->next_ns = now_ns + (yields ? PROBES_REST_NS : PROBES_POLL_NS);
    if (p->phase == PROBES_TRACING)
        p->next_ns = probes_next_poll_ns(p, now_ns);
    if (torch_profiler_is_busy(&p->profiler))
        p->next_ns = now_ns + PROBES_POLL_NS;
    else if (yields && !probes_wants(p, &kind))
        p->next_ns = UINT64_MAX;
    else if (yields && p->due_ns <= now_ns)
        p->next_ns = now_ns + PROBES_POLL_NS;
    else if (yields && p->due_ns < p->next_ns)
        p->next_ns = p->due_ns;
    if (p->alloc.next_ns < p->next_ns)
        p->next_ns = p->alloc.next_ns;
    if (p->leases[LEASE_PHASES].n && p->next_ns > now_ns + PROBES_REST_NS)
        p->next_ns = now_ns + PROBES_REST_NS;
}

/* It has its own phases, beside traced steps. True if a client was answered. */
static bool probes_poll_profiler(struct probes *p, bool leaving, uint64_t now_ns) {
    struct err e = {0};
    struct lease *l = &p->leases[LEASE_PROFILER];
    enum torch_profiler_end end = torch_profiler_poll(&p->profiler, l->n > 0 && !leaving, now_ns, &e);
    if (end == TORCH_PROFILER_GOES_ON)
        return p->profiler.phase == TORCH_PROFILER_RUNS && p->n_asks &&
               probes_answer(p, LEASE_PROFILER, NULL);
    p->looks[LEASE_PROFILER] = p->profiler.seen;
    lease_end(l);
    return probes_answer(p, LEASE_PROFILER, end == TORCH_PROFILER_REFUSED ? &e : NULL);
}

/* The same for who allocates. */
static bool probes_poll_alloc(struct probes *p, bool leaving, uint64_t now_ns) {
    struct err e = {0};
    struct lease *l = &p->leases[LEASE_ALLOC];
    enum alloc_trace_end end = alloc_trace_poll(&p->alloc, l->n > 0 && !leaving, now_ns, &e);
    p->looks[LEASE_ALLOC] = (int64_t)p->alloc.seen.samples;
    if (end == ALLOC_TRACE_GOES_ON)
        return p->alloc.phase == ALLOC_TRACE_RUNS && p->n_asks && probes_answer(p, LEASE_ALLOC, NULL);
    lease_end(l);
    p->alloc_on = p->alloc_on && !leaving; /* the configuration may arm it again if the agent stays */
    return probes_answer(p, LEASE_ALLOC, end == ALLOC_TRACE_REFUSED ? &e : NULL);
}

/* Forward and backward of every step: watched from the next time on that reports are taken. */
static bool probes_poll_phases(struct probes *p, bool leaving) {
    p->training->wants_phases = p->leases[LEASE_PHASES].n > 0 && !leaving;
    p->looks[LEASE_PHASES] = (int64_t)(p->training->phased - p->phased);
    return p->n_asks && probes_answer(p, LEASE_PHASES, NULL);
}

void probes_lose(struct probes *p) {
    alloc_trace_lose(&p->alloc);
    p->next_ns = clock_mono_ns();
}

bool probes_poll(struct probes *p) {
    uint64_t now_ns = clock_mono_ns();
    bool answered = false;
    probes_expire(p, now_ns);
    uint32_t farewells = __atomic_load_n(&probes_farewells, __ATOMIC_ACQUIRE);
    bool leaving = probes_is_leaving() || farewells != p->farewells;
    p->farewells = farewells;
    if (p->phase == PROBES_IDLE && !leaving && now_ns >= p->due_ns && probes_wants(p, &p->kind))
        probes_begin_trace(p, now_ns);
    else if (p->phase == PROBES_IDLE && (leaving || p->leases[LEASE_TRACE].n == 0))
        p->training->needs_backward = false; /* a trace that waited for them has lost its lease */
    else if (p->phase == PROBES_ENTERS)
        answered = probes_end_enter(p, now_ns);
    else if (p->phase == PROBES_TRACING)
        probes_end_trace(p, now_ns);
    else if (p->phase == PROBES_LEAVES)
        probes_end_leave(p, now_ns);
    if (torch_profiler_is_busy(&p->profiler))
        answered = probes_poll_profiler(p, leaving, now_ns) || answered;
    if (alloc_trace_is_busy(&p->alloc))
        answered = probes_poll_alloc(p, leaving, now_ns) || answered;
    answered = probes_poll_phases(p, leaving) || answered;
    for (size_t i = 0; i < LEASE_KIND_COUNT; i++)
        if (p->n_asks && i != LEASE_ALLOC &&
            (p->leases[i].n == 0 || now_ns - p->leases[i].since_ns > PROBES_ANSWER_NS || p->looks[i] > 0))
            answered = probes_answer(p, (enum lease_kind)i, NULL) || answered;
    probes_plan_poll(p, now_ns);
    return answered;
}

uint64_t probes_next_ns(const struct probes *p) { return p->next_ns; }

bool probes_waits(const struct probes *p) { return p->job != NULL; }

/* ---- status ---- */

void probes_publish(const struct probes *p) {
    struct mailbox_status *st = &p->mailbox->status;
    uint64_t now_ns = clock_mono_ns();
    pthread_mutex_lock(&p->mailbox->lock);
    st->n_leases = 0;
    for (size_t i = 0; i < LEASE_KIND_COUNT; i++) {
        const struct lease *l = &p->leases[i];
        struct mailbox_lease *to = &st->leases[st->n_leases];
        bool going = p->phase != PROBES_IDLE && p->kind == i && module_hooks_are_in();
        const char *note = p->notes[i], *file = "";
        if (i == LEASE_PROFILER) {
            going = torch_profiler_is_in();
            note = p->profiler.note;
            file = p->profiler.phase == TORCH_PROFILER_IDLE ? p->profiler.file : "";
        }
        if (i == LEASE_ALLOC) {
            going = alloc_trace_is_in() && alloc_trace_is_busy(&p->alloc);
            note = p->alloc.note[0] ? p->alloc.note : note;
        }
        if (i == LEASE_PHASES) { /* without an owner they may be known, too: that is not armed */
            going = l->n && p->training->backward.on;
            note = l->n ? p->training->note : "";
        }
        if (!l->n && !going && !note[0])
            continue;
        st->n_leases++;
        uint64_t next = lease_next_ns(l);
        to->lease = (struct model_lease){
            .what = lease_name((enum lease_kind)i),
            .held_s = l->n ? (double)(now_ns - l->since_ns) / 1e9 : NAN,
            .left_s = next == LEASE_FOREVER ? NAN : (double)(next - now_ns) / 1e9,
            .looks = p->looks[i],
            .cost_pct = i == LEASE_TRACE && l->n   ? trace_cost_pct(&p->cost, (double)(now_ns - l->since_ns))
                        : i == LEASE_ALLOC && l->n ? alloc_trace_pct(&p->alloc, now_ns)
                        : i == LEASE_PHASES        ? st->of.phases_pct
                                                   : NAN,
            .armed = going};
        for (size_t k = 0; k < l->n; k++)
            if (l->owners[k] == LEASE_BY_CONFIG)
                to->lease.by_config = true;
            else
                to->lease.owners++;
        snprintf(to->note, sizeof to->note, "%s", note);
        snprintf(to->file, sizeof to->file, "%s", file);
        if (i == LEASE_TRACE && l->n && !to->note[0] && !isnan(p->spread_pct))
            snprintf(to->note, sizeof to->note,
                     "fewer steps than probing.trace_rate are traced: those would take %.2g %% of the time",
                     p->spread_pct);
    }
    pthread_mutex_unlock(&p->mailbox->lock);
}

/* ---- leaving ---- */

void probes_stay(void) {
    __atomic_store_n(&probes_leaving, 0, __ATOMIC_RELEASE);
    alloc_trace_stay();
}

int probes_leave(struct worker *w, struct err *e) {
    uint64_t until = clock_mono_ns() + PROBES_LEAVE_NS;
    __atomic_store_n(&probes_leaving, 1, __ATOMIC_RELEASE);
    __atomic_add_fetch(&probes_farewells, 1, __ATOMIC_ACQ_REL);
    module_window_close();
    if (torch_profiler_leave(w, e) != 0 || alloc_trace_leave(w, e) != 0)
        return -1;
    if (!module_hooks_are_in())
        return 0;
    struct worker_job *job = probes_job_leave(NULL, -1, false, until);
    if (!job || worker_submit(w, job, e) != 0) {
        if (job)
            job->fini(job);
        return job ? -1 : err_set(e, ERR_FAILED, "no memory to take hooks out");
    }
    while (worker_get_end(w, job) == WORKER_PENDING && clock_mono_ns() < until + PROBES_LEAVE_NS) {
        struct timespec pause = {.tv_nsec = (long)CLOCK_NS_PER_MS};
        nanosleep(&pause, NULL);
    }
    bool out = worker_get_end(w, job) == WORKER_DONE;
    worker_release(w, job);
    return out ? 0
               : err_set(e, ERR_FAILED,
                         "hooks in torch's modules cannot be removed before the GIL is acquired: try again "
                         "later");
}
