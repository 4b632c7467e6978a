/* SPDX-License-Identifier: Apache-2.0 */
/* net_text: see net_text.h. */
#include "agent/server/net_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libwebsockets.h>

#include "base/clock.h"

#define NET_TEXT_LINE ((size_t)64 * 1024) /* bytes that wait to be parsed */
#define NET_TEXT_PIECE ((size_t)64 * 1024)
#define NET_TEXT_SWEEP_US (50 * LWS_US_PER_MS)
#define NET_TEXT_FIRST_S 5 /* to send a command */
#define NET_TEXT_READ_S 20 /* to read a piece of a response */
#define NET_TEXT_PROMPT "(probing) "
#define NET_TEXT_NONE "there is no such command: help lists them\n"

struct net_text_context {
    struct web_context *web;
    struct lws_context *context;
    struct net_admission *door;
    struct net_text *first;
    uint32_t *last_peer;
    struct strbuf *frame;
    lws_sorted_usec_list_t sweep;
};

struct net_text {
    struct net_text *next;
    struct lws *wsi;
    struct net_connection *c;
    struct strbuf in, out;
    size_t sent;
    size_t counted[2]; /* of `out`, by web_take_count: with more access, and read-only */
    struct web web;
    bool asking; /* `web` is in progress */
    bool known;  /* a command was received */
    bool ending; /* close when everything is written */
    bool held;   /* reading is paused */
};

/* A command: its route, and the meaning of its words. */
struct text_command {
    const char *name, *args, *help;
    const char *verb, *path; /* NULL: not one of the routes */
    const char *param;       /* the parameter that the next word is; NULL if none */
    bool body;               /* the rest of the line is the body */
};

static const struct text_command text_commands[] = {
    {"help", "", "these lines", NULL, NULL, NULL, false},
    {"token", "TOKEN", "log in, to read values and run code; needed unless you are the job's user", NULL,
     NULL, NULL, false},
    {"threads", "", "a line for each thread", "GET", "/threads", NULL, false},
    {"bt", "[TID]", "every thread with its stack, or one", "GET", "/backtrace", "thread", false},
    {"py", "CODE", "run a line of Python in the job", "POST", "/eval", NULL, true},
    {"tables", "", "the tables, with their number of rows", "GET", "/tables.txt", NULL, false},
    {"status", "", "the agent's overhead, counters and clients", "GET", "/status.txt", NULL, false},
    {"quit", "", "close the connection", NULL, NULL, NULL, false},
};

struct net_text_context *net_text_context_new(struct lws_context *context, struct web_context *of,
                                              struct net_admission *door, uint32_t *last_peer,
                                              struct strbuf *frame) {
    struct net_text_context *h = calloc(1, sizeof *h);
    if (h)
        *h = (struct net_text_context){
            .web = of, .context = context, .door = door, .last_peer = last_peer, .frame = frame};
    return h;
}

void net_text_context_free(struct net_text_context *h) { free(h); }

/* ---- commands ---- */

static void text_put_help(struct net_text *t) {
    for (size_t i = 0; i < sizeof text_commands / sizeof text_commands[0]; i++)
        strbuf_addf(&t->out, "%-8s %-6s %s\n", text_commands[i].name, text_commands[i].args,
                    text_commands[i].help);
}

/* Check that the client may enter. If not, it gets the reason and is closed. */
static bool text_enters(struct net_text_context *h, struct net_text *t, const char *token) {
    const char *why = net_admission_judge_text(h->door, t->c, token);
    if (!why)
        return true;
    strbuf_addf(&t->out, "%s\n", why);
    t->ending = true;
    return false;
}

static void text_ask(struct net_text_context *h, struct net_text *t, const struct text_command *command,
                     const char *rest) {
    char arg[64];
    const char *args[] = {arg};
    struct web_request q = {
        .verb = command->verb, .path = command->path, .args = args, .accept = "text/plain"};
    if (command->param && *rest) {
        snprintf(arg, sizeof arg, "%s=%.40s", command->param, rest);
        q.n_args = 1;
    } else if (*rest && !command->body) {
        strbuf_addf(&t->out, "%s takes no arguments: see help\n", command->name);
        return;
    }
    if (command->body) {
        q.type = "text/x-python"; /* a client that speaks text is not a page: pages speak HTTP */
        q.body = rest;
        q.body_len = strlen(rest);
    }
    t->asking = true;
    web_begin(&t->web, h->web, ++*h->last_peer, t->c->tcp ? t->c->may : WIRE_OWNS, &q);
}

