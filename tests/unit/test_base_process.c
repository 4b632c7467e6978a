/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of processes: /proc files, ELF images and memory, each compared with what the process itself knows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/file.h>
#include <sys/sysmacros.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/elf.h"
#include "base/endpoint.h"
#include "base/mem.h"
#include "base/procfs.h"

static void test_stat_with_hostile_comm(void **state) {
    (void)state;
    struct procfs_stat st;
    assert_int_equal(
        procfs_parse_stat("12 (a) R (b c) S 3 4 5 6 7 8 9 10 11 12 100 50 15 16 20 0 33 0 777 99 1234 18\n",
                          &st),
        0);
    assert_string_equal(st.comm, "a) R (b c");
    assert_int_equal(st.state, 'S');
    assert_int_equal(st.ppid, 3);
    assert_int_equal(st.session, 5);
    assert_int_equal(st.utime_ticks, 100);
    assert_int_equal(st.stime_ticks, 50);
    assert_int_equal(st.threads, 33);
    assert_int_equal(st.start_ticks, 777);
    assert_int_equal(st.rss_pages, 1234);
    assert_int_equal(procfs_parse_stat("12 no parentheses", &st), -1);
    assert_int_equal(procfs_parse_stat("12 (a) R", &st), -1);
}

static void test_status_fields(void **state) {
    (void)state;
    struct procfs_status st;
    assert_int_equal(
        procfs_parse_status(
            "Name:\tx y\nState:\tT (stopped)\nTgid:\t7\nPPid:\t1\nTracerPid:\t55\n"
            "Uid:\t1000\t1001\t1002\t1003\nNSpid:\t7\t3\nVmRSS:\t  2048 kB\nThreads:\t4\nSigPnd:\t00000001\n"
            "ShdPnd:\t2\nSigBlk:\tff\nSigIgn:\t10\nSigCgt:\t20\nSeccomp:\t2\nx86_Thread_features:\tshstk \n",
            &st),
        0);
    assert_string_equal(st.name, "x y");
    assert_int_equal(st.state, 'T');
    assert_int_equal(st.tracer_pid, 55);
    assert_int_equal(st.uid, 1001);
    assert_int_equal(st.ns_pid, 3);
    assert_int_equal(st.rss_bytes, 2048 * 1024);
    assert_int_equal(st.seccomp, 2);
    assert_int_equal(st.sig_blocked, 0xff);
    assert_int_equal(st.sig_ignored, 0x10);
    assert_int_equal(st.sig_caught, 0x20);
    assert_true(st.shadow_stack);
    assert_int_equal(procfs_parse_status("nothing", &st), -1);
}

static void test_map_line(void **state) {
    (void)state;
    struct procfs_map m;
    assert_int_equal(procfs_parse_map("7f00-7f10 r-xp 00001000 fe:01 42   /a dir/lib.so (deleted)\n", &m), 0);
    assert_int_equal(m.start, 0x7f00);
    assert_int_equal(m.offset, 0x1000);
    assert_int_equal(m.inode, 42);
    assert_string_equal(m.path, "/a dir/lib.so (deleted)");
    assert_int_equal(procfs_parse_map("7f00-7f10 rw-p 00000000 00:00 0 \n", &m), 0);
    assert_string_equal(m.path, "");
    assert_int_equal(procfs_parse_map("zz", &m), -1);
}

static void test_lock_line(void **state) {
    dev_t dev = makedev(0xfe, 0x1a);
    bool is_it = false;
    static const char *const others[] = {"12: FLOCK  ADVISORY  READ 4242 fe:1a:131073 0 EOF\n",
                                         "12: -> FLOCK  ADVISORY  WRITE 4242 fe:1a:131073 0 EOF\n",
                                         "12: POSIX  ADVISORY  WRITE 4242 fe:1a:131073 0 EOF\n",
                                         "12: FLOCK  ADVISORY  WRITE 0 fe:1a:131073 0 EOF\n", ""};
    (void)state;
    assert_int_equal(
        procfs_parse_lock("12: FLOCK  ADVISORY  WRITE 4242 fe:1a:131073 0 EOF\n", dev, 131073, &is_it), 4242);
    assert_true(is_it);
    assert_int_equal(
        procfs_parse_lock("12: FLOCK  ADVISORY  WRITE 4242 fe:1a:13107 0 EOF\n", dev, 131073, &is_it), 4242);
    assert_false(is_it);
    assert_int_equal(
        procfs_parse_lock("12: FLOCK  ADVISORY  WRITE 4242 fe:1b:131073 0 EOF\n", dev, 131073, &is_it), 4242);
    assert_false(is_it);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(procfs_parse_lock(others[i], dev, 131073, &is_it), 0);
}

