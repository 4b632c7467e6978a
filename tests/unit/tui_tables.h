/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_tables: answers to the queries of the screens of tensors, modules and loaders, made by hand, always the same.
 */
#ifndef TESTS_TUI_TABLES_H
#define TESTS_TUI_TABLES_H

#include "tui/core/app.h"

/* A result of lines whose values are separated by '|': whole numbers, numbers, text (always with a ' before it); nothing is NULL. `lines` ends with NULL. */
struct result *tables_rows(const char *columns, const char *const *lines);

enum tables_kind { TABLES_NORMAL, TABLES_LATER, TABLES_HUGE, TABLES_NAMES, TABLES_NONE };

struct result *tables_tensors(enum tables_kind kind);
struct result *tables_growth(enum tables_kind kind);
struct verdicts tables_verdicts(enum tables_kind kind);
struct result *tables_modules(enum tables_kind kind);
struct result *tables_steps(enum tables_kind kind);
struct result *tables_step_looks(enum tables_kind kind);
struct result *tables_loaders(enum tables_kind kind);
struct result *tables_gpus(enum tables_kind kind);
struct result *tables_gpu_processes(enum tables_kind kind);
struct result *tables_workers(enum tables_kind kind);
struct result *tables_memory(enum tables_kind kind);
struct result *tables_memory_process(enum tables_kind kind);
struct result *tables_sites(enum tables_kind kind);
struct result *tables_alloc_stacks(enum tables_kind kind);
struct result *tables_holders(enum tables_kind kind);

/* Verdicts of lines "code|level|text|screen|advice|brief|is_state". */
struct verdicts tables_read_verdicts(const char *const *lines);

/* Answer a feed that was asked for, in 12 ms; `rows` are taken over. Fails when it was not. */
void tables_answer(struct app *a, enum app_feed_id id, struct result *rows);
void tables_answer_verdicts(struct app *a, struct verdicts verdicts);
void tables_fail(struct app *a, enum app_feed_id id, const char *why);

/* Answer all that is asked for. */
void tables_answer_all(struct app *a, enum tables_kind kind);

#endif
