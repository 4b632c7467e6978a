/* SPDX-License-Identifier: Apache-2.0 */
/* eval: code to be run in the job, and its result; see wire.h. Texts travel as bytes: a job's
 * output may contain anything. */
#include <math.h>
#include <string.h>

#include "wire/codec.h"
#include "wire/field.h"
#include "wire/message.h"
#include "wire/wire.h"

#define EVAL_TIMEOUT_S 10.0
#define EVAL_OUTPUT_BYTES ((int64_t)1024 * 1024)

int wire_put_eval(struct strbuf *out, uint32_t id, const struct wire_eval *w) {
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_REQUEST);
    codec_write_uint(out, id);
    codec_write_str(out, wire_method_name(w->complete ? WIRE_COMPLETE : WIRE_EVAL));
    codec_write_map(out, 7 + (size_t)w->keep + (size_t)w->whole);
    codec_write_str(out, "code");
    codec_write_bin(out, w->code, w->code_len);
    codec_write_str(out, "name");
    codec_write_str(out, w->name);
    codec_write_str(out, "timeout_s");
    codec_write_double(out, w->timeout_s);
    codec_write_str(out, "output_bytes");
    codec_write_int(out, w->output_bytes);
    codec_write_str(out, "main");
    codec_write_bool(out, w->main);
    codec_write_str(out, "tid");
    codec_write_int(out, w->tid);
    codec_write_str(out, "depth");
    codec_write_int(out, w->depth);
    if (w->keep) {
        codec_write_str(out, "keep");
        codec_write_bool(out, true);
    }
    if (w->whole) {
        codec_write_str(out, "whole");
        codec_write_bool(out, true);
    }
    return out->failed ? -1 : 0;
}

/* The bytes of a text value; none for nil or a missing value. 0, or -1 for anything else. */
static int eval_text(struct codec_cursor c, struct wire_text *out) {
    struct codec_token t;
    *out = (struct wire_text){.s = NULL};
    if (!c.at)
        return 0;
    if (codec_read(&c, &t) != 0)
        return -1;
    if (t.type == CODEC_NIL)
        return 0;
    if (t.type != CODEC_BIN && t.type != CODEC_STR)
        return -1;
    *out = (struct wire_text){.s = t.count ? t.bytes : "", .len = t.count};
    return 0;
}

static int eval_name(struct codec_cursor c, char *buf, size_t cap) {
    struct wire_text text;
    if (eval_text(c, &text) != 0 || text.len >= cap || (text.len && memchr(text.s, '\0', text.len)))
        return -1;
    if (text.len)
        memcpy(buf, text.s, text.len);
    buf[text.len] = '\0';
    return 0;
}

static int eval_number(struct codec_cursor c, int64_t max, int64_t *out) {
    struct codec_token t;
    if (!c.at)
        return 0;
    return codec_read(&c, &t) == 0 ? codec_token_int(&t, 0, max, out) : -1;
}

static int eval_flag(struct codec_cursor c, bool *out) {
    struct codec_token t;
    if (!c.at)
        return 0;
    if (codec_read(&c, &t) != 0 || t.type != CODEC_BOOL)
        return -1;
    *out = t.b;
    return 0;
}

/* A number of seconds, or of whatever unit `max` has. */
static int eval_real(struct codec_cursor c, double max, double *out) {
    struct codec_token t;
    if (!c.at)
        return 0;
    if (codec_read(&c, &t) != 0)
        return -1;
    if (t.type == CODEC_UINT)
        *out = (double)t.u;
    else if (t.type == CODEC_DOUBLE)
        *out = t.f;
    else
        return -1;
    return isfinite(*out) && *out >= 0 && *out <= max ? 0 : -1;
}

