/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_eval: run code in the job: eval reads it from the command line, execute also from a file
 * or standard input.
 *
 * The output of the code and the value of its last expression go to standard output, even if it
 * raises an exception later. The traceback goes to standard error, before the error line.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/session/call.h"
#include "client/export/document.h"
#include "client/repl/repl_engine.h"
#include "client/output.h"
#include "client/progress.h"
#include "client/target/target.h"
#include "wire/eval_json.h"

#define EVAL_TIMEOUT_S 10.0
#define EVAL_OUTPUT_KIB 1024
#define EVAL_TEXTS_MAX ((size_t)WIRE_EVAL_OUTPUT_MAX * 5 + 1024)

static const struct cli_eval_options eval_default = {.timeout_s = EVAL_TIMEOUT_S,
                                                     .output_kib = EVAL_OUTPUT_KIB};

#define AT(member) offsetof(struct cli_eval_options, member)

const struct option_def cli_eval_options[] = {
    {"timeout", 0, OPTION_SECONDS, AT(timeout_s), .arg = "TIME",
     .help = "time limit (10s; in repl for each statement); then the code is interrupted", .min = 0.01,
     .max = WIRE_EVAL_TIMEOUT_MAX_S},
    {"frame", 0, OPTION_STRING, AT(frame), .arg = "TID:DEPTH",
     .help =
         "use the names of this frame (see backtrace) instead of __main__'s; assignments to them are lost"},
    {"main", 0, OPTION_FLAG, AT(main),
     .help = "run on the job's main thread (default: a thread of the agent)"},
    {"max-output", 0, OPTION_INT, AT(output_kib), .arg = "KIB",
     .help = "truncate output at KIB (1024; repl 64)", .min = 1, .max = (double)WIRE_EVAL_OUTPUT_MAX / 1024},
    {.name = NULL},
};

/* ---- the code ---- */

static int eval_read_stdin(struct strbuf *code, struct err *e) {
    char buf[4096];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(e, ERR_FAILED, errno, "cannot read standard input");
        if (n == 0)
            return 0;
        if (strbuf_add(code, buf, (size_t)n) != 0)
            return err_set(e, ERR_USAGE, "code from standard input is longer than %zu bytes",
                           WIRE_EVAL_CODE_MAX);
    }
}

/* True if the operand is the name of a file that should exist: no code looks like this. */
static bool eval_is_name(const char *operand) {
    size_t n = strlen(operand);
    return n > 3 && strcmp(operand + n - 3, ".py") == 0 && !strpbrk(operand, " \t\n;()");
}

/* Read the file of that name; if there is none, the operand is the code itself. 0, or -1 with
 * the error. */
static int eval_read_file(const char *operand, struct strbuf *code, bool *is_file, struct err *e) {
    struct stat st;
    *is_file = stat(operand, &st) == 0;
    if (*is_file && S_ISDIR(st.st_mode))
        return err_set(e, ERR_USAGE, "'%s' is a folder: execute takes a file, - or code", operand);
    if (!*is_file && eval_is_name(operand))
        return err_set(e, ERR_USAGE, "there is no file '%s'", operand);
    if (!*is_file || strbuf_read_file(code, operand) == 0)
        return 0;
    if (errno == EFBIG)
        return err_set(e, ERR_USAGE, "'%s' is longer than %zu bytes", operand, WIRE_EVAL_CODE_MAX);
    return err_set_errno(e, ERR_FAILED, errno, "cannot read '%s'", operand);
}

static int eval_read_code(const char *operand, bool execute, struct strbuf *code, struct wire_eval *want,
                          struct err *e) {
    bool is_file = false;
    const char *name = "<eval>";
    if (!operand)
        return err_set(e, ERR_USAGE,
                       execute ? "execute needs a file, - for standard input, or code"
                               : "eval needs code: probing TARGET eval 'print(1)'");
    if (execute && strcmp(operand, "-") == 0) {
        name = "<stdin>";
        if (eval_read_stdin(code, e) != 0)
            return -1;
    } else if (execute && eval_read_file(operand, code, &is_file, e) != 0) {
        return -1;
    } else if (is_file)
        name = operand;
    else if (strbuf_adds(code, operand) != 0)
        return err_set(e, ERR_USAGE, "the code is longer than %zu bytes", WIRE_EVAL_CODE_MAX);
    size_t skip = strlen(name) < sizeof want->name ? 0 : strlen(name) - sizeof want->name + 1;
    snprintf(want->name, sizeof want->name, "%s", name + skip);
    want->code = strbuf_str(code);
    want->code_len = code->len;
    return 0;
}

int cli_eval_read_frame(const char *text, struct wire_eval *want, struct err *e) {
    if (!text || magic_read_frame(text, want))
        return 0;
    return err_set(e, ERR_USAGE,
                   "'%s' is not a frame: --frame takes TID:DEPTH, where depth 0 is the innermost", text);
}

