/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_repl: code for the job, typed line by line at a terminal, or read from a pipe.
 *
 * At a terminal only the end of the job ends it, no failure does. From a pipe there is no
 * prompt, and the first failed statement ends it, so a script may rely on the statements before.
 */
#include "cli/repl.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/line.h"
#include "client/sql/database.h"
#include "client/history.h"
#include "client/sql/magic.h"
#include "client/output.h"
#include "client/target/target.h"
#include "client/target/tcp.h"

#define REPL_TIMEOUT_S 10.0
#define REPL_OUTPUT_KIB 64
#define REPL_IDLE_MS 1000
#define REPL_PROMPT ">>> "
#define REPL_PROMPT_MORE "... "

static const struct cli_eval_options repl_default = {.timeout_s = REPL_TIMEOUT_S,
                                                     .output_kib = REPL_OUTPUT_KIB};

static const struct option_def repl_options[] = {
    {"keep-going", 0, OPTION_FLAG, offsetof(struct cli_eval_options, keep_going),
     .help = "from a pipe: go on after a statement that fails; the exit status is 1 all the same"},
    {.name = NULL},
};

/* The reader's state: the current line and the incomplete block. */
struct verb_repl {
    struct repl repl;
    struct strbuf block;
    const char *state; /* of the block: WIRE_CODE_...; NULL: empty */
    struct line *line;
    struct history history;
    struct catalog *catalog; /* for Tab behind %q; NULL: not loaded yet */
    bool keep_going, warned;
    unsigned number, begun; /* of the line, and of the first line of the block */
    unsigned failed;
    struct strbuf text; /* from a pipe: a line, and the bytes read beyond it */
    char input[16384];
    size_t at, len;
};

static bool verb_is_blank(const char *text) { return text[strspn(text, " \t\r\n")] == '\0'; }

static void verb_clear(struct verb_repl *v) {
    strbuf_clear(&v->block);
    v->state = NULL;
}

static int verb_run_block(struct verb_repl *v, struct err *e) {
    int rc = repl_run(&v->repl, strbuf_str(&v->block), false, e);
    verb_clear(v);
    return rc;
}

/* Add a line to the block, and run the block if it is complete. 0, or -1 with the error. */
static int verb_take(struct verb_repl *v, const char *text, struct err *e) {
    if (!v->state && verb_is_blank(text))
        return 0;
    v->repl.told = false;
    if (!v->state)
        v->begun = v->number;
    if (!v->state && magic_is(text))
        return repl_run_magic(&v->repl, text, e);
    if (v->state && strcmp(v->state, WIRE_CODE_BLOCK) == 0 && verb_is_blank(text))
        return verb_run_block(v, e);
    if (strbuf_adds(&v->block, text) != 0 || strbuf_addc(&v->block, '\n') != 0) {
        verb_clear(v);
        return err_set(e, ERR_FAILED, "the code is longer than %zu bytes", WIRE_EVAL_CODE_MAX);
    }
    v->state = repl_whole(&v->repl, strbuf_str(&v->block), e);
    if (!v->state) {
        verb_clear(v);
        return -1;
    }
    return strcmp(v->state, WIRE_CODE_DONE) == 0 ? verb_run_block(v, e) : 0;
}

/* True if this job cannot answer any longer. Behind a TCP port an ended job and a broken
 * connection look the same: at a terminal the user may try again. */
static bool verb_is_over(const struct verb_repl *v, const struct err *e) {
    return e->code == ERR_LOST || (e->code == ERR_ATTACH && !(v->line && tcp_is(v->repl.given.path)));
}

/* ---- at a terminal ---- */

static void verb_idle(void *arg) { repl_idle(&((struct verb_repl *)arg)->repl); }

static bool verb_interrupted(void *arg) { return repl_interrupted(&((struct verb_repl *)arg)->repl); }

/* The catalog of this job; the general one while it cannot be reached. NULL: out of memory. */
static struct catalog *verb_know_tables(const struct verb_repl *v) {
    struct target_address addr = v->repl.given;
    struct database *d = NULL;
    struct err e;
    struct catalog *c = NULL;
    if (cli_open_database(v->repl.options, &addr, false, &d, &e) == 0 && database_refresh(d, &e) == 0)
        c = catalog_of_session(database_sql(d));
    database_close(d);
    return c ? c : catalog_of_definitions();
}

