/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web: what the agent answers to who speaks HTTP, or text: one table of routes, and a request on its way to its answer.
 *
 * A request is asked of the agent in the words of the wire (local_client.h), waits without holding anybody up, and is answered with a
 * status and a text. No library, no sockets: net_web.c and net_text.c bring requests and take answers away. From the table are
 * made the page at /, the OpenAPI description, the help of the text door, and the test of who may do what. The server's thread.
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
#define WEB_NAME_MAX 64                            /* of what stands in a path for {name} */
#define WEB_MAX_ANSWER ((size_t)8 * 1024 * 1024)   /* bytes; a longer one is 503 */
#define WEB_MOST ((size_t)16 * 1024 * 1024)        /* of answers that were not taken away yet, together; */
#define WEB_LOOKERS_MOST ((size_t)2 * 1024 * 1024) /* of those of who may only look */
#define WEB_BUSY 4                                 /* requests under way at a time, of all doors, */
#define WEB_FLAMES 2                               /* and of those, flame graphs */

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
    const char *name; /* behind the dot of a path, or of format= */
    const char *type; /* of the content */
};

extern const struct web_form_def web_forms[WEB_FORMS];

enum web_param_type { WEB_INTEGER = 0, WEB_NUMBER, WEB_FLAG, WEB_FORMAT };

struct web_param_def {
    const char *name, *help;
    enum web_param_type type;
    double least, most;   /* of numbers */
    double default_value; /* when it is not given; NAN nothing */
};

struct web_value {
    bool given;
    double number;
};

struct json;
struct web;

struct web_route {
    enum web_verb verb;
    const char *path;                   /* "/tables/{name}" */
    enum wire_method asks;              /* what it does to the job is what that does */
    unsigned forms;                     /* 1 << enum web_form, each */
    enum web_form default_value;        /* the form when none is asked for */
    bool dotted;                        /* the form may stand behind the path: "/backtrace.json" */
    bool needs_target;                  /* `target` is asked for before it begins */
    const char *takes;                  /* content type that its body must have; NULL: it has none, "" any */
    bool takes_json;                    /* or application/json, */
    void (*put_schema)(struct json *j); /* with keys that this describes (OpenAPI) */
    size_t body_max;
    const char *summary;
    struct web_param_def params[WEB_PARAMS]; /* ends with a NULL name */
    void (*begin)(struct web *w);
    void (*take)(struct web *w,
                 const struct wire_message *m); /* a message that is no error; NULL: none comes */
    void (*over)(struct web *w);                /* its time has come; NULL: it was waited for in vain */
};

extern const struct web_route web_routes[];
extern const size_t web_n_routes;

/* A request as it came. Texts are borrowed for the call. */
struct web_request {
    const char *verb;        /* "GET" */
    const char *path;        /* without arguments */
    const char *const *args; /* "name=value" */
    size_t n_args;
    const char *accept; /* NULL there is none */
    const char *type;   /* of the body; NULL it says none */
    const char *body;
    size_t body_len;
};

struct stack_counts;

/* What the requests of a server have in common. */
struct web_context {
    struct mailbox *mailbox;
    peer_status_fn *status;
    void *status_arg;
    unsigned busy, flames; /* under way */
    size_t waiting
        [2]; /* bytes of answers that were not taken away yet: of who may do more, and who may only look */
};

struct web {
    struct web_context *context;
    const struct web_route *route;
    enum wire_access may;
    enum web_form form;
    const struct web_request *request;   /* while it begins; else NULL */
    struct web_value values[WEB_PARAMS]; /* in the order of the route's */
    char name[WEB_NAME_MAX];
    struct local_client client;
    bool counted, counted_flame, asked_target;
    size_t counted_bytes; /* of house->waiting */
    struct model_target target;
    struct stack_counts *samples; /* of a flame graph */
    uint64_t due_ns;              /* when something is to be done; 0 never */
    unsigned stage;               /* the route's own */
    /* The answer. */
    unsigned status; /* 0 not yet */
    const char *type;
    struct strbuf out;
    char allow[24]; /* 405 */
    bool truncated; /* there would have been more */
};

/* Begin with a request of client number `id`, who may do so much. It may be answered at once. */
void web_begin(struct web *w, struct web_context *context, uint32_t id, enum wire_access may,
               const struct web_request *r);
/* Answer it with an error without asking anybody. */
void web_refuse(struct web *w, struct web_context *context, unsigned status, const char *why);
/* Given up, or its answer was taken away: whatever it had asked for ends. */
void web_end(struct web *w);

/* Something for its client has come; it is the request's now. */
void web_accept(struct web *w, struct queue_item *item);
/* Is it time? */
void web_poll(struct web *w, uint64_t now_ns);

/* The answer leaves the request, and was taken away later: `bytes` of somebody who may do so much, as web_take_count gave them. */
size_t web_take_count(struct web *w);
void web_uncount(struct web_context *context, enum wire_access may, size_t bytes);

size_t web_bytes(const struct web *w); /* held */

/* ---- for routes ---- */

/* Answer with an error: a line that says what. */
void web_fail(struct web *w, unsigned status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* What was written to `out` is the answer. */
void web_done(struct web *w);
/* Send what was written with local_client_next_id; an answer is waited for so long. */
void web_ask(struct web *w, struct strbuf *message, double wait_s);
/* While it begins: is its body said to be JSON? */
bool web_has_json(const struct web *w);
/* Value of a parameter of the route. */
const struct web_value *web_get(const struct web *w, const char *name);

#endif
