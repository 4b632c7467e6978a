/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_server: server.h over libwebsockets.
 *
 * The library gets nothing of the process to touch: we make the listening socket and accept (so that a stranger is turned
 * away before a byte is read), it gets connections. Its tables are sized by us (else by RLIMIT_NOFILE), its log goes
 * nowhere, no privilege, resource limit, signal or environment variable is set. One thread, the agent's first.
 */
#include "agent/server.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libwebsockets.h>

#include "agent/account.h"
#include "agent/agent.h"
#include "agent/fds.h"
#include "agent/listener.h"
#include "agent/mailbox.h"
#include "agent/peer.h"
#include "agent/sampler.h"
#include "agent/worker.h"
#include "base/agent_abi.h"
#include "base/clock.h"
#include "base/cost.h"
#include "version.h"

#define SERVER_MAX_FDS 64
#define SERVER_MAX_CONNECTIONS (MAILBOX_SLOTS + 8) /* some may still be shaking hands */
#define SERVER_RX_BYTES 4096
#define SERVER_TX_BYTES                                                                                      \
    (256 * 1024)             /* in one call of the kernel at most; else it would be as SERVER_RX_BYTES */
#define SERVER_HANDSHAKE_S 5 /* to become a WebSocket, and then to say hello */
#define SERVER_BYE_US (500 * LWS_US_PER_MS) /* for goodbyes to be read */
#define SERVER_REAP_US (5 * LWS_US_PER_MS)
#define SERVER_PAUSE_US LWS_US_PER_SEC /* after accept failed for want of descriptors or memory */

#define SERVER_LISTEN "listen" /* name of the listening descriptor's protocol */

struct server {
    struct lws_context *context;
    int waker; /* the library's eventfd, -1 not known; see server_find_waker */
    struct lws_vhost *vhost;
    struct lws *listening;
    struct listener listener;
    char endpoint[ENDPOINT_PATH_MAX];
    struct mailbox mailbox;
    struct sampler *sampler;
    struct server_link *links; /* clients */
    size_t n_connections;      /* theirs, and those still shaking hands */
    uint32_t last_peer;
    bool ending, done;
    lws_sorted_usec_list_t deadline, reap, pause;
    uint64_t started_ns;
    struct cost_meter meter;
    struct account_stack stack;
    struct strbuf frame; /* LWS_PRE bytes of room, then what is being written */
};

/* A client; lives in the memory the library keeps for each session. */
struct server_link {
    struct server_link *next;
    struct lws *wsi;
    struct peer peer;
    bool attached; /* it is in server->links */
};

/* What a connection carries from accept to its end. */
struct server_connection {
    int fd;
};

static struct server *server_current; /* while it runs; see server_poke */

static struct server *server_of(struct lws *wsi) { return lws_context_user(lws_get_context(wsi)); }

/* ---- status ---- */

static size_t server_bytes(struct server *s) {
    size_t n = account_stack_bytes(&s->stack) + sizeof *s + lws_get_allocated_heap() + s->frame.cap;
    for (const struct server_link *l = s->links; l; l = l->next)
        n += peer_bytes(&l->peer);
    return n;
}

/* What is set now. */
static void server_fill_settings(struct server *s, struct model_status *out) {
    struct config config;
    (void)pthread_mutex_lock(&s->mailbox.lock);
    config = s->mailbox.config;
    (void)pthread_mutex_unlock(&s->mailbox.lock);
    out->settings = arena_calloc(&out->arena, CONFIG_KEYS, sizeof *out->settings);
    for (size_t i = 0; out->settings && i < CONFIG_KEYS; i++) {
        char value[CONFIG_TEXT_MAX], otherwise[CONFIG_TEXT_MAX];
        const struct config_def *d = &config_defs[i];
        config_format(&config, (enum config_key)i, false, value, sizeof value);
        config_format(&config, (enum config_key)i, true, otherwise, sizeof otherwise);
        out->settings[out->n_settings++] =
            (struct model_setting){.key = d->key,
                                   .unit = d->unit,
                                   .help = d->help,
                                   .value = arena_strdup(&out->arena, value),
                                   .otherwise = arena_strdup(&out->arena, otherwise),
                                   .given = config.given[i]};
    }
}

