/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the agent's file. */
#include <stddef.h>
#include <stdint.h>

#include "inject/agentfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char version[AGENTFILE_VERSION_MAX];
    (void)agentfile_version(data, size, version);
    return 0;
}
