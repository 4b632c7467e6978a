/* SPDX-License-Identifier: Apache-2.0 */
/* tcp: see tcp.h. */
#include "client/tcp.h"

#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/endpoint.h"

#define TCP_PREFIX "tcp:"
#define TCP_DOOR_FILE_MAX 512

static const char *tcp_given;

void tcp_set_token(const char *token) { tcp_given = token; }

bool tcp_is(const char *path) { return strncmp(path, TCP_PREFIX, strlen(TCP_PREFIX)) == 0; }

const char *tcp_name(const char *path) { return tcp_is(path) ? path + strlen(TCP_PREFIX) : path; }

int tcp_address(const char *path, struct address *out, struct err *e) {
    return address_parse(out, tcp_name(path), e);
}

int tcp_resolve(const char *text, char *path, size_t cap, struct err *e) {
    char host[256], name[ADDRESS_MAX];
    struct address a;
    struct addrinfo *found, hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof host)
        return err_set(e, ERR_USAGE, "%.200s: give the address of an agent as HOST:PORT", text);
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    if (address_parse_host(&a, host) != 0) {
        int rc = getaddrinfo(host, colon + 1, &hints, &found);
        if (rc != 0)
            return err_set(e, ERR_ATTACH, "%s: the name %s is not known: %s", text, host, gai_strerror(rc));
        memcpy(&a.at, found->ai_addr, found->ai_addrlen);
        a.len = found->ai_addrlen;
        freeaddrinfo(found);
        address_format(&a, name, sizeof name);
        (void)snprintf(path, cap, TCP_PREFIX "%s", name);
    } else if (address_parse(&a, text, e) == 0) {
        address_format(&a, name, sizeof name);
        (void)snprintf(path, cap, TCP_PREFIX "%s", name);
    } else {
        return -1;
    }
    if (address_port(&a) == 0 || address_is_any(&a))
        return err_set(e, ERR_USAGE, "%.200s: nothing can listen there", text);
    return 0;
}

/* ---- the files that agents leave ---- */

int tcp_read_own(const char *file, char *text, size_t cap) {
    struct stat st;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = -1;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_uid == geteuid() || geteuid() == 0) &&
        (st.st_mode & 077) == 0)
        n = read(fd, text, cap - 1);
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    return 0;
}

/* Lines of one: address, token, the token of those who may look; those that are not there are empty. 0, or -1: it is none, or not this
 * user's. */
static int tcp_read_file(const char *file, char *text, size_t cap, const char *lines[3]) {
    if (tcp_read_own(file, text, cap) != 0)
        return -1;
    char *rest = text;
    for (int i = 0; i < 3; i++) {
        char *line = rest ? strsep(&rest, "\n") : NULL;
        lines[i] = line ? line : "";
    }
    return 0;
}

/* Is it a door by which one comes to that address of this machine? */
static bool tcp_leads_to(const char *door, const struct address *wanted) {
    struct address a;
    return address_parse(&a, door, NULL) == 0 && address_port(&a) == address_port(wanted) &&
           (address_same_host(&a, wanted) || (address_is_any(&a) && address_is_loopback(wanted)));
}

static int tcp_token_in(const char *dir, const struct address *wanted, char *buf, size_t cap) {
    char file[512], text[TCP_DOOR_FILE_MAX];
    const char *lines[3];
    int rc = -1;
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && rc != 0 && (entry = readdir(d));) {
        size_t n = strlen(entry->d_name);
        if (n < 5 || strcmp(entry->d_name + n - 5, ".door") != 0)
            continue;
        (void)snprintf(file, sizeof file, "%.200s/%.200s", dir, entry->d_name);
        if (tcp_read_file(file, text, sizeof text, lines) != 0 || !tcp_leads_to(lines[0], wanted))
            continue;
        (void)snprintf(buf, cap, "%s", lines[1][0] ? lines[1] : lines[2]);
        rc = 0;
    }
    if (d)
        (void)closedir(d);
    return rc;
}

/* The user whose socket listens at `wanted`, or at all addresses, by its port in one of the kernel's lists; -1: none does. */
static int64_t tcp_listener_in(const char *list, const struct address *wanted) {
    char line[256], state[8];
    unsigned port, uid;
    int64_t found = -1;
    FILE *f = fopen(list, "re");
    while (f && found < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F:] %7s %*s %*s %*s %u", &port, state, &uid) == 3 &&
            strcmp(state, "0A") == 0 && port == address_port(wanted))
            found = uid;
    if (f)
        (void)fclose(f);
    return found;
}

/* In what processes of one user have left. */
static int tcp_token_of(uid_t uid, const struct address *wanted, char *buf, size_t cap) {
    char dir[ENDPOINT_PATH_MAX];
    for (const char *const *place = endpoint_places; *place; place++)
        if (endpoint_dir_in(dir, sizeof dir, *place, uid) == 0 && tcp_token_in(dir, wanted, buf, cap) == 0)
            return 0;
    return -1;
}

int tcp_find_token(const char *path, char *buf, size_t cap) {
    struct address wanted;
    const char *given = tcp_given && tcp_given[0] ? tcp_given : getenv("PROBING_TOKEN");
    if (given && given[0]) {
        /* It becomes a header: what would end it there is no token. */
        if (strlen(given) >= cap || strpbrk(given, "\r\n"))
            return -1;
        (void)snprintf(buf, cap, "%s", given);
        return 0;
    }
    if (tcp_address(path, &wanted, NULL) != 0)
        return -1;
    if (tcp_token_of(geteuid(), &wanted, buf, cap) == 0)
        return 0;
    if (geteuid() != 0)
        return -1;
    /* Root may read whose it is: the user's who listens there. */
    static const char *const lists[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        int64_t uid = tcp_listener_in(lists[i], &wanted);
        if (uid > 0 && tcp_token_of((uid_t)uid, &wanted, buf, cap) == 0)
            return 0;
    }
    return -1;
}

int tcp_find_door(const char *socket, char *address, size_t cap, bool *looking) {
    char file[ENDPOINT_PATH_MAX + 1], text[TCP_DOOR_FILE_MAX];
    const char *lines[3];
    if (endpoint_door_file(file, sizeof file, socket) != 0 ||
        tcp_read_file(file, text, sizeof text, lines) != 0)
        return -1;
    (void)snprintf(address, cap, "%s", lines[0]);
    *looking = !lines[1][0];
    return 0;
}
