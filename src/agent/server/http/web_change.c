/* SPDX-License-Identifier: Apache-2.0 */
/* web_change: see web_change.h. */
#include "agent/server/http/web_change.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_read.h"
#include "wire/eval_json.h"

#define CHANGE_WAIT_S 10.0 /* for an answer, in addition to the time that the code may take */
#define CHANGE_OUTPUT ((int64_t)1024 * 1024)

static bool web_eval_is_off(struct web *w) {
    struct mailbox *m = w->context->mailbox;
    pthread_mutex_lock(&m->lock);
    bool off = m->config.values[CONFIG_EVAL] == 0;
    pthread_mutex_unlock(&m->lock);
    return off;
}

/* ---- code ---- */

/* Keys of a JSON body: those of the wire's method that make sense for a single request. */
enum change_key {
    CHANGE_CODE,
    CHANGE_NAME,
    CHANGE_TIMEOUT,
    CHANGE_OUTPUT_BYTES,
    CHANGE_MAIN,
    CHANGE_TID,
    CHANGE_DEPTH,
    CHANGE_KEYS
};

static const struct json_field change_keys[CHANGE_KEYS] = {
    [CHANGE_CODE] = {.name = "code", .help = "Python", .most = WIRE_EVAL_CODE_MAX},
    [CHANGE_NAME] = {.name = "name",
                     .help = "its name in tracebacks",
                     .most = sizeof((struct wire_eval *)0)->name - 1},
    [CHANGE_TIMEOUT] = {.name = "timeout_s",
                        .help = "interrupt it after this many seconds",
                        .type = JSON_FIELD_NUMBER,
                        .least = CHANGE_TIMEOUT_LEAST,
                        .most = CHANGE_TIMEOUT_MOST},
    [CHANGE_OUTPUT_BYTES] = {.name = "output_bytes",
                             .help = "the limit of its output, and of each other text",
                             .type = JSON_FIELD_INTEGER,
                             .most = (double)CHANGE_OUTPUT},
    [CHANGE_MAIN] = {.name = "main",
                     .help = "run by the job's main thread, not by the agent's own",
                     .type = JSON_FIELD_FLAG},
    [CHANGE_TID] = {.name = "tid",
                    .help = "with the names of a frame of this thread, read only",
                    .type = JSON_FIELD_INTEGER,
                    .least = 1,
                    .most = INT32_MAX},
    [CHANGE_DEPTH] = {.name = "depth",
                      .help = "which frame of that thread, 0 the innermost",
                      .type = JSON_FIELD_INTEGER,
                      .most = INT32_MAX},
};

/* Describe a body with these fields, of which the first `required` are mandatory. */
static void change_put_schema(struct json *j, const struct json_field *fields, size_t n, size_t required) {
    static const char *const types[] = {"string", "number", "integer", "boolean"};
    json_object_begin(j);
    json_kv_string(j, "type", "object");
    json_kv_bool(j, "additionalProperties", false);
    json_key(j, "required");
    json_array_begin(j);
    for (size_t i = 0; i < required; i++)
        json_string(j, fields[i].name);
    json_array_end(j);
    json_key(j, "properties");
    json_object_begin(j);
    for (const struct json_field *f = fields; f < fields + n; f++) {
        bool number = f->type == JSON_FIELD_NUMBER || f->type == JSON_FIELD_INTEGER;
        json_key(j, f->name);
        json_object_begin(j);
        json_kv_string(j, "type", types[f->type]);
        json_kv_string(j, "description", f->help);
        if (number) {
            json_kv_number(j, "minimum", f->least, f->type == JSON_FIELD_NUMBER);
            json_kv_number(j, "maximum", f->most, 0);
        }
        json_object_end(j);
    }
    json_object_end(j);
    json_object_end(j);
}

void web_eval_put_schema(struct json *j) { change_put_schema(j, change_keys, CHANGE_KEYS, CHANGE_CODE + 1); }

