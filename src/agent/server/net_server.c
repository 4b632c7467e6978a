/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_server: server.h over libwebsockets.
 *
 * The library cannot touch the process: we make the listening socket and accept (so that a
 * stranger is refused before a byte is read), and pass it connections. We set the size of its
 * tables (its default is RLIMIT_NOFILE), its log is discarded, and no privilege, resource limit,
 * signal or environment variable is changed. One thread, the agent's first.
 */
#include "agent/server/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libwebsockets.h>

#include "agent/life.h"
#include "agent/threads.h"
#include "agent/fds.h"
#include "agent/server/calls.h"
#include "agent/server/listener.h"
#include "agent/server/mailbox.h"
#include "agent/server/net_admission.h"
#include "agent/server/net_text.h"
#include "agent/server/http/net_web.h"
#include "agent/access/endpoints_file.h"
#include "agent/server/peer.h"
#include "agent/server/server_status.h"
#include "agent/python/worker.h"
#include "base/agent_abi.h"
#include "base/clock.h"
#include "base/cost.h"
#include "base/endpoint.h"
#include "base/strbuf.h"

#define SERVER_MAX_FDS 64
#define SERVER_MAX_CONNECTIONS (MAILBOX_SLOTS + 8) /* some may still be in the handshake */
#define SERVER_RX_BYTES 4096
/* maximum of one call of the kernel; otherwise it would be SERVER_RX_BYTES */
#define SERVER_TX_BYTES (256 * 1024)
#define SERVER_HANDSHAKE_S 5                /* to become a WebSocket, and then to send hello */
#define SERVER_BYE_US (500 * LWS_US_PER_MS) /* time to read goodbyes */
#define SERVER_REAP_US (5 * LWS_US_PER_MS)
#define SERVER_PAUSE_US LWS_US_PER_SEC /* after accept failed for lack of descriptors or memory */

#define SERVER_CLOSE_CODES 5000 /* more than there are */

#define SERVER_FRAGMENT ((size_t)64 * 1024)

#define SERVER_LISTEN "listen" /* protocol name of the listening descriptor */

/* ---- the library: it prints nothing, and its failed allocations are watched ---- */

static bool server_library_lacked; /* servers are made one at a time, each by its own thread */

static void *server_library_realloc(void *at, size_t size, const char *reason) {
    (void)reason;
    if (!size) {
        free(at);
        return NULL;
    }
    void *got = realloc(at, size);
    if (!got)
        server_library_lacked = true;
    return got;
}

static void server_library_log_nowhere(int level, const char *line) {
    (void)level;
    (void)line;
}

/* Called before a context is made. */
static void server_begin_library(void) {
    lws_set_log_level(0, server_library_log_nowhere);
    lws_set_allocator(server_library_realloc);
    server_library_lacked = false;
}

/* True if an allocation of the library has failed since server_begin_library. It makes its
 * tables without checking each allocation (lws_create_vhost), and would crash later. */
static bool server_lacks_memory(void) { return server_library_lacked; }

struct server {
    struct lws_context *context;
    int waker; /* the library's eventfd, -1 if unknown; see server_find_waker */
    struct lws_vhost *vhost;
    struct lws *listening;
    struct listener listener;
    char endpoint[ENDPOINT_PATH_MAX];
    struct net_admission *door; /* NULL if there was no memory */
    const struct server_parts *parts;
    struct mailbox mailbox;
    struct calls calls;
    struct sampler *sampler;
    struct server_link *links; /* clients */
    size_t n_connections;      /* by the unix socket: clients and handshakes */
    uint32_t last_peer;
    bool ending, done;
    lws_sorted_usec_list_t deadline, reap, pause, poll;
    uint64_t started_ns;
    struct cost_meter meter;
    struct threads_stack stack;
    struct strbuf frame; /* LWS_PRE bytes reserved, then the bytes being written */
    struct net_web_context *web;
};

/* A client, in the memory that the library allocates for each session. */
struct server_link {
    struct server_link *next;
    struct lws *wsi;
    struct net_connection *connection;
    struct peer peer;
    bool attached;    /* it is in server->links */
    int64_t uid, pid; /* its user and process; pid is -1 over TCP or if unknown */
};

static struct server *server_current; /* while it runs; see server_poke */

static struct server *server_of(struct lws *wsi) { return lws_context_user(lws_get_context(wsi)); }

