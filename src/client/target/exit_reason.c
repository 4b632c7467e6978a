/* SPDX-License-Identifier: Apache-2.0 */
/* exit_reason: see exit_reason.h. */
#include "client/target/exit_reason.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "store/ring/ring_dir.h"

#define EXIT_STATUS "it exited with status "
#define EXIT_REASON_KMSG_RECORD 8192 /* the kernel's own limit is 1 KB of text and its fields */
#define EXIT_REASON_KMSG_MOST 100000
#define EXIT_REASON_NEAR_S 30.0 /* between the last row and the kernel's message */
#define EXIT_REASON_STAT_EXIT 52
#define EXIT_REASON_FATAL_HEAD 4096

/* The wait(2) status that a parent would get, from /proc/PID/stat of a zombie (proc(5), field
 * 52); -1 unknown. */
static int exit_reason_status(pid_t pid) {
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *p = strrchr(text, ')');
    if (!p || p[1] != ' ' || p[2] != 'Z')
        return -1;
    p += 2;
    for (int field = 3; field < EXIT_REASON_STAT_EXIT && p; field++) {
        p = strchr(p, ' ');
        p = p ? p + 1 : NULL;
    }
    /* 0 is also what it shows to a reader without permission. */
    int status = p ? atoi(p) : 0;
    return status > 0 ? status : -1;
}

bool exit_reason_parse_kmsg(const char *record, pid_t pid, double *at_s) {
    char wanted[48];
    uint64_t us;
    snprintf(wanted, sizeof wanted, "Killed process %d ", (int)pid);
    const char *text = strchr(record, ';');
    if (sscanf(record, "%*u,%*u,%" SCNu64, &us) != 1 || !text || !strstr(text, wanted))
        return false;
    *at_s = (double)us / 1e6;
    return true;
}

static double exit_reason_since_boot(void) {
    struct timespec t;
    return clock_gettime(CLOCK_BOOTTIME, &t) == 0 ? (double)t.tv_sec + (double)t.tv_nsec / 1e9 : NAN;
}

/* Whether the kernel's log, if it may be read, says so at about that time. Pids are reused. */
static bool exit_reason_for_memory(pid_t pid, double seen_s) {
    char record[EXIT_REASON_KMSG_RECORD];
    double at, now = exit_reason_since_boot();
    bool found = false;
    struct timespec real;
    int fd = pid > 0 ? open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    clock_gettime(CLOCK_REALTIME, &real);
    for (int i = 0; fd >= 0 && !found && i < EXIT_REASON_KMSG_MOST; i++) {
        ssize_t n = read(fd, record, sizeof record - 1);
        /* records were overwritten */
        if (n < 0 && errno == EPIPE)
            continue;
        if (n <= 0)
            break;
        record[n] = '\0';
        if (exit_reason_parse_kmsg(record, pid, &at))
            found = fabs((double)real.tv_sec - now + at - seen_s) < EXIT_REASON_NEAR_S;
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* The agent's text about a fatal signal: the signal, its thread, and where that was in Python.
 * False if there is none. */
static bool exit_reason_by_signal(const struct rings_place *place, char *buf, size_t cap) {
    char path[RING_DIR_PATH + sizeof RING_DIR_FATAL], text[EXIT_REASON_FATAL_HEAD],
        line[EXIT_REASON_FATAL_HEAD];
    snprintf(path, sizeof path, "%s/%s", place->path, RING_DIR_FATAL);
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        fd = file_open_taken(fd, O_RDONLY, (int64_t)place->owner);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    char *at = strstr(text, "\n" RING_FATAL_AT), *first = strchr(text, '\n');
    size_t skip = strlen("\n" RING_FATAL_AT);
    if (!first)
        return false;
    if (at)
        at[skip + strcspn(at + skip, "\n")] = '\0';
    *first = '\0';
    snprintf(line, sizeof line, "%.300s%s%.300s", text, at ? " at " : "", at ? at + skip : "");
    text_sanitize(buf, cap, line);
    return true;
}

bool exit_reason_is_trouble(const char *line) {
    return strstr(line, "kill") || (strstr(line, EXIT_STATUS) && !strstr(line, EXIT_STATUS "0"));
}

void exit_reason_explain(const struct rings_place *place, pid_t pid, char *buf, size_t cap) {
    int status = pid > 0 ? exit_reason_status(pid) : -1;
    char fatal[232];
    if (place->alive)
        snprintf(buf, cap, "its tables are still being written");
    else if (exit_reason_for_memory(pid, place->modified_at))
        snprintf(buf, cap, "the kernel killed it because memory ran out, according to its log");
    else if ((status < 0 || WIFSIGNALED(status)) && exit_reason_by_signal(place, fatal, sizeof fatal))
        snprintf(buf, cap, "killed by %s", fatal);
    else if (status >= 0 && WIFSIGNALED(status))
        snprintf(buf, cap, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (status >= 0 && WIFEXITED(status))
        snprintf(buf, cap, EXIT_STATUS "%d", WEXITSTATUS(status));
    else
        snprintf(buf, cap, "exit status unknown: it left no record");
}
