/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any request by HTTP and any lines of text, as far as they are ours: what the library has parsed of a request, and bytes as they
 * come from nc, from people who may do little or much. Nothing is asked that they may not, whatever is answered is well formed, and
 * what the job is called in it is harmless. The library's functions are stood in for here, so no socket is made.
 *
 * Input: a byte that says which of the ways in (two bits), what they may (two), and how the job answers (the rest); then, by HTTP,
 * lines "VERB PATH?ARG&ARG", Accept, Content-Type and Content-Length ("-" none), "chunked" or not, and the body in pieces; of text,
 * pieces. A piece stands after its length. Names in the job's answers are the input too.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libwebsockets.h>

#include "agent/server/net_text.h"
#include "agent/server/http/net_web.h"
#include "agent/server/server_status.h"
#include "support/fuzz_json.h"
#include "support/fuzz_peer.h"

#define DOORS_TOKEN "0123456789abcdef"
#define DOORS_ARGS 16
#define DOORS_TEXT 1024
#define DOORS_TURNS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DOORS_HTTP = 0, DOORS_TEXT_LINES, DOORS_LATE }; /* late: with the time that a flame graph takes */

/* What the library knows of a request, and what it was asked to do. */
struct doors {
    struct fuzz_peer f;
    struct net_connection c;
    const uint8_t *at, *end;
    const uint8_t *names; /* what the job calls things, up to the end */
    uint8_t answers;
    char verb[16], path[DOORS_TEXT], accept[DOORS_TEXT], type[DOORS_TEXT], length[DOORS_TEXT];
    bool chunked, held, wants_write;
    char *args[DOORS_ARGS];
    size_t n_args;
    unsigned status; /* of the head that was written; 0 none */
    char said_type[128];
    size_t length_said;
    struct strbuf out; /* what was written behind it */
    lws_sorted_usec_list_t *sweep;
    sul_cb_t on_sweep;
};

static struct doors d;

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check(bool holds, const char *what) {
    if (!holds)
        fail(what);
}

/* ---- the library ---- */

static const char *doors_header(enum lws_token_indexes h) {
    static const struct {
        enum lws_token_indexes token;
        const char *verb;
    } verbs[] = {{WSI_TOKEN_GET_URI, "GET"},        {WSI_TOKEN_HEAD_URI, "HEAD"},
                 {WSI_TOKEN_POST_URI, "POST"},      {WSI_TOKEN_PUT_URI, "PUT"},
                 {WSI_TOKEN_PATCH_URI, "PATCH"},    {WSI_TOKEN_DELETE_URI, "DELETE"},
                 {WSI_TOKEN_OPTIONS_URI, "OPTIONS"}};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (h == verbs[i].token)
            return strcmp(d.verb, verbs[i].verb) == 0 ? d.path : "-";
    if (h == WSI_TOKEN_HTTP_ACCEPT)
        return d.accept;
    if (h == WSI_TOKEN_HTTP_CONTENT_TYPE)
        return d.type;
    if (h == WSI_TOKEN_HTTP_CONTENT_LENGTH)
        return d.length;
    return h == WSI_TOKEN_HTTP_TRANSFER_ENCODING && d.chunked ? "chunked" : "-";
}

static int doors_copy(char *dest, int len, const char *text) {
    size_t n = strlen(text);
    if (n >= (size_t)len)
        return -1;
    memcpy(dest, text, n + 1);
    return (int)n;
}

int lws_hdr_total_length(struct lws *wsi, enum lws_token_indexes h) {
    const char *text = doors_header(h);
    (void)wsi;
    return strcmp(text, "-") == 0 ? 0 : (int)strlen(text);
}

int lws_hdr_copy(struct lws *wsi, char *dest, int len, enum lws_token_indexes h) {
    (void)wsi;
    return doors_copy(dest, len, doors_header(h));
}

