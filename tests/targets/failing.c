/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing: preloaded into a job, makes calls of one library in it fail, the agent as a rule: it is told by its addresses. What
 * the job itself calls goes through untouched.
 *
 * Directed by a file that is mapped (FAILING_FILE): which call of which kind is the first to fail and how many after it.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum failing_kind { FAILING_MEMORY = 1, FAILING_FILES = 2, FAILING_THREADS = 4 };

struct failing_plan {
    uint64_t from, to;   /* addresses of the library's code */
    uint64_t kinds;      /* that are counted */
    uint64_t first, all; /* the call that fails, from 1; and all after it? */
    uint64_t count;      /* of calls so far */
    uint64_t failed;
};

static struct failing_plan failing_none, *failing = &failing_none;

__attribute__((constructor)) static void failing_begin(void) {
    const char *path = getenv("FAILING_FILE");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
    if (fd < 0)
        return;
    long at = syscall(SYS_mmap, NULL, sizeof *failing, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at > 0)
        failing = (struct failing_plan *)at; /* NOLINT */
    (void)syscall(SYS_close, fd);
}

/* Is the call from `caller` one that fails? */
static bool failing_is(const void *caller, enum failing_kind kind) {
    struct failing_plan *p = failing;
    uint64_t at = (uint64_t)(uintptr_t)caller;
    if (at < p->from || at >= p->to || !(p->kinds & (uint64_t)kind))
        return false;
    uint64_t n = __atomic_add_fetch(&p->count, 1, __ATOMIC_RELAXED);
    if (!p->first || n < p->first || (n > p->first && !p->all))
        return false;
    (void)__atomic_add_fetch(&p->failed, 1, __ATOMIC_RELAXED);
    errno = kind == FAILING_MEMORY ? ENOMEM : kind == FAILING_FILES ? EMFILE : EAGAIN;
    return true;
}

#define FAILING_CALLER __builtin_return_address(0)

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *at, size_t n);

void *malloc(size_t n) { return failing_is(FAILING_CALLER, FAILING_MEMORY) ? NULL : __libc_malloc(n); }

void *calloc(size_t n, size_t size) {
    return failing_is(FAILING_CALLER, FAILING_MEMORY) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *at, size_t n) {
    return failing_is(FAILING_CALLER, FAILING_MEMORY) ? NULL : __libc_realloc(at, n);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
    if (failing_is(FAILING_CALLER, FAILING_MEMORY))
        return MAP_FAILED;
    long got = syscall(SYS_mmap, at, n, prot, flags, fd, offset);
    return (void *)got; /* NOLINT */
}

char *strdup(const char *s) {
    if (failing_is(FAILING_CALLER, FAILING_MEMORY))
        return NULL;
    size_t n = strlen(s) + 1;
    char *copy = __libc_malloc(n);
    return copy ? memcpy(copy, s, n) : NULL;
}

char *strndup(const char *s, size_t most) {
    if (failing_is(FAILING_CALLER, FAILING_MEMORY))
        return NULL;
    size_t n = strnlen(s, most);
    char *copy = __libc_malloc(n + 1);
    if (copy) {
        memcpy(copy, s, n);
        copy[n] = '\0';
    }
    return copy;
}

/* The library's own function of that name, found when it is first needed. */
static void *failing_next(void **kept, const char *name) {
    if (!*kept)
        *kept = dlsym(RTLD_NEXT, name);
    return *kept;
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list args;
        va_start(args, flags);
        mode = (mode_t)va_arg(args, int);
        va_end(args);
    }
    return failing_is(FAILING_CALLER, FAILING_FILES) ? -1
                                                     : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode) {
    static void *next;
    FILE *(*real)(const char *, const char *) = failing_next(&next, "fopen");
    return failing_is(FAILING_CALLER, FAILING_FILES) ? NULL : real(path, mode);
}

DIR *opendir(const char *path) {
    static void *next;
    DIR *(*real)(const char *) = failing_next(&next, "opendir");
    return failing_is(FAILING_CALLER, FAILING_FILES) ? NULL : real(path);
}

DIR *fdopendir(int fd) {
    static void *next;
    DIR *(*real)(int) = failing_next(&next, "fdopendir");
    return failing_is(FAILING_CALLER, FAILING_FILES) ? NULL : real(fd);
}

int mkdir(const char *path, mode_t mode) {
    return failing_is(FAILING_CALLER, FAILING_FILES) ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

int socket(int domain, int type, int protocol) {
    return failing_is(FAILING_CALLER, FAILING_FILES) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int bind(int fd, const struct sockaddr *address, socklen_t n) {
    return failing_is(FAILING_CALLER, FAILING_FILES) ? -1 : (int)syscall(SYS_bind, fd, address, n);
}

int listen(int fd, int backlog) {
    return failing_is(FAILING_CALLER, FAILING_FILES) ? -1 : (int)syscall(SYS_listen, fd, backlog);
}

int accept4(int fd, struct sockaddr *address, socklen_t *n, int flags) {
    static void *next;
    int (*real)(int, struct sockaddr *, socklen_t *, int) = failing_next(&next, "accept4");
    return failing_is(FAILING_CALLER, FAILING_FILES) ? -1 : real(fd, address, n, flags);
}

int eventfd(unsigned int value, int flags) {
    return failing_is(FAILING_CALLER, FAILING_FILES) ? -1 : (int)syscall(SYS_eventfd2, value, flags);
}

int pipe2(int fds[2], int flags) {
    return failing_is(FAILING_CALLER, FAILING_FILES) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg) {
    static void *next;
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        failing_next(&next, "pthread_create");
    return failing_is(FAILING_CALLER, FAILING_THREADS) ? EAGAIN : real(thread, attr, start, arg);
}
