/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch: the value of probing.torch_profiling: whether modules are traced, and which values are
 * watched.
 *
 * "on,exprs=loss@train,acc1@train": on or off, and expressions separated by commas. `on` enables
 * module tracing; `exprs=` works with or without it; `off` disables both. An expression is a
 * path from a local variable, `name.attribute[0]['key']`, and after an @ its function: a name,
 * or module.qualified.name; without it, any function. Paths are only followed in memory, so an
 * expression runs nothing. Pure, plain data.
 */
#ifndef BASE_WATCH_H
#define BASE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define WATCH_MAX 16   /* expressions */
#define WATCH_PARTS 8  /* of a path */
#define WATCH_NAME 64  /* bytes of a name in it, with its NUL */
#define WATCH_TEXT 128 /* bytes of an expression, and of the part after its @, with its NUL */

enum watch_part_kind { WATCH_ATTRIBUTE = 0, WATCH_INDEX, WATCH_KEY };

struct watch_part {
    enum watch_part_kind kind;
    int64_t index;
    char name[WATCH_NAME]; /* of an attribute, or a key */
};

struct watch_expr {
    char name[WATCH_TEXT]; /* the path as written */
    char func[WATCH_TEXT]; /* "": of any function */
    size_t n;
    struct watch_part parts[WATCH_PARTS]; /* the first is the variable */
};

struct watch {
    bool on, off; /* the text has it; both false if it has neither */
    size_t n;
    struct watch_expr exprs[WATCH_MAX];
};

/* Parse `text`; "" is off. 0, or -1 with ERR_USAGE, which begins with `name` (the setting's name
 * for the user). `w` may be NULL to check only. */
int watch_parse(struct watch *w, const char *name, const char *text, struct err *e);

#endif
