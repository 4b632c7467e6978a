/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed_python: a program that is no Python, loads libpython at run time and runs a script in it. A job of the functional tests.
 *
 * usage: embed_python LIBPYTHON... SCRIPT
 *
 * Of several libraries only the last is started; the others lie there with a runtime that nobody uses.
 */
#include <dlfcn.h>
#include <stdio.h>

static void *embed_find(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found)
        (void)fprintf(stderr, "embed_python: no %s: %s\n", name, dlerror());
    return found;
}

int main(int argc, char **argv) {
    void *library = NULL;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: embed_python LIBPYTHON... SCRIPT\n");
        return 2;
    }
    for (int i = 1; i < argc - 1; i++) {
        library = dlopen(argv[i], RTLD_NOW | (i == argc - 2 ? RTLD_GLOBAL : RTLD_LOCAL));
        if (!library) {
            (void)fprintf(stderr, "embed_python: %s\n", dlerror());
            return 1;
        }
    }
    void (*start)(int);
    int (*run)(FILE *, const char *);
    *(void **)&start = embed_find(library, "Py_InitializeEx");
    *(void **)&run = embed_find(library, "PyRun_SimpleFile");
    FILE *script = fopen(argv[argc - 1], "r");
    if (!start || !run || !script) {
        (void)fprintf(stderr, "embed_python: cannot run %s\n", argv[argc - 1]);
        return 1;
    }
    start(0);
    int rc = run(script, argv[argc - 1]);
    (void)fclose(script);
    return rc == 0 ? 0 : 1;
}
