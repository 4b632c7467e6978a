/* SPDX-License-Identifier: Apache-2.0 */
/* What names code objects: read of many at once, the same as of each by itself; and which of them are there to stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pystack/codes.h"
#include "pystack/pystack_internal.h"
#include "support/pystack_image.h"

#define KEYS 40

struct keys {
    struct image img;
    struct pystack_code_key many[KEYS], one;
    struct iovec pieces[3 * PYSTACK_CODES_AT_ONCE];
    uint8_t bytes[PYSTACK_CODES_AT_ONCE * PYSTACK_CODES_WORK_BYTES];
};

/* Code objects of three files; every seventh address is none, and the last lies at the end of what can be read. */
static void keys_make(struct keys *k, const struct pystack_offsets *off) {
    image_init(&k->img, off);
    memset(k->many, 0, sizeof k->many);
    for (size_t i = 0; i < KEYS; i++) {
        char name[32], file[32];
        (void)snprintf(name, sizeof name, "function_%zu", i);
        (void)snprintf(file, sizeof file, "/job/module_%zu.py", i % 3);
        k->many[i].addr = image_code(&k->img, name, file, (int)i + 1, 20, 2);
        if (i % 7 == 6)
            k->many[i].addr = 0x7f00deadbee0;
        if (i % 7 == 5)
            k->many[i].addr = image_ascii(&k->img, "no code");
    }
}

static void check_the_same(struct keys *k, const struct pystack_offsets *off, size_t size) {
    struct pystack_reader r = {.off = *off};
    struct pystack_codes_work work = {.pieces = k->pieces, .bytes = k->bytes};
    size_t n_codes = 0;
    keys_make(k, off);
    mem_init_buffer(&r.mem, k->img.bytes, size ? size : k->img.used, IMAGE_BASE);
    pystack_codes_read_keys(&r, k->many, KEYS, &work);
    for (size_t i = 0; i < KEYS; i++) {
        const struct pystack_code_key *key = &k->many[i];
        memset(&k->one, 0, sizeof k->one);
        bool is_code = pystack_codes_read_key(&r, key->addr, &k->one) == 0;
        assert_int_equal(is_code, key->type != 0);
        if (!is_code)
            continue;
        n_codes++;
        assert_int_equal(key->addr, k->one.addr);
        assert_int_equal(key->type, k->one.type);
        assert_int_equal(key->name, k->one.name);
        assert_int_equal(key->qualname, k->one.qualname);
        assert_int_equal(key->filename, k->one.filename);
        assert_int_equal(key->table, k->one.table);
        assert_int_equal(key->size, k->one.size);
        assert_int_equal(key->firstlineno, k->one.firstlineno);
        assert_memory_equal(&key->name_print, &k->one.name_print, sizeof key->name_print);
        assert_memory_equal(&key->file_print, &k->one.file_print, sizeof key->file_print);
        assert_memory_equal(&key->table_print, &k->one.table_print, sizeof key->table_print);
    }
    assert_true(size || n_codes > KEYS / 2);
}

static void test_many_are_as_one(void **state) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    struct keys *k = calloc(1, sizeof *k);
    (void)state;
    assert_non_null(k);
    for (size_t i = 0; i < n; i++)
        check_the_same(k, &rows[i], 0);
    free(k);
}

/* Memory that ends anywhere, within an object too. */
static void test_memory_that_ends(void **state) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    struct keys *k = calloc(1, sizeof *k);
    (void)state;
    assert_non_null(k);
    keys_make(k, &rows[n - 1]);
    size_t used = k->img.used;
    for (size_t size = 64; size < used; size += 97)
        check_the_same(k, &rows[n - 1], size);
    free(k);
}

