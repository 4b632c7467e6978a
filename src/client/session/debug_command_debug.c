/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_command_debug: debugpy in the job. What is done there is python/units/debug.py's, which answers in lines "key value"; here is said what
 * to tell the editor.
 */
#include "client/session/debug_command.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"

#define DEBUG_COMMAND_HOST_MAX 256
#define DEBUG_COMMAND_ANY_HOST "0.0.0.0"

/* ---- what is asked ---- */

/* [HOST:]PORT. 0, or -1 with the error. */
static int debug_read_address(const char *operand, char *host, long *port, struct err *e) {
    const char *digits = operand ? operand : "0";
    char *end = NULL;
    (void)snprintf(host, DEBUG_COMMAND_HOST_MAX, "127.0.0.1");
    const char *colon = operand ? strrchr(operand, ':') : NULL;
    if (colon) {
        size_t n = (size_t)(colon - operand);
        if (n == 0 || n >= DEBUG_COMMAND_HOST_MAX)
            return err_set(e, ERR_USAGE, "'%s' is no address: debug takes [HOST:]PORT", operand);
        memcpy(host, operand, n);
        host[n] = '\0';
        digits = colon + 1;
    }
    *port = strtol(digits, &end, 10);
    if (end == digits || *end || digits[0] < '0' || digits[0] > '9' || *port > 65535)
        return err_set(e, ERR_USAGE, "'%s' is no address: debug takes [HOST:]PORT, a port of 0 to 65535",
                       operand);
    if (host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")])
        return err_set(e, ERR_USAGE, "'%s' is no name or IPv4 address of a host", host);
    return 0;
}

static bool debug_is_loopback(const char *host) {
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0;
}

/* Does the job see the files that we see? */
static bool debug_same_files(pid_t pid) {
    char path[64], ours[64] = "", its[64] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
    ssize_t a = readlink("/proc/self/ns/mnt", ours, sizeof ours - 1);
    ssize_t b = readlink(path, its, sizeof its - 1);
    return a > 0 && b > 0 && strcmp(ours, its) == 0;
}

/* The folders under `prefix` that hold a debugpy, a Python version each; the job takes the one of its own version. */
static void debug_put_places(struct strbuf *code, const char *prefix) {
    char pattern[4096];
    glob_t found = {.gl_pathc = 0};
    int n = snprintf(pattern, sizeof pattern, "%s/lib/python3.*/site-packages/debugpy/server/api.py", prefix);
    if (n < 0 || (size_t)n >= sizeof pattern || glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        found.gl_pathv[i][strlen(found.gl_pathv[i]) - strlen("/debugpy/server/api.py")] = '\0';
        debug_command_put_literal(code, found.gl_pathv[i]);
        (void)strbuf_adds(code, ", ");
    }
    globfree(&found);
}

/* Those of our user's own Python: of the virtual environment, and of the folders in which commands are looked for. */
static void debug_put_own(struct strbuf *code) {
    const char *venv = getenv("VIRTUAL_ENV"), *path = getenv("PATH");
    char dir[4096];
    if (venv && venv[0] == '/')
        debug_put_places(code, venv);
    for (const char *at = path ? path : ""; *at;) {
        size_t n = strcspn(at, ":");
        if (n > 4 && n < sizeof dir && at[0] == '/' && memcmp(at + n - 4, "/bin", 4) == 0) {
            memcpy(dir, at, n - 4);
            dir[n - 4] = '\0';
            debug_put_places(code, dir);
        }
        at += n + (at[n] == ':');
    }
}

static int debug_put_code(struct strbuf *code, const struct debug_command_request *o, pid_t pid,
                          struct err *e) {
    char host[DEBUG_COMMAND_HOST_MAX], real[4096];
    long port = 0;
    if (o->off || o->status) {
        if (o->address || o->path || o->exposed || (o->off && o->status))
            return err_set(e, ERR_USAGE, "--%s goes with nothing else", o->off ? "off" : "status");
        return strbuf_adds(code, o->off ? "debug_off()" : "debug_tell()");
    }
    if (debug_read_address(o->address, host, &port, e) != 0)
        return -1;
    if (!debug_is_loopback(host) && !o->exposed)
        return err_set(e, ERR_USAGE,
                       "others reach %s, and whoever connects can run code in the job, without a password: "
                       "--exposed if that is wanted",
                       host);
    bool same = debug_same_files(pid);
    if (o->path && same && !realpath(o->path, real))
        return err_set(e, ERR_USAGE, "there is no folder '%s'", o->path);
    (void)strbuf_adds(code, "debug_begin(");
    debug_command_put_literal(code, host);
    (void)strbuf_addf(code, ", %ld, ", port);
    if (o->path)
        debug_command_put_literal(code, same ? real : o->path);
    else
        (void)strbuf_adds(code, "None");
    (void)strbuf_adds(code, ", [");
    if (same && !o->path)
        debug_put_own(code);
    (void)strbuf_addf(code, "], %d)", o->exposed ? 1 : 0);
    return code->failed ? err_set(e, ERR_FAILED, "no memory") : 0;
}

/* ---- what is answered ---- */

static int debug_fail(const struct wire_evaluated *v, struct err *e) {
    char raw[1024], text[1024];
    const char *what = debug_command_get(v, "missing", raw, sizeof raw);
    if (what && strcmp(what, "debugpy") == 0)
        return err_set(
            e, ERR_FAILED,
            "the job's Python has no debugpy, and none of its version is here: pip install it into "
            "the job's environment, or pip install --target DIR debugpy and give --path DIR");
    if (what) {
        (void)text_sanitize(text, sizeof text, what);
        return err_set(e, ERR_FAILED,
                       "there is no debugpy in '%s' that the job sees: --path takes the folder "
                       "that holds it (pip install --target DIR debugpy)",
                       text);
    }
    bool whole = debug_command_get(v, "state", raw, sizeof raw);
    if (whole && strcmp(raw, "listening") == 0)
        whole = debug_command_get(v, "host", raw, sizeof raw) && debug_command_get(v, "cwd", raw, sizeof raw);
    return whole ? 0 : err_set(e, ERR_FAILED, "the agent has not answered");
}

/* The configuration of VS Code's launch.json. */
static void debug_put_launch(struct json *j, const char *host, long port, pid_t pid, const char *remote) {
    char name[64];
    (void)snprintf(name, sizeof name, "probing: attach to %d", (int)pid);
    json_object_begin(j);
    json_kv_string(j, "name", name);
    json_kv_string(j, "type", "debugpy");
    json_kv_string(j, "request", "attach");
    json_key(j, "connect");
    json_object_begin(j);
    json_kv_string(j, "host", strcmp(host, DEBUG_COMMAND_ANY_HOST) == 0 ? "127.0.0.1" : host);
    json_kv_int(j, "port", port);
    json_object_end(j);
    json_kv_bool(j, "justMyCode", false);
    if (remote) {
        json_key(j, "pathMappings");
        json_array_begin(j);
        json_object_begin(j);
        json_kv_string(j, "localRoot", "${workspaceFolder}");
        json_kv_string(j, "remoteRoot", remote);
        json_object_end(j);
        json_array_end(j);
    }
    json_object_end(j);
}

static void debug_put_json(struct strbuf *out, const struct wire_evaluated *v, pid_t pid) {
    char buf[4096], host[DEBUG_COMMAND_HOST_MAX], cwd[4096];
    struct json j;
    bool on = strcmp(debug_command_get(v, "state", buf, sizeof buf), "listening") == 0;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", 1);
    json_kv_bool(&j, "listening", on);
    const char *port = debug_command_get(v, "port", buf, sizeof buf);
    if (on && port && debug_command_get(v, "host", host, sizeof host) &&
        debug_command_get(v, "cwd", cwd, sizeof cwd)) {
        long number = strtol(port, NULL, 10);
        json_kv_string(&j, "host", host);
        json_kv_int(&j, "port", number);
        const char *client = debug_command_get(v, "client", buf, sizeof buf);
        json_kv_bool(&j, "client_attached", client && client[0] == '1');
        json_kv_string(&j, "debugpy", debug_command_get(v, "where", buf, sizeof buf));
        json_kv_string(&j, "debugpy_version", debug_command_get(v, "version", buf, sizeof buf));
        json_key(&j, "launch");
        debug_put_launch(&j, host, number, pid, debug_same_files(pid) ? NULL : cwd);
    }
    json_object_end(&j);
    (void)strbuf_addc(out, '\n');
}

static void debug_put_text(struct strbuf *out, const struct wire_evaluated *v, pid_t pid) {
    char buf[4096], host[DEBUG_COMMAND_HOST_MAX], cwd[4096], text[4096];
    struct json j;
    if (strcmp(debug_command_get(v, "state", buf, sizeof buf), "listening") != 0) {
        const char *was = debug_command_get(v, "was", buf, sizeof buf);
        (void)strbuf_adds(out, was && was[0] == '1' ? "debugpy has ended\n" : "debugpy does not listen\n");
        const char *other = debug_command_get(v, "other", buf, sizeof buf);
        if (other && other[0] && text_sanitize(text, sizeof text, other) > 0)
            (void)strbuf_addf(out, "%s\n", text);
        return;
    }
    const char *port = debug_command_get(v, "port", buf, sizeof buf);
    long number = port ? strtol(port, NULL, 10) : 0;
    (void)debug_command_get(v, "host", host, sizeof host);
    (void)text_sanitize(text, sizeof text, host);
    (void)debug_command_get(v, "cwd", cwd, sizeof cwd);
    const char *client = debug_command_get(v, "client", buf, sizeof buf);
    (void)strbuf_addf(out, "debugpy listens on %s:%ld, %s\n", text, number,
                      client && client[0] == '1' ? "a client is attached" : "no client is attached");
    char user[64];
    (void)strbuf_addf(
        out,
        "every user of %s can connect to it, without a password, and run code as %s: end it when "
        "you are done (--off)\n",
        debug_is_loopback(host) ? "the job's machine" : "a machine that reaches it",
        debug_command_get_clean(v, "user", user, sizeof user) ? user : "the job's user");
    (void)strbuf_adds(out, "for .vscode/launch.json, in \"configurations\":\n");
    json_init(&j, out, 2);
    debug_put_launch(&j, host, number, pid, debug_same_files(pid) ? NULL : cwd);
    (void)strbuf_addc(out, '\n');
    if (strcmp(host, DEBUG_COMMAND_ANY_HOST) == 0)
        (void)strbuf_adds(
            out, "from another machine, connect to a name or address of this one instead of 127.0.0.1\n");
    const char *dynamo = debug_command_get(v, "dynamo", buf, sizeof buf);
    if (dynamo && dynamo[0] == '1')
        (void)strbuf_adds(out, "breakpoints are not met in what torch.compile has compiled\n");
}

/* The configuration alone, as it goes into the editor's file. */
static void debug_put_copy(struct strbuf *out, const struct wire_evaluated *v, pid_t pid) {
    char state[32], port[32], host[DEBUG_COMMAND_HOST_MAX], cwd[4096];
    struct json j;
    if (!debug_command_get(v, "state", state, sizeof state) || strcmp(state, "listening") != 0 ||
        !debug_command_get(v, "port", port, sizeof port) ||
        !debug_command_get(v, "host", host, sizeof host) || !debug_command_get(v, "cwd", cwd, sizeof cwd))
        return;
    json_init(&j, out, 2);
    debug_put_launch(&j, host, strtol(port, NULL, 10), pid, debug_same_files(pid) ? NULL : cwd);
    (void)strbuf_addc(out, '\n');
}

const struct debug_command_def debug_command_debug = {
    .name = "debug",
    .command = "debug",
    .timeout_s = 30,
    .failed = "debugpy did not begin",
    .ended = "it cannot be debugged",
    .who = "debugpy is begun by an agent",
    .put_code = debug_put_code,
    .check = debug_fail,
    .put_text = debug_put_text,
    .put_json = debug_put_json,
    .put_copy = debug_put_copy,
};
