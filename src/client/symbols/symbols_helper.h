/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_helper: the process in which foreign files are read and foreign names demangled. Private to symbols.
 *
 * It is this program, started again in a mode of its own when the first question is asked (symbols_begin), with an empty
 * environment, no descriptor but one socket, the target's user and few system calls (symbols_sandbox.h). One that dies, takes
 * too long or gives an answer without sense is ended; the next question starts another, three times in all. One thread at a time.
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

/* The number of the one that runs, or 0. */
unsigned symbols_helper_running(const struct symbols_helper *h);

/* Have it running. Its number, which changes when another was started (what was opened in one is not open in the next), or 0: there
 * is none, and will be none. */
unsigned symbols_helper_start(struct symbols_helper *h);

/* Ask; `fd` goes along (-1 none) and remains the caller's. `files`: whose debug information may be asked for; NULL none. Into
 * `list`, which has room for SYMBOLS_MAX_INLINED, with strings in the arena. Number, or -1: there is no answer, the helper is gone. */
int symbols_helper_ask(struct symbols_helper *h, const struct symbols_question *q, int fd,
                       struct symbols_files *files, struct arena *text, struct symbol *list,
                       enum native_role *role);

/* Ask whoever is at the other end of `fd`, a SOCK_SEQPACKET, from here on: for tests. The descriptor is taken. */
void symbols_helper_adopt(struct symbols_helper *h, int fd);

/* What became of it, if there is news: a line; else NULL. */
const char *symbols_helper_take_note(struct symbols_helper *h);

/* As symbols_begin. */
void symbols_helper_begin(int argc, char **argv);

#endif