/* Known ones are checked together: those that are the same need no more reads, and what has changed meanwhile is not believed. */
static void check_known_ones(struct keys *k, const struct pystack_offsets *off) {
    struct pystack_reader r = {.off = *off};
    struct pystack_codes codes;
    struct arena arena;
    keys_make(k, off);
    uint64_t other = image_ascii(&k->img, "other");
    int32_t name = off->code_qualname ? off->code_qualname : off->code_name;
    arena_init(&arena, 65536);
    assert_int_equal(pystack_codes_init(&codes), 0);
    mem_init_buffer(&r.mem, k->img.bytes, k->img.used, IMAGE_BASE);
    pystack_codes_begin(&codes, &arena);
    for (size_t i = 0; i < KEYS; i++)
        assert_int_equal(pystack_codes_get(&codes, &r, k->many[i].addr) != NULL, i % 7 < 5);
    image_put_u64(&k->img, k->many[8].addr + (uint64_t)name, 0, other);
    image_put_u64(&k->img, k->many[9].addr + (uint64_t)off->object_type, -8, 0);
    pystack_codes_begin(&codes, &arena);
    for (size_t i = 0; i < KEYS; i++)
        pystack_codes_expect(&codes, &r, k->many[i].addr);
    pystack_codes_check_expected(&codes, &r);
    mem_init_buffer(&r.mem, k->img.bytes, 0, IMAGE_BASE);
    for (size_t i = 0; i < KEYS; i++) {
        struct pystack_code *code = pystack_codes_get(&codes, &r, k->many[i].addr);
        char expected[32];
        (void)snprintf(expected, sizeof expected, "function_%zu", i);
        assert_int_equal(code != NULL, i % 7 < 5 && i != 8 && i != 9);
        if (code)
            assert_string_equal(pystack_code_func(&codes, code), expected);
    }
    pystack_codes_fini(&codes);
    arena_fini(&arena);
}

static void test_known_ones_are_checked_together(void **state) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    struct keys *k = calloc(1, sizeof *k);
    (void)state;
    assert_non_null(k);
    for (size_t i = 0; i < n; i++)
        if (rows[i].gil_enabled < 0)
            check_known_ones(k, &rows[i]);
    free(k);
}

/* What is at the place of a code object while its thread does something else. */
enum between {
    ITSELF,
    FREED_LAST, /* the end of a list of free blocks, */
    FREED,      /* or not its end */
    ANOTHER,
    ANOTHER_ONCE,
};

/* Have a code object described every 40 ms of a second, as a thread does that runs it. Does the cache believe in the end that it stays? */
static bool keys_stays(struct image *img, uint64_t addr, enum between between) {
    struct pystack_reader r = {.off = *img->off};
    struct pystack_codes codes;
    struct pystack_code_key key;
    struct pystack_code *code = NULL;
    uint64_t began = clock_mono_ns(), other = image_ascii(img, "other");
    int32_t name = img->off->code_qualname ? img->off->code_qualname : img->off->code_name;
    struct arena arena;
    arena_init(&arena, 65536);
    assert_int_equal(pystack_codes_init(&codes), 0);
    mem_init_buffer(&r.mem, img->bytes, img->used, IMAGE_BASE);
    assert_int_equal(pystack_codes_read_key(&r, addr, &key), 0);
    for (uint64_t i = 0; i < 25; i++) {
        uint8_t *there = img->bytes + (addr - IMAGE_BASE), before[512];
        memcpy(before, there, sizeof before);
        if (between == FREED_LAST || between == FREED)
            image_put_u64(img, addr, img->off->gil_enabled >= 0 ? img->off->object_type - 8 : 0,
                          between == FREED && img->off->gil_enabled < 0 ? 0x7f1234567890 : 0);
        if (between == ANOTHER || (between == ANOTHER_ONCE && i == 3))
            image_put_u64(img, addr, name, other);
        pystack_codes_begin(&codes, &arena);
        codes.now_ns = began + i * 40 * CLOCK_NS_PER_MS;
        code = pystack_codes_get_old(&codes, &r, addr, &key, codes.now_ns - CLOCK_NS_PER_MS);
        assert_non_null(code);
        assert_string_equal(pystack_code_func(&codes, code), "function");
        assert_false(i < 5 && pystack_code_is_settled(code));
        memcpy(there, before, sizeof before);
    }
    bool stays = pystack_code_is_settled(code);
    pystack_codes_fini(&codes);
    arena_fini(&arena);
    return stays;
}