/* Only the words, without the descriptions that magic_complete adds. */
static void verb_put_words(const char *offered, struct strbuf *words) {
    for (const char *line = offered; *line; line += strcspn(line, "\n") + 1)
        strbuf_addf(words, "%s%.*s", words->len ? "\n" : "", (int)strcspn(line, "\t"), line);
}

static bool verb_complete_code(struct verb_repl *v, const char *before, struct strbuf *words, size_t *typed) {
    size_t at = strlen(before);
    while (at > 0 &&
           (before[at - 1] == '_' || (before[at - 1] & 0x80) ||
            strspn(before + at - 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")))
        at--;
    *typed = strlen(before) - at;
    return repl_complete(&v->repl, before, words);
}

static bool verb_complete_magic(struct verb_repl *v, const char *before, struct strbuf *words,
                                size_t *typed) {
    struct strbuf offered;
    size_t from = 0;
    const struct magic_def *def = magic_find(before);
    if (!v->catalog && def && def->takes == MAGIC_TAKES_SQL)
        v->catalog = verb_know_tables(v);
    strbuf_init(&offered, 0);
    enum magic_completion how = magic_complete(before, v->catalog, &offered, &from);
    verb_put_words(strbuf_str(&offered), words);
    strbuf_fini(&offered);
    if (how == MAGIC_COMPLETES_CODE)
        return verb_complete_code(v, before + from, words, typed);
    *typed = strlen(before) - from;
    return how == MAGIC_COMPLETES_WORDS;
}

static bool verb_complete(void *arg, const char *before, struct strbuf *words, size_t *typed) {
    struct verb_repl *v = arg;
    return !v->state && magic_is(before) ? verb_complete_magic(v, before, words, typed)
                                         : verb_complete_code(v, before, words, typed);
}

static void verb_remember(struct verb_repl *v, const char *text) {
    struct err e;
    if (verb_is_blank(text))
        return;
    line_remember(v->line, text);
    if (history_add(&v->history, text, &e) != 0 && !v->warned) {
        output_say("probing: %s\n", e.text);
        v->warned = true;
    }
}

static void verb_print_error(const struct err *e) {
    char text[3 * sizeof e->text];
    text_sanitize(text, sizeof text, err_text(e));
    output_say("probing: %s\n", text);
}

static void verb_greet(const struct verb_repl *v) {
    const struct target_address *given = &v->repl.given;
    bool tcp = tcp_is(given->path);
    output_say("probing: code runs in process %lld%s%s; %%help lists what else there is, ^D leaves\n",
               (long long)call_get_target(v->repl.call)->pid, tcp ? ", by the agent at " : "",
               tcp ? tcp_name(given->path) : "");
}

static int verb_type(struct verb_repl *v, struct err *e) {
    const struct line_hooks hooks = {
        .idle = verb_idle, .interrupted = verb_interrupted, .complete = verb_complete, .arg = v};
    char path[512];
    struct strbuf text;
    int rc = 0;
    v->line = line_new(&hooks, e);
    if (!v->line)
        return -1;
    history_path("repl", path, sizeof path);
    if (history_open(&v->history, path, e) != 0)
        verb_print_error(e);
    for (size_t i = 0; i < v->history.n; i++)
        line_remember(v->line, v->history.entries[i]);
    verb_greet(v);
    strbuf_init(&text, WIRE_EVAL_CODE_MAX);
    for (enum line_end end; rc == 0;) {
        end = line_read(v->line, v->state ? REPL_PROMPT_MORE : REPL_PROMPT, &text);
        if (end == LINE_CLOSED)
            break;
        if (end == LINE_CLEARED) {
            verb_clear(v);
            continue;
        }
        *e = (struct err){0};
        verb_remember(v, strbuf_str(&text));
        rc = verb_take(v, strbuf_str(&text), e);
        if (rc != 0 && !verb_is_over(v, e)) {
            if (!v->repl.told)
                verb_print_error(e);
            rc = 0;
        }
    }
    strbuf_fini(&text);
    line_free(v->line);
    history_fini(&v->history);
    return rc;
}

/* ---- from a pipe ---- */

/* True if a line that begins like this belongs to the block above it. */
static bool verb_goes_on(const char *text) {
    static const char *const words[] = {"else", "elif", "except", "finally", NULL};
    if (strchr(" \t#)]}", text[0]))
        return true;
    for (size_t i = 0; words[i]; i++) {
        size_t n = strlen(words[i]);
        if (strncmp(text, words[i], n) == 0 && (text[n] == ':' || text[n] == ' ' || text[n] == '\t'))
            return true;
    }
    return false;
}

/* Handle a failed statement. 0: continue. */
static int verb_fail(struct verb_repl *v, unsigned number, struct err *e) {
    struct err why = *e;
    err_set(e, why.code, "line %u: %s", number, err_text(&why));
    if (!v->keep_going || verb_is_over(v, e))
        return -1;
    verb_print_error(e);
    v->failed++;
    return 0;
}

static int verb_take_piped(struct verb_repl *v, const char *text, struct err *e) {
    bool ends =
        v->state && strcmp(v->state, WIRE_CODE_BLOCK) == 0 && !verb_is_blank(text) && !verb_goes_on(text);
    if (ends && verb_run_block(v, e) != 0 && verb_fail(v, v->begun, e) != 0)
        return -1;
    if (verb_take(v, text, e) == 0)
        return 0;
    return verb_fail(v, v->begun, e);
}

/* Read the next line of standard input into v->text, without its newline. 1; 0 at the end; -1
 * with the error. The connection is served while no input comes. */
static int verb_next(struct verb_repl *v, struct err *e) {
    strbuf_clear(&v->text);
    for (;;) {
        while (v->at < v->len) {
            char c = v->input[v->at++];
            if (c == '\n')
                return 1;
            if (c == '\0' || strbuf_addc(&v->text, c) != 0)
                return err_set(e, ERR_FAILED, "line %u %s", v->number + 1,
                               c ? "is longer than code may be" : "has a NUL: that is no code");
        }
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        int ready = poll(&p, 1, REPL_IDLE_MS);
        if (repl_interrupted(&v->repl))
            return err_set(e, ERR_FAILED, "interrupted");
        if (ready <= 0) {
            repl_idle(&v->repl);
            continue;
        }
        ssize_t n = read(STDIN_FILENO, v->input, sizeof v->input);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return err_set_errno(e, ERR_FAILED, errno, "cannot read standard input");
        if (n == 0)
            return v->text.len > 0;
        v->at = 0;
        v->len = n > 0 ? (size_t)n : 0;
    }
}

static int verb_read(struct verb_repl *v, struct err *e) {
    int more = 1, rc = 0;
    strbuf_init(&v->text, WIRE_EVAL_CODE_MAX);
    while (rc == 0 && (more = verb_next(v, e)) > 0) {
        v->number++;
        rc = verb_take_piped(v, strbuf_str(&v->text), e);
    }
    strbuf_fini(&v->text);
    if (rc == 0 && more < 0)
        rc = -1;
    if (rc == 0 && v->state && verb_run_block(v, e) != 0)
        rc = verb_fail(v, v->begun, e);
    if (rc == 0 && v->failed)
        rc = err_set(e, ERR_FAILED, "%u of the statements failed", v->failed);
    return rc;
}

static int repl_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                     struct err *e) {
    const struct cli_eval_options *mine = (const struct cli_eval_options *)(const void *)o;
    struct verb_repl v = {.repl = {.options = o,
                                   .given = *addr,
                                   .want = {.timeout_s = mine->timeout_s,
                                            .output_bytes = mine->output_kib * 1024,
                                            .main = mine->main,
                                            .keep = true,
                                            .name = "<repl>"}},
                          .keep_going = mine->keep_going};
    (void)out;
    if (o->json)
        return err_set(e, ERR_USAGE, "repl is for people: --json is for eval and execute");
    if (cli_eval_read_frame(mine->frame, &v.repl.want, e) != 0)
        return -1;
    strbuf_init(&v.repl.texts, (size_t)WIRE_EVAL_OUTPUT_MAX * 5 + 1024);
    strbuf_init(&v.block, WIRE_EVAL_CODE_MAX);
    repl_catch();
    int rc = repl_connect(&v.repl, e);
    if (rc == 0)
        rc = isatty(STDIN_FILENO) == 1 ? verb_type(&v, e) : verb_read(&v, e);
    repl_fini(&v.repl);
    catalog_free(v.catalog);
    strbuf_fini(&v.block);
    return rc;
}

const struct cli_verb verb_repl = {
    .name = "repl",
    .help = "type code that runs in TARGET, or %help; code from a pipe runs statement by statement",
    .example = "echo '1 + 1' | probing 4242 repl",
    .needs_target = true,
    .changes = true,
    .options = repl_options,
    .more = cli_eval_options,
    .options_size = sizeof(struct cli_eval_options),
    .options_default = &repl_default,
    .exec = repl_exec,
};
