/* SPDX-License-Identifier: Apache-2.0 */
/* verb_inject: inject the agent into a process. */
#include "cli/cli.h"

#include <inttypes.h>
#include <signal.h>

#include "base/address.h"
#include "base/json.h"
#include "client/session/call.h"
#include "client/export/document.h"
#include "client/target/target.h"
#include "client/target/tcp.h"

#define INJECT_PROFILE_HZ "100" /* of each thread */

struct inject_options {
    struct cli_options common; /* first */
    double timeout_s;          /* 0: the injector's own */
    const char *address;       /* to listen at; NULL: none */
    bool listen;               /* at any free address */
    bool profile, crash, exposed;
};

static const struct option_def inject_options[] = {
    {"timeout", 0, OPTION_SECONDS, offsetof(struct inject_options, timeout_s), .arg = "TIME",
     .help = "give up after TIME (5s) and leave the target as it was", .min = 0.01, .max = 600},
    {"address", 'a', OPTION_STRING, offsetof(struct inject_options, address), .arg = "ADDR",
     .help = "also listen for TCP at ADDR, like 'listen ADDR'"},
    {"background", 'b', OPTION_FLAG, offsetof(struct inject_options, listen),
     .help = "also listen for TCP; without -a at a free port of 127.0.0.1"},
    {"exposed", 0, OPTION_FLAG, offsetof(struct inject_options, exposed),
     .help = "allow -a with an address that other machines can reach, like 'listen --exposed'"},
    {"pprof", 'P', OPTION_FLAG, offsetof(struct inject_options, profile),
     .help = "have it keep " INJECT_PROFILE_HZ " samples a second, as 'config sample_rate=" INJECT_PROFILE_HZ
             "' does"},
    {"crash", 'c', OPTION_FLAG, offsetof(struct inject_options, crash),
     .help = "also hold a thread on an uncaught exception, like 'catch'"},
    {.name = NULL},
};

static void inject_put_text(struct strbuf *out, const struct target_address *addr,
                            const struct inject_result *r) {
    pid_t pid = addr->pid;
    if (tcp_is(addr->path)) {
        strbuf_addf(out, "the agent is already loaded, at %s\n", tcp_name(addr->path));
        return;
    }
    if (r->already) {
        strbuf_addf(out, "process %d: the agent is already loaded, at unix:%s\n", (int)pid, r->endpoint);
        return;
    }
    strbuf_addf(out, "process %d: agent %s in %.1f ms, at unix:%s\n", (int)pid,
                r->reused ? "started again" : "injected", (double)r->total_us / 1000.0, r->endpoint);
    if (!r->borrowed_tid) {
        strbuf_addf(out, "by %s: its main thread was asked to load it; no thread was stopped\n", r->strategy);
        return;
    }
    strbuf_addf(out,
                "thread %" PRId64 " was borrowed (%s) and stopped for %.2f ms; no other thread was touched\n",
                r->borrowed_tid, r->moment, (double)r->stopped_us / 1000.0);
}

void cli_defer_signals(void) {
    sigset_t asked;
    sigemptyset(&asked);
    sigaddset(&asked, SIGINT);
    sigaddset(&asked, SIGTERM);
    sigaddset(&asked, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &asked, NULL);
}

static int inject_profile(const struct target_address *addr, struct err *e) {
    const struct wire_config want = {.key = "probing.sample_rate", .value = INJECT_PROFILE_HZ};
    struct call *c = call_open(addr, e);
    int rc = c ? call_configure(c, &want, e) : -1;
    call_close(c);
    return rc;
}

static int inject_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e) {
    const struct inject_options *mine = (const struct inject_options *)(const void *)o;
    struct inject_result result;
    struct wire_listening door = {.address = ""};
    bool listen = mine->listen || mine->address;
    if (mine->address && cli_check_listen(mine->address, mine->exposed, e) != 0)
        return -1;
    if (tcp_is(addr->path)) { /* is an agent there? */
        struct call *c = call_open(addr, e);
        if (!c)
            return -1;
        call_close(c);
    }
    cli_defer_signals();
    if (target_attach(addr, (unsigned)(mine->timeout_s * 1000), &result, e) != 0 ||
        (listen && cli_listen(addr, mine->address, false, &door, e) != 0) ||
        (mine->profile && inject_profile(addr, e) != 0))
        return -1;
    if (!o->json)
        inject_put_text(out, addr, &result);
    if (!o->json && listen)
        cli_put_listening(out, &door);
    if (!o->json && mine->profile)
        strbuf_adds(out, INJECT_PROFILE_HZ " samples a second of each thread are kept\n");
    if (mine->crash && cli_catch(addr, o->json ? NULL : out, e) != 0)
        return -1;
    if (!o->json)
        return 0;
    struct json j;
    json_init(&j, out, 0);
    document_put_injection(&j, addr->pid, &result, listen ? &door : NULL);
    strbuf_addc(out, '\n');
    return 0;
}

const struct cli_verb verb_inject = {
    .name = "inject",
    .aliases = "attach",
    .group = "Agent",
    .help = "load the agent into TARGET (a running agent is kept)",
    .example = "probing 4242 inject",
    .needs_target = true,
    .changes = true,
    .options = inject_options,
    .options_size = sizeof(struct inject_options),
    .exec = inject_exec,
};
