/* SPDX-License-Identifier: Apache-2.0 */
/* Names of native code, and snapshots and streams with native frames made into what is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "client/symbols/native.h"
#include "client/symbols/native_worker.h"
#include "client/symbols/symbols.h"
#include "client/symbols/symbols_protocol.h"
#include "pystack/native_merge.h"

__attribute__((noinline)) int test_native_landmark(int x);

int test_native_landmark(int x) {
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

static char test_path[4096];
static uint64_t test_bias;

static int find_self(void **state) {
    Dl_info info;
    (void)state;
    ssize_t n = readlink("/proc/self/exe", test_path, sizeof test_path - 1);
    test_path[n > 0 ? n : 0] = '\0';
    if (dladdr((void *)&find_self, &info) == 0)
        return -1;
    test_bias = (uint64_t)(uintptr_t)info.dli_fbase; /* this program is position-independent */
    return n > 0 ? 0 : -1;
}

static uint64_t landmark(void) { return (uint64_t)(uintptr_t)&test_native_landmark - test_bias; }

static void test_names_and_lines(void **state) {
    struct symbols *s = symbols_new(getpid());
    (void)state;
    assert_non_null(s);
    for (int again = 0; again < 2; again++) {
        const struct symbols_place *p = symbols_find(s, test_path, landmark());
        assert_int_equal(p->role, NATIVE_ROLE_PLAIN);
        assert_int_equal(p->n, 1);
        assert_string_equal(p->list[0].func, "test_native_landmark");
        assert_non_null(p->list[0].file);
        assert_non_null(strstr(p->list[0].file, "test_client_native.c"));
        assert_true(p->list[0].line > 0);
    }
    symbols_free(s);
}

static void test_what_has_no_name(void **state) {
    struct symbols *s = symbols_new(getpid());
    static const char *const modules[] = {
        NULL, "/no/such/file", "/etc/passwd", "/dev/zero", "relative", "/usr (deleted)", ""};
    (void)state;
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        const struct symbols_place *p = symbols_find(s, modules[i], 0x1234);
        assert_int_equal(p->n, 1);
        assert_null(p->list[0].func);
        assert_null(p->list[0].file);
        assert_int_equal(p->list[0].line, 0);
    }
    assert_null(symbols_find(s, test_path, 3)->list[0].func); /* no code is there */
    assert_null(symbols_find(s, test_path, UINT64_MAX - 7)->list[0].func);
    symbols_free(s);
    s = symbols_new(0); /* whose files it would be is not known */
    assert_null(symbols_find(s, test_path, landmark())->list[0].func);
    symbols_free(s);
}

static void check_demangled(const char *symbol, const char *expected) {
    char out[128];
    symbols_demangle(symbol, out, sizeof out);
    assert_string_equal(out, expected);
}

