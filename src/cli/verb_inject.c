/* SPDX-License-Identifier: Apache-2.0 */
/* verb_inject: put the agent into a process. */
#include "cli/cli.h"

#include <inttypes.h>
#include <signal.h>

#include "base/json.h"
#include "client/document.h"
#include "client/target.h"

const struct option_def cli_inject_rows[] = {
    {"timeout", 0, OPTION_SECONDS, offsetof(struct cli_inject_options, timeout_s), "TIME",
     "give up after that (5s); the target is as before then", 0.01, 600},
    {.name = NULL},
};

static void inject_put_text(struct strbuf *out, pid_t pid, const struct inject_result *r) {
    if (r->already) {
        (void)strbuf_addf(out, "process %d: the agent is there already, at unix:%s\n", (int)pid, r->endpoint);
        return;
    }
    (void)strbuf_addf(out, "process %d: agent %s in %.1f ms, at unix:%s\n", (int)pid,
                      r->reused ? "started again" : "injected", (double)r->total_us / 1000.0, r->endpoint);
    if (!r->borrowed_tid) {
        (void)strbuf_addf(out, "by %s: its main thread was asked to load it; no thread was stopped\n",
                          r->strategy);
        return;
    }
    (void)strbuf_addf(
        out, "thread %" PRId64 " was borrowed (%s) and stopped for %.2f ms; no other thread was touched\n",
        r->borrowed_tid, r->moment, (double)r->stopped_us / 1000.0);
}

/* Who is asked to end finishes what it has begun in the target, says so, and ends then: the injector looks for these among
 * the pending. */
static void cli_defer_signals(void) {
    sigset_t asked;
    (void)sigemptyset(&asked);
    (void)sigaddset(&asked, SIGINT);
    (void)sigaddset(&asked, SIGTERM);
    (void)sigaddset(&asked, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &asked, NULL);
}

int cli_run_inject(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                   struct err *e) {
    const struct cli_inject_options *mine = (const struct cli_inject_options *)(const void *)o;
    struct inject_result result;
    cli_defer_signals();
    if (target_attach(addr, (unsigned)(mine->timeout_s * 1000), &result, e) != 0)
        return -1;
    if (!o->json) {
        inject_put_text(out, addr->pid, &result);
        return 0;
    }
    struct json j;
    json_init(&j, out, 0);
    document_put_injection(&j, addr->pid, &result);
    (void)strbuf_addc(out, '\n');
    return 0;
}
