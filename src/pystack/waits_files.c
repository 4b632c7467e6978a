/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits_files: what is behind a descriptor, a sleep, or a wait for a process.
 *
 * A socket is found by its inode in the lists of its network namespace (/proc/PID/net, proc(5)), from
 * inside too: the agent's threads have a table of descriptors of their own. The other end of a
 * pipe is whoever has the same inode open (pipe(7)). Everything is bounded, and what the kernel hides
 * stays unknown.
 */
#include "pystack/waits_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define WAITS_LINK_MAX 160
#define WAITS_NET_BYTES (4U << 20) /* read of one list of sockets or descriptors */
#define WAITS_POLLED 64            /* descriptors of one poll(2) */
#define WAITS_FD_SET 1024          /* and of one select(2): FD_SETSIZE */
#define WAITS_NAMED 4              /* of them that are named */
#define WAITS_PIDS 4096            /* processes in which the other end of a pipe is searched for, */
#define WAITS_FDS 512              /* and descriptors of each */
#define WAITS_ENDS 3               /* processes at the other end that are named */

/* ---- what is behind a descriptor ---- */

/* Target of /proc/PID/task/TID/fd/FD. 0 or -1. */
static int waits_read_link(const struct waits_case *l, int fd, char *buf, size_t cap) {
    char path[96];
    pid_t pid = l->ps->pid ? l->ps->pid : getpid();
    snprintf(path, sizeof path, "/proc/%d/task/%d/fd/%d", (int)pid, (int)l->e->tid, fd);
    ssize_t n = readlink(path, buf, cap - 1);
    if (n < 0)
        return -1;
    buf[n] = '\0';
    return 0;
}

static uint64_t waits_inode(const char *link, const char *kind) {
    size_t n = strlen(kind);
    unsigned long long inode = 0;
    return strncmp(link, kind, n) == 0 && sscanf(link + n, ":[%llu]", &inode) == 1 ? inode : 0;
}

static void waits_put_address(const struct sockaddr *sa, char *buf, size_t cap) {
    char host[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in *v4 = (const void *)sa;
    const struct sockaddr_in6 *v6 = (const void *)sa;
    if (sa->sa_family == AF_INET) {
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(buf, cap, "%s:%d", host, ntohs(v4->sin_port));
    } else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        inet_ntop(AF_INET, (const char *)&v6->sin6_addr + 12, host, sizeof host);
        snprintf(buf, cap, "%s:%d", host, ntohs(v6->sin6_port));
    } else {
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(buf, cap, "[%s]:%d", host, ntohs(v6->sin6_port));
    }
}

/* include/net/tcp_states.h */
static const char *waits_tcp_state(unsigned state) {
    static const char *const names[] = {
        NULL,      "established", "connecting",         "connecting", "closing",   "closing",
        "closing", "closed",      "closed by the peer", "closing",    "listening", "closing"};
    return state < sizeof names / sizeof names[0] ? names[state] : NULL;
}

/* A line of a list of sockets. */
struct waits_socket {
    uint64_t inode;
    const char *type, *state; /* NULL unknown */
    char local[64], peer[64]; /* "" none */
    uint64_t queued_in, queued_out;
    bool listens;
};

static void waits_put_socket(struct waits_entry *e, const struct waits_socket *s) {
    size_t at = strlen(e->what);
    /* the list is read again for a thread that stays, whose text ends with the type already */
    if (!strchr(e->what, ','))
        snprintf(e->what + at, sizeof e->what - at, ", %s%s", s->type, s->listens ? ", that listens" : "");
    if (s->listens || !s->peer[0]) {
        snprintf(e->detail, sizeof e->detail, "%s", s->local);
        return;
    }
    at = (size_t)snprintf(e->detail, sizeof e->detail, "peer %s%s%s, %" PRIu64 " bytes to read", s->peer,
                          s->state ? ", " : "", s->state ? s->state : "", s->queued_in);
    if (s->queued_out > 0 && at < sizeof e->detail)
        snprintf(e->detail + at, sizeof e->detail - at, ", %" PRIu64 " not sent", s->queued_out);
}

