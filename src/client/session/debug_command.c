/* SPDX-License-Identifier: Apache-2.0 */
/* debug_command: see debug_command.h. */
#include "client/session/debug_command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/session/call.h"

void debug_command_put_literal(struct strbuf *code, const char *text) {
    (void)strbuf_adds(code, "b'");
    for (const char *c = text; *c; c++) {
        bool plain = *c > ' ' && *c < 0x7f && *c != '\'' && *c != '\\';
        if (plain)
            (void)strbuf_addc(code, *c);
        else
            (void)strbuf_addf(code, "\\x%02x", (unsigned)(unsigned char)*c);
    }
    (void)strbuf_adds(code, "'.decode('utf-8', 'surrogateescape')");
}

void debug_command_put_address(struct strbuf *code, const struct address *a) {
    char text[ADDRESS_MAX];
    address_format(a, text, sizeof text);
    char *colon = strrchr(text, ':'), *host = text;
    if (colon)
        *colon = '\0';
    if (text[0] == '[' && colon) {
        colon[-1] = '\0';
        host++;
    }
    debug_command_put_literal(code, host);
    (void)strbuf_addf(code, ", %u", address_port(a));
}

const char *debug_command_get(const struct wire_evaluated *v, const char *key, char *buf, size_t cap) {
    size_t n = strlen(key);
    for (size_t at = 0; v->result.s && at < v->result.len;) {
        const char *line = v->result.s + at, *end = memchr(line, '\n', v->result.len - at);
        size_t len = end ? (size_t)(end - line) : v->result.len - at;
        if (len > n && line[n] == ' ' && memcmp(line, key, n) == 0) {
            size_t take = len - n - 1 < cap - 1 ? len - n - 1 : cap - 1;
            memcpy(buf, line + n + 1, take);
            buf[take] = '\0';
            return buf;
        }
        at += len + 1;
    }
    return NULL;
}

const char *debug_command_get_clean(const struct wire_evaluated *v, const char *key, char *buf, size_t cap) {
    char raw[1024];
    if (!debug_command_get(v, key, raw, sizeof raw))
        return NULL;
    (void)text_sanitize(buf, cap, raw);
    return buf;
}

int debug_command_check(const struct wire_evaluated *v, double timeout_s, const char *what, struct err *e) {
    char raw[1024], text[1024];
    if (v->timed_out || v->unended)
        return err_set(e, ERR_FAILED, "%s within %g s, and was interrupted%s", what, timeout_s,
                       v->unended ? "; it has not ended yet" : "");
    if (v->type.s) { /* the name of a class of the job's */
        (void)snprintf(raw, sizeof raw, "%.*s", (int)(v->type.len < 200 ? v->type.len : 200), v->type.s);
        (void)text_sanitize(text, sizeof text, raw);
        return err_set(e, ERR_FAILED, "%s: %s", what, text);
    }
    const char *error = debug_command_get(v, "error", raw, sizeof raw);
    if (error) {
        (void)text_sanitize(text, sizeof text, error);
        return err_set(e, ERR_FAILED, "%s", text);
    }
    return 0;
}

double debug_command_left_s(const struct wire_evaluated *v) {
    char buf[64];
    return debug_command_get(v, "left", buf, sizeof buf) ? strtod(buf, NULL) : 0;
}

/* Where to connect, as arguments of nc, which takes [::1] without its brackets, and what to say there. False: there is no such place. */
static bool debug_command_get_place(const struct wire_evaluated *v, char *place, size_t cap, char *token,
                                    size_t token_cap) {
    char address[ADDRESS_MAX];
    char *port =
        debug_command_get_clean(v, "address", address, sizeof address) ? strrchr(address, ':') : NULL;
    if (!port || !debug_command_get_clean(v, "token", token, token_cap) ||
        strspn(token, "0123456789abcdef") != strlen(token))
        return false;
    bool bracketed = address[0] == '[' && port[-1] == ']';
    int n = (int)(port - address) - (bracketed ? 2 : 0);
    (void)snprintf(place, cap, "%.*s %s", n, address + (bracketed ? 1 : 0), port + 1);
    return true;
}

void debug_command_put_place(struct strbuf *out, const struct wire_evaluated *v, pid_t pid) {
    char place[ADDRESS_MAX], token[128];
    (void)pid;
    /* echo is the shell's own: the token is in no process's arguments. */
    if (debug_command_get_place(v, place, sizeof place, token, sizeof token))
        (void)strbuf_addf(out, "(echo %s; cat) | nc %s\n", token, place);
}

void debug_command_put_entry(struct strbuf *out, const struct wire_evaluated *v, pid_t pid) {
    char place[ADDRESS_MAX], token[128];
    if (!debug_command_get_place(v, place, sizeof place, token, sizeof token))
        return;
    (void)strbuf_addf(out,
                      "to connect, and to say the token as the first line:\nnc %s\n%s\nor, in one line:\n",
                      place, token);
    debug_command_put_place(out, v, pid);
}

struct wire_eval debug_command_question(const struct strbuf *code, double timeout_s, bool leased) {
    return (struct wire_eval){.code = strbuf_str(code),
                              .code_len = code->len,
                              .timeout_s = timeout_s,
                              .output_bytes = 65536,
                              .name = "<probing>",
                              .debug = true,
                              .keep = leased};
}

int debug_command_ask(struct target_address *addr, const struct strbuf *code, double timeout_s,
                      const char *what, struct strbuf *texts, struct wire_evaluated *out, struct err *e) {
    struct wire_eval want = debug_command_question(code, timeout_s, false);
    struct call *c = call_open(addr, e);
    int rc = c ? call_eval(c, &want, texts, out, e) : -1;
    call_close(c);
    return rc == 0 ? debug_command_check(out, timeout_s, what, e) : rc;
}