static void test_names_as_people_write_them(void **state) {
    char small[8];
    (void)state;
    check_demangled("main", "main");
    check_demangled("_ZN2at6native3addERKNS_6TensorES3_", "at::native::add");
    check_demangled("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE",
                    "at::_ops::add_Tensor::call");
    check_demangled("clock_nanosleep@@GLIBC_2.17", "clock_nanosleep");
    check_demangled("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
    check_demangled("_Zwhatever", "_Zwhatever");
    check_demangled("_Z", "_Z");
    check_demangled("@", "@");
    symbols_demangle("_ZN2at6native3addERKNS_6TensorES3_", small, sizeof small);
    assert_string_equal(small, "_ZN2at6"); /* cut, and no name any more */
    symbols_demangle("a_long_name", small, sizeof small);
    assert_string_equal(small, "a_long_");
}

/* ---- names that are made to harm ---- */

/* The number of a substitution in base 36 (C++ ABI, 5.1.10), or of a reference back in base 62 (Rust's v0). */
static void put_number(char *out, size_t n, const char *digits, size_t base) {
    char text[24];
    size_t at = sizeof text - 1;
    text[at] = '\0';
    for (size_t left = n; left > 0; left = (left - 1) / base) {
        text[--at] = digits[(left - 1) % base];
        if (left <= base)
            break;
    }
    strcat(out, text + at);
}

/* f<a, p<a, a>, p<p<a, a>, p<a, a>>, ...>: twice as long with each level. */
static void make_cpp_bomb(char *out, size_t levels) {
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    strcpy(out, "_Z1fI1a1pIS0_S0_E");
    for (size_t i = 0; i < levels; i++) {
        strcat(out, "S1_I");
        for (int k = 0; k < 2; k++) {
            strcat(out, "S");
            put_number(out, 3 + i, digits, 36);
            strcat(out, "_");
        }
        strcat(out, "E");
    }
    strcat(out, "Evv");
}

static void make_rust_bomb(char *out, size_t levels) {
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    strcpy(out, "_RINvC1a1f");
    size_t at = strlen(out) - 2;
    strcat(out, "TyyE");
    for (size_t i = 0; i < levels; i++) {
        size_t next = strlen(out) - 2;
        strcat(out, "T");
        for (int k = 0; k < 2; k++) {
            strcat(out, "B");
            put_number(out, at, digits, 62);
            strcat(out, "_");
        }
        strcat(out, "E");
        at = next;
    }
    strcat(out, "E");
}

/* It stays as it is, at once, and the next one is a name again. */
static void check_stays(const char *symbol) {
    static char out[8192];
    uint64_t began = clock_mono_ns();
    symbols_demangle(symbol, out, sizeof out);
    assert_true(clock_mono_ns() - began <
                UINT64_C(10000000000)); /* an hour or the end of memory without a bound */
    assert_string_equal(out, symbol);
    symbols_demangle("_ZN2at6native3addERKNS_6TensorES3_", out, sizeof out);
    assert_string_equal(out, "at::native::add");
}

static void test_names_that_stand_for_terabytes(void **state) {
    static char name[2048], out[8192];
    (void)state;
    make_cpp_bomb(name, 2);
    symbols_demangle(name, out, sizeof out);
    assert_string_equal(
        out, "f<a, p<a, a>, p<p<a, a>, p<a, a> >, p<p<p<a, a>, p<a, a> >, p<p<a, a>, p<a, a> > > >");
    make_cpp_bomb(name, 40);
    assert_true(strlen(name) <= 480);
    check_stays(name);
    make_cpp_bomb(name, 150);
    check_stays(name);
    make_rust_bomb(name, 1);
    symbols_demangle(name, out, sizeof out);
    assert_non_null(strstr(out, "f::<(u64, u64), ((u64, u64), (u64, u64))>"));
    make_rust_bomb(name, 40);
    check_stays(name);
    make_rust_bomb(name, 180);
    check_stays(name);
}

static void test_names_that_are_deep(void **state) {
    static char name[2048];
    static const char *const parts[] = {"1a", "P", "I1a", "cvT_I", "F", "M1a", "A_", "DpT_", "XplL", "N1a"};
    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        static char out[8192];
        strcpy(name, i % 2 ? "_Z1f" : "_ZN");
        while (strlen(name) + strlen(parts[i]) + 2 < sizeof name)
            strcat(name, parts[i]);
        symbols_demangle(name, out, sizeof out); /* whatever it is: it ends */
        check_stays("_ZN1");
    }
}

/* ---- files that are made to harm ---- */

static char copy_path[] = "/tmp/probing-test-native-XXXXXX";

/* A copy of this program; the descriptor. */
static int copy_self(void) {
    static char piece[65536];
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to;
    ssize_t n;
    strcpy(copy_path + sizeof copy_path - 7, "XXXXXX");
    to = mkostemp(copy_path, O_CLOEXEC);
    assert_true(from >= 0 && to >= 0);
    while ((n = read(from, piece, sizeof piece)) > 0)
        assert_int_equal(write(to, piece, (size_t)n), n);
    (void)close(from);
    return to;
}

