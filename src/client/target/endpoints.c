/* SPDX-License-Identifier: Apache-2.0 */
/* endpoints: see endpoints.h. */
#include "client/target/endpoints.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/target/tcp.h"

#define ENDPOINTS_FILE_MAX 1024
#define ENDPOINTS_LINE_MAX 128

const struct endpoints_kind_row endpoints_kinds[ENDPOINTS_KINDS] = {
    [ENDPOINTS_UNIX] = {"unix", "unix", false, "the job's user and root"},
    [ENDPOINTS_TCP] = {"tcp", "TCP", true, "the job's user is read-only; full access takes the token"},
    [ENDPOINTS_PAUSE] = {"pause", "paused", true, "pdb; anyone with its token"},
    [ENDPOINTS_CATCH] = {"catch", "caught", true, "pdb; anyone with its token"},
    [ENDPOINTS_DEBUGPY] = {"debugpy", "debugpy", false, "anyone who can reach the address, without a token"},
};

static struct endpoints_one *endpoints_add(struct endpoints *d, enum endpoints_kind kind,
                                           const char *address) {
    if (d->n == ENDPOINTS_MAX)
        return NULL;
    struct endpoints_one *one = &d->all[d->n++];
    *one = (struct endpoints_one){.kind = kind};
    snprintf(one->address, sizeof one->address, "%s", address);
    return one;
}

/* The socket as a user would type it: without /proc/PID/root in front if the job sees our file
 * system. */
static const char *endpoints_plain_path(pid_t pid, const char *socket) {
    char root[32];
    struct stat seen, plain;
    size_t n = (size_t)snprintf(root, sizeof root, "/proc/%d/root", (int)pid);
    if (strncmp(socket, root, n) == 0 && stat(socket, &seen) == 0 && stat(socket + n, &plain) == 0 &&
        seen.st_dev == plain.st_dev && seen.st_ino == plain.st_ino)
        return socket + n;
    return socket;
}

/* A line of the agent's file (agent/access/endpoints_file.h). Unknown kinds are not listeners of
 * the job. */
static void endpoints_take_line(struct endpoints *d, const char *line) {
    const char *address = strchr(line, ' ');
    size_t word = address ? (size_t)(address - line) : 0;
    if (strcmp(line, "eval on") == 0 || strcmp(line, "eval off") == 0)
        d->eval = strcmp(line, "eval on") == 0;
    for (int kind = ENDPOINTS_PAUSE; address && kind < ENDPOINTS_KINDS; kind++)
        if (strlen(endpoints_kinds[kind].name) == word &&
            strncmp(line, endpoints_kinds[kind].name, word) == 0)
            endpoints_add(d, (enum endpoints_kind)kind, address + 1);
}

void endpoints_read(struct endpoints *d, pid_t pid, const char *socket) {
    char text[ENDPOINTS_FILE_MAX], address[ENDPOINT_PATH_MAX], file[ENDPOINT_PATH_MAX];
    bool looking = false;
    *d = (struct endpoints){.eval = -1};
    endpoints_add(d, ENDPOINTS_UNIX, endpoints_plain_path(pid, socket));
    if (tcp_find_endpoint(socket, address, sizeof address, &looking) == 0)
        endpoints_add(d, ENDPOINTS_TCP, address)->looking = looking;
    if (endpoint_state_file(file, sizeof file, socket) != 0 ||
        tcp_read_beside(socket, file, text, sizeof text) != 0)
        return;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (strlen(line) < ENDPOINTS_LINE_MAX)
            endpoints_take_line(d, line);
}

const char *endpoints_who(const struct endpoints_one *door) {
    return door->looking ? "read-only: the job's user, others with the token"
                         : endpoints_kinds[door->kind].who;
}