/* Build the request from the fields, which keep their texts. */
static void web_eval_ask(struct web *w, const struct json_field *f) {
    struct wire_eval want = {.code = w->request->body,
                             .code_len = w->request->body_len,
                             .name = "<http>",
                             .timeout_s = web_get(w, "timeout")->number,
                             .output_bytes = CHANGE_OUTPUT};
    struct strbuf b;
    if (f[CHANGE_CODE].given) {
        want.code = strbuf_str(&f[CHANGE_CODE].text);
        want.code_len = f[CHANGE_CODE].text.len;
    }
    if (f[CHANGE_NAME].given)
        snprintf(want.name, sizeof want.name, "%s", strbuf_str(&f[CHANGE_NAME].text));
    if (f[CHANGE_TIMEOUT].given)
        want.timeout_s = f[CHANGE_TIMEOUT].number;
    if (f[CHANGE_OUTPUT_BYTES].given)
        want.output_bytes = (int64_t)f[CHANGE_OUTPUT_BYTES].number;
    want.main = f[CHANGE_MAIN].given && f[CHANGE_MAIN].number != 0;
    want.tid = f[CHANGE_TID].given ? (int64_t)f[CHANGE_TID].number : 0;
    want.depth = f[CHANGE_DEPTH].given ? (int64_t)f[CHANGE_DEPTH].number : 0;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_eval(&b, local_client_next_id(&w->client), &want);
    web_ask(w, &b, want.timeout_s + CHANGE_WAIT_S);
}

/* The error in the combination of fields; NULL if there is none. */
static const char *web_eval_judge(const struct web *w, const struct json_field *f) {
    const struct strbuf *name = &f[CHANGE_NAME].text;
    if (!f[CHANGE_CODE].given || f[CHANGE_CODE].text.len == 0)
        return "there must be code, with something in it";
    if (f[CHANGE_TIMEOUT].given && web_get(w, "timeout")->given)
        return "the time is given twice, as timeout= and as timeout_s";
    if (f[CHANGE_DEPTH].given && !f[CHANGE_TID].given)
        return "depth is of a thread: it goes with tid";
    return f[CHANGE_NAME].given && name->len && memchr(name->data, '\0', name->len)
               ? "name must have no NUL in it"
               : NULL;
}

void web_eval_begin(struct web *w) {
    struct json_field fields[CHANGE_KEYS];
    struct err e;
    const char *why = NULL;
    memcpy(fields, change_keys, sizeof fields);
    if (web_eval_is_off(w)) {
        web_fail(w, 403, "code is not run in this job: probing.eval is off");
        return;
    }
    if (web_has_json(w)) {
        if (json_read_object(w->request->body, w->request->body_len, fields, CHANGE_KEYS, &e) != 0)
            why = e.text;
        else
            why = web_eval_judge(w, fields);
    }
    if (why)
        web_fail(w, 400, "%s", why);
    else
        web_eval_ask(w, fields);
    strbuf_fini(&fields[CHANGE_CODE].text);
    strbuf_fini(&fields[CHANGE_NAME].text);
}

/* The printed output, then the result or the exception, made safe for a terminal, where people
 * read it. */
static void web_put_evaluated(struct strbuf *out, const struct wire_evaluated *v) {
    strbuf_add_clean(out, v->output.s, v->output.len);
    if (v->output.len && v->output.s[v->output.len - 1] != '\n')
        strbuf_addc(out, '\n');
    const struct wire_text *last = v->traceback.s ? &v->traceback : &v->result;
    if (last->len) {
        strbuf_add_clean(out, last->s, last->len);
        if (last->s[last->len - 1] != '\n')
            strbuf_addc(out, '\n');
    }
    if (v->truncated)
        strbuf_adds(out, "(a text was too long and was truncated)\n");
    if (v->timed_out)
        strbuf_adds(out, v->unended ? "(timed out; it was interrupted but has not ended yet)\n"
                                    : "(timed out: it was interrupted)\n");
}