int lws_hdr_fragment_length(struct lws *wsi, enum lws_token_indexes h, int frag_idx) {
    (void)wsi;
    (void)h;
    return (size_t)frag_idx < d.n_args ? (int)strlen(d.args[frag_idx]) : 0;
}

int lws_hdr_copy_fragment(struct lws *wsi, char *dest, int len, enum lws_token_indexes h, int frag_idx) {
    (void)wsi;
    (void)h;
    return (size_t)frag_idx < d.n_args ? doors_copy(dest, len, d.args[frag_idx]) : -1;
}

int lws_add_http_header_status(struct lws *wsi, unsigned int code, unsigned char **p, unsigned char *end) {
    (void)wsi;
    (void)p;
    (void)end;
    check(d.status == 0, "a request was answered twice");
    d.status = code;
    return 0;
}

/* Nothing of a request may end a line of the answer's head. */
int lws_add_http_header_by_name(struct lws *wsi, const unsigned char *name, const unsigned char *value,
                                int length, unsigned char **p, unsigned char *end) {
    (void)wsi;
    check(length >= 0 && length < end - *p, "a header does not fit");
    for (int i = 0; i < length; i++)
        check(value[i] >= ' ' && value[i] < 0x7f, "a header has a byte that is none of text");
    if (strcmp((const char *)name, "content-type:") == 0)
        (void)snprintf(d.said_type, sizeof d.said_type, "%.*s", length, (const char *)value);
    *p += length;
    return 0;
}

int lws_add_http_header_content_length(struct lws *wsi, lws_filepos_t content_length, unsigned char **p,
                                       unsigned char *end) {
    (void)wsi;
    (void)p;
    (void)end;
    d.length_said = (size_t)content_length;
    return 0;
}

int lws_finalize_http_header(struct lws *wsi, unsigned char **p, unsigned char *end) {
    (void)wsi;
    (void)p;
    (void)end;
    return 0;
}

int lws_write(struct lws *wsi, unsigned char *buf, size_t len, enum lws_write_protocol protocol) {
    (void)wsi;
    if (protocol != LWS_WRITE_HTTP_HEADERS)
        (void)strbuf_add(&d.out, buf, len);
    return (int)len;
}

int lws_callback_on_writable(struct lws *wsi) {
    (void)wsi;
    d.wants_write = true;
    return 1;
}

int lws_rx_flow_control(struct lws *wsi, int enable) {
    (void)wsi;
    d.held = !enable;
    return 0;
}

void lws_set_timeout(struct lws *wsi, enum pending_timeout reason, int secs) {
    (void)wsi;
    (void)reason;
    (void)secs;
}

void lws_sul_schedule(struct lws_context *ctx, int tsi, lws_sorted_usec_list_t *sul, sul_cb_t cb,
                      lws_usec_t us) {
    (void)ctx;
    (void)tsi;
    (void)us;
    d.sweep = sul;
    d.on_sweep = cb;
}

void lws_sul_cancel(lws_sorted_usec_list_t *sul) {
    (void)sul;
    d.on_sweep = NULL;
}

/* ---- the door, which is open to who is of this machine, or has the token ---- */

const char *net_admission_judge_text(struct net_admission *door, struct net_connection *c,
                                     const char *token) {
    (void)door;
    c->entered |= token && strcmp(token, DOORS_TOKEN) == 0;
    return c->entered ? NULL : "a token is needed: token TOKEN";
}

void net_admission_count_message(struct net_connection *c) { (void)c; }

/* ---- the job ---- */

/* A name of the job's: some bytes of the input. */
static const char *doors_name(char *buf, size_t cap, size_t skip) {
    size_t left = (size_t)(d.end - d.names), n = left > skip ? left - skip : 0;
    n = n < cap ? n : cap - 1;
    if (n)
        memcpy(buf, d.names + skip, n);
    buf[n] = '\0';
    return buf;
}

