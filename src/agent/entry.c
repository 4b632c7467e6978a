/* SPDX-License-Identifier: Apache-2.0 */
/* entry: see entry.h. Nothing happens when the library is loaded, only when it is called. */
#include "agent/entry.h"

#include <stdio.h>

#include "agent/fork.h"
#include "agent/life.h"
#include "version.h"

const char probing_version[] = PROBING_VERSION;

int probing_start(struct agent_start *args) {
    if (!args || args->size < sizeof *args)
        return AGENT_FAILED;
    args->error[0] = args->endpoint[0] = '\0';
    if (args->abi_version != AGENT_ABI_VERSION) {
        (void)snprintf(
            args->error, sizeof args->error,
            "agent %s speaks version %u of the injector's interface, the injector version %u: use the same "
            "release of both",
            probing_version, AGENT_ABI_VERSION, args->abi_version);
        return AGENT_FAILED;
    }
    return life_start(args, true, fork_in_child);
}