static size_t server_bytes(struct server *s) {
    size_t n = threads_stack_bytes(&s->stack) + sizeof *s + lws_get_allocated_heap() + s->frame.cap;
    for (const struct server_link *l = s->links; l; l = l->next)
        n += peer_bytes(&l->peer);
    return n + net_web_bytes(s->web);
}

/* True if no later link in the list is of the same process. A client may have several
 * connections. */
static bool server_is_first(const struct server_link *link) {
    for (const struct server_link *l = link->next; l; l = l->next)
        if (l->uid == link->uid && l->pid == link->pid && l->connection->tcp == link->connection->tcp)
            return false;
    return true;
}

static void server_on_status(void *arg, struct model_status *out) {
    struct server *s = arg;
    struct server_facts facts = {.mailbox = &s->mailbox,
                                 .meter = &s->meter,
                                 .fill = s->parts->fill,
                                 .started_ns = s->started_ns,
                                 .endpoint = s->endpoint,
                                 .bytes = server_bytes(s)};
    for (const struct server_link *l = s->links; l; l = l->next) {
        facts.clients++;
        facts.processes += server_is_first(l);
    }
    server_status_fill(&facts, out);
    net_admission_fill(s->door, out);
}

/* ---- shutdown ---- */

static void server_on_deadline(lws_sorted_usec_list_t *sul) {
    lws_container_of(sul, struct server, deadline)->done = true;
}

/* A client has asked to eject: accept nothing more, send a goodbye to all clients, and end when
 * they have read it or the time is over. */
static void server_begin_ending(struct server *s, const char *reason) {
    if (s->ending)
        return;
    s->ending = true;
    endpoints_file_end();
    life_set_ending();
    net_admission_stop(s->door);
    listener_remove(&s->listener);
    if (s->listening)
        lws_set_timeout(s->listening, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    for (struct server_link *l = s->links; l; l = l->next) {
        peer_say_bye(&l->peer, reason);
        lws_callback_on_writable(l->wsi);
    }
    lws_sul_schedule(s->context, 0, &s->deadline, server_on_deadline, SERVER_BYE_US);
}

/* ---- clients ---- */

/* Record the client's user and process. */
static void server_introduce(struct server *s, struct lws *wsi, struct server_link *link) {
    link->uid = link->connection->peer.uid;
    link->pid = -1;
    if (link->connection->tcp || listener_who(lws_get_socket_fd(wsi), &link->uid, &link->pid) == 0)
        mailbox_introduce(&s->mailbox, link->peer.id, link->uid, link->pid);
}

/* A client on this machine opens or closes the TCP listener. */
static int server_listen(void *arg, const struct wire_listen *want, struct wire_listening *out,
                         struct err *e) {
    struct server *s = arg;
    if (strcmp(want->address, "off") != 0)
        return net_admission_open(s->door, want, s->endpoint, out, e);
    net_admission_close(s->door);
    return 0;
}

static int server_on_open(struct server *s, struct lws *wsi, struct server_link *link) {
    struct net_connection *connection = lws_get_opaque_user_data(wsi);
    if (s->ending || !connection || (connection->tcp && !connection->entered))
        return -1;
    if (peer_init(&link->peer, ++s->last_peer, &s->mailbox, connection->tcp ? connection->may : WIRE_OWNS) !=
        0)
        return -1;
    link->connection = connection;
    link->peer.listen = server_listen;
    link->peer.listen_arg = s;
    server_introduce(s, wsi, link);
    link->wsi = wsi;
    link->next = s->links;
    link->attached = true;
    s->links = link;
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, SERVER_HANDSHAKE_S);
    return 0;
}

static void server_on_close(struct server *s, struct server_link *link) {
    if (!link || !link->attached)
        return;
    for (struct server_link **at = &s->links; *at; at = &(*at)->next)
        if (*at == link) {
            *at = link->next;
            break;
        }
    link->attached = false;
    peer_fini(&link->peer);
    s->done |= s->ending && !s->links;
}

/* Frames that the library accepts and the protocol does not have: text frames, and bits that no
 * extension defines (RFC 6455 §5.2). */
static bool server_refuses_frame(struct lws *wsi) {
    if (!lws_get_reserved_bits(wsi) && lws_frame_is_binary(wsi))
        return false;
    lws_close_reason(wsi,
                     lws_get_reserved_bits(wsi) ? LWS_CLOSE_STATUS_PROTOCOL_ERR
                                                : LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE,
                     NULL, 0);
    return true;
}

/* A client closes: the library echoes its status, even one that must not be sent (RFC 6455
 * §5.5.1, §7.4). */
