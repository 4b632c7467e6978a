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
#include "pystack/codes.h"
#include "pystack/offsets.h"
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
    assert_true(for_each_fixture(check_lines, &without) >= 108);
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

static void check_names(struct image *img, struct pystack_reader *r) {
    static const uint8_t latin[] = {'c', 'a', 'f', 0xe9};
    static const uint16_t two[] = {0x6f22, 'a'};
    uint64_t name = image_ascii(img, "forward"), empty = image_ascii(img, "");
    assert_true(pystack_str_is(r, name, "forward"));
    assert_false(pystack_str_is(r, name, "forwar"));
    assert_false(pystack_str_is(r, name, "forwards"));
    assert_false(pystack_str_is(r, name, "forwarD"));
    assert_false(pystack_str_is(r, name, ""));
    assert_true(pystack_str_is(r, empty, ""));
    assert_false(pystack_str_is(r, empty, "a"));
    assert_true(pystack_str_is(r, image_str(img, 1, latin, 4), "caf\xc3\xa9"));
    assert_false(pystack_str_is(r, image_str(img, 1, latin, 4), "cafe"));
    assert_true(pystack_str_is(r, image_str(img, 2, two, 2),
                               "\xe6\xbc\xa2"
                               "a"));
    /* a text that is longer than what is left of memory */
    uint64_t last = IMAGE_BASE + IMAGE_SIZE - (((uint64_t)r->off.str_ascii_data + 2 + 7) & ~7ULL);
    uint8_t *bytes = img->bytes + (last - IMAGE_BASE);
    memcpy(bytes, img->bytes + (image_ascii(img, "x") - IMAGE_BASE),
           (size_t)(IMAGE_BASE + IMAGE_SIZE - last));
    assert_true(pystack_str_is(r, last, "x"));
    assert_false(pystack_str_is(r, last, "xxxxxxxxxxxxxxxx"));
    assert_false(pystack_str_is(r, IMAGE_BASE + IMAGE_SIZE - 8, "x"));
    assert_false(pystack_str_is(r, 0, "x"));
    char longest[257];
    memset(longest, 'a', sizeof longest - 1);
    longest[256] = '\0';
    assert_false(pystack_str_is(r, image_ascii(img, longest), longest));
    longest[255] = '\0';
    assert_true(pystack_str_is(r, image_ascii(img, longest), longest));
}

static void test_names(void **state) {
    (void)state;
    for_each_version(check_names);
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
    image_put_u64(img, object, r->off.attr_dict ? r->off.attr_dict : -24, image_dict(img, &in_dict, 1, 0));
    assert_int_equal(pystack_attr_find(r, object, "_name", NULL, &value), 0);
    assert_true(value == 0x3330);
}

static void test_attributes(void **state) {
    (void)state;
    for_each_version(check_attributes);
}

/* One row of tests/unit/pystack_published.txt: what an interpreter publishes, by its own headers (tools/gen_offsets.py). */
struct published {
    int minor, free_threaded;
    size_t n;
    uint64_t words[PYSTACK_DEBUG_BYTES / 8];
};

/* Call `check` with each row and the row of the tables for the same build; their number. */
static int for_each_published(void (*check)(const struct published *p, const struct pystack_offsets *row)) {
    static char line[FIXTURE_LINE_MAX], hex[FIXTURE_LINE_MAX];
    struct published p;
    int count = 0;
    FILE *file = fopen(PROBING_SOURCE_DIR "/tests/unit/pystack_published.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "3.%d.%*s %d %s", &p.minor, &p.free_threaded, hex), 3);
        p.n = strlen(hex) / 2;
        assert_true(p.n <= sizeof p.words && p.n % 8 == 0);
        for (size_t i = 0; i < p.n; i++) {
            unsigned byte;
            assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
            ((uint8_t *)p.words)[i] = (uint8_t)byte;
        }
        const struct pystack_offsets *row = pystack_offsets_find(3, p.minor, p.free_threaded);
        assert_non_null(row);
        check(&p, row);
        count++;
    }
    (void)fclose(file);
    return count;
}

static void check_published(const struct published *p, const struct pystack_offsets *row) {
    struct pystack_offsets off = *row;
    /* What is published replaces whatever stood there before. */
    off.tstate_frame = off.frame_instr = off.code_name = off.interp_modules = off.str_state = off.dict_keys =
        0;
    off.gil_last_holder = off.frame_tlbc_index = off.gc_collecting = 0;
    off.gc_stats -= row->gc_collecting; /* its distance is kept, or it is published */
    if (off.gc_long_lived)
        off.gc_long_lived -= row->gc_collecting;
    off.gil_locked += 8;
    off.gil_switches += 8;
    off.tstate_datastack_chunk += 8;
    off.tstate_id += 8;
    assert_int_equal(pystack_debug_offsets_apply((const uint8_t *)p->words, p->n, &off), 0);
    assert_memory_equal(&off, row, sizeof off);
}