void web_eval_take(struct web *w, const struct wire_message *m) {
    struct wire_evaluated v;
    struct err e;
    struct json j;
    if (wire_get_evaluated(m, &v, &e) != 0) {
        web_fail(w, 503, "%s", e.text);
        return;
    }
    if (w->form == WEB_TXT) {
        web_put_evaluated(&w->out, &v);
    } else {
        json_init(&j, &w->out, 2);
        wire_put_evaluated_json(&j, &v);
        strbuf_addc(&w->out, '\n');
    }
    web_done(w);
    if (w->status == 200 && (v.timed_out || v.unended))
        w->status = 504;
}

/* ---- settings ---- */

/* As in the answer of GET /config. */
enum setting_key { SETTING_KEY, SETTING_VALUE, SETTING_KEYS };

static const struct json_field setting_keys[SETTING_KEYS] = {
    [SETTING_KEY] = {.name = "key",
                     .help = "one of those that GET /config lists",
                     .most = sizeof((struct wire_config *)0)->key - 1},
    [SETTING_VALUE] = {.name = "value",
                       .help = "the new value, as text",
                       .most = sizeof((struct wire_config *)0)->value - 1},
};

void web_config_put_schema(struct json *j) {
    change_put_schema(j, setting_keys, SETTING_KEYS, SETTING_VALUE + 1);
}

/* Copy a text of the wire. False if it is invalid or too long. */
static bool setting_copy(char *to, size_t cap, const char *from, size_t len) {
    bool fits = len < cap && !memchr(from, '\0', len) && !memchr(from, '\n', len);
    if (fits) {
        memcpy(to, from, len);
        to[len] = '\0';
    }
    return fits;
}

static bool web_take_setting(const struct web *w, struct wire_config *out) {
    const char *body = w->request->body, *equals = memchr(body, '=', w->request->body_len);
    size_t len = w->request->body_len, key = equals ? (size_t)(equals - body) : 0;
    while (len > key && (body[len - 1] == '\n' || body[len - 1] == '\r'))
        len--;
    return key > 0 && setting_copy(out->key, sizeof out->key, body, key) &&
           setting_copy(out->value, sizeof out->value, equals + 1, len - key - 1);
}

/* 0, or -1 with a line for the client. */
static int web_take_json_setting(const struct web *w, struct wire_config *out, struct err *e) {
    struct json_field f[SETTING_KEYS];
    memcpy(f, setting_keys, sizeof f);
    int rc = json_read_object(w->request->body, w->request->body_len, f, SETTING_KEYS, e);
    if (rc == 0 && !(f[SETTING_KEY].given && f[SETTING_VALUE].given))
        rc = err_set(e, ERR_USAGE, "there must be a key and a value");
    else if (rc == 0 && !(setting_copy(out->key, sizeof out->key, strbuf_str(&f[SETTING_KEY].text),
                                       f[SETTING_KEY].text.len) &&
                          setting_copy(out->value, sizeof out->value, strbuf_str(&f[SETTING_VALUE].text),
                                       f[SETTING_VALUE].text.len)))
        rc = err_set(e, ERR_USAGE, "key and value are one line each");
    strbuf_fini(&f[SETTING_KEY].text);
    strbuf_fini(&f[SETTING_VALUE].text);
    return rc;
}

void web_config_begin(struct web *w) {
    struct wire_config want = {.key = ""};
    struct strbuf b;
    struct err e;
    if (web_has_json(w) && web_take_json_setting(w, &want, &e) != 0) {
        web_fail(w, 400, "%s", e.text);
        return;
    }
    if (!web_has_json(w) && !web_take_setting(w, &want)) {
        web_fail(w, 400, "the body must be KEY=VALUE, one of those that /config lists");
        return;
    }
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_config(&b, local_client_next_id(&w->client), &want);
    web_ask(w, &b, CHANGE_WAIT_S);
}

void web_config_take(struct web *w, const struct wire_message *m) {
    (void)m;
    strbuf_adds(&w->out, "set\n");
    web_done(w);
}
