/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term_clipboard: text for the clipboard of the terminal, as the escape sequence OSC 52 carries it (xterm's ctlseqs, "Manipulate
 * Selection Data"). Terminals give no answer: whether it was taken is not known. Pure.
 */
#ifndef TUI_TERM_TERM_CLIPBOARD_H
#define TUI_TERM_TERM_CLIPBOARD_H

#include <stddef.h>

#include "base/strbuf.h"

#define TERM_CLIPBOARD_MAX ((size_t)74994) /* bytes: in base64 less than the 100,000 that terminals take */

/* Why a terminal of this type (TERM; NULL unknown) is known not to take it: "the Linux console has no clipboard"; NULL: it may.
 * `screen`: within GNU screen ($STY). */
const char *term_clipboard_why_not(const char *type, const char *screen);

/* Append the sequence for `len` bytes. 0, or -1: out of memory. */
int term_clipboard_put(struct strbuf *out, const char *text, size_t len);

#endif