/* Code that is made, run and dropped again and again looks the same whenever it runs. */
static void test_only_what_is_there_in_between_stays(void **state) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct image img;
        image_init(&img, &rows[i]);
        uint64_t addr = image_code(&img, "function", "/job/module.py", 1, 20, 2);
        (void)image_alloc(&img, 512); /* what is saved may reach beyond */
        for (int between = ITSELF; between <= ANOTHER_ONCE; between++)
            if (keys_stays(&img, addr, (enum between)between) != (between == ITSELF))
                fail_msg("row %zu (3.%d%s), case %d", i, rows[i].minor, rows[i].gil_enabled >= 0 ? "t" : "",
                         between);
    }
}

/* A code object in an image of its own, and a cache that has seen nothing. */
struct keys_one {
    struct image img;
    uint64_t addr;
    struct pystack_reader r;
    struct pystack_codes codes;
    struct arena arena;
};

static void keys_one_begin(struct keys_one *k, const struct pystack_offsets *off, uint32_t units) {
    image_init(&k->img, off);
    k->addr = image_code(&k->img, "function", "/job/module.py", 1, units, 2);
    (void)image_alloc(&k->img, 512); /* more than is read of an object */
    k->r = (struct pystack_reader){.off = *off};
    mem_init_buffer(&k->r.mem, k->img.bytes, k->img.used, IMAGE_BASE);
    arena_init(&k->arena, 65536);
    assert_int_equal(pystack_codes_init(&k->codes), 0);
}

static void keys_one_end(struct keys_one *k) {
    pystack_codes_fini(&k->codes);
    arena_fini(&k->arena);
}

/* One that has been the same for 9 s is believed for a second without a reading, on a stack only, and then read again. */
static void test_what_stays_is_not_read_each_time(void **state) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct keys_one k;
        keys_one_begin(&k, &rows[i], 20);
        uint64_t began = clock_mono_ns();
        for (uint64_t second = 0; second < 10; second++) {
            pystack_codes_begin(&k.codes, &k.arena);
            k.codes.now_ns = began + second * CLOCK_NS_PER_S;
            assert_non_null(pystack_codes_get_running(&k.codes, &k.r, k.addr));
        }
        mem_init_buffer(&k.r.mem, k.img.bytes, 0, IMAGE_BASE);
        for (unsigned tenth = 91; tenth < 120; tenth++) {
            pystack_codes_begin(&k.codes, &k.arena);
            k.codes.now_ns = began + tenth * CLOCK_NS_PER_S / 10;
            struct pystack_code *code = pystack_codes_get_running(&k.codes, &k.r, k.addr);
            assert_int_equal(code != NULL, tenth <= 101);
            if (code)
                assert_string_equal(pystack_code_func(&k.codes, code), "function");
            assert_null(pystack_codes_get(&k.codes, &k.r, k.addr));
        }
        keys_one_end(&k);
    }
}

#define LONG_UNITS 800 /* of code: a table that is longer than what a key holds of it */

/* Of one that has been the same for long, only what its key does not hold is read again; and what has changed there is seen. */
static void test_the_rest_of_a_table_is_read_again(void **state) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct keys_one k;
        struct pystack_code_key key;
        if (rows[i].line_style != PYSTACK_LINE_LOCATIONS)
            continue;
        keys_one_begin(&k, &rows[i], LONG_UNITS);
        pystack_codes_begin(&k.codes, &k.arena);
        uint64_t began = k.codes.now_ns, reads = k.r.mem.reads;
        struct pystack_code *code = pystack_codes_get(&k.codes, &k.r, k.addr);
        assert_non_null(code);
        reads = k.r.mem.reads - reads;
        assert_int_equal(pystack_codes_read_key(&k.r, k.addr, &key), 0);
        assert_true(key.table_print.length > PYSTACK_CODE_PRINT);
        for (unsigned second = 3; second < 30; second += 9) {
            uint64_t before = k.r.mem.reads;
            pystack_codes_begin(&k.codes, &k.arena);
            k.codes.now_ns = began + second * CLOCK_NS_PER_S;
            assert_ptr_equal(pystack_codes_get(&k.codes, &k.r, k.addr), code);
            assert_in_range(k.r.mem.reads - before, 1, reads / 2);
        }
        assert_int_equal(pystack_code_line(&k.codes, code, &k.r, 2 * (LONG_UNITS - 1)), 1);
        uint8_t *last = k.img.bytes +
                        (key.table + (uint64_t)rows[i].bytes_data + key.table_print.length - 1 - IMAGE_BASE);
        assert_int_equal(*last, 0);
        *last = 2; /* one line further */
        pystack_codes_begin(&k.codes, &k.arena);
        k.codes.now_ns = began + 60 * CLOCK_NS_PER_S;
        code = pystack_codes_get(&k.codes, &k.r, k.addr);
        assert_non_null(code);
        assert_int_equal(pystack_code_line(&k.codes, code, &k.r, 2 * (LONG_UNITS - 1)), 2);
        keys_one_end(&k);
    }
}

