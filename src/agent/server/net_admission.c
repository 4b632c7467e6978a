/* SPDX-License-Identifier: Apache-2.0 */
/* net_admission: see net_admission.h. */
#include "agent/server/net_admission.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libwebsockets.h>

#include "agent/fds.h"
#include "agent/server/mailbox.h"
#include "agent/server/http/net_web.h"
#include "agent/server/tcp_listener.h"
#include "base/clock.h"

#define NET_ADMISSION_HANDSHAKE_NS (5 * CLOCK_NS_PER_S) /* to become a WebSocket and send hello */
#define NET_ADMISSION_SWEEP_US (250 * LWS_US_PER_MS)
#define NET_ADMISSION_PAUSE_US (100 * LWS_US_PER_MS)
#define NET_ADMISSION_CONNECTIONS_S 50.0 /* new connections per second */
#define NET_ADMISSION_CONNECTIONS 100.0  /* and in a burst */
#define NET_ADMISSION_MESSAGES_S 500.0   /* per second, from one client */
#define NET_ADMISSION_MESSAGES 1000.0
#define NET_ADMISSION_HEADER 192
#define NET_ADMISSION_BEARER "Bearer "
#define NET_ADMISSION_SITE "sec-fetch-site:"
#define NET_ADMISSION_PAGE "refused: the request comes from a web page of another server"

struct net_admission {
    struct lws_context *context;
    struct lws_vhost *vhost;
    struct mailbox *mailbox; /* is notified of refusals */
    struct lws *listening;   /* NULL if closed */
    struct tcp_listener door;
    struct access access;
    struct net_connection *connections;
    size_t n;
    double credit; /* connections that may arrive in a burst */
    uint64_t credit_ns;
    lws_sorted_usec_list_t pause, sweep;
    uint64_t accepted, refused;
    char note[192]; /* see struct model_door */
};

/* So many per second, and `most` in a burst: true if one more is allowed. */
static bool net_admission_spend(double *credit, uint64_t *since_ns, double per_s, double most) {
    uint64_t now = clock_mono_ns();
    *credit += (double)(now - *since_ns) / 1e9 * per_s;
    *credit = *credit > most ? most : *credit;
    *since_ns = now;
    if (*credit < 1)
        return false;
    *credit -= 1;
    return true;
}

/* ---- connections ---- */

