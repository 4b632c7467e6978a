/* SPDX-License-Identifier: Apache-2.0 */
/* sql_function: functions of one row: time, and readable numbers. Times are seconds since the
 * epoch in UTC. */
#include <math.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/text.h"
#include "store/sql/sql_internal.h"
#include "store/sql/sql_rewrite.h"

#define SQL_DAY 86400.0
/* Years 0 to 9999; beyond them calendars have no meaning. */
#define SQL_TIME_MIN (-62167219200.0)
#define SQL_TIME_MAX 253402300800.0

static const struct sql_function_info sql_function_list[] = {
    {"now", "()", "the current time, in seconds since the epoch; of a recording its last moment"},
    {"interval", "(text)", "seconds: interval '5 minutes', interval '1 hour 30 min'"},
    {"hour", "(time)", "hour of the day, 0 to 23, UTC"},
    {"minute", "(time)", "minute of the hour, 0 to 59"},
    {"second", "(time)", "second of the minute, 0 to 59"},
    {"date_trunc", "(unit, time)", "beginning of the second, minute, hour, day, week, month or year"},
    {"median", "(x)", "the middle of the values; an aggregate"},
    {"quantile", "(x, p)", "the value below which the part p (0 to 1) of them lies; an aggregate"},
    {"stddev", "(x)", "standard deviation of the values as a sample; an aggregate"},
    {"stddev_pop", "(x)", "standard deviation of the values as all there are; an aggregate"},
    {"variance", "(x)", "variance of the values as a sample; an aggregate"},
    {"regr_slope", "(y, x)", "by how much y grows with x: slope of the least-squares line; an aggregate"},
    {"regr_intercept", "(y, x)", "y at x = 0 on that line; an aggregate"},
    {"corr", "(y, x)", "correlation of the two, -1 to 1; an aggregate"},
    {"fold", "(stack_id)", "the stack as text, outermost frame first: func (file.py:12);..."},
    {"human_bytes", "(bytes)", "1.5 GiB"},
    {"human_time", "(seconds)", "3h07m, 1.50 ms"},
    {.name = NULL},
};

const struct sql_function_info *sql_functions(void) { return sql_function_list; }

/* A number; or false, with NULL (for NULL) or an error as the result. */
static bool sql_number_argument(sqlite3_context *c, sqlite3_value *v, const char *function, double *out) {
    int type = sqlite3_value_numeric_type(v);
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
        *out = sqlite3_value_double(v);
        return isfinite(*out);
    }
    if (type != SQLITE_NULL) {
        char *text = sqlite3_mprintf("%s() takes a number, as the timestamp columns are", function);
        sqlite3_result_error(c, text ? text : "not a number", -1);
        sqlite3_free(text);
    }
    return false;
}

static bool sql_time_argument(sqlite3_context *c, sqlite3_value *v, const char *function, double *out) {
    return sql_number_argument(c, v, function, out) && *out >= SQL_TIME_MIN && *out < SQL_TIME_MAX;
}

static void sql_now(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    (void)v;
    sqlite3_result_double(c, ((struct sql *)sqlite3_user_data(c))->now);
}

static void sql_interval(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    const char *text = (const char *)sqlite3_value_text(v[0]);
    double seconds;
    if (!text)
        return;
    if (sql_interval_parse(text, (size_t)sqlite3_value_bytes(v[0]), &seconds) != 0)
        sqlite3_result_error(c, "not an interval; write for example '5 minutes' or '1 hour'", -1);
    else
        sqlite3_result_double(c, seconds);
}

/* A part of the day: the value of (seconds of the period / seconds of the unit). */
static void sql_part(sqlite3_context *c, sqlite3_value **v, const char *name, double period, double unit) {
    double t;
    if (!sql_time_argument(c, v[0], name, &t))
        return;
    double within = t - floor(t / period) * period;
    sqlite3_result_int(c, (int)floor(within / unit));
}

static void sql_hour(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    sql_part(c, v, "hour", SQL_DAY, 3600);
}

static void sql_minute(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    sql_part(c, v, "minute", 3600, 60);
}

static void sql_second(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    sql_part(c, v, "second", 60, 1);
}

