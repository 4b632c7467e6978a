/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_vars: see frame_vars.h. Layouts as in frames.c, locals.c and dicts.c, which do the
 * reading. torch/nn/modules/module.py (__getattr__) for where a module keeps its parts.
 */
#include "pystack/frame_vars.h"

#include <string.h>

#include "base/clock.h"
#include "pystack/locals.h"
#include "pystack/pystack_internal.h"

#define FRAME_VARS_WALK_MAX 256 /* frames walked, including those that stand for no function */
#define FRAME_VARS_TAG_INT 3U   /* Py_INT_TAG: Include/internal/pycore_stackref.h */
/* readings for which types of CPython and of libraries are believed, and the absence of a
 * variable in a function */
#define FRAME_VARS_FORGET 256
/* a function that is where it was is examined in one of so many readings, */
#define FRAME_VARS_SURE 16
#define FRAME_VARS_SURE_NS CLOCK_NS_PER_S /* and all functions after so long */
#define FRAME_VARS_ITEMS_MAX 0x10000      /* entries of a dict that are compared with an index */

void pystack_frame_vars_init(struct pystack_frame_vars *l, struct pystack *ps, const char *torch) {
    *l = (struct pystack_frame_vars){.reader.off = ps->reader.off, .max_frames = PYSTACK_FRAME_VARS_FRAMES};
    mem_init_handler(&l->mem, &ps->reader.mem);
    read_cache_init(&l->cache, &l->reader.mem, &l->mem);
    values_begin(&l->values, &l->reader, -1);
    l->values.doubts = true;
    values_set_torch(&l->values, torch);
}

void pystack_frame_vars_set_names(struct pystack_frame_vars *l, const char *const *names, size_t n) {
    memset(l->codes, 0, sizeof l->codes);
    memset(l->places, 0, sizeof l->places);
    l->n = l->n_names = 0;
    for (size_t i = 0; i < n && l->n_names < PYSTACK_FRAME_VARS_NAMES; i++) {
        size_t len = strlen(names[i]);
        char *to = l->names[l->n_names++];
        to[0] = '\0';
        if (len < PYSTACK_FRAME_VARS_NAME)
            memcpy(to, names[i], len + 1);
    }
}

/* ---- functions ---- */

/* Note the place of a name. */
static void frame_vars_put_name(struct pystack_frame_vars *l, struct pystack_frame_vars_code *c,
                                const char *name, size_t at, bool cell) {
    for (size_t i = 0; i < l->n_names; i++)
        if (c->at[i] < 0 && strcmp(l->names[i], name) == 0) {
            c->at[i] = (int32_t)at;
            c->cell[i] = cell;
        }
}

struct frame_vars_naming {
    struct pystack_frame_vars *l;
    struct pystack_frame_vars_code *c;
};

static bool frame_vars_take_name(void *arg, size_t slot, const char *name, bool cell) {
    struct frame_vars_naming *n = arg;
    frame_vars_put_name(n->l, n->c, name, slot, cell);
    return true;
}

static int frame_vars_take_entry(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                                 void *arg) {
    struct frame_vars_naming *n = arg;
    char name[PYSTACK_FRAME_VARS_NAME];
    (void)value;
    if (pystack_read_str(r, key, name, sizeof name) > 0)
        frame_vars_put_name(n->l, n->c, name, index, false);
    return 0;
}

static void frame_vars_forget_names(struct pystack_frame_vars *l, struct pystack_frame_vars_code *c) {
    for (size_t i = 0; i < l->n_names; i++)
        c->at[i] = -1;
}

/* Read the text of a str of the code object. */
static void frame_vars_read_text(struct pystack_frame_vars *l, uint64_t addr, char *buf, size_t cap) {
    if (pystack_read_str(&l->reader, addr, buf, cap) < 0)
        buf[0] = '\0';
}

/* The place for a new function: a free one, otherwise the one unused for longest. */
static struct pystack_frame_vars_code *frame_vars_reserve(struct pystack_frame_vars *l) {
    struct pystack_frame_vars_code *oldest = &l->codes[0];
    for (size_t i = 0; i < PYSTACK_FRAME_VARS_CODES; i++) {
        if (!l->codes[i].addr)
            return &l->codes[i];
        if (l->codes[i].used < oldest->used)
            oldest = &l->codes[i];
    }
    return oldest;
}