/* A child of ours: a helper. One is for names alone. */
static pid_t find_helper(pid_t but) {
    pid_t pids[8192];
    ssize_t n = procfs_list_pids(pids, 8192);
    for (ssize_t i = 0; i < n && i < 8192; i++) {
        struct procfs_stat st;
        if (pids[i] != but && procfs_read_stat(pids[i], 0, &st) == 0 && st.ppid == getpid() &&
            st.state != 'Z')
            return pids[i];
    }
    return 0;
}

static void check_self(struct symbols *s) {
    assert_string_equal(symbols_find(s, test_path, landmark())->list[0].func, "test_native_landmark");
}

static void test_a_file_that_shrinks_while_it_is_read(void **state) {
    struct symbols *s = symbols_new(getpid());
    int fd = copy_self();
    (void)state;
    assert_string_equal(symbols_find(s, copy_path, landmark())->list[0].func, "test_native_landmark");
    assert_null(symbols_take_note(s));
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_null(symbols_find(s, copy_path, landmark() + 1)->list[0].func);
    const char *note = symbols_take_note(s);
    assert_non_null(note);
    assert_non_null(strstr(note, "ended (")); /* (signal 7), where no sanitiser catches it */
    assert_non_null(strstr(note, copy_path));
    assert_null(symbols_take_note(s));
    assert_string_equal(symbols_find(s, copy_path, landmark())->list[0].func, "test_native_landmark");
    check_self(s);
    assert_null(symbols_find(s, copy_path, landmark() + 2)->list[0].func); /* it is not tried again */
    assert_null(symbols_take_note(s));
    symbols_free(s);
    (void)close(fd);
    (void)unlink(copy_path);
}

/* Bytes changed anywhere in its tables: names may be wrong or missing, this program goes on. */
static void test_files_with_garbage(void **state) {
    (void)state;
    uint64_t seed = 88172645463325252;
    for (int i = 0; i < 24; i++) {
        struct symbols *s = symbols_new(getpid());
        int fd = copy_self();
        off_t size = lseek(fd, 0, SEEK_END);
        for (int k = 0; k < 400; k++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            off_t at = (off_t)(seed % (uint64_t)size);
            at = at < 64 ? 64 : at;
            (void)!pwrite(fd, &seed, 8, k % 8 ? at : size - 64 - (off_t)(seed % 2048));
        }
        for (uint64_t a = 0; a < 8; a++)
            assert_true(symbols_find(s, copy_path, landmark() + a * 4)->n >= 1);
        symbols_free(s);
        (void)close(fd);
        (void)unlink(copy_path);
    }
}

static void test_a_helper_that_is_killed(void **state) {
    char others[3][4200]; /* other names of the same file */
    pid_t names = find_helper(0);
    struct symbols *s = symbols_new(getpid());
    (void)state;
    for (int i = 0; i < 3; i++)
        (void)snprintf(others[i], sizeof others[i], "%.*s%s", i + 1, "///", test_path);
    check_self(s);
    for (int i = 0; i < 3; i++) {
        pid_t helper = find_helper(names);
        assert_true(helper > 0);
        assert_int_equal(kill(helper, SIGKILL), 0);
        const char *last = i ? others[i - 1] : test_path;
        assert_null(symbols_find(s, last, landmark() + 1)->list[0].func);
        const char *note = symbols_take_note(s);
        assert_non_null(note);
        assert_non_null(strstr(note, "signal 9"));
        assert_int_equal(strstr(note, "no other") != NULL, i == 2);
        (void)symbols_find(s, others[i], landmark());
        check_self(s); /* what is known stays known */
    }
    assert_int_equal(find_helper(names), 0); /* not for ever */
    symbols_free(s);
}

/* ---- answers that are made to harm ---- */

struct hostile {
    struct symbols_answer head;
    char text[64];
};

static int read_hostile(const struct hostile *h, size_t len) {
    struct symbol list[SYMBOLS_MAX_INLINED];
    enum native_role role;
    struct arena text;
    arena_init(&text, 1 << 20);
    int n = symbols_answer_read(h, len, &text, list, &role);
    arena_fini(&text);
    return n;
}

