/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lister: finds the Python processes of this machine on a thread of its own, for the picker.
 *
 * Examining every process takes milliseconds, and the kernel may block a reader of /proc of a hung
 * one for any time: the loop waits for neither. One list at a time; a thread that is stuck when the
 * lister is freed is abandoned.
 */
#ifndef TUI_WORKERS_LISTER_H
#define TUI_WORKERS_LISTER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "client/target/target.h"

struct lister;

/* NULL with the error. */
struct lister *lister_new(struct err *e);
void lister_free(struct lister *l);

/* Readable when a list is done; until lister_take. */
int lister_fd(const struct lister *l);

/* Start; does nothing while a list is being made. 0, or -1 with the error. */
int lister_start(struct lister *l, struct err *e);

/* The result: the list is the caller's (target_list_free), `hidden` says what could not be seen
 * ("": nothing). Returns the number, -1 with the error, or -2: nothing is done yet. */
ssize_t lister_take(struct lister *l, struct target_process **out, char *hidden, size_t cap, struct err *e);

#endif
