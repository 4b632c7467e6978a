/* SPDX-License-Identifier: Apache-2.0 */
/* access: see access.h. Lines of /proc/net/tcp: Linux,
 * Documentation/networking/proc_net_tcp.rst; queries: sock_diag(7); processes: proc(5),
 * namespaces(7). */
#include "agent/access/access.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"

#define ACCESS_READ_MAX ((size_t)4 * 1024 * 1024) /* about 27000 connections */
#define ACCESS_PIECE 16384
#define ACCESS_NO_UID 65534 /* the id of users unknown to a user namespace (overflowuid) */
/* of a processor per second, for finding the users of connections */
#define ACCESS_LOOKUPS_NS (100 * CLOCK_NS_PER_MS)
#define ACCESS_FIRST_NS (100 * CLOCK_NS_PER_MS)
#define ACCESS_DOUBLINGS 7 /* up to 12.8 s */
#define ACCESS_FORGET_NS (120 * CLOCK_NS_PER_S)
#define ACCESS_FIELDS 10 /* of a line, up to the inode */

/* ---- users ---- */

/* An address as the kernel writes it in that file: words of 32 bits in the byte order of this
 * machine. `wide`: as IPv6. */
static void access_write(const struct address *a, bool wide, char *buf, size_t cap) {
    uint32_t words[4] = {0};
    size_t n = 1;
    if (a->at.any.sa_family == AF_INET6) {
        memcpy(words, a->at.v6.sin6_addr.s6_addr, sizeof words);
        n = 4;
    } else if (wide) {
        static const unsigned char mapped[4] = {0, 0, 0xff, 0xff};
        memcpy(&words[2], mapped, sizeof mapped);
        words[3] = a->at.v4.sin_addr.s_addr;
        n = 4;
    } else {
        words[0] = a->at.v4.sin_addr.s_addr;
    }
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(buf + used, cap - used, "%08X", words[i]);
    snprintf(buf + used, cap - used, ":%04X", address_port(a));
}

/* True if the connection can still be read from. A client that has sent everything may have
 * closed the other direction. */
static bool access_is_open(unsigned long state) {
    return state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2;
}

/* The user of one line, or -1. */
static int64_t access_uid_of(char *line, const char *local, const char *remote, uint64_t *inode) {
    char *fields[ACCESS_FIELDS], *rest = NULL;
    size_t n = 0;
    for (char *f = strtok_r(line, " ", &rest); f && n < ACCESS_FIELDS; f = strtok_r(NULL, " ", &rest))
        fields[n++] = f;
    if (n < ACCESS_FIELDS || strcmp(fields[1], local) != 0 || strcmp(fields[2], remote) != 0)
        return -1;
    char *end;
    unsigned long uid = strtoul(fields[7], &end, 10);
    uint64_t held = strtoull(fields[9], NULL, 10);
    /* Inode 0: the socket has no owner any longer, and the line shows root. */
    if (*end || !access_is_open(strtoul(fields[3], NULL, 16)) || held == 0)
        return -1;
    if (inode)
        *inode = held;
    return (int64_t)uid;
}

int64_t access_uid_in(char *text, const char *local, const char *remote, uint64_t *inode) {
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        int64_t uid = access_uid_of(line, local, remote, inode);
        if (uid >= 0)
            return uid;
    }
    return -1;
}

/* Search one of the two files, a piece at a time. */
static int64_t access_search(const char *path, const char *local, const char *remote, uint64_t *inode) {
    char piece[ACCESS_PIECE + 1];
    size_t held = 0, all = 0;
    int64_t uid = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && uid < 0 && all < ACCESS_READ_MAX &&
                    (n = read(fd, piece + held, ACCESS_PIECE - held)) > 0;) {
        held += (size_t)n;
        all += (size_t)n;
        size_t whole = held; /* up to the end of a line */
        while (whole > 0 && piece[whole - 1] != '\n')
            whole--;
        if (whole == 0) {
            /* not a file of that format */
            if (held == ACCESS_PIECE)
                break;
            continue;
        }
        piece[whole - 1] = '\0';
        uid = access_uid_in(piece, local, remote, inode);
        memmove(piece, piece + whole, held - whole);
        held -= whole;
    }
    if (fd >= 0)
        close(fd);
    return uid;
}

/* ---- a query to the kernel for both ends: one look-up, where /proc lists all connections ---- */

