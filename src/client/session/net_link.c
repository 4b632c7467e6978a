/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_link: net_link.h over libwebsockets' client.
 *
 * The link is the connection's opaque data. Closing removes it first, so that later callbacks of
 * libwebsockets for this connection find nothing and end it. One lws_write per WRITEABLE
 * callback; a queue in between.
 *
 * A child first walks the path to the agent (net_way.h). If it returns a connection,
 * libwebsockets, which insists on connecting by itself, gets a socket of our own to connect to,
 * and the two are exchanged before anything is sent.
 */
#include "client/session/net_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <libwebsockets.h>

#include "base/endpoint.h"
#include "client/net_loop.h"
#include "client/session/net_way.h"
#include "client/target/tcp.h"
#include "wire/wire.h"

#define NET_LINK_QUEUE_MAX 64

/* A silent peer gets a ping, and is dropped if no answer comes. */
static const lws_retry_bo_t net_link_validity = {.secs_since_valid_ping = 3, .secs_since_valid_hangup = 6};
static const lws_retry_bo_t net_link_patience = {.secs_since_valid_ping = 60, .secs_since_valid_hangup = 66};

struct net_link_message {
    struct net_link_message *next;
    size_t len;
    unsigned char bytes[]; /* LWS_PRE bytes for the frame header, then the message */
};

struct net_link {
    struct loop *loop;
    struct net_link_handler handler;
    void *arg;
    struct loop_timer *start;
    struct net_way way;
    struct guard guide; /* the child that walks it */
    struct loop_watch *watch;
    struct loop_timer *limit; /* of its time */
    int place;                /* descriptor that stands for the agent's socket; -1 */
    /* or a connection to it, and the socket that libwebsockets connects to instead; -1 */
    int connection, listener;
    char token[TCP_TOKEN_MAX];
    struct lws *wsi;
    struct net_link_message *queue;
    size_t queued;
    struct strbuf received;
    lws_retry_bo_t validity; /* one of those above; libwebsockets reads it when it sets its timer */
    bool open;
    bool ended; /* on_end is being called */
    /* set when the link is freed while a caller up the stack checks it */
    bool *freed;
    enum net_link_end refusal; /* why we end it ourselves */
    pid_t pid;                 /* the process that has to listen at the socket; 0 any */
    struct err stranger;       /* the error if another process listens instead */
    bool tcp;
    /* for TCP: the numeric host, and the same with the port */
    char host[ADDRESS_MAX], port_host[ADDRESS_MAX];
    int port;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
};

static void net_link_leave_guide(struct net_link *link) {
    loop_unwatch(link->watch);
    link->watch = NULL;
    guard_stop(&link->guide, link->pid);
}

static void net_link_free(struct net_link *link) {
    while (link->queue) {
        struct net_link_message *next = link->queue->next;
        free(link->queue);
        link->queue = next;
    }
    strbuf_fini(&link->received);
    loop_timer_free(link->start);
    loop_timer_free(link->limit);
    net_link_leave_guide(link);
    int *fds[] = {&link->place, &link->connection, &link->listener};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (*fds[i] >= 0)
            close(*fds[i]);
    if (link->freed)
        *link->freed = true;
    free(link);
}

