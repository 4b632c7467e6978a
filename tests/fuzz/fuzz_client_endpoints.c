/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small files beside an agent's socket (PID.door, PID.open) with any bytes in them: whoever may write them may have written anything.
 * What is read of them is bounded, is of the kinds that there are, and is what the file holds; nothing else is opened.
 *
 * The input is both files, one behind the other: its first byte is how many hundredths of the rest the first has.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/endpoint.h"
#include "client/target/endpoints.h"
#include "client/target/tcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64], socket_path[80];

static void check(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void clean_up(void) {
    char path[128];
    const char *const ends[] = {"door", "open"};
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/1.%s", folder, ends[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static void begin(void) {
    (void)snprintf(folder, sizeof folder, "/dev/shm/fuzz-doors-XXXXXX");
    check(mkdtemp(folder) != NULL, "no folder for the files");
    (void)snprintf(socket_path, sizeof socket_path, "%s/1.sock", folder);
    (void)atexit(clean_up);
}

static void put(const char *path, const uint8_t *data, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file cannot be written");
    (void)close(fd);
}

static bool holds(const uint8_t *data, size_t size, const char *text) {
    return memmem(data, size, text, strlen(text)) != NULL;
}

static void check_doors(const uint8_t *data, size_t size) {
    struct endpoints d;
    endpoints_read(&d, 1, socket_path);
    check(d.n >= 1 && d.n <= ENDPOINTS_MAX && d.all[0].kind == ENDPOINTS_UNIX,
          "the socket is not the first of few doors");
    check(d.eval >= -1 && d.eval <= 1, "code is run, or not, or that is not known");
    for (size_t i = 0; i < d.n; i++) {
        const struct endpoints_one *one = &d.all[i];
        check((unsigned)one->kind < ENDPOINTS_KINDS, "a door is of no kind");
        check(memchr(one->address, 0, sizeof one->address) != NULL, "an address has no end");
        check(endpoints_who(one) != NULL, "nobody is said to enter");
        check(i == 0 || holds(data, size, one->address), "an address is not what the file holds");
    }
}

static void check_address(const uint8_t *data, size_t size) {
    char small[8], address[ENDPOINT_PATH_MAX];
    bool looking = false, again = false;
    memset(address, 'x', sizeof address);
    int rc = tcp_find_endpoint(socket_path, address, sizeof address, &looking);
    check((rc == 0) == (tcp_find_endpoint(socket_path, small, sizeof small, &again) == 0),
          "a door is there or not, whatever room there is");
    if (rc != 0)
        return;
    check(memchr(address, 0, sizeof address) != NULL && holds(data, size, address),
          "an address is not what the file holds");
    check(looking == again && strncmp(address, small, strlen(small)) == 0,
          "it is another one where there is little room");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[ENDPOINT_PATH_MAX];
    if (!folder[0])
        begin();
    if (size < 1)
        return 0;
    size_t first = (size - 1) * (data[0] % 101) / 100;
    check(endpoint_tcp_file(path, sizeof path, socket_path) == 0, "no name for a file");
    put(path, data + 1, first);
    check(endpoint_state_file(path, sizeof path, socket_path) == 0, "no name for a file");
    put(path, data + 1 + first, size - 1 - first);
    check_address(data + 1, first);
    check_doors(data + 1, size - 1);
    return 0;
}
