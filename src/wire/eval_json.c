/* SPDX-License-Identifier: Apache-2.0 */
/* eval_json: see eval_json.h. */
#include "wire/eval_json.h"

#include "base/model_json.h"

static void eval_json_text(struct json *j, const char *key, const struct wire_text *t) {
    json_key(j, key);
    if (t->s)
        json_string_of(j, t->s, t->len);
    else
        json_null(j);
}

void wire_put_evaluated_json(struct json *j, const struct wire_evaluated *v) {
    json_object_begin(j);
    json_kv_int(j, "schema_version", MODEL_JSON_SCHEMA_VERSION);
    eval_json_text(j, "result", &v->result);
    eval_json_text(j, "output", &v->output);
    json_key(j, "error");
    if (v->type.s) {
        json_object_begin(j);
        eval_json_text(j, "type", &v->type);
        eval_json_text(j, "message", &v->message);
        eval_json_text(j, "traceback", &v->traceback);
        json_object_end(j);
    } else
        json_null(j);
    json_kv_number(j, "duration_ms", v->duration_ms, 3);
    json_kv_bool(j, "truncated", v->truncated);
    json_kv_bool(j, "timed_out", v->timed_out);
    json_kv_bool(j, "unended", v->unended);
    json_object_end(j);
}
