/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over files, without a fuzzer: every file named on the command line, and every file in the
 * folders named there. So each input that ever mattered is tried by every test run, with any compiler.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, size_t size) {
    FILE *file = fopen(path, "rb");
    /* Its own allocation of exactly that size: a sanitiser then sees a read past the end. */
    uint8_t *data = malloc(size ? size : 1);
    if (!file || !data || fread(data, 1, size, file) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        free(data);
        if (file)
            fclose(file);
        return -1;
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

static long replay_path(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) {
        fprintf(stderr, "%s: no such file\n", path);
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return replay_file(path, (size_t)st.st_size) == 0 ? 1 : -1;
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    long total = 0;
    for (struct dirent *entry; total >= 0 && (entry = readdir(dir));) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        long files = replay_path(name);
        total = files < 0 ? -1 : total + files;
    }
    closedir(dir);
    return total;
}

int main(int argc, char **argv) {
    long total = 0;
    for (int i = 1; i < argc; i++) {
        long files = replay_path(argv[i]);
        if (files < 0)
            return 1;
        total += files;
    }
    if (total == 0) {
        fprintf(stderr, "nothing to replay\n");
        return 1;
    }
    printf("%ld inputs\n", total);
    return 0;
}
