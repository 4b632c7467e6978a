/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras_ask: see ras_ask.h.
 *
 * The protocol, line by line, by NCCL's src/ras/client_support.cc (rasClientEventLoop) and its own client
 * src/ras/client.cc, v2.24.3-1 to v2.30.7-1:
 *
 *   CLIENT PROTOCOL 2   SERVER PROTOCOL n, whatever n is
 *   TIMEOUT seconds     OK: how long it waits for the other processes; after five more it gives up
 *   SET FORMAT json     OK, since v2.28.7-1; ERROR: Unknown command ... before, and goes on
 *   STATUS              in the format, and the connection ends. VERBOSE STATUS: the text names more ranks
 *
 * It listens at NCCL_RAS_ADDR, or localhost:28028, unless NCCL_RAS_ENABLE is 0 (docs/userguide/source/env.rst).
 * All processes of a host share that address (SO_REUSEPORT): one that is stopped may be the one that is
 * connected to, so that a connection without an answer is made once more, as NCCL's client does. An
 * nccl.conf can set both variables, too; it is not read.
 */
#include "client/fleet/ras_ask.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/strbuf.h"

#define RAS_WAIT_S 3                /* for the other processes; NCCL's default is 5 */
#define RAS_HELLO_NS CLOCK_NS_PER_S /* for the first answers, before it is tried again */
#define RAS_TRIES 2
#define RAS_APART_S 2 /* between two answers */
#define RAS_ROUNDS 2
#define RAS_LINE_MAX 128
#define RAS_ADDRESSES 64
#define RAS_LIMIT_MS 24000U /* of the child */
#define RAS_FRESH_NS (30 * CLOCK_NS_PER_S)

/* ---- where ---- */

static void ras_where_add(struct ras_where *w, int family, const char *host, uint16_t port) {
    struct sockaddr_storage *to = &w->at[w->n++];
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memset(to, 0, sizeof *to);
    if (family == AF_INET) {
        inet_pton(AF_INET, host, &v4.sin_addr);
        memcpy(to, &v4, sizeof v4);
    } else {
        inet_pton(AF_INET6, host, &v6.sin6_addr);
        memcpy(to, &v6, sizeof v6);
    }
}

/* ncclSocketGetAddrFromString: HOST:PORT, or [ADDRESS]:PORT. No name but localhost is looked up. */
bool ras_where_parse(struct ras_where *w, const char *text) {
    char host[48];
    struct in_addr v4;
    struct in6_addr v6;
    *w = (struct ras_where){.n = 0};
    text = text ? text : "localhost:28028";
    bool is_v6 = text[0] == '[';
    const char *from = text + is_v6, *end = strchr(from, is_v6 ? ']' : ':');
    const char *port = end ? end + is_v6 : "";
    if (!end || *port++ != ':' || (size_t)(end - from) >= sizeof host)
        return false;
    memcpy(host, from, (size_t)(end - from));
    host[end - from] = '\0';
    size_t digits = strspn(port, "0123456789");
    long number = strtol(port, NULL, 10);
    if (digits == 0 || digits > 5 || port[digits] || number < 1 || number > 65535)
        return false;
    if (is_v6 && inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6))
        ras_where_add(w, AF_INET6, host, (uint16_t)number);
    else if (!is_v6 && inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127)
        ras_where_add(w, AF_INET, host, (uint16_t)number);
    else if (!is_v6 && strcmp(host, "localhost") == 0) {
        ras_where_add(w, AF_INET, "127.0.0.1", (uint16_t)number);
        ras_where_add(w, AF_INET6, "::1", (uint16_t)number);
    }
    snprintf(w->text, sizeof w->text, "%.47s:%ld", is_v6 ? "[::1]" : host, number);
    return w->n > 0;
}

static int ras_is_nccl(const struct procfs_map *map, void *arg) {
    (void)arg;
    /* some builds of torch have it inside of their own library */
    return strstr(map->path, "/libnccl") || strstr(map->path, "/libtorch_cuda");
}

