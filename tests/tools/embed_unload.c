/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed_unload: a program that runs a script in a libpython, ends Python, unloads the library, and does it all again. A job of the
 * functional tests.
 *
 * usage: embed_unload LIBPYTHON ROUNDS FOLDER SCRIPT
 *
 * After round N it makes the file FOLDER/unloaded.N (FOLDER/kept.N when the library is still mapped) and waits for FOLDER/go.N.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *unload_find(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found)
        (void)fprintf(stderr, "embed_unload: no %s: %s\n", name, dlerror());
    return found;
}

/* One life of an interpreter. 0 or -1. */
static int unload_live(const char *path, const char *script) {
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        (void)fprintf(stderr, "embed_unload: %s\n", dlerror());
        return -1;
    }
    void (*start)(int);
    int (*run)(FILE *, const char *), (*end)(void);
    int *no_site = unload_find(library, "Py_NoSiteFlag");
    *(void **)&start = unload_find(library, "Py_InitializeEx");
    *(void **)&run = unload_find(library, "PyRun_SimpleFile");
    *(void **)&end = unload_find(library, "Py_FinalizeEx");
    FILE *file = fopen(script, "r");
    if (!no_site || !start || !run || !end || !file)
        return -1;
    *no_site = 1; /* what it imports might hold the library */
    start(0);
    int rc = run(file, script);
    (void)fclose(file);
    (void)end();
    return dlclose(library) == 0 && rc == 0 ? 0 : -1;
}

static bool unload_is_mapped(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library)
        (void)dlclose(library);
    return library != NULL;
}

static void unload_make(const char *folder, const char *name, int round) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s.%d", folder, name, round);
    FILE *file = fopen(path, "w");
    if (file)
        (void)fclose(file);
}

static void unload_wait(const char *folder, int round) {
    char path[PATH_MAX];
    struct timespec pause = {.tv_nsec = 10000000};
    (void)snprintf(path, sizeof path, "%s/go.%d", folder, round);
    while (access(path, F_OK) != 0)
        (void)nanosleep(&pause, NULL);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        (void)fprintf(stderr, "usage: embed_unload LIBPYTHON ROUNDS FOLDER SCRIPT\n");
        return 2;
    }
    for (int round = 0; round < atoi(argv[2]); round++) {
        char number[16];
        (void)snprintf(number, sizeof number, "%d", round);
        (void)setenv("ROUND", number, 1);
        if (unload_live(argv[1], argv[4]) != 0)
            return 1;
        unload_make(argv[3], unload_is_mapped(argv[1]) ? "kept" : "unloaded", round);
        unload_wait(argv[3], round);
    }
    return 5;
}
