/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoints_file: what stands open in this job beside the agent's own doors, for `probing list`: addresses of debuggers, and whether code is
 * run. Kept in a file of mode 0600 beside the agent's socket (base/endpoint.h), so that it is read without asking a job that may hang.
 *
 * The file: "eval on" or "eval off", then a line "WHAT ADDRESS" for each that is open. It is written by the server's thread, which has
 * every signal blocked and its own descriptors, and replaced as a whole.
 */
#ifndef AGENT_ACCESS_ENDPOINTS_FILE_H
#define AGENT_ACCESS_ENDPOINTS_FILE_H

#include <stdbool.h>

/* Begin the file beside `socket`. `nudge` has the server's thread call endpoints_file_write soon; it is called by any thread. The server's
 * thread. */
void endpoints_file_begin(const char *socket, bool eval, void (*nudge)(void *arg), void *arg);

/* Take the file away. What is open stays known, for an agent that comes into this process again. The server's thread. */
void endpoints_file_end(void);

/* In the child of a fork, where none of it is open. Async-signal-safe. */
void endpoints_file_in_child(void);

/* `what` (a word) is open at `address`; "": no more. Any thread. */
void endpoints_file_say(const char *what, const char *address);

/* Is code run for clients? The server's thread. */
void endpoints_file_set_eval(bool on);

/* Write the file if it is no longer true. The server's thread. */
void endpoints_file_write(void);

#endif