static void doors_put_snapshot(struct strbuf *b, uint32_t id, const char *one, const char *two) {
    struct model_frame frames[] = {{.func = one, .file = two, .line = 3},
                                   {.kind = MODEL_FRAME_NATIVE, .func = two, .module = one, .address = 7}};
    struct model_thread thread = {
        .tid = 7, .name = one, .native_name = two, .state = 'R', .frames = frames, .n_frames = 2};
    struct model_snapshot s = {.timestamp = 1, .threads = &thread, .n_threads = 1, .note = two};
    (void)wire_put_snapshot(b, id, &s);
}

static void doors_put_samples(struct strbuf *b, const char *one, const char *two) {
    struct model_frame_def frames[] = {{1, {.func = one, .file = two}}, {2, {.func = two, .file = one}}};
    struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}};
    struct model_sample samples[] = {{.tid = 7, .stack_id = 2, .on_cpu = 1}, {.tid = 7, .stack_id = 1}};
    struct model_sample_batch batch = {.epoch = 1,
                                       .period_us = 1e4,
                                       .frames = frames,
                                       .n_frames = 2,
                                       .stacks = stacks,
                                       .n_stacks = 2,
                                       .samples = samples,
                                       .n_samples = 2};
    (void)wire_put_samples_notify(b, &batch);
}

static void doors_put_rows(struct strbuf *b, uint32_t id, const char *one, const char *two) {
    struct wire_value names[] = {{.kind = WIRE_VALUE_TEXT, .len = 4, .s = "name"},
                                 {.kind = WIRE_VALUE_TEXT, .len = 2, .s = "id"}};
    struct wire_value values[] = {{.kind = WIRE_VALUE_TEXT, .len = strlen(one), .s = one},
                                  {.kind = WIRE_VALUE_INT, .i = 7}};
    struct wire_rows rows = {.n_columns = 2, .n_rows = 1, .more = d.answers & 1};
    struct strbuf columns, row;
    strbuf_init(&columns, 65536);
    strbuf_init(&row, 65536);
    (void)wire_add_row(&columns, names, 2);
    (void)wire_add_row(&row, values, 2);
    rows.columns = columns.data;
    rows.columns_len = columns.len;
    rows.rows = row.data;
    rows.rows_len = row.len;
    (void)snprintf(rows.note, sizeof rows.note, "%s", two);
    (void)wire_put_rows(b, id, &rows);
    strbuf_fini(&columns);
    strbuf_fini(&row);
}

static void doors_put_evaluated(struct strbuf *b, uint32_t id, const char *one, const char *two) {
    struct wire_evaluated v = {
        .result = {one, strlen(one)}, .output = {two, strlen(two)}, .timed_out = d.answers & 2};
    if (d.answers & 1) {
        v.type = v.message = v.result;
        v.traceback = v.output;
    }
    (void)wire_put_evaluated(b, id, &v);
}

/* What the job says to what was asked; nothing is written: it does not answer. */
static void doors_put_answer(struct strbuf *b, const struct mailbox_ask *ask) {
    char one[128], two[96];
    doors_name(one, sizeof one, 0);
    doors_name(two, sizeof two, 16);
    struct model_target target = {
        .pid = 7, .cmdline = one, .python = two, .host = two, .rank = MODEL_UNKNOWN};
    if (d.answers % 8 == 7)
        return;
    if (d.answers % 8 == 6)
        (void)wire_put_error(b, ask->id, WIRE_E_UNAVAILABLE, one);
    else if (d.answers % 8 == 5)
        (void)strbuf_add(b, d.names, (size_t)(d.end - d.names)); /* any bytes */
    else if (ask->method == WIRE_HELLO)
        (void)wire_put_target(b, ask->id, &target);
    else if (ask->method == WIRE_THREADS)
        doors_put_snapshot(b, ask->id, one, two);
    else if (ask->method == WIRE_ROWS)
        doors_put_rows(b, ask->id, one, two);
    else if (ask->method == WIRE_EVAL)
        doors_put_evaluated(b, ask->id, one, two);
    else
        (void)wire_put_ok(b, ask->id);
}

