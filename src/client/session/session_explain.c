/* SPDX-License-Identifier: Apache-2.0 */
/* session_explain: see session_explain.h. */
#include "client/session/session_explain.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/procfs.h"
#include "client/target/tcp.h"
#include "version.h"
#include "wire/wire.h"

static const char *session_what(const struct target_address *addr, char *buf, size_t cap) {
    if (addr->pid > 0)
        (void)snprintf(buf, cap, "the agent in process %d", (int)addr->pid);
    else
        (void)snprintf(buf, cap, "the agent at %s", tcp_name(addr->path));
    return buf;
}

void session_explain_silence(const struct target_address *addr, bool greeted, struct err *why) {
    struct procfs_stat st;
    struct procfs_status status;
    char what[320];
    bool stopped =
        addr->pid > 0 && procfs_read_stat(addr->pid, 0, &st) == 0 && (st.state == 'T' || st.state == 't');
    if (stopped && procfs_read_status(addr->pid, 0, &status) == 0 && status.tracer_pid > 0)
        (void)err_set(
            why, ERR_ATTACH,
            "process %d is stopped by process %lld, which traces it, so its agent cannot answer: let "
            "it go on there",
            (int)addr->pid, (long long)status.tracer_pid);
    else if (stopped)
        (void)err_set(why, ERR_ATTACH,
                      "process %d is stopped, so its agent cannot answer: continue it (kill -CONT %d)",
                      (int)addr->pid, (int)addr->pid);
    else if (greeted)
        (void)err_set(why, ERR_FAILED, "%s does not answer", session_what(addr, what, sizeof what));
    else
        (void)err_set(why, ERR_ATTACH,
                      "%s accepts connections but does not answer as an agent does: it is none, or it hangs; "
                      "try again, or give a pid",
                      tcp_name(addr->path));
}

void session_explain_unreachable(const struct target_address *addr, bool greeted, const char *farewell,
                                 enum net_link_end end, const char *how, struct err *why) {
    char what[320];
    if (greeted && farewell[0])
        (void)err_set(why, ERR_FAILED, "%s has left: %s", session_what(addr, what, sizeof what), farewell);
    else if (greeted)
        (void)err_set(why, ERR_FAILED, "the connection to %s broke", session_what(addr, what, sizeof what));
    else if (tcp_is(addr->path))
        (void)err_set(why, ERR_ATTACH,
                      "no agent answers at %s: 'probing list' shows where those of this machine listen",
                      tcp_name(addr->path));
    else if (end == NET_LINK_NOBODY)
        (void)err_set(
            why, ERR_ATTACH,
            "nothing listens at %s: the process that made it has ended or its agent was ejected; give a pid",
            addr->path);
    else if (end == NET_LINK_BARRED)
        (void)err_set(why, ERR_ATTACH, "cannot connect to %s: %s", addr->path, how);
    else
        (void)err_set(why, ERR_ATTACH,
                      "%s closes the connection unanswered: it is no agent, or it refuses this user",
                      addr->path);
}

void session_explain_protocol(const struct target_address *addr, bool greeted, const char *how,
                              struct err *why) {
    char what[320];
    (void)err_set(why, greeted ? ERR_FAILED : ERR_ATTACH,
                  "%s does not speak %s (%s): is it an agent of another version? eject it and inject again",
                  greeted ? session_what(addr, what, sizeof what) : tcp_name(addr->path), WIRE_PROTOCOL, how);
}

void session_explain_refusal(const struct target_address *addr, bool version, const char *text,
                             struct err *why) {
    (void)err_set(why, ERR_ATTACH, "%s refuses this client (version %s): %s%s", tcp_name(addr->path),
                  PROBING_VERSION, text,
                  version ? ": eject it with the version that injected it, then inject again" : "");
}

void session_explain_refused(const struct target_address *addr, const char *how, struct err *why) {
    (void)err_set(why, ERR_ATTACH, "the agent at %s does not let this client in: %s", tcp_name(addr->path),
                  how);
}

void session_explain_denial(enum wire_method method, enum wire_error code, const char *text,
                            struct err *why) {
    bool runs = method == WIRE_EVAL || method == WIRE_COMPLETE || method == WIRE_DEBUG ||
                method == WIRE_PAUSE || method == WIRE_CATCH;
    if (code == WIRE_E_NOT_ALLOWED && runs)
        (void)err_set(why, ERR_FAILED, "no code is run: %s", text);
    else
        (void)err_set(why, ERR_FAILED, "the agent refuses '%s': %s", wire_method_name(method), text);
}
