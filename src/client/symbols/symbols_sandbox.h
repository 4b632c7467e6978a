/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_sandbox: the rights that the helper for symbols gives up before it reads anything.
 * Private to it.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_SANDBOX_H
#define CLIENT_SYMBOLS_SYMBOLS_SANDBOX_H

#include <stdint.h>

/* Close all descriptors except the socket; as root become user `uid` and group `gid` (-1:
 * unchanged), without capabilities and ways to new ones; set limits of memory, time and files;
 * and permit only the few system calls that reading needs: no file can be opened, nothing
 * connected, no process made. Features that the kernel lacks are left out. 0, or -1 if the user
 * could not be changed. */
int symbols_sandbox_enter(int64_t uid, int64_t gid);

/* CPU time for the next question; a process that needs more ends (SIGPROF). 0: no question is
 * under way. */
void symbols_sandbox_set_time(int seconds);

#endif