struct access_question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

struct access_answer {
    struct nlmsghdr head;
    struct inet_diag_msg body;
    char rest[512];
};

static struct access_question access_make_question(const struct address *near, const struct address *far) {
    struct access_question q = {
        .head = {.nlmsg_len = sizeof q, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = (uint8_t)far->at.any.sa_family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ~0U}};
    struct inet_diag_sockid *id = &q.body.id;
    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (far->at.any.sa_family == AF_INET) {
        id->idiag_sport = far->at.v4.sin_port;
        id->idiag_dport = near->at.v4.sin_port;
        id->idiag_src[0] = far->at.v4.sin_addr.s_addr;
        id->idiag_dst[0] = near->at.v4.sin_addr.s_addr;
    } else {
        id->idiag_sport = far->at.v6.sin6_port;
        id->idiag_dport = near->at.v6.sin6_port;
        memcpy(id->idiag_src, &far->at.v6.sin6_addr, sizeof id->idiag_src);
        memcpy(id->idiag_dst, &near->at.v6.sin6_addr, sizeof id->idiag_dst);
    }
    return q;
}

/* Also ACCESS_UNKNOWN where such queries are not supported. Nothing waits: the kernel answers
 * before send returns. */
static struct access_peer access_ask_kernel(const struct address *near, const struct address *far) {
    struct access_question q = access_make_question(near, far);
    struct access_answer answer;
    struct access_peer peer = {.uid = ACCESS_UNKNOWN};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return peer;
    if (send(fd, &q, sizeof q, MSG_DONTWAIT) == (ssize_t)sizeof q) {
        ssize_t n = recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
        /* As in access_uid_of: a socket without an owner has no inode, and the answer shows
         * root. */
        if (n >= (ssize_t)offsetof(struct access_answer, rest) &&
            answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY && access_is_open(answer.body.idiag_state) &&
            answer.body.idiag_inode != 0 &&
            memcmp(&answer.body.id.idiag_sport, &q.body.id.idiag_sport, sizeof(uint16_t)) == 0 &&
            memcmp(&answer.body.id.idiag_dport, &q.body.id.idiag_dport, sizeof(uint16_t)) == 0)
            peer = (struct access_peer){.uid = answer.body.idiag_uid, .inode = answer.body.idiag_inode};
    }
    close(fd);
    return peer;
}

/* Search the kernel's lists. */
static struct access_peer access_search_lists(const struct address *near, const struct address *far) {
    char local[64], remote[64];
    struct access_peer peer = {.uid = ACCESS_UNKNOWN};
    if (far->at.any.sa_family == AF_INET) {
        access_write(far, false, local, sizeof local);
        access_write(near, false, remote, sizeof remote);
        peer.uid = access_search("/proc/thread-self/net/tcp", local, remote, &peer.inode);
    }
    if (peer.uid < 0) { /* a socket for both protocols is listed under IPv6 */
        access_write(far, true, local, sizeof local);
        access_write(near, true, remote, sizeof remote);
        peer.uid = access_search("/proc/thread-self/net/tcp6", local, remote, &peer.inode);
    }
    return peer;
}

/* True if this second's budget for finding users is not used up. */
static bool access_has_time(struct access_spent *spent) {
    uint64_t now = clock_mono_ns();
    if (now - spent->since_ns >= CLOCK_NS_PER_S)
        *spent = (struct access_spent){.since_ns = now};
    return spent->ns < ACCESS_LOOKUPS_NS;
}

struct access_peer access_find_peer(struct access *a, const struct address *near, const struct address *far) {
    uint64_t began = clock_self_cpu_ns();
    bool may_look = access_has_time(&a->users);
    if (!address_is_loopback(far) || !address_is_loopback(near))
        return (struct access_peer){.uid = ACCESS_UNKNOWN};
    if (!may_look)
        return (struct access_peer){.uid = ACCESS_NOT_NOW};
    struct access_peer peer = access_ask_kernel(near, far);
    if (peer.uid < 0)
        peer = access_search_lists(near, far);
    a->users.ns += clock_self_cpu_ns() - began;
    if (peer.uid == ACCESS_NO_UID && procfs_in_inner_user_ns(0))
        peer.uid = ACCESS_UNKNOWN;
    return peer;
}