/* Hand a message to whoever it is for, and free it. Was there one? */
static bool doors_send(struct net_web_context *h, struct web *web, struct strbuf *b, uint32_t peer) {
    struct queue_item *item = b->len ? queue_item_new(queue_bytes_new(b), QUEUE_ANSWER, peer) : NULL;
    strbuf_fini(b);
    if (item && web)
        web_accept(web, item);
    else if (item && !net_web_accept(h, item))
        queue_item_free(item);
    return item;
}

/* Answer what a client has asked for, which must be what they may have. */
static bool doors_answer(struct net_web_context *h, struct web *web, uint32_t peer,
                         const struct mailbox_ask *ask) {
    enum wire_access may = d.c.tcp ? d.c.may : WIRE_OWNS;
    char one[128], two[96];
    struct strbuf b;
    check(wire_method_access(ask->method) <= may, "something was asked that they may not");
    check(!d.c.tcp || d.c.entered, "something was asked for who is not in");
    if (ask->method == WIRE_UNSUBSCRIBE && d.answers % 8 < 5) {
        strbuf_init(&b, 0);
        doors_put_samples(&b, doors_name(one, sizeof one, 0), doors_name(two, sizeof two, 16));
        (void)doors_send(h, web, &b, peer);
    }
    strbuf_init(&b, 0);
    doors_put_answer(&b, ask);
    return doors_send(h, web, &b, peer);
}

/* Whether the job had anything to answer. */
static bool doors_serve(struct net_web_context *h, struct web *web) {
    bool served = false;
    for (size_t i = 0; i < MAILBOX_SLOTS; i++) {
        struct mailbox_slot *slot = &d.f.mailbox.slots[i];
        struct mailbox_ask asks[MAILBOX_MAX_ASKS];
        size_t n = slot->n_asks;
        uint32_t peer = slot->peer;
        memcpy(asks, slot->asks, sizeof asks);
        slot->n_asks = 0;
        for (size_t k = 0; k < n; k++)
            served |= doors_answer(h, web, peer, &asks[k]);
    }
    for (size_t i = 0; i < CALLS_MAX; i++) {
        struct call *call = &d.f.calls.all[i];
        const struct mailbox_ask ask = {.method = call->method, .id = call->id};
        uint32_t peer = call->peer;
        call_fini(call);
        if (peer)
            served |= doors_answer(h, web, peer, &ask);
    }
    return served;
}

static void doors_status(void *arg, struct model_status *out) {
    static struct cost_meter meter;
    struct server_facts facts = {
        .mailbox = arg, .meter = &meter, .endpoint = "/tmp/probing-0/1.sock", .clients = 1};
    server_status_fill(&facts, out);
}

/* ---- what is answered ---- */

static bool doors_is(const char *type, enum web_form form) { return strcmp(type, web_forms[form].type) == 0; }

static size_t doors_count(const struct strbuf *b, const char *what) {
    const char *at = strbuf_str(b);
    size_t n = 0;
    while ((at = strstr(at, what)) != NULL) {
        n++;
        at += strlen(what);
    }
    return n;
}

/* A picture has no elements but ours. */
static void doors_check_svg(const struct strbuf *out) {
    check(strncmp(strbuf_str(out), "<svg", 4) == 0 || strncmp(strbuf_str(out), "<?xml", 5) == 0,
          "no picture");
    check(doors_count(out, "<script") == 0 && doors_count(out, "<svg") == 1 &&
              doors_count(out, "</svg>") == 1,
          "a name is an element of a picture");
}

static void doors_check_answer(unsigned status, const char *type, const struct strbuf *out) {
    static const unsigned known[] = {200, 400, 403, 404, 405, 406, 411, 413, 415, 429, 503, 504};
    bool there = false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        there |= status == known[i];
    check(there, "a status that is none of ours");
    if (doors_is(type, WEB_JSON))
        check(fuzz_json_is(strbuf_str(out), out->len), "what is said to be JSON is none");
    else if (doors_is(type, WEB_SVG))
        doors_check_svg(out);
    else if (doors_is(type, WEB_TXT))
        check(fuzz_text_is_plain(strbuf_str(out), out->len), "a text has what a terminal would obey");
}