static void net_link_detach(struct net_link *link) {
    if (!link->wsi)
        return;
    lws_set_opaque_user_data(link->wsi, NULL);
    lws_set_timeout(link->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    link->wsi = NULL;
}

void net_link_close(struct net_link *link) {
    if (!link || link->ended)
        return;
    net_link_detach(link);
    net_link_free(link);
}

static void net_link_end(struct net_link *link, enum net_link_end end, const char *why) {
    if (link->wsi)
        lws_set_opaque_user_data(link->wsi, NULL);
    link->wsi = NULL;
    link->ended = true;
    link->handler.on_end(link->arg, end, why);
    net_link_free(link);
}

/* The path cannot be connected to, because of errno `error`. */
static void net_link_end_barred(struct net_link *link, int error) {
    if (error == ENOENT || error == ECONNREFUSED || error == ENOTDIR)
        net_link_end(link, NET_LINK_NOBODY, "");
    else
        net_link_end(link, NET_LINK_BARRED, strerror(error));
}

/* There was no answer, and the peer is unknown: check whether anybody listens. */
static void net_link_end_unheard(struct net_link *link, const char *why) {
    char path[48];
    snprintf(path, sizeof path, "/proc/self/fd/%d", link->place);
    int there = link->place >= 0 ? endpoint_probe(path) : 1;
    if (there == 1)
        net_link_end(link, NET_LINK_UNREACHABLE, why);
    else
        net_link_end_barred(link, there == 0 ? ECONNREFUSED : errno);
}

/* It ended before it was open, without a reason. */
static void net_link_fail(struct net_link *link) {
    if (link->refusal == NET_LINK_STRANGER)
        net_link_end(link, NET_LINK_STRANGER, link->stranger.text);
    else
        net_link_end_unheard(link, "");
}

static void net_link_end_kept(void *arg) {
    struct net_link *link = arg;
    struct err why;
    guard_explain_blocked(link->pid, tcp_name(link->way.path), NET_WAY_MS, &why);
    net_link_end(link, NET_LINK_KEPT, why.text);
}

static void net_link_connect(struct net_link *link) {
    struct lws_client_connect_info info;
    memset(&info, 0, sizeof info);
    info.context = net_loop_context(link->loop);
    info.vhost = net_loop_vhost(link->loop);
    info.address = link->tcp ? link->host : link->path;
    info.port = link->tcp ? link->port : 0;
    info.host = link->tcp ? link->port_host : "localhost";
    info.path = "/";
    info.protocol = WIRE_PROTOCOL;
    info.local_protocol_name = NET_LINK_LOCAL_PROTOCOL;
    info.ssl_connection = LCCSCF_HTTP_NO_FOLLOW_REDIRECT;
    info.opaque_user_data = link;
    link->validity = net_link_validity;
    info.retry_and_idle_policy = &link->validity;
    /* An error on the way calls back before this function returns, and then the link is gone. */
    bool freed = false;
    link->freed = &freed;
    struct lws *wsi = lws_client_connect_via_info(&info);
    if (freed)
        return;
    link->freed = NULL;
    link->wsi = wsi;
    if (!wsi)
        net_link_fail(link);
}

/* A socket of our own, at which nobody accepts, for libwebsockets to connect to. 0, or -1 with
 * errno. */
static int net_link_listen(struct net_link *link) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    socklen_t len = sizeof sa;
    link->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* Without a name the kernel assigns a unique one (unix(7), autobind). */
    if (link->listener < 0 || bind(link->listener, (const struct sockaddr *)&sa, sizeof(sa_family_t)) != 0 ||
        listen(link->listener, 1) != 0 || getsockname(link->listener, (struct sockaddr *)&sa, &len) != 0)
        return -1;
    int n = (int)(len - offsetof(struct sockaddr_un, sun_path)) - 1;
    snprintf(link->path, sizeof link->path, "+@%.*s", n, sa.sun_path + 1);
    return 0;
}

/* The child has sent a result, or has ended. */
static void net_link_on_way(void *arg) {
    struct net_link *link = arg;
    struct net_way_found found;
    int fd, rc = net_way_hear(&link->guide, &found, &fd);
    loop_timer_cancel(link->limit);
    net_link_leave_guide(link);
    if (rc != 0 || found.kind == NET_WAY_NONE) {
        net_link_end_barred(link, rc != 0 ? ECHILD : found.error);
        return;
    }
    if (found.kind == NET_WAY_TOKEN) {
        snprintf(link->token, sizeof link->token, "%.*s", (int)sizeof found.token - 1, found.token);
    } else if (found.kind == NET_WAY_SOCKET) {
        link->place = fd;
        snprintf(link->path, sizeof link->path, "+/proc/self/fd/%d", fd);
    } else {
        link->connection = fd;
        if (net_link_listen(link) != 0) {
            net_link_end_barred(link, errno);
            return;
        }
    }
    net_link_connect(link);
}

static void net_link_begin(void *arg) {
    struct net_link *link = arg;
    if (net_way_start(&link->guide, &link->way) != 0) {
        if (errno == EBUSY)
            net_link_end_kept(link);
        else
            net_link_end_barred(link, errno);
        return;
    }
    link->watch = loop_watch_fd(link->loop, link->guide.fd, net_link_on_way, link, NULL);
    if (link->watch)
        loop_timer_set(link->limit, NET_WAY_MS * 1000ULL);
    else
        net_link_end_barred(link, EMFILE);
}

/* The numeric host without its brackets, and the text for the Host header. */
static int net_link_set_port(struct net_link *link, const char *path, struct err *e) {
    struct address a;
    if (tcp_address(path, &a, e) != 0)
        return -1;
    link->tcp = true;
    link->port = (int)address_port(&a);
    address_format(&a, link->port_host, sizeof link->port_host);
    bool bracket = link->port_host[0] == '[';
    snprintf(link->host, sizeof link->host, "%s", link->port_host + bracket);
    link->host[strcspn(link->host, bracket ? "]" : ":")] = '\0';
    return 0;
}

