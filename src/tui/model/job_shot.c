/* SPDX-License-Identifier: Apache-2.0 */
/* job_shot: see job_shot.h. */
#include "tui/model/job_shot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/fleet/pace.h"

/* A step is late when it has taken so much longer than the one before it, and not just a moment. */
#define JOB_SHOT_LATE 3.0
#define JOB_SHOT_LATE_S 10.0

#define JOB_SHOT_WHY 256 /* bytes of what is said of a host */

/* ---- a copy of the fleet ---- */

static void *job_shot_copy(const void *from, size_t n, size_t size) {
    void *to = malloc((n + 1) * size);
    if (to && n)
        memcpy(to, from, n * size);
    return to;
}

static const char *job_shot_text(struct job_shot *s, const char *text) {
    return arena_strdup(&s->arena, text);
}

/* What the functions of stack_classes.h read; its texts go to the arena. */
static int job_shot_put_stacks(struct job_shot *s, const struct stack_classes *from) {
    struct stack_classes *to = &s->stacks;
    to->nodes = job_shot_copy(from->nodes, from->n_nodes, sizeof *from->nodes);
    to->classes = job_shot_copy(from->classes, from->n_classes, sizeof *from->classes);
    to->ranks = job_shot_copy(from->ranks, from->n_ranks, sizeof *from->ranks);
    if (!to->nodes || !to->classes || !to->ranks)
        return -1;
    to->n_nodes = from->n_nodes;
    to->n_classes = from->n_classes;
    to->n_ranks = from->n_ranks;
    for (size_t i = 0; i < to->n_nodes; i++) {
        to->nodes[i].func = job_shot_text(s, to->nodes[i].func ? to->nodes[i].func : "");
        to->nodes[i].file = job_shot_text(s, to->nodes[i].file ? to->nodes[i].file : "");
    }
    return 0;
}

static void job_shot_put_classes(struct job_shot *s, const struct fleet *f) {
    for (size_t i = 0; i < s->stacks.n_classes; i++)
        s->classes[i] = (struct job_shot_class){.since_s = s->at_s - f->classes[i].since,
                                                .is_majority = f->classes[i].is_majority};
}

/* The operation alone: "all_reduce" of "all_reduce of torch.distributed, group of 8". */
static const char *job_shot_operation(struct job_shot *s, const struct fleet_rank *r) {
    if (r->state != FLEET_COLLECTIVE || !r->wait_what)
        return NULL;
    return arena_strndup(&s->arena, r->wait_what, strcspn(r->wait_what, " ,("));
}

static struct job_shot_rank job_shot_rank_of(struct job_shot *s, const struct fleet *f,
                                             const struct fleet_rank *r) {
    bool is_missing = r->state == FLEET_MISSING, has_class = r->class_number < s->stacks.n_classes;
    double took_s = r->step_ms / 1e3;
    struct job_shot_rank out = {
        .rank = r->rank,
        .host = is_missing || r->node >= f->n_nodes ? -1 : (int32_t)r->node,
        .pid = r->pid,
        .state = r->state,
        .is_late = s->at_s - r->step_at > fmax(JOB_SHOT_LATE * took_s, JOB_SHOT_LATE_S),
        .since_s = s->at_s - r->since,
        .what = job_shot_operation(s, r),
        .step = r->step == REPORT_NO_INT ? -1 : r->step,
        .step_ms = r->step_ms,
        .own_ms = r->own_ms,
        .lag_ms = r->lag_ms,
        .role = r->role,
        .shift = r->shift,
        .cpu_pct = r->cpu_pct,
        .rss_bytes = r->rss_bytes == REPORT_NO_INT ? -1 : r->rss_bytes,
        .gpu_util = r->gpu_util,
        .gpu_mem_mb = r->gpu_mem_mb,
        .leaf = has_class ? s->stacks.classes[r->class_number] : STACK_CLASSES_ROOT,
        .class_number = has_class ? (int32_t)r->class_number : -1,
        .has_agent = r->agent,
        .note = job_shot_text(s, r->note),
    };
    /* what was read before its host fell silent need not be so now; that it has finished those steps stays true */
    if (r->is_silent) {
        out.is_late = false;
        out.since_s = out.step_ms = out.own_ms = out.lag_ms = NAN;
        out.cpu_pct = out.gpu_util = out.gpu_mem_mb = NAN;
        out.rss_bytes = -1;
    }
    return out;
}