#define GONE 200

/* The code object number `i` that is gone, as it was described: like `there`, but at an address where nothing is now. */
static struct pystack_code *keys_get_gone(struct pystack_codes *codes, struct pystack_reader *r,
                                          const struct pystack_code_key *there, uint64_t i) {
    struct pystack_code_key then = *there;
    then.addr = 0x7f00dead0000 + i * 64;
    return pystack_codes_get_old(codes, r, then.addr, &then, codes->now_ns);
}

/* Of a file whose name is longer than what a description holds of it, the name is known from another code object. Not all of them are
 * gone through for each that is gone, and where there is none only a few times in a call. */
static void test_long_names_of_files_are_found_without_a_search(void **state) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    struct image *img = malloc(sizeof *img);
    struct pystack_codes codes;
    struct pystack_code_key there, stranger;
    struct arena arena;
    char file[2 * PYSTACK_CODE_PRINT];
    (void)state;
    assert_non_null(img);
    image_init(img, &rows[n - 1]);
    memset(file, 'x', sizeof file - 1);
    file[0] = '/';
    file[sizeof file - 1] = '\0';
    uint64_t addr = image_code(img, "function", file, 1, 20, 2);
    (void)image_alloc(img, 512); /* more than is read of an object */
    struct pystack_reader r = {.off = *img->off};
    mem_init_buffer(&r.mem, img->bytes, img->used, IMAGE_BASE);
    arena_init(&arena, sizeof *img);
    assert_int_equal(pystack_codes_init(&codes), 0);
    assert_int_equal(pystack_codes_read_key(&r, addr, &there), 0);
    pystack_codes_begin(&codes, &arena);
    assert_non_null(pystack_codes_get(&codes, &r, addr));
    for (uint64_t i = 0; i < GONE; i++) {
        struct pystack_code *code = keys_get_gone(&codes, &r, &there, i);
        assert_non_null(code);
        assert_string_equal(pystack_code_file(&codes, code), file);
    }
    assert_int_equal(codes.searches_left, PYSTACK_CODES_SEARCHES);
    /* Nobody knows this one. */
    stranger = there;
    stranger.filename += 16;
    for (uint64_t i = 0; i < GONE; i++)
        assert_null(keys_get_gone(&codes, &r, &stranger, GONE + i));
    assert_int_equal(codes.searches_left, 0);
    assert_non_null(keys_get_gone(&codes, &r, &there, 2 * GONE));
    /* Where the last of its hash is of another file it is searched for once; the one that is made of it is then the last. */
    memset(codes.by_file, 0xff, sizeof codes.by_file);
    for (size_t i = 0; i < PYSTACK_CODES_FILES; i++)
        codes.by_file[i] %= PYSTACK_CODES_SETS * PYSTACK_CODES_WAYS;
    pystack_codes_begin(&codes, &arena);
    for (uint64_t i = 0; i < GONE; i++)
        assert_non_null(keys_get_gone(&codes, &r, &there, 3 * GONE + i));
    assert_int_equal(codes.searches_left, PYSTACK_CODES_SEARCHES - 1);
    pystack_codes_fini(&codes);
    arena_fini(&arena);
    free(img);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_are_as_one),
        cmocka_unit_test(test_memory_that_ends),
        cmocka_unit_test(test_known_ones_are_checked_together),
        cmocka_unit_test(test_only_what_is_there_in_between_stays),
        cmocka_unit_test(test_what_stays_is_not_read_each_time),
        cmocka_unit_test(test_the_rest_of_a_table_is_read_again),
        cmocka_unit_test(test_long_names_of_files_are_found_without_a_search),
    };
    return cmocka_run_group_tests_name("pystack_keys", tests, NULL, NULL);
}
