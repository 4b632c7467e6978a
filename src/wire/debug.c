/* SPDX-License-Identifier: Apache-2.0 */
/* debug: what is wanted of a debugger in the job, and how it stands; see wire.h. */
#include <math.h>
#include <string.h>

#include "wire/codec.h"
#include "wire/field.h"
#include "wire/message.h"
#include "wire/wire.h"

#define DEBUG_PARAMS_MAX ((size_t)256 * 1024) /* what one message may take in memory */
#define DEBUG_ANSWER_MAX ((size_t)4 * 1024 * 1024)
#define DEBUG_TIMEOUT_S 10.0 /* of a request that says nothing of it */
#define DEBUG_LIMIT_S 300.0
#define DEBUG_HOST_MAX 256
#define DEBUG_PORT_MAX 65535

static bool debug_is(enum wire_method m) { return m == WIRE_DEBUG || m == WIRE_PAUSE || m == WIRE_CATCH; }

void wire_debug_fini(struct wire_debug *d) {
    arena_fini(&d->arena);
    *d = (struct wire_debug){.action = WIRE_DEBUG_UNKNOWN};
}

void wire_debugger_fini(struct wire_debugger *d) {
    arena_fini(&d->arena);
    *d = (struct wire_debugger){.on = false};
}

/* ---- the request ---- */

int wire_put_debug(struct strbuf *out, uint32_t id, enum wire_method method, const struct wire_debug *d) {
    const struct field_table *fields = field_debug_params(method);
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_REQUEST);
    codec_write_uint(out, id);
    codec_write_str(out, wire_method_name(method));
    codec_write_map(out, fields->n + (method == WIRE_DEBUG));
    field_write_pairs(out, fields, d);
    if (method == WIRE_DEBUG) {
        codec_write_str(out, "places");
        codec_write_array(out, d->n_places);
        for (size_t i = 0; i < d->n_places; i++)
            codec_write_str(out, d->places[i]);
    }
    return out->failed ? -1 : 0;
}

static int debug_read_places(const struct wire_message *m, struct wire_debug *out, struct err *e) {
    static const char *const key = "places";
    struct codec_cursor list = {.at = NULL};
    struct field_strings strings;
    if (codec_find(m->body, &key, 1, &list) != 0)
        return field_fail(e, "debug", key);
    if (field_read_strings(list, &strings, &out->arena, e) != 0)
        return -1;
    if (strings.n > WIRE_DEBUG_PLACES)
        return field_fail(e, "debug", key);
    for (; out->n_places < strings.n; out->n_places++)
        out->places[out->n_places] = strings.list[out->n_places];
    return 0;
}

/* Seconds; those that are not said are `usual`. 0, or -1: they are none, or more than `max`. */
static int debug_check_time(double *seconds, double usual, double max) {
    if (isnan(*seconds))
        *seconds = usual;
    return *seconds > 0 && *seconds <= max ? 0 : -1;
}

int wire_get_debug(const struct wire_message *m, struct wire_debug *out, struct err *e) {
    enum wire_method method = wire_message_method(m);
    const struct field_table *fields = field_debug_params(method);
    *out = (struct wire_debug){.limit_s = NAN};
    arena_init(&out->arena, DEBUG_PARAMS_MAX);
    if (!debug_is(method) || !m->body.at)
        return err_set(e, ERR_FAILED, "message is not valid: a request without a debugger");
    if (field_read_pairs(m->body, fields, out, &out->arena, e) != 0 ||
        (method == WIRE_DEBUG && debug_read_places(m, out, e) != 0))
        return -1;
    if (!out->host)
        out->host = "127.0.0.1";
    return out->action == WIRE_DEBUG_UNKNOWN ? field_fail(e, fields->name, "action")
           : debug_check_time(&out->timeout_s, DEBUG_TIMEOUT_S, WIRE_EVAL_TIMEOUT_MAX_S) != 0
               ? field_fail(e, fields->name, "timeout_s")
           : debug_check_time(&out->limit_s, DEBUG_LIMIT_S, WIRE_DEBUG_LIMIT_MAX_S) != 0
               ? field_fail(e, fields->name, "limit_s")
           : strlen(out->host) >= DEBUG_HOST_MAX         ? field_fail(e, fields->name, "host")
           : out->port < 0 || out->port > DEBUG_PORT_MAX ? field_fail(e, fields->name, "port")
                                                         : 0;
}

/* ---- the answer ---- */

static void debug_write_threads(struct strbuf *out, const struct wire_debugger *d) {
    struct intern strings;
    if (intern_init(&strings) != 0) {
        out->failed = true;
        return;
    }
    field_intern_columns(&FIELD_PAUSED_THREADS, d->threads, d->n_threads, &strings);
    codec_write_str(out, "strings");
    codec_write_array(out, strings.n_strings);
    for (size_t i = 0; i < strings.n_strings; i++)
        codec_write_str(out, strings.strings[i]);
    codec_write_str(out, "threads");
    field_write_columns(out, &FIELD_PAUSED_THREADS, d->threads, d->n_threads, &strings, 0);
    out->failed |= strings.failed;
    intern_fini(&strings);
}

int wire_put_debugger(struct strbuf *out, uint32_t id, enum wire_method method,
                      const struct wire_debugger *d) {
    const struct field_table *fields = field_debug_answer(method);
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_RESPONSE);
    codec_write_uint(out, id);
    codec_write_nil(out);
    codec_write_map(out, fields->n + (method == WIRE_PAUSE ? 2 : 0));
    field_write_pairs(out, fields, d);
    if (method == WIRE_PAUSE)
        debug_write_threads(out, d);
    return out->failed ? -1 : 0;
}

int wire_get_debugger(const struct wire_message *m, enum wire_method method, struct wire_debugger *out,
                      struct err *e) {
    static const char *const keys[] = {"strings", "threads"};
    struct codec_cursor part[2];
    struct field_strings strings;
    void *threads = NULL;
    *out = (struct wire_debugger){.left_s = NAN, .limit_s = NAN};
    arena_init(&out->arena, DEBUG_ANSWER_MAX);
    if (!debug_is(method) || m->type != WIRE_RESPONSE || !m->body.at || m->error)
        return err_set(e, ERR_FAILED, "message is not valid: an answer without a debugger");
    if (field_read_pairs(m->body, field_debug_answer(method), out, &out->arena, e) != 0)
        return -1;
    if (method != WIRE_PAUSE)
        return 0;
    if (codec_find(m->body, keys, 2, part) != 0)
        return field_fail(e, "pause", keys[0]);
    if (field_read_strings(part[0], &strings, &out->arena, e) != 0 ||
        field_read_columns(part[1], &FIELD_PAUSED_THREADS, &strings, &out->arena, &threads, &out->n_threads,
                           e) != 0)
        return -1;
    out->threads = threads;
    return 0;
}
