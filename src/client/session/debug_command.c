/* SPDX-License-Identifier: Apache-2.0 */
/* debug_command: see debug_command.h. The work inside the job is in python/units/debug.py,
 * pause.py and catch.py. */
#include "client/session/debug_command.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/json.h"
#include "base/model_json.h"
#include "base/text.h"
#include "client/session/call.h"

#define DEBUG_COMMAND_ARENA ((size_t)256 * 1024)
#define DEBUG_COMMAND_TEXT 1024 /* bytes of a text of the job, as shown */
#define DEBUG_COMMAND_HOST_MAX 256
#define DEBUG_COMMAND_ANY_HOST "0.0.0.0"

/* ---- common parts ---- */

int debug_command_request_wire(const struct debug_command_def *def, const struct debug_command_request *r,
                               pid_t pid, struct wire_debug *out, struct err *e) {
    *out = (struct wire_debug){.action = r->off      ? WIRE_DEBUG_END
                                         : r->status ? WIRE_DEBUG_STATUS
                                                     : WIRE_DEBUG_BEGIN,
                               .timeout_s = r->timeout_s,
                               .limit_s = r->limit_s,
                               .leased = r->leased};
    arena_init(&out->arena, DEBUG_COMMAND_ARENA);
    if ((r->off || r->status) && (r->address || r->path || r->exposed || (r->off && r->status)))
        return err_set(e, ERR_USAGE, "--%s cannot be combined with other options", r->off ? "off" : "status");
    if (out->action != WIRE_DEBUG_BEGIN)
        return 0;
    if (def->fill(out, r, pid, e) != 0)
        return -1;
    return out->arena.failed ? err_set(e, ERR_FAILED, "no memory") : 0;
}

/* A text of the job, of a broken agent or of a stranger, sanitised for a terminal; NULL is "?". */
static const char *debug_command_clean(const char *text, char buf[DEBUG_COMMAND_TEXT]) {
    text_sanitize(buf, DEBUG_COMMAND_TEXT, text ? text : "?");
    return buf;
}

int debug_command_check(const struct debug_command_def *def, const struct wire_debugger *d, double timeout_s,
                        const char *what, struct err *e) {
    char text[DEBUG_COMMAND_TEXT];
    if (d->timed_out || d->unended)
        return err_set(e, ERR_FAILED, "%s within %g s and was interrupted%s", what, timeout_s,
                       d->unended ? "; it has not ended yet" : "");
    if (d->raised)
        return err_set(e, ERR_FAILED, "%s: %s", what, debug_command_clean(d->raised, text));
    if (d->refused)
        return err_set(e, ERR_FAILED, "%s", debug_command_clean(d->refused, text));
    return def->check ? def->check(d, e) : 0;
}

int debug_command_ask(const struct debug_command_def *def, struct target_address *addr,
                      const struct wire_debug *want, const char *what, struct wire_debugger *out,
                      struct err *e) {
    *out = (struct wire_debugger){.on = false};
    struct call *c = call_open(addr, e);
    int rc = c ? call_debug(c, def->method, want, out, e) : -1;
    call_close(c);
    return rc == 0 ? debug_command_check(def, out, want->timeout_s, what, e) : rc;
}

/* ---- pdb at an address: pause, catch ---- */

static int pdb_fill(struct wire_debug *out, const struct debug_command_request *r, pid_t pid, struct err *e) {
    struct address a;
    char text[ADDRESS_MAX];
    (void)pid;
    if (address_parse(&a, r->address ? r->address : "", e) != 0)
        return -1;
    address_format(&a, text, sizeof text);
    char *colon = strrchr(text, ':'), *host = text;
    if (colon)
        *colon = '\0';
    if (text[0] == '[' && colon) {
        colon[-1] = '\0';
        host++;
    }
    out->host = arena_strdup(&out->arena, host);
    out->port = address_port(&a);
    return 0;
}

/* The address as arguments of nc, which takes [::1] without its brackets, and the token to send.
 * False if there is no address. */
