/* SPDX-License-Identifier: Apache-2.0 */
/* main_complete: what Tab offers on the command line of `probing-top`. */
#ifndef TUI_MAIN_COMPLETE_H
#define TUI_MAIN_COMPLETE_H

#include "base/strbuf.h"

/* Append what Tab offers for the last of the words behind the program's name (client/complete.h). */
void main_complete(int n, char *const *words, struct strbuf *out);

#endif
