/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch: what probing.torch_profiling says: whether modules are traced, and which values are watched.
 *
 * "on,exprs=loss@train,acc1@train": on or off, and expressions with commas between them. `on` enables module
 * tracing; `exprs=` works with or without it; `off` disables both. An expression is a path from a local
 * variable on, `name.attribute[0]['key']`, and after an @ the function it is a variable of: a name, or module.qualified.name;
 * without it, of whatever function has one. Paths are only ever followed in memory, so there is nothing in them to be run.
 * Pure, plain data.
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
#define WATCH_TEXT 128 /* bytes of an expression, with its NUL; of what follows its @, too */

enum watch_part_kind { WATCH_ATTRIBUTE = 0, WATCH_INDEX, WATCH_KEY };

struct watch_part {
    enum watch_part_kind kind;
    int64_t index;
    char name[WATCH_NAME]; /* of an attribute, or a key */
};

struct watch_expr {
    char name[WATCH_TEXT]; /* the path as it was written */
    char func[WATCH_TEXT]; /* "": of any function */
    size_t n;
    struct watch_part parts[WATCH_PARTS]; /* the first is the variable */
};

struct watch {
    bool on, off; /* it says so; neither: it does not */
    size_t n;
    struct watch_expr exprs[WATCH_MAX];
};

/* Take `text` apart; "" is off. 0, or -1 with ERR_USAGE, which begins with `name` (what the user knows the setting by). `w` may be
 * NULL: it is only checked. */
int watch_parse(struct watch *w, const char *name, const char *text, struct err *e);

#endif
