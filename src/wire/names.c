/* SPDX-License-Identifier: Apache-2.0 */
/* names: methods, notifications and streams by name; see wire.h. */
#include "wire/wire.h"

struct name_row {
    const char *name, *help;
};

struct name_method {
    const char *name, *help;
    enum wire_access access;
};

#define WIRE_METHOD_NAME(id, text, what, use) [id] = {.name = (text), .help = (use), .access = (what)},
static const struct name_method name_methods[] = {WIRE_METHODS(WIRE_METHOD_NAME)};
#undef WIRE_METHOD_NAME

/* A method without an access level would be open to everyone. */
#define WIRE_METHOD_CHECK(id, text, what, use)                                                               \
    _Static_assert((what) >= WIRE_READ_ONLY && (what) <= WIRE_OWNS, "what does " text " do to the job?");
WIRE_METHODS(WIRE_METHOD_CHECK)
#undef WIRE_METHOD_CHECK

#define WIRE_NAME(id, text, what) [id] = {.name = (text), .help = (what)},
static const struct name_row name_notifications[] = {WIRE_NOTIFICATIONS(WIRE_NAME)};
#undef WIRE_NAME

static const char *const name_streams[] = {
    [WIRE_STREAM_THREADS] = "threads", [WIRE_STREAM_SAMPLES] = "samples"};

const char *wire_method_name(enum wire_method m) {
    return m < WIRE_METHOD_COUNT ? name_methods[m].name : "unknown";
}

const char *wire_method_help(enum wire_method m) { return m < WIRE_METHOD_COUNT ? name_methods[m].help : ""; }

enum wire_access wire_method_access(enum wire_method m) {
    return m < WIRE_METHOD_COUNT ? name_methods[m].access : WIRE_OWNS;
}

const char *wire_notification_name(enum wire_notification n) {
    return n < WIRE_NOTIFICATION_COUNT ? name_notifications[n].name : "unknown";
}

const char *wire_stream_name(enum wire_stream s) {
    return s < WIRE_STREAM_COUNT ? name_streams[s] : "unknown";
}
