/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outline: rows within rows: a tree that folds, sorted among siblings, filtered, searched; or the
 * same without the tree.
 *
 * The screen makes a node for each thing; here they are sorted and drawn. The selection and the
 * folding belong to things (their key), not to rows, so they stay when nodes are made again.
 * Columns and comparisons get nodes. Pure.
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
    const void *row; /* the thing; owned by the screen */
    int parent;      /* number of an earlier node; -1: none */
    uint64_t key;    /* identifies the thing */
    bool is_group;   /* only holds others: left out without the tree, matches nothing */
    /* set by outline_order */
    int depth;
    bool has_children, is_open;
    bool passes;                  /* it matches itself, whatever it holds */
    bool is_tagged, holds_tagged; /* it, or what holds it, is tagged; something that it holds is */
    bool wanted;                  /* it, or what it holds, is shown */
    const char *mark;             /* before its name: open, folded, neither */
};

/* What the rows of a screen are. */
struct outline_def {
    const struct table_column *columns;
    int n_columns;
    /* A group never matches; ignores negation. */
    bool (*matches)(const void *node, const struct match *m);
    /* The text to copy, without controls. */
    void (*put_name)(const void *row, struct strbuf *out);
};

struct outline {
    const struct outline_def *def;
    struct outline_node *nodes; /* owned */
    size_t n_nodes;
    const struct outline_node **lines; /* the visible ones, from top to bottom */
    size_t n_lines;
    size_t things, wanted; /* nodes that are not groups; those of them that match the filter */
    bool flat, ascii;
    int open_depth;    /* what is not deeper is open, unless it was folded */
    uint64_t *toggled; /* keys of those that differ from open_depth; owned */
    size_t n_toggled, cap_toggled;
    struct view_def rows; /* of the lines: nodes, by their keys; tagging includes what they hold */
    struct view view;
};

/* The key of a thing known by a text; `seed` separates kinds of things. */
uint64_t outline_key(const char *text, uint64_t seed);

/* `o` is zeroed. Columns may change later: o->def is read whenever nodes are taken. */
void outline_init(struct outline *o, const struct outline_def *def, bool ascii);
void outline_fini(struct outline *o);

/* Show these nodes from here on: takes ownership (malloc). Parents come before what they hold. */
void outline_take(struct outline *o, struct outline_node *nodes, size_t n);

/* The order, the filter or the folding has changed. */
void outline_order(struct outline *o);

/* The selected node; NULL: none. */
const struct outline_node *outline_selected(const struct outline *o);

/* Name of a node for its column: indented, with its mark. */
void outline_put_name(const struct outline_node *n, const char *name, char *buf, size_t cap);

/* Folding; false: another action. The view does everything else with rows. */
bool outline_act(struct outline *o, enum action action);

/* Open or fold the selected node. */
void outline_turn(struct outline *o);

/* As view_mouse, where the outline was drawn; a click on the mark of a node opens or folds it. */
bool outline_mouse(struct outline *o, struct app *app, const struct input_event *e);

/* "12 of 40   FILTER x   sorted by NAME   /y: 3". */
void outline_status(const struct outline *o, const char *things, struct strbuf *out);

#endif
