/* SPDX-License-Identifier: Apache-2.0 */
/* report_reading: see report_reading.h. */
#include "client/fleet/report_reading.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/model.h"
#include "client/jobs/rank_set.h"

#define REPORT_READING_W 1e6 /* more than any host has */

struct report_state report_reading_put(const struct rank_reading *r, double now_s) {
    const struct rank_state *s = &r->state;
    struct report_state out = {.rank = REPORT_NO_INT,
                               .pid = REPORT_NO_INT,
                               .uptime_s = NAN,
                               .age_s = now_s - s->at_s,
                               .gone = s->gone,
                               .state = report_letter(s->state),
                               .traced = s->traced,
                               .still_s = s->still_s,
                               .cpu_ns = (int64_t)s->cpu_ns,
                               .thread_ns = (int64_t)s->thread_ns,
                               .bytes = (int64_t)s->bytes,
                               .has_stack = s->has_stack,
                               .wchan = s->wchan,
                               .why = s->why,
                               .doing = s->doing,
                               .phase = s->phase,
                               .collective = s->collective,
                               .waits_for = s->waits_for,
                               .holder = s->holder,
                               .leaf_func = s->leaf.func,
                               .leaf_file = s->leaf.file,
                               .leaf_line = s->leaf.line,
                               .own_func = s->own.func,
                               .own_file = s->own.file,
                               .own_line = s->own.line,
                               .at_func = s->at.func,
                               .at_file = s->at.file,
                               .at_line = s->at.line,
                               .holder_func = s->holder_at.func,
                               .holder_file = s->holder_at.file,
                               .holder_line = s->holder_at.line,
                               .in_backward = s->in_backward,
                               .wait = (int64_t)s->wait,
                               .left_s = s->left_s,
                               .gc = s->gc,
                               .has_gil = s->has_gil,
                               .needs_gil = s->needs_gil,
                               .blocked = r->blocked,
                               .answer = (int64_t)r->answer,
                               .answer_why = r->why,
                               .asked_age_s = now_s - r->asked_s,
                               .gpu_util = r->has_gpu ? r->gpu_util_pct : NAN,
                               .gpu_power_w = r->has_gpu ? r->gpu_power_w : NAN};
    memcpy(&out.stack, &s->stack, sizeof out.stack);
    return out;
}

struct report_group report_reading_put_group(const struct rank_group *g) {
    return (struct report_group){.rank = REPORT_NO_INT,
                                 .pg = g->pg,
                                 .desc = g->desc,
                                 .backend = g->backend,
                                 .ranks = g->ranks,
                                 .size = g->size,
                                 .my_rank = g->my_rank,
                                 .enqueued = g->enqueued,
                                 .completed = g->completed,
                                 .p2p = g->p2p,
                                 .op = g->op,
                                 .dtype = g->dtype,
                                 .bytes = g->bytes,
                                 .since_s = g->since_s};
}

struct report_ras report_reading_put_ras(const struct ras_fact *f) {
    return (struct report_ras){.rank = f->rank,
                               .state = (int64_t)f->state,
                               .pid = f->pid,
                               .host = f->host,
                               .behind = f->behind,
                               .op = f->op,
                               .note = f->note};
}

static void report_reading_copy(char *to, size_t size, const char *text) {
    snprintf(to, size, "%s", text ? text : "");
}

static int64_t report_reading_within(int64_t v, int64_t low, int64_t high, int64_t otherwise) {
    return v >= low && v <= high ? v : otherwise;
}

static struct rank_place report_reading_place(const char *func, const char *file, int64_t line) {
    struct rank_place p = {.line = (int32_t)report_reading_within(line, 0, INT32_MAX, 0)};
    report_reading_copy(p.func, sizeof p.func, func);
    report_reading_copy(p.file, sizeof p.file, file);
    return p;
}

