/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask: a command line for others to read: without what looks like a secret.
 *
 * A guess from names and forms, so it hides too much rather than too little, and cannot know
 * everything: the password of a program's own -p stays.
 */
#ifndef BASE_MASK_H
#define BASE_MASK_H

#include "base/strbuf.h"

/* Append `command` (arguments joined by spaces) with "***" in place of the values of names like
 * token, password or api_key (--name VALUE, --name=VALUE, name: VALUE), of users and passwords in
 * URLs, and of words with the form of a key. At most `max` bytes of it, with ".." where it is
 * cut. NULL appends nothing. Not sanitised. */
void mask_put_command(struct strbuf *out, const char *command, size_t max);

#endif
