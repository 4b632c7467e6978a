/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way in through an interpreter's own door, with a child in place of the interpreter: what it is given, what is taken back,
 * what is left. Its "thread state" lies in memory that is shared with the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "inject/remote_exec.h"

#define NOBODY 65534
#define AGENT "the agent's bytes"
#define LONG_NS (20 * CLOCK_NS_PER_S)
#define SHORT_NS (200 * CLOCK_NS_PER_MS)

enum behaviour {
    NEVER_LOOKS,     /* it sees the request, and does not come to a safe point */
    TAKES_AND_HALTS, /* takes it, and runs nothing */
    SAYS,            /* runs a script that says something */
    ENDS,
};

/* What the child and the test share. */
struct stage {
    int32_t pending;
    char path[512];
    uint8_t breaker;
    char seen[512]; /* the path, as it was */
    char script[REMOTE_EXEC_FILES_SCRIPT_MAX];
    char agent[64];
    struct stat script_stat, folder_stat, agent_stat;
    volatile int begun; /* as the user it shall be */
    volatile int asked; /* the request was seen */
    const char *says;
    const char *refusal; /* of find_door */
    enum behaviour behaviour;
};

static struct stage *stage;

static void slurp(const char *path, char *buf, size_t cap) {
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, buf, cap - 1) : -1;
    buf[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        (void)close(fd);
}

/* Keep what can be seen of the files by this user. */
static void look_at_files(void) {
    char path[600];
    memcpy(stage->seen, stage->path, sizeof stage->seen);
    slurp(stage->path, stage->script, sizeof stage->script);
    (void)stat(stage->path, &stage->script_stat);
    (void)snprintf(path, sizeof path, "%.500s", stage->path);
    *strrchr(path, '/') = '\0';
    (void)stat(path, &stage->folder_stat);
    (void)strcat(path, "/agent");
    (void)stat(path, &stage->agent_stat);
    slurp(path, stage->agent, sizeof stage->agent);
}

static void say(const char *text) {
    int fd = open(stage->path, O_WRONLY | O_APPEND);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        _exit(3);
    (void)close(fd);
}

static void child_main(void) {
    stage->begun = 1;
    while (!__atomic_load_n(&stage->pending, __ATOMIC_ACQUIRE))
        (void)usleep(500);
    look_at_files();
    stage->asked = 1;
    if (stage->behaviour == ENDS)
        _exit(0);
    if (stage->behaviour != NEVER_LOOKS)
        __atomic_store_n(&stage->pending, 0, __ATOMIC_RELEASE);
    if (stage->behaviour == SAYS)
        say(stage->says);
    for (;;)
        (void)pause();
}

static int find_remote_exec(void *arg, const struct mem *mem, struct inject_remote_exec *out, struct err *e) {
    (void)arg, (void)mem;
    if (stage->refusal)
        return err_set(e, ERR_ATTACH, "%s", stage->refusal);
    *out = (struct inject_remote_exec){.path = (uint64_t)(uintptr_t)stage->path,
                                       .path_size = sizeof stage->path,
                                       .pending = (uint64_t)(uintptr_t)&stage->pending,
                                       .breaker = (uint64_t)(uintptr_t)&stage->breaker,
                                       .breaker_set = 0xee};
    return 0;
}

static bool nobody_asks(void) { return false; }
static bool interrupted(void) { return stage->asked; }

static pid_t begin(enum behaviour behaviour, uid_t uid) {
    memset(stage, 0, sizeof *stage);
    stage->behaviour = behaviour;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (uid && (setgid(uid) != 0 || setuid(uid) != 0))
            _exit(2);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user does not keep it */
        child_main();
    }
    for (uint64_t until = clock_mono_ns() + LONG_NS; !stage->begun && clock_mono_ns() < until;)
        (void)usleep(500);
    assert_int_equal(stage->begun, 1);
    return child;
}

static int enter(pid_t child, uint64_t limit_ns, bool (*stop_asked)(void), struct err *e) {
    struct inject_request req = {.pid = child, .find_remote_exec = find_remote_exec};
    struct remote_exec_result out;
    struct mem mem;
    mem_open_image(&mem, child);
    int rc = remote_exec_enter(&req, &mem, (const uint8_t *)AGENT, sizeof AGENT - 1,
                               clock_mono_ns() + limit_ns, stop_asked, &out, e);
    mem_fini(&mem);
    return rc;
}

/* Nothing asks for anything, and the files are gone. */
static void end(pid_t child) {
    char path[512];
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(stage->pending, 0);
    if (!stage->seen[0])
        return;
    memcpy(path, stage->seen, sizeof path);
    assert_int_equal(access(path, F_OK), -1);
    *strrchr(path, '/') = '\0';
    assert_int_equal(access(path, F_OK), -1);
}

static void test_what_is_asked(void **state) {
    struct err e = {0};
    (void)state;
    pid_t child = begin(NEVER_LOOKS, 0);
    assert_int_equal(enter(child, LONG_NS, interrupted, &e), -1);
    assert_int_equal(e.code, ERR_FAILED);
    assert_non_null(strstr(e.text, "interrupted"));
    assert_int_equal(stage->path[0], 0);
    assert_int_equal(stage->breaker, 0xee);
    assert_string_equal(stage->agent, AGENT);
    assert_memory_equal(stage->script, "import _thread, posix\n", 22);
    assert_int_equal(stage->script_stat.st_mode & 07777, 0600);
    assert_int_equal(stage->agent_stat.st_mode & 07777, 0600);
    assert_int_equal(stage->folder_stat.st_mode & 07777, 0700);
    assert_int_equal(stage->script_stat.st_uid, geteuid());
    end(child);
}