/* Read the words that identify it, without what they point to. 0, or -1 if it is not a code
 * object. */
static int frame_vars_read_words(struct pystack_frame_vars *l, uint64_t addr,
                                 struct pystack_frame_vars_words *w) {
    const struct pystack_offsets *o = &l->reader.off;
    uint8_t bytes[PYSTACK_STRUCT_MAX];
    if (!pystack_is_pointer(addr) || o->code_size > (int32_t)sizeof bytes ||
        mem_read(&l->reader.mem, addr, bytes, (size_t)o->code_size) != 0)
        return -1;
    *w = (struct pystack_frame_vars_words){.name = pystack_get_u64(bytes, o->code_name),
                                           .file = pystack_get_u64(bytes, o->code_filename),
                                           .names = pystack_get_u64(bytes, o->code_names),
                                           .flags = (uint32_t)pystack_get_i32(bytes, o->code_flags)};
    w->qualname = o->code_qualname > 0 ? pystack_get_u64(bytes, o->code_qualname) : 0;
    return 0;
}

/* Identified by its words: read what they point to, and the places of its variables. */
static void frame_vars_find_names(struct pystack_frame_vars *l, struct pystack_frame_vars_code *c) {
    frame_vars_read_text(l, c->words.name, c->func, sizeof c->func);
    frame_vars_read_text(l, c->words.file, c->file, sizeof c->file);
    c->qualname[0] = '\0';
    if (c->words.qualname)
        frame_vars_read_text(l, c->words.qualname, c->qualname, sizeof c->qualname);
    frame_vars_forget_names(l, c);
    memset(&c->dict, 0, sizeof c->dict);
    c->in_dict = pystack_locals_each_name(&l->reader, c->addr, frame_vars_take_name,
                                          &(struct frame_vars_naming){l, c}) == 1;
    c->named = l->readings;
}

/* Freed code may have been replaced by other code. Before a variable is read, once a reading,
 * the function's words are compared. What they point to may have changed as well, so that is
 * compared where it is reported: frame_vars_is_slot, frame_vars_is_who. */
static void frame_vars_make_sure(struct pystack_frame_vars *l, struct pystack_frame_vars_code *c) {
    struct pystack_frame_vars_words now = {.name = 0};
    if (c->sure == l->readings)
        return;
    c->sure = l->readings;
    if (frame_vars_read_words(l, c->addr, &now) == 0 && memcmp(&now, &c->words, sizeof now) == 0)
        return;
    c->words = now;
    frame_vars_find_names(l, c);
}

static bool frame_vars_is_text(struct pystack_frame_vars *l, uint64_t addr, const char *was, size_t cap) {
    char text[sizeof((struct pystack_frame_vars_code *)NULL)->file];
    frame_vars_read_text(l, addr, text, cap);
    return strcmp(text, was) == 0;
}

/* True if it still has the same names. */
static bool frame_vars_is_who(struct pystack_frame_vars *l, struct pystack_frame_vars_code *c) {
    frame_vars_make_sure(l, c);
    bool is =
        c->named == l->readings ||
        (frame_vars_is_text(l, c->words.name, c->func, sizeof c->func) &&
         frame_vars_is_text(l, c->words.file, c->file, sizeof c->file) &&
         (!c->words.qualname || frame_vars_is_text(l, c->words.qualname, c->qualname, sizeof c->qualname)));
    c->named = is ? l->readings : c->named;
    return is;
}

/* The function whose code object is at `addr`; NULL if there is none. A place used in this
 * reading is not given away in it. */
static struct pystack_frame_vars_code *frame_vars_find_code(struct pystack_frame_vars *l, uint64_t addr) {
    struct pystack_frame_vars_code *c = NULL;
    for (size_t i = 0; i < PYSTACK_FRAME_VARS_CODES && !c; i++)
        if (l->codes[i].addr == addr)
            c = &l->codes[i];
    if (c) {
        c->used = l->readings;
        frame_vars_make_sure(l, c);
        return c;
    }
    c = frame_vars_reserve(l);
    if (c->used == l->readings)
        return NULL;
    *c = (struct pystack_frame_vars_code){.used = l->readings, .sure = l->readings};
    if (frame_vars_read_words(l, addr, &c->words) != 0)
        return NULL;
    c->addr = addr;
    frame_vars_find_names(l, c);
    return c;
}

/* ---- frames ---- */

