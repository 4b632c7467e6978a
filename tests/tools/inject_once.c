/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject_once: one injection, its result as JSON on stdout. For tests.
 *
 * usage: inject_once [--check] PID AGENT [TIMEOUT_MS]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/inject.h"

static int fail(const struct err *e) {
    (void)fprintf(stderr, "%s\n", e->text);
    return err_exit_status(e);
}

int main(int argc, char **argv) {
    struct err e = {0};
    struct inject_result r;
    bool check = argc > 1 && strcmp(argv[1], "--check") == 0;
    argv += check;
    argc -= check;
    if (argc < (check ? 2 : 3)) {
        (void)fprintf(stderr, "usage: inject_once [--check] PID AGENT [TIMEOUT_MS]\n");
        return 2;
    }
    pid_t pid = (pid_t)atoi(argv[1]);
    if (check)
        return inject_check(pid, &e) == 0 ? 0 : fail(&e);
    struct inject_request req = {.pid = pid, .agent_path = argv[2]};
    if (argc > 3)
        req.timeout_ms = (unsigned)atoi(argv[3]);
    if (inject_process(&req, &r, &e) != 0)
        return fail(&e);
    (void)printf("{\"already\":%s,\"reused\":%s,\"stopped_us\":%" PRIu64 ",\"total_us\":%" PRIu64
                 ",\"borrowed_tid\":%" PRId64 ",\"strategy\":\"%s\",\"moment\":\"%s\",\"endpoint\":\"%s\"}\n",
                 r.already ? "true" : "false", r.reused ? "true" : "false", r.stopped_us, r.total_us,
                 r.borrowed_tid, r.strategy ? r.strategy : "", r.moment, r.endpoint);
    return 0;
}