static void test_published_offsets(void **state) {
    (void)state;
    assert_int_equal(for_each_published(check_published), 6);
}

/* Each word made impossible in turn: it is refused, or it is one that is not used. */
static void check_impossible(const struct published *p, const struct pystack_offsets *row) {
    int refused = 0;
    for (size_t i = 0; i < p->n / 8; i++)
        for (int kind = 0; kind < 2; kind++) {
            struct published q = *p;
            struct pystack_offsets off = *row;
            q.words[i] = kind ? UINT64_MAX : (2U << 20) + 8;
            refused += pystack_debug_offsets_apply((uint8_t *)q.words, q.n, &off) != 0;
            assert_memory_equal(&off, row, sizeof off);
        }
    assert_true(refused >= 2 * 48);
}

static void check_other_build(const struct published *p, const struct pystack_offsets *row) {
    struct pystack_offsets off = *row;
    struct published q = *p;
    q.words[2] = !p->free_threaded;
    assert_int_equal(pystack_debug_offsets_apply((uint8_t *)q.words, q.n, &off), -1);
    q = *p;
    q.words[1] += 1 << 16; /* the form of the next minor version is another */
    assert_int_equal(pystack_debug_offsets_apply((uint8_t *)q.words, sizeof q.words, &off), -1);
    assert_int_equal(pystack_debug_offsets_apply((const uint8_t *)p->words, p->n - 8, &off), -1);
    assert_memory_equal(&off, row, sizeof off);
}

static void test_published_offsets_that_make_no_sense(void **state) {
    (void)state;
    assert_int_equal(for_each_published(check_impossible), 6);
    assert_int_equal(for_each_published(check_other_build), 6);
}

static void check_moved(const struct published *p, const struct pystack_offsets *row) {
    struct published q = *p;
    struct pystack_offsets off = *row;
    if (p->minor != 13)
        return;
    q.words[24] += 8; /* tstate.thread_id elsewhere */
    q.words[70] += 8; /* longer heads of strings */
    assert_int_equal(pystack_debug_offsets_apply((uint8_t *)q.words, q.n, &off), 0);
    assert_int_equal(off.tstate_thread_id, row->tstate_thread_id + 8);
    assert_int_equal(off.str_ascii_data, row->str_ascii_data + 8);
    assert_int_equal(off.str_compact_data, row->str_compact_data + 8);
}

static void test_published_offsets_are_believed(void **state) {
    (void)state;
    assert_int_equal(for_each_published(check_moved), 6);
}

/* Every supported version has its row and the other way round; what is read into a buffer fits in it. */
static void test_versions_have_offsets(void **state) {
    (void)state;
    size_t n_versions, n_rows;
    const struct pystack_version *versions = pystack_version_all(&n_versions);
    const struct pystack_offsets *rows = pystack_offsets_all(&n_rows);
    assert_int_equal(n_versions, n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        assert_int_equal(versions[i].major, rows[i].major);
        assert_int_equal(versions[i].minor, rows[i].minor);
        assert_int_equal(versions[i].free_threaded, rows[i].free_threaded);
        assert_ptr_equal(pystack_version_find(3, versions[i].minor, versions[i].free_threaded), &versions[i]);
        assert_in_range(rows[i].tstate_size, 64, PYSTACK_STRUCT_MAX);
        assert_in_range(rows[i].frame_size, 64, PYSTACK_STRUCT_MAX);
        assert_in_range(rows[i].code_size, 64, PYSTACK_STRUCT_MAX);
        assert_true(rows[i].tstate_id + 8 <= rows[i].tstate_size &&
                    rows[i].tstate_thread_id + 8 <= rows[i].tstate_size);
    }
    assert_null(pystack_version_find(3, 3, false));
    assert_null(pystack_version_find(2, 7, false));
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
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_strings_longer_than_a_piece),
        cmocka_unit_test(test_ints),
        cmocka_unit_test(test_dicts),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_published_offsets),
        cmocka_unit_test(test_published_offsets_that_make_no_sense),
        cmocka_unit_test(test_published_offsets_are_believed),
        cmocka_unit_test(test_versions_have_offsets),
        cmocka_unit_test(test_versions_of_names),
        cmocka_unit_test(test_versions_of_torch),
    };
    return cmocka_run_group_tests_name("pystack_reader", tests, NULL, NULL);
}
