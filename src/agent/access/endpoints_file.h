/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoints_file: the endpoints open in this job besides the agent's own listeners, for `probing
 * list`: addresses of debuggers, and whether code may run. They are in a file of mode 0600
 * beside the agent's socket (base/endpoint.h), so that they can be read without asking a job
 * that may hang.
 *
 * The file: "eval on" or "eval off", then a line "WHAT ADDRESS" for each open endpoint. The
 * server's thread, which has every signal blocked and its own descriptors, writes it and
 * replaces it as a whole.
 */
#ifndef AGENT_ACCESS_ENDPOINTS_FILE_H
#define AGENT_ACCESS_ENDPOINTS_FILE_H

#include <stdbool.h>

/* Start the file beside `socket`. `nudge` makes the server's thread call endpoints_file_write
 * soon; any thread may call it. The server's thread. */
void endpoints_file_begin(const char *socket, bool eval, void (*nudge)(void *arg), void *arg);

/* Remove the file. The endpoints stay recorded, for the next agent in this process. The server's
 * thread. */
void endpoints_file_end(void);

/* In the child of a fork, where no endpoint is open. Async-signal-safe. */
void endpoints_file_in_child(void);

/* `what` (a word) is open at `address`; "": it is closed. Any thread. */
void endpoints_file_say(const char *what, const char *address);

/* Whether clients may run code. The server's thread. */
void endpoints_file_set_eval(bool on);

/* Write the file if it is out of date. The server's thread. */
void endpoints_file_write(void);

#endif