static bool ras_is_our_net(pid_t pid) {
    char path[32];
    struct stat theirs, ours;
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
    return stat(path, &theirs) == 0 && stat("/proc/self/ns/net", &ours) == 0 &&
           theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

/* Whether the rank may be asked, and where; `why` then says why not, "" if there is nothing to say. */
static bool ras_find_where(const struct ras_rank *r, struct ras_where *w, char *why, size_t cap) {
    char text[64], enabled[16], *end;
    bool has_address = procfs_read_environ(r->pid, "NCCL_RAS_ADDR", text, sizeof text) == 0;
    why[0] = '\0';
    if (!has_address && procfs_each_map(r->pid, ras_is_nccl, NULL) != 1)
        return false;
    if (procfs_read_environ(r->pid, "NCCL_RAS_ENABLE", enabled, sizeof enabled) == 0 &&
        strtol(enabled, &end, 0) == 0 && end != enabled && !*end)
        snprintf(why, cap, "not asked: NCCL_RAS_ENABLE is 0");
    else if (!ras_is_our_net(r->pid))
        snprintf(why, cap, "not asked: rank %d is not known to be in this network namespace", (int)r->rank);
    else if (!ras_where_parse(w, has_address ? text : NULL))
        snprintf(why, cap, "not asked: NCCL_RAS_ADDR is not an address of the loopback");
    else
        return true;
    return false;
}

/* ---- the connection ---- */

enum ras_end {
    RAS_END_OK,
    RAS_END_NOBODY, /* listens there */
    RAS_END_SILENT,
    RAS_END_OTHER, /* it is not RAS */
    RAS_END_LARGE,
};

/* False at the end of the time. */
static bool ras_wait(int fd, short events, uint64_t until_ns) {
    for (;;) {
        uint64_t now = clock_mono_ns();
        struct pollfd p = {.fd = fd, .events = events};
        int n = now < until_ns ? poll(&p, 1, (int)((until_ns - now) / CLOCK_NS_PER_MS) + 1) : 0;
        if (n >= 0 || errno != EINTR)
            return n > 0;
    }
}

static int ras_connect(const struct ras_where *w, uint64_t until_ns) {
    for (size_t i = 0; i < w->n; i++) {
        const struct sockaddr *to = (const struct sockaddr *)&w->at[i];
        socklen_t len = to->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), why = 0;
        socklen_t size = sizeof why;
        if (fd < 0)
            continue;
        if (connect(fd, to, len) == 0 || (errno == EINPROGRESS && ras_wait(fd, POLLOUT, until_ns) &&
                                          getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size) == 0 && why == 0))
            return fd;
        close(fd);
    }
    return -1;
}

/* Send a line, and read the one that answers it, byte by byte: nothing may follow it. */
static enum ras_end ras_say(int fd, const char *line, uint64_t until_ns, char *answer) {
    size_t len = strlen(line), n = 0;
    if (send(fd, line, len, MSG_NOSIGNAL) != (ssize_t)len)
        return RAS_END_OTHER;
    for (;;) {
        ssize_t got = recv(fd, answer + n, 1, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (!ras_wait(fd, POLLIN, until_ns))
                return RAS_END_SILENT;
        } else if (got <= 0 || ++n == RAS_LINE_MAX)
            return RAS_END_OTHER;
        else if (answer[n - 1] == '\n')
            break;
    }
    answer[n] = '\0';
    return RAS_END_OK;
}

/* The rest, until it closes the connection. */
static enum ras_end ras_read_all(int fd, uint64_t until_ns, struct strbuf *out) {
    char data[16384];
    for (;;) {
        ssize_t got = recv(fd, data, sizeof data, MSG_DONTWAIT);
        if (got == 0)
            return RAS_END_OK;
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return RAS_END_OTHER;
        if (got < 0 ? !ras_wait(fd, POLLIN, until_ns) : clock_mono_ns() > until_ns)
            return RAS_END_SILENT;
        if (got > 0 && strbuf_add(out, data, (size_t)got) != 0)
            return RAS_END_LARGE;
    }
}

/* `*is_json`: what is wanted, and then what there is. `*has_begun`: it has answered at all. */
static enum ras_end ras_converse(int fd, bool *is_json, uint64_t hello_ns, uint64_t until_ns, bool *has_begun,
                                 struct strbuf *out) {
    char answer[RAS_LINE_MAX], timeout[32];
    enum ras_end end = ras_say(fd, "CLIENT PROTOCOL 2\n", hello_ns, answer);
    if (end != RAS_END_OK)
        return end;
    *has_begun = true;
    if (strncmp(answer, "SERVER PROTOCOL ", 16) != 0)
        return RAS_END_OTHER;
    snprintf(timeout, sizeof timeout, "TIMEOUT %d\n", RAS_WAIT_S);
    end = ras_say(fd, timeout, until_ns, answer);
    if (end != RAS_END_OK || strcmp(answer, "OK\n") != 0)
        return end != RAS_END_OK ? end : RAS_END_OTHER;
    if (*is_json) {
        end = ras_say(fd, "SET FORMAT json\n", until_ns, answer);
        if (end != RAS_END_OK)
            return end;
        *is_json = strcmp(answer, "OK\n") == 0;
        if (!*is_json && strncmp(answer, "ERROR: ", 7) != 0)
            return RAS_END_OTHER;
    }
    const char *ask = *is_json ? "STATUS\n" : "VERBOSE STATUS\n";
    if (send(fd, ask, strlen(ask), MSG_NOSIGNAL) != (ssize_t)strlen(ask))
        return RAS_END_OTHER;
    return ras_read_all(fd, until_ns, out);
}