static void server_fill_status(void *arg, struct model_status *out) {
    struct server *s = arg;
    struct mailbox_status m;
    struct worker_status worker;
    uint64_t now = clock_mono_ns(), cpu = agent_cpu_ns();
    mailbox_get_status(&s->mailbox, &m, &out->rate_hz);
    out->agent_version = PROBING_VERSION;
    out->uptime_s = (double)(now - s->started_ns) / 1e9;
    out->cpu_s = (double)cpu / 1e9;
    out->rss_bytes = (int64_t)(m.bytes + server_bytes(s));
    for (const struct server_link *l = s->links; l; l = l->next)
        out->clients++;
    out->samples = m.samples;
    out->torn = m.torn;
    out->dropped = m.dropped;
    out->us_per_sample = m.us_per_sample;
    out->sampling = m.sampling;
    out->exact = m.exact;
    out->signals_sent = m.signals_sent;
    out->signals_late = m.signals_late;
    out->signals_refused = m.signals_refused;
    out->calls_restarted = m.calls_restarted;
    out->calls_interrupted = m.calls_interrupted;
    out->unknown_frames = m.unknown_frames;
    out->us_per_signal = m.us_per_signal;
    out->overhead_pct = cost_meter_add(&s->meter, now, cpu + m.signals_ns);
    out->budget_pct = m.budget_pct;
    out->kept_hz = m.kept_hz;
    out->stretched = m.stretched;
    out->snapshots = m.snapshots;
    out->read_errors = m.read_errors;
    out->arena_limit_hits = m.arena_limit_hits;
    worker_get_status(s->mailbox.worker, &worker);
    out->gil_holds = worker.holds;
    out->gil_refused = worker.refused;
    out->us_per_gil_hold = worker.mean_us;
    out->us_longest_gil_hold = worker.max_us;
    out->discovery = m.discovery[0] ? arena_strdup(&out->arena, m.discovery) : NULL;
    out->strategy = agent_way_name(agent_came_by());
    out->endpoint = s->endpoint;
    out->note = m.note[0] ? arena_strdup(&out->arena, m.note) : NULL;
    out->always_hz = m.always_hz;
    out->data_dir = m.data_dir[0] ? arena_strdup(&out->arena, m.data_dir) : NULL;
    out->collect_note = m.collect_note[0] ? arena_strdup(&out->arena, m.collect_note) : NULL;
    out->collect_pct = m.collect_pct;
    out->collect_us_per_s = m.collect_us_per_s;
    out->collect_threads_s = m.collect_threads_s;
    out->collect_missed = m.collect_missed;
    out->steps = m.steps;
    out->hooks = m.hooks[0] ? arena_strdup(&out->arena, m.hooks) : NULL;
    out->steps_note = m.steps_note[0] ? arena_strdup(&out->arena, m.steps_note) : NULL;
    out->spans = m.spans;
    out->spans_lost = m.spans_lost;
    out->us_per_span = m.us_per_span;
    out->tables = arena_calloc(&out->arena, m.n_tables, sizeof *out->tables);
    for (size_t i = 0; out->tables && i < m.n_tables; i++)
        out->tables[out->n_tables++] = m.tables[i];
    server_fill_settings(s, out);
}

/* ---- the end ---- */

static void server_on_deadline(lws_sorted_usec_list_t *sul) {
    lws_container_of(sul, struct server, deadline)->done = true;
}

