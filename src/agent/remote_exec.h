/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_exec: the agent is brought in by the interpreter, which was asked to import it (PEP 768); see src/inject/remote_exec.h.
 *
 * The import runs on a Python thread of the injector's script, with the GIL, and does no more than make a thread; that one
 * starts the agent. No module comes of it: nothing of the interpreter is touched.
 */
#ifndef AGENT_REMOTE_EXEC_H
#define AGENT_REMOTE_EXEC_H

#include "base/agent_abi.h"

/* What became of it, for the injector to read. */
extern struct agent_remote_exec probing_door __attribute__((visibility("default")));

/* What an interpreter calls that imports AGENT_REMOTE_EXEC_MODULE. NULL always, without an exception: the importer is told that there is
 * no module. */
__attribute__((visibility("default"))) void *PyInit__probing(void);

#endif