/* An address of /proc/net/tcp: the words as they are in memory, in hexadecimal digits. */
static int waits_parse_address(const char *text, char *buf, size_t cap) {
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    uint32_t words[4];
    unsigned port;
    size_t n = strcspn(text, ":");
    if ((n != 8 && n != 32) || sscanf(text + n, ":%4x", &port) != 1)
        return -1;
    for (size_t i = 0; i < n / 8; i++)
        if (sscanf(text + 8 * i, "%8" SCNx32, &words[i]) != 1)
            return -1;
    memcpy(n == 8 ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr, words, n / 2);
    v4.sin_port = v6.sin6_port = htons((uint16_t)port);
    waits_put_address(n == 8 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6, buf, cap);
    return 0;
}

/* A line of /proc/net/tcp or udp (Documentation/networking/proc_net_tcp.rst). 0 or -1. */
static int waits_parse_inet(const char *line, bool tcp, struct waits_socket *s) {
    char local[40], peer[40];
    unsigned state;
    unsigned long out, in;
    unsigned long long inode;
    if (sscanf(line, "%*s %39s %39s %x %lx:%lx %*s %*s %*s %*s %llu", local, peer, &state, &out, &in,
               &inode) != 6)
        return -1;
    *s = (struct waits_socket){.inode = inode,
                               .type = tcp ? "TCP" : "UDP",
                               .state = tcp ? waits_tcp_state(state) : NULL,
                               .listens = tcp && state == 10,
                               .queued_in = in,
                               .queued_out = out};
    waits_parse_address(local, s->local, sizeof s->local);
    size_t n = strlen(peer);
    /* without a peer its port is 0 */
    if (n < 5 || strcmp(peer + n - 5, ":0000") != 0)
        waits_parse_address(peer, s->peer, sizeof s->peer);
    return 0;
}

/* A line of /proc/net/unix: address, references, protocol, flags, type, state, inode, path. */
static int waits_parse_unix(const char *line, struct waits_socket *s) {
    unsigned long long inode;
    unsigned flags;
    int at = 0;
    if (sscanf(line, "%*s %*s %*s %x %*s %*s %llu %n", &flags, &inode, &at) < 2)
        return -1;
    /* __SO_ACCEPTCON of linux/net.h */
    *s = (struct waits_socket){.inode = inode, .type = "unix", .listens = flags & (1U << 16)};
    if (at > 0)
        text_sanitize(s->local, sizeof s->local, line + at);
    return 0;
}

/* Read a list of sockets in the network namespace of thread `tid`, and say what it knows of those that
 * threads wait for and of which nothing is known yet. The number of the others. */
static size_t waits_read_sockets(struct pystack *ps, pid_t tid, const char *list) {
    struct waits *w = ps->waits;
    struct waits_socket s;
    char path[96], line[512];
    size_t total = 0, left = 0;
    for (size_t i = 0; i < w->n; i++)
        left += w->now[i].inode && w->now[i].asked_ns == 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/net/%s", (int)(ps->pid ? ps->pid : getpid()), (int)tid,
             list);
    FILE *f = left ? fopen(path, "re") : NULL;
    while (f && left && total < WAITS_NET_BYTES && !waits_is_late(w) && fgets(line, sizeof line, f)) {
        size_t n = strlen(line);
        total += n;
        if (n && line[n - 1] == '\n')
            line[n - 1] = '\0';
        if ((strcmp(list, "unix") == 0 ? waits_parse_unix(line, &s)
                                       : waits_parse_inet(line, list[0] == 't', &s)) != 0 ||
            s.inode == 0)
            continue;
        for (size_t i = 0; i < w->n; i++)
            if (w->now[i].inode == s.inode && w->now[i].asked_ns == 0) {
                waits_put_socket(&w->now[i], &s);
                w->now[i].asked_ns = w->now_ns;
                left--;
            }
    }
    if (f)
        fclose(f);
    return left;
}