static int server_on_peer_close(struct lws *wsi, const void *said, size_t len) {
    const unsigned char *code = said;
    if (len == 0 || (len > 1 && (code[0] << 8 | code[1]) < SERVER_CLOSE_CODES))
        return 0;
    lws_close_reason(wsi, LWS_CLOSE_STATUS_PROTOCOL_ERR, NULL, 0);
    return -1;
}

/* The client sends requests and does not read. */
static void server_put_out(struct server *s, struct server_link *link) {
    mailbox_note_refusal(&s->mailbox, link->peer.id, link->uid, PEER_UNREAD);
    peer_give_up(&link->peer);
    lws_set_timeout(link->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

/* Of the clients of one kind, the one that has read nothing for the longest time; NULL if none
 * waits. */
static struct server_link *server_find_slowest(struct server *s, bool looker) {
    struct server_link *slowest = NULL;
    for (struct server_link *l = s->links; l; l = l->next)
        if (peer_is_read_only(&l->peer) == looker && l->peer.waits_ns &&
            (!slowest || l->peer.waits_ns < slowest->peer.waits_ns))
            slowest = l;
    return slowest;
}

/* While too many bytes wait: drop the notifications of the slowest client, then disconnect it. */
static void server_enforce_budget(struct server *s) {
    struct server_link *l;
    for (int looker = 0; looker < 2; looker++)
        while (queue_budget_is_over(mailbox_budget(&s->mailbox, looker)) &&
               (l = server_find_slowest(s, looker)) != NULL)
            if (!peer_shed(&l->peer))
                server_put_out(s, l);
}

static int server_on_receive(struct server *s, struct lws *wsi, struct server_link *link, const void *data,
                             size_t len) {
    bool last = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;
    if (!link->attached || server_refuses_frame(wsi))
        return -1;
    enum peer_verdict v = peer_receive(&link->peer, data, len, last, server_on_status, s);
    server_enforce_budget(s);
    if (v == PEER_CLOSE) {
        lws_close_reason(wsi, LWS_CLOSE_STATUS_POLICY_VIOLATION, NULL, 0);
        return -1;
    }
    if (link->peer.said_hello)
        lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
    link->connection->greeted = link->peer.said_hello;
    if (last)
        net_admission_count_message(link->connection);
    if (v == PEER_EJECT)
        server_begin_ending(s, "ejected");
    if (peer_has_output(&link->peer))
        lws_callback_on_writable(wsi);
    return 0;
}

/* One message per call, as the library requires; read-only clients are sent a fragment (RFC 6455
 * §5.4). The library keeps the part that the kernel does not accept until it does. */
static int server_on_writable(struct server *s, struct lws *wsi, struct server_link *link) {
    static const char room[LWS_PRE];
    bool first, last;
    if (!link->attached)
        return -1;
    strbuf_clear(&s->frame);
    strbuf_add(&s->frame, room, sizeof room);
    int rc = peer_next_piece(&link->peer, peer_is_read_only(&link->peer) ? SERVER_FRAGMENT : SIZE_MAX,
                             &s->frame, &first, &last);
    if (rc < 0 || s->frame.failed)
        return -1;
    if (rc == 0) {
        if (s->ending)
            lws_close_reason(wsi, LWS_CLOSE_STATUS_GOINGAWAY, NULL, 0);
        return s->ending ? -1 : 0;
    }
    size_t len = s->frame.len - sizeof room;
    int how = (first ? LWS_WRITE_BINARY : LWS_WRITE_CONTINUATION) | (last ? 0 : LWS_WRITE_NO_FIN);
    if (lws_write(wsi, (unsigned char *)s->frame.data + sizeof room, len, (enum lws_write_protocol)how) <
        (int)len)
        return -1;
    if (s->frame.cap > SERVER_TX_BYTES)
        strbuf_fini(&s->frame);
    if (peer_has_output(&link->peer) || s->ending)
        lws_callback_on_writable(wsi);
    return 0;
}

static void server_give(struct server_link *link, struct queue_item *item) {
    if (peer_accept(&link->peer, item) == PEER_OK)
        lws_callback_on_writable(link->wsi);
    else {
        peer_give_up(&link->peer);
        lws_set_timeout(link->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    }
}

/* Hand over what waits for clients. */
static void server_deliver(struct server *s) {
    struct queue_item *item = mailbox_take(&s->mailbox);
    while (item) {
        struct queue_item *next = item->next;
        struct server_link *link = s->links;
        while (link && link->peer.id != item->peer)
            link = link->next;
        if (link)
            server_give(link, item);
        else if (!net_web_accept(s->web, item))
            queue_item_free(item);
        item = next;
    }
    server_enforce_budget(s);
    mailbox_set_server_bytes(&s->mailbox, server_bytes(s));
}

static void server_on_poll(lws_sorted_usec_list_t *sul);

/* Poll the requests that the python workers answer when one is due. */
static void server_schedule_poll(void *arg) {
    struct server *s = arg;
    uint64_t next = calls_next_ns(&s->calls), now = clock_mono_ns();
    if (next == UINT64_MAX)
        lws_sul_cancel(&s->poll);
    else
        lws_sul_schedule(s->context, 0, &s->poll, server_on_poll,
                         next > now ? (lws_usec_t)((next - now) / CLOCK_NS_PER_US) + 1 : 1);
}

static void server_poll(struct server *s) {
    calls_poll(&s->calls);
    server_deliver(s);
    server_schedule_poll(s);
}

static void server_on_poll(lws_sorted_usec_list_t *sul) {
    server_poll(lws_container_of(sul, struct server, poll));
}

/* The sampler has items for the server, a worker has ended a job, or an endpoint has changed. */
static void server_on_wake(struct server *s) {
    endpoints_file_write(); /* before any client hears of it */
    server_poll(s);
}

/* Until the thread that started the agent has ended. */
static void server_on_reap(lws_sorted_usec_list_t *sul) {
    struct server *s = lws_container_of(sul, struct server, reap);
    if (!life_reap())
        lws_sul_schedule(s->context, 0, &s->reap, server_on_reap, SERVER_REAP_US);
}

/* The user of a unix socket connection was checked before a byte was read. */
static int server_on_http(struct server *s, struct lws *wsi, enum lws_callback_reasons reason, void *in,
                          size_t len) {
    struct net_connection *c = lws_get_opaque_user_data(wsi);
    bool asks = reason == LWS_CALLBACK_HTTP || reason == LWS_CALLBACK_HTTP_CONFIRM_UPGRADE;
    if (!c || s->ending || (asks && net_admission_judge(s->door, c, wsi) != 0))
        return -1;
    return reason == LWS_CALLBACK_HTTP_CONFIRM_UPGRADE ? 0 : net_web_on(s->web, c, wsi, reason, in, len);
}

static void server_on_destroy(struct server *s, struct net_connection *c) {
    if (!c)
        return;
    fds_forget(c->fd);
    net_web_forget(s->web, c);
    if (c->tcp)
        net_admission_forget(s->door, c);
    else
        s->n_connections--;
    free(c);
}

static int server_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                           size_t len) {
    struct server *s = server_of(wsi);
    struct server_link *link = user;
    switch (reason) {
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
    case LWS_CALLBACK_HTTP:
    case LWS_CALLBACK_HTTP_BODY:
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return server_on_http(s, wsi, reason, in, len);
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        /* A client that names no subprotocol would get this one. */
        return lws_hdr_total_length(wsi, WSI_TOKEN_PROTOCOL) > 0 ? 0 : -1;
    case LWS_CALLBACK_ESTABLISHED:
        return server_on_open(s, wsi, link);
    case LWS_CALLBACK_RECEIVE:
        return server_on_receive(s, wsi, link, in, len);
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
        return server_on_peer_close(wsi, in, len);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return server_on_writable(s, wsi, link);
    case LWS_CALLBACK_CLOSED:
        server_on_close(s, link);
        return 0;
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        server_on_wake(s);
        server_on_reap(&s->reap);
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        server_on_destroy(s, lws_get_opaque_user_data(wsi));
        return 0;
    default:
        return lws_callback_http_dummy(wsi, reason, user, in, len);
    }
}

/* ---- accepting ---- */

static void server_on_pause_over(lws_sorted_usec_list_t *sul) {
    struct server *s = lws_container_of(sul, struct server, pause);
    if (s->listening)
        lws_rx_flow_control(s->listening, 1);
}

static void server_adopt(struct server *s, int fd) {
    struct net_connection *connection = s->ending ? NULL : calloc(1, sizeof *connection);
    if (!connection || s->n_connections >= SERVER_MAX_CONNECTIONS) {
        free(connection);
        close(fd);
        return;
    }
    connection->fd = fd;
    fds_note(fd);
    s->n_connections++;
    lws_adopt_desc_t desc = {.vh = s->vhost, .type = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP, .opaque = connection};
    desc.fd.sockfd = fd;
    /* If it fails, it closes the descriptor and reports the destruction. */
    struct lws *wsi = lws_adopt_descriptor_vhost_via_info(&desc);
    if (wsi)
        lws_set_timeout(wsi, PENDING_TIMEOUT_ESTABLISH_WITH_SERVER, SERVER_HANDSHAKE_S);
}

static void server_accept(struct server *s) {
    for (;;) {
        int fd = listener_accept(&s->listener);
        if (fd >= 0) {
            server_adopt(s, fd);
            continue;
        }
        if (errno == EACCES || errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) {
            /* No descriptors or memory: a waiting connection keeps the socket readable, so stop
             * polling it for a while. */
            lws_rx_flow_control(s->listening, 0);
            lws_sul_schedule(s->context, 0, &s->pause, server_on_pause_over, SERVER_PAUSE_US);
        }
        return;
    }
}

static int server_listen_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                                  size_t len) {
    struct server *s = server_of(wsi);
    (void)user;
    (void)in;
    (void)len;
    /* it is not a subprotocol for clients */
    if (reason == LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION)
        return -1;
    if (reason == LWS_CALLBACK_RAW_RX_FILE)
        server_accept(s);
    if (reason == LWS_CALLBACK_RAW_CLOSE_FILE) {
        fds_forget(s->listener.fd);
        s->listener.fd = -1; /* the library closes it */
        s->listening = NULL;
    }
    return 0;
}

static int server_listener_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                                    size_t len) {
    (void)user;
    (void)in;
    (void)len;
    return net_admission_on_listening(server_of(wsi)->door, wsi, reason);
}