static void test_of_another_user(void **state) {
    struct err e = {0};
    (void)state;
    if (geteuid() != 0) {
        print_message("needs root: a process of another user\n");
        skip();
    }
    pid_t child = begin(NEVER_LOOKS, NOBODY);
    assert_int_equal(enter(child, LONG_NS, interrupted, &e), -1);
    assert_string_equal(stage->agent, AGENT); /* it may read them */
    assert_int_equal(stage->script_stat.st_uid, NOBODY);
    assert_int_equal(stage->script_stat.st_gid, NOBODY);
    assert_int_equal(stage->folder_stat.st_uid, NOBODY);
    assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
    end(child);
    FILE *ours = tmpfile(); /* and we are ourselves again */
    struct stat st;
    assert_non_null(ours);
    assert_int_equal(fstat(fileno(ours), &st), 0);
    assert_int_equal(st.st_uid, 0);
    (void)fclose(ours);
}

static void test_taken_and_not_run(void **state) {
    struct err e = {0};
    (void)state;
    pid_t child = begin(TAKES_AND_HALTS, 0);
    assert_int_equal(enter(child, SHORT_NS, nobody_asks, &e), -1);
    assert_non_null(strstr(e.text, "accepted the request but did not act on it"));
    end(child);
}

static void test_what_the_script_says(void **state) {
    static const struct {
        const char *says, *told;
    } cases[] = {
        {"#[Errno 1] Operation\033 not permitted\n", "it could not load the agent: [Errno 1] Operation"},
        {"#loaded", "what it has loaded is not our agent"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err e = {0};
        pid_t child = begin(SAYS, 0);
        stage->says = cases[i].says;
        assert_int_equal(enter(child, LONG_NS, nobody_asks, &e), -1);
        assert_non_null(strstr(e.text, cases[i].told));
        assert_null(strchr(e.text, '\n'));
        assert_null(strchr(e.text, '\033'));
        end(child);
    }
}

static void test_no_safe_point(void **state) {
    struct err e = {0};
    (void)state;
    pid_t child = begin(NEVER_LOOKS, 0);
    assert_int_equal(enter(child, SHORT_NS, nobody_asks, &e), -1);
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "its main thread reached no safe point within"));
    assert_int_equal(stage->path[0], 0);
    end(child);
}

static void test_it_ends(void **state) {
    struct err e = {0};
    (void)state;
    pid_t child = begin(ENDS, 0);
    assert_int_equal(enter(child, LONG_NS, nobody_asks, &e), -1);
    assert_int_equal(e.code, ERR_LOST);
    stage->pending = 0; /* of nobody any more */
    end(child);
}

static void test_refused(void **state) {
    struct err e = {0};
    (void)state;
    pid_t child = begin(NEVER_LOOKS, 0);
    stage->refusal = "its Python says no";
    assert_int_equal(enter(child, LONG_NS, nobody_asks, &e), -1);
    assert_string_equal(e.text, "its Python says no");
    assert_int_equal(stage->breaker, 0);
    assert_int_equal(stage->path[0], 0);
    end(child);
}

static void test_the_script(void **state) {
    char buf[REMOTE_EXEC_FILES_SCRIPT_MAX], small[100], name[2000];
    (void)state;
    ssize_t n = remote_exec_files_compose(buf, sizeof buf, "/tmp/probing-start-1", NULL);
    assert_true(n > 0 && (size_t)n == strlen(buf) && !strchr(buf, '%'));
    assert_non_null(strstr(buf, "folder = '/tmp/probing-start-1'\n"));
    assert_non_null(strstr(buf, "'loaded': ''"));
    /* A name can break out of nothing. */
    assert_true(remote_exec_files_compose(buf, sizeof buf, "/tmp/x", "/a'\\\n/libprobing.so") > 0);
    assert_non_null(strstr(buf, "'loaded': '2f61275c0a2f6c696270726f62696e672e736f'"));
    assert_int_equal(remote_exec_files_compose(small, sizeof small, "/tmp/x", NULL), -1);
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(remote_exec_files_compose(buf, sizeof buf, "/tmp/x", name), -1);
}

/* One that was taken at the last moment does nothing. */
static void test_a_script_that_comes_too_late(void **state) {
    struct remote_exec_files f;
    struct err e = {0};
    struct stat st;
    (void)state;
    assert_int_equal(remote_exec_files_make(&f, getpid(), (const uint8_t *)AGENT, sizeof AGENT - 1, NULL, &e),
                     0);
    assert_int_equal(stat(f.path, &st), 0);
    assert_int_equal((size_t)st.st_size, f.script_len);
    remote_exec_files_disarm(&f);
    assert_int_equal(stat(f.path, &st), 0);
    assert_int_equal(st.st_size, 0);
    char path[sizeof f.path];
    memcpy(path, f.path, sizeof path);
    remote_exec_files_remove(&f);
    assert_int_equal(access(path, F_OK), -1);
}

static int set_up(void **state) {
    (void)state;
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return stage == MAP_FAILED ? -1 : 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_script),        cmocka_unit_test(test_a_script_that_comes_too_late),
        cmocka_unit_test(test_what_is_asked),     cmocka_unit_test(test_of_another_user),
        cmocka_unit_test(test_taken_and_not_run), cmocka_unit_test(test_what_the_script_says),
        cmocka_unit_test(test_no_safe_point),     cmocka_unit_test(test_it_ends),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
