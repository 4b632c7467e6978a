/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_explain: what a session says when it cannot go on, as one line for the user. Looks at procfs and the socket.
 */
#ifndef CLIENT_SESSION_SESSION_EXPLAIN_H
#define CLIENT_SESSION_SESSION_EXPLAIN_H

#include <stdbool.h>

#include "base/err.h"
#include "client/session/net_link.h"
#include "client/session/session.h"

/* Connected to but mute. `greeted`: a hello was answered before. */
void session_explain_silence(const struct target_address *addr, bool greeted, struct err *why);

/* The connection could not be made, or broke: `end` and `how` are the link's words. `farewell`: what the agent said when it left; "" nothing. */
void session_explain_unreachable(const struct target_address *addr, bool greeted, const char *farewell,
                                 enum net_link_end end, const char *how, struct err *why);

/* What came is not the protocol. */
void session_explain_protocol(const struct target_address *addr, bool greeted, const char *how,
                              struct err *why);

/* The hello was refused with `text`. */
void session_explain_refusal(const struct target_address *addr, bool version, const char *text,
                             struct err *why);

/* It is an agent, and does not let this client in. */
void session_explain_refused(const struct target_address *addr, const char *how, struct err *why);

/* It has refused a request with `text`. */
void session_explain_denial(enum wire_method method, enum wire_error code, const char *text, struct err *why);

#endif
