/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_words: the words of a verdict with the numbers in them; see verdict.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "client/verdict/verdict.h"

#define WORDS_MIB 1048576.0
#define WORDS_PART 400 /* of a part in brackets */

const char *verdict_level_name(enum verdict_level level) {
    static const char *const names[] = {
        [VERDICT_FINE] = "fine", [VERDICT_NOTE] = "note", [VERDICT_WARN] = "warning", [VERDICT_BAD] = "bad"};
    return names[level];
}

const char *verdict_result_name(enum verdict_result result) {
    static const char *const names[] = {
        [VERDICT_SAID] = "said",           [VERDICT_NOT_SAID] = "fine",    [VERDICT_DENIED] = "fine",
        [VERDICT_UNKNOWN] = "unknown",     [VERDICT_NO_TABLE] = "unknown", [VERDICT_NO_DATA] = "unknown",
        [VERDICT_NOT_ASKED] = "not asked", [VERDICT_FAILED] = "unknown"};
    return names[result];
}

void verdict_put_reason(const struct verdict_check *check, struct strbuf *out) {
    if (check->result == VERDICT_DENIED)
        strbuf_adds(out, "other evidence is against it");
    else if (check->result == VERDICT_FAILED)
        strbuf_addf(out, "evidence could not be read: %s", check->why);
    else if (check->result == VERDICT_UNKNOWN)
        strbuf_adds(out, "not enough data yet");
    else if (check->result == VERDICT_NO_DATA)
        strbuf_adds(out, "no data about it");
    else if (check->result == VERDICT_NO_TABLE)
        strbuf_addf(out, "no table %s", check->rule->needs);
    else if (check->result == VERDICT_NOT_ASKED)
        strbuf_adds(out, check->rule->is_alone ? "only while steps end and nothing is wrong"
                                               : "only while steps end");
}

const char *verdict_sure(const struct verdict_rule *rule) { return rule->sure ? rule->sure : "measured"; }

static void words_put_seconds(struct strbuf *out, double s) {
    char text[32];
    if (s < 0.9995)
        strbuf_addf(out, "%.3g ms", s * 1000);
    else if (s < 10)
        strbuf_addf(out, "%.1f s", s);
    else if (s < 120)
        strbuf_addf(out, "%.0f s", s);
    else {
        text_human_duration(text, sizeof text, s);
        strbuf_adds(out, text);
    }
}

static void words_put_rate(struct strbuf *out, double rate) {
    if (rate >= 0.0995)
        strbuf_addf(out, rate < 999.5 ? "%.3g steps/s" : "%.0f steps/s", rate);
    else
        strbuf_addf(out, "%.3g steps/min", rate * 60);
}

static void words_put_number(struct strbuf *out, const char *kind, double v) {
    char text[32];
    if (strcmp(kind, "%") == 0)
        strbuf_addf(out, "%.*f %%", v < 0.0995 ? 1 : 0, v * 100);
    else if (strcmp(kind, "ms") == 0)
        words_put_seconds(out, v / 1000);
    else if (strcmp(kind, "s") == 0)
        words_put_seconds(out, v);
    else if (strcmp(kind, "rate") == 0)
        words_put_rate(out, v);
    else if (strcmp(kind, "MiB") == 0) {
        text_human_bytes(text, sizeof text, v * WORDS_MIB);
        strbuf_adds(out, text);
    } else if (strcmp(kind, "steps") == 0)
        strbuf_addf(out, "%.0f step%s", v, v == 1 ? "" : "s");
    else if (strcmp(kind, "cpus") == 0)
        strbuf_addf(out, "%.1f", v);
    else if (strcmp(kind, "x") == 0)
        strbuf_addf(out, "%.2g x", v);
    else if (strcmp(kind, "yes") == 0)
        strbuf_adds(out, v > 0 ? "yes" : "no");
    else if (strcmp(kind, "n") == 0)
        strbuf_addf(out, "%.0f", v);
    else
        strbuf_addf(out, "%.6g", v);
}

static const struct verdict_value *words_find(const struct verdict_value *values, size_t n, const char *name,
                                              size_t len) {
    for (size_t i = 0; i < n; i++)
        if (strlen(values[i].name) == len && memcmp(values[i].name, name, len) == 0)
            return values[i].kind == SQL_NULL ? NULL : &values[i];
    return NULL;
}

/* Append one "{name:kind}"; false if its value is unknown. */
static bool words_put_value(const char *from, size_t len, const struct verdict_value *values, size_t n,
                            struct strbuf *out) {
    char kind[8] = "", clean[3 * sizeof values->text];
    const char *colon = memchr(from, ':', len);
    size_t name = colon ? (size_t)(colon - from) : len;
    if (colon)
        snprintf(kind, sizeof kind, "%.*s", (int)(len - name - 1), colon + 1);
    const struct verdict_value *v = words_find(values, n, from, name);
    if (!v) {
        strbuf_addc(out, '?');
        return false;
    }
    if (v->kind != SQL_TEXT) {
        words_put_number(out, kind, v->number);
        return true;
    }
    const char *slash = strcmp(kind, "file") == 0 ? strrchr(v->text, '/') : NULL;
    text_sanitize(clean, sizeof clean, slash ? slash + 1 : v->text);
    strbuf_adds(out, clean);
    return true;
}

/* Append up to `end`; false if a value is unknown. */
static bool words_put_part(const char *words, const char *end, const struct verdict_value *values, size_t n,
                           struct strbuf *out) {
    bool known = true;
    for (const char *at = words; at < end; at++) {
        const char *close = *at == '{' ? memchr(at, '}', (size_t)(end - at)) : NULL;
        if (!close) {
            strbuf_addc(out, *at);
            continue;
        }
        known = words_put_value(at + 1, (size_t)(close - at - 1), values, n, out) && known;
        at = close;
    }
    return known;
}

void verdict_put_words(const char *words, const struct verdict_value *values, size_t n, struct strbuf *out) {
    for (const char *at = words; *at;) {
        const char *open = strchr(at, '['), *close = open ? strchr(open, ']') : NULL;
        words_put_part(at, close ? open : at + strlen(at), values, n, out);
        if (!close)
            return;
        struct strbuf part;
        strbuf_init(&part, WORDS_PART);
        if (words_put_part(open + 1, close, values, n, &part) && !part.failed)
            strbuf_adds(out, strbuf_str(&part));
        strbuf_fini(&part);
        at = close + 1;
    }
}

void verdict_put_measure(const struct verdict_rule *rule, double measured, struct strbuf *out) {
    if (isnan(measured))
        strbuf_addc(out, '-');
    else
        words_put_number(out, rule->kind ? rule->kind : "", measured);
}