void report_reading_take(const struct report_state *row, double now_s, struct rank_reading *out) {
    struct rank_state *s = &out->state;
    *out = (struct rank_reading){.blocked = row->blocked == 1};
    rank_state_init(s);
    s->at_s = isnan(row->age_s) ? now_s : now_s - fmax(0, row->age_s);
    s->gone = row->gone == 1;
    s->state = row->state && report_letter(row->state[0]) ? row->state[0] : '?';
    s->traced = row->traced == 1;
    s->still_s = row->still_s >= 0 ? row->still_s : NAN;
    s->cpu_ns = (uint64_t)report_reading_within(row->cpu_ns, 0, INT64_MAX, 0);
    s->thread_ns = (uint64_t)report_reading_within(row->thread_ns, 0, INT64_MAX, 0);
    s->bytes = (uint64_t)report_reading_within(row->bytes, 0, INT64_MAX, 0);
    s->has_stack = row->has_stack == 1;
    memcpy(&s->stack, &row->stack, sizeof s->stack);
    report_reading_copy(s->wchan, sizeof s->wchan, row->wchan);
    report_reading_copy(s->why, sizeof s->why, row->why);
    report_reading_copy(s->doing, sizeof s->doing, row->doing);
    report_reading_copy(s->phase, sizeof s->phase, row->phase);
    report_reading_copy(s->collective, sizeof s->collective, row->collective);
    report_reading_copy(s->waits_for, sizeof s->waits_for, row->waits_for);
    report_reading_copy(s->holder, sizeof s->holder, row->holder);
    s->leaf = report_reading_place(row->leaf_func, row->leaf_file, row->leaf_line);
    s->own = report_reading_place(row->own_func, row->own_file, row->own_line);
    s->at = report_reading_place(row->at_func, row->at_file, row->at_line);
    s->holder_at = report_reading_place(row->holder_func, row->holder_file, row->holder_line);
    s->in_backward = row->in_backward == 1;
    s->wait =
        (enum model_wait_kind)report_reading_within(row->wait, 0, MODEL_WAIT_UNRECORDED, MODEL_WAIT_UNKNOWN);
    s->left_s = row->left_s >= 0 ? row->left_s : NAN;
    s->gc = (int8_t)report_reading_within(row->gc, 0, 1, MODEL_UNKNOWN);
    s->has_gil = row->has_gil == 1;
    s->needs_gil = row->needs_gil == 1;
    out->answer =
        (enum rank_answer)report_reading_within(row->answer, RANK_NOT_ASKED, RANK_ANSWERED, RANK_NOT_ASKED);
    report_reading_copy(out->why, sizeof out->why, row->answer_why);
    out->asked_s = isnan(row->asked_age_s) ? now_s : now_s - fmax(0, row->asked_age_s);
    out->has_gpu = row->gpu_util >= 0 && row->gpu_util <= 100;
    out->gpu_util_pct = out->has_gpu ? row->gpu_util : NAN;
    out->gpu_power_w = row->gpu_power_w >= 0 && row->gpu_power_w < REPORT_READING_W ? row->gpu_power_w : NAN;
}

void report_reading_take_group(const struct report_group *row, struct rank_group *out) {
    *out = (struct rank_group){.size = (int32_t)report_reading_within(row->size, 0, RANK_SET_LIMIT, -1),
                               .my_rank = (int32_t)report_reading_within(row->my_rank, 0, RANK_SET_LIMIT, -1),
                               .enqueued = report_reading_within(row->enqueued, 0, INT64_MAX, -1),
                               .completed = report_reading_within(row->completed, 0, INT64_MAX, -1),
                               .p2p = row->p2p == 1,
                               .bytes = report_reading_within(row->bytes, 0, INT64_MAX, -1),
                               .since_s = row->since_s >= 0 ? row->since_s : NAN};
    report_reading_copy(out->pg, sizeof out->pg, row->pg);
    report_reading_copy(out->desc, sizeof out->desc, row->desc);
    report_reading_copy(out->backend, sizeof out->backend, row->backend);
    report_reading_copy(out->ranks, sizeof out->ranks, row->ranks);
    report_reading_copy(out->op, sizeof out->op, row->op);
    report_reading_copy(out->dtype, sizeof out->dtype, row->dtype);
}

void report_reading_take_ras(const struct report_ras *row, struct ras_fact *out) {
    *out = (struct ras_fact){
        .rank = (int32_t)report_reading_within(row->rank, 0, RANK_SET_LIMIT - 1, -1),
        .state = (enum ras_state)report_reading_within(row->state, 0, RAS_STATES - 1, RAS_ANSWERS),
        .pid = report_reading_within(row->pid, 1, INT32_MAX, -1),
        .behind = report_reading_within(row->behind, 0, INT64_MAX, 0)};
    report_reading_copy(out->host, sizeof out->host, row->host);
    report_reading_copy(out->op, sizeof out->op, row->op);
    report_reading_copy(out->note, sizeof out->note, row->note);
}
