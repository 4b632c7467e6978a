/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of many ranks merged: known cases; any stacks beside an oracle that writes each path as a text and compares texts; and as many
 * classes as a large job may have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/fleet/stack_classes.h"

#define RANKS 60
#define DEPTH 9
#define PATH 1024

/* Files, what counts of their paths, and whether their lines do. */
static const struct {
    const char *path, *file;
    bool own;
} files[] = {
    {"/home/ann/job/train.py", "ann/job/train.py", true},
    {"/mnt/nodes/7/home/ann/job/train.py", "ann/job/train.py", true},
    {"/home/ann/other/train.py", "ann/other/train.py", true},
    {"train.py", "train.py", true},
    {"/usr/lib/python3.11/threading.py", "threading.py", false},
    {"/opt/conda/lib/python3.12/threading.py", "threading.py", false},
    {"/opt/conda/lib/python3.12/site-packages/torch/nn/modules/module.py", "torch/nn/modules/module.py",
     false},
    {"/usr/lib/python3/dist-packages/torch/nn/modules/module.py", "torch/nn/modules/module.py", false},
    {"<frozen runpy>", "<frozen runpy>", false},
    {NULL, "", false},
};
#define FILES (sizeof files / sizeof files[0])

static const char *const functions[] = {"main", "step", "Queue.get", "forward", NULL};
#define FUNCTIONS (sizeof functions / sizeof functions[0])

static struct model_frame frames[RANKS][DEPTH];
static struct rank_stack list[RANKS];
static char paths[RANKS][PATH]; /* outermost first; "" without frames */

static void put_part(char *path, const char *func, const char *file, int line) {
    size_t at = strlen(path);
    (void)snprintf(path + at, PATH - at, "%s %s:%d;", func, file, line);
}

/* A stack of frames that few choices make often equal; the oracle's path of it. */
static void make(size_t i, int choices) {
    size_t n = (size_t)(rand() % DEPTH);
    list[i] = (struct rank_stack){.rank = (int32_t)i, .frames = frames[i], .n = n};
    paths[i][0] = '\0';
    for (size_t k = n; k-- > 0;) {
        size_t file = (size_t)(rand() % choices) % FILES, func = (size_t)(rand() % choices) % FUNCTIONS;
        struct model_frame *f = &frames[i][k];
        *f = (struct model_frame){.func = functions[func], .file = files[file].path, .line = 1 + rand() % 2};
        f->kind = rand() % 8 ? MODEL_FRAME_PYTHON : MODEL_FRAME_ENTRY;
        if (f->kind == MODEL_FRAME_PYTHON)
            put_part(paths[i], f->func ? f->func : "", files[file].file, files[file].own ? f->line : 0);
    }
}

static void path_of(const struct stack_classes *c, uint32_t node, char *path) {
    const struct stack_node *s = &c->nodes[node];
    if (node == STACK_CLASSES_ROOT)
        path[0] = '\0';
    else {
        path_of(c, s->parent, path);
        put_part(path, s->func, s->file, s->line);
    }
}

/* The ranks whose path is that text, or begins with it. */
static void expect_ranks(const struct stack_classes *c, uint32_t node, bool here, size_t n) {
    struct rank_set set = {.n = 0};
    char path[PATH];
    path_of(c, node, path);
    assert_int_equal(stack_classes_ranks(c, node, here, &set), 0);
    int32_t count = 0;
    for (size_t i = 0; i < n; i++) {
        bool in = here ? strcmp(paths[i], path) == 0 : strncmp(paths[i], path, strlen(path)) == 0;
        assert_int_equal(rank_set_has(&set, (int32_t)i), in);
        count += in;
    }
    assert_int_equal(rank_set_count(&set), count);
    assert_int_equal(here ? c->nodes[node].n_here : c->nodes[node].n, count);
    rank_set_fini(&set);
}

