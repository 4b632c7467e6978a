/* SPDX-License-Identifier: Apache-2.0 */
/* torture, memory and processes: the allocator, the loader, fork, threads that come and go. See torture.h. */
#include "torture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY_PIECES 64
#define MEMORY_BURST 50
#define MEMORY_SMALL_STACK ((size_t)64 * 1024)

struct memory_piece {
    unsigned char *at;
    size_t size;
    unsigned char fill;
};

/* Places through which the two allocating threads hand each other memory to free. */
static void *memory_exchange[16];

static size_t memory_pick_size(uint64_t *random) {
    static const size_t limits[] = {16, 64, 512, 4096, 70000, 300000};
    size_t limit = limits[torture_random(random) % (sizeof limits / sizeof limits[0])];
    return 1 + torture_random(random) % limit;
}

static bool memory_is_intact(const struct memory_piece *p) {
    return !p->at || (p->at[0] == p->fill && p->at[p->size / 2] == p->fill && p->at[p->size - 1] == p->fill);
}

static void memory_step(int slot, struct memory_piece *p, uint64_t *random) {
    torture_check(slot, memory_is_intact(p), "memory that was allocated has other bytes in it");
    size_t size = memory_pick_size(random);
    void *made = NULL;
    switch (torture_random(random) % 4) {
    case 0:
        made = realloc(p->at, size);
        break;
    case 1:
        free(p->at);
        made = calloc(1, size);
        torture_check(slot, made && !((char *)made)[size - 1], "calloc gave memory that is not zero");
        break;
    case 2: {
        void **place = &memory_exchange[torture_random(random) % 16];
        free(__atomic_exchange_n(place, p->at, __ATOMIC_ACQ_REL));
        made = malloc(size);
        break;
    }
    default:
        free(p->at);
        torture_check(slot, posix_memalign(&made, 256, size) == 0, "posix_memalign failed");
    }
    torture_check(slot, made != NULL, "no memory");
    *p = (struct memory_piece){.at = made, .size = size, .fill = (unsigned char)size};
    if (made)
        memset(made, p->fill, size);
}

void *torture_allocate(void *arg) {
    int slot = (int)(intptr_t)arg;
    uint64_t random = 77 + (uint64_t)slot;
    static __thread struct memory_piece pieces[MEMORY_PIECES];
    for (;;) {
        torture_round(slot);
        for (int i = 0; i < MEMORY_BURST; i++)
            memory_step(slot, &pieces[torture_random(&random) % MEMORY_PIECES], &random);
        torture_nap(slot, 1500);
    }
    return NULL;
}

static int memory_count_image(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)info, (void)size;
    ++*(int *)arg;
    return 0;
}

void *torture_load(void *arg) {
    int slot = (int)(intptr_t)arg;
    for (;;) {
        torture_round(slot);
        void *handle = dlopen(torture_plugin, RTLD_NOW | RTLD_LOCAL);
        int (*answer)(int) = handle ? (int (*)(int))(uintptr_t)dlsym(handle, "plugin_answer") : NULL;
        int images = 0;
        torture_check(slot, answer && answer(0) == 42 && answer(1) == 44, "a loaded library answers wrongly");
        (void)dl_iterate_phdr(memory_count_image, &images);
        torture_check(slot, images > 3, "images are missing");
        torture_check(slot, handle && dlclose(handle) == 0, "dlclose failed");
        torture_nap(slot, 1500);
    }
    return NULL;
}

/* Names in a folder of procfs that lead to something of an agent's. `links`: look where they lead; else only count. */
static int memory_look(const char *path, bool links, int *count) {
    int found = 0;
    DIR *d = opendir(path);
    if (!d)
        return -1;
    for (struct dirent *entry; (entry = readdir(d));) {
        char to[PATH_MAX] = "";
        if (entry->d_name[0] == '.')
            continue;
        ++*count;
        if (links && readlinkat(dirfd(d), entry->d_name, to, sizeof to - 1) > 0)
            found += strstr(to, "probing") != NULL;
    }
    (void)closedir(d);
    return found;
}

int torture_check_child(void) {
    struct sigaction sa;
    int threads = 0, fds = 0;
    void *p = malloc(100000);
    if (!p)
        return 11;
    free(p);
    if (sigaction(SIGURG, NULL, &sa) != 0 || sa.sa_handler != SIG_DFL)
        return 12;
    if (memory_look("/proc/self/task", false, &threads) != 0 || threads != 1)
        return 13;
    /* A memory file that an injector has only just had made, before there is an agent to close it, is closed by exec. */
    if (memory_look("/proc/self/fd", true, &fds) < 0)
        return 14;
    return 0;
}

void *torture_fork(void *arg) {
    int slot = (int)(intptr_t)arg;
    for (;;) {
        torture_round(slot);
        int status = 0;
        if (!torture_begin_child()) {
            torture_nap(slot, 12000);
            continue;
        }
        pid_t child = fork();
        if (child == 0)
            _exit(torture_check_child());
        torture_check(slot, child > 0, "fork failed");
        pid_t got = waitpid(child, &status, 0);
        torture_end_child();
        torture_check(slot, got == child || errno != EINTR, "waitpid was interrupted");
        if (got == child && status != 0) {
            char why[64];
            (void)snprintf(why, sizeof why, "the child of a fork ended with status 0x%x", (unsigned)status);
            torture_fail(slot, why);
        }
        torture_nap(slot, 12000);
    }
    return NULL;
}

static pthread_key_t memory_key;
static uint64_t memory_ended;

static void memory_at_end(void *arg) {
    (void)arg;
    (void)__atomic_add_fetch(&memory_ended, 1, __ATOMIC_RELEASE);
}

static void *memory_live(void *arg) {
    (void)pthread_setspecific(memory_key, arg);
    free(malloc(2000));
    return (void *)((uintptr_t)arg + 1);
}

void *torture_breed(void *arg) {
    int slot = (int)(intptr_t)arg;
    pthread_attr_t attr;
    uint64_t born = 0;
    torture_check(slot,
                  pthread_attr_init(&attr) == 0 &&
                      pthread_attr_setstacksize(&attr, MEMORY_SMALL_STACK) == 0 &&
                      pthread_key_create(&memory_key, memory_at_end) == 0,
                  "no attributes");
    for (;;) {
        torture_round(slot);
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            torture_check(slot, pthread_create(&threads[i], &attr, memory_live, (void *)++born) == 0,
                          "a thread could not be made");
        for (int i = 0; i < 3; i++) {
            void *result = NULL;
            torture_check(slot, pthread_join(threads[i], &result) == 0, "a thread could not be joined");
            torture_check(slot, (uint64_t)(uintptr_t)result == born - 1 + (uint64_t)i,
                          "a thread's result is not its own");
        }
        torture_check(slot, __atomic_load_n(&memory_ended, __ATOMIC_ACQUIRE) == born,
                      "a thread's destructor did not run");
        torture_nap(slot, 3000);
    }
    return NULL;
}
