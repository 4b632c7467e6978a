/* SPDX-License-Identifier: Apache-2.0 */
/* doors: see doors.h. */
#include "client/doors.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/tcp.h"

#define DOORS_FILE_MAX 1024
#define DOORS_LINE_MAX 128

const struct doors_kind_row doors_kinds[DOORS_KINDS] = {
    [DOORS_UNIX] = {"unix", "unix", false, "the job's user and root"},
    [DOORS_TCP] = {"tcp", "TCP", true, "the job's user may look; all else takes the token"},
    [DOORS_PAUSE] = {"pause", "paused", true, "pdb; whoever has its token"},
    [DOORS_CATCH] = {"catch", "caught", true, "pdb; whoever has its token"},
    [DOORS_DEBUGPY] = {"debugpy", "debugpy", false, "whoever reaches the address, without a token"},
};

static struct doors_one *doors_add(struct doors *d, enum doors_kind kind, const char *address) {
    if (d->n == DOORS_MAX)
        return NULL;
    struct doors_one *one = &d->all[d->n++];
    *one = (struct doors_one){.kind = kind};
    (void)snprintf(one->address, sizeof one->address, "%s", address);
    return one;
}

/* The socket as one would type it: where the job sees the same file system as we do, without /proc/PID/root before it. */
static const char *doors_plain_path(pid_t pid, const char *socket) {
    char root[32];
    struct stat seen, plain;
    size_t n = (size_t)snprintf(root, sizeof root, "/proc/%d/root", (int)pid);
    if (strncmp(socket, root, n) == 0 && stat(socket, &seen) == 0 && stat(socket + n, &plain) == 0 &&
        seen.st_dev == plain.st_dev && seen.st_ino == plain.st_ino)
        return socket + n;
    return socket;
}

/* A line of the agent's file (agent/opened.h). What this program does not know is none of its doors. */
static void doors_take_line(struct doors *d, const char *line) {
    const char *address = strchr(line, ' ');
    size_t word = address ? (size_t)(address - line) : 0;
    if (strcmp(line, "eval on") == 0 || strcmp(line, "eval off") == 0)
        d->eval = strcmp(line, "eval on") == 0;
    for (int kind = DOORS_PAUSE; address && kind < DOORS_KINDS; kind++)
        if (strlen(doors_kinds[kind].name) == word && strncmp(line, doors_kinds[kind].name, word) == 0)
            (void)doors_add(d, (enum doors_kind)kind, address + 1);
}

void doors_read(struct doors *d, pid_t pid, const char *socket) {
    char text[DOORS_FILE_MAX], address[ENDPOINT_PATH_MAX], file[ENDPOINT_PATH_MAX];
    bool looking = false;
    *d = (struct doors){.eval = -1};
    (void)doors_add(d, DOORS_UNIX, doors_plain_path(pid, socket));
    if (tcp_find_door(socket, address, sizeof address, &looking) == 0)
        doors_add(d, DOORS_TCP, address)->looking = looking;
    if (endpoint_opened_file(file, sizeof file, socket) != 0 ||
        tcp_read_beside(socket, file, text, sizeof text) != 0)
        return;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (strlen(line) < DOORS_LINE_MAX)
            doors_take_line(d, line);
}

const char *doors_who(const struct doors_one *door) {
    return door->looking ? "the job's user may look, others with the token; nobody may more"
                         : doors_kinds[door->kind].who;
}
