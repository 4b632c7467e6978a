/* SPDX-License-Identifier: Apache-2.0 */
/* time_parse: see time_parse.h. */
#include "base/time_parse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIME_PARSE_DAY_S 86400.0
#define TIME_PARSE_MAX 48
#define TIME_PARSE_EPOCH_MAX 4102444800.0 /* the year 2100 */

/* "22:13:20.5", "22:13": into `tm`, and the seconds. */
static bool time_parse_day_time(const char *text, struct tm *tm, double *second) {
    int hour, minute, used = 0;
    *second = 0;
    int n = sscanf(text, "%2d:%2d%n:%lf%n", &hour, &minute, &used, second, &used);
    if (n < 2 || text[used] != '\0' || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
        !(*second >= 0) || *second >= 61)
        return false;
    tm->tm_hour = hour;
    tm->tm_min = minute;
    tm->tm_sec = 0;
    tm->tm_isdst = -1;
    return true;
}

static bool time_parse_clock(const char *text, double now_s, double *out) {
    time_t now = (time_t)now_s;
    struct tm tm;
    double second;
    if (!localtime_r(&now, &tm) || !time_parse_day_time(text, &tm, &second))
        return false;
    *out = (double)mktime(&tm) + second;
    if (*out > now_s + TIME_PARSE_DAY_S / 2) /* yesterday's */
        *out -= TIME_PARSE_DAY_S;
    return true;
}

/* "2026-11-27T22:13:20"; a space may stand for the T. */
static bool time_parse_date(const char *text, double *out) {
    struct tm tm = {.tm_year = 0};
    int year, month, day, used = 0;
    double second;
    if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &used) != 3 || !used ||
        !strchr("T ", text[used]) || !text[used] || year < 1970 || month < 1 || month > 12 || day < 1 ||
        day > 31 || !time_parse_day_time(text + used + 1, &tm, &second))
        return false;
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    tm.tm_mday = day;
    *out = (double)mktime(&tm) + second;
    return tm.tm_mday == day; /* there is no 30th of February */
}

static bool time_parse_ago(const char *text, double now_s, double *out) {
    static const struct {
        char unit;
        double s;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', TIME_PARSE_DAY_S}};
    char *end;
    double value = strtod(text, &end), unit = 0;
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++)
        if (end[0] == units[i].unit && end[1] == '\0')
            unit = units[i].s;
    *out = now_s - value * unit;
    return unit > 0 && value >= 0 && isfinite(value);
}

static bool time_parse_epoch(const char *text, double *out) {
    char *end;
    if (text[0] != '@' || text[1] < '0' || text[1] > '9')
        return false;
    *out = strtod(text + 1, &end);
    return *end == '\0' && *out >= 0 && *out < TIME_PARSE_EPOCH_MAX;
}

bool time_parse(const char *text, size_t len, double now_s, double *out) {
    char copy[TIME_PARSE_MAX];
    if (len == 0 || len >= sizeof copy || memchr(text, '\0', len))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return time_parse_clock(copy, now_s, out) || time_parse_ago(copy, now_s, out) ||
           time_parse_date(copy, out) || time_parse_epoch(copy, out);
}
