/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err: one error, as the user will read it.
 *
 * Filled by the call that failed, passed up unchanged. The text is one line: what failed, on
 * what, what to do. The code decides the programs' exit status. Safe in any thread; no
 * allocation.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

enum err_code {
    ERR_OK = 0,
    ERR_FAILED = 1, /* the request could not be carried out */
    ERR_USAGE = 2,  /* the command line is wrong */
    ERR_ATTACH = 3, /* the target cannot be attached to; the text says why and the remedy */
    ERR_LOST = 4,   /* the target existed and is gone */
};

struct err {
    enum err_code code;
    char text[512];
};

/* Fill `e` (which may be NULL) with a code and a formatted line. Returns -1, so that callers can
 * `return err_set(...)`. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same, with ": " and the text of errno value `errnum` appended. Returns -1. */
int err_set_errno(struct err *e, enum err_code code, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The line to show. For an error that nobody has filled, a line that says so. */
const char *err_text(const struct err *e);

/* Exit status of a program that failed: 1 failed, 2 usage, 3 cannot attach, 4 target lost. An
 * error that nobody has filled is 1. */
int err_exit_status(const struct err *e);

#endif
