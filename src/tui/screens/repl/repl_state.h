/* SPDX-License-Identifier: Apache-2.0 */
/* repl_state: what the files of the Repl screen share: what was said above, what is typed below. */
#ifndef TUI_SCREENS_REPL_REPL_STATE_H
#define TUI_SCREENS_REPL_REPL_STATE_H

#include "tui/core/app.h"
#include "tui/view/typing.h"
#include "tui/view/pager.h"

#define REPL_AHEAD 512
#define REPL_INDENT 4

/* Something that was pressed while code ran, behind an Enter. */
struct repl_ahead {
    enum action action; /* ACTION_NONE: the key types */
    uint32_t key;
};

struct repl_state {
    struct typing typing;
    bool in_output;       /* it has the keys */
    struct pager pager;   /* what was said */
    bool follows;         /* its end is shown */
    unsigned logged;      /* of the app, that the pager has */
    unsigned answers;     /* of the app, that were looked at */
    struct rect out_area; /* as last drawn */

    struct strbuf names; /* as they came, a line each; NULs instead of the line ends, and before a help */
    struct typing_choice *choices; /* those of them that fit what is typed, owned */
    size_t n_names;                /* there are */
    size_t from;                   /* byte of the text where the word begins */
    size_t code_from;              /* and where the code does that the job was asked about */
    bool any_case;                 /* they fit whatever the case: words of SQL */
    pid_t tables_of;               /* the job whose tables were asked for, to complete with */
    struct repl_ahead ahead[REPL_AHEAD];
    int n_ahead;
};

/* repl_complete.c: complete what is typed, or indent; names have come; the text has changed; what to do in the list. */
void repl_tab(struct repl_state *s, struct app *app);
void repl_take_names(struct repl_state *s, struct app *app);
void repl_edited(struct repl_state *s, struct app *app);
bool repl_act_choices(struct repl_state *s, enum action action);
void repl_close_completion(struct repl_state *s);

/* repl_edit.c: an action of the editor; false when it is none. A key that types. What was answered. */
bool repl_act_edit(struct repl_state *s, struct app *app, enum action action);
bool repl_key(struct repl_state *s, struct app *app, uint32_t key);
void repl_take_answer(struct repl_state *s, struct app *app);

/* repl_draw.c */
void repl_draw(void *state, struct app *app, struct grid *g, struct rect area);
void repl_status(const void *state, const struct app *app, struct strbuf *out);

/* Have the pager show what was said since. */
void repl_follow(struct repl_state *s, const struct app *app);

#endif
