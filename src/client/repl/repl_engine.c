/* SPDX-License-Identifier: Apache-2.0 */
/* repl_engine: see repl_engine.h. */
#include "client/repl/repl_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/repl/magic_query.h"

#define REPL_ENGINE_TYPED_S 2.0 /* somebody has pressed a key and waits */
#define REPL_ENGINE_NAMES_MAX ((int64_t)64 * 1024)

void repl_engine_init(struct repl_engine *r, double timeout_s, int64_t output_bytes) {
    *r = (struct repl_engine){
        .want = {.name = "<repl>", .timeout_s = timeout_s, .output_bytes = output_bytes, .keep = true}};
    strbuf_init(&r->code, WIRE_EVAL_CODE_MAX);
}

void repl_engine_fini(struct repl_engine *r) {
    strbuf_fini(&r->code);
    history_fini(&r->history);
}

int repl_engine_remember(struct repl_engine *r, const char *text, size_t len, struct err *e) {
    char *line = strndup(text, len);
    int rc =
        line ? history_add(&r->history, line, e) : err_set(e, ERR_FAILED, "out of memory for the history");
    free(line);
    if (rc == 0 || r->history_failed)
        return 0;
    r->history_failed = true;
    return -1;
}

/* ---- questions ---- */

int repl_engine_ask(struct repl_engine *r, enum repl_ask what, const char *code, size_t len, struct err *e) {
    if (len > WIRE_EVAL_CODE_MAX)
        return err_set(e, ERR_FAILED, "the code is longer than %zu bytes", WIRE_EVAL_CODE_MAX);
    strbuf_clear(&r->code);
    if (strbuf_add(&r->code, code, len) != 0)
        return err_set(e, ERR_FAILED, "out of memory for the code");
    r->asked = what;
    r->timed = r->interrupted = r->explained = false;
    return 0;
}

struct wire_eval repl_engine_question(const struct repl_engine *r) {
    struct wire_eval want = r->want;
    want.code = strbuf_str(&r->code);
    want.code_len = r->code.len;
    want.complete = r->asked != REPL_RUN;
    want.whole = r->asked == REPL_WHOLE;
    if (want.complete)
        want.output_bytes = REPL_ENGINE_NAMES_MAX;
    if (r->asked == REPL_NAMES)
        want.timeout_s = REPL_ENGINE_TYPED_S;
    return want;
}

enum repl_ask repl_engine_end(struct repl_engine *r) {
    enum repl_ask asked = r->asked;
    r->asked = REPL_NOTHING;
    return asked;
}

/* ---- answers ---- */

int repl_engine_explain(const struct wire_evaluated *v, double timeout_s, const char *remedy, struct err *e) {
    static const char unended[] =
        "the code is in C or catches KeyboardInterrupt, and keeps running; nothing else "
        "can run until it ends";
    if (v->unended && !v->timed_out)
        return err_set(e, ERR_FAILED, "interrupted: %s", unended);
    if (v->unended)
        return err_set(e, ERR_FAILED, "timed out after %g s: %s", timeout_s, unended);
    if (v->timed_out)
        return err_set(e, ERR_FAILED, "timed out after %g s and was interrupted%s", timeout_s, remedy);
    if (v->type.s)
        return err_set(e, ERR_FAILED, "the code raised %.*s", (int)(v->type.len < 200 ? v->type.len : 200),
                       v->type.s);
    return 0;
}

int repl_engine_put(struct repl_engine *r, const struct wire_evaluated *v, const struct repl_face *face,
                    struct err *e) {
    char text[80];
    face->put(face->arg, REPL_VALUE, v->output.s, v->output.len);
    face->put(face->arg, REPL_VALUE, v->result.s, v->result.len);
    face->put(face->arg, REPL_TRACEBACK, v->traceback.s, v->traceback.len);
    int rc = repl_engine_explain(v, r->want.timeout_s, "; %timeout S raises the limit", e);
    r->explained = rc != 0 && v->traceback.s && !v->timed_out && !v->unended;
    if (rc != 0 && !r->explained)
        face->put(face->arg, REPL_ERROR, e->text, strlen(e->text));
    if (r->timed) {
        snprintf(text, sizeof text, v->duration_ms < 999.5 ? "%.3g ms in the job" : "%.0f ms in the job",
                 v->duration_ms);
        face->put(face->arg, REPL_VALUE, text, strlen(text));
    }
    if (v->truncated) {
        snprintf(text, sizeof text, "the output was truncated at %lld KiB",
                 (long long)(r->want.output_bytes / 1024));
        face->put(face->arg, REPL_NOTE, text, strlen(text));
    }
    return rc;
}

static bool repl_engine_says(const struct wire_text *answer, const char *word) {
    return answer->s && answer->len == strlen(word) && memcmp(answer->s, word, answer->len) == 0;
}

enum repl_code repl_engine_read_code(const struct wire_text *answer) {
    return repl_engine_says(answer, WIRE_CODE_MORE)    ? REPL_CODE_MORE
           : repl_engine_says(answer, WIRE_CODE_BLOCK) ? REPL_CODE_BLOCK
                                                       : REPL_CODE_DONE;
}

/* ---- lines ---- */

bool repl_engine_is_blank(const char *text) { return text[strspn(text, " \t\r\n")] == '\0'; }

bool repl_engine_ends_block(enum repl_code state, const char *line) {
    return state == REPL_CODE_BLOCK && repl_engine_is_blank(line);
}

size_t repl_engine_find_word(const char *text, size_t len) {
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    while (len > 0 && ((text[len - 1] & 0x80) || memchr(name, text[len - 1], sizeof name - 1)))
        len--;
    return len;
}

int repl_engine_run_magic(struct repl_engine *r, const char *line, const struct repl_face *face,
                          struct err *e) {
    struct magic m;
    int rc = magic_read(&m, line, &r->want, e);
    if (rc == 0 && m.kind == MAGIC_RUN)
        rc = face->run(face->arg, strbuf_str(&m.text), m.text.len, m.timed, e);
    else if (rc == 0 && magic_is_query(&m))
        rc = face->query(face->arg, &m, e);
    else if (rc == 0 && m.text.len)
        face->put(face->arg, REPL_VALUE, strbuf_str(&m.text), m.text.len);
    magic_fini(&m);
    return rc;
}
