/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line tables against what the Pythons that made them say; strings, ints, dicts, published offsets, names of versions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pystack/debug_offsets.h"
#include "pystack/discover.h"
#include "pystack/lines.h"
#include "support/pystack_image.h"

#define FIXTURE_LINE_MAX 65536

/* One row of tests/unit/pystack_lines.txt, see tools/gen_line_fixtures.py. */
struct lines_fixture {
    char name[64];
    enum pystack_line_style style;
    int first;
    uint8_t *table; /* of exactly n bytes, so that a sanitiser sees a read past its end */
    size_t n;
    const char *ranges;
};

static void parse_table(struct lines_fixture *f, const char *hex) {
    f->n = hex[0] == '-' ? 0 : strlen(hex) / 2;
    f->table = malloc(f->n ? f->n : 1);
    assert_non_null(f->table);
    for (size_t i = 0; i < f->n; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        f->table[i] = (uint8_t)byte;
    }
}

/* Call `check` with each row; their number. */
static int for_each_fixture(void (*check)(const struct lines_fixture *f, void *arg), void *arg) {
    static char line[FIXTURE_LINE_MAX], hex[FIXTURE_LINE_MAX];
    int count = 0;
    FILE *file = fopen(PROBING_SOURCE_DIR "/tests/unit/pystack_lines.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        struct lines_fixture f = {.n = 0};
        char version[16], function[32];
        int style, at = 0;
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%15s %31s %d %d %s %n", version, function, &style, &f.first, hex, &at),
                         5);
        (void)snprintf(f.name, sizeof f.name, "%s %s", version, function);
        f.style = (enum pystack_line_style)style;
        f.ranges = line + at;
        parse_table(&f, hex);
        check(&f, arg);
        free(f.table);
        count++;
    }
    (void)fclose(file);
    return count;
}

static void check_lines(const struct lines_fixture *f, void *arg) {
    int start, end, expected, used;
    for (const char *p = f->ranges; sscanf(p, "%d-%d=%d %n", &start, &end, &expected, &used) == 3;
         p += used) {
        *(int *)arg += expected == 0;
        for (int at = start; at < end; at += 2) {
            int line = pystack_find_line(f->style, f->table, f->n, f->first, at);
            if (line != expected)
                fail_msg("%s at %d: line %d, not %d", f->name, at, line, expected);
        }
    }
    assert_int_equal(pystack_find_line(f->style, f->table, f->n, f->first, -2), f->first);
}

static void test_lines_are_as_python_reads_them(void **state) {
    (void)state;
    int without = 0;
    assert_true(for_each_fixture(check_lines, &without) >= 45);
    assert_true(without > 0); /* else ranges without a line were not tried */
}

static void check_cut(const struct lines_fixture *f, void *arg) {
    (void)arg;
    for (size_t n = 0; n < f->n; n++) {
        uint8_t *exact = malloc(n ? n : 1);
        assert_non_null(exact);
        memcpy(exact, f->table, n);
        assert_true(pystack_find_line(f->style, exact, n, 1, 1 << 20) >= 0);
        free(exact);
    }
}

static void test_lines_of_a_cut_table(void **state) {
    (void)state;
    assert_true(for_each_fixture(check_cut, NULL) >= 45);
}

static void begin(struct image *img, struct pystack_reader *r, const struct pystack_offsets *off) {
    image_init(img, off);
    r->off = *off;
    image_open(img, &r->mem);
}

static void for_each_version(void (*test)(struct image *img, struct pystack_reader *r)) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    struct image *img = malloc(sizeof *img);
    struct pystack_reader r;
    assert_non_null(img);
    for (size_t i = 0; i < n; i++) {
        begin(img, &r, &rows[i]);
        test(img, &r);
    }
    free(img);
}

static void check_str(struct pystack_reader *r, uint64_t addr, const char *expected) {
    char buf[64];
    assert_int_equal(pystack_read_str(r, addr, buf, sizeof buf), strlen(expected));
    assert_string_equal(buf, expected);
}

