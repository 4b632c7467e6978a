/* SPDX-License-Identifier: Apache-2.0 */
/* What torch knows of a collective, in objects made by hand as each version lays them out; and in what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/python/torch_dtypes.h"
#include "agent/torch/comm_info.h"

#define BASE 0x7f0000000000ULL
#define OBJECT 0x100 /* where things are in the memory */
#define TABLE 0x400
#define TYPE 0x440
#define CLASS 0x460
#define HEAP 0x500
#define HASHED "0123456789abcdef0123456789abcdef01234567"

static uint8_t bytes[0x4000];
static size_t heap;
static struct mem mem;
static struct comm_info info;
static struct spans_comm out;

/* As g++ lays out the class in the headers of these versions, with both kinds of strings (offsetof); 0: no such member. */
static const struct version {
    unsigned first, last;
    enum comm_info_strings strings;
    bool wide;
    uint32_t pg, rank, world, name, in, made, dtype, seq, p2p;
} versions[] = {
    {202, 202, COMM_INFO_STRINGS_NEW, false, 0, 8, 12, 16, 48, 52, 56, 0, 0},
    {202, 202, COMM_INFO_STRINGS_OLD, false, 0, 8, 12, 16, 24, 28, 32, 0, 0},
    {203, 203, COMM_INFO_STRINGS_NEW, false, 0, 12, 16, 24, 56, 60, 64, 0, 0},
    {203, 203, COMM_INFO_STRINGS_OLD, false, 0, 12, 16, 24, 32, 36, 40, 0, 0},
    {204, 204, COMM_INFO_STRINGS_NEW, false, 40, 72, 76, 80, 112, 116, 120, 0, 0},
    {204, 204, COMM_INFO_STRINGS_OLD, false, 16, 24, 28, 32, 40, 44, 48, 0, 0},
    {205, 211, COMM_INFO_STRINGS_NEW, true, 40, 72, 76, 80, 112, 120, 128, 0, 0},
    {205, 211, COMM_INFO_STRINGS_OLD, true, 16, 24, 28, 32, 40, 48, 56, 0, 0},
    {212, 213, COMM_INFO_STRINGS_NEW, true, 40, 72, 76, 80, 112, 120, 128, 224, 232},
    {212, 213, COMM_INFO_STRINGS_OLD, true, 16, 24, 28, 32, 40, 48, 56, 152, 160},
};
#define VERSIONS (sizeof versions / sizeof versions[0])

static void put(size_t at, const void *value, size_t n) {
    assert_true(at + n <= sizeof bytes);
    memcpy(bytes + at, value, n);
}

static void put_u64(size_t at, uint64_t value) { put(at, &value, sizeof value); }

static void put_i32(size_t at, int32_t value) { put(at, &value, sizeof value); }

static void put_count(const struct version *v, uint32_t at, int64_t value) {
    int32_t narrow = (int32_t)value;
    put(OBJECT + at, v->wide ? (const void *)&value : (const void *)&narrow, v->wide ? 8 : 4);
}

static void put_string(const struct version *v, uint32_t at, const char *text) {
    size_t n = strlen(text);
    if (v->strings == COMM_INFO_STRINGS_NEW && n < 16) {
        put_u64(OBJECT + at, BASE + OBJECT + at + 16);
        put_u64(OBJECT + at + 8, n);
        put(OBJECT + at + 16, text, n + 1);
        return;
    }
    if (v->strings == COMM_INFO_STRINGS_OLD) {
        put_u64(heap, n);
        heap += 24;
    }
    put(heap, text, n + 1);
    put_u64(OBJECT + at, BASE + heap);
    if (v->strings == COMM_INFO_STRINGS_NEW)
        put_u64(OBJECT + at + 8, n);
    heap += (n + 64) / 8 * 8;
}

static const char class_name[] = "N5torch19ParamCommsDebugInfoE";

/* An all_reduce of 1,000 float32 in rank 2 of the 4 of a group. */
static void make(const struct version *v, const char *pg, const char *op) {
    memset(bytes, 0xa5, sizeof bytes);
    heap = HEAP;
    mem_init_buffer(&mem, bytes, sizeof bytes, BASE);
    put_u64(OBJECT, BASE + TABLE);
    put_u64(TABLE - 8, BASE + TYPE);
    put_u64(TYPE + 8, BASE + CLASS);
    put(CLASS, class_name, sizeof class_name);
    if (v->pg)
        put_string(v, v->pg, pg);
    put_string(v, v->name, op);
    put_i32(OBJECT + v->rank, 2);
    put_i32(OBJECT + v->world, 4);
    put_count(v, v->in, 1000);
    put_count(v, v->made, 4000);
    bytes[OBJECT + v->dtype] = 6;
    if (v->seq) {
        put_u64(OBJECT + v->seq, 77);
        bytes[OBJECT + v->p2p] = 0;
    }
    assert_true(comm_info_init(&info, v->first, v->strings));
}

