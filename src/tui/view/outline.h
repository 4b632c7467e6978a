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
#include "tui/view/view.h"

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
    bool (*matches)(const void *node,
                    const struct match *m);                /* a group never does; negation is not looked at */
    void (*put_name)(const void *row, struct strbuf *out); /* what is copied of it, without controls */
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
    struct view_def rows; /* of the lines: nodes, by their keys; tagged with what they hold */
    struct view view;
};

/* A key for what is known by a text; `seed` tells kinds of things apart. */
uint64_t outline_key(const char *text, uint64_t seed);

/* Of a zeroed one. Columns may be others later on: o->def is looked at whenever nodes are taken. */
void outline_init(struct outline *o, const struct outline_def *def, bool ascii);
void outline_fini(struct outline *o);

/* Show these nodes from here on: taken over, made by malloc. Parents come before what they hold. */
void outline_take(struct outline *o, struct outline_node *nodes, size_t n);

/* The order, the filter or what is folded changed. */
void outline_order(struct outline *o);

/* The selected node; NULL there is none. */
const struct outline_node *outline_selected(const struct outline *o);

/* Name of a node for its column: indented, with its mark. */
void outline_put_name(const struct outline_node *n, const char *name, char *buf, size_t cap);

/* Folding; false when the action is none of that. What else is done with rows the view does. */
bool outline_act(struct outline *o, enum action action);

/* Open the selected node, or fold it. */
void outline_turn(struct outline *o);

/* As view_mouse, where the outline was drawn; a click on the mark of a node opens or folds it. */
bool outline_mouse(struct outline *o, struct app *app, const struct input_event *e);

/* "12 of 40   FILTER x   sorted by NAME   /y: 3". */
void outline_status(const struct outline *o, const char *things, struct strbuf *out);

#endif