/* A client has asked for it: take no more, say goodbye to all, and leave when they have it or the time is up. */
static void server_begin_ending(struct server *s, const char *reason) {
    if (s->ending)
        return;
    s->ending = true;
    agent_set_ending();
    listener_remove(&s->listener);
    if (s->listening)
        lws_set_timeout(s->listening, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    for (struct server_link *l = s->links; l; l = l->next) {
        peer_say_bye(&l->peer, reason);
        (void)lws_callback_on_writable(l->wsi);
    }
    lws_sul_schedule(s->context, 0, &s->deadline, server_on_deadline, SERVER_BYE_US);
}

/* ---- clients ---- */

static int server_on_open(struct server *s, struct lws *wsi, struct server_link *link) {
    if (s->ending)
        return -1;
    if (peer_init(&link->peer, ++s->last_peer, &s->mailbox) != 0)
        return -1;
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

static int server_on_receive(struct server *s, struct lws *wsi, struct server_link *link, const void *data,
                             size_t len) {
    bool last = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;
    if (!link->attached || !lws_frame_is_binary(wsi))
        return -1;
    enum peer_verdict v = peer_receive(&link->peer, data, len, last, server_fill_status, s);
    if (v == PEER_CLOSE) {
        lws_close_reason(wsi, LWS_CLOSE_STATUS_POLICY_VIOLATION, NULL, 0);
        return -1;
    }
    if (link->peer.said_hello)
        lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
    if (v == PEER_EJECT)
        server_begin_ending(s, "ejected");
    if (peer_has_output(&link->peer))
        (void)lws_callback_on_writable(wsi);
    return 0;
}

/* One message a call, as the library wants it. */
static int server_on_writable(struct server *s, struct lws *wsi, struct server_link *link) {
    static const char room[LWS_PRE];
    if (!link->attached)
        return -1;
    strbuf_clear(&s->frame);
    (void)strbuf_add(&s->frame, room, sizeof room);
    int rc = peer_next_frame(&link->peer, &s->frame);
    if (rc < 0 || s->frame.failed)
        return -1;
    if (rc == 0) {
        if (s->ending)
            lws_close_reason(wsi, LWS_CLOSE_STATUS_GOINGAWAY, NULL, 0);
        return s->ending ? -1 : 0;
    }
    size_t len = s->frame.len - sizeof room;
    if (lws_write(wsi, (unsigned char *)s->frame.data + sizeof room, len, LWS_WRITE_BINARY) < (int)len)
        return -1;
    if (peer_has_output(&link->peer) || s->ending)
        (void)lws_callback_on_writable(wsi);
    return 0;
}

/* The sampler has something for us. */
static void server_on_wake(struct server *s) {
    struct queue_item *item = mailbox_take(&s->mailbox);
    while (item) {
        struct queue_item *next = item->next;
        struct server_link *link = s->links;
        while (link && link->peer.id != item->peer)
            link = link->next;
        if (!link)
            queue_item_free(item);
        else if (peer_accept(&link->peer, item) == PEER_OK)
            (void)lws_callback_on_writable(link->wsi);
        else
            lws_set_timeout(link->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
        item = next;
    }
    mailbox_set_server_bytes(&s->mailbox, server_bytes(s));
}

/* Until the thread that brought us in has ended. */
static void server_on_reap(lws_sorted_usec_list_t *sul) {
    struct server *s = lws_container_of(sul, struct server, reap);
    if (!agent_reap())
        lws_sul_schedule(s->context, 0, &s->reap, server_on_reap, SERVER_REAP_US);
}

static int server_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                           size_t len) {
    struct server *s = server_of(wsi);
    struct server_link *link = user;
    struct server_connection *connection;
    switch (reason) {
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        /* Who names no subprotocol would be given this one. */
        return lws_hdr_total_length(wsi, WSI_TOKEN_PROTOCOL) > 0 ? 0 : -1;
    case LWS_CALLBACK_ESTABLISHED:
        return server_on_open(s, wsi, link);
    case LWS_CALLBACK_RECEIVE:
        return server_on_receive(s, wsi, link, in, len);
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
        connection = lws_get_opaque_user_data(wsi);
        if (connection) {
            fds_forget(connection->fd);
            free(connection);
            s->n_connections--;
        }
        return 0;
    default:
        return lws_callback_http_dummy(wsi, reason, user, in, len);
    }
}

/* ---- accepting ---- */

static void server_on_pause_over(lws_sorted_usec_list_t *sul) {
    struct server *s = lws_container_of(sul, struct server, pause);
    if (s->listening)
        (void)lws_rx_flow_control(s->listening, 1);
}

static void server_adopt(struct server *s, int fd) {
    struct server_connection *connection = s->ending ? NULL : malloc(sizeof *connection);
    if (!connection || s->n_connections >= SERVER_MAX_CONNECTIONS) {
        free(connection);
        (void)close(fd);
        return;
    }
    connection->fd = fd;
    fds_note(fd);
    s->n_connections++;
    lws_adopt_desc_t desc = {.vh = s->vhost, .type = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP, .opaque = connection};
    desc.fd.sockfd = fd;
    /* Should it fail, it closes the descriptor and reports the destruction. */
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
            /* No descriptors or memory: whoever waits keeps the socket readable, so look away for a while. */
            (void)lws_rx_flow_control(s->listening, 0);
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
    if (reason == LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION)
        return -1; /* it is no subprotocol to be asked for */
    if (reason == LWS_CALLBACK_RAW_RX_FILE)
        server_accept(s);
    if (reason == LWS_CALLBACK_RAW_CLOSE_FILE) {
        fds_forget(s->listener.fd);
        s->listener.fd = -1; /* the library closes it */
        s->listening = NULL;
    }
    return 0;
}

/* ---- life ---- */

/* The library makes its tables without looking whether it got memory for each (lws_create_vhost), and would fall over the
 * missing one later. One server at a time is made, by its own thread. */
static bool server_out_of_memory;

static void *server_realloc(void *at, size_t size, const char *reason) {
    (void)reason;
    if (!size) {
        free(at);
        return NULL;
    }
    void *got = realloc(at, size);
    if (!got)
        server_out_of_memory = true;
    return got;
}

static void server_log_nowhere(int level, const char *line) {
    (void)level;
    (void)line;
}

static const struct lws_protocols server_protocols[] = {
    {.name = WIRE_PROTOCOL,
     .callback = server_callback,
     .per_session_data_size = sizeof(struct server_link),
     .rx_buffer_size = SERVER_RX_BYTES,
     .tx_packet_size = SERVER_TX_BYTES},
    {.name = SERVER_LISTEN, .callback = server_listen_callback},
    {0},
};

static void server_wake(void *arg) {
    struct server *s = arg;
    lws_cancel_service(s->context);
}

/* This version of the library leaves the eventfd that wakes it open when it goes. Where descriptors are the job's, that
 * would be one more with each start. */
_Static_assert(LWS_LIBRARY_VERSION_NUMBER == 4003005, "does lws_context_destroy close its eventfd now?");

static void server_find_waker(struct server *s) {
    s->waker = fds_find_eventfd(server_wake, s);
    fds_note(s->waker);
}

static void server_close_waker(struct server *s) {
    if (s->waker < 0)
        return;
    fds_forget(s->waker);
    (void)close(s->waker);
}

static int server_open_context(struct server *s, struct err *e) {
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .protocols = server_protocols,
        .gid = (gid_t)-1,
        .uid = (uid_t)-1,
        .user = s,
        .fd_limit_per_thread = SERVER_MAX_FDS,
        .max_http_header_pool = SERVER_MAX_CONNECTIONS + 1,
        .timeout_secs = SERVER_HANDSHAKE_S,
        .vhost_name = "agent",
        .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME |
                   LWS_SERVER_OPTION_DISABLE_IPV6,
    };
    lws_set_log_level(0, server_log_nowhere);
    lws_set_allocator(server_realloc);
    server_out_of_memory = false;
    s->context = lws_create_context(&info);
    if (!s->context)
        return err_set(e, ERR_FAILED, "the WebSocket library refused to start (no memory or descriptors?)");
    server_find_waker(s);
    if (s->waker < 0 && fds_lack_eventfd()) /* the library goes on without: nobody could wake it */
        return err_set(e, ERR_FAILED, "no descriptor for waking the server");
    s->vhost = lws_create_vhost(s->context, &info);
    if (!s->vhost || server_out_of_memory)
        return err_set(e, ERR_FAILED, "the WebSocket library refused its settings");
    lws_sock_file_fd_type fd = {.filefd = s->listener.fd};
    s->listening = lws_adopt_descriptor_vhost(s->vhost, LWS_ADOPT_RAW_FILE_DESC, fd, SERVER_LISTEN, NULL);
    if (!s->listening)
        return err_set(e, ERR_FAILED, "the WebSocket library did not take the listening socket");
    return 0;
}

static void server_nudge(void *arg) { mailbox_nudge(arg); }

struct server *server_new(struct err *e) {
    struct server *s = calloc(1, sizeof *s);
    if (!s) {
        (void)err_set(e, ERR_FAILED, "no memory for the server");
        return NULL;
    }
    s->listener.fd = s->waker = -1;
    s->started_ns = clock_mono_ns();
    strbuf_init(&s->frame, WIRE_MAX_MESSAGE + LWS_PRE);
    if (mailbox_init(&s->mailbox) != 0)
        (void)err_set(e, ERR_FAILED, "no lock for the server");
    else if ((s->mailbox.worker = worker_new(server_nudge, &s->mailbox, e)) != NULL &&
             listener_open(&s->listener, e) == 0 && server_open_context(s, e) == 0)
        s->sampler = sampler_start(&s->mailbox, server_wake, s, e);
    if (!s->sampler) {
        server_free(s);
        return NULL;
    }
    fds_note(s->listener.fd);
    memcpy(s->endpoint, s->listener.path, sizeof s->endpoint);
    (void)cost_meter_add(&s->meter, s->started_ns, agent_cpu_ns());
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
    listener_remove(&s->listener);
    sampler_stop(s->sampler);
    worker_free(s->mailbox.worker);
    if (s->context)
        lws_context_destroy(s->context);
    server_close_waker(s);
    if (s->listener.fd >= 0) {
        fds_forget(s->listener.fd);
        (void)close(s->listener.fd);
    }
    mailbox_fini(&s->mailbox);
    strbuf_fini(&s->frame);
    free(s);
}
