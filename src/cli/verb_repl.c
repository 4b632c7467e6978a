/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_repl: code for the job, typed line by line at a terminal, or read from a pipe: a face of
 * repl_engine.h.
 *
 * At a terminal only the end of the job ends it, no failure does. From a pipe there is no
 * prompt, and the first failed statement ends it, so a script may rely on the statements before.
 *
 * The connection lasts as long as the prompt, and as long as it lasts the job keeps the last
 * value, `_`. After a lost connection the next line connects again, and injects an agent again if
 * that has gone; nothing is run twice.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/line.h"
#include "client/output.h"
#include "client/repl/magic_query.h"
#include "client/repl/repl_engine.h"
#include "client/session/call.h"
#include "client/sql/database.h"
#include "client/target/target.h"
#include "client/target/tcp.h"

#define REPL_TIMEOUT_S 10.0
#define REPL_IDLE_MS 1000
#define REPL_PROMPT ">>> "
#define REPL_PROMPT_MORE "... "
#define REPL_OUTPUT_MAX ((size_t)64 * 1024 * 1024)

static const struct cli_eval_options repl_default = {.timeout_s = REPL_TIMEOUT_S,
                                                     .output_kib = REPL_ENGINE_OUTPUT_KIB};

static const struct option_def repl_options[] = {
    {"keep-going", 0, OPTION_FLAG, offsetof(struct cli_eval_options, keep_going),
     .help = "from a pipe: continue after a statement that fails; the exit status is still 1"},
    {.name = NULL},
};

/* The connection, and what came over it. */
struct repl {
    struct repl_engine engine;
    struct repl_face face;
    const struct cli_options *options;
    struct target_address given; /* the target as resolved, not attached to */
    struct call *call;           /* NULL: not connected, or no longer */
    struct err lost;             /* why the connection is gone; ERR_OK: there was none yet */
    struct strbuf texts;         /* of the last answer */
    struct strbuf out, errors;   /* to be printed */
    unsigned seen;               /* interrupts that were handled */
};

/* The reader's state: the current line and the incomplete block. */
struct verb_repl {
    struct repl repl;
    struct strbuf block;
    enum repl_code state; /* of the block, unless that is empty */
    struct line *line;
    struct catalog *catalog; /* for Tab behind %q; NULL: not loaded yet */
    bool keep_going;
    unsigned number, begun; /* of the line, and of the first line of the block */
    unsigned failed;
    struct strbuf text; /* from a pipe: a line, and the bytes read beyond it */
    char input[16384];
    size_t at, len;
};

/* ---- ^C ---- */

static volatile sig_atomic_t repl_signals;
static struct database *repl_database; /* the one that ^C ends */

static void repl_on_signal(int number) {
    (void)number;
    repl_signals++;
    if (repl_database)
        database_cancel(repl_database);
}

static void repl_on_resize(int number) { (void)number; }