/* Why there is no news of a host's ranks, without what a terminal would obey: the words may be the host's. */
static const char *job_shot_silence(struct job_shot *s, const struct fleet_node *n) {
    char why[JOB_SHOT_WHY];
    if (!n->is_silent)
        return NULL;
    text_sanitize(why, sizeof why,
                  n->note             ? n->note
                  : isnan(n->seen_at) ? "it has not answered yet"
                                      : "its ranks are not known");
    return job_shot_text(s, why);
}

static int job_shot_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Steps a second of the rank in the middle of those that go on; NAN: none does. */
static double job_shot_rate(const struct job_shot *s) {
    double *ms = malloc((s->n_ranks + 1) * sizeof *ms), rate = NAN;
    size_t n = 0;
    for (size_t i = 0; ms && i < s->n_ranks; i++)
        if (s->ranks[i].step_ms > 0 && !s->ranks[i].is_late)
            ms[n++] = s->ranks[i].step_ms;
    if (n) {
        qsort(ms, n, sizeof *ms, job_shot_compare);
        rate = 1e3 / ms[n / 2];
    }
    free(ms);
    return rate;
}

/* Whether its stack shows that it may wait for others: in a collective; in a backward pass, as those of
 * DistributedDataParallel are not in Python; or for its device, which may be in one. */
static bool job_shot_may_wait(const struct fleet_rank *r) {
    bool is_alive = r->state == FLEET_COMPUTES || r->state == FLEET_WAITS;
    return r->state == FLEET_COLLECTIVE || r->state == FLEET_GPU ||
           (is_alive && r->stack && r->stack->in_backward);
}

/* A rank that waits on the device's result looks like one that computes: with NCCL only that most of them stand still shows
 * it. One that ends steps does not, though it is seen on the same line each time. One rank alone waits for no other. */
static double job_shot_still(const struct job_shot *s, const struct fleet *f) {
    if (f->n_ranks < 2 && f->world < 2)
        return 0;
    double *times = malloc((f->n_ranks + 1) * sizeof *times), longest = 0;
    size_t n = 0;
    for (size_t i = 0; times && i < f->n_ranks; i++) {
        const struct job_shot_rank *r = &s->ranks[i];
        double still_s = fmin(r->since_s, s->at_s - f->ranks[i].step_at);
        if (isnan(r->since_s))
            continue;
        if (job_shot_may_wait(&f->ranks[i]))
            longest = fmax(longest, still_s);
        if (r->class_number >= 0)
            times[n++] = still_s;
    }
    if (n) {
        qsort(times, n, sizeof *times, job_shot_compare);
        longest = fmax(longest, times[(n - 1) / 2]);
    }
    free(times);
    return longest;
}

struct job_shot *job_shot_new(const struct fleet *f) {
    struct job_shot *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    arena_init(&s->arena, FLEET_BYTES);
    s->job = job_shot_text(s, f->job);
    s->note = job_shot_text(s, f->note);
    s->world = f->world;
    s->at_s = f->taken_at;
    s->moment = NAN;
    s->hosts = arena_calloc(&s->arena, f->n_nodes + 1, sizeof *s->hosts);
    s->ranks = arena_calloc(&s->arena, f->n_ranks + 1, sizeof *s->ranks);
    s->classes = arena_calloc(&s->arena, f->stacks.n_classes + 1, sizeof *s->classes);
    if (!s->hosts || !s->ranks || !s->classes || job_shot_put_stacks(s, &f->stacks) != 0) {
        job_shot_free(s);
        return NULL;
    }
    s->n_hosts = f->n_nodes;
    for (size_t i = 0; i < f->n_nodes; i++) {
        const struct fleet_node *n = &f->nodes[i];
        s->hosts[i] = (struct job_shot_host){.name = job_shot_text(s, n->host ? n->host : ""),
                                             .is_here = n->via && strcmp(n->via, "local") == 0,
                                             .cost_pct = n->cost_pct,
                                             .silent = job_shot_silence(s, n)};
    }
    job_shot_put_classes(s, f);
    s->n_ranks = f->n_ranks;
    for (size_t i = 0; i < f->n_ranks; i++)
        s->ranks[i] = job_shot_rank_of(s, f, &f->ranks[i]);
    s->rate = job_shot_rate(s);
    s->still_s = job_shot_still(s, f);
    s->fan = arena_calloc(&s->arena, f->n_fan + 1, sizeof *s->fan);
    if (s->fan && f->n_fan) {
        memcpy(s->fan, f->fan, f->n_fan * sizeof *s->fan);
        s->n_fan = f->n_fan;
    }
    struct fleet_verdicts slow = {.n = 0};
    if (pace_put_verdicts(f, &slow) == 0)
        job_shot_put_verdicts(s, &slow);
    fleet_verdicts_fini(&slow);
    if (s->arena.failed) {
        job_shot_free(s);
        return NULL;
    }
    return s;
}