/* The function of the next frame, if it is the one of the previous reading, which had `n_before`
 * frames. Other code in its place is noticed before anything is reported (frame_vars_make_sure).
 * A variable that it lacked is searched for again when its turn comes. */
static struct pystack_frame_vars_code *frame_vars_same_code(struct pystack_frame_vars *l, size_t n_before,
                                                            uint64_t frame, uint64_t code) {
    const struct pystack_frame_vars_frame *before = &l->frames[l->n];
    if (l->n >= n_before || l->n % FRAME_VARS_SURE == l->readings % FRAME_VARS_SURE ||
        before->addr != frame || before->code->addr != code || before->code->used + 1 != l->readings)
        return NULL;
    before->code->used = l->readings;
    return before->code;
}

static uint64_t frame_vars_first_frame(struct pystack_frame_vars *l, uint64_t tstate) {
    const struct pystack_offsets *o = &l->reader.off;
    uint64_t frame;
    if (pystack_read_u64_at(&l->reader, tstate, o->tstate_frame, &frame) != 0)
        return 0;
    if (o->frame_style == PYSTACK_FRAME_CFRAME &&
        (!pystack_is_pointer(frame) ||
         pystack_read_u64_at(&l->reader, frame, o->cframe_current_frame, &frame) != 0))
        return 0;
    return frame;
}

size_t pystack_frame_vars_begin(struct pystack_frame_vars *l, uint64_t tstate) {
    const struct pystack_offsets *o = &l->reader.off;
    uint8_t bytes[PYSTACK_STRUCT_MAX];
    read_cache_begin(&l->cache);
    if (l->readings++ % FRAME_VARS_FORGET == 0) {
        values_forget(&l->values);
        memset(l->places, 0, sizeof l->places);
    }
    if (l->readings % (FRAME_VARS_FORGET / PYSTACK_FRAME_VARS_CODES) == 0)
        l->codes[l->readings / (FRAME_VARS_FORGET / PYSTACK_FRAME_VARS_CODES) % PYSTACK_FRAME_VARS_CODES]
            .words.names = 0;
    uint64_t now_ns = clock_mono_ns();
    bool sure = now_ns - l->sure_ns < FRAME_VARS_SURE_NS;
    l->sure_ns = sure ? l->sure_ns : now_ns;
    size_t n_before = sure ? l->n : 0;
    l->n = 0;
    uint64_t addr = frame_vars_first_frame(l, tstate);
    for (size_t i = 0; addr && i < FRAME_VARS_WALK_MAX && l->n < l->max_frames; i++) {
        struct pystack_raw_frame f = {.addr = addr};
        if (!pystack_is_pointer(addr) || mem_read(&l->reader.mem, addr, bytes, (size_t)o->frame_size) != 0)
            break;
        pystack_parse_frame(o, bytes, &f);
        struct pystack_frame_vars_code *c =
            pystack_is_shim(o, &f) ? NULL : frame_vars_same_code(l, n_before, addr, f.code);
        if (!c && !pystack_is_shim(o, &f))
            c = frame_vars_find_code(l, f.code);
        if (c)
            l->frames[l->n++] = (struct pystack_frame_vars_frame){.addr = addr, .code = c};
        addr = f.previous;
    }
    return l->n;
}

/* ---- variables ---- */

/* The dict of a module's variables; once a reading. */
static void frame_vars_open_dict(struct pystack_frame_vars *l, struct pystack_frame_vars_frame *f) {
    struct pystack_reader *r = &l->reader;
    uint64_t dict;
    f->opened = true;
    if (pystack_read_u64_at(r, f->addr, r->off.frame_locals, &dict) != 0 ||
        values_kind_of(&l->values, dict &= ~(uint64_t)r->off.tag_bits) != VALUES_DICT ||
        pystack_dict_open(r, dict, &f->table) != 0)
        return;
    f->dict = dict;
}

/* The value of the entry where the name was found, if that is still its key; otherwise 0. */
static uint64_t frame_vars_read_entry(struct pystack_frame_vars *l, const struct pystack_dict_table *t,
                                      int32_t at, size_t name) {
    struct mem *m = &l->reader.mem;
    uint64_t entry[3], value;
    char key[PYSTACK_FRAME_VARS_NAME];
    if (at < 0 || (uint32_t)at >= t->n ||
        mem_read(m, t->entries + (uint64_t)at * t->entry_size, entry, t->entry_size) != 0 ||
        pystack_read_str(&l->reader, entry[t->key_at / 8], key, sizeof key) <= 0 ||
        strcmp(key, l->names[name]) != 0)
        return 0;
    if (!t->values)
        return entry[t->value_at / 8];
    return mem_read_u64(m, t->values + 8 * (uint64_t)at, &value) == 0 ? value : 0;
}