static void check_strings(struct image *img, struct pystack_reader *r) {
    static const uint8_t latin[] = {'c', 'a', 'f', 0xe9};
    static const uint16_t two[] = {0x6f22, 'a', 0x20ac, 0xd800, 0};
    static const uint32_t four[] = {0x1f600, 0xe9, 0x110000, 'z'};
    char buf[64];
    check_str(r, image_ascii(img, "forward"), "forward");
    check_str(r, image_ascii(img, ""), "");
    check_str(r, image_str(img, 1, latin, 4), "caf\xc3\xa9");
    check_str(r, image_str(img, 2, two, 5),
              "\xe6\xbc\xa2"
              "a\xe2\x82\xac\xef\xbf\xbd\xef\xbf\xbd");
    check_str(r, image_str(img, 4, four, 4), "\xf0\x9f\x98\x80\xc3\xa9\xef\xbf\xbdz");
    /* Cut before a character that does not fit, not within it. */
    assert_int_equal(pystack_read_str(r, image_str(img, 2, two, 3), buf, 6), 4);
    assert_string_equal(buf, "\xe6\xbc\xa2"
                             "a");
    uint64_t wrong = image_ascii(img, "x");
    image_put_u64(img, wrong, r->off.str_length, 1ULL << 40);
    assert_int_equal(pystack_read_str(r, wrong, buf, sizeof buf), -1);
    wrong = image_ascii(img, "x");
    image_put_u32(img, wrong, r->off.str_state, 0);
    assert_int_equal(pystack_read_str(r, wrong, buf, sizeof buf), -1);
    assert_int_equal(pystack_read_str(r, 0, buf, sizeof buf), -1);
    assert_int_equal(pystack_read_str(r, IMAGE_BASE + IMAGE_SIZE - 8, buf, sizeof buf), -1);
}

static void test_strings_of_every_kind(void **state) {
    (void)state;
    for_each_version(check_strings);
}

static void check_long_string(struct image *img, struct pystack_reader *r) {
    static uint32_t chars[5000];
    static char buf[5000 * 3 + 1];
    for (size_t i = 0; i < 5000; i++)
        chars[i] = 0x20ac;
    uint64_t s = image_str(img, 4, chars, 5000);
    assert_int_equal(pystack_read_str(r, s, buf, sizeof buf), 15000);
    for (size_t i = 0; i < 15000; i += 3)
        assert_memory_equal(buf + i, "\xe2\x82\xac", 3);
    assert_int_equal(pystack_read_str(r, s, buf, 1000), 999);
}

static void test_strings_longer_than_a_piece(void **state) {
    (void)state;
    for_each_version(check_long_string);
}

static void check_ints(struct image *img, struct pystack_reader *r) {
    static const uint64_t values[] = {0, 1, 0x3fffffff, 0x40000000, 0x7f0000001000, UINT64_MAX};
    uint64_t v = 1;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_int_equal(pystack_read_int(r, image_int(img, values[i]), &v), 0);
        assert_true(v == values[i]);
    }
    uint64_t negative = image_int(img, 5);
    image_put_u64(img, negative, r->off.long_tag, r->off.long_size_shift ? (1 << 3) | 2 : UINT64_MAX);
    assert_int_equal(pystack_read_int(r, negative, &v), -1);
    uint64_t large = image_int(img, UINT64_MAX);
    image_put_u32(img, large, r->off.long_digits + 8, 0x3fffffff);
    assert_int_equal(pystack_read_int(r, large, &v), -1);
}

static void test_ints(void **state) {
    (void)state;
    for_each_version(check_ints);
}

static int count_entry(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value, void *arg) {
    (void)r, (void)key, (void)value;
    *(uint32_t *)arg += index + 1;
    return 0;
}

static void check_dicts(struct image *img, struct pystack_reader *r) {
    for (int general = 0; general < 2; general++) {
        struct image_pair pairs[] = {{image_ascii(img, "alpha"), 0x1110},
                                     {image_ascii(img, "gone"), 0},
                                     {image_ascii(img, "beta"), 0x2220}};
        uint64_t dict = image_dict(img, pairs, 3, general), value = 0;
        uint32_t hint = 1, sum = 0;
        assert_int_equal(pystack_dict_find(r, dict, "beta", &hint, &value), 0);
        assert_true(value == 0x2220 && hint == 2);
        assert_int_equal(pystack_dict_find(r, dict, "alpha", &hint, &value), 0); /* the hint is wrong now */
        assert_true(value == 0x1110 && hint == 0);
        assert_int_equal(pystack_dict_find(r, dict, "gone", NULL, &value), -1);
        assert_int_equal(pystack_dict_find(r, dict, "alphabet", NULL, &value), -1);
        assert_int_equal(pystack_dict_each(r, dict, count_entry, &sum), 0);
        assert_int_equal(sum, 1 + 3);
    }
    uint64_t value, empty = image_dict(img, NULL, 0, 0);
    assert_int_equal(pystack_dict_find(r, empty, "alpha", NULL, &value), -1);
    assert_int_equal(pystack_dict_find(r, 0x18, "alpha", NULL, &value), -1);
    assert_int_equal(pystack_dict_each(r, IMAGE_BASE + IMAGE_SIZE - 16, count_entry, NULL), -1);
}

