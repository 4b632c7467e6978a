/* SPDX-License-Identifier: Apache-2.0 */
/* web: see web.h. Status codes and content negotiation: RFC 9110. */
#include "agent/server/http/web.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"
#include "flame/stack_counts.h"

#define WEB_WAIT_S 10.0
#define WEB_ACCEPT_MAX 512

const struct web_form_def web_forms[WEB_FORMS] = {
    [WEB_TXT] = {"txt", "text/plain; charset=utf-8"},
    [WEB_JSON] = {"json", "application/json"},
    [WEB_NDJSON] = {"ndjson", "application/x-ndjson"},
    [WEB_CSV] = {"csv", "text/csv; charset=utf-8"},
    [WEB_SVG] = {"svg", "image/svg+xml"},
    [WEB_FOLDED] = {"folded", "text/plain; charset=utf-8"},
    [WEB_HTML] = {"html", "text/html; charset=utf-8"},
    [WEB_PROMETHEUS] = {"prometheus", "text/plain; version=0.0.4; charset=utf-8"},
};

static const char *const web_verbs[WEB_VERBS] = {"GET", "POST", "PUT"};

const char *web_verb_name(enum web_verb v) { return web_verbs[v]; }

/* ---- responses ---- */

/* It also contains the job's text of an error, so it is made safe for a terminal. */
void web_fail(struct web *w, unsigned status, const char *fmt, ...) {
    char raw[512], text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    text_sanitize(text, sizeof text, raw);
    strbuf_fini(&w->out);
    strbuf_init(&w->out, WEB_MAX_ANSWER);
    strbuf_addf(&w->out, "%s\n", text);
    w->type = web_forms[WEB_TXT].type;
    w->status = status;
    w->due_ns = 0;
}

void web_done(struct web *w) {
    if (w->out.failed && w->out.limit < WEB_MAX_ANSWER) {
        web_fail(w, 503,
                 w->may < WIRE_CHANGES ? "the answer is longer than the %zu bytes left for read-only "
                                         "clients: try again, or use the full-access token"
                                       : "the answer is longer than the %zu bytes that are left: try again",
                 w->out.limit);
        return;
    }
    if (w->out.failed) {
        web_fail(w, 503, "the answer is longer than %zu bytes, or there is no memory for it", WEB_MAX_ANSWER);
        return;
    }
    w->counted_bytes = w->out.len;
    w->context->waiting[w->may < WIRE_CHANGES] += w->counted_bytes;
    w->type = web_forms[w->form].type;
    w->status = 200;
    w->due_ns = 0;
}

void web_ask(struct web *w, struct strbuf *message, double wait_s) {
    if (local_client_send(&w->client, message) != 0)
        web_fail(w, 503, "the agent has no memory for the request");
    else
        w->due_ns = clock_mono_ns() + (uint64_t)(wait_s * 1e9);
}

const struct web_value *web_get(const struct web *w, const char *name) {
    static const struct web_value none = {.given = false};
    for (size_t i = 0; i < WEB_PARAMS && w->route->params[i].name; i++)
        if (strcmp(w->route->params[i].name, name) == 0)
            return &w->values[i];
    return &none;
}

/* ---- route and form ---- */

/* True if the path leads to this route. `form` is the extension of the path, otherwise
 * WEB_FORMS. */
static bool web_matches(const struct web_route *r, const char *path, enum web_form *form, char *name) {
    size_t len = strcspn(r->path, "{");
    *form = WEB_FORMS;
    if (r->path[len]) {
        size_t rest = strlen(path) < len ? 0 : strlen(path + len);
        if (strncmp(path, r->path, len) != 0 || rest == 0 || rest >= WEB_NAME_MAX || strchr(path + len, '/'))
            return false;
        memcpy(name, path + len, rest + 1);
        return true;
    }
    if (strncmp(path, r->path, len) != 0)
        return false;
    if (!path[len])
        return true;
    for (unsigned f = 0; r->dotted && path[len] == '.' && f < WEB_FORMS; f++)
        if ((r->forms >> f & 1) && strcmp(path + len + 1, web_forms[f].name) == 0) {
            *form = (enum web_form)f;
            return true;
        }
    return false;
}

/* The route, or NULL; then the request is answered. */
static const struct web_route *web_find(struct web *w, const struct web_request *q, enum web_form *form) {
    enum web_form of;
    bool head = strcmp(q->verb, "HEAD") == 0;
    for (size_t i = 0; i < web_n_routes; i++) {
        const struct web_route *r = &web_routes[i];
        if (!web_matches(r, q->path, &of, w->name))
            continue;
        if (strcmp(q->verb, web_verbs[r->verb]) == 0 || (head && r->verb == WEB_GET)) {
            *form = of;
            return r;
        }
        size_t n = strlen(w->allow);
        snprintf(w->allow + n, sizeof w->allow - n, "%s%s", n ? ", " : "",
                 r->verb == WEB_GET ? "GET, HEAD" : web_verbs[r->verb]);
    }
    if (w->allow[0])
        web_fail(w, 405, "%s is not supported here: %s", q->verb, w->allow);
    else
        web_fail(w, 404, "there is no such page: / lists them");
    return NULL;
}