static void net_admission_put_out(struct net_connection *c) {
    if (c->wsi)
        lws_set_timeout(c->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

/* Disconnect clients that take too long; read again from clients that were paused for asking too
 * fast. A timeout of the library would restart after some bytes. */
static void net_admission_on_sweep(lws_sorted_usec_list_t *sul) {
    struct net_admission *d = lws_container_of(sul, struct net_admission, sweep);
    uint64_t now = clock_mono_ns();
    for (struct net_connection *c = d->connections; c; c = c->next) {
        if (!c->greeted && now - c->born_ns > NET_ADMISSION_HANDSHAKE_NS)
            net_admission_put_out(c);
        if (c->held && c->wsi) {
            c->held = false;
            lws_rx_flow_control(c->wsi, 1);
        }
    }
    if (d->connections)
        lws_sul_schedule(d->context, 0, &d->sweep, net_admission_on_sweep, NET_ADMISSION_SWEEP_US);
}

void net_admission_count_message(struct net_connection *c) {
    if (c->tcp &&
        !net_admission_spend(&c->credit, &c->credit_ns, NET_ADMISSION_MESSAGES_S, NET_ADMISSION_MESSAGES) &&
        c->wsi) {
        c->held = true;
        lws_rx_flow_control(c->wsi, 0);
    }
}

void net_admission_forget(struct net_admission *d, struct net_connection *c) {
    for (struct net_connection **at = &d->connections; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            d->n--;
            return;
        }
}

/* Record a refused client in the status and in a row of events. */
static void net_admission_note(struct net_admission *d, const struct address *far, int64_t uid,
                               const char *why) {
    char who[ADDRESS_MAX], text[REFUSALS_TEXT];
    address_format(far, who, sizeof who);
    snprintf(text, sizeof text, "%s: %s", who, why);
    d->refused++;
    snprintf(d->note, sizeof d->note, "turned away at %.0f: %s", clock_epoch_s(), text);
    mailbox_note_refusal(d->mailbox, 0, uid, text);
}

/* The number of waiting connections whose client is not known. */
static size_t net_admission_strangers(const struct net_admission *d) {
    size_t n = 0;
    for (const struct net_connection *c = d->connections; c; c = c->next)
        n += !c->known && !c->entered;
    return n;
}

/* The user is checked first, so that strangers do not take the places of others. */
static void net_admission_adopt(struct net_admission *d, int fd) {
    struct address near, far;
    if (access_ends(fd, &near, &far) != 0) {
        close(fd);
        return;
    }
    struct access_peer peer = access_find_peer(&d->access, &near, &far);
    bool known = access_is_known(&peer);
    bool room = d->n < NET_ADMISSION_MAX && (known || net_admission_strangers(d) < NET_ADMISSION_STRANGERS);
    struct net_connection *c = room ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        net_admission_note(d, &far, peer.uid, "too many are connected");
        close(fd);
        return;
    }
    uint64_t now = clock_mono_ns();
    *c = (struct net_connection){.next = d->connections,
                                 .fd = fd,
                                 .tcp = true,
                                 .born_ns = now,
                                 .known = known,
                                 .peer = peer,
                                 .credit = NET_ADMISSION_MESSAGES,
                                 .credit_ns = now};
    fds_note(fd);
    d->connections = c;
    d->n++;
    lws_adopt_desc_t desc = {.vh = d->vhost, .type = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP, .opaque = c};
    desc.fd.sockfd = fd;
    /* If it fails, it closes the descriptor and reports the destruction, which frees `c`. */
    struct lws *wsi = lws_adopt_descriptor_vhost_via_info(&desc);
    if (wsi)
        c->wsi = wsi;
    if (d->connections)
        lws_sul_schedule(d->context, 0, &d->sweep, net_admission_on_sweep, NET_ADMISSION_SWEEP_US);
}

static void net_admission_on_pause_over(lws_sorted_usec_list_t *sul) {
    struct net_admission *d = lws_container_of(sul, struct net_admission, pause);
    if (d->listening)
        lws_rx_flow_control(d->listening, 1);
}

static void net_admission_pause(struct net_admission *d) {
    lws_rx_flow_control(d->listening, 0);
    lws_sul_schedule(d->context, 0, &d->pause, net_admission_on_pause_over, NET_ADMISSION_PAUSE_US);
}

static void net_admission_accept(struct net_admission *d) {
    for (;;) {
        if (!net_admission_spend(&d->credit, &d->credit_ns, NET_ADMISSION_CONNECTIONS_S,
                                 NET_ADMISSION_CONNECTIONS)) {
            net_admission_pause(d); /* further connections meanwhile wait in the kernel */
            return;
        }
        int fd = tcp_listener_accept(d->door.fd);
        if (fd >= 0) {
            net_admission_adopt(d, fd);
            continue;
        }
        d->credit += 1;
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            net_admission_pause(d);
        return;
    }
}

int net_admission_on_listening(struct net_admission *d, struct lws *wsi, int reason) {
    /* it is not a subprotocol for clients */
    if (reason == LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION)
        return -1;
    if (reason == LWS_CALLBACK_RAW_RX_FILE && wsi == d->listening)
        net_admission_accept(d);
    if (reason == LWS_CALLBACK_RAW_CLOSE_FILE) {
        fds_forget(lws_get_socket_fd(wsi)); /* the library closes it */
        if (wsi == d->listening)
            d->listening = NULL;
    }
    return 0;
}

/* ---- admission ---- */

/* A header as text; NULL if there is none, or if it is too long for one of ours; `*there`
 * distinguishes the two. */
static const char *net_admission_header(struct lws *wsi, enum lws_token_indexes which, char *buf, size_t cap,
                                        bool *there) {
    int len = lws_hdr_total_length(wsi, which);
    *there = len > 0;
    if (len <= 0 || (size_t)len >= cap || lws_hdr_copy(wsi, buf, (int)cap, which) < 0)
        return NULL;
    return buf;
}

static int net_admission_refuse(struct net_admission *d, const struct net_connection *c, unsigned status,
                                const struct address *far, const char *why) {
    net_admission_note(d, far, c->peer.uid, why);
    net_web_refuse(c->wsi, status, why);
    return -1;
}

/* Check the headers that a browser sends for a web page of any origin. NULL if nothing is wrong. */
static const char *net_admission_judge_page(struct lws *wsi, const struct address *near) {
    char host_text[NET_ADMISSION_HEADER], origin_text[NET_ADMISSION_HEADER];
    bool has_host, has_origin;
    const char *host = net_admission_header(wsi, WSI_TOKEN_HOST, host_text, sizeof host_text, &has_host);
    if (!access_is_host(host, near))
        return "the Host of a request must be this listener's address or localhost";
    static const enum lws_token_indexes origins[] = {WSI_TOKEN_ORIGIN, WSI_TOKEN_SWORIGIN};
    for (size_t i = 0; i < sizeof origins / sizeof origins[0]; i++) {
        const char *origin =
            net_admission_header(wsi, origins[i], origin_text, sizeof origin_text, &has_origin);
        if (has_origin && (!origin || !access_is_origin(origin, host)))
            return NET_ADMISSION_PAGE;
    }
    /* Requests for what a page shows or loads have no origin, but browsers mark them as a
     * page's. */
    int len = lws_hdr_custom_length(wsi, NET_ADMISSION_SITE, sizeof NET_ADMISSION_SITE - 1);
    if (len < 0)
        return NULL;
    if ((size_t)len >= sizeof origin_text ||
        lws_hdr_custom_copy(wsi, origin_text, sizeof origin_text, NET_ADMISSION_SITE,
                            sizeof NET_ADMISSION_SITE - 1) < 0 ||
        (strcmp(origin_text, "none") != 0 && strcmp(origin_text, "same-origin") != 0))
        return NET_ADMISSION_PAGE;
    return NULL;
}

/* Find the token: the access that it gives. */
static enum wire_access net_admission_weigh(const struct net_admission *d, const char *token) {
    bool all = token_is(&d->door.all, token, strlen(token));
    bool looker = token_is(&d->door.looker, token, strlen(token));
    return all ? WIRE_CHANGES : looker ? WIRE_READ_ONLY : WIRE_NOTHING;
}

/* The access given by the client's token; WIRE_NOTHING if none. Sets `*tried` if the client has
 * sent one. */
static enum wire_access net_admission_judge_token(const struct net_admission *d, struct lws *wsi,
                                                  bool *tried) {
    char text[NET_ADMISSION_HEADER];
    const char *said = net_admission_header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, text, sizeof text, tried);
    size_t head = strlen(NET_ADMISSION_BEARER);
    if (!said || strncmp(said, NET_ADMISSION_BEARER, head) != 0)
        return WIRE_NOTHING;
    return net_admission_weigh(d, said + head);
}