static int net_link_set_socket(const struct net_link *link, const char *path, struct err *e) {
    if (strlen(path) >= sizeof link->way.path)
        return err_set(e, ERR_ATTACH, "%s: the path of a unix socket has at most %zu bytes", path,
                       sizeof link->way.path - 1);
    return 0;
}

/* Put the child's connection in the place of the one to ourselves. */
static bool net_link_exchange(struct net_link *link, struct lws *wsi) {
    if (link->connection < 0)
        return true;
    bool done = dup3(link->connection, (int)lws_get_socket_fd(wsi), O_CLOEXEC) >= 0;
    close(link->connection);
    close(link->listener);
    link->connection = link->listener = -1;
    return done;
}

/* Connected, and nothing sent yet: true if the listening process is the right one. */
static bool net_link_knows_peer(struct net_link *link, struct lws *wsi) {
    if (link->tcp || link->pid <= 0 ||
        endpoint_check_peer((int)lws_get_socket_fd(wsi), link->pid, &link->stranger) == 0)
        return true;
    link->refusal = NET_LINK_STRANGER;
    return false;
}

/* Send the token with the first request. 0, or -1 if it does not fit. */
static int net_link_show_token(const struct net_link *link, struct lws *wsi, unsigned char **at,
                               size_t room) {
    static const char head[] = "Bearer ";
    char value[sizeof head + TCP_TOKEN_MAX];
    if (!link->token[0])
        return 0;
    snprintf(value, sizeof value, "%s%s", head, link->token);
    return lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, (const unsigned char *)value,
                                        (int)strlen(value), at, *at + room)
               ? -1
               : 0;
}

struct net_link *net_link_open(struct loop *l, const char *path, pid_t pid, const struct net_link_handler *h,
                               void *arg, struct err *e) {
    struct net_link *link = calloc(1, sizeof *link);
    if (!link) {
        err_set(e, ERR_FAILED, "out of memory for a connection");
        return NULL;
    }
    link->loop = l;
    link->handler = *h;
    link->arg = arg;
    link->pid = pid;
    link->guide.fd = link->place = link->connection = link->listener = -1;
    strbuf_init(&link->received, WIRE_MAX_MESSAGE);
    int rc = tcp_is(path) ? net_link_set_port(link, path, e) : net_link_set_socket(link, path, e);
    if (rc != 0)
        goto fail;
    link->way.pid = pid;
    snprintf(link->way.path, sizeof link->way.path, "%s", path);
    link->start = loop_timer_new(l, net_link_begin, link, e);
    link->limit = link->start ? loop_timer_new(l, net_link_end_kept, link, e) : NULL;
    if (!link->limit)
        goto fail;
    loop_timer_set(link->start, 0);
    return link;
fail:
    net_link_free(link);
    return NULL;
}

int net_link_send(struct net_link *link, const struct strbuf *message) {
    if (!link->open || link->queued >= NET_LINK_QUEUE_MAX || message->failed)
        return -1;
    struct net_link_message *m = malloc(sizeof *m + LWS_PRE + message->len);
    if (!m)
        return -1;
    m->next = NULL;
    m->len = message->len;
    memcpy(m->bytes + LWS_PRE, message->data, message->len);
    struct net_link_message **tail = &link->queue;
    while (*tail)
        tail = &(*tail)->next;
    *tail = m;
    link->queued++;
    lws_callback_on_writable(link->wsi);
    return 0;
}

void net_link_set_patience(struct net_link *link, bool patient) {
    if (!link)
        return;
    link->validity = patient ? net_link_patience : net_link_validity;
    /* restarts the timer */
    if (link->wsi && link->open)
        lws_validity_confirmed(link->wsi);
}

size_t net_link_outstanding(const struct net_link *link) {
    return link->open && link->wsi ? lws_remaining_packet_payload(link->wsi) : 0;
}

static int net_link_write(struct net_link *link, struct lws *wsi) {
    struct net_link_message *m = link->queue;
    if (!m)
        return 0;
    link->queue = m->next;
    link->queued--;
    int n = lws_write(wsi, m->bytes + LWS_PRE, m->len, LWS_WRITE_BINARY);
    bool whole = n >= (int)m->len;
    free(m);
    if (!whole)
        return -1;
    if (link->queue)
        lws_callback_on_writable(wsi);
    return 0;
}

/* Receive a piece of a frame. The announced rest counts towards the limit, so a false length
 * ends the link immediately. */