/* ---- the input ---- */

/* The next line, without its end, into `buf`. */
static const char *doors_line(char *buf, size_t cap) {
    const uint8_t *stop = d.at < d.end ? memchr(d.at, '\n', (size_t)(d.end - d.at)) : NULL;
    size_t n = (size_t)((stop ? stop : d.end) - d.at), kept = n < cap ? n : cap - 1;
    if (kept)
        memcpy(buf, d.at, kept);
    buf[kept] = '\0';
    d.at += n + (stop != NULL);
    return buf;
}

/* A piece of its own size, to be freed: a sanitiser then sees a read past its end. */
static uint8_t *doors_piece(size_t *len) {
    *len = d.at < d.end ? *d.at++ : 0;
    *len = *len < (size_t)(d.end - d.at) ? *len : (size_t)(d.end - d.at);
    uint8_t *piece = malloc(*len ? *len : 1);
    if (piece && *len)
        memcpy(piece, d.at, *len);
    d.at += *len;
    return piece;
}

static void doors_read_head(void) {
    static char line[DOORS_TEXT];
    doors_line(line, sizeof line);
    char *space = strchr(line, ' '), *args = strchr(line, '?'), *rest = NULL;
    if (args)
        *args++ = '\0';
    (void)snprintf(d.verb, sizeof d.verb, "%.*s", (int)strcspn(line, " "), line);
    (void)snprintf(d.path, sizeof d.path, "%s", space && (!args || space < args) ? space + 1 : "/");
    for (char *arg = args ? strtok_r(args, "&", &rest) : NULL; arg && d.n_args < DOORS_ARGS;
         arg = strtok_r(NULL, "&", &rest))
        d.args[d.n_args++] = arg;
    doors_line(d.accept, sizeof d.accept);
    doors_line(d.type, sizeof d.type);
    doors_line(d.length, sizeof d.length);
    char chunked[16];
    d.chunked = strcmp(doors_line(chunked, sizeof chunked), "chunked") == 0;
    d.names = d.at;
}

/* ---- by HTTP ---- */

static struct lws *doors_wsi(void) { return (struct lws *)&d; } /* nobody looks into it */

static void doors_http(struct net_web_context *h) {
    doors_read_head();
    int rc = net_web_on(h, &d.c, doors_wsi(), LWS_CALLBACK_HTTP, d.path, strlen(d.path));
    for (int i = 0; rc == 0 && i < DOORS_TURNS && d.at < d.end && !d.status; i++) {
        size_t len;
        uint8_t *piece = doors_piece(&len);
        if (piece)
            rc = net_web_on(h, &d.c, doors_wsi(), LWS_CALLBACK_HTTP_BODY, piece, len);
        free(piece);
    }
    if (rc == 0)
        rc = net_web_on(h, &d.c, doors_wsi(), LWS_CALLBACK_HTTP_BODY_COMPLETION, NULL, 0);
    for (int i = 0; rc == 0 && i < DOORS_TURNS; i++) {
        bool served = doors_serve(h, NULL), write = d.wants_write;
        d.wants_write = false;
        if (write)
            rc = net_web_on(h, &d.c, doors_wsi(), LWS_CALLBACK_HTTP_WRITEABLE, NULL, 0);
        else if (!served)
            break;
    }
    if (rc != 0 && d.status && strcmp(d.verb, "HEAD") != 0)
        check(d.out.len == d.length_said, "an answer is not as long as it says");
    if (d.out.len)
        doors_check_answer(d.status, d.said_type, &d.out);
}

/* ---- the same without the library, and with time that passes ---- */

