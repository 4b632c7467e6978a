/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hosts that are any bytes: names that are safe as an argument and in a shell, within bounds. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/hosts/host_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct host_list l = {.n = 0}, again = {.n = 0};
    struct err e = {0};
    char *text = malloc(size + 1);
    check(text != NULL, "no memory");
    memcpy(text, data, size);
    text[size] = '\0';
    int rc = host_list_expand(&l, text, &e);
    check(rc == 0 || e.text[0], "an error has no text");
    check(l.n <= HOST_LIST_MAX, "there are too many");
    for (size_t i = 0; i < l.n; i++) {
        check(memchr(l.names[i], 0, HOST_NAME_SIZE) && l.names[i][0], "a name has no end, or is empty");
        check(!strpbrk(l.names[i], " \t\n'\"\\$`;&|<>()[]{}*?!#~%") && l.names[i][0] != '-',
              "a name is not safe");
        check(host_list_expand(&again, l.names[i], &e) == 0 && again.n == i + 1,
              "a name is not its own list");
    }
    host_list_fini(&l);
    host_list_fini(&again);
    free(text);
    return 0;
}