static bool reads(const char *span) { return comm_info_read(&info, &mem, BASE + OBJECT, span, &out); }

static void test_layouts(void **state) {
    (void)state;
    static const char *const groups[] = {"0", "fifteen bytes .", "sixteen bytes ..", HASHED};
    for (size_t i = 0; i < VERSIONS; i++)
        for (unsigned version = versions[i].first; version <= versions[i].last; version++)
            for (size_t k = 0; k < sizeof groups / sizeof groups[0]; k++) {
                const struct version *v = &versions[i];
                make(v, groups[k], "allreduce");
                assert_true(comm_info_init(&info, version, v->strings));
                for (int times = 0; times < 2; times++) {
                    assert_true(reads("nccl:all_reduce"));
                    assert_string_equal(out.pg, v->pg ? groups[k] : "");
                    assert_true(out.elements == 1000 && out.size == 4 && out.dtype == 6);
                    assert_int_equal(out.seq, v->seq ? 77 : -1);
                }
            }
    assert_int_equal(sizeof out, SPANS_NAME);
}

static void test_versions(void **state) {
    (void)state;
    static const unsigned unknown[] = {0, 113, 200, 201, 214, 300};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_false(comm_info_init(&info, unknown[i], COMM_INFO_STRINGS_NEW));
        assert_false(reads("nccl:all_reduce"));
    }
}

static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *span, *op;
        bool same;
    } pairs[] = {
        {"nccl:all_reduce", "allreduce", true},
        {"xccl:all_reduce", "allreduce", true},
        {"nccl:_all_gather_base", "_allgather_base", true},
        {"nccl:_reduce_scatter_base", "_reduce_scatter_base", true},
        {"nccl:reduce_scatter_tensor_coalesced", "reduce_scatter_tensor_coalesced", true},
        {"nccl:all_to_all", "all_to_all", true},
        {"nccl:all_to_all", "all_to_allv", true},
        {"nccl:all_reduce_barrier", "barrier", true},
        {"nccl:send 0->1", "send", true},
        {"nccl:recv 0<-1", "recv", true},
        {"nccl:recv 0<-1", "send", false},
        {"nccl:_broadcast_oop", "all_gather", false},
        {"nccl:all_reduce", "allreduc", false},
        {"nccl:all_reduce", "allreduces", false},
        {"nccl:all_reduce", "barrier", false},
        {"nccl:coalesced", "allreduce", false},
        {"nccl:", "", false},
        {"nccl:_", "_", false},
    };
    for (size_t i = 0; i < VERSIONS; i++)
        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
            make(&versions[i], "0", pairs[k].op);
            if (reads(pairs[k].span) != pairs[k].same)
                fail_msg("%s of %s, version %u", pairs[k].op, pairs[k].span, versions[i].first);
        }
    assert_true(comm_info_is_of("nccl:all_reduce") && comm_info_is_of("xccl:"));
    assert_false(comm_info_is_of("nccl") || comm_info_is_of("gloo:all_reduce") || comm_info_is_of("") ||
                 comm_info_is_of("n") || comm_info_is_of("ncclx:all_reduce"));
}

#define REFUSED(...)                                                                                         \
    do {                                                                                                     \
        make(v, "0", "allreduce");                                                                           \
        assert_true(reads("nccl:all_reduce"));                                                               \
        __VA_ARGS__;                                                                                         \
        assert_false(reads("nccl:all_reduce"));                                                              \
    } while (0)

