/* SPDX-License-Identifier: Apache-2.0 */
/* A tunnel to an agent on another host, whose relays are this program: it ends when nobody wants it, and until then
 * it does not wake up. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/fleet/relay_tunnel.h"
#include "tui/host/attach.h"
#include "wire/pipe.h"
#include "wire/wire.h"

#define WAIT_NS (20 * CLOCK_NS_PER_S)
#define IDLE_NS (700 * CLOCK_NS_PER_MS) /* more than three of the former wake-ups */
#define SLOW_S 1

/* ---- the relay, in a child where no test may fail: it would go on with the next one ---- */

static void need(bool holds) {
    if (!holds)
        _exit(2);
}

/* It lets the request through, and from there on is an agent that sends back what it gets. */
static int serve(int in, int out) {
    struct pipe_reader reader;
    struct strbuf message, bytes;
    const void *data;
    size_t len;
    struct err e;
    char read_here[4096];
    need(write(out, PIPE_MAGIC, strlen(PIPE_MAGIC)) > 0);
    pipe_reader_init(&reader, true);
    for (bool asked = false; !asked;) {
        ssize_t n = read(in, read_here, sizeof read_here);
        need(n > 0 && pipe_reader_add(&reader, read_here, (size_t)n) == 0);
        asked = pipe_reader_next(&reader, &data, &len, &e) == 1;
    }
    struct wire_message *m = wire_parse(data, len, &e);
    need(m != NULL);
    strbuf_init(&message, 0);
    strbuf_init(&bytes, 0);
    need(wire_put_ok(&message, wire_message_id(m)) == 0 && pipe_put(&bytes, message.data, message.len) == 0 &&
         write(out, bytes.data, bytes.len) == (ssize_t)bytes.len);
    for (ssize_t n; (n = read(in, read_here, sizeof read_here)) > 0;)
        need(write(out, read_here, (size_t)n) == n);
    return 0;
}

static int run_relay(const char *host) {
    if (strcmp(host, "slow") == 0)
        sleep(SLOW_S);
    return serve(0, 1);
}

/* ---- the tests ---- */

static struct fleet_reach reach;
static char run[64]; /* where the folders of sockets are */

static int open_reach(void **state) {
    const struct fleet_reach_options o = {.hosts = "far,slow", .via = "/proc/self/exe relay {host}"};
    struct err e;
    (void)state;
    snprintf(run, sizeof run, "/tmp/probing-test-XXXXXX");
    return mkdtemp(run) && setenv("XDG_RUNTIME_DIR", run, 1) == 0 &&
                   fleet_reach_init(&reach, &o, serve, &e) == 0
               ? 0
               : -1;
}

static int close_reach(void **state) {
    (void)state;
    fleet_reach_fini(&reach);
    return rmdir(run);
}

static struct relay_tunnel tunnel_to(const char *host) {
    return (struct relay_tunnel){.reach = &reach, .host = host, .pid = 4711, .owner = getpid(), .end_fd = -1};
}

static size_t count_folders(void) {
    DIR *d = opendir(run);
    size_t n = 0;
    assert_non_null(d);
    for (const struct dirent *f; (f = readdir(d));)
        n += f->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Wait for the end of a process, which is a child, and of all the folders. */
static void expect_end(pid_t child) {
    uint64_t until = clock_mono_ns() + WAIT_NS;
    pid_t got = 0;
    while ((got == 0 || count_folders() > 0) && clock_mono_ns() < until) {
        got = got == 0 ? waitpid(child, NULL, WNOHANG) : got;
        nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    }
    assert_int_equal(got, child);
    assert_int_equal(count_folders(), 0);
}

/* What was sent to the agent comes back. */
static int expect_echo(const char *path) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char got[5] = "";
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(write(fd, "word", 4), 4);
    assert_int_equal(recv(fd, got, 4, MSG_WAITALL), 4);
    assert_string_equal(got, "word");
    return fd;
}

/* How often a process has slept so far. */
static long sleeps(pid_t pid) {
    char path[64], line[256];
    long n = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
            n = strtol(line + 24, NULL, 10);
    fclose(f);
    return n;
}

/* Connections come and go, and it sleeps between them. */
static void it_ends_when_nobody_wants_it(void **state) {
    struct relay_tunnel t = tunnel_to("far");
    struct target_address addr;
    struct err e = {0};
    int end[2], one;
    (void)state;
    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    t.end_fd = end[0];
    if (relay_tunnel_open(&t, &addr, &e) != 0)
        fail_msg("%s", e.text);
    close(end[0]);
    for (int i = 0; i < 3; i++)
        close(expect_echo(addr.path));
    one = expect_echo(addr.path);
    /* soon: what served the others ends meanwhile */
    uint64_t until = clock_mono_ns() + WAIT_NS;
    bool is_idle = false;
    while (!is_idle && clock_mono_ns() < until) {
        long before = sleeps(addr.tunnel);
        nanosleep(&(struct timespec){.tv_nsec = (long)IDLE_NS}, NULL);
        is_idle = sleeps(addr.tunnel) == before;
    }
    assert_true(is_idle);
    close(end[1]);
    expect_end(addr.tunnel);
    char byte;
    assert_int_equal(read(one, &byte, 1), 0);
    close(one);
}

/* Without a pipe as well. */
static void it_ends_with_its_owner(void **state) {
    struct relay_tunnel t = tunnel_to("far");
    struct target_address addr;
    struct err e = {0};
    int end[2];
    char byte;
    (void)state;
    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    t.owner = fork();
    if (t.owner == 0) {
        close(end[1]);
        _exit(read(end[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(end[0]);
    if (relay_tunnel_open(&t, &addr, &e) != 0)
        fail_msg("%s", e.text);
    close(expect_echo(addr.path));
    close(end[1]);
    expect_end(addr.tunnel);
    waitpid(t.owner, NULL, 0);
}

static struct attach attach_to(const char *host) {
    const struct relay_tunnel t = tunnel_to(host);
    const struct target_options how = {.readonly = false};
    struct attach a;
    struct err e;
    assert_int_equal(attach_start(&a, "4711", &t, &how, &e), 0);
    return a;
}

/* The screen has it from a helper, which has ended by then. */
static void a_screen_ends_it(void **state) {
    struct attach a = attach_to("far");
    struct target_address addr;
    struct err e = {0};
    int tunnel;
    (void)state;
    if (attach_finish(&a, &addr, &tunnel, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(count_folders(), 1);
    close(expect_echo(addr.path));
    close(tunnel);
    expect_end(addr.tunnel);
}

/* It is there when nobody waits for it any longer. */
static void it_comes_too_late(void **state) {
    struct attach a = attach_to("slow");
    pid_t helper = a.helper;
    uint64_t until = clock_mono_ns() + WAIT_NS;
    (void)state;
    attach_abandon(&a);
    while (count_folders() == 0 && clock_mono_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    expect_end(helper);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "relay") == 0)
        return run_relay(argv[2]);
    /* what a helper leaves is waited for here */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_when_nobody_wants_it),
        cmocka_unit_test(it_ends_with_its_owner),
        cmocka_unit_test(a_screen_ends_it),
        cmocka_unit_test(it_comes_too_late),
    };
    return cmocka_run_group_tests(tests, open_reach, close_reach);
}