static void test_dicts(void **state) {
    (void)state;
    for_each_version(check_dicts);
}

static void check_attributes(struct image *img, struct pystack_reader *r) {
    struct image_pair pairs[] = {{image_ascii(img, "_name"), 0x1110}, {image_ascii(img, "_ident"), 0x2220}};
    uint64_t object = image_instance(img, pairs, 2), value = 0;
    assert_int_equal(pystack_attr_find(r, object, "_ident", NULL, &value), 0);
    assert_true(value == 0x2220);
    assert_int_equal(pystack_attr_find(r, object, "_other", NULL, &value), -1);
    /* Once somebody asked for its __dict__ an instance has one; from then on the attributes are in there. */
    if (r->off.attr_style == PYSTACK_ATTR_DICTOFFSET)
        return;
    struct image_pair in_dict = {image_ascii(img, "_name"), 0x3330};
    image_put_u64(img, object, -32, 0);
    image_put_u64(img, object, -24, image_dict(img, &in_dict, 1, 0));
    assert_int_equal(pystack_attr_find(r, object, "_name", NULL, &value), 0);
    assert_true(value == 0x3330);
}

static void test_attributes(void **state) {
    (void)state;
    for_each_version(check_attributes);
}

/* The published offsets of 3.13, filled from the row of the table, as words. */
static void publish(const struct pystack_offsets *o, uint64_t *w) {
    memset(w, 0, PYSTACK_DEBUG_BYTES);
    memcpy(w, PYSTACK_DEBUG_COOKIE, 8);
    w[1] = 0x030d00f0;
    const uint64_t words[][2] = {
        {3, 4096},
        {4, (uint64_t)o->runtime_finalizing},
        {5, (uint64_t)o->runtime_interpreters_head},
        {6, 16384},
        {7, (uint64_t)o->interp_id},
        {8, (uint64_t)o->interp_next},
        {9, (uint64_t)o->interp_threads_head},
        {11, (uint64_t)o->interp_modules},
        {12, (uint64_t)o->interp_sysdict},
        {14, (uint64_t)o->gil},
        {15, 7000},
        {17, 7000 + (uint64_t)o->gil_locked},
        {18, 7000 + (uint64_t)o->gil_last_holder},
        {19, (uint64_t)o->tstate_size},
        {20, (uint64_t)o->tstate_prev},
        {21, (uint64_t)o->tstate_next},
        {22, (uint64_t)o->tstate_interp},
        {23, (uint64_t)o->tstate_frame},
        {24, (uint64_t)o->tstate_thread_id},
        {25, (uint64_t)o->tstate_native_thread_id},
        {26, (uint64_t)o->tstate_datastack_chunk},
        {28, (uint64_t)o->frame_size},
        {29, (uint64_t)o->frame_previous},
        {30, (uint64_t)o->frame_code},
        {31, (uint64_t)o->frame_instr},
        {33, (uint64_t)o->frame_owner},
        {34, (uint64_t)o->code_size},
        {35, (uint64_t)o->code_filename},
        {36, (uint64_t)o->code_name},
        {37, (uint64_t)o->code_qualname},
        {38, (uint64_t)o->code_linetable},
        {39, (uint64_t)o->code_firstlineno},
        {43, (uint64_t)o->code_bytes},
        {44, 16},
        {45, (uint64_t)o->object_type},
        {46, 416},
        {49, (uint64_t)o->type_flags},
        {56, 48},
        {57, (uint64_t)o->dict_keys},
        {58, (uint64_t)o->dict_values},
        {61, 32},
        {62, (uint64_t)o->long_tag},
        {63, (uint64_t)o->long_digits},
        {64, 40},
        {65, (uint64_t)o->var_size},
        {66, (uint64_t)o->bytes_data},
        {67, 64},
        {68, (uint64_t)o->str_state},
        {69, (uint64_t)o->str_length},
        {70, (uint64_t)o->str_ascii_data},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        w[words[i][0]] = words[i][1];
}

static void test_published_offsets(void **state) {
    (void)state;
    const struct pystack_offsets *row = pystack_offsets_find(3, 13, false);
    uint64_t w[PYSTACK_DEBUG_BYTES / 8];
    assert_non_null(row);
    publish(row, w);
    struct pystack_offsets off = *row;
    assert_int_equal(pystack_debug_offsets_apply((uint8_t *)w, sizeof w, &off), 0);
    assert_memory_equal(&off, row, sizeof off);
    w[24] = 176; /* tstate.thread_id elsewhere */
    w[70] = 48;  /* longer heads of strings */
    assert_int_equal(pystack_debug_offsets_apply((uint8_t *)w, sizeof w, &off), 0);
    assert_int_equal(off.tstate_thread_id, 176);
    assert_int_equal(off.str_ascii_data, 48);
    assert_int_equal(off.str_compact_data, row->str_compact_data + 8);
}

static void test_published_offsets_that_make_no_sense(void **state) {
    (void)state;
    const struct pystack_offsets *row = pystack_offsets_find(3, 13, false);
    uint64_t w[PYSTACK_DEBUG_BYTES / 8];
    struct pystack_offsets off = *row;
    /* Each size and offset that is used, made impossible in turn. */
    static const int used[] = {3,  4,  5,  6,  7,  8,  9,  11, 12, 14, 17, 18, 19, 20, 21, 22, 23,
                               24, 25, 26, 28, 29, 30, 31, 33, 34, 35, 36, 37, 38, 39, 43, 44, 45,
                               46, 49, 56, 57, 58, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70};
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
        for (int kind = 0; kind < 2; kind++) {
            publish(row, w);
            w[used[i]] = kind ? UINT64_MAX : (2U << 20) + 8;
            assert_int_equal(pystack_debug_offsets_apply((uint8_t *)w, sizeof w, &off), -1);
            assert_memory_equal(&off, row, sizeof off);
        }
    publish(row, w);
    w[2] = 1; /* free-threaded */
    assert_int_equal(pystack_debug_offsets_apply((uint8_t *)w, sizeof w, &off), -1);
    publish(row, w);
    w[1] = 0x030e00f0; /* the form of 3.14 is another */
    assert_int_equal(pystack_debug_offsets_apply((uint8_t *)w, sizeof w, &off), -1);
    publish(row, w);
    assert_int_equal(pystack_debug_offsets_apply((uint8_t *)w, sizeof w - 8, &off), -1);
}

static void test_versions_of_names(void **state) {
    (void)state;
    static const struct {
        const char *path;
        bool is;
        int major, minor;
    } names[] = {
        {"/usr/bin/python3.11", true, 3, 11},
        {"/x/libpython3.9.so.1.0", true, 3, 9},
        {"/x/libpython3.6m.so.1.0", true, 3, 6},
        {"/usr/bin/python2.7", true, 2, 7},
        {"/opt/conda/bin/python", true, 0, 0},
        {"/x/python3", true, 0, 0},
        {"/usr/lib/libpython3.so", true, 0, 0},
        {"/usr/bin/ipython3", false, 0, 0},
        {"/x/pythonw-not", false, 0, 0},
        {"/x/libpthread.so", false, 0, 0},
        {"", false, 0, 0},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int major = -1, minor = -1;
        assert_int_equal(pystack_version_of_name(names[i].path, &major, &minor), names[i].is);
        if (names[i].is) {
            assert_int_equal(major, names[i].major);
            assert_int_equal(minor, names[i].minor);
        }
    }
}

static void test_versions_of_torch(void **state) {
    (void)state;
    char buf[16];
    assert_int_equal(
        pystack_parse_torch_version("from typing import Optional\n\n__all__ = ['__version__', 'debug']\n"
                                    "__version__ = '2.13.0+cpu'\ndebug = False\n",
                                    buf, sizeof buf),
        0);
    assert_string_equal(buf, "2.13.0");
    assert_int_equal(pystack_parse_torch_version("__version__: str = \"1.13.0a0\"", buf, sizeof buf), 0);
    assert_string_equal(buf, "1.13.0a0");
    assert_int_equal(pystack_parse_torch_version("version = '1'\n__version__ = something\n", buf, sizeof buf),
                     -1);
    assert_int_equal(pystack_parse_torch_version("__version__ = '", buf, sizeof buf), -1);
    assert_int_equal(pystack_parse_torch_version("__version__ = '1234567890123456'", buf, sizeof buf), -1);
    assert_int_equal(pystack_parse_torch_version("", buf, sizeof buf), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_as_python_reads_them),
        cmocka_unit_test(test_lines_of_a_cut_table),
        cmocka_unit_test(test_strings_of_every_kind),
        cmocka_unit_test(test_strings_longer_than_a_piece),
        cmocka_unit_test(test_ints),
        cmocka_unit_test(test_dicts),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_published_offsets),
        cmocka_unit_test(test_published_offsets_that_make_no_sense),
        cmocka_unit_test(test_versions_of_names),
        cmocka_unit_test(test_versions_of_torch),
    };
    return cmocka_run_group_tests_name("pystack_reader", tests, NULL, NULL);
}