/* A process holds the files that it has locked, and no others. */
static void test_locks(void **state) {
    char path[] = "/tmp/probing-lock-XXXXXX";
    struct stat st;
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    unlink(path);
    assert_int_equal(procfs_has_lock(getpid(), st.st_dev, st.st_ino), 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(procfs_has_lock(getpid(), st.st_dev, st.st_ino), 1);
    assert_int_equal(procfs_has_lock(getppid(), st.st_dev, st.st_ino), 0);
    assert_int_equal(procfs_has_lock(getpid(), st.st_dev, (ino_t)-1), -1); /* nobody else has that one */
    close(fd);
    assert_int_equal(procfs_has_lock(getpid(), st.st_dev, st.st_ino), 0);
}

static void test_syscall_line(void **state) {
    (void)state;
    struct procfs_syscall sc;
    assert_int_equal(procfs_parse_syscall("202 0x7f01 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7f02\n", &sc), 0);
    assert_int_equal(sc.nr, 202);
    assert_int_equal(sc.args[0], 0x7f01);
    assert_int_equal(sc.pc, 0x7f02);
    assert_int_equal(procfs_parse_syscall("running\n", &sc), 1);
    assert_int_equal(procfs_parse_syscall("-1 0x7ffe 0x7f02\n", &sc), 1);
    assert_int_equal(procfs_parse_syscall("202 0x1\n", &sc), -1);
}

static void test_ourselves(void **state) {
    (void)state;
    struct procfs_status st;
    struct procfs_stat stat;
    assert_int_equal(procfs_read_status(0, 0, &st), 0);
    assert_int_equal(st.tgid, getpid());
    assert_int_equal(st.uid, geteuid());
    assert_int_equal(procfs_read_stat(getpid(), 0, &stat), 0);
    assert_int_equal(stat.ppid, getppid());
    double started = procfs_started_at(0);
    assert_true(isfinite(started) && started <= clock_epoch_s() + 1 && started > clock_epoch_s() - 3600);
    pid_t tids[8];
    assert_int_equal(procfs_list_tids(0, tids, 8), 1);
    assert_int_equal(tids[0], getpid());
    errno = 0;
    assert_int_equal(procfs_read_status(0x3fffffff, 0, &st), -1);
    assert_int_equal(errno, ENOENT);
    struct strbuf cmd;
    strbuf_init(&cmd, 4096);
    assert_int_equal(procfs_read_cmdline(0, &cmd), 0);
    assert_non_null(strstr(strbuf_str(&cmd), "test_base_process"));
    strbuf_fini(&cmd);
}

/* A thread parked in a system call whose arguments are known. */
static void *wait_on_pipe(void *arg) {
    int *fds = arg;
    char c;
    fds[2] = (int)syscall(SYS_gettid);
    return read(fds[0], &c, 1) == 1 ? arg : NULL;
}

static void test_syscall_of_a_sleeping_thread(void **state) {
    (void)state;
    int fds[3] = {-1, -1, 0};
    pthread_t t;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pthread_create(&t, NULL, wait_on_pipe, fds), 0);
    struct procfs_syscall sc = {.nr = -1};
    uint64_t deadline = clock_mono_ns() + 5 * CLOCK_NS_PER_S;
    while (clock_mono_ns() < deadline) {
        int tid = __atomic_load_n(&fds[2], __ATOMIC_ACQUIRE);
        if (tid && procfs_read_syscall(0, tid, &sc) == 0 && sc.nr == SYS_read)
            break;
    }
    assert_int_equal(sc.nr, SYS_read);
    assert_int_equal(sc.args[0], fds[0]);
    assert_true(clock_thread_cpu_ns(fds[2]) > 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    void *result = NULL;
    assert_int_equal(pthread_join(t, &result), 0);
    assert_ptr_equal(result, fds);
    /* pthread_join returns a little before the kernel has taken the thread off its list. */
    while (clock_thread_cpu_ns(fds[2]) != 0 && clock_mono_ns() < deadline) {
    }
    assert_int_equal(clock_thread_cpu_ns(fds[2]), 0);
    close(fds[0]);
    close(fds[1]);
}

static int compare_image(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    struct elf_image img;
    struct mem mem;
    mem_init_process(&mem, getpid());
    if (!strstr(info->dlpi_name, "libc.so"))
        return 0;
    assert_int_equal(elf_open_memory(&img, &mem, info->dlpi_addr), 0);
    static const char *const names[] = {"pthread_create", "dlopen", "malloc", "getpid"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t addr = 0;
        void *handle = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
        assert_non_null(handle);
        assert_int_equal(elf_find_symbol(&img, names[i], &addr, NULL), 0);
        assert_int_equal(addr, (uint64_t)(uintptr_t)dlsym(handle, names[i]));
        assert_true(addr >= img.text_start && addr < img.text_end);
        dlclose(handle);
    }
    uint64_t none;
    assert_int_equal(elf_find_symbol(&img, "no_such_symbol_anywhere", &none, NULL), -1);
    assert_true(elf_needs(&img, "ld-linux-x86-64.so.2"));
    assert_false(elf_needs(&img, "ld-linux") || elf_needs(&img, "libm.so.6") || elf_needs(&img, ""));
    *(int *)arg += 1;
    return 0;
}

static void test_elf_symbols_equal_dlsym(void **state) {
    (void)state;
    int seen = 0;
    dl_iterate_phdr(compare_image, &seen);
#if !defined(__SANITIZE_ADDRESS__)
    assert_int_equal(seen, 1);
#endif
}

static void test_elf_sections_of_a_file(void **state) {
    (void)state;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    struct elf_section s;
    assert_int_equal(elf_find_section(fd, ".text", &s), 0);
    assert_true(s.size > 0);
    assert_int_equal(elf_find_section(fd, ".nowhere", &s), -1);
    uint64_t value;
    assert_int_equal(elf_find_file_symbol(fd, "main", &value), 0);
    assert_true(value >= s.addr);
    close(fd);
    fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    assert_int_equal(elf_find_section(fd, ".text", &s), -1);
    close(fd);
}

static void test_mem_never_faults(void **state) {
    (void)state;
    struct mem m;
    uint64_t v = 0, secret = 0x1122334455667788ULL;
    char text[8];
    mem_init_process(&m, getpid());
    assert_int_equal(mem_read_u64(&m, (uint64_t)(uintptr_t)&secret, &v), 0);
    assert_int_equal(v, secret);
    assert_int_equal(mem_read_u64(&m, 8, &v), -1);
    assert_int_equal(mem_read_u64(&m, UINT64_MAX - 3, &v), -1);
    assert_int_equal(v, secret);
    mem_init_buffer(&m, "abcdefgh", 8, 0x1000);
    assert_int_equal(mem_read(&m, 0x1004, text, 4), 0);
    assert_int_equal(mem_read(&m, 0x1005, text, 4), -1);
    assert_int_equal(mem_read(&m, 0xfff, text, 1), -1);
    assert_int_equal(mem_read_cstr(&m, (uint64_t)0x1000, text, 5), 4);
    assert_string_equal(text, "abcd");
}

static void test_endpoint_probe_tells_live_from_dead(void **state) {
    (void)state;
    char path[] = "/tmp/probing-test-XXXXXX";
    assert_int_equal(endpoint_probe("/tmp/there/is/nothing/here.sock"), 0);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    memcpy(sa.sun_path, path, strlen(path));
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(listen(s, 1), 0);
    assert_int_equal(endpoint_probe(path), 1);
    close(s);
    assert_int_equal(endpoint_probe(path), 0);
    unlink(path);
    char outside[ENDPOINT_PATH_MAX];
    struct err e = {0};
    assert_int_equal(endpoint_path_from_outside(outside, sizeof outside, getpid(), &e), 0);
    assert_non_null(strstr(outside, "/root/tmp/probing-"));
    assert_int_equal(endpoint_path_from_outside(outside, sizeof outside, 0x3fffffff, &e), -1);
    assert_int_equal(e.code, ERR_ATTACH);
}

/* A socket at DIR/NAME at which nobody listens (`live`: somebody does); its descriptor, or -1. */
static int put_socket(const char *dir, const char *name, int live) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    (void)snprintf(sa.sun_path, sizeof sa.sun_path, "%s/%s", dir, name);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&sa, sizeof sa), 0);
    if (live)
        assert_int_equal(listen(s, 1), 0);
    else
        assert_int_equal(close(s), 0);
    return live ? s : -1;
}

