/* SPDX-License-Identifier: Apache-2.0 */
/* eject: ends the agent of a process, and checks that it is gone. */
#ifndef CLIENT_SESSION_EJECT_H
#define CLIENT_SESSION_EJECT_H

#include "base/err.h"
#include "client/target/target_address.h"

/* The agent's answer is not enough: its socket and its threads have to be gone. 1 done, 0 there was none,
 * -1 with the error. Not to be called by two threads at a time. */
int eject_agent(struct target_address *addr, struct err *e);

#endif