static enum ras_end ras_ask(const struct ras_where *w, bool *is_json, struct ras_answer *a, struct err *e) {
    uint64_t until_ns = clock_mono_ns() + RAS_ASK_S * CLOCK_NS_PER_S;
    enum ras_end end = RAS_END_SILENT;
    struct strbuf text;
    strbuf_init(&text, RAS_BYTES);
    bool has_begun = false;
    for (int i = 0; i < RAS_TRIES && end == RAS_END_SILENT && !has_begun; i++) {
        uint64_t hello_ns = clock_mono_ns() + RAS_HELLO_NS;
        int fd = ras_connect(w, hello_ns);
        if (fd < 0) {
            end = RAS_END_NOBODY;
            break;
        }
        end = ras_converse(fd, is_json, hello_ns, until_ns, &has_begun, &text);
        close(fd);
    }
    if (end == RAS_END_OK && ras_parse(a, strbuf_str(&text), text.len, *is_json, e) != 0)
        end = RAS_END_OTHER;
    strbuf_fini(&text);
    return end;
}

/* ---- the child ---- */

struct ras_question {
    const struct ras_rank *ranks;
    size_t n;
    int32_t world;
};

enum ras_message_kind { RAS_MESSAGE_FACT, RAS_MESSAGE_END };

struct ras_message {
    enum ras_message_kind kind;
    struct ras_fact fact;
};

static void ras_send(int fd, const struct ras_fact *facts, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct ras_message m = {.kind = RAS_MESSAGE_FACT, .fact = facts[i]};
        send(fd, &m, sizeof m, MSG_NOSIGNAL);
    }
    send(fd, &(struct ras_message){.kind = RAS_MESSAGE_END}, sizeof(struct ras_message), MSG_NOSIGNAL);
}

static void ras_send_why(int fd, const char *why) {
    struct ras_fact f = {.rank = -1, .pid = -1};
    snprintf(f.note, sizeof f.note, "%s", why);
    ras_send(fd, &f, why[0] != '\0');
}

/* The addresses of this host, as NCCL writes them. */
static size_t ras_read_addresses(char (*out)[RAS_HOST], size_t cap) {
    struct ifaddrs *all = NULL;
    size_t n = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *i = all; i && n < cap; i = i->ifa_next) {
        const struct sockaddr *a = i->ifa_addr;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        if (a && a->sa_family == AF_INET) {
            memcpy(&v4, a, sizeof v4);
            n += inet_ntop(AF_INET, &v4.sin_addr, out[n], RAS_HOST) != NULL;
        } else if (a && a->sa_family == AF_INET6) {
            memcpy(&v6, a, sizeof v6);
            n += inet_ntop(AF_INET6, &v6.sin6_addr, out[n], RAS_HOST) != NULL;
        }
    }
    freeifaddrs(all);
    return n;
}

static void ras_explain(enum ras_end end, const struct ras_where *w, const struct err *e, char *why,
                        size_t cap) {
    why[0] = '\0';
    if (end == RAS_END_SILENT)
        snprintf(why, cap, "%s does not answer in time", w->text);
    else if (end == RAS_END_LARGE)
        snprintf(why, cap, "the answer of %s is too large", w->text);
    else if (end == RAS_END_OTHER)
        snprintf(why, cap, "at %s: %s", w->text, e->text[0] ? e->text : "what answers is not NCCL's RAS");
    /* where nobody listens NCCL is older, or not used */
}