/* Decide whether a client may enter whose token gives the access `has` (WIRE_NOTHING: none is
 * valid; `tried`: one was sent). A client with a valid token enters whatever others at the same
 * address have tried before. Without a token, a client that could use the agent's unix socket
 * gets read-only access. 0, or the status of the response and the reason (NULL: a token is
 * needed). */
static unsigned net_admission_weigh_up(struct net_admission *d, struct net_connection *c,
                                       const struct address *near, const struct address *far,
                                       enum wire_access has, bool tried, const char **why) {
    uint64_t now = clock_mono_ns();
    if (c->peer.uid == ACCESS_NOT_NOW)
        c->peer = access_find_peer(&d->access, near, far);
    c->known = access_is_known(&c->peer);
    int is = has == WIRE_NOTHING && !tried ? access_is_neighbour(&d->access, &c->peer) : 0;
    if (has != WIRE_NOTHING || is > 0) {
        c->may = has != WIRE_NOTHING ? has : WIRE_READ_ONLY;
        c->entered = true;
        d->accepted++;
        return 0;
    }
    if (is == ACCESS_NOT_NOW) {
        *why = "too many connections at a time: try again";
        return HTTP_STATUS_SERVICE_UNAVAILABLE;
    }
    if (!c->known && access_must_wait(&d->access, far, c->peer.uid, now)) {
        *why = "too many attempts without the right token: wait";
        return 429;
    }
    if (!c->known)
        access_note_failure(&d->access, far, c->peer.uid, now);
    *why = tried ? "wrong token for this listener" : NULL;
    return HTTP_STATUS_UNAUTHORIZED;
}

int net_admission_judge(struct net_admission *d, struct net_connection *c, struct lws *wsi) {
    struct address near, far;
    if (!c->tcp || c->entered)
        return 0;
    if (!d->listening || access_ends(c->fd, &near, &far) != 0)
        return -1;
    const char *why = net_admission_judge_page(wsi, &near);
    if (why)
        return net_admission_refuse(d, c, HTTP_STATUS_FORBIDDEN, &far, why);
    bool tried;
    enum wire_access has = net_admission_judge_token(d, wsi, &tried);
    unsigned status = net_admission_weigh_up(d, c, &near, &far, has, tried, &why);
    if (status)
        return net_admission_refuse(
            d, c, status, &far,
            why ? why
                : "a token is needed: curl -H @FILE (probing PID listen names it), or "
                  "Authorization: Bearer TOKEN");
    return 0;
}