void waits_find_sockets(struct pystack *ps) {
    static const char *const lists[] = {"tcp", "tcp6", "unix", "udp", "udp6"};
    struct waits *w = ps->waits;
    pid_t tid = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct waits_entry *e = &w->now[i];
        if (!e->known || !e->inode)
            continue;
        if (e->asked_ns && w->now_ns - e->asked_ns >= WAITS_ASKED_NS)
            e->asked_ns = 0;
        if (e->asked_ns == 0)
            tid = e->tid;
    }
    for (size_t i = 0; tid && i < sizeof lists / sizeof lists[0]; i++)
        if (waits_read_sockets(ps, tid, lists[i]) == 0)
            break;
    /* what is in no list is of another namespace, or of another kind */
    bool is_whole = !waits_is_late(w);
    for (size_t i = 0; is_whole && i < w->n; i++)
        if (w->now[i].inode && w->now[i].asked_ns == 0)
            w->now[i].asked_ns = w->now_ns;
}

/* ---- pipes ---- */

/* Processes that have the other end of a pipe. */
struct waits_ends {
    pid_t pids[WAITS_ENDS];
    size_t n;
    bool own;
    bool cut;    /* there was no time, or no room, for all */
    bool hidden; /* some may not be read, or are not visible from here */
};

/* flags of /proc/PID/fdinfo/FD: the low bits are O_RDONLY, O_WRONLY or O_RDWR. -1 unknown. */
static int waits_open_mode(pid_t pid, int fd) {
    char name[32], text[256];
    unsigned flags;
    snprintf(name, sizeof name, "fdinfo/%d", fd);
    if (procfs_read_file(pid, 0, name, text, sizeof text) < 0)
        return -1;
    const char *at = strstr(text, "flags:");
    return at && sscanf(at, "flags: %o", &flags) == 1 ? (int)(flags & O_ACCMODE) : -1;
}

/* Whether the process has the other end open. */
static bool waits_has_end(pid_t pid, const char *link, int wanted, struct waits *w, struct waits_ends *out) {
    char path[64], other[WAITS_LINK_MAX];
    pid_t fds[WAITS_FDS];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    ssize_t n = procfs_list_numbers(path, fds, WAITS_FDS);
    out->hidden |= n < 0 && errno != ENOENT && errno != ESRCH; /* those have ended */
    out->cut |= n > WAITS_FDS;
    for (ssize_t i = 0; i < n && i < WAITS_FDS && !waits_is_late(w); i++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, (int)fds[i]);
        ssize_t len = readlink(path, other, sizeof other - 1);
        out->hidden |= len < 0 && errno != ENOENT && errno != ESRCH;
        if (len < 0 || (size_t)len != strlen(link) || memcmp(other, link, (size_t)len) != 0)
            continue;
        int mode = waits_open_mode(pid, (int)fds[i]);
        if (mode == wanted || mode == O_RDWR)
            return true;
        out->hidden |= mode < 0;
    }
    out->cut |= waits_is_late(w);
    return false;
}

/* True if /proc shows every process of the machine: this one is in the first namespace of pids
 * (include/linux/proc_ns.h, PROC_PID_INIT_INO), and nothing is hidden from it. */
static bool waits_sees_all(void) {
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == 0xEFFFFFFCU &&
           procfs_hiding() == PROCFS_HIDES_NOTHING;
}

/* Processes of other users give no list of their descriptors, at the cost of one call. */
static void waits_find_ends(struct waits_case *l, const char *link, int wanted, struct waits_ends *out) {
    pid_t *pids = calloc(WAITS_PIDS, sizeof *pids), own = l->ps->pid ? l->ps->pid : getpid();
    ssize_t n = pids ? procfs_list_pids(pids, WAITS_PIDS) : -1;
    *out = (struct waits_ends){.cut = n < 0 || n > WAITS_PIDS, .hidden = !waits_sees_all()};
    out->own = waits_has_end(own, link, wanted, l->w, out);
    /* the youngest first: children rather than those that were there before */
    for (ssize_t i = n < WAITS_PIDS ? n : WAITS_PIDS; i-- > 0 && out->n < WAITS_ENDS;) {
        out->cut = out->cut || waits_is_late(l->w);
        if (!waits_is_late(l->w) && pids[i] != own && waits_has_end(pids[i], link, wanted, l->w, out))
            out->pids[out->n++] = pids[i];
    }
    free(pids);
}

