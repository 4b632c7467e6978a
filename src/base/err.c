/* SPDX-License-Identifier: Apache-2.0 */
/* err: see err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void err_vset(struct err *e, enum err_code code, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static void err_vset(struct err *e, enum err_code code, const char *fmt, va_list ap) {
    e->code = code;
    vsnprintf(e->text, sizeof e->text, fmt, ap);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...) {
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        err_vset(e, code, fmt, ap);
        va_end(ap);
    }
    return -1;
}

int err_set_errno(struct err *e, enum err_code code, int errnum, const char *fmt, ...) {
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        err_vset(e, code, fmt, ap);
        va_end(ap);
        size_t n = strlen(e->text);
        int saved = errno;
        errno = errnum;
        /* as strerror_r, of which each C library has another one */
        snprintf(e->text + n, sizeof e->text - n, ": %m");
        errno = saved;
    }
    return -1;
}

const char *err_text(const struct err *e) {
    return e->text[0] ? e->text : "it failed without a reason, most likely for lack of memory: try again";
}

int err_exit_status(const struct err *e) { return (int)(e->code == ERR_OK ? ERR_FAILED : e->code); }
