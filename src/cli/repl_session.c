/* SPDX-License-Identifier: Apache-2.0 */
/* repl_session: sends code to the job and prints the results; see repl.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/repl.h"
#include "client/sql/database.h"
#include "client/sql/magic_query.h"
#include "client/output.h"
#include "client/target/target.h"

#define REPL_TYPED_S 2.0 /* somebody has pressed a key and waits */
#define REPL_NAMES_MAX ((int64_t)65536)
#define REPL_OUTPUT_MAX ((size_t)64 * 1024 * 1024)

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

void repl_catch(void) {
    struct sigaction action = {.sa_handler = repl_on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = repl_on_resize;
    sigaction(SIGWINCH, &action, NULL);
}

bool repl_interrupted(struct repl *r) {
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
    if (r->asked)
        return true;
    r->asked = true;
    call_interrupt(r->call, NULL);
    return false;
}

/* ---- the connection ---- */

static void repl_lose(struct repl *r, const struct err *why) {
    call_close(r->call);
    r->call = NULL;
    r->lost = *why;
}

static int repl_reach(struct repl *r, struct err *e) {
    const struct target_options how = {.no_inject = false};
    struct target_address addr = r->given;
    if (target_reach(&addr, &how, e) != 0)
        return -1;
    if (addr.recorded[0])
        return err_set(e, ERR_LOST, "the process of %s has ended: no code can be run in it", addr.recorded);
    if (addr.mode == MODEL_MODE_READONLY)
        return err_set(e, ERR_ATTACH, "code is run by an agent, and none can be put into process %d: %s",
                       (int)addr.pid, addr.why);
    r->call = call_open(&addr, e);
    return r->call ? 0 : -1;
}

int repl_connect(struct repl *r, struct err *e) {
    char why[3 * sizeof r->lost.text];
    if (r->call)
        return 0;
    if (r->lost.code == ERR_LOST) {
        *e = r->lost;
        return -1;
    }
    if (repl_reach(r, e) != 0)
        return -1;
    call_set_stop(r->call, repl_stop, r);
    if (r->lost.code != ERR_OK) {
        text_sanitize(why, sizeof why, err_text(&r->lost));
        output_say("probing: connected again (%s); _ is forgotten\n", why);
    }
    return 0;
}

void repl_idle(struct repl *r) {
    struct err e = {0};
    if (r->call && call_rest(r->call, 0, &e) != 0)
        repl_lose(r, &e);
}

void repl_fini(struct repl *r) {
    call_close(r->call);
    strbuf_fini(&r->texts);
}

static int repl_ask(struct repl *r, const struct wire_eval *want, struct wire_evaluated *what,
                    struct err *e) {
    if (repl_connect(r, e) != 0)
        return -1;
    strbuf_clear(&r->texts);
    r->asked = r->told = false;
    repl_interrupted(r);
    int rc = call_eval(r->call, want, &r->texts, what, e);
    if (rc != 0 && call_is_lost(r->call)) {
        repl_lose(r, e);
        if (e->code != ERR_LOST && want->complete == false)
            err_set(e, ERR_FAILED, "%s: what ran is interrupted", r->lost.text);
    }
    return rc;
}

/* ---- code ---- */

static void repl_put_line(struct strbuf *out, const struct wire_text *t, bool terminal) {
    cli_eval_put_text(out, t, terminal);
    if (t->len && t->s[t->len - 1] != '\n')
        strbuf_addc(out, '\n');
}

static int repl_put(const struct wire_eval *want, const struct wire_evaluated *v, bool timed, struct err *e) {
    bool terminal = isatty(STDOUT_FILENO) == 1;
    struct strbuf out;
    strbuf_init(&out, REPL_OUTPUT_MAX);
    repl_put_line(&out, &v->output, terminal);
    if (v->result.s)
        repl_put_line(&out, &v->result, terminal);
    if (timed)
        strbuf_addf(&out, v->duration_ms < 999.5 ? "%.3g ms in the job\n" : "%.0f ms in the job\n",
                    v->duration_ms);
    int rc = output_write(NULL, &out, e);
    fflush(stdout);
    strbuf_clear(&out);
    if (v->traceback.s)
        repl_put_line(&out, &v->traceback, true);
    output_say_text(&out);
    strbuf_fini(&out);
    if (v->truncated)
        output_say("probing: what there is was cut at %lld KiB: --max-output takes more\n",
                   (long long)(want->output_bytes / 1024));
    return rc;
}

static int repl_explain(const struct repl *r, const struct wire_evaluated *v, struct err *e) {
    const char *unended =
        "it catches KeyboardInterrupt, or is in C code; it is interrupted until it ends, and "
        "no other code is run before that";
    if (v->unended && !v->timed_out)
        return err_set(e, ERR_FAILED, "interrupted, and not ended by that: %s", unended);
    if (v->unended)
        return err_set(e, ERR_FAILED, "not done within %g s, and not ended by interrupting it: %s",
                       r->want.timeout_s, unended);
    if (v->timed_out)
        return err_set(e, ERR_FAILED, "not done within %g s: it was interrupted; %%timeout S gives it longer",
                       r->want.timeout_s);
    return err_set(e, ERR_FAILED, "the code has raised %.*s", (int)(v->type.len < 200 ? v->type.len : 200),
                   v->type.s);
}

int repl_run(struct repl *r, const char *code, bool timed, struct err *e) {
    struct wire_eval want = r->want;
    struct wire_evaluated what;
    want.code = code;
    want.code_len = strlen(code);
    if (want.code_len > WIRE_EVAL_CODE_MAX)
        return err_set(e, ERR_FAILED, "the code is longer than %zu bytes", WIRE_EVAL_CODE_MAX);
    repl_idle(r); /* detect a lost connection: code is not sent twice */
    if (repl_ask(r, &want, &what, e) != 0 || repl_put(&want, &what, timed, e) != 0)
        return -1;
    r->told = what.traceback.s && !what.timed_out && !what.unended;
    return what.type.s || what.timed_out || what.unended ? repl_explain(r, &what, e) : 0;
}

static int repl_ask_typed(struct repl *r, const char *code, bool whole, struct wire_evaluated *what,
                          struct err *e) {
    struct wire_eval want = r->want;
    want.code = code;
    want.code_len = strlen(code);
    want.complete = true;
    want.whole = whole;
    want.output_bytes = REPL_NAMES_MAX;
    if (!whole)
        want.timeout_s = REPL_TYPED_S;
    if (want.code_len > WIRE_EVAL_CODE_MAX)
        return err_set(e, ERR_FAILED, "the code is longer than %zu bytes", WIRE_EVAL_CODE_MAX);
    return repl_ask(r, &want, what, e);
}

const char *repl_whole(struct repl *r, const char *code, struct err *e) {
    static const char *const said[] = {WIRE_CODE_MORE, WIRE_CODE_BLOCK};
    struct wire_evaluated what;
    int rc = repl_ask_typed(r, code, true, &what, e);
    /* the connection was lost unnoticed; this runs no code, so it can be sent again */
    if (rc != 0 && !r->call)
        rc = repl_ask_typed(r, code, true, &what, e);
    if (rc != 0)
        return NULL;
    for (size_t i = 0; what.result.s && i < sizeof said / sizeof said[0]; i++)
        if (what.result.len == strlen(said[i]) && memcmp(what.result.s, said[i], what.result.len) == 0)
            return said[i];
    return WIRE_CODE_DONE;
}

bool repl_complete(struct repl *r, const char *code, struct strbuf *names) {
    struct wire_evaluated what;
    struct err e = {0};
    if (repl_ask_typed(r, code, false, &what, &e) != 0 || !what.result.s || !what.result.len)
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
static int repl_query(struct repl *r, const struct magic *m, struct err *e) {
    const struct target_options how = {.no_inject = false};
    struct target_address addr = r->given;
    struct magic_way way = {.addr = &addr, .stop = repl_stop_query, .stop_arg = r};
    struct strbuf out;
    strbuf_init(&out, REPL_OUTPUT_MAX);
    repl_interrupted(r);
    int rc = m->kind == MAGIC_QUERY ? 0 : target_reach(&addr, &how, e);
    if (rc == 0)
        rc = m->kind == MAGIC_QUERY ? repl_query_sql(r, m, &way, &out, e) : magic_ask(m, &way, &out, e);
    if (rc == 0)
        rc = output_write(NULL, &out, e);
    strbuf_fini(&out);
    return rc;
}

int repl_run_magic(struct repl *r, const char *line, struct err *e) {
    struct magic m;
    int rc = magic_read(&m, line, &r->want, e);
    if (rc == 0 && m.kind == MAGIC_RUN)
        rc = repl_run(r, strbuf_str(&m.text), m.timed, e);
    else if (rc == 0 && magic_is_query(&m))
        rc = repl_query(r, &m, e);
    else if (rc == 0 && m.text.len)
        rc = output_write(NULL, &m.text, e);
    magic_fini(&m);
    return rc;
}