static void waits_find_pipe(struct waits_case *l, int fd, const char *link, bool writes) {
    struct waits_entry *e = l->e;
    struct waits_ends ends;
    char comm[32];
    e->kind = MODEL_WAIT_PIPE;
    e->changes = true;
    snprintf(e->what, sizeof e->what, "pipe %d%s", fd, writes ? " that is full" : "");
    waits_find_ends(l, link, writes ? O_RDONLY : O_WRONLY, &ends);
    if (ends.n == 1 && !ends.own && !ends.cut && !l->ps->other_namespace) {
        e->pid = (uint64_t)ends.pids[0];
        if (procfs_read_comm(ends.pids[0], 0, comm, sizeof comm) == 0)
            text_sanitize(e->detail, sizeof e->detail, comm);
    } else if (ends.n == 0 && ends.own && !ends.cut)
        snprintf(e->detail, sizeof e->detail, "%s",
                 ends.hidden ? "this process has the other end, and no other that may be read"
                             : "only this process has the other end");
    else if (ends.n == 0 && !ends.cut)
        snprintf(e->detail, sizeof e->detail, "no process%s has the other end",
                 ends.hidden ? " that may be read" : "");
    else if (ends.n > 1)
        snprintf(e->detail, sizeof e->detail, "several processes have the other end (%d, %d%s)",
                 (int)ends.pids[0], (int)ends.pids[1], ends.n > 2 || ends.own || ends.cut ? ", ..." : "");
}

/* ---- files ---- */

static void waits_put_wchan(struct waits_case *l) {
    char wchan[64];
    size_t at = strlen(l->e->detail);
    if (l->e->state == 'D' && procfs_read_file(l->ps->pid, l->e->tid, "wchan", wchan, sizeof wchan) > 1 &&
        strcmp(wchan, "0") != 0) {
        char clean[64];
        text_sanitize(clean, sizeof clean, wchan);
        snprintf(l->e->detail + at, sizeof l->e->detail - at, "%sin %s of the kernel", at ? ", " : "", clean);
    }
}

void waits_find_fd(struct waits_case *l, int fd, bool writes) {
    char link[WAITS_LINK_MAX];
    struct waits_entry *e = l->e;
    uint64_t inode;
    if (fd < 0 || waits_read_link(l, fd, link, sizeof link) != 0)
        return;
    if ((inode = waits_inode(link, "socket")) != 0) {
        e->kind = MODEL_WAIT_SOCKET;
        e->inode = inode;
        e->asked_ns = 0;
        snprintf(e->what, sizeof e->what, "socket %d", fd);
        return;
    }
    if (waits_inode(link, "pipe")) {
        waits_find_pipe(l, fd, link, writes);
        return;
    }
    bool terminal = strncmp(link, "/dev/pts/", 9) == 0 || strncmp(link, "/dev/tty", 8) == 0;
    e->kind = terminal ? MODEL_WAIT_TERMINAL : MODEL_WAIT_FILE;
    snprintf(e->what, sizeof e->what, "%s %d", terminal ? "terminal" : "file", fd);
    if (strncmp(link, "anon_inode:", 11) == 0) {
        e->kind = MODEL_WAIT_POLL;
        char clean[64];
        text_sanitize(clean, sizeof clean, link + 11);
        snprintf(e->what, sizeof e->what, "%s %d", clean, fd);
        return;
    }
    text_sanitize(e->detail, sizeof e->detail, link);
    waits_put_wchan(l);
}

/* ---- several descriptors ---- */

/* The descriptors of one call. */
struct waits_polled {
    int fds[WAITS_POLLED]; /* the first of them */
    size_t n;              /* of all */
    bool cut;              /* there are more than `n` */
    bool reads;            /* some are waited for to be read */
};

static void waits_add_polled(struct waits_polled *p, int fd, bool reads) {
    if (p->n < WAITS_POLLED)
        p->fds[p->n] = fd;
    p->n++;
    p->reads = p->reads || reads;
}