static bool pdb_get_place(const struct wire_debugger *d, char *place, size_t cap,
                          char token[DEBUG_COMMAND_TEXT]) {
    char address[DEBUG_COMMAND_TEXT];
    if (!d->address || !d->token)
        return false;
    char *port = strrchr(debug_command_clean(d->address, address), ':');
    debug_command_clean(d->token, token);
    if (!port || strspn(token, "0123456789abcdef") != strlen(token))
        return false;
    bool bracketed = address[0] == '[' && port > address && port[-1] == ']';
    int n = (int)(port - address) - (bracketed ? 2 : 0);
    snprintf(place, cap, "%.*s %s", n, address + (bracketed ? 1 : 0), port + 1);
    return true;
}

/* The command that talks to the debugger: nc, with the token as its first line. */
static void pdb_put_copy(struct strbuf *out, const struct wire_debugger *d, pid_t pid) {
    char place[ADDRESS_MAX], token[DEBUG_COMMAND_TEXT];
    (void)pid;
    /* echo is a shell builtin: the token is in no process's arguments. */
    if (pdb_get_place(d, place, sizeof place, token))
        strbuf_addf(out, "(echo %s; cat) | nc %s\n", token, place);
}

/* The same for people, and as two lines to paste. */
static void pdb_put_entry(struct strbuf *out, const struct wire_debugger *d, pid_t pid) {
    char place[ADDRESS_MAX], token[DEBUG_COMMAND_TEXT];
    if (!pdb_get_place(d, place, sizeof place, token))
        return;
    strbuf_addf(out, "to connect, then type the token as the first line:\nnc %s\n%s\nor, in one line:\n",
                place, token);
    pdb_put_copy(out, d, pid);
}

static double pdb_left_s(const struct wire_debugger *d) { return d->left_s >= 0 ? d->left_s : 0; }

static void pdb_put_json_place(struct json *j, const struct wire_debugger *d) {
    json_kv_string(j, "address", d->address);
    json_kv_string(j, "token", d->token);
    json_kv_number(j, "left_s", pdb_left_s(d), 1);
    json_kv_bool(j, "client_connected", d->client);
}

/* ---- pause: stop the threads of the job ---- */

static void pause_put_json(struct strbuf *out, const struct wire_debugger *d, pid_t pid) {
    char name[DEBUG_COMMAND_TEXT], where[DEBUG_COMMAND_TEXT];
    struct json j;
    (void)pid;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", MODEL_JSON_SCHEMA_VERSION);
    json_kv_bool(&j, "paused", d->on);
    if (d->on) {
        pdb_put_json_place(&j, d);
        json_key(&j, "threads");
        json_array_begin(&j);
        for (size_t i = 0; i < d->n_threads; i++) {
            const struct wire_paused_thread *t = &d->threads[i];
            json_object_begin(&j);
            json_key(&j, "tid");
            if (t->tid > 0)
                json_int(&j, t->tid);
            else
                json_null(&j);
            json_kv_string(&j, "name", debug_command_clean(t->name, name));
            json_kv_bool(&j, "held", t->held);
            json_kv_string(&j, "where", debug_command_clean(t->where, where));
            json_object_end(&j);
        }
        json_array_end(&j);
    }
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

static void pause_put_text(struct strbuf *out, const struct wire_debugger *d, pid_t pid) {
    char address[DEBUG_COMMAND_TEXT], name[DEBUG_COMMAND_TEXT], where[DEBUG_COMMAND_TEXT];
    if (!d->on) {
        strbuf_adds(out, d->was ? "the job continues\n" : "the job is not paused\n");
        return;
    }
    size_t held = 0;
    for (size_t i = 0; i < d->n_threads; i++)
        held += d->threads[i].held;
    strbuf_addf(out, "paused: %zu of %zu threads are held; a debugger is at %s\n", held, d->n_threads,
                debug_command_clean(d->address, address));
    for (size_t i = 0; i < d->n_threads; i++) {
        const struct wire_paused_thread *t = &d->threads[i];
        strbuf_addf(out, "  %-16s ", debug_command_clean(t->name, name));
        (void)(t->tid > 0 ? strbuf_addf(out, "%8" PRId64, t->tid) : strbuf_addf(out, "%8s", "?"));
        strbuf_addf(out, "  %s%s\n", debug_command_clean(t->where, where),
                    t->held ? "" : "; it is held when it returns");
    }
    strbuf_addf(out, "resumed by continue, when its client leaves, by --off, or in %.0f s\n", pdb_left_s(d));
    pdb_put_entry(out, d, pid);
}

const struct debug_command_def debug_command_pause = {
    .name = "pause",
    .command = "pause-job",
    .method = WIRE_PAUSE,
    .timeout_s = 10,
    .limit_s = 300,
    .failed = "the job was not paused",
    .ended = "it cannot be paused",
    .who = "an agent holds the threads",
    .fill = pdb_fill,
    .put_text = pause_put_text,
    .put_json = pause_put_json,
    .put_copy = pdb_put_copy,
};

/* ---- catch: keep the thread of an uncaught exception for a while ---- */

/* The traceback, formatted for people, or as one text. */
static void catch_put_traceback(struct strbuf *out, const char *text) {
    char line[DEBUG_COMMAND_TEXT], clean[DEBUG_COMMAND_TEXT];
    while (text && *text) {
        size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), text);
        strbuf_addf(out, "%s\n", debug_command_clean(line, clean));
        text += n + (text[n] == '\n');
    }
}