static void test_lies(void **state) {
    (void)state;
    char many[10001];
    memset(many, 'g', sizeof many);
    many[sizeof many - 1] = '\0';
    for (size_t i = 0; i < VERSIONS; i++) {
        const struct version *v = &versions[i];
        REFUSED(put_i32(OBJECT + v->world, 0));
        REFUSED(put_i32(OBJECT + v->world, -4));
        REFUSED(put_i32(OBJECT + v->world, INT32_MAX));
        REFUSED(put_i32(OBJECT + v->rank, 4));
        REFUSED(put_i32(OBJECT + v->rank, -1));
        REFUSED(put_count(v, v->in, -1));
        REFUSED(put_count(v, v->made, -1));
        REFUSED(bytes[OBJECT + v->dtype] = 0xff);
        REFUSED(put_u64(OBJECT + v->name, 0));
        REFUSED(put_u64(OBJECT + v->name, 8));
        REFUSED(put_u64(OBJECT + v->name, UINT64_MAX));
        REFUSED(put_u64(OBJECT + v->name, BASE + sizeof bytes - 2));
        REFUSED(put_string(v, v->name, "all\nreduce"));
        REFUSED(put_string(v, v->name, "broadcast"));
        if (v->wide)
            REFUSED(put_count(v, v->in, INT64_MAX));
        if (v->pg) {
            REFUSED(put_string(v, v->pg, many));
            REFUSED(put_string(v, v->pg, HASHED "abc"));
            REFUSED(put_string(v, v->pg, "\x1b[31mred"));
            REFUSED(put_string(v, v->pg, "gr\xc3\xbcn"));
            REFUSED(put_u64(OBJECT + v->pg, 1));
        }
        if (v->strings == COMM_INFO_STRINGS_NEW) {
            REFUSED(put_u64(OBJECT + v->name + 8, UINT64_MAX));
            /* more than its own buffer has */
            REFUSED(put_u64(OBJECT + v->name + 8, 16));
        }
        if (v->seq) {
            REFUSED(put_u64(OBJECT + v->seq, (uint64_t)-2));
            REFUSED(put_u64(OBJECT + v->seq, INT64_MAX));
            REFUSED(bytes[OBJECT + v->p2p] = 2);
            put_u64(OBJECT + v->seq, UINT64_MAX);
            bytes[OBJECT + v->p2p] = 1;
            assert_true(reads("nccl:all_reduce") && out.seq == -1);
        }
        make(v, "", "allreduce");
        assert_true(reads("nccl:all_reduce") && !out.pg[0]);
    }
}

/* Another class, or none, before and after one was known. */
static void test_classes(void **state) {
    (void)state;
    const struct version *v = &versions[VERSIONS - 2];
    make(v, "0", "allreduce");
    bytes[CLASS + sizeof class_name - 2] = 'F';
    assert_false(reads("nccl:all_reduce"));
    make(v, "0", "allreduce");
    put_u64(TABLE - 8, BASE + sizeof bytes);
    assert_false(reads("nccl:all_reduce"));
    make(v, "0", "allreduce");
    put_u64(OBJECT, 0);
    assert_false(reads("nccl:all_reduce"));
    put_u64(OBJECT, BASE);
    assert_false(reads("nccl:all_reduce"));
    REFUSED(put_u64(OBJECT, BASE + TABLE + 8));
}

/* Memory that ends anywhere, and objects of random bytes. */
static void test_noise(void **state) {
    (void)state;
    srand(7);
    for (size_t i = 0; i < VERSIONS; i++) {
        make(&versions[i], HASHED, "reduce_scatter_tensor_coalesced");
        for (size_t end = 0; end < heap; end++) {
            info.class_at = end % 2 ? 0 : BASE + TABLE;
            mem_init_buffer(&mem, bytes, end, BASE);
            reads("nccl:reduce_scatter_tensor_coalesced");
        }
        for (int round = 0; round < 20000; round++) {
            make(&versions[i], "0", "allreduce");
            for (int k = rand() % 4; k >= 0; k--)
                put_u64(OBJECT + (size_t)(rand() % 31) * 8, rand() % 2
                                                                ? BASE + (uint64_t)rand() % sizeof bytes
                                                                : (uint64_t)rand() << (rand() % 32));
            if (reads("nccl:all_reduce"))
                assert_true(out.size >= 1 && out.elements >= 0 && out.seq >= -1 &&
                            memchr(out.pg, '\0', sizeof out.pg));
        }
    }
}

static void test_dtypes(void **state) {
    (void)state;
    assert_string_equal(torch_dtypes_at(15)->torch, "bfloat16");
    assert_int_equal(torch_dtypes_at(10)->bytes, 16);
    assert_null(torch_dtypes_at(12));
    assert_null(torch_dtypes_at(-1));
    assert_null(torch_dtypes_at(127));
    assert_ptr_equal(torch_dtypes_find("Float"), torch_dtypes_at(6));
    assert_null(torch_dtypes_find("QInt8"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_versions), cmocka_unit_test(test_names),
        cmocka_unit_test(test_lies),    cmocka_unit_test(test_classes),  cmocka_unit_test(test_noise),
        cmocka_unit_test(test_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
