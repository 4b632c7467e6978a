/* SPDX-License-Identifier: Apache-2.0 */
/* net_web: see net_web.h. */
#include "agent/server/http/net_web.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libwebsockets.h>

#include "agent/server/net_text.h"
#include "base/clock.h"

#define NET_WEB_ARGS 12
#define NET_WEB_ARG_MAX 256
#define NET_WEB_HEADER_MAX 512
#define NET_WEB_HEAD_MAX 1024 /* headers of a response */
#define NET_WEB_PIECE ((size_t)64 * 1024)
#define NET_WEB_SWEEP_US (50 * LWS_US_PER_MS)
#define NET_WEB_READ_S 20 /* seconds to read a piece of a response */

struct net_web_context {
    struct web_context web;
    struct lws_context *context;
    struct net_web *first;
    uint32_t *last_peer;
    struct strbuf *frame;
    struct net_text_context *text;
    lws_sorted_usec_list_t sweep;
};

/* A copy of the library's request: its headers are gone when the body arrives. */
struct net_web_said {
    const char *verb;
    char path[NET_WEB_ARG_MAX], args[NET_WEB_ARGS][NET_WEB_ARG_MAX], accept[NET_WEB_HEADER_MAX],
        type[NET_WEB_ARG_MAX];
    bool has_accept, has_type;
    size_t n_args;
};

struct net_web {
    struct net_web *next;
    struct lws *wsi;
    struct web web;
    /* the request, until its body has arrived; NULL once it has started */
    struct net_web_said *said;
    struct strbuf body;
    bool head;     /* no body is wanted */
    bool begun;    /* the request is being answered */
    bool finished; /* everything was written */
    size_t sent;
};

struct net_web_context *net_web_context_new(struct lws_context *context, const struct web_context *of,
                                            struct net_admission *door, uint32_t *last_peer,
                                            struct strbuf *frame) {
    struct net_web_context *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    *h = (struct net_web_context){.web = *of, .context = context, .last_peer = last_peer, .frame = frame};
    h->text = net_text_context_new(context, &h->web, door, last_peer, frame);
    if (h->text)
        return h;
    free(h);
    return NULL;
}

void net_web_context_free(struct net_web_context *h) {
    if (h)
        net_text_context_free(h->text);
    free(h);
}

/* ---- responses ---- */

static int net_web_put(struct lws *wsi, const char *name, const char *value, unsigned char **p,
                       unsigned char *end) {
    return lws_add_http_header_by_name(wsi, (const unsigned char *)name, (const unsigned char *)value,
                                       (int)strlen(value), p, end);
}

/* The headers of a response: a foreign page can neither show, read nor store it. 0 or -1. */
static int net_web_put_head(struct lws *wsi, unsigned status, const char *type, const char *allow,
                            bool truncated, size_t length) {
    unsigned char room[LWS_PRE + NET_WEB_HEAD_MAX], *start = room + LWS_PRE, *p = start,
                                                    *end = room + sizeof room - 1;
    if (lws_add_http_header_status(wsi, status, &p, end) ||
        net_web_put(wsi, "content-type:", type, &p, end) ||
        lws_add_http_header_content_length(wsi, length, &p, end) ||
        net_web_put(wsi, "cache-control:", "no-store", &p, end) ||
        net_web_put(wsi, "x-content-type-options:", "nosniff", &p, end) ||
        net_web_put(wsi, "content-security-policy:", "default-src 'none'; frame-ancestors 'none'", &p, end) ||
        net_web_put(wsi, "cross-origin-resource-policy:", "same-origin", &p, end) ||
        net_web_put(wsi, "connection:", "close", &p, end))
        return -1;
    if ((allow && allow[0] && net_web_put(wsi, "allow:", allow, &p, end)) ||
        (status == 401 && net_web_put(wsi, "www-authenticate:", "Bearer", &p, end)) ||
        ((status == 429 || status == 503) && net_web_put(wsi, "retry-after:", "1", &p, end)) ||
        (truncated && net_web_put(wsi, "x-truncated:", "true", &p, end)) ||
        lws_finalize_http_header(wsi, &p, end))
        return -1;
    int n = (int)(p - start);
    return lws_write(wsi, start, (size_t)n, LWS_WRITE_HTTP_HEADERS) == n ? 0 : -1;
}

void net_web_refuse(struct lws *wsi, unsigned status, const char *why) {
    unsigned char room[LWS_PRE + NET_WEB_HEADER_MAX];
    int n = snprintf((char *)room + LWS_PRE, sizeof room - LWS_PRE, "%s\n", why);
    if (net_web_put_head(wsi, status, web_forms[WEB_TXT].type, NULL, false, (size_t)n) == 0)
        lws_write(wsi, room + LWS_PRE, (size_t)n, LWS_WRITE_HTTP_FINAL);
}