/* A client whose first bytes are not HTTP. */
static int server_text_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                                size_t len) {
    struct server *s = server_of(wsi);
    struct net_connection *c = lws_get_opaque_user_data(wsi);
    (void)user;
    /* it is not a subprotocol for clients */
    if (reason == LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION)
        return -1;
    if (reason == LWS_CALLBACK_WSI_DESTROY)
        server_on_destroy(s, c);
    else if (c)
        return s->ending ? -1 : net_web_on_text(s->web, c, wsi, (int)reason, in, len);
    return 0;
}

/* ---- life cycle ---- */

static const struct lws_protocols server_protocols[] = {
    {.name = WIRE_PROTOCOL,
     .callback = server_callback,
     .per_session_data_size = sizeof(struct server_link),
     .rx_buffer_size = SERVER_RX_BYTES,
     .tx_packet_size = SERVER_TX_BYTES},
    {.name = SERVER_LISTEN, .callback = server_listen_callback},
    {.name = NET_ADMISSION_PROTOCOL, .callback = server_listener_callback},
    {.name = NET_TEXT_PROTOCOL, .callback = server_text_callback},
    {0},
};

static void server_wake(void *arg) { lws_cancel_service(((struct server *)arg)->context); }

/* This version of the library leaks the eventfd that wakes it. Descriptors belong to the job, so
 * each start would leak one of the job's. */