bool access_is_known(const struct access_peer *peer) {
    return peer->uid == 0 || (peer->uid > 0 && peer->uid == (int64_t)geteuid());
}

/* ---- neighbours ---- */

/*
 * The kernel knows the user of a socket and nothing more; in a container that shares our network
 * the same number may be another user. So this searches the processes that we see in /proc and
 * may read for the owner of the socket, the newest first, because a curl has just started. A
 * socket that is not found counts as a stranger's. The search is bounded in processes,
 * descriptors and CPU time. Nothing in it blocks. Any thread.
 */

#define ACCESS_NEIGHBOUR_PROCESSES 4096 /* the newest ones */
#define ACCESS_NEIGHBOUR_CPU_NS (20 * CLOCK_NS_PER_MS)
#define ACCESS_NEIGHBOUR_EVERY 32 /* descriptors between two checks of the time */
#define ACCESS_NEIGHBOUR_NS 3

static const char *const access_namespaces[ACCESS_NEIGHBOUR_NS] = {"user", "pid", "mnt"};

struct access_search {
    char wanted[32]; /* the target of a descriptor's link */
    uid_t uid;
    struct stat own[ACCESS_NEIGHBOUR_NS];
    /* in CPU time of this thread: nobody is a stranger because the machine is busy */
    uint64_t until_ns;
};

/* True if process `pid` is our user's, in our namespaces; false if we may not inspect it. This
 * is checked before its descriptors are read, so that processes elsewhere, however many
 * descriptors they have, take no time. */
static bool access_is_near(const struct access_search *n, int proc, int pid) {
    char path[48];
    struct stat st;
    snprintf(path, sizeof path, "%d", pid);
    if (fstatat(proc, path, &st, 0) != 0 || st.st_uid != n->uid)
        return false;
    for (int i = 0; i < ACCESS_NEIGHBOUR_NS; i++) {
        snprintf(path, sizeof path, "%d/ns/%s", pid, access_namespaces[i]);
        if (fstatat(proc, path, &st, 0) != 0 || st.st_dev != n->own[i].st_dev ||
            st.st_ino != n->own[i].st_ino)
            return false;
    }
    return true;
}

static bool access_has(const struct access_search *n, int proc, int pid) {
    char path[32], link[64];
    bool has = false;
    snprintf(path, sizeof path, "%d/fd", pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        close(fd);
    unsigned seen = 0;
    for (struct dirent *entry; d && !has && (entry = readdir(d));) {
        if (++seen % ACCESS_NEIGHBOUR_EVERY == 0 && clock_self_cpu_ns() > n->until_ns)
            break;
        ssize_t len = entry->d_name[0] == '.' ? 0 : readlinkat(fd, entry->d_name, link, sizeof link - 1);
        if (len <= 0)
            continue;
        link[len] = '\0';
        has = strcmp(link, n->wanted) == 0;
    }
    if (d)
        closedir(d);
    return has;
}

/* List the processes in a ring of those read last: /proc has them in the order of their numbers.
 * Returns the number read. */
static size_t access_list(const struct access_search *n, int proc, int *pids) {
    size_t count = 0;
    int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        int pid = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? atoi(entry->d_name) : 0;
        if (pid > 0)
            pids[count++ % ACCESS_NEIGHBOUR_PROCESSES] = pid;
        if (count % ACCESS_NEIGHBOUR_EVERY == 0 && clock_self_cpu_ns() > n->until_ns)
            break;
    }
    if (d)
        closedir(d);
    return count;
}

bool access_has_socket(uint64_t inode, int *last) {
    struct access_search n = {.uid = geteuid(), .until_ns = clock_self_cpu_ns() + ACCESS_NEIGHBOUR_CPU_NS};
    bool holds = false;
    snprintf(n.wanted, sizeof n.wanted, "socket:[%llu]", (unsigned long long)inode);
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int *pids = proc >= 0 ? malloc(ACCESS_NEIGHBOUR_PROCESSES * sizeof *pids) : NULL;
    bool known = pids != NULL;
    for (int i = 0; known && i < ACCESS_NEIGHBOUR_NS; i++) {
        char path[32];
        snprintf(path, sizeof path, "self/ns/%s", access_namespaces[i]);
        known = fstatat(proc, path, &n.own[i], 0) == 0;
    }
    holds = known && *last > 0 && access_is_near(&n, proc, *last) && access_has(&n, proc, *last);
    size_t count = known && !holds ? access_list(&n, proc, pids) : 0;
    size_t kept = count < ACCESS_NEIGHBOUR_PROCESSES ? count : ACCESS_NEIGHBOUR_PROCESSES;
    for (size_t i = 0; !holds && i < kept && clock_self_cpu_ns() <= n.until_ns; i++) {
        int pid = pids[(count - 1 - i) % ACCESS_NEIGHBOUR_PROCESSES];
        holds = access_is_near(&n, proc, pid) && access_has(&n, proc, pid);
        *last = holds ? pid : *last;
    }
    free(pids);
    if (proc >= 0)
        close(proc);
    return holds;
}