static void waits_put_polled(struct waits_case *l, const struct waits_polled *p) {
    struct waits_entry *e = l->e;
    char link[WAITS_LINK_MAX];
    size_t n = p->n, at;
    if (n == 1 && !p->cut) {
        waits_find_fd(l, p->fds[0], !p->reads);
        return;
    }
    e->kind = MODEL_WAIT_POLL;
    at = (size_t)snprintf(e->what, sizeof e->what, "any of %s%zu descriptors", p->cut ? "at least " : "", n);
    for (size_t i = 0; i < n && i < WAITS_NAMED && at < sizeof e->what; i++) {
        bool is_known = waits_read_link(l, p->fds[i], link, sizeof link) == 0;
        at += (size_t)snprintf(e->what + at, sizeof e->what - at, "%s%s %d", i ? ", " : ": ",
                               !is_known                     ? "?"
                               : waits_inode(link, "pipe")   ? "pipe"
                               : waits_inode(link, "socket") ? "socket"
                                                             : "file",
                               p->fds[i]);
    }
    if (n > WAITS_NAMED && at < sizeof e->what)
        snprintf(e->what + at, sizeof e->what - at, ", ...");
}

static void waits_find_sleep(struct waits_case *l, double s, const char *what) {
    l->e->kind = MODEL_WAIT_SLEEP;
    l->e->flags |= MODEL_WAIT_TIMED;
    char text[32];
    if (s < 60)
        snprintf(text, sizeof text, "%.3g s", s);
    else
        text_human_duration(text, sizeof text, s);
    if (s > 0)
        snprintf(l->e->what, sizeof l->e->what, "%s of %s", what, text);
    else
        snprintf(l->e->what, sizeof l->e->what, "%s", what);
}