static int is_there(const char *dir, const char *name) {
    char path[128];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return lstat(path, &st) == 0;
}

/* Taken away is only what is old, dead, a socket, and named after a process that is not there. */
static void test_dead_sockets_are_swept(void **state) {
    char dir[] = "/tmp/probing-sweep-XXXXXX", ours[32], path[128], link[64];
    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(ours, sizeof ours, "%d.sock", (int)getpid());
    (void)put_socket(dir, "1073741801.sock", 0);
    (void)put_socket(dir, "1073741802.txt", 0);
    (void)put_socket(dir, "x.sock", 0);
    (void)put_socket(dir, ours, 0);
    int live = put_socket(dir, "1073741803.sock", 1);
    (void)put_socket(dir, "1073741801.door", 0); /* files beside it, whatever they are */
    (void)put_socket(dir, "1073741801.open", 0);
    (void)put_socket(dir, "1073741803.open", 0);
    (void)snprintf(path, sizeof path, "%s/1073741804.sock", dir);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    (void)close(file);
    assert_int_equal(endpoint_sweep(dir, 100, 3600), 0); /* too young */
    assert_int_equal(endpoint_sweep(dir, 0, 0), 0);
    (void)snprintf(link, sizeof link, "%s-link", dir);
    assert_int_equal(symlink(dir, link), 0);
    assert_int_equal(endpoint_sweep(link, 100, 0), 0); /* no folder of ours: who knows whose */
    assert_int_equal(unlink(link), 0);
    assert_int_equal(endpoint_sweep("/nonexistent", 100, 0), 0);
    assert_int_equal(endpoint_sweep(dir, 100, 0), 1);
    assert_false(is_there(dir, "1073741801.sock"));
    assert_false(is_there(dir, "1073741801.door"));
    assert_false(is_there(dir, "1073741801.open"));
    const char *const kept[] = {"1073741802.txt",  "x.sock",          ours,
                                "1073741803.sock", "1073741803.open", "1073741804.sock"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        assert_true(is_there(dir, kept[i]));
        (void)snprintf(path, sizeof path, "%s/%s", dir, kept[i]);
        assert_int_equal(unlink(path), 0);
    }
    (void)close(live);
    assert_int_equal(rmdir(dir), 0);
}