int access_is_neighbour(struct access *a, const struct access_peer *peer) {
    uint64_t began = clock_self_cpu_ns();
    if (peer->uid == ACCESS_NOT_NOW)
        return ACCESS_NOT_NOW;
    if (peer->uid < 0 || peer->uid != (int64_t)geteuid() || peer->inode == 0)
        return 0;
    if (!access_has_time(&a->neighbours))
        return ACCESS_NOT_NOW;
    int is = access_has_socket(peer->inode, &a->neighbour) ? 1 : 0;
    a->neighbours.ns += clock_self_cpu_ns() - began;
    return is;
}

/* ---- failed attempts ---- */

static void access_key(const struct address *far, unsigned char host[16]) {
    memset(host, 0, 16);
    if (far->at.any.sa_family == AF_INET)
        memcpy(host + 12, &far->at.v4.sin_addr, 4);
    else if (far->at.any.sa_family == AF_INET6)
        memcpy(host, far->at.v6.sin6_addr.s6_addr, address_is_loopback(far) ? 16 : 8);
}

static const struct access_row *access_find_row(const struct access *a, const struct address *far,
                                                int64_t uid) {
    unsigned char host[16];
    access_key(far, host);
    for (size_t i = 0; i < ACCESS_ROWS; i++)
        if (a->rows[i].tries && a->rows[i].uid == uid && memcmp(a->rows[i].host, host, sizeof host) == 0)
            return &a->rows[i];
    return NULL;
}

bool access_must_wait(const struct access *a, const struct address *far, int64_t uid, uint64_t now_ns) {
    const struct access_row *row = access_find_row(a, far, uid);
    return row && now_ns < row->until_ns;
}

void access_note_failure(struct access *a, const struct address *far, int64_t uid, uint64_t now_ns) {
    const struct access_row *known = access_find_row(a, far, uid);
    struct access_row *row = known ? &a->rows[known - a->rows] : &a->rows[0];
    for (size_t i = 0; !known && i < ACCESS_ROWS && row->tries; i++)
        if (!a->rows[i].tries || a->rows[i].last_ns < row->last_ns)
            row = &a->rows[i];
    if (!known || now_ns - row->last_ns > ACCESS_FORGET_NS) {
        *row = (struct access_row){.uid = uid};
        access_key(far, row->host);
    }
    row->last_ns = now_ns;
    row->until_ns =
        now_ns + (ACCESS_FIRST_NS << (row->tries < ACCESS_DOUBLINGS ? row->tries : ACCESS_DOUBLINGS));
    row->tries++;
}

/* ---- web pages ---- */

bool access_is_host(const char *host, const struct address *near) {
    char name[ADDRESS_MAX];
    struct address named;
    if (!host || strlen(host) >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%s", host);
    char *colon = strrchr(name, ':');
    if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
        (name[0] != '[' || colon[-1] == ']'))
        *colon = '\0';
    if (strcmp(name, "*") == 0 || address_parse_host(&named, name) != 0 || address_is_any(&named))
        return false;
    return address_same_host(&named, near) || address_is_loopback(&named);
}

bool access_is_origin(const char *origin, const char *host) {
    static const char scheme[] = "http://";
    if (!origin || !origin[0])
        return true;
    return host && strncmp(origin, scheme, sizeof scheme - 1) == 0 &&
           strcmp(origin + sizeof scheme - 1, host) == 0;
}

int access_ends(int fd, struct address *near, struct address *far) {
    near->len = far->len = sizeof near->at;
    return getsockname(fd, &near->at.any, &near->len) == 0 && getpeername(fd, &far->at.any, &far->len) == 0
               ? 0
               : -1;
}