_Static_assert(LWS_LIBRARY_VERSION_NUMBER == 4003005, "does lws_context_destroy close its eventfd now?");

static void server_find_waker(struct server *s) {
    s->waker = fds_find_eventfd(server_wake, s);
    fds_note(s->waker);
}

static void server_close_waker(struct server *s) {
    if (s->waker < 0)
        return;
    fds_forget(s->waker);
    close(s->waker);
}

static int server_open_context(struct server *s, struct err *e) {
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .protocols = server_protocols,
        .gid = (gid_t)-1,
        .uid = (uid_t)-1,
        .user = s,
        .fd_limit_per_thread = SERVER_MAX_FDS,
        .max_http_header_pool = SERVER_MAX_CONNECTIONS + NET_ADMISSION_MAX + 1,
        .timeout_secs = SERVER_HANDSHAKE_S,
        .vhost_name = "agent",
        .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME |
                   LWS_SERVER_OPTION_DISABLE_IPV6 | LWS_SERVER_OPTION_VALIDATE_UTF8 |
                   LWS_SERVER_OPTION_FALLBACK_TO_APPLY_LISTEN_ACCEPT_CONFIG,
        .listen_accept_role = "raw-skt",
        .listen_accept_protocol = NET_TEXT_PROTOCOL,
    };
    server_begin_library();
    s->context = lws_create_context(&info);
    if (!s->context)
        return err_set(e, ERR_FAILED, "the WebSocket library refused to start (no memory or descriptors?)");
    server_find_waker(s);
    /* the library continues without one: then nobody could wake it */
    if (s->waker < 0 && fds_lack_eventfd())
        return err_set(e, ERR_FAILED, "no descriptor for waking the server");
    s->vhost = lws_create_vhost(s->context, &info);
    if (!s->vhost || server_lacks_memory())
        return err_set(e, ERR_FAILED, "the WebSocket library refused its settings");
    lws_sock_file_fd_type fd = {.filefd = s->listener.fd};
    s->listening = lws_adopt_descriptor_vhost(s->vhost, LWS_ADOPT_RAW_FILE_DESC, fd, SERVER_LISTEN, NULL);
    if (!s->listening)
        return err_set(e, ERR_FAILED, "the WebSocket library did not take the listening socket");
    s->door = net_admission_new(s->context, s->vhost, &s->mailbox);
    struct web_context of = {.mailbox = &s->mailbox, .status = server_on_status, .status_arg = s};
    s->web = net_web_context_new(s->context, &of, s->door, &s->last_peer, &s->frame);
    if (!s->web)
        return err_set(e, ERR_FAILED, "no memory for the server");
    return 0;
}