/* A line that is not a command; a client that has sent no command before is closed. */
static void text_refuse(struct net_text *t, const char *why) {
    strbuf_adds(&t->out, why);
    t->ending = !t->known;
}

/* Run a line, which is complete. */
static void text_take_line(struct net_text_context *h, struct net_text *t, char *line) {
    const struct text_command *command = NULL;
    char *word = line + strspn(line, " \t"), *rest = word + strcspn(word, " \t");
    if (*rest)
        *rest++ = '\0';
    rest += strspn(rest, " \t");
    for (size_t i = 0; !command && i < sizeof text_commands / sizeof text_commands[0]; i++)
        if (strcmp(word, text_commands[i].name) == 0)
            command = &text_commands[i];
    if (!command && (*word || !t->known))
        text_refuse(t, NET_TEXT_NONE);
    if (!command || strcmp(command->name, "quit") == 0) {
        t->ending |= command != NULL;
        return;
    }
    bool says_token = strcmp(command->name, "token") == 0;
    if (!text_enters(h, t, says_token ? rest : NULL))
        return;
    t->known = t->c->greeted = true;
    lws_set_timeout(t->wsi, NO_PENDING_TIMEOUT, 0);
    if (command->path)
        text_ask(h, t, command, rest);
    else if (!says_token)
        text_put_help(t);
}

/* ---- answers ---- */

/* Take the response if there is one. */
static void text_take_answer(struct net_text *t) {
    if (!t->asking || !t->web.status)
        return;
    t->counted[t->web.may < WIRE_CHANGES] += web_take_count(&t->web);
    if (t->out.len == 0) { /* moved without a copy */
        strbuf_fini(&t->out);
        t->out = t->web.out;
        t->web.out = (struct strbuf){.data = NULL};
        t->out.limit = 0;
    } else
        strbuf_add(&t->out, t->web.out.data, t->web.out.len);
    web_end(&t->web);
    t->asking = false;
}

/* Reading pauses while a request is in progress: a client may shut down its side after the last
 * command (nc -N), which the library would take for the end of the connection. */
static void text_set_reading(struct net_text *t) {
    bool busy = t->asking || t->out.len > 0 || (t->in.len > 0 && memchr(t->in.data, '\n', t->in.len));
    if (busy == t->held)
        return;
    t->held = busy;
    if (busy || !t->c->held) /* otherwise reading resumes when admission allows it */
        lws_rx_flow_control(t->wsi, !busy);
}

/* Run the received lines, one at a time, while no request is in progress and nothing waits to be
 * written. */
static void text_go_on(struct net_text_context *h, struct net_text *t) {
    text_take_answer(t);
    while (!t->asking && !t->ending && t->in.len > 0 && t->out.len < NET_TEXT_PIECE) {
        char *end = memchr(t->in.data, '\n', t->in.len);
        if (!end)
            break;
        size_t len = (size_t)(end - t->in.data) + 1;
        bool has_nul = memchr(t->in.data, '\0', len) != NULL;
        *end = '\0';
        if (end > t->in.data && end[-1] == '\r')
            end[-1] = '\0';
        if (has_nul)
            text_refuse(t, t->known ? "a line may hold no NUL: nothing was done\n" : NET_TEXT_NONE);
        else
            text_take_line(h, t, t->in.data);
        memmove(t->in.data, t->in.data + len, t->in.len - len);
        t->in.len -= len;
        text_take_answer(t);
        if (!t->asking && !t->ending)
            strbuf_adds(&t->out, NET_TEXT_PROMPT);
    }
    text_set_reading(t);
    if (t->out.len || t->ending)
        lws_callback_on_writable(t->wsi);
}

/* A response has arrived later. */
static void text_notice(struct net_text_context *h, struct net_text *t) {
    if (!t->asking || !t->web.status)
        return;
    text_take_answer(t);
    strbuf_adds(&t->out, NET_TEXT_PROMPT);
    text_go_on(h, t);
}

/* The responses were taken. */
static void text_uncount(struct net_text_context *h, struct net_text *t) {
    web_uncount(h->web, WIRE_CHANGES, t->counted[0]);
    web_uncount(h->web, WIRE_READ_ONLY, t->counted[1]);
    t->counted[0] = t->counted[1] = 0;
}