static void doors_late(struct web_context *context) {
    static struct web w;
    doors_read_head();
    struct web_request q = {.verb = d.verb,
                            .path = d.path,
                            .args = (const char *const *)d.args,
                            .n_args = d.n_args,
                            .accept = strcmp(d.accept, "-") == 0 ? NULL : d.accept,
                            .type = strcmp(d.type, "-") == 0 ? NULL : d.type,
                            .body = strcmp(d.length, "-") == 0 ? NULL : d.length,
                            .body_len = strcmp(d.length, "-") == 0 ? 0 : strlen(d.length)};
    d.c.entered = true;
    web_begin(&w, context, 7, d.c.tcp ? d.c.may : WIRE_OWNS, &q);
    for (int i = 0; i < DOORS_TURNS && !w.status; i++)
        if (!doors_serve(NULL, &w))
            web_poll(&w, UINT64_MAX);
    check(w.status, "a request was never answered");
    check(w.type, "an answer has no type");
    doors_check_answer(w.status, w.type, &w.out);
    (void)web_bytes(&w);
    web_end(&w);
    check(context->busy == 0 && context->flames == 0, "a request is over and counted still");
}

/* ---- lines of text ---- */

/* What is under way goes on. -1: the connection is closed. */
static int doors_turn(struct net_web_context *h) {
    int rc = 0;
    for (int i = 0; rc == 0 && i < DOORS_TURNS; i++) {
        bool served = doors_serve(h, NULL), write = d.wants_write;
        d.wants_write = false;
        if (write)
            rc = net_web_on_text(h, &d.c, doors_wsi(), LWS_CALLBACK_RAW_WRITEABLE, NULL, 0);
        else if (!served)
            break;
    }
    return rc;
}

static void doors_text(struct net_web_context *h) {
    int rc = 0;
    for (int i = 0; rc == 0 && i < DOORS_TURNS && d.at < d.end && !d.held; i++) {
        size_t len;
        uint8_t *piece = doors_piece(&len);
        if (piece)
            rc = net_web_on_text(h, &d.c, doors_wsi(), LWS_CALLBACK_RAW_RX, piece, len);
        free(piece);
        if (rc == 0)
            rc = doors_turn(h);
    }
    if (rc == 0 && d.on_sweep)
        d.on_sweep(d.sweep);
    check(fuzz_text_is_plain(strbuf_str(&d.out), d.out.len), "a text has what a terminal would obey");
    check(d.c.entered || !d.c.tcp || doors_count(&d.out, "(probing) ") == 0,
          "who is not in is given a prompt");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct strbuf frame;
    static uint32_t last_peer;
    if (size < 1)
        return 0;
    memset(&d, 0, sizeof d);
    d.at = d.names = data + 1;
    d.end = data + size;
    d.answers = data[0] >> 4;
    d.c = (struct net_connection){.tcp = data[0] & 4, .fd = -1, .peer = {.uid = ACCESS_UNKNOWN}};
    d.c.may = data[0] & 8 ? WIRE_CHANGES : WIRE_READ_ONLY;
    strbuf_init(&d.out, 0);
    strbuf_init(&frame, 0);
    fuzz_peer_open(&d.f, 0);
    struct web_context context = {
        .mailbox = &d.f.mailbox, .status = doors_status, .status_arg = &d.f.mailbox};
    struct net_web_context *h = net_web_context_new(NULL, &context, NULL, &last_peer, &frame);
    check(h, "no memory");
    d.c.entered = data[0] % 4 != DOORS_TEXT_LINES; /* the door has judged them before; of text it is asked */
    if (data[0] % 4 == DOORS_TEXT_LINES)
        doors_text(h);
    else if (data[0] % 4 == DOORS_LATE)
        doors_late(&context);
    else
        doors_http(h);
    (void)net_web_bytes(h);
    net_web_forget(h, &d.c);
    net_web_context_free(h);
    fuzz_peer_close(&d.f);
    strbuf_fini(&frame);
    strbuf_fini(&d.out);
    return 0;
}
