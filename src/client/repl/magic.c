/* SPDX-License-Identifier: Apache-2.0 */
/* magic: see magic.h. */
#include "client/repl/magic.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/option.h"
#include "client/sql/sql_complete.h"

#define MAGIC_BLANKS " \t\n"
#define MAGIC_WORD 64

/* Names of the job's own, with their types; no code of the objects runs. */
#define MAGIC_WHO                                                                                            \
    "print(*['%-24s %s' % (k, type(v).__name__) for k, v in sorted(dict(globals()).items(), key=lambda i: "  \
    "str(i[0])) if type(k) is str and not k.startswith('_')], sep='\\n')"

static int magic_read_help(struct magic *out, const char *operand, struct wire_eval *want, struct err *e) {
    (void)operand;
    (void)want;
    (void)e;
    for (const struct magic_def *m = magics; m->name; m++) {
        char head[MAGIC_WORD];
        snprintf(head, sizeof head, "%s %s", m->name, m->operand ? m->operand : "");
        strbuf_addf(&out->text, "%-20s %s\n", head, m->help);
    }
    strbuf_adds(&out->text, "Everything else is code that runs in the job. Tab completes, an empty line ends "
                            "a block,\n^C interrupts; _ is the last value.\n");
    return 0;
}

static int magic_read_bt(struct magic *out, const char *operand, struct wire_eval *want, struct err *e) {
    char *end = NULL;
    (void)want;
    out->kind = MAGIC_STACKS;
    if (!*operand)
        return 0;
    errno = 0;
    long long tid = strtoll(operand, &end, 10);
    if (*end || tid <= 0 || errno)
        return err_set(e, ERR_FAILED, "'%s' is not a thread: %%bt takes a thread id, see %%threads", operand);
    out->kind = MAGIC_QUERY;
    strbuf_addf(&out->text,
                "SELECT depth, func, file, lineno FROM python.backtrace WHERE tid = %lld ORDER BY depth",
                tid);
    return 0;
}

static int magic_read_timeout(struct magic *out, const char *operand, struct wire_eval *want, struct err *e) {
    char *end = NULL;
    double s = strtod(operand, &end);
    (void)out;
    if (end == operand || (*end && strcmp(end, "s") != 0) || !isfinite(s) || s < 0.01 ||
        s > WIRE_EVAL_TIMEOUT_MAX_S)
        return err_set(e, ERR_FAILED, "'%s' is not a time: %%timeout takes seconds from 0.01 to %g", operand,
                       WIRE_EVAL_TIMEOUT_MAX_S);
    want->timeout_s = s;
    return 0;
}

bool magic_read_frame(const char *text, struct wire_eval *want) {
    char *end = NULL;
    long long tid = strtoll(text, &end, 10), depth = -1;
    if (end != text && *end == ':' && end[1] >= '0' && end[1] <= '9')
        depth = strtoll(end + 1, &end, 10);
    if (*end || depth < 0 || tid <= 0 || tid > INT32_MAX || depth > INT32_MAX)
        return false;
    want->tid = tid;
    want->depth = depth;
    return true;
}

static int magic_set_frame(struct magic *out, const char *operand, struct wire_eval *want, struct err *e) {
    (void)out;
    if (strcmp(operand, "off") == 0)
        want->tid = want->depth = 0;
    else if (!magic_read_frame(operand, want))
        return err_set(e, ERR_FAILED, "'%s' is not a frame: %%frame takes TID:DEPTH, or off", operand);
    return 0;
}

const struct magic_def magics[] = {
    {.name = "%help", .help = "these", .read = magic_read_help},
    {.name = "%bt", .operand = "[TID]", .help = "stacks of all threads, or of one", .read = magic_read_bt},
    {.name = "%q",
     .operand = "SQL",
     .help = "SQL over its tables (python.steps, python.memory, ...)",
     .takes = MAGIC_TAKES_SQL,
     .kind = MAGIC_QUERY},
    {.name = "%tensors",
     .help = "the largest tensors",
     .kind = MAGIC_QUERY,
     .text = "SELECT name, shape, dtype, device, bytes, kind FROM python.tensors ORDER BY bytes DESC "
             "LIMIT 20"},
    {.name = "%modules",
     .help = "modules of the models",
     .kind = MAGIC_QUERY,
     .text = "SELECT path, class, parameters, bytes, device, training FROM python.modules LIMIT 100"},
    {.name = "%steps",
     .help = "the last training steps",
     .kind = MAGIC_QUERY,
     .text = "SELECT step, round(duration_ms, 1) AS duration_ms, round(data_ms, 1) AS data_ms, "
             "round(forward_ms, 1) AS fwd_ms, round(backward_ms, 1) AS bwd_ms, "
             "round(optimizer_ms, 1) AS optim_ms, round(loss, 4) AS loss FROM python.steps "
             "ORDER BY step DESC LIMIT 10"},
    {.name = "%threads",
     .help = "threads and their current functions",
     .kind = MAGIC_QUERY,
     .text = "SELECT tid, name, state, gil, round(cpu_pct, 1) AS cpu_pct, func, file, lineno FROM "
             "python.threads"},
    {.name = "%status", .help = "the agent: overhead and clients", .kind = MAGIC_STATUS, .text = ""},
    {.name = "%who",
     .help = "names of __main__ (or of the frame), with their types",
     .kind = MAGIC_RUN,
     .text = MAGIC_WHO},
    {.name = "%time",
     .operand = "CODE",
     .help = "run code and show how long it took",
     .takes = MAGIC_TAKES_CODE,
     .kind = MAGIC_RUN,
     .timed = true},
    {.name = "%timeout", .operand = "S", .help = "set the time limit of code", .read = magic_read_timeout},
    {.name = "%frame",
     .operand = "TID:DEPTH|off",
     .help = "run code with the names of this frame (see %bt TID)",
     .read = magic_set_frame},
    {.name = NULL},
};

