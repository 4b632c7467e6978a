/* SPDX-License-Identifier: Apache-2.0 */
/* entry: see entry.h. Loading the library has no effect; only calls have. */
#include "agent/entry.h"

#include <stdio.h>

#include "agent/access/endpoints_file.h"
#include "agent/debug/fatal.h"
#include "agent/fds.h"
#include "agent/fork.h"
#include "agent/life.h"
#include "agent/python/gil_usage.h"
#include "agent/python/thread_spawner.h"
#include "agent/sampler/sampler.h"
#include "agent/server/server.h"
#include "agent/torch/hooks.h"
#include "agent/torch/probes.h"
#include "version.h"

const char probing_version[] = PROBING_VERSION;

static const struct server_parts entry_parts = {.start = sampler_start,
                                                .stop = sampler_stop,
                                                .leave = probes_leave,
                                                .stay = probes_stay,
                                                .fill = hooks_fill};

static int entry_main(struct err *e) {
    gil_usage_clear();
    thread_spawner_begin();
    fds_make_private();
    struct server *server = server_new(&entry_parts, e);
    if (server && life_announce(server_endpoint(server)))
        server_run(server);
    endpoints_file_end();
    life_set_ending();
    fatal_disarm();
    server_free(server);
    thread_spawner_end();
    return server ? 0 : -1;
}

int entry_start(struct agent_start *args, bool invited) {
    static const struct life_run run = {
        .main = entry_main, .on_guest = server_poke, .in_child = fork_in_child};
    return life_start(args, invited, &run);
}

int probing_start(struct agent_start *args) {
    if (!args || args->size < sizeof *args)
        return AGENT_FAILED;
    args->error[0] = args->endpoint[0] = '\0';
    if (args->abi_version != AGENT_ABI_VERSION) {
        snprintf(
            args->error, sizeof args->error,
            "agent %s speaks version %u of the injector's interface, the injector version %u: use the same "
            "release of both",
            probing_version, AGENT_ABI_VERSION, args->abi_version);
        return AGENT_FAILED;
    }
    return entry_start(args, true);
}