/* Open it as the environment asks. A failure is reported in the status. */
static void server_open_listener(struct server *s) {
    struct wire_listen want = {.looking = false};
    struct err e;
    snprintf(want.address, sizeof want.address, "%.*s", (int)sizeof want.address - 1,
             s->mailbox.config.address);
    if (want.address[0])
        net_admission_open(s->door, &want, s->endpoint, NULL, &e);
}

/* The sampler is to check its jobs. */
static void server_nudge(void *arg) { mailbox_nudge(arg); }

/* From threads to which our descriptors are not ours, such as the one that runs code of clients:
 * the sampler wakes the server. */
static void server_relay(void *arg) { mailbox_poke(arg); }

struct server *server_new(const struct server_parts *parts, struct err *e) {
    struct server *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(e, ERR_FAILED, "no memory for the server");
        return NULL;
    }
    s->parts = parts;
    s->listener.fd = s->waker = -1;
    s->started_ns = clock_mono_ns();
    strbuf_init(&s->frame, WIRE_MAX_MESSAGE + LWS_PRE);
    if (mailbox_init(&s->mailbox) != 0)
        err_set(e, ERR_FAILED, "no lock for the server");
    else if ((s->mailbox.worker = worker_new(server_nudge, &s->mailbox, false, e)) != NULL &&
             (s->mailbox.evaluator = worker_new(server_relay, &s->mailbox, true, e)) != NULL &&
             listener_open(&s->listener, e) == 0 && server_open_context(s, e) == 0) {
        calls_init(&s->calls, &s->mailbox, server_schedule_poll, server_wake, s);
        s->mailbox.calls = &s->calls;
        s->sampler = parts->start(&s->mailbox, server_wake, s, e);
    }
    if (!s->sampler) {
        server_free(s);
        return NULL;
    }
    s->mailbox.leave = parts->leave;
    s->mailbox.stay = parts->stay;
    fds_note(s->listener.fd);
    memcpy(s->endpoint, s->listener.path, sizeof s->endpoint);
    server_open_listener(s);
    endpoints_file_begin(s->endpoint, s->mailbox.config.values[CONFIG_EVAL] != 0, server_relay, &s->mailbox);
    cost_meter_add(&s->meter, s->started_ns, threads_cpu_ns());
    server_current = s;
    return s;
}

const char *server_endpoint(const struct server *s) { return s->endpoint; }

void server_run(struct server *s) {
    while (!s->done && lws_service(s->context, 0) >= 0) {
    }
}

void server_poke(void) {
    if (server_current)
        mailbox_poke(&server_current->mailbox);
}

void server_free(struct server *s) {
    if (!s)
        return;
    server_current = NULL;
    net_admission_stop(s->door);
    listener_remove(&s->listener);
    calls_fini(&s->calls);
    s->parts->stop(s->sampler);
    worker_free(s->mailbox.worker);
    worker_free(s->mailbox.evaluator);
    if (s->context)
        lws_context_destroy(s->context);
    net_admission_free(s->door);
    net_web_context_free(s->web);
    server_close_waker(s);
    if (s->listener.fd >= 0) {
        fds_forget(s->listener.fd);
        close(s->listener.fd);
    }
    mailbox_fini(&s->mailbox);
    strbuf_fini(&s->frame);
    free(s);
}
