/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_sandbox: what the helper for symbols gives up before it reads anything. Private to it.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_SANDBOX_H
#define CLIENT_SYMBOLS_SYMBOLS_SANDBOX_H

#include <stdint.h>

/* Close all descriptors but the socket, become user `uid` and group `gid` where we are root (-1: stay who we are), without capabilities
 * and without a way to new ones, within limits of memory, time and files, and from here on with the few system calls that
 * reading needs: no file can be opened, nothing connected, no process made. What a kernel does not have is left out; 0, or -1:
 * the user could not be changed. */
int symbols_sandbox_enter(int64_t uid, int64_t gid);

/* A question may take this much processor time from now on; a process that needs more ends (SIGPROF). 0: no question is asked. */
void symbols_sandbox_set_time(int seconds);

#endif