int wire_get_eval(const struct wire_message *m, struct wire_eval *out, struct err *e) {
    static const char *const keys[] = {"code", "name",  "timeout_s", "output_bytes", "main",
                                       "tid",  "depth", "keep",      "whole"};
    struct codec_cursor value[9] = {{.at = NULL}};
    struct wire_text code = {.s = NULL};
    *out = (struct wire_eval){.timeout_s = EVAL_TIMEOUT_S, .output_bytes = EVAL_OUTPUT_BYTES};
    out->complete = wire_message_method(m) == WIRE_COMPLETE;
    if (wire_message_method(m) != WIRE_EVAL && !out->complete)
        return err_set(e, ERR_FAILED, "message is not valid: it holds no code");
    if (!m->body.at || codec_find(m->body, keys, 9, value) != 0 || eval_text(value[0], &code) != 0 ||
        !code.s || code.len > WIRE_EVAL_CODE_MAX)
        return field_fail(e, "eval", keys[0]);
    out->code = code.s;
    out->code_len = code.len;
    if (eval_name(value[1], out->name, sizeof out->name) != 0)
        return field_fail(e, "eval", keys[1]);
    if (eval_real(value[2], WIRE_EVAL_TIMEOUT_MAX_S, &out->timeout_s) != 0)
        return field_fail(e, "eval", keys[2]);
    if (eval_number(value[3], WIRE_EVAL_OUTPUT_MAX, &out->output_bytes) != 0)
        return field_fail(e, "eval", keys[3]);
    if (eval_flag(value[4], &out->main) != 0)
        return field_fail(e, "eval", keys[4]);
    if (eval_number(value[5], INT32_MAX, &out->tid) != 0)
        return field_fail(e, "eval", keys[5]);
    if (eval_number(value[6], INT32_MAX, &out->depth) != 0)
        return field_fail(e, "eval", keys[6]);
    if (eval_flag(value[7], &out->keep) != 0)
        return field_fail(e, "eval", keys[7]);
    if (eval_flag(value[8], &out->whole) != 0)
        return field_fail(e, "eval", keys[8]);
    return 0;
}

/* ---- the answer ---- */

static const char *const eval_texts[] = {"result", "output", "type", "message", "traceback"};

#define EVAL_TEXTS 5

static void eval_write_text(struct strbuf *out, const struct wire_text *t) {
    if (t->s)
        codec_write_bin(out, t->s, t->len);
    else
        codec_write_nil(out);
}

int wire_put_evaluated(struct strbuf *out, uint32_t id, const struct wire_evaluated *v) {
    const struct wire_text *texts[EVAL_TEXTS] = {&v->result, &v->output, &v->type, &v->message,
                                                 &v->traceback};
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_RESPONSE);
    codec_write_uint(out, id);
    codec_write_nil(out);
    codec_write_map(out, EVAL_TEXTS + 4);
    for (size_t i = 0; i < EVAL_TEXTS; i++) {
        codec_write_str(out, eval_texts[i]);
        eval_write_text(out, texts[i]);
    }
    codec_write_str(out, "duration_ms");
    codec_write_double(out, v->duration_ms);
    codec_write_str(out, "truncated");
    codec_write_bool(out, v->truncated);
    codec_write_str(out, "timed_out");
    codec_write_bool(out, v->timed_out);
    codec_write_str(out, "unended");
    codec_write_bool(out, v->unended);
    return out->failed ? -1 : 0;
}

int wire_get_evaluated(const struct wire_message *m, struct wire_evaluated *out, struct err *e) {
    static const char *const keys[] = {"duration_ms", "truncated", "timed_out", "unended"};
    struct wire_text *texts[EVAL_TEXTS] = {&out->result, &out->output, &out->type, &out->message,
                                           &out->traceback};
    struct codec_cursor text[EVAL_TEXTS] = {{.at = NULL}}, value[4] = {{.at = NULL}};
    *out = (struct wire_evaluated){.duration_ms = NAN};
    if (m->type != WIRE_RESPONSE || !m->body.at || m->error)
        return err_set(e, ERR_FAILED, "message is not valid: it holds no answer to code");
    if (codec_find(m->body, eval_texts, EVAL_TEXTS, text) != 0 || codec_find(m->body, keys, 4, value) != 0)
        return field_fail(e, "evaluated", keys[0]);
    for (size_t i = 0; i < EVAL_TEXTS; i++)
        if (eval_text(text[i], texts[i]) != 0)
            return field_fail(e, "evaluated", eval_texts[i]);
    if (eval_real(value[0], 1e12, &out->duration_ms) != 0)
        out->duration_ms = NAN;
    if (eval_flag(value[1], &out->truncated) != 0)
        return field_fail(e, "evaluated", keys[1]);
    if (eval_flag(value[2], &out->timed_out) != 0)
        return field_fail(e, "evaluated", keys[2]);
    if (eval_flag(value[3], &out->unended) != 0)
        return field_fail(e, "evaluated", keys[3]);
    return 0;
}