static void test_answers_without_sense(void **state) {
    struct hostile good = {.head = {.what = SYMBOLS_ANSWER, .n = 1}, .text = "name"}, h = good;
    size_t len = sizeof good.head + 5;
    (void)state;
    good.head.list[0].func = 5;
    assert_int_equal(read_hostile(&good, len), 1);
    assert_int_equal(read_hostile(&good, len - 1), -1);
    assert_int_equal(read_hostile(&good, len + 1), -1);
    assert_int_equal(read_hostile(&good, 0), -1);
    h = good, h.head.what = SYMBOLS_FILE;
    assert_int_equal(read_hostile(&h, len), -1);
    h = good, h.head.n = SYMBOLS_MAX_INLINED + 1;
    assert_int_equal(read_hostile(&h, len), -1);
    h = good, h.head.role = NATIVE_ROLE_TRUNCATED;
    assert_int_equal(read_hostile(&h, len), -1);
    h = good, h.head.list[0].line = -1;
    assert_int_equal(read_hostile(&h, len), -1);
    h = good, h.text[2] = '\0';
    assert_int_equal(read_hostile(&h, len), -1);
    h = good, h.text[4] = 'x';
    assert_int_equal(read_hostile(&h, len), -1);
    h = good, h.head.list[0].func = 60000;
    assert_int_equal(read_hostile(&h, len), -1);
}

/* je to the middle of the other part, jmp to another place in it; and the same to its beginning only. */
static void test_parts_of_one_function(void **state) {
    uint8_t code[64];
    memset(code, 0x90, sizeof code);
    (void)state;
    code[3] = 0x0f;
    code[4] = 0x84;
    memcpy(code + 5, &(int32_t){0x2000 - 0x1009 + 0x10}, 4); /* 0x2010 */
    assert_false(native_code_jumps(code, sizeof code, 0x1000, 0x2000, 0x2100));
    code[20] = 0xe9;
    memcpy(code + 21, &(int32_t){0x2000 - 0x1019 + 0x20}, 4); /* 0x2020 */
    assert_true(native_code_jumps(code, sizeof code, 0x1000, 0x2000, 0x2100));
    memcpy(code + 21, &(int32_t){0x2000 - 0x1019}, 4); /* 0x2000: as any function is called */
    assert_false(native_code_jumps(code, sizeof code, 0x1000, 0x2000, 0x2100));
    assert_false(native_code_jumps(code, 3, 0x1000, 0x2000, 0x2100));
    assert_false(native_code_jumps(code, 0, 0x1000, 0x2000, 0x2100));
}

/* ---- stacks ---- */

static struct model_frame native(uint64_t address) {
    return (struct model_frame){.kind = MODEL_FRAME_NATIVE, .module = test_path, .address = address};
}

static void test_a_snapshot(void **state) {
    struct native_names *names = native_names_new(getpid());
    struct model_local item = {"x", "int", "1", MODEL_LOCAL_VARIABLE};
    struct model_locals locals = {&item, 1, false};
    const struct model_locals *of_frames[] = {NULL, NULL, &locals, NULL, NULL};
    struct model_frame frames[] = {
        native(landmark()), native(3), {.func = "f"}, {.kind = MODEL_FRAME_ENTRY}, {.func = "g"}};
    struct model_frame plain[] = {native(landmark()), {.kind = MODEL_FRAME_NATIVE}},
                       python[] = {{.func = "h"}, {.kind = MODEL_FRAME_ENTRY}};
    struct model_thread threads[] = {{.frames = frames, .n_frames = 5, .locals = of_frames},
                                     {.frames = plain, .n_frames = 2},
                                     {.frames = python, .n_frames = 2},
                                     {.n_frames = 0}};
    struct model_snapshot s = {.threads = threads, .n_threads = 4};
    (void)state;
    arena_init(&s.arena, 1 << 20);
    assert_int_equal(native_names_snapshot(names, &s), 0);
    /* No loop among the native frames, but Python frames: they do not fit. */
    assert_int_equal(threads[0].native, MODEL_NATIVE_APART);
    assert_int_equal(threads[0].n_frames, 4);
    assert_string_equal(threads[0].frames[0].func, "test_native_landmark");
    assert_int_equal(threads[0].frames[0].address, 0);
    assert_null(threads[0].frames[1].func);
    assert_int_equal(threads[0].frames[1].address, 3);
    assert_string_equal(threads[0].frames[2].func, "f");
    assert_ptr_equal(threads[0].locals[2], &locals);
    assert_null(threads[0].locals[0]);
    assert_string_equal(threads[0].frames[3].func, "g");
    assert_int_equal(threads[1].native, MODEL_NATIVE_MERGED);
    assert_int_equal(threads[1].n_frames, 2);
    assert_null(threads[1].frames[1].module);
    assert_int_equal(threads[2].native, MODEL_NATIVE_UNKNOWN);
    assert_int_equal(threads[2].n_frames, 1);
    assert_int_equal(threads[3].native, MODEL_NATIVE_UNKNOWN);
    arena_fini(&s.arena);
    native_names_free(names);
}