/* Two answers, some seconds apart: who is unreachable follows from each, who is behind from both. */
static void ras_ask_rounds(int fd, const struct ras_where *w, const struct ras_job *job) {
    struct ras_answer before = {.n = 0};
    struct ras_fact facts[RAS_FACTS];
    bool is_json = true;
    for (int round = 0; round < RAS_ROUNDS; round++) {
        struct ras_answer a = {.n = 0};
        struct err e = {.code = ERR_OK, .text = ""};
        char why[96];
        enum ras_end end = ras_ask(w, &is_json, &a, &e);
        if (end == RAS_END_LARGE && is_json) {
            /* the text names only those that differ */
            is_json = false;
            end = ras_ask(w, &is_json, &a, &e);
        }
        if (end != RAS_END_OK) {
            ras_explain(end, w, &e, why, sizeof why);
            ras_send_why(fd, why);
            break;
        }
        bool goes_on = ras_is_behind(&a);
        ras_send(fd, facts, ras_find(&a, round ? &before : NULL, job, facts));
        ras_answer_fini(&before);
        before = a;
        if (!goes_on)
            break;
        if (round + 1 < RAS_ROUNDS)
            nanosleep(&(struct timespec){.tv_sec = RAS_APART_S}, NULL);
    }
    ras_answer_fini(&before);
}

static void ras_work(void *arg, int fd) {
    const struct ras_question *q = arg;
    struct ras_where w;
    char why[96], first_why[96] = "";
    size_t asked = 0;
    while (asked < q->n && !ras_find_where(&q->ranks[asked], &w, why, sizeof why)) {
        if (!first_why[0])
            snprintf(first_why, sizeof first_why, "%s", why);
        asked++;
    }
    if (asked == q->n) {
        ras_send_why(fd, first_why);
        return;
    }
    char(*addresses)[RAS_HOST] = calloc(RAS_ADDRESSES, sizeof *addresses);
    struct ras_process *here = calloc(q->n + 1, sizeof *here);
    for (size_t i = 0; here && i < q->n; i++) {
        struct procfs_status status;
        bool is_known = procfs_read_status(q->ranks[i].pid, 0, &status) == 0 && status.ns_pid > 0;
        here[i] =
            (struct ras_process){.rank = q->ranks[i].rank, .pid = is_known ? status.ns_pid : q->ranks[i].pid};
    }
    if (addresses && here)
        ras_ask_rounds(fd, &w,
                       &(struct ras_job){.here = here,
                                         .n_here = q->n,
                                         .addresses = (const char(*)[RAS_HOST])addresses,
                                         .n_addresses = ras_read_addresses(addresses, RAS_ADDRESSES),
                                         .world = q->world});
    free(addresses);
    free(here);
}

/* ---- here ---- */

void ras_asker_ask(struct ras_asker *a, const struct ras_rank *ranks, size_t n, int32_t world) {
    uint64_t now = clock_mono_ns();
    struct ras_question q = {.ranks = ranks, .n = n, .world = world};
    if (a->running || !n || (a->asked_ns && now - a->asked_ns < RAS_ASK_EVERY_S * CLOCK_NS_PER_S))
        return;
    a->asked_ns = now;
    a->n_next = 0;
    a->running = guard_start(&a->guard, ras_work, &q, 0, RAS_LIMIT_MS) == 0;
}

/* The child has read what a stranger wrote. */
static void ras_asker_add(struct ras_asker *a, const struct ras_fact *f) {
    struct ras_fact *to = &a->next[a->n_next];
    if (f->rank < -1 || (unsigned)f->state >= RAS_STATES)
        return;
    *to = *f;
    to->host[sizeof to->host - 1] = to->op[sizeof to->op - 1] = to->note[sizeof to->note - 1] = '\0';
    a->n_next++;
}

void ras_asker_take(struct ras_asker *a) {
    struct ras_message m;
    uint64_t now = clock_mono_ns();
    while (a->running) {
        ssize_t n = recv(a->guard.fd, &m, sizeof m, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n != sizeof m)
            ras_asker_stop(a);
        else if (m.kind == RAS_MESSAGE_FACT && a->n_next < RAS_FACTS)
            ras_asker_add(a, &m.fact);
        else if (m.kind == RAS_MESSAGE_END) {
            memcpy(a->facts, a->next, a->n_next * sizeof *a->next);
            a->n = a->n_next;
            a->n_next = 0;
            a->facts_ns = now;
        }
    }
    if (a->n && now - a->facts_ns > RAS_FRESH_NS)
        a->n = 0;
}

void ras_asker_stop(struct ras_asker *a) {
    if (a->running)
        guard_stop(&a->guard, 0);
    a->running = false;
}