/* True if one range of an Accept header matches the type. Its weight counts only if it is 0. */
static bool web_range_takes(char *range, const char *type) {
    size_t n = strcspn(type, ";");
    char *weight = strchr(range, ';');
    if (weight) {
        *weight = '\0';
        weight = strstr(weight + 1, "q=");
    }
    range += strspn(range, " \t");
    size_t len = strcspn(range, " \t");
    if (weight && strtod(weight + 2, NULL) <= 0)
        return false;
    if (len == 3 && memcmp(range, "*/*", 3) == 0)
        return true;
    if (len > 2 && memcmp(range + len - 2, "/*", 2) == 0)
        return strncasecmp(range, type, len - 1) == 0;
    return len == n && strncasecmp(range, type, n) == 0;
}

static bool web_accepts(const char *accept, const char *type) {
    char text[WEB_ACCEPT_MAX], *rest = NULL;
    snprintf(text, sizeof text, "%s", accept);
    for (char *range = strtok_r(text, ",", &rest); range; range = strtok_r(NULL, ",", &rest))
        if (web_range_takes(range, type))
            return true;
    return false;
}

/* The requested form, or 406. */
static void web_choose(struct web *w, const struct web_request *q, enum web_form behind) {
    const struct web_route *r = w->route;
    w->form = r->default_value;
    if (behind != WEB_FORMS) {
        w->form = behind;
        return;
    }
    const struct web_value *said = web_get(w, "format");
    if (said->given) {
        w->form = (enum web_form)(int)said->number;
        return;
    }
    if (!q->accept || web_accepts(q->accept, web_forms[r->default_value].type))
        return;
    for (unsigned f = 0; f < WEB_FORMS; f++)
        if ((r->forms >> f & 1) && web_accepts(q->accept, web_forms[f].type)) {
            w->form = (enum web_form)f;
            return;
        }
    web_fail(w, 406, "this is available as %s only: / lists the formats", web_forms[r->default_value].type);
}

/* ---- parameters ---- */

static void web_take_format(struct web *w, struct web_value *v, const char *text) {
    for (unsigned f = 0; f < WEB_FORMS; f++)
        if ((w->route->forms >> f & 1) && strcmp(text, web_forms[f].name) == 0) {
            *v = (struct web_value){.given = true, .number = f};
            return;
        }
    web_fail(w, 400, "format: this has no such format: / lists them");
}

static void web_take_value(struct web *w, const struct web_param_def *d, struct web_value *v,
                           const char *text) {
    char *end;
    if (v->given) {
        web_fail(w, 400, "%s is given twice", d->name);
        return;
    }
    if (d->type == WEB_FORMAT) {
        web_take_format(w, v, text);
        return;
    }
    double number = strtod(text, &end);
    if (!*text || *end || strspn(text, "0123456789+-.eE") != strlen(text) || !(number >= d->least) ||
        !(number <= d->most) || (d->type != WEB_NUMBER && number != floor(number)))
        web_fail(w, 400, "%s must be %s from %.15g to %.15g", d->name,
                 d->type == WEB_NUMBER ? "a number" : "a whole number", d->least, d->most);
    *v = (struct web_value){.given = true, .number = number};
}

static void web_take_args(struct web *w, const struct web_request *q) {
    const struct web_param_def *defs = w->route->params;
    for (size_t i = 0; i < WEB_PARAMS && defs[i].name; i++)
        w->values[i].number = defs[i].default_value;
    for (size_t a = 0; a < q->n_args && !w->status; a++) {
        size_t len = strcspn(q->args[a], "="), i = 0;
        while (i < WEB_PARAMS && defs[i].name &&
               (strlen(defs[i].name) != len || strncmp(defs[i].name, q->args[a], len) != 0))
            i++;
        if (i == WEB_PARAMS || !defs[i].name)
            web_fail(w, 400, "%s has no such parameter: / lists them", w->route->path);
        else
            web_take_value(w, &defs[i], &w->values[i], q->args[a] + len + (q->args[a][len] == '='));
    }
}

/* ---- bodies ---- */

static bool web_is_type(const struct web_request *q, const char *type) {
    size_t n = q->type ? strcspn(q->type, "; \t") : 0;
    return n > 0 && strlen(type) == n && strncasecmp(q->type, type, n) == 0;
}

bool web_has_json(const struct web *w) { return web_is_type(w->request, web_forms[WEB_JSON].type); }

static void web_judge_body(struct web *w, const struct web_request *q) {
    const struct web_route *r = w->route;
    bool json = r->takes_json && web_is_type(q, web_forms[WEB_JSON].type);
    if (!r->takes && q->body_len > 0)
        web_fail(w, 400, "such a request has no body");
    /* no form of a page has one of these types */
    else if (r->takes && r->takes[0] && !json && !web_is_type(q, r->takes))
        web_fail(w, 415, "the content type of the body must be %s%s", r->takes,
                 r->takes_json ? " or application/json" : "");
    else if (r->takes && q->body_len == 0)
        web_fail(w, 400, "a body is needed: / describes it");
    else if (r->takes && q->body_len > r->body_max)
        web_fail(w, 413, "the body may have %zu bytes at most", r->body_max);
}

