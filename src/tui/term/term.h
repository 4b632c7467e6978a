/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term: the terminal. The only part that knows ncurses.
 *
 * ncurses works out what to change; its bytes go to a memory file and from there to the terminal
 * without blocking, one frame at a time, each within a synchronized update. So a terminal that does
 * not read (ctrl-S, a dead ssh) stops only the painting. One terminal at a time, one thread.
 * However the program ends, the terminal is restored (term_guard).
 */
#ifndef TUI_TERM_TERM_H
#define TUI_TERM_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "tui/keys/input.h"
#include "tui/theme/theme.h"
#include "tui/view/grid.h"

struct term;

struct term_config {
    const char *type;     /* NULL: $TERM */
    int in_fd, out_fd;    /* the caller keeps ownership */
    int rows, cols;       /* 0: ask the terminal */
    const char *color;    /* --color; NULL auto */
    const char *no_color; /* $NO_COLOR; may be NULL */
    bool mouse;
    const struct theme *theme; /* copied */
};

/* Take the terminal: alternate screen, keys one by one, no echo. NULL with the error; then nothing
 * has changed. */
struct term *term_open(const struct term_config *config, struct err *e);

/* Restore it. */
void term_close(struct term *t);

void term_size(const struct term *t, int *rows, int *cols);

/* The window's size has changed (SIGWINCH): read it again. */
void term_resized(struct term *t);

/* Show the grid, which has the terminal's size; cursor at row and col, -1: hidden. False: the
 * terminal has not taken the last frame yet, so nothing was done; try again later. */
bool term_paint(struct term *t, const struct grid *g, int cursor_row, int cursor_col);

/* Send what could not be sent earlier. True: nothing is left. */
bool term_flush(struct term *t);

/* The next event, without waiting; false: none. Text of a paste is valid until the next call. */
bool term_read(struct term *t, struct input_event *e);

/* Is the terminal gone? */
bool term_is_gone(const struct term *t);

/* Paint everything again at the next term_paint. */
void term_repaint(struct term *t);

void term_set_mouse(struct term *t, bool on);

/* Another theme and another choice of --color (NULL: auto), from the next term_paint on. */
void term_set_theme(struct term *t, const struct theme *theme, const char *color);

/* Restore the terminal, stop (as ctrl-z does), and take the terminal again when continued. */
void term_suspend(struct term *t);

/* The two halves of that, for another program that has the terminal meanwhile: do not paint or read
 * in between. */
void term_give(struct term *t);
void term_take(struct term *t);

/* Stop as ctrl-z does, leaving the terminal as it is; returns when continued. */
void term_stop(void);

/* Ask the terminal for its background, if it is of a kind that answers or ignores the question
 * (OSC 11; xterm's ctlseqs). The answer is an event of term_read, at any later time or never. */
void term_ask_background(struct term *t);

/* Send a text to the terminal's clipboard (term_clipboard_put). */
void term_copy(struct term *t, const char *text, size_t len);

/* Colours in use. */
enum theme_depth term_depth(const struct term *t);

/* Does the locale say UTF-8? */
bool term_is_utf8(void);

/* Can a terminal of this type (TERM; may be NULL) draw more than ASCII? A font of the Linux console
 * has 256 or 512 characters, and few of ours are among them. */
bool term_draws_unicode(const char *type);

/* ---- the clipboard of the terminal ---- */

/* Text for the clipboard is the escape sequence OSC 52 (xterm's ctlseqs, "Manipulate Selection
 * Data"). Terminals do not answer: whether it was taken is unknown. */
/* Bytes: in base64 less than the 100,000 that terminals take. */
#define TERM_CLIPBOARD_MAX ((size_t)74994)

/* Why a terminal of this type (TERM; NULL: unknown) is known not to support it: "the Linux console
 * has no clipboard"; NULL: it may. `screen`: within GNU screen ($STY). */
const char *term_clipboard_why_not(const char *type, const char *screen);

/* Append the sequence for `len` bytes. 0, or -1: out of memory. */
int term_clipboard_put(struct strbuf *out, const char *text, size_t len);

#endif