static bool job_shot_is_awaited(const struct fleet_verdict *v, const struct job_shot_rank *r) {
    return v->code >= FLEET_CODE_WAITS_FOR && v->code < FLEET_CODE_ALL_ALIKE && r->state != FLEET_GONE &&
           r->state != FLEET_MISSING && rank_set_has(&v->ranks, r->rank);
}

void job_shot_put_verdicts(struct job_shot *s, const struct fleet_verdicts *v) {
    s->is_judged |= v->n > 0;
    const struct job_shot_verdict *before = s->verdicts;
    size_t n_before = s->n_verdicts;
    struct job_shot_verdict *verdicts =
        v->n ? arena_calloc(&s->arena, v->n + n_before, sizeof *s->verdicts) : NULL;
    if (!verdicts)
        return;
    s->verdicts = verdicts;
    s->n_verdicts = 0;
    for (size_t i = 0; s->verdicts && i < v->n; i++) {
        const struct fleet_verdict *from = &v->items[i];
        struct job_shot_verdict *to = &s->verdicts[s->n_verdicts];
        if (from->level < VERDICT_WARN)
            continue;
        *to = (struct job_shot_verdict){.code = fleet_verdict_code_name(from->code),
                                        .level = from->level == VERDICT_BAD ? JOB_SHOT_BAD : JOB_SHOT_WARNING,
                                        .brief = job_shot_text(s, from->brief),
                                        .text = job_shot_text(s, from->text)};
        if (!to->brief || !to->text || rank_set_join(&to->ranks, &from->ranks) != 0) {
            rank_set_fini(&to->ranks);
            break;
        }
        s->n_verdicts++;
        for (size_t k = 0; k < s->n_ranks; k++)
            s->ranks[k].is_awaited |= job_shot_is_awaited(from, &s->ranks[k]);
    }
    if (n_before)
        memcpy(s->verdicts + s->n_verdicts, before, n_before * sizeof *before);
    s->n_verdicts += n_before;
}

size_t job_shot_bytes(const struct job_shot *s) {
    const struct stack_classes *c = &s->stacks; /* a copy: it has as many as it can hold */
    return sizeof *s + s->arena.used + c->n_nodes * sizeof *c->nodes + c->n_classes * sizeof *c->classes +
           c->n_ranks * sizeof *c->ranks;
}

void job_shot_free(struct job_shot *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->n_verdicts; i++)
        rank_set_fini(&s->verdicts[i].ranks);
    stack_classes_fini(&s->stacks);
    arena_fini(&s->arena);
    free(s);
}

/* ---- what is in it ---- */

const struct job_shot_rank *job_shot_find(const struct job_shot *s, int32_t rank) {
    size_t low = 0, high = s ? s->n_ranks : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->ranks[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return s && low < s->n_ranks && s->ranks[low].rank == rank ? &s->ranks[low] : NULL;
}

const struct job_shot_rank *job_shot_find_pid(const struct job_shot *s, pid_t pid) {
    for (size_t i = 0; s && pid > 0 && i < s->n_ranks; i++)
        if (s->ranks[i].pid == pid && job_shot_is_here(s, &s->ranks[i]))
            return &s->ranks[i];
    return NULL;
}

static const struct job_shot_host *job_shot_host(const struct job_shot *s, const struct job_shot_rank *r) {
    return r->host >= 0 && (size_t)r->host < s->n_hosts ? &s->hosts[r->host] : NULL;
}

const char *job_shot_host_name(const struct job_shot *s, const struct job_shot_rank *r) {
    const struct job_shot_host *h = job_shot_host(s, r);
    return h && *h->name ? h->name : NULL;
}

bool job_shot_is_here(const struct job_shot *s, const struct job_shot_rank *r) {
    const struct job_shot_host *h = job_shot_host(s, r);
    return h && h->is_here;
}

size_t job_shot_silent_hosts(const struct job_shot *s) {
    size_t n = 0;
    for (size_t i = 0; s && i < s->n_hosts; i++)
        n += s->hosts[i].silent != NULL;
    return n;
}

int32_t job_shot_class_ranks(const struct job_shot *s, int32_t class_number) {
    if (class_number < 0 || (size_t)class_number >= s->stacks.n_classes)
        return 0;
    return (int32_t)s->stacks.nodes[s->stacks.classes[class_number]].n_here;
}