/* Units of constant length, and their zero point: weeks begin on a Monday, the epoch was a
 * Thursday. */
static const struct sql_trunc {
    const char *unit;
    double seconds, offset;
} sql_truncs[] = {
    {"millisecond", 1e-3, 0}, {"second", 1, 0},    {"minute", 60, 0},
    {"hour", 3600, 0},        {"day", SQL_DAY, 0}, {"week", 7 * SQL_DAY, 4 * SQL_DAY},
};

static void sql_date_trunc(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    const char *unit = (const char *)sqlite3_value_text(v[0]);
    double t;
    if (!unit || !sql_time_argument(c, v[1], "date_trunc", &t))
        return;
    for (size_t i = 0; i < sizeof sql_truncs / sizeof sql_truncs[0]; i++)
        if (strcasecmp(unit, sql_truncs[i].unit) == 0) {
            double from = sql_truncs[i].offset, step = sql_truncs[i].seconds;
            sqlite3_result_double(c, floor((t - from) / step) * step + from);
            return;
        }
    bool year = strcasecmp(unit, "year") == 0;
    time_t whole = (time_t)floor(t);
    struct tm tm;
    if ((!year && strcasecmp(unit, "month") != 0) || !gmtime_r(&whole, &tm)) {
        sqlite3_result_error(c, "date_trunc() knows second, minute, hour, day, week, month and year", -1);
        return;
    }
    struct tm first = {.tm_year = tm.tm_year, .tm_mon = year ? 0 : tm.tm_mon, .tm_mday = 1};
    sqlite3_result_double(c, (double)timegm(&first));
}

static void sql_human_bytes(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    double bytes;
    char text[32];
    if (!sql_number_argument(c, v[0], "human_bytes", &bytes) || fabs(bytes) >= 9e18)
        return;
    /* A difference may be negative. */
    text[0] = '-';
    text_human_bytes(text + 1, sizeof text - 1, fabs(bytes));
    sqlite3_result_text(c, bytes < 0 ? text : text + 1, -1, SQLITE_TRANSIENT);
}

static void sql_human_time(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    double s;
    char text[40];
    if (!sql_number_argument(c, v[0], "human_time", &s))
        return;
    const char *sign = s < 0 ? "-" : "";
    double size = fabs(s);
    if (size >= 60 && size < 1e15) {
        char whole[32];
        text_human_duration(whole, sizeof whole, size);
        sqlite3_snprintf((int)sizeof text, text, "%s%s", sign, whole);
    } else if (size >= 1 || size == 0) {
        sqlite3_snprintf((int)sizeof text, text, "%s%.2f s", sign, size);
    } else if (size >= 1e-3) {
        sqlite3_snprintf((int)sizeof text, text, "%s%.2f ms", sign, size * 1e3);
    } else {
        sqlite3_snprintf((int)sizeof text, text, "%s%.2f us", sign, size * 1e6);
    }
    sqlite3_result_text(c, text, -1, SQLITE_TRANSIENT);
}

int sql_function_register(struct sql *s, struct err *e) {
    static const struct {
        const char *name;
        int arguments, flags;
        void (*fn)(sqlite3_context *, int, sqlite3_value **);
    } list[] = {
        {"now", 0, 0, sql_now},
        {"interval", 1, SQLITE_DETERMINISTIC, sql_interval},
        {"hour", 1, SQLITE_DETERMINISTIC, sql_hour},
        {"minute", 1, SQLITE_DETERMINISTIC, sql_minute},
        {"second", 1, SQLITE_DETERMINISTIC, sql_second},
        {"date_trunc", 2, SQLITE_DETERMINISTIC, sql_date_trunc},
        {"human_bytes", 1, SQLITE_DETERMINISTIC, sql_human_bytes},
        {"human_time", 1, SQLITE_DETERMINISTIC, sql_human_time},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (sqlite3_create_function_v2(s->db, list[i].name, list[i].arguments, SQLITE_UTF8 | list[i].flags, s,
                                       list[i].fn, NULL, NULL, NULL) != SQLITE_OK)
            return sql_db_error(s, e, "cannot add the functions");
    return 0;
}

bool sql_is_like(const char *text, const char *pattern) { return sqlite3_strlike(pattern, text, '\\') == 0; }