static void catch_put_json(struct strbuf *out, const struct wire_debugger *d, pid_t pid) {
    struct strbuf text;
    struct json j;
    (void)pid;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", MODEL_JSON_SCHEMA_VERSION);
    json_kv_bool(&j, "armed", d->on);
    json_kv_bool(&j, "caught", d->on && d->exception);
    if (d->on) {
        json_kv_string(&j, "signals", d->signals);
        json_kv_string(&j, "left_alone", d->left_alone);
    }
    if (d->on && d->exception) {
        strbuf_init(&text, DEBUG_COMMAND_TEXTS_MAX);
        catch_put_traceback(&text, d->traceback);
        json_kv_string(&j, "exception", d->exception);
        json_kv_string(&j, "thread", d->thread);
        pdb_put_json_place(&j, d);
        json_kv_string(&j, "traceback", strbuf_str(&text));
        strbuf_fini(&text);
    }
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

static void catch_put_text(struct strbuf *out, const struct wire_debugger *d, pid_t pid) {
    char text[DEBUG_COMMAND_TEXT];
    if (!d->on) {
        strbuf_adds(out, d->was ? "exceptions are no longer caught\n" : "exceptions are not caught\n");
        return;
    }
    if (!d->exception) {
        strbuf_addf(out, "an uncaught exception %s will hold its thread for",
                    d->all_threads ? "on any thread" : "on the main thread");
        strbuf_addf(out, " %.0f s, with pdb: --status shows where\n", d->limit_s);
        if (d->signals && d->signals[0])
            strbuf_addf(out, "on %s, stacks of all threads will be saved\n",
                        debug_command_clean(d->signals, text));
        if (d->left_alone && d->left_alone[0])
            strbuf_addf(out, "left alone: %s\n", debug_command_clean(d->left_alone, text));
        return;
    }
    catch_put_traceback(out, d->traceback);
    strbuf_addf(out, "%s is held until continue, --off, or for another %.0f s\n",
                debug_command_clean(d->thread, text), pdb_left_s(d));
    pdb_put_entry(out, d, pid);
}

const struct debug_command_def debug_command_catch = {
    .name = "catch",
    .command = "catch",
    .method = WIRE_CATCH,
    .timeout_s = 10,
    .limit_s = 300,
    .failed = "nothing was started",
    .ended = "it will raise nothing",
    .who = "an agent catches exceptions",
    .fill = pdb_fill,
    .put_text = catch_put_text,
    .put_json = catch_put_json,
    .put_copy = pdb_put_copy,
};

/* ---- debug: debugpy, for an editor to attach to ---- */

/* Parse [HOST:]PORT. 0, or -1 with the error. */
static int debug_read_address(const char *operand, char *host, long *port, struct err *e) {
    const char *digits = operand ? operand : "0";
    char *end = NULL;
    snprintf(host, DEBUG_COMMAND_HOST_MAX, "127.0.0.1");
    const char *colon = operand ? strrchr(operand, ':') : NULL;
    if (colon) {
        size_t n = (size_t)(colon - operand);
        if (n == 0 || n >= DEBUG_COMMAND_HOST_MAX)
            return err_set(e, ERR_USAGE, "'%s' is not an address: debug takes [HOST:]PORT", operand);
        memcpy(host, operand, n);
        host[n] = '\0';
        digits = colon + 1;
    }
    *port = strtol(digits, &end, 10);
    if (end == digits || *end || digits[0] < '0' || digits[0] > '9' || *port > 65535)
        return err_set(e, ERR_USAGE, "'%s' is not an address: debug takes [HOST:]PORT, a port of 0 to 65535",
                       operand);
    if (host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")])
        return err_set(e, ERR_USAGE, "'%s' is not the name or IPv4 address of a host", host);
    return 0;
}

static bool debug_is_loopback(const char *host) {
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0;
}

/* True if the job sees the same files as we do. */
static bool debug_same_files(pid_t pid) {
    char path[64], ours[64] = "", its[64] = "";
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
    ssize_t a = readlink("/proc/self/ns/mnt", ours, sizeof ours - 1);
    ssize_t b = readlink(path, its, sizeof its - 1);
    return a > 0 && b > 0 && strcmp(ours, its) == 0;
}

/* The folders under `prefix` that contain a debugpy, one for each Python version; the job uses
 * the one of its own version. */
static void debug_find_places(struct wire_debug *out, const char *prefix) {
    char pattern[4096];
    glob_t found = {.gl_pathc = 0};
    int n = snprintf(pattern, sizeof pattern, "%s/lib/python3.*/site-packages/debugpy/server/api.py", prefix);
    if (n < 0 || (size_t)n >= sizeof pattern || glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc && out->n_places < WIRE_DEBUG_PLACES; i++) {
        size_t len = strlen(found.gl_pathv[i]) - strlen("/debugpy/server/api.py");
        const char *place = arena_strndup(&out->arena, found.gl_pathv[i], len);
        if (place)
            out->places[out->n_places++] = place;
    }
    globfree(&found);
}

/* Those of our user's own Python: of the virtual environment, and of the folders in PATH. */
static void debug_find_own(struct wire_debug *out) {
    const char *venv = getenv("VIRTUAL_ENV"), *path = getenv("PATH");
    char dir[4096];
    if (venv && venv[0] == '/')
        debug_find_places(out, venv);
    for (const char *at = path ? path : ""; *at;) {
        size_t n = strcspn(at, ":");
        if (n > 4 && n < sizeof dir && at[0] == '/' && memcmp(at + n - 4, "/bin", 4) == 0) {
            memcpy(dir, at, n - 4);
            dir[n - 4] = '\0';
            debug_find_places(out, dir);
        }
        at += n + (at[n] == ':');
    }
}

static int debug_fill(struct wire_debug *out, const struct debug_command_request *r, pid_t pid,
                      struct err *e) {
    char host[DEBUG_COMMAND_HOST_MAX], real[4096];
    long port = 0;
    if (debug_read_address(r->address, host, &port, e) != 0)
        return -1;
    if (!debug_is_loopback(host) && !r->exposed)
        return err_set(e, ERR_USAGE,
                       "%s is reachable from other machines, and anyone who connects can run code in the job "
                       "without a password: add --exposed if that is intended",
                       host);
    bool same = debug_same_files(pid);
    if (r->path && same && !realpath(r->path, real))
        return err_set(e, ERR_USAGE, "there is no folder '%s'", r->path);
    out->host = arena_strdup(&out->arena, host);
    out->port = (int)port;
    out->path = arena_strdup(&out->arena, r->path && same ? real : r->path);
    out->exposed = r->exposed;
    if (same && !r->path)
        debug_find_own(out);
    return 0;
}

static int debug_check(const struct wire_debugger *d, struct err *e) {
    char text[DEBUG_COMMAND_TEXT];
    if (d->missing && strcmp(d->missing, "debugpy") == 0)
        return err_set(
            e, ERR_FAILED,
            "the job's Python has no debugpy, and this machine has none for its version: pip install it into "
            "the job's environment, or pip install --target DIR debugpy and give --path DIR");
    if (d->missing)
        return err_set(e, ERR_FAILED,
                       "there is no debugpy in '%s' that the job sees: --path takes the folder "
                       "that holds it (pip install --target DIR debugpy)",
                       debug_command_clean(d->missing, text));
    return !d->on || (d->host && d->cwd) ? 0 : err_set(e, ERR_FAILED, "the agent did not answer");
}

/* The configuration for VS Code's launch.json. */
static void debug_put_launch(struct json *j, const struct wire_debugger *d, pid_t pid) {
    char name[64];
    snprintf(name, sizeof name, "probing: attach to %d", (int)pid);
    json_object_begin(j);
    json_kv_string(j, "name", name);
    json_kv_string(j, "type", "debugpy");
    json_kv_string(j, "request", "attach");
    json_key(j, "connect");
    json_object_begin(j);
    json_kv_string(j, "host", strcmp(d->host, DEBUG_COMMAND_ANY_HOST) == 0 ? "127.0.0.1" : d->host);
    json_kv_int(j, "port", d->port);
    json_object_end(j);
    json_kv_bool(j, "justMyCode", false);
    if (!debug_same_files(pid)) {
        json_key(j, "pathMappings");
        json_array_begin(j);
        json_object_begin(j);
        json_kv_string(j, "localRoot", "${workspaceFolder}");
        json_kv_string(j, "remoteRoot", d->cwd);
        json_object_end(j);
        json_array_end(j);
    }
    json_object_end(j);
}

static void debug_put_json(struct strbuf *out, const struct wire_debugger *d, pid_t pid) {
    struct json j;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", 1);
    json_kv_bool(&j, "listening", d->on);
    if (d->on) {
        json_kv_string(&j, "host", d->host);
        json_kv_int(&j, "port", d->port);
        json_kv_bool(&j, "client_attached", d->client);
        json_kv_string(&j, "debugpy", d->module);
        json_kv_string(&j, "debugpy_version", d->version);
        json_key(&j, "launch");
        debug_put_launch(&j, d, pid);
    }
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

static void debug_put_text(struct strbuf *out, const struct wire_debugger *d, pid_t pid) {
    char text[DEBUG_COMMAND_TEXT];
    struct json j;
    if (!d->on) {
        strbuf_adds(out, d->was ? "debugpy has ended\n" : "debugpy does not listen\n");
        if (d->other && d->other[0])
            strbuf_addf(out, "%s\n", debug_command_clean(d->other, text));
        return;
    }
    strbuf_addf(out, "debugpy listens on %s:%d, %s\n", debug_command_clean(d->host, text), d->port,
                d->client ? "a client is attached" : "no client is attached");
    strbuf_addf(out,
                "every user of %s can connect without a password and run code as %s: stop it when you are "
                "done (--off)\n",
                debug_is_loopback(d->host) ? "the job's machine" : "a machine that reaches it",
                d->user ? debug_command_clean(d->user, text) : "the job's user");
    strbuf_adds(out, "for .vscode/launch.json, in \"configurations\":\n");
    json_init(&j, out, 2);
    debug_put_launch(&j, d, pid);
    strbuf_addc(out, '\n');
    if (strcmp(d->host, DEBUG_COMMAND_ANY_HOST) == 0)
        strbuf_adds(out,
                    "from another machine, connect to a name or address of this one instead of 127.0.0.1\n");
    if (d->compiles)
        strbuf_adds(out, "breakpoints do not work in code that torch.compile has compiled\n");
}

/* Only the configuration, for the editor's file. */
static void debug_put_copy(struct strbuf *out, const struct wire_debugger *d, pid_t pid) {
    struct json j;
    if (!d->on)
        return;
    json_init(&j, out, 2);
    debug_put_launch(&j, d, pid);
    strbuf_addc(out, '\n');
}

const struct debug_command_def debug_command_debug = {
    .name = "debug",
    .command = "debug",
    .method = WIRE_DEBUG,
    .timeout_s = 30,
    .failed = "debugpy did not start",
    .ended = "it cannot be debugged",
    .who = "debugpy needs an agent",
    .fill = debug_fill,
    .check = debug_check,
    .put_text = debug_put_text,
    .put_json = debug_put_json,
    .put_copy = debug_put_copy,
};