static void expect_tree(const struct stack_classes *c, size_t n) {
    size_t seen = 0;
    for (uint32_t i = STACK_CLASSES_ROOT; i != STACK_CLASSES_NONE; i = stack_classes_walk(c, i, false)) {
        const struct stack_node *s = &c->nodes[i];
        expect_ranks(c, i, false, n);
        expect_ranks(c, i, true, n);
        assert_int_equal(s->depth, i == STACK_CLASSES_ROOT ? 0 : c->nodes[s->parent].depth + 1);
        if (i != STACK_CLASSES_ROOT && s->next != STACK_CLASSES_NONE) {
            assert_int_equal(c->nodes[s->next].parent, s->parent);
            assert_true(c->nodes[s->next].n <= s->n);
        }
        seen++;
    }
    assert_int_equal(seen, c->n_nodes);
}

static void expect_classes(const struct stack_classes *c, size_t n) {
    size_t distinct = 0;
    for (size_t i = 0; i < n; i++) {
        size_t first = 0;
        while (strcmp(paths[first], paths[i]) != 0)
            first++;
        distinct += first == i;
    }
    assert_int_equal(c->n_classes, distinct);
    for (size_t k = 0; k < c->n_classes; k++) {
        const struct stack_node *s = &c->nodes[c->classes[k]];
        assert_int_equal(s->class_number, k);
        assert_true(s->n_here > 0);
        for (uint32_t r = s->first; r < s->first + s->n_here; r++) {
            const struct rank_stack *in = &list[c->inputs[r]];
            assert_int_equal(in->rank, c->ranks[r]);
            assert_int_equal(stack_classes_hash(in->frames, in->n), s->id);
            assert_true(r == s->first || c->ranks[r - 1] < c->ranks[r]);
        }
        if (k > 0) {
            const struct stack_node *before = &c->nodes[c->classes[k - 1]];
            assert_true(before->n_here < s->n_here ||
                        (before->n_here == s->n_here && c->ranks[before->first] < c->ranks[s->first]));
        }
    }
}

static void test_against_texts(void **state) {
    (void)state;
    struct stack_classes c = {.n_nodes = 0};
    srand(11);
    for (int round = 0; round < 600; round++) {
        size_t n = (size_t)(rand() % (RANKS + 1));
        for (size_t i = 0; i < n; i++)
            make(i, 1 + round % 12);
        assert_int_equal(stack_classes_build(&c, list, n), 0);
        assert_int_equal(c.n_ranks, n);
        expect_tree(&c, n);
        expect_classes(&c, n);
    }
    stack_classes_fini(&c);
}

/* Stacks as people write them: "main train.py:3; step train.py:9", the outermost first. */
static void test_hang(void **state) {
    (void)state;
    struct stack_classes c = {.n_nodes = 0};
    struct rank_set set = {.n = 0};
    struct model_frame waits[] = {
        {.func = "all_reduce", .file = "/v/lib/python3.11/site-packages/torch/d.py", .line = 5},
        {.func = "step", .file = "/job/train.py", .line = 91},
        {.func = "main", .file = "/job/train.py", .line = 12}};
    struct model_frame loads[] = {{.func = "get", .file = "/usr/lib/python3.11/queue.py", .line = 180},
                                  {.func = "fetch", .file = "/job/loader.py", .line = 31},
                                  {.func = "main", .file = "/job/train.py", .line = 12}};
    struct rank_stack all[8];
    for (int32_t i = 0; i < 8; i++)
        all[i] =
            i == 5 ? (struct rank_stack){i, loads, 3} : (struct rank_stack){7 - i == 2 ? 2 : i, waits, 3};
    assert_int_equal(stack_classes_build(&c, all, 8), 0);
    assert_int_equal(c.n_classes, 2);
    assert_int_equal(stack_classes_ranks(&c, c.classes[0], true, &set), 0);
    assert_true(set.n == 1 && set.ranges[0].first == 5 && set.ranges[0].last == 5);
    const struct stack_node *own = &c.nodes[stack_classes_own(&c, c.classes[0])];
    assert_string_equal(own->func, "fetch");
    assert_int_equal(own->line, 31);
    assert_string_equal(c.nodes[c.classes[0]].func, "get");
    assert_int_equal(c.nodes[c.classes[0]].line, 0);
    /* both come from one call, and there is no other */
    const struct stack_node *root = &c.nodes[STACK_CLASSES_ROOT];
    assert_string_equal(c.nodes[root->child].func, "main");
    assert_int_equal(c.nodes[root->child].n, 8);
    assert_int_equal(c.nodes[root->child].next, STACK_CLASSES_NONE);
    assert_string_equal(c.nodes[c.nodes[root->child].child].func, "step");
    rank_set_fini(&set);
    stack_classes_fini(&c);
}