/* ---- the result ---- */

void cli_eval_put_text(struct strbuf *out, const struct wire_text *t, bool terminal) {
    if (terminal)
        strbuf_add_clean(out, t->s, t->len);
    else
        strbuf_add(out, t->s, t->len);
}

/* stderr may be shown on a terminal later even if it is a file now, so its text is sanitised. */
static void eval_put_errors(const struct wire_evaluated *v) {
    struct strbuf text;
    strbuf_init(&text, 0);
    if (v->traceback.s)
        cli_eval_put_text(&text, &v->traceback, true);
    output_say_text(&text);
    strbuf_fini(&text);
}

/* Print the output in any case: a failure of the code does not make the output before it
 * invalid. */
static int eval_put(const struct wire_eval *want, const struct wire_evaluated *v, bool json,
                    struct strbuf *out, struct err *e) {
    bool terminal = isatty(STDOUT_FILENO) == 1, failed = v->type.s || v->timed_out;
    if (json) {
        struct json j;
        json_init(&j, out, 2);
        wire_put_evaluated_json(&j, v);
        strbuf_addc(out, '\n');
    } else {
        cli_eval_put_text(out, &v->output, terminal);
        if (v->output.len && v->result.s && v->output.s[v->output.len - 1] != '\n')
            strbuf_addc(out, '\n');
        if (v->result.s) {
            cli_eval_put_text(out, &v->result, terminal);
            strbuf_addc(out, '\n');
        }
    }
    if (!failed && !v->truncated)
        return 0;
    int rc = output_write(NULL, out, e);
    strbuf_clear(out);
    if (rc == 0 && !json && v->type.s)
        eval_put_errors(v);
    if (rc == 0 && !json && v->truncated)
        output_say("probing: the output was truncated at %lld KiB: --max-output raises the limit\n",
                   (long long)(want->output_bytes / 1024));
    return rc == 0 && failed ? repl_engine_explain(v, want->timeout_s, "", e) : rc;
}

struct call *cli_eval_open(struct target_address *addr, struct err *e) {
    const struct target_options how = {.no_inject = false};
    if (target_reach(addr, &how, e) != 0)
        return NULL;
    if (addr->recorded[0])
        err_set(e, ERR_LOST, "the process of %s has ended: it cannot run code", addr->recorded);
    else if (addr->mode == MODEL_MODE_READONLY)
        err_set(e, ERR_ATTACH, "running code needs an agent, which cannot be loaded into process %d: %s",
                (int)addr->pid, addr->why);
    else
        return call_open(addr, e);
    return NULL;
}

static int eval_run(const struct cli_options *o, bool execute, struct target_address *addr,
                    struct strbuf *out, struct err *e) {
    const struct cli_eval_options *mine = (const struct cli_eval_options *)(const void *)o;
    struct wire_eval want = {
        .timeout_s = mine->timeout_s, .output_bytes = mine->output_kib * 1024, .main = mine->main};
    struct wire_evaluated what;
    struct strbuf code, texts;
    struct call *c = NULL;
    strbuf_init(&code, WIRE_EVAL_CODE_MAX);
    strbuf_init(&texts, EVAL_TEXTS_MAX);
    int rc = cli_eval_read_frame(mine->frame, &want, e);
    if (rc == 0)
        rc = eval_read_code(o->operand, execute, &code, &want, e);
    if (rc == 0) {
        c = cli_eval_open(addr, e);
        progress_begin("running", 0, "^C interrupts it");
        rc = c ? call_eval(c, &want, &texts, &what, e) : -1;
        progress_end();
    }
    if (rc == 0)
        rc = eval_put(&want, &what, o->json, out, e);
    call_close(c);
    strbuf_fini(&texts);
    strbuf_fini(&code);
    return rc;
}

static int eval_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                     struct err *e) {
    return eval_run(o, false, addr, out, e);
}

static int execute_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                        struct err *e) {
    return eval_run(o, true, addr, out, e);
}

const struct cli_verb verb_eval = {
    .name = "eval",
    .group = "Code",
    .help = "run code in TARGET; print its output and the value of its last expression",
    .example = "probing 4242 eval 'import sys; sys.version'",
    .needs_target = true,
    .changes = true,
    .operand = "CODE",
    .options = cli_eval_options,
    .options_size = sizeof(struct cli_eval_options),
    .options_default = &eval_default,
    .exec = eval_exec,
};

const struct cli_verb verb_execute = {
    .name = "execute",
    .group = "Code",
    .help = "run a Python file (- for standard input) in TARGET",
    .example = "probing 4242 execute script.py",
    .needs_target = true,
    .changes = true,
    .operand = "FILE|-|CODE",
    .options = cli_eval_options,
    .options_size = sizeof(struct cli_eval_options),
    .options_default = &eval_default,
    .exec = execute_exec,
};