/* Frames 1 f, 2 entry, 3 g, 4 native; stacks 1 g, 2 g/entry, 3 f/g/entry..., as an agent sends them. */
static void fill_batch(struct model_sample_batch *b, uint32_t epoch, bool defs) {
    static struct model_frame_def frames[3];
    static struct model_stack_def stacks[] = {{1, 0, 1}, {2, 0, 2}, {3, 2, 1}, {4, 3, 3}};
    static struct model_sample samples[3];
    static struct model_thread_def threads[] = {{.tid = 7, .name = "t"}};
    frames[0] = (struct model_frame_def){1, {.func = "f", .file = "f.py", .line = 3}};
    frames[1] = (struct model_frame_def){2, {.kind = MODEL_FRAME_ENTRY}};
    frames[2] = (struct model_frame_def){3, native(landmark())};
    samples[0] = (struct model_sample){.tid = 7, .stack_id = 1, .native_id = 4};
    samples[1] = (struct model_sample){.tid = 7, .stack_id = 1};
    samples[2] = (struct model_sample){.tid = 7, .stack_id = 99};
    *b = (struct model_sample_batch){
        .epoch = epoch, .samples = samples, .n_samples = 3, .dropped = 5, .period_us = 10};
    if (defs) {
        b->frames = frames;
        b->n_frames = 3;
        b->stacks = stacks;
        b->n_stacks = 4;
        b->threads = threads;
        b->n_threads = 1;
    }
}

static void test_a_stream(void **state) {
    struct native_names *names = native_names_new(getpid());
    struct model_sample_batch in, out;
    (void)state;
    fill_batch(&in, 4, true);
    assert_int_equal(native_names_batch(names, &in, &out), 0);
    assert_int_equal(out.n_samples, 3);
    assert_int_equal(out.dropped, 5);
    assert_int_equal(out.n_threads, 1);
    assert_string_equal(out.threads[0].name, "t");
    assert_true(out.samples[0].stack_id && out.samples[1].stack_id);
    assert_int_not_equal(out.samples[0].stack_id, out.samples[1].stack_id);
    assert_int_equal(out.samples[2].stack_id, UINT32_MAX); /* a number that nobody defined */
    assert_int_equal(out.samples[0].native_id, 0);
    for (size_t i = 0; i < out.n_frames; i++)
        assert_int_not_equal(out.frames[i].frame.kind, MODEL_FRAME_ENTRY);
    size_t n_frames = out.n_frames;
    uint32_t number = out.samples[0].stack_id, epoch = out.epoch;
    assert_true(n_frames >= 3); /* f, the native one, and the mark: they do not fit together */
    model_sample_batch_fini(&out);
    fill_batch(&in, 4, false); /* nothing new */
    assert_int_equal(native_names_batch(names, &in, &out), 0);
    assert_int_equal(out.n_frames, 0);
    assert_int_equal(out.n_stacks, 0);
    assert_int_equal(out.samples[0].stack_id, number);
    assert_int_equal(out.epoch, epoch);
    model_sample_batch_fini(&out);
    fill_batch(&in, 5, false); /* another epoch: its numbers are not known */
    assert_int_equal(native_names_batch(names, &in, &out), 0);
    assert_int_equal(out.samples[0].stack_id, UINT32_MAX);
    model_sample_batch_fini(&out);
    native_names_forget(names);
    fill_batch(&in, 5, true);
    assert_int_equal(native_names_batch(names, &in, &out), 0);
    assert_int_not_equal(out.epoch, epoch); /* whoever reads it gets all definitions again */
    assert_true(out.n_frames > 0 && out.n_stacks >= out.samples[0].stack_id);
    model_sample_batch_fini(&out);
    native_names_free(names);
}

