/* SPDX-License-Identifier: Apache-2.0 */
/* call_keywords: see call_keywords.h. Sources: torch/nn/modules/module.py (_call_impl: `kwargs`; in later versions its function
 * `inner`, which has it as a variable of a closure). */
#include "agent/torch/call_keywords.h"

#include <stdlib.h>
#include <string.h>

#include "pystack/frame_vars.h"

#define CALL_KEYWORDS_FRAMES 2 /* innermost, that are looked at */

static struct {
    struct pyapi api;
    struct pystack_frame_vars *look; /* NULL: nothing is known */
} keywords;

void call_keywords_begin(const struct pyapi *api, struct pystack *ps) {
    static const char *const names[] = {"kwargs"};
    call_keywords_end();
    keywords.api = *api;
    keywords.look = malloc(sizeof *keywords.look);
    if (!keywords.look)
        return;
    pystack_frame_vars_init(keywords.look, ps, "");
    keywords.look->max_frames = CALL_KEYWORDS_FRAMES;
    pystack_frame_vars_set_names(keywords.look, names, 1);
}

void call_keywords_end(void) {
    free(keywords.look);
    keywords.look = NULL;
}

/* Is it that of the function of torch's that calls the hooks? Its code lives as long as torch does. */
static bool keywords_is_call(const struct pystack_frame_vars_code *c) {
    static const char file[] = "torch/nn/modules/module.py";
    size_t n = strlen(c->file);
    return n >= sizeof file - 1 && strcmp(c->file + n - (sizeof file - 1), file) == 0 &&
           (strcmp(c->func, "inner") == 0 || strcmp(c->func, "_call_impl") == 0);
}

struct pyapi_object *call_keywords_get(bool *is_known) {
    struct pystack_frame_vars *l = keywords.look;
    *is_known = false;
    if (!l ||
        pystack_frame_vars_begin(l, (uint64_t)(uintptr_t)keywords.api.PyGILState_GetThisThreadState()) == 0 ||
        !keywords_is_call(l->frames[0].code))
        return NULL;
    uint64_t at = pystack_frame_vars_local(l, 0, 0);
    if (values_kind_of(&l->values, at) != VALUES_DICT)
        return NULL;
    *is_known = true;
    struct pyapi_object *found = (struct pyapi_object *)(uintptr_t)at;
    keywords.api.Py_IncRef(found);
    return found;
}