/* Without frames, and with more of them than count: the outermost do. */
static void test_ends(void **state) {
    (void)state;
    enum { MANY = STACK_CLASSES_DEPTH + 100 };
    static struct model_frame deep[MANY];
    struct stack_classes c = {.n_nodes = 0};
    for (int i = 0; i < MANY; i++)
        deep[i] = (struct model_frame){.func = "f", .file = "/job/deep.py", .line = MANY - i};
    struct rank_stack all[] = {{3, NULL, 0}, {1, deep, MANY}, {2, deep + 50, MANY - 50}};
    assert_int_equal(stack_classes_build(&c, all, 3), 0);
    assert_int_equal(c.n_nodes, STACK_CLASSES_DEPTH + 1);
    assert_int_equal(c.n_classes, 2);
    assert_int_equal(c.classes[0], STACK_CLASSES_ROOT);
    assert_int_equal(c.ranks[c.nodes[STACK_CLASSES_ROOT].first], 3);
    assert_int_equal(stack_classes_own(&c, STACK_CLASSES_ROOT), STACK_CLASSES_ROOT);
    assert_int_equal(c.nodes[c.classes[1]].n_here, 2);
    assert_int_equal(c.nodes[c.classes[1]].line, STACK_CLASSES_DEPTH);
    assert_int_equal(stack_classes_build(&c, all, 0), 0);
    assert_int_equal(c.n_classes, 0);
    assert_int_equal(stack_classes_walk(&c, STACK_CLASSES_ROOT, false), STACK_CLASSES_NONE);
    stack_classes_fini(&c);
}

#define JOB_RANKS 10000
#define JOB_DEPTH 30

/* Every rank of a large job stands at a line of its own. */
static void test_large(void **state) {
    (void)state;
    struct stack_classes c = {.n_nodes = 0};
    struct model_frame *all = calloc(JOB_RANKS * JOB_DEPTH, sizeof *all);
    struct rank_stack *stacks = calloc(JOB_RANKS, sizeof *stacks);
    assert_true(all && stacks);
    for (int32_t r = 0; r < JOB_RANKS; r++) {
        stacks[r] = (struct rank_stack){JOB_RANKS - 1 - r, all + (size_t)r * JOB_DEPTH, JOB_DEPTH};
        for (int k = 0; k < JOB_DEPTH; k++)
            all[r * JOB_DEPTH + k] = (struct model_frame){
                .func = "forward", .file = "/job/model.py", .line = k < JOB_DEPTH / 2 ? 1 + r : k};
    }
    assert_int_equal(stack_classes_build(&c, stacks, JOB_RANKS), 0);
    assert_int_equal(c.n_classes, JOB_RANKS);
    for (size_t i = 0; i < c.n_classes; i++)
        assert_int_equal(c.ranks[c.nodes[c.classes[i]].first], i);
    assert_int_equal(c.nodes[STACK_CLASSES_ROOT].n, JOB_RANKS);
    stack_classes_fini(&c);
    free(all);
    free(stacks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_against_texts),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