/* Write one piece, as the library asks; the connection is closed after the last one. */
static int net_web_write(struct net_web_context *h, struct net_web *n) {
    static const char room[LWS_PRE];
    const struct web *w = &n->web;
    if (!w->status)
        return 0;
    if (n->finished)
        return -1;
    lws_set_timeout(n->wsi, PENDING_TIMEOUT_HTTP_CONTENT, NET_WEB_READ_S);
    if (!n->begun) {
        n->begun = true;
        n->finished = n->head || w->out.len == 0;
        if (net_web_put_head(n->wsi, w->status, w->type, w->allow, w->truncated, w->out.len) != 0)
            return -1;
        return lws_callback_on_writable(n->wsi) < 0 ? -1 : 0;
    }
    size_t len = w->out.len - n->sent < NET_WEB_PIECE ? w->out.len - n->sent : NET_WEB_PIECE;
    strbuf_clear(h->frame);
    strbuf_add(h->frame, room, sizeof room);
    if (strbuf_add(h->frame, w->out.data + n->sent, len) != 0)
        return -1;
    n->sent += len;
    n->finished = n->sent == w->out.len;
    if (lws_write(n->wsi, (unsigned char *)h->frame->data + sizeof room, len,
                  n->finished ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < (int)len)
        return -1;
    return lws_callback_on_writable(n->wsi) < 0 ? -1 : 0;
}

static void net_web_notice(struct net_web *n) {
    if (n->web.status && !n->begun)
        lws_callback_on_writable(n->wsi);
}

/* ---- requests in progress ---- */

static void net_web_on_sweep(lws_sorted_usec_list_t *sul) {
    struct net_web_context *h = lws_container_of(sul, struct net_web_context, sweep);
    uint64_t now = clock_mono_ns();
    for (struct net_web *n = h->first; n; n = n->next) {
        web_poll(&n->web, now);
        net_web_notice(n);
    }
    if (h->first)
        lws_sul_schedule(h->context, 0, &h->sweep, net_web_on_sweep, NET_WEB_SWEEP_US);
}

static struct net_web *net_web_new(struct net_web_context *h, struct net_connection *c, struct lws *wsi) {
    struct net_web *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->wsi = wsi;
    n->next = h->first;
    h->first = c->web = n;
    lws_sul_schedule(h->context, 0, &h->sweep, net_web_on_sweep, NET_WEB_SWEEP_US);
    return n;
}

void net_web_forget(struct net_web_context *h, struct net_connection *c) {
    net_text_forget(h->text, c);
    for (struct net_web **at = &h->first; *at && c->web; at = &(*at)->next)
        if (*at == c->web) {
            *at = c->web->next;
            web_end(&c->web->web);
            strbuf_fini(&c->web->body);
            free(c->web->said);
            free(c->web);
            c->web = NULL;
            break;
        }
    if (!h->first)
        lws_sul_cancel(&h->sweep);
}

bool net_web_accept(struct net_web_context *h, struct queue_item *item) {
    for (struct net_web *n = h->first; n; n = n->next)
        if (n->web.client.begun && n->web.client.peer.id == item->peer) {
            web_accept(&n->web, item);
            net_web_notice(n);
            return true;
        }
    return net_text_accept(h->text, item);
}

size_t net_web_bytes(const struct net_web_context *h) {
    size_t bytes = net_text_bytes(h->text);
    for (const struct net_web *n = h->first; n; n = n->next)
        bytes += sizeof *n + web_bytes(&n->web) + n->body.cap + (n->said ? sizeof *n->said : 0);
    return bytes;
}

/* ---- requests ---- */

static const char *net_web_verb(struct lws *wsi) {
    static const struct {
        enum lws_token_indexes token;
        const char *name;
    } verbs[] = {{WSI_TOKEN_GET_URI, "GET"},        {WSI_TOKEN_HEAD_URI, "HEAD"},
                 {WSI_TOKEN_POST_URI, "POST"},      {WSI_TOKEN_PUT_URI, "PUT"},
                 {WSI_TOKEN_PATCH_URI, "PATCH"},    {WSI_TOKEN_DELETE_URI, "DELETE"},
                 {WSI_TOKEN_OPTIONS_URI, "OPTIONS"}};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (lws_hdr_total_length(wsi, verbs[i].token) > 0)
            return verbs[i].name;
    return "?";
}

/* A header as text; NULL if there is none. Sets `*wrong` if it is too long. */
static const char *net_web_header(struct lws *wsi, enum lws_token_indexes which, char *buf, size_t cap,
                                  bool *wrong) {
    int len = lws_hdr_total_length(wsi, which);
    if (len <= 0)
        return NULL;
    bool fits = (size_t)len < cap && lws_hdr_copy(wsi, buf, (int)cap, which) >= 0;
    *wrong |= !fits;
    return fits ? buf : NULL;
}

/* The error in what a request declares about its body, with its status; 0 if there is none. Sets
 * `*none` if the request must not have a body or declares that it has none. */
static unsigned net_web_judge_body(struct lws *wsi, bool *none, const char **why) {
    char text[32];
    bool wrong = false;
    const char *length = net_web_header(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH, text, sizeof text, &wrong);
    bool coded = lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0;
    *why = coded ? "a body must come whole, with Content-Length and no Transfer-Encoding"
                 : "Content-Length must be one number";
    if (coded || wrong || (length && (!*length || strspn(length, "0123456789") != strlen(length))))
        return 400;
    *why = "such a request has no body";
    bool zero = length && strspn(length, "0") == strlen(length);
    if (*none)
        return length && !zero ? 400 : 0;
    *none = zero;
    *why = length ? "the body is too long" : "a body must come with its Content-Length";
    return !length ? 411 : strlen(length) > 9 || strtoul(length, NULL, 10) > WIRE_EVAL_CODE_MAX ? 413 : 0;
}

/* -1 if a part of it is too long. */
static int net_web_copy(struct lws *wsi, const char *path, struct net_web_said *said) {
    bool wrong = strlen(path) >= sizeof said->path;
    said->verb = net_web_verb(wsi);
    snprintf(said->path, sizeof said->path, "%.*s", (int)sizeof said->path - 1, path);
    for (int len; (len = lws_hdr_fragment_length(wsi, WSI_TOKEN_HTTP_URI_ARGS, (int)said->n_args)) > 0;
         said->n_args++)
        if (said->n_args + 1 == NET_WEB_ARGS || len >= NET_WEB_ARG_MAX ||
            lws_hdr_copy_fragment(wsi, said->args[said->n_args], NET_WEB_ARG_MAX, WSI_TOKEN_HTTP_URI_ARGS,
                                  (int)said->n_args) < 0)
            return -1;
    said->has_accept = net_web_header(wsi, WSI_TOKEN_HTTP_ACCEPT, said->accept, sizeof said->accept, &wrong);
    said->has_type = net_web_header(wsi, WSI_TOKEN_HTTP_CONTENT_TYPE, said->type, sizeof said->type, &wrong);
    return wrong ? -1 : 0;
}

/* The request is complete. */
static void net_web_begin(struct net_web_context *h, struct net_connection *c, struct net_web *n) {
    const char *each[NET_WEB_ARGS];
    const struct net_web_said *said = n->said;
    struct web_request q = {.verb = said->verb,
                            .path = said->path,
                            .args = each,
                            .n_args = said->n_args,
                            .accept = said->has_accept ? said->accept : NULL,
                            .type = said->has_type ? said->type : NULL,
                            .body = strbuf_str(&n->body),
                            .body_len = n->body.len};
    for (size_t i = 0; i < said->n_args; i++)
        each[i] = said->args[i];
    c->greeted = true;
    lws_set_timeout(n->wsi, NO_PENDING_TIMEOUT, 0);
    if (n->body.failed)
        web_refuse(&n->web, &h->web, 413, "the body is too long, or there is no memory for it");
    else
        web_begin(&n->web, &h->web, ++*h->last_peer, c->tcp ? c->may : WIRE_OWNS, &q);
    strbuf_fini(&n->body);
    free(n->said);
    n->said = NULL;
    net_web_notice(n);
}

static int net_web_request(struct net_web_context *h, struct net_connection *c, struct lws *wsi,
                           const char *path) {
    struct net_web *n = c->web ? NULL : net_web_new(h, c, wsi); /* one per connection */
    const char *why = "a header or a parameter is too long";
    if (!n || !(n->said = calloc(1, sizeof *n->said)))
        return -1;
    strbuf_init(&n->body, WIRE_EVAL_CODE_MAX);
    unsigned status = net_web_copy(wsi, path, n->said) != 0 ? 400 : 0;
    n->head = strcmp(n->said->verb, "HEAD") == 0;
    bool none = strcmp(n->said->verb, "POST") != 0 && strcmp(n->said->verb, "PUT") != 0;
    if (!status)
        status = net_web_judge_body(wsi, &none, &why);
    if (status) {
        c->greeted = true;
        free(n->said);
        n->said = NULL;
        web_refuse(&n->web, &h->web, status, why);
        net_web_notice(n);
    } else if (none)
        net_web_begin(h, c, n);
    return 0;
}

int net_web_on(struct net_web_context *h, struct net_connection *c, struct lws *wsi, int reason, void *in,
               size_t len) {
    struct net_web *n = c->web;
    if (reason == LWS_CALLBACK_HTTP)
        return net_web_request(h, c, wsi, in);
    if (reason == LWS_CALLBACK_HTTP_WRITEABLE)
        return n ? net_web_write(h, n) : -1;
    /* no request with such access has a body: it is refused with that reason */
    bool looks = c->tcp && c->may < WIRE_CHANGES;
    if (reason == LWS_CALLBACK_HTTP_BODY && n && n->said && !looks) /* otherwise it was refused */
        strbuf_add(&n->body, in, len);
    if (reason == LWS_CALLBACK_HTTP_BODY_COMPLETION && n && n->said)
        net_web_begin(h, c, n);
    return 0;
}

int net_web_on_text(struct net_web_context *h, struct net_connection *c, struct lws *wsi, int reason,
                    const void *in, size_t len) {
    bool ours = reason == LWS_CALLBACK_RAW_RX || reason == LWS_CALLBACK_RAW_WRITEABLE;
    return ours ? net_text_on(h->text, c, wsi, reason, in, len) : 0;
}