/* From here on ^C is counted, and ends the running code, not the program. */
static void repl_catch(void) {
    struct sigaction action = {.sa_handler = repl_on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = repl_on_resize;
    sigaction(SIGWINCH, &action, NULL);
}

/* True if ^C has arrived since the last call. */
static bool repl_interrupted(struct repl *r) {
    unsigned now = (unsigned)repl_signals;
    bool is = now != r->seen;
    r->seen = now;
    return is;
}

/* Called while the code runs. The second ^C closes the connection, which ends the code, too. */
static bool repl_stop(void *arg) {
    struct repl *r = arg;
    if (!repl_interrupted(r))
        return false;
    if (r->engine.interrupted)
        return true;
    r->engine.interrupted = true;
    call_interrupt(r->call, NULL);
    return false;
}

/* ---- the connection ---- */

static void repl_lose(struct repl *r, const struct err *why) {
    call_close(r->call);
    r->call = NULL;
    r->lost = *why;
}

/* Connect, if there is no connection. 0, or -1 with the error; ERR_LOST: the job has ended. */
static int repl_connect(struct repl *r, struct err *e) {
    char why[3 * sizeof r->lost.text];
    if (r->call)
        return 0;
    if (r->lost.code == ERR_LOST) {
        *e = r->lost;
        return -1;
    }
    struct target_address addr = r->given;
    r->call = cli_eval_open(&addr, e);
    if (!r->call)
        return -1;
    call_set_stop(r->call, repl_stop, r);
    if (r->lost.code != ERR_OK) {
        text_sanitize(why, sizeof why, err_text(&r->lost));
        output_say("probing: connected again (%s); _ is forgotten\n", why);
    }
    return 0;
}

/* Serve the connection, if there is one. */
static void repl_idle(struct repl *r) {
    struct err e = {0};
    if (r->call && call_rest(r->call, 0, &e) != 0)
        repl_lose(r, &e);
}

static void repl_fini(struct repl *r) {
    call_close(r->call);
    strbuf_fini(&r->texts);
    strbuf_fini(&r->out);
    strbuf_fini(&r->errors);
    repl_engine_fini(&r->engine);
}

/* Ask what the engine asks, and wait. 0, or -1 with the error. */
static int repl_send(struct repl *r, struct wire_evaluated *what, struct err *e) {
    struct wire_eval want = repl_engine_question(&r->engine);
    if (repl_connect(r, e) != 0)
        return -1;
    strbuf_clear(&r->texts);
    repl_interrupted(r);
    int rc = call_eval(r->call, &want, &r->texts, what, e);
    if (rc != 0 && call_is_lost(r->call)) {
        repl_lose(r, e);
        if (e->code != ERR_LOST && !want.complete)
            err_set(e, ERR_FAILED, "%s: what ran is interrupted", r->lost.text);
    }
    return rc;
}

static int repl_ask(struct repl *r, enum repl_ask what, const char *code, size_t len,
                    struct wire_evaluated *answer, struct err *e) {
    if (repl_engine_ask(&r->engine, what, code, len, e) != 0)
        return -1;
    int rc = repl_send(r, answer, e);
    repl_engine_end(&r->engine);
    return rc;
}

/* ---- code ---- */

/* Standard output gets values, standard error the rest; errors are the caller's to print. */
static void repl_put(void *arg, enum repl_mark mark, const char *text, size_t len) {
    struct repl *r = arg;
    const struct wire_text t = {text, len};
    struct strbuf *out = mark == REPL_VALUE ? &r->out : &r->errors;
    if (mark == REPL_ERROR || !len)
        return;
    if (mark == REPL_NOTE) {
        strbuf_addf(out, "probing: %.*s: --max-output raises the limit\n", (int)len, text);
        return;
    }
    cli_eval_put_text(out, &t, mark != REPL_VALUE || isatty(STDOUT_FILENO) == 1);
    if (text[len - 1] != '\n')
        strbuf_addc(out, '\n');
}

/* Print what was put. 0, or -1 with the error. */
static int repl_print(struct repl *r, struct err *e) {
    int rc = r->out.len || r->out.failed ? output_write(NULL, &r->out, e) : 0;
    fflush(stdout);
    output_say_text(&r->errors);
    strbuf_clear(&r->out);
    strbuf_clear(&r->errors);
    return rc;
}

/* Run code and put its result. 0, or -1 with the error. */
static int repl_run(void *arg, const char *code, size_t len, bool timed, struct err *e) {
    struct repl *r = arg;
    struct wire_evaluated what;
    repl_idle(r); /* detect a lost connection: code is not sent twice */
    if (repl_ask(r, REPL_RUN, code, len, &what, e) != 0)
        return -1;
    r->engine.timed = timed;
    return repl_engine_put(&r->engine, &what, &r->face, e);
}

/* Is the code complete? 0, or -1 with the error. */
static int repl_whole(struct repl *r, const struct strbuf *code, enum repl_code *state, struct err *e) {
    struct wire_evaluated what;
    int rc = repl_ask(r, REPL_WHOLE, strbuf_str(code), code->len, &what, e);
    /* the connection was lost unnoticed; this runs no code, so it can be sent again */
    if (rc != 0 && !r->call)
        rc = repl_ask(r, REPL_WHOLE, strbuf_str(code), code->len, &what, e);
    if (rc == 0)
        *state = repl_engine_read_code(&what.result);
    return rc;
}

/* Put the names that the end of `code` may mean into `names`, one a line. False if there are
 * none, or the job did not answer. */
static bool repl_complete(struct repl *r, const char *code, struct strbuf *names) {
    struct wire_evaluated what;
    struct err e = {0};
    if (repl_ask(r, REPL_NAMES, code, strlen(code), &what, &e) != 0 || !what.result.s || !what.result.len)
        return false;
    return strbuf_add(names, what.result.s, what.result.len) == 0;
}

/* ---- queries ---- */

static bool repl_stop_query(void *arg) { return repl_interrupted(arg); }

/* Run SQL in a database of its own, which ^C ends. 0, or -1 with the error. */
static int repl_query_sql(struct repl *r, const struct magic *m, struct magic_way *way, struct strbuf *out,
                          struct err *e) {
    struct target_address addr = r->given;
    struct database *d = NULL;
    int rc = cli_open_database(r->options, &addr, false, &d, e);
    if (rc == 0)
        rc = database_refresh(d, e);
    way->database = repl_database = d;
    if (rc == 0)
        rc = magic_ask(m, way, out, e);
    repl_database = NULL;
    if (rc == 0)
        cli_note_database(d);
    database_close(d);
    return rc;
}

/* Run a query over a connection of its own, apart from that of the code. */
static int repl_query(void *arg, struct magic *m, struct err *e) {
    const struct target_options how = {.no_inject = false};
    struct repl *r = arg;
    struct target_address addr = r->given;
    struct magic_way way = {.addr = &addr, .stop = repl_stop_query, .stop_arg = r};
    repl_interrupted(r);
    int rc = m->kind == MAGIC_QUERY ? 0 : target_reach(&addr, &how, e);
    if (rc == 0)
        rc = m->kind == MAGIC_QUERY ? repl_query_sql(r, m, &way, &r->out, e) : magic_ask(m, &way, &r->out, e);
    if (rc != 0)
        strbuf_clear(&r->out);
    return rc;
}

/* ---- lines ---- */

static int verb_run_block(struct verb_repl *v, struct err *e) {
    struct err unprinted;
    int rc = repl_run(&v->repl, strbuf_str(&v->block), v->block.len, false, e);
    strbuf_clear(&v->block);
    return repl_print(&v->repl, rc == 0 ? e : &unprinted) == 0 ? rc : -1;
}

/* 0, or -1 with the error. */
static int verb_run_magic(struct verb_repl *v, const char *line, struct err *e) {
    struct err unprinted;
    int rc = repl_engine_run_magic(&v->repl.engine, line, &v->repl.face, e);
    return repl_print(&v->repl, rc == 0 ? e : &unprinted) == 0 ? rc : -1;
}

/* Add a line to the block, and run the block if it is complete. 0, or -1 with the error. */
static int verb_take(struct verb_repl *v, const char *text, struct err *e) {
    bool first = v->block.len == 0;
    v->repl.engine.explained = false;
    if (first && repl_engine_is_blank(text))
        return 0;
    if (first)
        v->begun = v->number;
    if (first && magic_is(text))
        return verb_run_magic(v, text, e);
    if (!first && repl_engine_ends_block(v->state, text))
        return verb_run_block(v, e);
    int rc = strbuf_adds(&v->block, text) == 0 && strbuf_addc(&v->block, '\n') == 0
                 ? repl_whole(&v->repl, &v->block, &v->state, e)
                 : err_set(e, ERR_FAILED, "the code is longer than %zu bytes", WIRE_EVAL_CODE_MAX);
    if (rc != 0)
        strbuf_clear(&v->block);
    return rc == 0 && v->state == REPL_CODE_DONE ? verb_run_block(v, e) : rc;
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
    *typed = strlen(before) - repl_engine_find_word(before, strlen(before));
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
    return !v->block.len && magic_is(before) ? verb_complete_magic(v, before, words, typed)
                                             : verb_complete_code(v, before, words, typed);
}

static void verb_print_error(const struct err *e) {
    char text[3 * sizeof e->text];
    text_sanitize(text, sizeof text, err_text(e));
    output_say("probing: %s\n", text);
}

static void verb_remember(struct verb_repl *v, const char *text) {
    struct err e;
    if (repl_engine_is_blank(text))
        return;
    line_remember(v->line, text);
    if (repl_engine_remember(&v->repl.engine, text, strlen(text), &e) != 0)
        verb_print_error(&e);
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
    struct history *history = &v->repl.engine.history;
    history_path("repl", path, sizeof path);
    if (history_open(history, path, e) != 0)
        verb_print_error(e);
    for (size_t i = 0; i < history->n; i++)
        line_remember(v->line, history->entries[i]);
    verb_greet(v);
    strbuf_init(&text, WIRE_EVAL_CODE_MAX);
    for (enum line_end end; rc == 0;) {
        end = line_read(v->line, v->block.len ? REPL_PROMPT_MORE : REPL_PROMPT, &text);
        if (end == LINE_CLOSED)
            break;
        if (end == LINE_CLEARED) {
            strbuf_clear(&v->block);
            continue;
        }
        *e = (struct err){0};
        verb_remember(v, strbuf_str(&text));
        rc = verb_take(v, strbuf_str(&text), e);
        if (rc != 0 && !verb_is_over(v, e)) {
            if (!v->repl.engine.explained)
                verb_print_error(e);
            rc = 0;
        }
    }
    strbuf_fini(&text);
    line_free(v->line);
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
        v->block.len && v->state == REPL_CODE_BLOCK && !repl_engine_is_blank(text) && !verb_goes_on(text);
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
                               c ? "is longer than code may be" : "has a NUL character, so it is not code");
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
    if (rc == 0 && v->block.len && verb_run_block(v, e) != 0)
        rc = verb_fail(v, v->begun, e);
    if (rc == 0 && v->failed)
        rc = err_set(e, ERR_FAILED, "%u of the statements failed", v->failed);
    return rc;
}