/* The variable of a module: its place in the dict is searched for again when entries were added,
 * or another key is there. */
static uint64_t frame_vars_in_dict(struct pystack_frame_vars *l, struct pystack_frame_vars_frame *f,
                                   size_t name) {
    struct pystack_frame_vars_code *c = f->code;
    const struct pystack_dict_table *t = &f->table;
    if (!f->opened)
        frame_vars_open_dict(l, f);
    if (!f->dict)
        return 0;
    bool same = t->entries == c->dict.entries && t->n == c->dict.n && !t->values;
    uint64_t value = same ? frame_vars_read_entry(l, t, c->at[name], name) : 0;
    if (value || (same && c->at[name] < 0))
        return value;
    frame_vars_forget_names(l, c);
    struct frame_vars_naming naming = {l, c};
    pystack_dict_each(&l->reader, f->dict, frame_vars_take_entry, &naming);
    c->dict = *t;
    return frame_vars_read_entry(l, t, c->at[name], name);
}

/* True if the variable in that slot is the one found there. */
static bool frame_vars_is_slot(struct pystack_frame_vars *l, const struct pystack_frame_vars_code *c,
                               size_t name) {
    char text[PYSTACK_FRAME_VARS_NAME];
    return c->at[name] >= 0 &&
           pystack_locals_read_name(&l->reader, c->addr, (size_t)c->at[name], text, sizeof text) == 0 &&
           strcmp(text, l->names[name]) == 0;
}

uint64_t pystack_frame_vars_local(struct pystack_frame_vars *l, size_t frame, size_t name) {
    struct pystack_reader *r = &l->reader;
    struct pystack_frame_vars_frame *f = &l->frames[frame];
    uint64_t tags = (uint64_t)r->off.tag_bits, word;
    if (frame >= l->n || name >= l->n_names)
        return 0;
    frame_vars_make_sure(l, f->code);
    if (f->code->in_dict)
        return frame_vars_in_dict(l, f, name);
    if (f->code->at[name] >= 0 && !frame_vars_is_slot(l, f->code, name))
        frame_vars_find_names(l, f->code);
    if (f->code->in_dict || f->code->at[name] < 0 ||
        mem_read_u64(&r->mem, f->addr + (uint64_t)r->off.frame_localsplus + 8 * (uint64_t)f->code->at[name],
                     /* or a number, which is not an object */
                     &word) != 0 ||
        (tags == FRAME_VARS_TAG_INT && (word & tags) == FRAME_VARS_TAG_INT))
        return 0;
    word &= ~tags;
    if (word && f->code->cell[name] && values_kind_of(&l->values, word) == VALUES_CELL &&
        pystack_read_u64_at(r, word, r->off.cell_value, &word) != 0)
        return 0;
    return word & ~tags;
}

/* ---- paths ---- */

/* A part of a torch module, which its own __getattr__ would find. */
static uint64_t frame_vars_in_module(struct pystack_frame_vars *l, uint64_t object, const char *name) {
    static const char *const parts[] = {"_parameters", "_buffers", "_modules"};
    uint64_t dict, value;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (pystack_attr_find(&l->reader, object, parts[i], NULL, &dict) == 0 &&
            pystack_dict_find(&l->reader, dict, name, NULL, &value) == 0)
            return value;
    return 0;
}

struct frame_vars_index {
    struct values *v;
    int64_t wanted;
    uint64_t value;
    unsigned left;
};

static int frame_vars_match_index(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                                  void *arg) {
    struct frame_vars_index *s = arg;
    uint64_t number;
    (void)index;
    if (s->left-- == 0)
        return 1;
    if (values_kind_of(s->v, key) != VALUES_INT || pystack_read_int(r, key, &number) != 0 ||
        (int64_t)number != s->wanted)
        return 0;
    s->value = value;
    return 1;
}