#define MOUNT(options)                                                                                       \
    "22 28 0:20 / /sys rw,nosuid - sysfs sysfs rw\n41 39 0:38 / /proc rw,relatime - proc proc " options "\n"

static void test_what_proc_hides(void **state) {
    static const struct {
        const char *text;
        uid_t uid;
        enum procfs_hiding hiding;
    } cases[] = {
        {MOUNT("rw"), 1000, PROCFS_HIDES_NOTHING},
        {MOUNT("rw,hidepid=off"), 1000, PROCFS_HIDES_NOTHING},
        {MOUNT("rw,hidepid=0"), 1000, PROCFS_HIDES_NOTHING},
        {MOUNT("rw,gid=5,hidepid=invisible"), 1000, PROCFS_HIDES_OTHERS},
        {MOUNT("rw,hidepid=2"), 1000, PROCFS_HIDES_OTHERS},
        {MOUNT("rw,hidepid=1"), 1000, PROCFS_HIDES_OTHERS},
        {MOUNT("rw,hidepid=2"), 0, PROCFS_HIDES_NOTHING},
        {MOUNT("rw,hidepid=invisible,gid=77"), 1000, PROCFS_HIDES_NOTHING}, /* a group of this user's */
        {MOUNT("rw,hidepid=ptraceable,gid=77"), 1000, PROCFS_HIDES_OTHERS},
        {MOUNT("rw,xhidepid=2"), 1000, PROCFS_HIDES_NOTHING},
        {MOUNT("rw,hidepid=2") MOUNT("rw"), 1000, PROCFS_HIDES_NOTHING}, /* one over the other */
        {MOUNT("rw") MOUNT("rw,hidepid=2"), 1000, PROCFS_HIDES_OTHERS},
        {"41 39 0:38 / /proc rw - tmpfs proc hidepid=2\n", 0, PROCFS_HIDES_ALL},
        {"41 39 0:38 / /proc/sys rw - proc proc hidepid=2\n", 0, PROCFS_HIDES_ALL},
        {"41 39 0:38 / /proc\n - proc proc rw", 0, PROCFS_HIDES_ALL},
        {"", 1000, PROCFS_HIDES_ALL},
        {"41", 1000, PROCFS_HIDES_ALL},
        {"41 39 0:38 / /proc rw shared:5 master:1 - proc proc rw,hidepid", 1000, PROCFS_HIDES_OTHERS},
    };
    static const gid_t groups[] = {1000, 77};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (procfs_parse_hiding(cases[i].text, cases[i].uid, groups, 2) != cases[i].hiding)
            fail_msg("case %zu: %s", i, cases[i].text);
}

