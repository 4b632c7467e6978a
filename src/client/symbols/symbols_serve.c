/* SPDX-License-Identifier: Apache-2.0 */
/* symbols_serve: see symbols_serve.h. */
#include "client/symbols/symbols_serve.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/symbols/symbols_module.h"
#include "client/symbols/symbols_name.h"
#include "client/symbols/symbols_sandbox.h"

#define SERVE_TEXT ((size_t)1024 * 1024) /* of one answer */
#define SERVE_CPU_S 6

static struct symbols_file *serve_modules[SYMBOLS_MAX_MODULES];
static unsigned serve_asked; /* files, for this question */

/* ---- packets ---- */

/* The client's next packet. `*fd`: the file that came along, or -1. Ends the process when the
 * client is gone. */
static void serve_receive(struct symbols_question *q, int *fd) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = q, .iov_len = sizeof *q};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    ssize_t n;
    memset(q, 0, sizeof *q);
    do
        n = recvmsg(SYMBOLS_SOCKET, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        _exit(0);
    q->name[sizeof q->name - 1] = '\0';
    const struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    *fd = -1;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof *fd))
        memcpy(fd, CMSG_DATA(c), sizeof *fd);
}

static void serve_send(const void *packet, size_t len) {
    struct iovec part = {.iov_base = (void *)(uintptr_t)packet, .iov_len = len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;
    do
        n = sendmsg(SYMBOLS_SOCKET, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        _exit(0);
}

static uint16_t serve_append(char **at, const char *s, size_t max) {
    if (!s)
        return 0;
    size_t len = strnlen(s, max - 1);
    memcpy(*at, s, len);
    (*at)[len] = '\0';
    *at += len + 1;
    return (uint16_t)(len + 1);
}

static void serve_answer(const struct symbol *list, size_t n, enum native_role role) {
    static struct {
        struct symbols_answer head;
        char text[SYMBOLS_ANSWER_MAX - sizeof(struct symbols_answer)];
    } packet;
    char *at = packet.text;
    memset(&packet.head, 0, sizeof packet.head);
    packet.head.what = SYMBOLS_ANSWER;
    packet.head.n = (uint32_t)n;
    packet.head.role = (uint32_t)role;
    for (size_t i = 0; i < n; i++) {
        packet.head.list[i].line = list[i].line;
        packet.head.list[i].func = serve_append(&at, list[i].func, SYMBOLS_PLAIN_MAX);
        packet.head.list[i].file = serve_append(&at, list[i].file, SYMBOLS_PATH_MAX);
    }
    serve_send(&packet, sizeof packet.head + (size_t)(at - packet.text));
}

int symbols_serve_want(enum symbols_what what, const void *id, size_t id_len, const char *name,
                       uint32_t number) {
    struct symbols_want want = {.what = what, .number = number};
    struct symbols_question q;
    int fd;
    if (id_len > sizeof want.id || serve_asked >= SYMBOLS_MAX_FILES_ASKED)
        return -1;
    serve_asked++;
    want.id_len = (uint32_t)id_len;
    if (id_len)
        memcpy(want.id, id, id_len);
    if (name && strlen(name) < sizeof want.name)
        memcpy(want.name, name, strlen(name));
    serve_send(&want, sizeof want);
    serve_receive(&q, &fd);
    return fd;
}

/* ---- questions ---- */

static void serve_plain(const char *name) {
    char plain[SYMBOLS_PLAIN_MAX];
    struct symbol one = {.func = plain};
    serve_answer(&one, symbols_name_plain(name, plain) ? 1 : 0, NATIVE_ROLE_PLAIN);
}

static void serve_find(const struct symbols_question *q) {
    struct symbol list[SYMBOLS_MAX_INLINED];
    struct arena text;
    enum native_role role = NATIVE_ROLE_PLAIN;
    struct symbols_file *file = q->module < SYMBOLS_MAX_MODULES ? serve_modules[q->module] : NULL;
    arena_init(&text, SERVE_TEXT);
    size_t n = file ? symbols_module_find(file, q->address, list, &text, &role) : 0;
    serve_answer(list, n, role);
    arena_fini(&text);
}

_Noreturn void symbols_serve(const char *uid, const char *gid) {
    struct symbols_question q;
    int fd;
    /* Under its own name, not that of the link it was started by. */
    prctl(PR_SET_NAME, SYMBOLS_SERVE_NAME, 0, 0, 0);
    if (symbols_name_begin(SYMBOLS_NAME_TIME_US) != 0 ||
        symbols_sandbox_enter(strtoll(uid, NULL, 10), strtoll(gid, NULL, 10)) != 0)
        _exit(1);
    for (;;) {
        serve_receive(&q, &fd);
        symbols_sandbox_set_time(SERVE_CPU_S);
        serve_asked = 0;
        if (q.what == SYMBOLS_OPEN && q.module < SYMBOLS_MAX_MODULES && !serve_modules[q.module]) {
            serve_modules[q.module] = fd >= 0 ? symbols_module_open(fd) : NULL;
            fd = -1;
            serve_answer(NULL, 0, NATIVE_ROLE_PLAIN);
        } else if (q.what == SYMBOLS_FIND) {
            serve_find(&q);
        } else if (q.what == SYMBOLS_PLAIN) {
            serve_plain(q.name);
        } else {
            _exit(1);
        }
        if (fd >= 0)
            close(fd);
        symbols_sandbox_set_time(0);
    }
}