/* ---- a line ---- */

bool magic_is(const char *line) { return line[strspn(line, MAGIC_BLANKS)] == '%'; }

/* Copy the first word of a line; returns where the rest begins. */
static const char *magic_split(const char *line, char word[MAGIC_WORD]) {
    const char *from = line + strspn(line, MAGIC_BLANKS);
    size_t n = strcspn(from, MAGIC_BLANKS);
    snprintf(word, MAGIC_WORD, "%.*s", (int)(n < MAGIC_WORD ? n : MAGIC_WORD), from);
    return from + n + strspn(from + n, MAGIC_BLANKS);
}

const struct magic_def *magic_find(const char *line) {
    char word[MAGIC_WORD];
    magic_split(line, word);
    for (const struct magic_def *m = magics; m->name; m++)
        if (strcmp(m->name, word) == 0)
            return m;
    return NULL;
}

static int magic_unknown(const char *word, struct err *e) {
    const char *names[sizeof magics / sizeof magics[0]], *near;
    size_t n = 0;
    for (const struct magic_def *m = magics; m->name; m++)
        names[n++] = m->name;
    names[n] = NULL;
    near = option_suggest(word, names);
    if (near)
        return err_set(e, ERR_FAILED, "there is no '%s': did you mean '%s'?", word, near);
    return err_set(e, ERR_FAILED, "there is no '%s': %%help lists the commands", word);
}

/* `operand`: without blanks around it. */
static int magic_fill(struct magic *out, const struct magic_def *def, const char *operand,
                      struct wire_eval *want, struct err *e) {
    if (*operand && !def->operand)
        return err_set(e, ERR_FAILED, "%s takes nothing", def->name);
    if (!*operand && def->operand && def->operand[0] != '[')
        return err_set(e, ERR_FAILED, "%s takes %s", def->name, def->operand);
    out->kind = def->kind;
    out->timed = def->timed;
    if (def->read)
        return def->read(out, operand, want, e);
    strbuf_adds(&out->text, def->text ? def->text : operand);
    return 0;
}

int magic_read(struct magic *out, const char *line, struct wire_eval *want, struct err *e) {
    char word[MAGIC_WORD];
    const char *rest = magic_split(line, word);
    const struct magic_def *def = magic_find(line);
    *out = (struct magic){.kind = MAGIC_SAY};
    strbuf_init(&out->text, 0);
    if (!def)
        return magic_unknown(word, e);
    char *operand = strdup(rest);
    size_t n = operand ? strlen(operand) : 0;
    while (n > 0 && strchr(MAGIC_BLANKS "\r", operand[n - 1]))
        operand[--n] = '\0';
    int rc = operand ? magic_fill(out, def, operand, want, e) : -1;
    if (!operand || out->text.failed)
        rc = err_set(e, ERR_FAILED, "out of memory for %s", word);
    free(operand);
    return rc;
}

void magic_fini(struct magic *m) { strbuf_fini(&m->text); }

/* ---- completion ---- */

static enum magic_completion magic_complete_name(const char *typed, struct strbuf *words) {
    for (const struct magic_def *m = magics; m->name; m++)
        if (strncmp(m->name, typed, strlen(typed)) == 0)
            strbuf_addf(words, "%s\t%s%s%s\n", m->name, m->operand ? m->operand : "", m->operand ? ": " : "",
                        m->help);
    return words->len ? MAGIC_COMPLETES_WORDS : MAGIC_COMPLETES_NOT;
}

/* Words that begin with the typed text: completion at a prompt shows no list in which other
 * matches could be found. */
static enum magic_completion magic_complete_sql(const char *sql, const struct catalog *c,
                                                struct strbuf *words, size_t *from) {
    struct sql_completion found;
    size_t len = strlen(sql);
    if (!c || sql_complete(&found, c, sql, len) != 0)
        return MAGIC_COMPLETES_NOT;
    for (size_t i = 0; i < found.n; i++)
        if (strncasecmp(found.items[i].text, sql + found.from, len - found.from) == 0)
            strbuf_addf(words, "%s\t%s\n", found.items[i].text, found.items[i].help);
    *from += found.from;
    sql_complete_fini(&found);
    return words->len ? MAGIC_COMPLETES_WORDS : MAGIC_COMPLETES_NOT;
}

enum magic_completion magic_complete(const char *before, const struct catalog *c, struct strbuf *words,
                                     size_t *from) {
    char word[MAGIC_WORD];
    const char *first = before + strspn(before, MAGIC_BLANKS), *rest = magic_split(before, word);
    const struct magic_def *def = magic_find(before);
    *from = (size_t)(first - before);
    if (!strpbrk(first, MAGIC_BLANKS))
        return magic_complete_name(first, words);
    *from = (size_t)(rest - before);
    if (def && def->takes == MAGIC_TAKES_CODE)
        return *rest ? MAGIC_COMPLETES_CODE : MAGIC_COMPLETES_NOT;
    return def && def->takes == MAGIC_TAKES_SQL ? magic_complete_sql(rest, c, words, from)
                                                : MAGIC_COMPLETES_NOT;
}