static void test_definitions_that_make_no_sense(void **state) {
    struct native_names *names = native_names_new(getpid());
    struct model_frame_def frames[] = {{0, {.func = "z"}}, {1, {.func = "f"}}};
    struct model_stack_def stacks[] = {{1, 0, 9}, {2, 7, 1}, {3, 3, 1}, {0, 0, 1}};
    struct model_sample samples[] = {
        {.native_id = 1}, {.native_id = 2}, {.native_id = 3}, {.native_id = UINT32_MAX}, {.stack_id = 0}};
    struct model_sample_batch in = {.epoch = 1,
                                    .frames = frames,
                                    .n_frames = 2,
                                    .stacks = stacks,
                                    .n_stacks = 4,
                                    .samples = samples,
                                    .n_samples = 5},
                              out;
    (void)state;
    assert_int_equal(native_names_batch(names, &in, &out), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(out.samples[i].stack_id, UINT32_MAX);
    assert_int_equal(out.samples[4].stack_id, 0);
    model_sample_batch_fini(&out);
    stacks[0].stack_id = UINT32_MAX; /* a number that nobody would have memory for */
    assert_int_equal(native_names_batch(names, &in, &out), -1);
    model_sample_batch_fini(&out);
    native_names_free(names);
}

/* What goes into the worker comes out in the same order, and no more than there is room for is taken. */
static void test_the_worker(void **state) {
    struct err e;
    struct native_worker *w = native_worker_start(getpid(), &e);
    int put = 0, got = 0;
    (void)state;
    assert_non_null(w);
    for (int i = 0; i < 3 * NATIVE_WORKER_MAX; i++) {
        struct model_snapshot s = {.seq = (uint64_t)put};
        arena_init(&s.arena, 4096);
        if (native_worker_put_snapshot(w, &s) == 0)
            put++;
    }
    assert_true(put >= NATIVE_WORKER_MAX);
    while (got < put) {
        struct native_work *work = native_worker_take(w);
        if (!work)
            (void)usleep(1000);
        while (work) {
            struct native_work *next = work->next;
            assert_int_equal(work->kind, NATIVE_WORK_SNAPSHOT);
            assert_int_equal(work->snapshot.seq, got++);
            native_work_free(work);
            work = next;
        }
    }
    assert_int_equal(native_worker_put_reply(w, WIRE_SUBSCRIBE), 0);
    native_worker_stop(w); /* with work under way */
}

int main(int argc, char **argv) {
    symbols_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_lines),
        cmocka_unit_test(test_what_has_no_name),
        cmocka_unit_test(test_names_as_people_write_them),
        cmocka_unit_test(test_names_that_stand_for_terabytes),
        cmocka_unit_test(test_names_that_are_deep),
        cmocka_unit_test(test_a_file_that_shrinks_while_it_is_read),
        cmocka_unit_test(test_files_with_garbage),
        cmocka_unit_test(test_a_helper_that_is_killed),
        cmocka_unit_test(test_answers_without_sense),
        cmocka_unit_test(test_parts_of_one_function),
        cmocka_unit_test(test_a_snapshot),
        cmocka_unit_test(test_a_stream),
        cmocka_unit_test(test_definitions_that_make_no_sense),
        cmocka_unit_test(test_the_worker),
    };
    return cmocka_run_group_tests(tests, find_self, NULL);
}