static int repl_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                     struct err *e) {
    const struct cli_eval_options *mine = (const struct cli_eval_options *)(const void *)o;
    struct verb_repl v = {.repl = {.options = o, .given = *addr}, .keep_going = mine->keep_going};
    struct repl *r = &v.repl;
    (void)out;
    if (o->json || o->written)
        return err_set(e, ERR_USAGE, "repl is for people: %s is for eval and execute",
                       o->json ? "--json" : "--output");
    repl_engine_init(&r->engine, mine->timeout_s, mine->output_kib * 1024);
    r->engine.want.main = mine->main;
    r->face = (struct repl_face){.arg = r, .put = repl_put, .run = repl_run, .query = repl_query};
    strbuf_init(&r->texts, (size_t)WIRE_EVAL_OUTPUT_MAX * 5 + 1024);
    strbuf_init(&r->out, REPL_OUTPUT_MAX);
    strbuf_init(&r->errors, REPL_OUTPUT_MAX);
    strbuf_init(&v.block, WIRE_EVAL_CODE_MAX);
    repl_catch();
    int rc = cli_eval_read_frame(mine->frame, &r->engine.want, e);
    if (rc == 0)
        rc = repl_connect(r, e);
    if (rc == 0)
        rc = isatty(STDIN_FILENO) == 1 ? verb_type(&v, e) : verb_read(&v, e);
    repl_fini(r);
    catalog_free(v.catalog);
    strbuf_fini(&v.block);
    return rc;
}

const struct cli_verb verb_repl = {
    .name = "repl",
    .group = "Code",
    .help = "type code that runs in TARGET (%help); a pipe runs statement by statement",
    .example = "echo '1 + 1' | probing 4242 repl",
    .needs_target = true,
    .changes = true,
    .options = repl_options,
    .more = cli_eval_options,
    .options_size = sizeof(struct cli_eval_options),
    .options_default = &repl_default,
    .exec = repl_exec,
};
