/* SPDX-License-Identifier: Apache-2.0 */
/* A library that the loader is in the middle of: mapped, relocated, or neither. */
#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/torch/loaded.h"
#include "base/procfs.h"

#define TELLS 200 /* see tests/targets/relocating.c */
#define WAITS 201
#define LIBRARY "relocating.so"

static char path[4096];
static struct elf_image image;

static enum loaded_state look(const char *name) {
    struct mem m;
    mem_init_process(&m, getpid());
    enum loaded_state state = loaded_inspect(name, &m, &image);
    mem_fini(&m);
    return state;
}

static void *load(void *arg) {
    (void)arg;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void test_while_it_is_relocated(void **state) {
    int tells[2], waits[2];
    pthread_t thread;
    void *library = NULL;
    char byte;
    (void)state;
    if (access(path, R_OK) != 0)
        fail_msg("%s is not built", path);
    assert_int_equal(pipe(tells) | pipe(waits), 0);
    assert_true(dup2(tells[1], TELLS) == TELLS && dup2(waits[0], WAITS) == WAITS);
    assert_int_equal(look(LIBRARY), LOADED_ABSENT);
    assert_int_equal(pthread_create(&thread, NULL, load, NULL), 0);
    assert_int_equal(read(tells[0], &byte, 1), 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(look(LIBRARY), LOADED_BEGUN);
    assert_int_equal(close(waits[1]), 0); /* now, and whenever it is asked again */
    assert_int_equal(pthread_join(thread, &library), 0);
    assert_non_null(library);
    assert_int_equal(look(LIBRARY), LOADED_RELOCATED);
    assert_true(image.relro_end > image.relro_start && image.relro_start > image.base);
    int (*answer)(void);
    void *symbol = dlsym(library, "relocating_answer");
    memcpy(&answer, &symbol, sizeof answer);
    assert_int_equal(answer(), 2);
    /* What is protected no longer is as if it had never been. */
    long page = procfs_page_size();
    uint64_t first = image.relro_start / (uint64_t)page * (uint64_t)page;
    assert_int_equal(mprotect((void *)(uintptr_t)first, (size_t)page, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(look(LIBRARY), LOADED_BEGUN);
    (void)dlclose(library);
}

static void test_those_that_are_there(void **state) {
    (void)state;
    assert_int_equal(look("libc.so.6"), LOADED_RELOCATED);
    assert_int_equal(look("no_such_library.so"), LOADED_ABSENT);
}

/* A file of that name of which there is more than one, and one that is no library. */
static void test_odd_ones(void **state) {
    char folder[] = "/tmp/probing-loaded-XXXXXX", name[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(name, sizeof name, "%s/libodd.so", folder);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && ftruncate(fd, 8192) == 0);
    void *one = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_int_equal(look("libodd.so"), LOADED_UNREADABLE);
    void *two = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_int_equal(look("libodd.so"), LOADED_SEVERAL);
    (void)munmap(one, 4096);
    (void)munmap(two, 8192);
    (void)close(fd);
    (void)unlink(name);
    (void)rmdir(folder);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_while_it_is_relocated),
        cmocka_unit_test(test_those_that_are_there),
        cmocka_unit_test(test_odd_ones),
    };
    char self[4000];
    (void)argc;
    (void)snprintf(self, sizeof self, "%s", argv[0]);
    (void)snprintf(path, sizeof path, "%s/targets/" LIBRARY, dirname(self));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