static uint64_t frame_vars_at_index(struct pystack_frame_vars *l, uint64_t object, int64_t index) {
    struct pystack_reader *r = &l->reader;
    enum values_kind kind = values_kind_of(&l->values, object);
    uint64_t n, items = object + (uint64_t)r->off.tuple_items, value;
    if (kind == VALUES_DICT) {
        struct frame_vars_index s = {&l->values, index, 0, FRAME_VARS_ITEMS_MAX};
        return pystack_dict_each(r, object, frame_vars_match_index, &s) == 1 ? s.value : 0;
    }
    if ((kind != VALUES_LIST && kind != VALUES_TUPLE) ||
        pystack_read_u64_at(r, object, r->off.var_size, &n) != 0 ||
        (kind == VALUES_LIST && pystack_read_u64_at(r, object, r->off.list_items, &items) != 0))
        return 0;
    index += index < 0 ? (int64_t)n : 0;
    if (index < 0 || (uint64_t)index >= n || mem_read_u64(&r->mem, items + 8 * (uint64_t)index, &value) != 0)
        return 0;
    return value;
}

/* Where this step of a path led last; for a new one a free place, or the next to be given away. */
static uint32_t *frame_vars_place(struct pystack_frame_vars *l, const struct watch_part *part) {
    for (size_t i = 0; i < PYSTACK_FRAME_VARS_PLACES; i++)
        if (l->places[i].part == part)
            return &l->places[i].index;
    struct pystack_frame_vars_place *p = &l->places[l->next_place++ % PYSTACK_FRAME_VARS_PLACES];
    *p = (struct pystack_frame_vars_place){.part = part};
    return &p->index;
}

uint64_t pystack_frame_vars_follow(struct pystack_frame_vars *l, uint64_t object,
                                   const struct watch_part *parts, size_t n) {
    for (size_t i = 0; i < n && object; i++) {
        uint64_t value = 0;
        if (parts[i].kind == WATCH_INDEX)
            value = frame_vars_at_index(l, object, parts[i].index);
        else if (parts[i].kind == WATCH_KEY)
            value = values_kind_of(&l->values, object) == VALUES_DICT &&
                            pystack_dict_find(&l->reader, object, parts[i].name,
                                              frame_vars_place(l, &parts[i]), &value) == 0
                        ? value
                        : 0;
        else if (pystack_attr_find(&l->reader, object, parts[i].name, frame_vars_place(l, &parts[i]),
                                   &value) != 0)
            value = frame_vars_in_module(l, object, parts[i].name);
        object = value;
    }
    return object;
}

/* ---- names of functions ---- */

/* True if the file belongs to the module "a.b", whose name has `n` bytes. */
static bool frame_vars_is_module(const char *file, const char *name, size_t n) {
    char path[PYSTACK_FRAME_VARS_FUNC + 16];
    if (n >= PYSTACK_FRAME_VARS_FUNC)
        return false;
    if (n == strlen("__main__") && strncmp(name, "__main__", n) == 0)
        return true;
    path[0] = '/';
    for (size_t i = 0; i < n; i++)
        path[i + 1] = name[i] == '.' ? '/' : name[i];
    static const char *const ends[] = {".py", "/__init__.py"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        memcpy(path + n + 1, ends[i], strlen(ends[i]) + 1);
        size_t whole = strlen(path), length = strlen(file);
        if (length >= whole - 1 && strcmp(file + length - (whole - 1), path + 1) == 0 &&
            (length == whole - 1 || file[length - whole] == '/'))
            return true;
    }
    return false;
}

static bool frame_vars_is_func(const struct pystack_frame_vars_code *c, const char *func) {
    if (!func[0] || strcmp(func, c->func) == 0)
        return true;
    const char *last = strrchr(func, '.');
    if (!c->qualname[0]) /* before 3.11 */
        return last && strcmp(last + 1, c->func) == 0;
    size_t whole = strlen(func), n = strlen(c->qualname);
    if (n > whole || strcmp(func + whole - n, c->qualname) != 0)
        return false;
    return n == whole || (func[whole - n - 1] == '.' && frame_vars_is_module(c->file, func, whole - n - 1));
}

bool pystack_frame_vars_is_func(struct pystack_frame_vars *l, size_t frame, const char *func) {
    struct pystack_frame_vars_code *c = l->frames[frame].code;
    if (!frame_vars_is_func(c, func))
        return false;
    if (frame_vars_is_who(l, c))
        return true;
    frame_vars_find_names(l, c);
    return frame_vars_is_func(c, func);
}