static void waits_find_poll(struct waits_case *l, double timeout_s) {
    struct pollfd polled[WAITS_POLLED];
    struct waits_polled p = {.n = 0};
    uint64_t n = l->call.args[1];
    if (timeout_s >= 0)
        l->e->flags |= MODEL_WAIT_TIMED;
    if (n == 0) {
        waits_find_sleep(l, timeout_s, "sleep");
        return;
    }
    if (n > WAITS_POLLED || mem_read(&l->ps->reader.mem, l->call.args[0], polled, n * sizeof *polled) != 0) {
        l->e->kind = MODEL_WAIT_POLL;
        snprintf(l->e->what, sizeof l->e->what, "any of %" PRIu64 " descriptors", n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        waits_add_polled(&p, polled[i].fd, polled[i].events & POLLIN);
    waits_put_polled(l, &p);
}

/* Its sets: to read, to write, and of exceptional conditions. */
static void waits_find_select(struct waits_case *l) {
    uint64_t n = l->call.args[0], sets[3][WAITS_FD_SET / 64] = {{0}};
    struct waits_polled p = {.n = 0};
    int64_t limit[2];
    double timeout = -1, unit = l->call.nr == SYS_select ? 1e6 : 1e9;
    if (l->call.args[4] && mem_read(&l->ps->reader.mem, l->call.args[4], limit, sizeof limit) == 0)
        timeout = (double)limit[0] + (double)limit[1] / unit;
    if (l->call.args[4])
        l->e->flags |= MODEL_WAIT_TIMED;
    if (n == 0) {
        waits_find_sleep(l, timeout, "sleep");
        return;
    }
    p.cut = n > WAITS_FD_SET;
    size_t fds = n < WAITS_FD_SET ? (size_t)n : WAITS_FD_SET;
    for (size_t k = 0; k < 3; k++)
        if (l->call.args[k + 1] &&
            mem_read(&l->ps->reader.mem, l->call.args[k + 1], sets[k], (fds + 63) / 64 * 8) != 0)
            return;
    for (size_t i = 0; i < fds; i++)
        if ((sets[0][i / 64] | sets[1][i / 64] | sets[2][i / 64]) >> (i % 64) & 1)
            waits_add_polled(&p, (int)i, sets[0][i / 64] >> (i % 64) & 1);
    if (p.n)
        waits_put_polled(l, &p);
}

/* The lines "tfd: 7 events: 19 ..." of /proc/PID/fdinfo/FD of an epoll(7), which may be many. 0, or -1 if it
 * cannot be read. */
static int waits_read_epoll(const struct waits_case *l, int fd, struct waits_polled *p) {
    char path[96], line[256];
    size_t total = 0;
    int target;
    unsigned events;
    snprintf(path, sizeof path, "/proc/%d/task/%d/fdinfo/%d", (int)(l->ps->pid ? l->ps->pid : getpid()),
             (int)l->e->tid, fd);
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    while (!p->cut && fgets(line, sizeof line, f)) {
        total += strlen(line);
        if (sscanf(line, " tfd: %d events: %x", &target, &events) == 2)
            waits_add_polled(p, target, events & POLLIN);
        p->cut = total >= WAITS_NET_BYTES || waits_is_late(l->w);
    }
    fclose(f);
    return 0;
}

static void waits_find_epoll(struct waits_case *l) {
    struct waits_polled p = {.n = 0};
    /* struct timespec of epoll_pwait2, or milliseconds */
    if (l->call.nr == SYS_epoll_wait || l->call.nr == SYS_epoll_pwait ? (int32_t)l->call.args[3] >= 0
                                                                      : l->call.args[3] != 0)
        l->e->flags |= MODEL_WAIT_TIMED;
    if (waits_read_epoll(l, (int)l->call.args[0], &p) != 0)
        return;
    if (p.n)
        waits_put_polled(l, &p);
    else if (!p.cut) {
        l->e->kind = MODEL_WAIT_POLL;
        snprintf(l->e->what, sizeof l->e->what, "epoll %d without descriptors", (int)l->call.args[0]);
    }
}

static void waits_find_nanosleep(struct waits_case *l) {
    struct timespec ts, now;
    bool clocked = l->call.nr == SYS_clock_nanosleep, absolute = clocked && l->call.args[1] & TIMER_ABSTIME;
    uint64_t at = clocked ? l->call.args[2] : l->call.args[0];
    double s = 0;
    if (mem_read(&l->ps->reader.mem, at, &ts, sizeof ts) != 0)
        s = 0;
    else if (!absolute)
        s = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
    else if (clock_gettime((clockid_t)(int)l->call.args[0], &now) == 0) {
        double left = (double)(ts.tv_sec - now.tv_sec) + (double)(ts.tv_nsec - now.tv_nsec) / 1e9;
        if (left > 0 && left < 1e9)
            l->e->deadline_ns = clock_mono_ns() + (uint64_t)(left * 1e9);
    }
    waits_find_sleep(l, s, "sleep");
}

/* ---- processes ---- */

void waits_put_child(struct waits_case *l, int64_t pid, const char *what) {
    struct waits_entry *e = l->e;
    struct procfs_stat st;
    if (what) {
        e->kind = MODEL_WAIT_CHILD;
        snprintf(e->what, sizeof e->what, "%s", what);
    }
    e->pid = pid > 0 ? (uint64_t)pid : 0;
    e->detail[0] = '\0';
    /* Its number is the target's: elsewhere it would be somebody else's. */
    if (pid <= 0 || l->ps->other_namespace)
        return;
    if (procfs_read_stat((pid_t)pid, 0, &st) != 0) {
        /* /proc may hide one of another user */
        if ((errno == ENOENT || errno == ESRCH) && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            snprintf(e->detail, sizeof e->detail, "gone");
        return;
    }
    const char *state = st.state == 'R'                      ? "runs"
                        : st.state == 'S' || st.state == 'I' ? "sleeps"
                        : st.state == 'D'                    ? "waits for a device (D)"
                        : st.state == 'T'                    ? "is stopped: kill -CONT continues it"
                        : st.state == 't'                    ? "is stopped by a debugger"
                        : st.state == 'Z' || st.state == 'X' ? "has ended"
                                                             : "";
    char comm[64];
    text_sanitize(comm, sizeof comm, st.comm);
    snprintf(e->detail, sizeof e->detail, "%s %s", comm, state);
}

/* Pid of a pidfd, in the numbering of /proc (pidfd_open(2)); 0 unknown. */
static int64_t waits_pidfd(struct waits_case *l, int fd) {
    char name[32], text[512];
    long long pid = 0;
    snprintf(name, sizeof name, "fdinfo/%d", fd);
    if (procfs_read_file(l->ps->pid, l->e->tid, name, text, sizeof text) < 0)
        return 0;
    const char *at = strstr(text, "\nPid:");
    return at && sscanf(at + 5, "%lld", &pid) == 1 && pid > 0 && !l->ps->other_namespace ? pid : 0;
}

/* The process whose lock on the file process `waiter` waits for, by /proc/locks: there those that
 * wait follow the lock that they wait for, marked with "->" (fs/locks.c, lock_get_status). Others may
 * have locks on other parts of the same file. 0 unknown, or several. */
static uint64_t waits_lock_owner(const struct stat *st, pid_t waiter) {
    char line[256];
    unsigned major, minor;
    unsigned long long inode;
    long long pid, owner = 0, found = 0;
    size_t total = 0;
    FILE *f = fopen("/proc/locks", "re");
    while (f && found >= 0 && total < WAITS_NET_BYTES && fgets(line, sizeof line, f)) {
        const char *mark = strstr(line, "-> ");
        total += strlen(line);
        /* without "1: " or "1: -> " */
        const char *rest = mark ? mark + 2 : strchr(line, ' ');
        if (!rest || sscanf(rest, "%*s %*s %*s %lld %x:%x:%llu", &pid, &major, &minor, &inode) != 4)
            continue;
        if (!mark)
            owner = pid;
        else if (pid == waiter && major == major(st->st_dev) && minor == minor(st->st_dev) &&
                 inode == st->st_ino)
            found = !found || found == owner ? owner : -1;
    }
    if (f)
        fclose(f);
    return found > 0 ? (uint64_t)found : 0;
}

static void waits_find_file_lock(struct waits_case *l, int fd) {
    char link[WAITS_LINK_MAX], path[96], comm[32];
    struct waits_entry *e = l->e;
    struct stat st;
    if (waits_read_link(l, fd, link, sizeof link) != 0)
        return;
    e->kind = MODEL_WAIT_FILE_LOCK;
    snprintf(e->what, sizeof e->what, "a lock on file %d", fd);
    text_sanitize(e->detail, sizeof e->detail, link);
    snprintf(path, sizeof path, "/proc/%d/task/%d/fd/%d", (int)(l->ps->pid ? l->ps->pid : getpid()),
             (int)e->tid, fd);
    if (l->ps->other_namespace || stat(path, &st) != 0)
        return;
    e->pid = waits_lock_owner(&st, l->ps->pid ? l->ps->pid : getpid());
    size_t at = strlen(e->detail);
    if (e->pid && procfs_read_comm((pid_t)e->pid, 0, comm, sizeof comm) == 0) {
        char clean[32];
        text_sanitize(clean, sizeof clean, comm);
        snprintf(e->detail + at, sizeof e->detail - at, ", held by %s", clean);
    }
}

/* ---- system calls ---- */

void waits_find_call(struct waits_case *l) {
    const uint64_t *args = l->call.args;
    double timeout = -1;
    struct timespec ts;
    switch (l->call.nr) {
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
        waits_find_nanosleep(l);
        break;
    case SYS_select:
    case SYS_pselect6:
        waits_find_select(l);
        break;
    case SYS_poll:
        waits_find_poll(l, (int32_t)args[2] < 0 ? -1 : (int32_t)args[2] / 1e3);
        break;
    case SYS_ppoll:
        if (args[2] && mem_read(&l->ps->reader.mem, args[2], &ts, sizeof ts) == 0)
            timeout = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
        waits_find_poll(l, timeout);
        break;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case 441: /* epoll_pwait2, which older headers lack */
        waits_find_epoll(l);
        break;
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_ioctl:
    case SYS_getdents64:
        waits_find_fd(l, (int)args[0], false);
        break;
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_connect:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_close:
        waits_find_fd(l, (int)args[0], true);
        break;
    case SYS_flock:
        waits_find_file_lock(l, (int)args[0]);
        break;
    case SYS_fcntl:
        if (args[1] == F_SETLKW || args[1] == 38 /* F_OFD_SETLKW */)
            waits_find_file_lock(l, (int)args[0]);
        break;
    case SYS_wait4:
        waits_put_child(l, (int32_t)args[0], (int32_t)args[0] > 0 ? "child process" : "any child process");
        break;
    case SYS_waitid:
        waits_put_child(l,
                        args[0] == P_PID ? (int64_t)(int32_t)args[1]
                        : args[0] == 3   ? waits_pidfd(l, (int)args[1]) /* P_PIDFD */
                                         : 0,
                        args[0] == P_PID || args[0] == 3 ? "child process" : "any child process");
        break;
    default:
        break;
    }
}
