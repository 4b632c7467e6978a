/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent inside this process, which is no Python: started, asked, ejected, started again, through a fork, and refused where
 * it must not listen. The client here is a few lines of its own (RFC 6455 with a mask of zeros).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cmocka.h>

#include "agent/entry.h"
#include "agent/server/listener.h"
#include "base/clock.h"
#include "base/endpoint.h"
#include "base/procfs.h"
#include "wire/wire.h"

#define DEADLINE_NS (10 * CLOCK_NS_PER_S)

/* ---- a client ---- */

static int client_read(int fd, void *buf, size_t len) {
    for (size_t at = 0; at < len;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 10000) <= 0)
            return -1;
        ssize_t n = read(fd, (char *)buf + at, len - at);
        if (n <= 0)
            return -1;
        at += (size_t)n;
    }
    return 0;
}

static int client_dial(const char *path) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    (void)snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static void client_send(int fd, struct strbuf *b) {
    unsigned char head[8] = {0x82, (unsigned char)(0x80 | b->len)};
    assert_true(b->len < 126);
    assert_int_equal(write(fd, head, 6), 6);
    assert_int_equal(write(fd, b->data, b->len), b->len);
    strbuf_fini(b);
}

/* The next message; NULL when the other side has closed. */
static struct wire_message *client_receive(int fd) {
    unsigned char head[2], more[8];
    if (client_read(fd, head, 2) != 0 || (head[0] & 15) != 2)
        return NULL;
    size_t len = head[1] & 127U;
    if (len == 126) {
        assert_int_equal(client_read(fd, more, 2), 0);
        len = (size_t)more[0] << 8 | more[1];
    } else if (len == 127) {
        assert_int_equal(client_read(fd, more, 8), 0);
        len = (size_t)more[5] << 16 | (size_t)more[6] << 8 | more[7];
    }
    char *data = malloc(len + 1);
    assert_non_null(data);
    assert_int_equal(client_read(fd, data, len), 0);
    struct err e = {0};
    struct wire_message *m = wire_parse(data, len, &e);
    if (!m)
        fail_msg("%s", e.text);
    free(data);
    return m;
}

static int client_open(const char *path) {
    static const char request[] =
        "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Protocol: probing.v1\r\n\r\n";
    char answer[2048] = "";
    int fd = client_dial(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, request, sizeof request - 1), sizeof request - 1);
    for (size_t n = 0; n + 1 < sizeof answer && !strstr(answer, "\r\n\r\n"); n++)
        assert_int_equal(client_read(fd, answer + n, 1), 0);
    assert_non_null(strstr(answer, " 101 "));
    struct strbuf b;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_hello(&b, 1, "test"), 0);
    client_send(fd, &b);
    struct model_target target;
    struct err e = {0};
    struct wire_message *m = client_receive(fd);
    assert_non_null(m);
    if (wire_get_target(m, &target, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(target.pid, getpid());
    assert_null(target.python);
    assert_non_null(target.cmdline);
    model_target_fini(&target);
    wire_message_free(m);
    return fd;
}

static struct wire_message *client_call(int fd, enum wire_method method) {
    struct strbuf b;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_request(&b, 2, method), 0);
    client_send(fd, &b);
    struct wire_message *m = client_receive(fd);
    assert_non_null(m);
    assert_int_equal(wire_message_type(m), WIRE_RESPONSE);
    assert_int_equal(wire_message_id(m), 2);
    return m;
}

static void client_eject(int fd) {
    struct wire_message *m = client_call(fd, WIRE_EJECT);
    assert_null(wire_message_error(m, NULL));
    wire_message_free(m);
    m = client_receive(fd);
    assert_non_null(m);
    assert_int_equal(wire_message_notification(m), WIRE_N_BYE);
    wire_message_free(m);
    (void)close(fd);
}

/* ---- this process ---- */