static int text_write(struct net_text_context *h, struct net_text *t) {
    static const char room[LWS_PRE];
    size_t left = t->out.len - t->sent, len = left < NET_TEXT_PIECE ? left : NET_TEXT_PIECE;
    if (t->out.failed)
        return -1;
    if (left == 0) {
        text_uncount(h, t);
        strbuf_fini(&t->out);
        strbuf_init(&t->out, WEB_MAX_ANSWER + NET_TEXT_PIECE);
        t->sent = 0;
        if (t->c->greeted)
            lws_set_timeout(t->wsi, NO_PENDING_TIMEOUT, 0);
        if (t->ending)
            return -1;
        text_go_on(h, t);
        return 0;
    }
    lws_set_timeout(t->wsi, PENDING_TIMEOUT_HTTP_CONTENT, NET_TEXT_READ_S);
    strbuf_clear(h->frame);
    strbuf_add(h->frame, room, sizeof room);
    if (strbuf_add(h->frame, t->out.data + t->sent, len) != 0 ||
        lws_write(t->wsi, (unsigned char *)h->frame->data + sizeof room, len, LWS_WRITE_RAW) < (int)len)
        return -1;
    t->sent += len;
    return lws_callback_on_writable(t->wsi) < 0 ? -1 : 0;
}

/* ---- connections ---- */

static void text_on_sweep(lws_sorted_usec_list_t *sul) {
    struct net_text_context *h = lws_container_of(sul, struct net_text_context, sweep);
    uint64_t now = clock_mono_ns();
    for (struct net_text *t = h->first; t; t = t->next)
        if (t->asking) {
            web_poll(&t->web, now);
            text_notice(h, t);
        }
    if (h->first)
        lws_sul_schedule(h->context, 0, &h->sweep, text_on_sweep, NET_TEXT_SWEEP_US);
}

static struct net_text *text_new(struct net_text_context *h, struct net_connection *c, struct lws *wsi) {
    struct net_text *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    *t = (struct net_text){.next = h->first, .wsi = wsi, .c = c};
    strbuf_init(&t->in, NET_TEXT_LINE);
    strbuf_init(&t->out, WEB_MAX_ANSWER + NET_TEXT_PIECE);
    h->first = c->text = t;
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, NET_TEXT_FIRST_S);
    lws_sul_schedule(h->context, 0, &h->sweep, text_on_sweep, NET_TEXT_SWEEP_US);
    return t;
}

int net_text_on(struct net_text_context *h, struct net_connection *c, struct lws *wsi, int reason,
                const void *in, size_t len) {
    struct net_text *t = c->text ? c->text : text_new(h, c, wsi);
    if (!t)
        return -1;
    if (reason == LWS_CALLBACK_RAW_WRITEABLE)
        return text_write(h, t);
    if (reason == LWS_CALLBACK_RAW_RX) {
        net_admission_count_message(c);
        /* the line is too long, or too many lines wait */
        if (strbuf_add(&t->in, in, len) != 0)
            return -1;
        text_go_on(h, t);
    }
    return 0;
}

void net_text_forget(struct net_text_context *h, struct net_connection *c) {
    for (struct net_text **at = &h->first; *at && c->text; at = &(*at)->next)
        if (*at == c->text) {
            struct net_text *t = *at;
            *at = t->next;
            text_uncount(h, t);
            web_end(&t->web);
            strbuf_fini(&t->in);
            strbuf_fini(&t->out);
            free(t);
            c->text = NULL;
            break;
        }
    if (!h->first)
        lws_sul_cancel(&h->sweep);
}

bool net_text_accept(struct net_text_context *h, struct queue_item *item) {
    for (struct net_text *t = h->first; t; t = t->next)
        if (t->asking && t->web.client.begun && t->web.client.peer.id == item->peer) {
            web_accept(&t->web, item);
            text_notice(h, t);
            return true;
        }
    return false;
}

size_t net_text_bytes(const struct net_text_context *h) {
    size_t bytes = 0;
    for (const struct net_text *t = h->first; t; t = t->next)
        bytes += sizeof *t + t->in.cap + t->out.cap + (t->asking ? web_bytes(&t->web) : 0);
    return bytes;
}

const char *net_text_command(size_t i, const char **verb, const char **path) {
    if (i >= sizeof text_commands / sizeof text_commands[0])
        return NULL;
    *verb = text_commands[i].verb;
    *path = text_commands[i].path;
    return text_commands[i].name;
}
