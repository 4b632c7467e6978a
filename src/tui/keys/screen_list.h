/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen_list: every screen, a row each.
 *
 * SCREEN(NAME, name) is the screen that a file of screens/ defines as `screen_name`. The row makes
 * its context CONTEXT_NAME, where its keys are read, and the action ACTION_SHOW_NAME, which opens
 * it. CONTEXT(NAME) is another context of the screen above it: a pane with keys of its own. The line
 * of tabs, the help and --list-keys have them in this order.
 */
#ifndef TUI_KEYS_SCREEN_LIST_H
#define TUI_KEYS_SCREEN_LIST_H

/* clang-format off */
#define SCREEN_LIST(SCREEN, CONTEXT)                                      \
    SCREEN(OVERVIEW, overview) /* meters, functions, events */            \
    SCREEN(THREADS, threads)   /* threads and the stack of one */         \
    CONTEXT(STACK)                                                        \
    SCREEN(FLAME, flame)       /* calls as wide as their share of time */ \
    SCREEN(TOP, top)           /* functions by their share of the time */ \
    SCREEN(TIMELINE, timeline) /* what each thread did when */            \
    SCREEN(STEPS, steps)       /* training steps and what they spend */   \
    SCREEN(TENSORS, tensors)   /* all tensors, and which grow */          \
    SCREEN(MODULES, modules)   /* the modules of models, as trees */      \
    SCREEN(LOADER, loader)     /* how the training gets its batches */    \
    SCREEN(SQL, sql)           /* queries; a query is typed */            \
    CONTEXT(SQL_COMPLETE)      /* the same, with a list to choose from */ \
    CONTEXT(SQL_SHEET)         /* its result */                           \
    SCREEN(REPL, repl)         /* code that runs in the job; typed */     \
    CONTEXT(REPL_COMPLETE)     /* with a list to choose from */           \
    CONTEXT(REPL_OUTPUT)       /* its output */                           \
    SCREEN(LOG, log)           /* what happened */                        \
    SCREEN(MEMORY, memory)     /* who allocates, and what holds it */     \
    SCREEN(GPU, gpu)           /* GPUs of the target */                   \
    SCREEN(RANKS, ranks)       /* all ranks of a job */                   \
    SCREEN(STACKS, stacks)     /* their stacks as one tree */             \
    SCREEN(TARGETS, targets)   /* several targets, to switch between */   \
    SCREEN(PICKER, picker)     /* choice of a process */                  \
    SCREEN(JOB_PICKER, job_picker) /* choice of a job in a database */    \
    SCREEN(HELP, help)         /* keys and commands */                    \
    SCREEN(MENU, menu)         /* what can be done with a row */          \
    SCREEN(EXPORT, export)     /* what is shown, to a file */             \
    SCREEN(SETUP, setup)       /* what can be set */                      \
    SCREEN(THEMES, themes)     /* choice of a theme */                    \
    /* a new one stands above this line */
/* clang-format on */

#endif
