/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_helper: the process in which foreign files are read and foreign names demangled.
 * Private to symbols.
 *
 * It is this program, started again in a mode of its own at the first question (symbols_begin),
 * with an empty environment, one socket as its only descriptor, the target's user and few system
 * calls (symbols_sandbox.h). One that dies, takes too long or gives a senseless answer is ended;
 * the next question starts another, three times in all. One thread at a time.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_HELPER_H
#define CLIENT_SYMBOLS_SYMBOLS_HELPER_H

#include <sys/types.h>

#include "client/symbols/symbols_files.h"
#include "client/symbols/symbols_protocol.h"

struct symbols_helper;

/* For process `target`, or for names alone (0). Starts nothing yet. NULL without memory. */
struct symbols_helper *symbols_helper_new(pid_t target);
void symbols_helper_free(struct symbols_helper *h);

/* The number of the running helper, or 0. */
unsigned symbols_helper_running(const struct symbols_helper *h);

/* Start it if needed. Returns its number, which changes with each start (files opened in one are
 * not open in the next), or 0 if there is none, and will be none. */
unsigned symbols_helper_start(struct symbols_helper *h);

/* Ask; `fd` is sent along (-1 none) and remains the caller's. `files`: whose debug information
 * the helper may request; NULL none. Writes to `list`, which has room for SYMBOLS_MAX_INLINED,
 * with strings in the arena. Returns their number, or -1 if there is no answer and the helper is
 * gone. */
int symbols_helper_ask(struct symbols_helper *h, const struct symbols_question *q, int fd,
                       struct symbols_files *files, struct arena *text, struct symbol *list,
                       enum native_role *role);

/* Ask the other end of `fd`, a SOCK_SEQPACKET, from here on, for tests. Takes the descriptor. */
void symbols_helper_adopt(struct symbols_helper *h, int fd);

/* News of its state, a line; otherwise NULL. */
const char *symbols_helper_take_note(struct symbols_helper *h);

/* See symbols_begin. */
void symbols_helper_begin(int argc, char **argv);

#endif