const char *net_admission_judge_text(struct net_admission *d, struct net_connection *c, const char *token) {
    struct address near, far;
    const char *why = NULL;
    if (!c->tcp || (c->entered && !token))
        return NULL;
    if (!d->listening || access_ends(c->fd, &near, &far) != 0)
        return "this listener is closed";
    enum wire_access has = token ? net_admission_weigh(d, token) : WIRE_NOTHING;
    if (c->entered && has != WIRE_NOTHING) {
        c->may = has > c->may ? has : c->may;
        return NULL;
    }
    if (net_admission_weigh_up(d, c, &near, &far, has, token != NULL, &why) == 0)
        return NULL;
    why = why ? why : "a token is needed: token TOKEN";
    net_admission_note(d, &far, c->peer.uid, why);
    return why;
}

/* ---- opening and closing ---- */

struct net_admission *net_admission_new(struct lws_context *context, struct lws_vhost *vhost,
                                        struct mailbox *mailbox) {
    struct net_admission *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    *d = (struct net_admission){.context = context,
                                .vhost = vhost,
                                .mailbox = mailbox,
                                .door = {.fd = -1},
                                .credit = NET_ADMISSION_CONNECTIONS,
                                .credit_ns = clock_mono_ns()};
    return d;
}

void net_admission_free(struct net_admission *d) { free(d); }

void net_admission_stop(struct net_admission *d) {
    if (!d || !d->door.file[0])
        return;
    struct lws *listening = d->listening;
    int fd = d->door.fd;
    tcp_listener_remove(&d->door);
    d->listening = NULL;
    lws_sul_cancel(&d->pause);
    if (listening)
        lws_set_timeout(listening, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    else if (fd >= 0)
        close(fd);
}

void net_admission_close(struct net_admission *d) {
    net_admission_stop(d);
    for (struct net_connection *c = d ? d->connections : NULL; c; c = c->next)
        net_admission_put_out(c);
}

static int net_admission_adopt_listening(struct net_admission *d, struct err *e) {
    lws_sock_file_fd_type fd = {.filefd = d->door.fd};
    d->listening =
        lws_adopt_descriptor_vhost(d->vhost, LWS_ADOPT_RAW_FILE_DESC, fd, NET_ADMISSION_PROTOCOL, NULL);
    if (d->listening) {
        fds_note(d->door.fd);
        return 0;
    }
    d->door.fd = -1; /* the library has closed it */
    tcp_listener_remove(&d->door);
    return err_set(e, ERR_FAILED, "the WebSocket library did not take the listening socket");
}

int net_admission_open(struct net_admission *d, const struct wire_listen *want, const char *socket,
                       struct wire_listening *out, struct err *e) {
    struct tcp_listener door;
    struct address where;
    if (!d)
        return err_set(e, ERR_FAILED, "no memory for a TCP listener");
    if (address_parse(&where, want->address, e) != 0)
        return -1;
    net_admission_close(d);
    if (tcp_listener_open(&door, want->address, want->looking, socket, e) != 0) {
        snprintf(d->note, sizeof d->note, "%s", e->text);
        return -1;
    }
    d->door = door;
    d->note[0] = '\0';
    d->accepted = d->refused = 0;
    if (net_admission_adopt_listening(d, e) != 0)
        return -1;
    if (!out)
        return 0;
    snprintf(out->address, sizeof out->address, "%s", door.address);
    snprintf(out->token, sizeof out->token, "%s", door.all.text);
    snprintf(out->looking_token, sizeof out->looking_token, "%s", door.looker.text);
    snprintf(out->file, sizeof out->file, "%s", door.file);
    return 0;
}

void net_admission_fill(const struct net_admission *d, struct model_status *out) {
    if (!d || (!d->listening && !d->note[0]))
        return;
    out->doors = arena_calloc(&out->arena, 1, sizeof *out->doors);
    if (!out->doors)
        return;
    out->n_doors = 1;
    struct model_endpoint *m = &out->doors[0];
    *m = (struct model_endpoint){.address = d->listening ? arena_strdup(&out->arena, d->door.address) : NULL,
                                 .looking = d->door.looking,
                                 .entered = d->accepted,
                                 .refused = d->refused,
                                 .note = d->note[0] ? arena_strdup(&out->arena, d->note) : NULL};
    for (const struct net_connection *c = d->connections; c; c = c->next) {
        m->clients += c->greeted;
        m->waiting += !c->greeted;
    }
}
