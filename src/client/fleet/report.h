/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: what a relay answers, as rows of a few tables; both ends use these.
 *
 * They travel as answers to the method `rows` (wire/wire.h). A reader finds columns by name: what it does
 * not know it passes over, what is missing is unknown. To carry something new, add a row to a list of client/report_fields.h. Texts
 * are made safe for a terminal as they are read.
 *
 *   job     {name}: the job that a target names, and its ranks on that host: one row
 *   ranks   {after}: the ranks, once their round number is above `after`: a row each
 *   stacks  {ids}: the frames of stacks, innermost first, by their ids in hexadecimal digits
 *   clock   {}: the time there
 *   times   {}: steps and collectives that have ended since they were asked for last; the newest at first
 *   states  {counters}: what a verdict is made of (rank_probe.h): a reading of each rank, which is made now;
 *           with `counters` its agent is asked, too
 *   groups  {from}: the counters of that reading: a row for each process group of a rank, after so many rows;
 *           as many as fit
 *   ras     {}: what NCCL's RAS service knows of the ranks by now (ras.h), which is asked there meanwhile: a row for
 *           each of which it knows something
 *   tables  {name, attach, host}: how much is kept in a table of the ranks there
 *   sql     {limit_ms, attach, host}, and a statement as text: its rows, which are in no list below, over the
 *           tables of the ranks there (client/sql/database.h), as many as fit; with `attach` their agents are
 *           loaded before the first; `host` is the name of the host in them
 *   next    {}: the rows after those
 *   attach  {}: the agent into each rank of the job that was asked for: a row each, when all are done
 *   detach  {}: the agent out of each
 *   to      {pid, attach}: a row, and from there on all bytes of the pipe are those of the socket of that
 *           process's agent, which is loaded before with `attach`; refused with WIRE_E_BAD_PARAMS if there is no
 *           such process, or no longer
 */
#ifndef CLIENT_FLEET_REPORT_H
#define CLIENT_FLEET_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "client/engine/engine_schema.h"
#include "client/report_fields.h"
#include "wire/wire.h"

#define REPORT_JOB "job"
#define REPORT_RANKS "ranks"
#define REPORT_STACKS "stacks"
#define REPORT_TIMES "times"
#define REPORT_STATES "states"
#define REPORT_GROUPS "groups"
#define REPORT_RAS "ras"
#define REPORT_TABLES "tables"
#define REPORT_SQL "sql"
#define REPORT_NEXT "next"
#define REPORT_ATTACH "attach"
#define REPORT_DETACH "detach"
#define REPORT_TO "to"
#define REPORT_CLOCK "clock"
#define REPORT_IDS_MAX 7 /* of stacks that are asked for together */

#define REPORT_NO_INT INT64_MIN /* unknown; numbers are NAN, texts NULL */

#define REPORT_MEMBER_INT int64_t
#define REPORT_MEMBER_REAL double
#define REPORT_MEMBER_TEXT const char *
#define REPORT_MEMBER(kind, name) REPORT_MEMBER_##kind name;

struct report_job {
    REPORT_JOB_FIELDS(REPORT_MEMBER) REPORT_JOB_NOW_FIELDS(REPORT_MEMBER)
};
struct report_rank {
    REPORT_RANK_FIELDS(REPORT_MEMBER)
};
struct report_frame {
    REPORT_FRAME_FIELDS(REPORT_MEMBER)
};
struct report_time {
    REPORT_TIME_FIELDS(REPORT_MEMBER)
};
struct report_clock {
    REPORT_CLOCK_FIELDS(REPORT_MEMBER)
};
struct report_size {
    REPORT_SIZE_FIELDS(REPORT_MEMBER)
};

struct report_state {
    REPORT_STATE_FIELDS(REPORT_MEMBER)
};
struct report_group {
    REPORT_GROUP_FIELDS(REPORT_MEMBER)
};
struct report_ras {
    REPORT_RAS_FIELDS(REPORT_MEMBER)
};
struct report_task {
    REPORT_TASK_FIELDS(REPORT_MEMBER)
};

enum report_kind { REPORT_INT, REPORT_REAL, REPORT_TEXT };

struct report_field {
    const char *name;
    enum report_kind kind;
    size_t offset; /* in the struct of a row, of an int64_t, a double or a const char * */
};

struct report_table {
    const char *name;
    const struct report_field *fields;
    size_t n;
};

extern const struct report_table REPORT_TABLE_JOB, REPORT_TABLE_RANK, REPORT_TABLE_FRAME, REPORT_TABLE_TIME,
    REPORT_TABLE_CLOCK, REPORT_TABLE_SIZE, REPORT_TABLE_TASK, REPORT_TABLE_STATE, REPORT_TABLE_GROUP,
    REPORT_TABLE_RAS;

/* All of it unknown. */
void report_clear(const struct report_table *t, void *row);

/* The kernel's letter of a process's state as a text that lasts; NULL: it is none. */
const char *report_letter(char state);

/* Append the names of the columns, or a row, for struct wire_rows. 0, or -1 without memory. */
int report_put_columns(const struct report_table *t, struct strbuf *columns);
int report_put(const struct report_table *t, const void *row, struct strbuf *rows);

/* Fill the values of a row for a table of a ClickHouse server that has such columns; the common ones and those that `t`
 * lacks stay as they are. */
void report_put_engine(const struct report_table *t, const void *row, const struct engine_table *to,
                       struct row_value *values);

#define REPORT_MAX_FIELDS 64

/* Put a value into a row; its text, made safe for a terminal, goes to the arena. A value of another kind is
 * unknown. 0, or -1 without memory. */
int report_take(const struct report_field *f, const struct wire_value *v, void *row, struct arena *arena);

/* Reads the rows of an answer. */
struct report_reader {
    const struct report_table *table;
    struct wire_rows rows;
    int column_of[REPORT_MAX_FIELDS]; /* field -> column of the answer; -1 none */
};

/* 0, or -1 with the error. */
int report_begin(struct report_reader *r, const struct report_table *t, const struct wire_message *m,
                 struct err *e);

/* The next row; its texts go to the arena, which has a limit. 1, 0 at the end, -1: it is not valid, or too
 * long. */
int report_next(struct report_reader *r, void *row, struct arena *arena);

#endif