static size_t count_entries(const char *path) {
    size_t n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

/* Wait until `/proc/self/task` and `/proc/self/fd` have as many entries again. */
static void wait_as_before(size_t threads, size_t fds) {
    uint64_t until = clock_mono_ns() + DEADLINE_NS;
    while ((count_entries("/proc/self/task") != threads || count_entries("/proc/self/fd") != fds) &&
           clock_mono_ns() < until)
        (void)poll(NULL, 0, 2);
    assert_int_equal(count_entries("/proc/self/task"), threads);
    assert_int_equal(count_entries("/proc/self/fd"), fds);
}

static int start(struct agent_start *args) {
    *args = (struct agent_start){.size = sizeof *args, .abi_version = AGENT_ABI_VERSION, .fd = -1};
    return probing_start(args);
}

static void start_and_eject(void) {
    struct agent_start args;
    if (start(&args) != AGENT_STARTED)
        fail_msg("%s", args.error);
    client_eject(client_open(args.endpoint));
}

/* ---- tests ---- */

static void check_start_ask_eject(void **state) {
    (void)state;
    struct agent_start args, again;
    struct stat st;
    struct sigaction pipe_before, pipe_after;
    struct err e = {0};
    enum wire_error code = 0;
    assert_int_equal(sigaction(SIGPIPE, NULL, &pipe_before), 0);
    size_t threads = count_entries("/proc/self/task"), fds = count_entries("/proc/self/fd");
    if (start(&args) != AGENT_STARTED)
        fail_msg("%s", args.error);
    char expected[ENDPOINT_PATH_MAX];
    assert_int_equal(endpoint_path(expected, sizeof expected, geteuid(), getpid()), 0);
    assert_string_equal(args.endpoint, expected);
    assert_int_equal(stat(args.endpoint, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(count_entries("/proc/self/task"), threads + 3); /* server, sampler, nursery */
    assert_int_equal(start(&again), AGENT_ALREADY);
    assert_string_equal(again.endpoint, args.endpoint);

    int fd = client_open(args.endpoint);
    struct wire_message *m = client_call(fd, WIRE_THREADS);
    assert_non_null(wire_message_error(m, &code)); /* this is no Python */
    assert_int_equal(code, WIRE_E_UNAVAILABLE);
    wire_message_free(m);
    m = client_call(fd, WIRE_STATUS);
    struct model_status status;
    if (wire_get_status(m, &status, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(status.clients, 1);
    assert_non_null(status.note);
    assert_string_equal(status.endpoint, args.endpoint);
    assert_true(status.rss_bytes > 0 && status.rss_bytes < 8 * 1024 * 1024);
    model_status_fini(&status);
    wire_message_free(m);
    client_eject(fd);
    wait_as_before(threads, fds);
    assert_int_equal(access(args.endpoint, F_OK), -1);
    assert_int_equal(sigaction(SIGPIPE, NULL, &pipe_after), 0);
    assert_true(pipe_before.sa_handler == pipe_after.sa_handler);
}

static void check_again_and_again(void **state) {
    (void)state;
    size_t threads = count_entries("/proc/self/task"), fds = count_entries("/proc/self/fd");
    for (int i = 0; i < 25; i++)
        start_and_eject(); /* the next does not wait for the last to have ended */
    wait_as_before(threads, fds);
}

/* The thread that brings the agent in is joined, its memory unmapped, its file closed. */
static void *bring_in(void *arg) {
    struct agent_start *args = arg;
    args->thread = (uint64_t)pthread_self();
    return (void *)(intptr_t)probing_start(args);
}

static void *map_region(void) {
    void *region = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(region != MAP_FAILED);
    return region;
}

static void check_guest_is_looked_after(void **state) {
    (void)state;
    size_t fds = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    void *region = map_region(), *other = map_region(), *result = NULL;
    unsigned char there[2];
    struct agent_start args = {.size = sizeof args,
                               .abi_version = AGENT_ABI_VERSION,
                               .region = (uint64_t)(uintptr_t)region,
                               .region_size = 8192,
                               .fd = memfd_create("guest", MFD_CLOEXEC)};
    struct agent_start again = args;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, bring_in, &args), 0);
    uint64_t until = clock_mono_ns() + DEADLINE_NS;
    while (mincore(region, 8192, there) == 0 && clock_mono_ns() < until)
        (void)poll(NULL, 0, 2);
    assert_int_equal(mincore(region, 8192, there), -1);
    assert_int_equal(errno, ENOMEM);
    wait_as_before(threads + 3, fds);

    again.region = (uint64_t)(uintptr_t)other; /* one that comes too late keeps what is its own */
    again.fd = memfd_create("guest", MFD_CLOEXEC);
    assert_int_equal(pthread_create(&thread, NULL, bring_in, &again), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal((intptr_t)result, AGENT_ALREADY);
    assert_int_equal(close(again.fd), 0);
    assert_int_equal(munmap(other, 8192), 0);
    client_eject(client_open(again.endpoint));
    wait_as_before(threads, fds);
}

static void check_other_interface_is_refused(void **state) {
    (void)state;
    struct agent_start args = {.size = sizeof args, .abi_version = AGENT_ABI_VERSION + 1, .fd = -1};
    assert_int_equal(probing_start(&args), AGENT_FAILED);
    assert_non_null(strstr(args.error, "same release"));
    args.size = 8;
    assert_int_equal(probing_start(&args), AGENT_FAILED);
    assert_int_equal(probing_start(NULL), AGENT_FAILED);
}

/* A child of a fork has no agent and no descriptor of it, and can have one of its own. */
static void check_fork(void **state) {
    (void)state;
    struct agent_start args;
    size_t fds = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    assert_int_equal(start(&args), AGENT_STARTED);
    int fd = client_open(args.endpoint);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct agent_start own;
        (void)alarm(20);
        bool clean = count_entries("/proc/self/fd") == fds + 1; /* the client's end of the connection */
        int rc = start(&own);
        bool other = strcmp(own.endpoint, args.endpoint) != 0;
        if (rc == AGENT_STARTED)
            client_eject(client_open(own.endpoint));
        _exit(clean && rc == AGENT_STARTED && other ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    wire_message_free(client_call(fd, WIRE_STATUS)); /* the parent's goes on */
    client_eject(fd);
    wait_as_before(threads, fds);
}

/* An older kernel: the descriptors are the job's then, close-on-exec and closed in children. 0 when all went well. */
static int without_close_range(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 436 /* close_range */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    struct agent_start args;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 77;
    size_t threads = count_entries("/proc/self/task"), fds = count_entries("/proc/self/fd");
    if (start(&args) != AGENT_STARTED)
        return 2;
    int fd = client_open(args.endpoint);
    if (count_entries("/proc/self/fd") <= fds + 2)
        return 3; /* they are not where they are expected */
    pid_t child = fork();
    if (child == 0) {
        struct stat st;
        int sockets = 0;
        for (int i = 3; i < 200; i++)
            sockets += i != fd && fstat(i, &st) == 0 && S_ISSOCK(st.st_mode);
        _exit(sockets);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return 4;
    client_eject(fd);
    wait_as_before(threads, fds);
    return 0;
}

static void check_without_close_range(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(30);
        _exit(without_close_range());
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("needs seccomp: a filter cannot be installed here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void check_dead_socket_is_replaced(void **state) {
    (void)state;
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    char dir[ENDPOINT_PATH_MAX], keep[ENDPOINT_PATH_MAX];
    assert_int_equal(endpoint_dir(dir, sizeof dir, geteuid()), 0);
    assert_int_equal(endpoint_path(sa.sun_path, sizeof sa.sun_path, geteuid(), getpid()), 0);
    int fd = -1;
    /* Another agent that leaves removes the folder when it is empty: a file of ours keeps it. */
    (void)snprintf(keep, sizeof keep, "%s.keep", sa.sun_path);
    for (int tries = 0; fd < 0 && tries < 100; tries++) {
        (void)mkdir(dir, 0700);
        fd = open(keep, O_CREAT | O_WRONLY, 0600);
    }
    assert_true(fd >= 0);
    (void)close(fd);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    (void)close(fd);
    start_and_eject();

    fd = open(sa.sun_path, O_CREAT | O_WRONLY, 0600); /* no socket: not ours to remove */
    struct agent_start args;
    (void)close(fd);
    assert_int_equal(start(&args), AGENT_FAILED);
    assert_non_null(strstr(args.error, sa.sun_path));
    assert_int_equal(unlink(sa.sun_path), 0);

    fd = socket(AF_UNIX, SOCK_STREAM, 0); /* somebody listens there */
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(start(&args), AGENT_FAILED);
    assert_non_null(strstr(args.error, "another process"));
    (void)close(fd);
    assert_int_equal(unlink(sa.sun_path), 0);
    assert_int_equal(unlink(keep), 0);
    start_and_eject();
}

/* As a user that nobody is, whose folder can be spoilt. 0 when the listener refused and said `why`; NULL: when it went elsewhere. */
static int spoilt_in_child(void (*spoil)(const char *dir), uid_t owner, const char *why) {
    pid_t child = fork();
    if (child == 0) {
        char dir[ENDPOINT_PATH_MAX];
        struct listener l;
        struct err e = {0};
        const uid_t nobody = 54321;
        if (endpoint_dir(dir, sizeof dir, nobody) != 0)
            _exit(2);
        (void)unlink(dir);
        (void)rmdir(dir);
        spoil(dir);
        if (owner && lchown(dir, owner, (gid_t)-1) != 0)
            _exit(3);
        if (seteuid(nobody) != 0)
            _exit(4);
        int rc = listener_open(&l, &e);
        bool elsewhere = rc == 0 && strcmp(l.dir, dir) != 0;
        if (rc == 0)
            listener_remove(&l);
        (void)seteuid(0);
        (void)unlink(dir);
        (void)rmdir(dir);
        _exit((why ? rc == -1 && strstr(e.text, why) != NULL : elsewhere) ? 0 : 5);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void spoil_mode(const char *dir) {
    (void)mkdir(dir, 0700);
    (void)chmod(dir, 0755);
}

static void spoil_link(const char *dir) { (void)!symlink("/tmp", dir); }

static void spoil_owner(const char *dir) { (void)mkdir(dir, 0700); }

static void spoil_file(const char *dir) { (void)close(open(dir, O_CREAT | O_WRONLY, 0700)); }

static void check_folder_that_is_spoilt(void **state) {
    (void)state;
    if (geteuid() != 0) {
        print_message("needs root: the folder has to belong to others\n");
        skip();
    }
    assert_int_equal(spoilt_in_child(spoil_mode, 54321, "mode 0755"), 0);
    assert_int_equal(spoilt_in_child(spoil_link, 54321, "not a folder"), 0);
    assert_int_equal(spoilt_in_child(spoil_file, 54321, "not a folder"), 0);
    /* Of somebody else: the user cannot take it away. */
    assert_int_equal(spoilt_in_child(spoil_owner, 0, NULL), 0);
    assert_int_equal(spoilt_in_child(spoil_link, 0, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_start_ask_eject),
        cmocka_unit_test(check_again_and_again),
        cmocka_unit_test(check_guest_is_looked_after),
        cmocka_unit_test(check_other_interface_is_refused),
        cmocka_unit_test(check_fork),
        cmocka_unit_test(check_without_close_range),
        cmocka_unit_test(check_dead_socket_is_replaced),
        cmocka_unit_test(check_folder_that_is_spoilt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