static int net_link_receive(struct net_link *link, struct lws *wsi, const void *in, size_t len) {
    size_t rest = lws_remaining_packet_payload(wsi);
    if (!lws_frame_is_binary(wsi)) {
        link->refusal = NET_LINK_NOT_AGENT;
        return -1;
    }
    if (rest > WIRE_MAX_MESSAGE || len > WIRE_MAX_MESSAGE ||
        link->received.len + len + rest > WIRE_MAX_MESSAGE) {
        link->refusal = NET_LINK_TOO_LONG;
        return -1;
    }
    lws_validity_confirmed(wsi);
    if (strbuf_add(&link->received, in, len) != 0) {
        link->refusal = NET_LINK_NO_MEMORY;
        return -1;
    }
    if (rest || !lws_is_final_fragment(wsi))
        return 0;
    struct strbuf message = link->received;
    strbuf_init(&link->received, WIRE_MAX_MESSAGE);
    link->handler.on_message(link->arg, message.data ? message.data : "", message.len);
    strbuf_fini(&message);
    /* The handler may have closed the link. */
    return lws_get_opaque_user_data(wsi) ? 0 : -1;
}

/* Check that the server chose our subprotocol. A server that names none is something else. */
static int net_link_check_protocol(struct lws *wsi) {
    char chosen[sizeof WIRE_PROTOCOL + 1];
    int n = lws_hdr_copy(wsi, chosen, sizeof chosen, WSI_TOKEN_PROTOCOL);
    return n > 0 && strcmp(chosen, WIRE_PROTOCOL) == 0 ? 0 : -1;
}

/* The agent's answer to clients that it refuses. */
static const char *net_link_said_no(const struct net_link *link, int status) {
    return status == 401 && link->token[0]
               ? "wrong token: give the one that 'listen' printed with --token or PROBING_TOKEN"
           : status == 401
               ? "it needs a token: give the one that 'listen' printed with --token or PROBING_TOKEN"
           : status == 403 ? "it does not accept that host name: give its address as a number"
           : status == 429 ? "too many attempts with a wrong token: wait some seconds"
                           : NULL;
}

static void net_link_refused(struct net_link *link, struct lws *wsi, const char *in, size_t len) {
    char why[128];
    if (link->refusal == NET_LINK_STRANGER) {
        net_link_end(link, NET_LINK_STRANGER, link->stranger.text);
        return;
    }
    const char *no = link->tcp ? net_link_said_no(link, (int)lws_http_client_http_response(wsi)) : NULL;
    if (no) {
        net_link_end(link, NET_LINK_REFUSED, no);
        return;
    }
    snprintf(why, sizeof why, "%.*s", (int)(len < sizeof why ? len : sizeof why - 1), in ? in : "");
    /* libwebsockets' texts for "nobody there" or "peer hung up"; all others are about an answer. */
    static const char *const unheard[] = {
        "conn fail",   "connect failed", "Unable to connect",  "Timed out",
        "read failed", "Peer hung up",   "Closed before conn", "closed before established"};
    enum net_link_end end = NET_LINK_NOT_AGENT;
    for (size_t i = 0; i < sizeof unheard / sizeof unheard[0]; i++)
        if (strncmp(why, unheard[i], strlen(unheard[i])) == 0)
            end = NET_LINK_UNREACHABLE;
    if (end == NET_LINK_UNREACHABLE)
        net_link_end_unheard(link, why);
    else
        net_link_end(link, end, why);
}

int net_link_on_event(struct lws *wsi, int reason, void *in, size_t len) {
    struct net_link *link = lws_get_opaque_user_data(wsi);
    switch (reason) {
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
        if (link)
            net_link_refused(link, wsi, in, len);
        return 0;
    case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
        return link && net_link_exchange(link, wsi) && net_link_knows_peer(link, wsi)
                   ? net_link_show_token(link, wsi, in, len)
                   : -1;
    case LWS_CALLBACK_CLIENT_FILTER_PRE_ESTABLISH:
        return link && net_link_check_protocol(wsi) == 0 ? 0 : -1;
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        if (!link)
            return -1;
        link->wsi = wsi;
        link->open = true;
        link->handler.on_open(link->arg);
        return lws_get_opaque_user_data(wsi) ? 0 : -1;
    case LWS_CALLBACK_CLIENT_RECEIVE:
        return link ? net_link_receive(link, wsi, in, len) : -1;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
        return link ? net_link_write(link, wsi) : -1;
    case LWS_CALLBACK_CLIENT_CLOSED:
        if (link)
            net_link_end(link, link->refusal, "");
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        if (link)
            net_link_fail(link);
        return 0;
    default:
        return 0;
    }
}
