/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main: `probing-relay`, which is `probing relay --stdio` as one static file with the agent inside: for
 * hosts on which nothing of ours is installed, and not even a C library of the right age.
 */
#include <fcntl.h>
#ifdef __GLIBC__
#include <nss.h>
#endif
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "commit.h"
#include "relay/relay.h"
#include "version.h"

/* PROBING_AGENT_FILE: libprobing.so of this build (mk/build.mk). */
__asm__(".section .rodata\n"
        ".balign 16\n"
        "main_agent:\n"
        ".incbin \"" PROBING_AGENT_FILE "\"\n"
        "main_agent_end:\n"
        ".previous\n");
extern const uint8_t main_agent[], main_agent_end[];

/* Put the agent into a file in memory, as whoever injects reads it from a file: children, too, which
 * close what they do not need. 0, or -1. */
static int main_unpack_agent(void) {
    char path[64];
    size_t size = (size_t)(main_agent_end - main_agent);
    int fd = memfd_create("libprobing.so", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    for (size_t at = 0; at < size;) {
        ssize_t n = write(fd, main_agent + at, size - at);
        if (n <= 0)
            return -1;
        at += (size_t)n;
    }
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    return setenv("PROBING_AGENT", path, 0);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("probing-relay " PROBING_VERSION "\ncommit " PROBING_COMMIT "\n");
        return 0;
    }
    if (argc != 2 || strcmp(argv[1], "--stdio") != 0 || isatty(STDIN_FILENO)) {
        fprintf(stderr, "probing-relay: it is started by probing itself, on the hosts of a job. Try: "
                        "probing cluster ranks job:NAME --hosts HOST,...\n");
        return ERR_USAGE;
    }
#ifdef __GLIBC__
    /* Other sources of names are libraries of this host's, which do not fit a static program. */
    __nss_configure_lookup("passwd", "files");
#endif
    signal(SIGPIPE, SIG_IGN);
    if (main_unpack_agent() != 0)
        fprintf(stderr, "probing-relay: the agent cannot be unpacked: no memory for a file\n");
    if (relay_serve(STDIN_FILENO, STDOUT_FILENO) == 0)
        return 0;
    fprintf(stderr, "probing-relay: the client sent what is not valid, or is gone\n");
    return ERR_FAILED;
}
