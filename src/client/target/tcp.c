/* SPDX-License-Identifier: Apache-2.0 */
/* tcp: see tcp.h. */
#include "client/target/tcp.h"

#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/endpoint.h"
#include "base/file.h"

#define TCP_PREFIX "tcp:"
#define TCP_FILE_MAX 512
#define TCP_LISTENS 0x0a /* include/net/tcp_states.h */

static const char *tcp_token_file;

void tcp_set_token(const char *token) { tcp_token_file = token; }

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
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    if (address_parse_host(&a, host) != 0) {
        int rc = getaddrinfo(host, colon + 1, &hints, &found);
        if (rc != 0)
            return err_set(e, ERR_ATTACH, "%s: unknown host %s: %s", text, host, gai_strerror(rc));
        memcpy(&a.at, found->ai_addr, found->ai_addrlen);
        a.len = found->ai_addrlen;
        freeaddrinfo(found);
        address_format(&a, name, sizeof name);
        snprintf(path, cap, TCP_PREFIX "%s", name);
    } else if (address_parse(&a, text, e) == 0) {
        address_format(&a, name, sizeof name);
        snprintf(path, cap, TCP_PREFIX "%s", name);
    } else {
        return -1;
    }
    if (address_port(&a) == 0 || address_is_any(&a))
        return err_set(e, ERR_USAGE, "%.200s: nothing can listen there", text);
    return 0;
}

/* ---- the files that agents leave ---- */

/* The text of a file that belongs to user `owner`, and that nobody else may write or read. 0 or
 * -1. */
static int tcp_read_small(int folder, const char *name, int64_t owner, char *text, size_t cap) {
    struct stat st;
    ssize_t n = -1;
    int fd = openat(folder, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        fd = file_open_taken(fd, O_RDONLY, owner);
    if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 077) == 0)
        n = read(fd, text, cap - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    return 0;
}

int tcp_read_beside(const char *socket, const char *file, char *text, size_t cap) {
    struct stat st;
    /* The owner of the socket vouches for the file; root accepts those of other users too. */
    if (lstat(socket, &st) != 0 || !S_ISSOCK(st.st_mode) || (st.st_uid != geteuid() && geteuid() != 0))
        return -1;
    return tcp_read_small(AT_FDCWD, file, st.st_uid, text, cap);
}

/* Split it into lines: address, token, read-only token; missing ones are empty. */
static void tcp_split(char *text, const char *lines[3]) {
    char *rest = text;
    for (int i = 0; i < 3; i++) {
        char *line = rest ? strsep(&rest, "\n") : NULL;
        lines[i] = line ? line : "";
    }
}

/* True if a listener at `door` is reachable at that address of this machine. */
static bool tcp_leads_to(const char *door, const struct address *wanted) {
    struct address a;
    return address_parse(&a, door, NULL) == 0 && address_port(&a) == address_port(wanted) &&
           (address_same_host(&a, wanted) || (address_is_any(&a) && address_is_loopback(wanted)));
}

/* True if everything that listens at that port of this machine belongs to user `owner`, by the
 * kernel's word (proc(5), /proc/net/tcp): the agent that left the file may be gone, and the port
 * another's. */
static bool tcp_listens(const struct address *wanted, int64_t owner) {
    static const char *const tables[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
    bool found = false;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        FILE *f = fopen(tables[i], "re");
        char *line = NULL;
        size_t cap = 0;
        while (f && getline(&line, &cap, f) > 0) {
            unsigned port, state;
            long long uid;
            if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %lld", &port,
                       &state, &uid) != 3 ||
                state != TCP_LISTENS || port != (unsigned)address_port(wanted))
                continue;
            found = uid == owner;
            if (!found)
                break;
        }
        bool foreign = f && !feof(f) && !found;
        free(line);
        if (f)
            fclose(f);
        if (foreign)
            return false;
    }
    return found;
}

/* From a folder that belongs to `owner` alone. 0 or -1. */
static int tcp_token_in(const char *dir, int64_t owner, const struct address *wanted, char *buf, size_t cap) {
    char text[TCP_FILE_MAX];
    const char *lines[3];
    struct stat st;
    int rc = -1, fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool own = fd >= 0 && fstat(fd, &st) == 0 && (int64_t)st.st_uid == owner && (st.st_mode & 077) == 0;
    DIR *d = own ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *entry; d && rc != 0 && (entry = readdir(d));) {
        size_t n = strlen(entry->d_name);
        if (n < 5 || strcmp(entry->d_name + n - 5, ".door") != 0 ||
            tcp_read_small(dirfd(d), entry->d_name, owner, text, sizeof text) != 0)
            continue;
        tcp_split(text, lines);
        if (!tcp_leads_to(lines[0], wanted) || !tcp_listens(wanted, owner))
            continue;
        snprintf(buf, cap, "%s", lines[1][0] ? lines[1] : lines[2]);
        rc = 0;
    }
    if (d)
        closedir(d);
    return rc;
}

/* For root, from the folders of all users below `place`: a token is sent to nobody but the user
 * who has left it. 0 or -1. */
static int tcp_token_of_others(const char *place, const struct address *wanted, char *buf, size_t cap) {
    int rc = -1;
    DIR *d = opendir(place);
    for (struct dirent *entry; d && rc != 0 && (entry = readdir(d));) {
        char dir[ENDPOINT_PATH_MAX];
        unsigned uid;
        int used = 0, n;
        if (sscanf(entry->d_name, "probing-%u%n", &uid, &used) != 1 || entry->d_name[used])
            continue;
        n = snprintf(dir, sizeof dir, "%s/%s", place, entry->d_name);
        if (n > 0 && (size_t)n < sizeof dir)
            rc = tcp_token_in(dir, uid, wanted, buf, cap);
    }
    if (d)
        closedir(d);
    return rc;
}

int tcp_find_token(const char *path, char *buf, size_t cap) {
    char dir[ENDPOINT_PATH_MAX];
    struct address wanted;
    const char *given = tcp_token_file && tcp_token_file[0] ? tcp_token_file : getenv("PROBING_TOKEN");
    if (given && given[0]) {
        /* It becomes a header: a character that would end it is not allowed. */
        if (strlen(given) >= cap || strpbrk(given, "\r\n"))
            return -1;
        snprintf(buf, cap, "%s", given);
        return 0;
    }
    if (tcp_address(path, &wanted, NULL) != 0)
        return -1;
    for (const char *const *place = endpoint_places; *place; place++)
        if (endpoint_dir_in(dir, sizeof dir, *place, geteuid()) == 0 &&
            tcp_token_in(dir, geteuid(), &wanted, buf, cap) == 0)
            return 0;
    for (const char *const *place = endpoint_places; *place && geteuid() == 0; place++)
        if (tcp_token_of_others(*place, &wanted, buf, cap) == 0)
            return 0;
    return -1;
}

int tcp_find_endpoint(const char *socket, char *address, size_t cap, bool *looking) {
    char file[ENDPOINT_PATH_MAX + 1], text[TCP_FILE_MAX];
    const char *lines[3];
    if (endpoint_tcp_file(file, sizeof file, socket) != 0 ||
        tcp_read_beside(socket, file, text, sizeof text) != 0)
        return -1;
    tcp_split(text, lines);
    snprintf(address, cap, "%s", lines[0]);
    *looking = !lines[1][0];
    return 0;
}
