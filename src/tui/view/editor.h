/* SPDX-License-Identifier: Apache-2.0 */
/*
 * editor: a text of several lines that is typed, with readline's keys: motion by character, word
 * and line, killing and yanking, undo. Coloured as SQL unless it is plain. Pure.
 */
#ifndef TUI_VIEW_EDITOR_H
#define TUI_VIEW_EDITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/keys/action.h"
#include "tui/view/grid.h"

#define EDITOR_MAX ((size_t)64 * 1024)
#define EDITOR_UNDO 64

/* An earlier state of the text. */
struct editor_undo {
    char *text;
    size_t cursor;
};

enum editor_change { EDITOR_NOTHING = 0, EDITOR_TYPED, EDITOR_ERASED, EDITOR_KILLED, EDITOR_OTHER };

struct editor {
    char *text; /* UTF-8, no NUL within; never NULL after editor_init */
    size_t len, cursor;
    char *killed; /* NULL: nothing */
    struct editor_undo past[EDITOR_UNDO];
    int n_past, at_past;     /* at_past < n_past: there is something to redo */
    enum editor_change last; /* the kind of the last key: edits of one kind are undone together */
    int want_col;            /* the column to keep while going up and down; -1: none */
    int top, left;           /* first visible line and column */
    long error_at;           /* byte where an error is marked; -1: none */
    bool plain;              /* not SQL: without colours */
};

/* 0, or -1: out of memory. */
int editor_init(struct editor *e);
void editor_fini(struct editor *e);

/* Another text, with the cursor at its end; can be undone. */
void editor_set(struct editor *e, const char *text);

/* Insert at the cursor, as if typed or pasted; what is too long is left out: then pasting returns false.
 * Controls other than line breaks and tabs become blanks. */
void editor_insert(struct editor *e, const char *text, size_t len);
bool editor_paste(struct editor *e, const char *text);

/* Replace bytes [from, to) by `text`. */
void editor_replace(struct editor *e, size_t from, size_t to, const char *text);

/* A key that types; false: it does not. */
bool editor_key(struct editor *e, uint32_t key);

/* An ACTION_EDIT_...; false: another one, or (up, down) there is no line to go to. */
bool editor_act(struct editor *e, enum action action);

/* Mark an error at a byte; -1 removes the mark. The next change removes it, too. */
void editor_mark_error(struct editor *e, long at);

int editor_lines(const struct editor *e);

/* Line and display column of a byte. */
void editor_place(const struct editor *e, const struct grid *g, size_t at, int *line, int *col);

/* Draw; the cursor's cell goes to *row and *col. */
void editor_draw(struct editor *e, struct grid *g, struct rect area, int *row, int *col);

/* Move the cursor to a click in `area` as last drawn. */
void editor_click(struct editor *e, const struct grid *g, int row, int col);

#endif