static void test_children_of_a_thread(void **state) {
    (void)state;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    if (procfs_has_children(0, tid) < 0) {
        print_message("needs proc-children: this kernel keeps no list of a thread's children\n");
        skip();
    }
    assert_int_equal(procfs_has_children(0, tid), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(procfs_has_children(0, tid), 1);
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(procfs_has_children(0, tid), 0);
}

static void *outlive(void *arg) {
    while (pause() == -1)
        continue;
    return arg;
}

/* A process whose first thread alone has ended lives; all are gone, it has ended, also while its parent has not asked. */
static void test_a_process_has_ended(void **state) {
    siginfo_t info;
    struct procfs_stat st = {.state = '?'};
    (void)state;
    assert_false(procfs_is_gone(0));
    assert_true(procfs_is_gone(0x7ffffff0));
    pid_t child = fork();
    if (child == 0) {
        pthread_t other;
        if (pthread_create(&other, NULL, outlive, NULL) == 0)
            pthread_exit(NULL);
        _exit(1);
    }
    assert_true(child > 0);
    for (int i = 0; i < 20000 && (procfs_read_stat(child, 0, &st) != 0 || st.state != 'Z'); i++)
        (void)usleep(1000);
    assert_int_equal(st.state, 'Z');
    assert_false(procfs_is_gone(child));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(procfs_is_gone(child));
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(procfs_is_gone(child));
}

static void test_threads_of_the_kernel(void **state) {
    struct procfs_stat st;
    (void)state;
    assert_int_equal(procfs_read_stat(0, 0, &st), 0);
    assert_false(procfs_is_kernel_thread(&st));
    assert_int_equal(
        procfs_parse_stat(
            "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 6 0 0 20 0 1 0 27 0 0 18446744073709551615 0 0\n",
            &st),
        0);
    assert_true(procfs_is_kernel_thread(&st));
}

/* What is added to the one clock makes the other, also when the thread loses its CPU between its looks at them. */
static void test_one_clock_is_made_of_the_other(void **state) {
    (void)state;
    for (int i = 0; i < 2000; i++) {
        double before = clock_epoch_s(), now = (double)clock_mono_ns() / 1e9, after = clock_epoch_s();
        double made = now + clock_mono_to_epoch_s();
        assert_true(made >= before - 1e-3 && made <= after + 1e-3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat_with_hostile_comm),
        cmocka_unit_test(test_status_fields),
        cmocka_unit_test(test_map_line),
        cmocka_unit_test(test_lock_line),
        cmocka_unit_test(test_locks),
        cmocka_unit_test(test_syscall_line),
        cmocka_unit_test(test_ourselves),
        cmocka_unit_test(test_syscall_of_a_sleeping_thread),
        cmocka_unit_test(test_elf_symbols_equal_dlsym),
        cmocka_unit_test(test_elf_sections_of_a_file),
        cmocka_unit_test(test_mem_never_faults),
        cmocka_unit_test(test_endpoint_probe_tells_live_from_dead),
        cmocka_unit_test(test_dead_sockets_are_swept),
        cmocka_unit_test(test_what_proc_hides),
        cmocka_unit_test(test_children_of_a_thread),
        cmocka_unit_test(test_a_process_has_ended),
        cmocka_unit_test(test_threads_of_the_kernel),
        cmocka_unit_test(test_one_clock_is_made_of_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
