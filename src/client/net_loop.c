/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_loop: loop.h over libwebsockets' default poll loop.
 *
 * libwebsockets makes every descriptor it adopts non-blocking, on the open file description that
 * a terminal shares with the shell and with standard output. So it never adopts a descriptor
 * itself: each watch is an epoll descriptor that contains the watched one. One thread: the one
 * that calls loop_run.
 */
#include "client/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <libwebsockets.h>

#include "client/net_loop.h"

/* size of libwebsockets' tables; without it they follow RLIMIT_NOFILE */
#define NET_LOOP_MAX_FDS 256
#define NET_LOOP_RX_BYTES 65536

struct loop {
    struct lws_context *context;
    struct lws_vhost *vhost;
    struct loop_watch *watches;
    bool stop;
};

struct loop_watch {
    struct loop *loop;
    struct loop_watch *next;
    struct lws *wsi;       /* NULL once libwebsockets released it */
    void (*fn)(void *arg); /* NULL once unwatched */
    void *arg;
};

struct loop_timer {
    lws_sorted_usec_list_t sul; /* first, so that the timer is found from its address */
    struct loop *loop;
    void (*fn)(void *arg);
    void *arg;
};

static void net_loop_forget_watch(struct loop_watch *w) {
    struct loop_watch **at = &w->loop->watches;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
    free(w);
}

static int net_loop_on_watch(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                             size_t len) {
    (void)user;
    (void)in;
    (void)len;
    struct loop_watch *w = lws_get_opaque_user_data(wsi);
    if (!w)
        return 0;
    switch (reason) {
    case LWS_CALLBACK_RAW_RX_FILE:
        if (!w->fn)
            return -1;
        w->fn(w->arg);
        return 0;
    case LWS_CALLBACK_RAW_CLOSE_FILE:
        lws_set_opaque_user_data(wsi, NULL);
        w->wsi = NULL;
        if (!w->fn)
            net_loop_forget_watch(w);
        return 0;
    default:
        return 0;
    }
}

static int net_loop_on_link(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                            size_t len) {
    (void)user;
    return net_link_on_event(wsi, (int)reason, in, len);
}

static const struct lws_protocols net_loop_protocols[] = {
    {.name = "probing-watch", .callback = net_loop_on_watch},
    {.name = NET_LINK_LOCAL_PROTOCOL, .callback = net_loop_on_link, .rx_buffer_size = NET_LOOP_RX_BYTES},
    {.name = NULL},
};

/* For a server to answer the first request: longer than any session waits (session_agent.c), which has a time of its
 * own for each. */
#define NET_LOOP_ANSWER_S 60

static void net_loop_drop_log(int level, const char *line) {
    (void)level;
    (void)line;
}

struct loop *loop_new(struct err *e) {
    struct loop *l = calloc(1, sizeof *l);
    if (!l) {
        err_set(e, ERR_FAILED, "out of memory for the event loop");
        return NULL;
    }
    lws_set_log_level(0, net_loop_drop_log);
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.protocols = net_loop_protocols;
    info.fd_limit_per_thread = NET_LOOP_MAX_FDS;
    info.pt_serv_buf_size = NET_LOOP_RX_BYTES;
    info.timeout_secs = info.connect_timeout_secs = NET_LOOP_ANSWER_S;
    l->context = lws_create_context(&info);
    l->vhost = l->context ? lws_get_vhost_by_name(l->context, "default") : NULL;
    if (!l->vhost) {
        if (l->context)
            lws_context_destroy(l->context);
        free(l);
        err_set(e, ERR_FAILED,
                "the event loop cannot be set up: check the limits of open files and memory (ulimit -a)");
        return NULL;
    }
    return l;
}

void loop_free(struct loop *l) {
    if (!l)
        return;
    lws_context_destroy(l->context);
    while (l->watches) {
        struct loop_watch *next = l->watches->next;
        free(l->watches);
        l->watches = next;
    }
    free(l);
}

void loop_run(struct loop *l) {
    l->stop = false;
    while (!l->stop && lws_service(l->context, 0) >= 0)
        ;
}

void loop_stop(struct loop *l) {
    l->stop = true;
    lws_cancel_service(l->context);
}

struct lws_context *net_loop_context(struct loop *l) {
    return l->context;
}

struct lws_vhost *net_loop_vhost(struct loop *l) {
    return l->vhost;
}

/* An epoll descriptor that is readable whenever `fd` is readable or hung up. -1 with errno. */
static int net_loop_epoll_of(int fd) {
    int ep = epoll_create1(EPOLL_CLOEXEC);
    if (ep < 0)
        return -1;
    struct epoll_event ev = {.events = EPOLLIN};
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) != 0) {
        int saved = errno;
        close(ep);
        errno = saved;
        return -1;
    }
    return ep;
}

struct loop_watch *loop_watch_fd(struct loop *l, int fd, void (*fn)(void *arg), void *arg, struct err *e) {
    int ep = net_loop_epoll_of(fd);
    if (ep < 0) {
        err_set_errno(e, ERR_FAILED, errno, "descriptor %d cannot be waited for", fd);
        return NULL;
    }
    struct loop_watch *w = calloc(1, sizeof *w);
    if (!w) {
        close(ep);
        err_set(e, ERR_FAILED, "out of memory for a watch");
        return NULL;
    }
    *w = (struct loop_watch){.loop = l, .fn = fn, .arg = arg};
    lws_adopt_desc_t adopt;
    memset(&adopt, 0, sizeof adopt);
    adopt.vh = l->vhost;
    adopt.type = LWS_ADOPT_RAW_FILE_DESC;
    adopt.fd.filefd = ep;
    adopt.vh_prot_name = net_loop_protocols[0].name;
    adopt.opaque = w;
    w->wsi = lws_adopt_descriptor_vhost_via_info(&adopt);
    if (!w->wsi) {
        close(ep);
        free(w);
        err_set(e, ERR_FAILED, "the event loop takes no more descriptors");
        return NULL;
    }
    w->next = l->watches;
    l->watches = w;
    return w;
}

void loop_unwatch(struct loop_watch *w) {
    if (!w)
        return;
    w->fn = NULL;
    if (w->wsi)
        lws_set_timeout(w->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    else
        net_loop_forget_watch(w);
}

static void net_loop_on_timer(lws_sorted_usec_list_t *sul) {
    struct loop_timer *t = lws_container_of(sul, struct loop_timer, sul);
    t->fn(t->arg);
}

struct loop_timer *loop_timer_new(struct loop *l, void (*fn)(void *arg), void *arg, struct err *e) {
    struct loop_timer *t = calloc(1, sizeof *t);
    if (!t) {
        err_set(e, ERR_FAILED, "out of memory for a timer");
        return NULL;
    }
    t->loop = l;
    t->fn = fn;
    t->arg = arg;
    return t;
}

void loop_timer_set(struct loop_timer *t, uint64_t delay_us) {
    /* At least 1 µs: a timer that re-arms itself must let the descriptors have their turn. */
    lws_sul_schedule(t->loop->context, 0, &t->sul, net_loop_on_timer, (lws_usec_t)(delay_us ? delay_us : 1));
}

void loop_timer_cancel(struct loop_timer *t) { lws_sul_cancel(&t->sul); }

void loop_timer_free(struct loop_timer *t) {
    if (!t)
        return;
    lws_sul_cancel(&t->sul);
    free(t);
}