/* ---- requests in progress ---- */

static void web_ask_target(struct web *w) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_hello(&b, local_client_next_id(&w->client), "web");
    w->asked_target = true;
    web_ask(w, &b, WEB_WAIT_S);
}

static void web_take_target(struct web *w, const struct wire_message *m) {
    struct err e;
    w->asked_target = false;
    if (wire_get_target(m, &w->target, &e) != 0)
        web_fail(w, 503, "%s", e.text);
    else
        w->route->begin(w);
}

/* Limit the length of a response that is written now: by the room that the unread responses
 * leave. */
static void web_limit(struct web *w) {
    bool looks = w->may < WIRE_CHANGES;
    size_t held = w->context->waiting[looks], most = looks ? WEB_LOOKERS_MOST : WEB_MOST;
    size_t left = held < most ? most - held : 1; /* 0 means no limit */
    w->out.limit = left < WEB_MAX_ANSWER ? left : WEB_MAX_ANSWER;
}

size_t web_take_count(struct web *w) {
    size_t bytes = w->counted_bytes;
    w->counted_bytes = 0;
    return bytes;
}

void web_uncount(struct web_context *context, enum wire_access may, size_t bytes) {
    context->waiting[may < WIRE_CHANGES] -= bytes;
}

static void web_take(struct web *w, const struct wire_message *m) {
    enum wire_error code = WIRE_E_UNAVAILABLE;
    const char *error = wire_message_type(m) == WIRE_RESPONSE ? wire_message_error(m, &code) : NULL;
    if (error)
        web_fail(w, code == WIRE_E_NOT_ALLOWED ? 403 : code == WIRE_E_BAD_PARAMS ? 400 : 503, "%s", error);
    else if (w->asked_target)
        web_take_target(w, m);
    else if (w->route->take)
        w->route->take(w, m);
}

static void web_pump(struct web *w) {
    struct wire_message *m;
    web_limit(w);
    while (!w->status && (m = local_client_take(&w->client)) != NULL) {
        web_take(w, m);
        wire_message_free(m);
    }
    if (w->status)
        local_client_end(&w->client);
}

/* The number in progress is bounded, because each may own a response. */
static bool web_enter(struct web *w, uint32_t id) {
    if (w->context->busy >= WEB_BUSY) {
        web_fail(w, 429, "%d requests are under way: try again", WEB_BUSY);
        return false;
    }
    if (local_client_begin(&w->client, id, w->context->mailbox, w->may) != 0) {
        web_fail(w, 503, "the agent has as many clients as it can have");
        return false;
    }
    w->client.status = w->context->status;
    w->client.status_arg = w->context->status_arg;
    w->context->busy++;
    w->counted = true;
    return true;
}

void web_begin(struct web *w, struct web_context *context, uint32_t id, enum wire_access may,
               const struct web_request *q) {
    enum web_form behind = WEB_FORMS;
    *w = (struct web){.context = context, .may = may};
    strbuf_init(&w->out, WEB_MAX_ANSWER);
    w->route = web_find(w, q, &behind);
    if (!w->route)
        return;
    if (wire_method_access(w->route->asks) > may) {
        web_fail(w, 403, "%s", PEER_READ_ONLY);
        return;
    }
    web_judge_body(w, q);
    if (!w->status)
        web_take_args(w, q);
    if (!w->status)
        web_choose(w, q, behind);
    if (w->status || !web_enter(w, id))
        return;
    web_limit(w);
    w->request = q;
    if (w->route->needs_target)
        web_ask_target(w);
    else
        w->route->begin(w);
    w->request = NULL;
    web_pump(w);
}

void web_refuse(struct web *w, struct web_context *context, unsigned status, const char *why) {
    *w = (struct web){.context = context};
    web_fail(w, status, "%s", why);
}

void web_end(struct web *w) {
    if (!w->context)
        return;
    local_client_end(&w->client);
    w->context->busy -= w->counted;
    w->context->flames -= w->counted_flame;
    web_uncount(w->context, w->may, web_take_count(w));
    w->counted = w->counted_flame = false;
    stack_counts_free(w->samples);
    w->samples = NULL;
    model_target_fini(&w->target);
    strbuf_fini(&w->out);
}

void web_accept(struct web *w, struct queue_item *item) {
    if (!w->client.begun)
        queue_item_free(item);
    else if (peer_accept(&w->client.peer, item) != PEER_OK)
        web_fail(w, 503, "too many answers are pending");
    web_pump(w);
}

void web_poll(struct web *w, uint64_t now_ns) {
    if (w->status || !w->due_ns || now_ns < w->due_ns)
        return;
    w->due_ns = 0;
    if (w->route->over && !w->asked_target)
        w->route->over(w);
    else
        web_fail(w, 503, "the agent did not answer in time");
    web_pump(w);
}

size_t web_bytes(const struct web *w) {
    return sizeof *w + w->out.cap + (w->client.begun ? peer_bytes(&w->client.peer) : 0) +
           (w->samples ? stack_counts_bytes(w->samples) : 0);
}
