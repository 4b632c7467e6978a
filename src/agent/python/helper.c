/* SPDX-License-Identifier: Apache-2.0 */
/* helper: see helper.h. The assembler embeds the files (mk/build.mk lists them). */
#include "agent/python/helper.h"

#include <stdio.h>
#include <string.h>

#define HELPER_EMBED(name, needs)                                                                            \
    extern const char helper_source_##name[];                                                                \
    __asm__(".pushsection .rodata\n"                                                                         \
            ".global helper_source_" #name "\n"                                                              \
            ".hidden helper_source_" #name "\n"                                                              \
            ".type helper_source_" #name ", @object\n"                                                       \
            "helper_source_" #name ":\n"                                                                     \
            ".incbin \"src/agent/python/units/" #name ".py\"\n"                                              \
            ".byte 0\n"                                                                                      \
            ".size helper_source_" #name ", . - helper_source_" #name "\n"                                   \
            ".popsection\n");
HELPER_UNITS(HELPER_EMBED)
#define PYTHON_UNIT HELPER_EMBED
#include "store/ring/tables.def"

#define HELPER_ROW(unit, needed)                                                                             \
    [HELPER_##unit] = {.name = #unit, .needs = (needed), .source = helper_source_##unit},
const struct helper_unit helper_units[HELPER_COUNT] = {HELPER_UNITS(HELPER_ROW)
#define PYTHON_UNIT HELPER_ROW
#include "store/ring/tables.def"
};

size_t helper_find(const char *name) {
    size_t i = 0;
    while (i < HELPER_COUNT && strcmp(helper_units[i].name, name) != 0)
        i++;
    return i;
}

int helper_begin(struct helper *h, const struct pyapi *api) {
    if (h->globals)
        return 0;
    struct pyapi_object *builtins = api->PyEval_GetBuiltins(), *modules = api->PyImport_GetModuleDict();
    struct pyapi_object *globals = builtins && modules ? api->PyDict_New() : NULL;
    if (!globals)
        return -1;
    if (api->PyDict_SetItemString(globals, "__builtins__", builtins) != 0 ||
        api->PyDict_SetItemString(globals, "modules", modules) != 0) {
        api->Py_DecRef(globals);
        return -1;
    }
    *h = (struct helper){.globals = globals};
    return 0;
}

/* Start the unit of that name, or the first one that it needs: true if there was one to read. */
static bool helper_begin_unit(struct helper *h, const char *name) {
    size_t found = HELPER_COUNT;
    for (size_t i = helper_find(name); i < HELPER_COUNT && !h->read[i];
         i = helper_find(helper_units[i].needs))
        found = i;
    if (found == HELPER_COUNT)
        return false;
    h->read[found] = true;
    h->unread = helper_units[found].source;
    return true;
}

bool helper_read(struct helper *h, const struct pyapi *api, const char *unit) {
    char piece[HELPER_PIECE_MAX];
    if (!h->unread && (!unit || !helper_begin_unit(h, unit)))
        return false;
    const char *end = strstr(h->unread, HELPER_BETWEEN);
    size_t n = end ? (size_t)(end - h->unread) : strlen(h->unread);
    if (n < sizeof piece) {
        memcpy(piece, h->unread, n);
        piece[n] = '\0';
        struct pyapi_object *code = api->Py_CompileString(piece, "<probing>", PYAPI_FILE_INPUT);
        struct pyapi_object *result = code ? api->PyEval_EvalCode(code, h->globals, h->globals) : NULL;
        if (result)
            api->Py_DecRef(result);
        if (code)
            api->Py_DecRef(code);
        api->PyErr_Clear();
    }
    h->unread = end ? end + strlen(HELPER_BETWEEN) : NULL;
    return true;
}

struct pyapi_object *helper_get(const struct helper *h, const struct pyapi *api, const char *name) {
    return h->globals ? api->PyDict_GetItemString(h->globals, name) : NULL;
}

void helper_end(struct helper *h, const struct pyapi *api) {
    char name[64];
    for (size_t i = 0; h->globals && i < HELPER_COUNT; i++) {
        snprintf(name, sizeof name, "%s_off", helper_units[i].name);
        struct pyapi_object *off = h->read[i] ? helper_get(h, api, name) : NULL;
        struct pyapi_object *result = off ? api->PyObject_CallFunctionObjArgs(off, NULL) : NULL;
        if (result)
            api->Py_DecRef(result);
        api->PyErr_Clear();
    }
    if (h->globals)
        api->Py_DecRef(h->globals);
    *h = (struct helper){.globals = NULL};
}
