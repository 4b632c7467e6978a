/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web: the routes that the agent answers over HTTP and text: one table of routes, and a request
 * from start to response.
 *
 * A request becomes a request of the wire (local_client.h), waits without blocking anybody, and
 * is answered with a status and a text. No library, no sockets: net_web.c and net_text.c bring
 * requests and take the responses. The table is the source of the page at /, the OpenAPI
 * description, the help of the text commands, and the check of access. The server's thread.
 */
#ifndef AGENT_SERVER_HTTP_WEB_H
#define AGENT_SERVER_HTTP_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/local_client.h"
#include "base/model.h"
#include "base/strbuf.h"
#include "wire/wire.h"

#define WEB_PARAMS 6
#define WEB_NAME_MAX 64                            /* of a {name} in a path */
#define WEB_MAX_ANSWER ((size_t)8 * 1024 * 1024)   /* bytes; a longer one is 503 */
#define WEB_MOST ((size_t)16 * 1024 * 1024)        /* of unread responses together */
#define WEB_LOOKERS_MOST ((size_t)2 * 1024 * 1024) /* of unread responses to read-only clients */
/* requests in progress at a time, from all listeners */
#define WEB_BUSY 4
#define WEB_FLAMES 2 /* of those, flame graphs */

enum web_verb { WEB_GET = 0, WEB_POST, WEB_PUT, WEB_VERBS };

const char *web_verb_name(enum web_verb v); /* "GET" */

enum web_form {
    WEB_TXT = 0,
    WEB_JSON,
    WEB_NDJSON,
    WEB_CSV,
    WEB_SVG,
    WEB_FOLDED,
    WEB_HTML,
    WEB_PROMETHEUS,
    WEB_FORMS
};

struct web_form_def {
    const char *name; /* after the dot of a path, or after format= */
    const char *type; /* of the content */
};

extern const struct web_form_def web_forms[WEB_FORMS];

enum web_param_type { WEB_INTEGER = 0, WEB_NUMBER, WEB_FLAG, WEB_FORMAT };

struct web_param_def {
    const char *name, *help;
    enum web_param_type type;
    double least, most;   /* of numbers */
    double default_value; /* NAN if there is none */
};

struct web_value {
    bool given;
    double number;
};

struct json;
struct web;

struct web_route {
    enum web_verb verb;
    const char *path;            /* "/tables/{name}" */
    enum wire_method asks;       /* its effect on the job is the effect of this method */
    unsigned forms;              /* bits 1 << enum web_form */
    enum web_form default_value; /* the form if the request names none */
    /* the form may be an extension of the path: "/backtrace.json" */
    bool dotted;
    bool needs_target; /* `target` is requested before it starts */
    /* content type that its body must have; NULL: it has no body, "" any */
    const char *takes;
    bool takes_json;                    /* or application/json */
    void (*put_schema)(struct json *j); /* with the keys that this function describes (OpenAPI) */
    size_t body_max;
    const char *summary;
    struct web_param_def params[WEB_PARAMS]; /* ends with a NULL name */
    void (*begin)(struct web *w);
    /* a message other than an error; NULL: none arrives */
    void (*take)(struct web *w, const struct wire_message *m);
    /* its time is over; NULL: nothing arrived in time */
    void (*over)(struct web *w);
};

extern const struct web_route web_routes[];
extern const size_t web_n_routes;

/* A request as received. Texts are borrowed for the call. */
struct web_request {
    const char *verb;        /* "GET" */
    const char *path;        /* without arguments */
    const char *const *args; /* "name=value" */
    size_t n_args;
    const char *accept; /* NULL if there is none */
    const char *type;   /* of the body; NULL if it has none */
    const char *body;
    size_t body_len;
};

struct stack_counts;

/* Shared by all requests of a server. */
struct web_context {
    struct mailbox *mailbox;
    peer_status_fn *status;
    void *status_arg;
    unsigned busy, flames; /* in progress */
    /* bytes of unread responses: of clients with more access, and of read-only clients */
    size_t waiting[2];
};

struct web {
    struct web_context *context;
    const struct web_route *route;
    enum wire_access may;
    enum web_form form;
    const struct web_request *request;   /* until it has started; then NULL */
    struct web_value values[WEB_PARAMS]; /* in the order of the route's parameters */
    char name[WEB_NAME_MAX];
    struct local_client client;
    bool counted, counted_flame, asked_target;
    size_t counted_bytes; /* of house->waiting */
    struct model_target target;
    struct stack_counts *samples; /* of a flame graph */
    uint64_t due_ns;              /* time of the next step; 0 if there is none */
    unsigned stage;               /* owned by the route */
    /* The response. */
    unsigned status; /* 0 not yet */
    const char *type;
    struct strbuf out;
    char allow[24]; /* 405 */
    bool truncated; /* there was more */
};

/* Start a request of client number `id` with this access. It may be answered immediately. */
void web_begin(struct web *w, struct web_context *context, uint32_t id, enum wire_access may,
               const struct web_request *r);
/* Answer it with an error without asking the sampler. */
void web_refuse(struct web *w, struct web_context *context, unsigned status, const char *why);
/* The request is abandoned, or its response was taken: everything it has started ends. */
void web_end(struct web *w);

/* An item for its client has arrived; the request owns it now. */
void web_accept(struct web *w, struct queue_item *item);
/* Run the next step if it is due. */
void web_poll(struct web *w, uint64_t now_ns);

/* Detach the response from the request, for a later read: the bytes by which it counts, for a
 * client with this access, as web_take_count returned them. */
size_t web_take_count(struct web *w);
void web_uncount(struct web_context *context, enum wire_access may, size_t bytes);

size_t web_bytes(const struct web *w); /* held */

/* ---- for routes ---- */

/* Answer with an error: a line of text. */
void web_fail(struct web *w, unsigned status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The contents of `out` are the response. */
void web_done(struct web *w);
/* Send the message written with local_client_next_id, and wait so long for the answer. */
void web_ask(struct web *w, struct strbuf *message, double wait_s);
/* Before it has started: true if its body is declared as JSON. */
bool web_has_json(const struct web *w);
/* The value of a parameter of the route. */
const struct web_value *web_get(const struct web *w, const char *name);

#endif
