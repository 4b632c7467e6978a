/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outline: rows that lie within others: a tree that folds, sorted among siblings, filtered, searched; or the same without the tree.
 *
 * The screen makes nodes, a node for each thing; here they are put in order and drawn. The selection, and what is folded, belong to
 * things (their key), not to rows, and so stay when nodes are made again. Columns and comparisons get nodes. Pure.
 */
#ifndef TUI_VIEW_OUTLINE_H
#define TUI_VIEW_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "tui/core/app.h"
#include "tui/view/table.h"
#include "tui/view/list.h"
#include "tui/view/match.h"
#include "tui/view/tags.h"

#define OUTLINE_INDENT 2 /* columns a level */

struct outline_node {
    const void *row; /* the thing: the screen's */
    int parent;      /* number of an earlier node; -1 none */
    uint64_t key;    /* which thing it is */
    bool is_group;   /* holds others and is none itself: not there without the tree, matches nothing */
    /* made by outline_order */
    int depth;
    bool has_children, is_open;
    bool passes;                  /* it is a thing that is to be shown, whatever it holds */
    bool is_tagged, holds_tagged; /* it, or what holds it, is tagged; something that it holds is */
    bool wanted;                  /* it, or what it holds, is to be shown */
    const char *mark;             /* before its name: open, folded, neither */
};

/* What a screen says of its rows. */
struct outline_def {
    const struct table_column *columns;
    int n_columns;
    bool (*matches)(const void *row, const struct match *m); /* negation is not looked at */
    void (*put_name)(const void *row, struct strbuf *out);   /* what is copied of it, without controls */
};

struct outline {
    const struct outline_def *def;
    struct outline_node *nodes; /* owned */
    size_t n_nodes;
    const struct outline_node **lines; /* those that are shown, from top to bottom */
    size_t n_lines;
    size_t things, wanted; /* nodes that are no groups; of them: that pass the filter */
    bool flat, ascii;
    int open_depth;    /* what is not deeper is open, unless it was folded */
    uint64_t *toggled; /* keys of those that are not as open_depth says; owned */
    size_t n_toggled, cap_toggled;
    struct match filter, search;
    struct tags tags; /* by the nodes' keys: with what they hold */
    struct table_sort sort;
    struct list list;
    bool has_key;
    uint64_t key; /* of the selected thing */
    int scroll;
    int widths[TABLE_MAX_COLUMNS];
    struct rect area; /* as last drawn; the sign of tags stands left of it */
};

/* What a screen's state begins with whose rows are an outline's, and can be tagged. */
struct outline_focus {
    struct outline *outline; /* the one that is shown */
    bool in_pane;            /* what is beside it has the keys */
};
extern const struct screen_rows outline_tagged; /* of such a screen */

/* A key for what is known by a text; `seed` tells kinds of things apart. */
uint64_t outline_key(const char *text, uint64_t seed);

void outline_fini(struct outline *o);

/* Show these nodes from here on: taken over, made by malloc. Parents come before what they hold. */
void outline_take(struct outline *o, struct outline_node *nodes, size_t n);

/* The order, the filter or what is folded changed. */
void outline_order(struct outline *o);

/* The selected node; NULL there is none. */
const struct outline_node *outline_selected(const struct outline *o);

/* Name of a node for its column: indented, with its mark. */
void outline_put_name(const struct outline_node *n, const char *name, char *buf, size_t cap);

/* Head and rows; `empty` stands where rows would be. */
void outline_draw(struct outline *o, struct grid *g, struct rect area, bool focused, const char *empty);

/* Motions, folding, order, search; false when the action is none of them. */
bool outline_act(struct outline *o, struct app *app, enum action action);

/* One step back: search, filter. False when there is none. */
bool outline_back(struct outline *o);

/* Open the selected node, or fold it. */
void outline_turn(struct outline *o);

bool outline_mouse(struct outline *o, const struct input_event *e);
bool outline_typed(struct outline *o, enum action what, const char *text, enum screen_typed phase);

/* "12 of 40   FILTER x   sorted by NAME   /y: 3". */
void outline_status(const struct outline *o, const char *things, struct strbuf *out);

/* Name of a row; and the row as text, a tab between values. */
void outline_put_text(const struct outline *o, const struct outline_node *n, struct strbuf *one,
                      struct strbuf *whole);

#endif
