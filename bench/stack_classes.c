/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_classes: the time to merge the stacks of 10,000 ranks: each at a place of its own, and all at the same.
 *
 * Prints JSON: the median of the rounds. With --check the exit status is 1 if the budget was exceeded.
 *
 * usage: stack_classes [--check]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/fleet/stack_classes.h"

#define RANKS 10000
#define DEPTH 30
#define ROUNDS 9
#define BUDGET_MS 200.0

static struct model_frame frames[RANKS][DEPTH];
static struct rank_stack stacks[RANKS];

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* `shared`: outermost frames that all have in common. */
static double merge_ms(int shared, size_t *classes, size_t *nodes) {
    struct stack_classes c = {.n_nodes = 0};
    double ms[ROUNDS];
    for (int32_t r = 0; r < RANKS; r++) {
        stacks[r] = (struct rank_stack){r, frames[r], DEPTH};
        for (int k = 0; k < DEPTH; k++)
            frames[r][k] = (struct model_frame){
                .func = k % 2 ? "Module._call_impl" : "forward",
                .file = k % 2 ? "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"
                              : "/data/job/models/transformer.py",
                .line = DEPTH - k > shared ? r : k};
    }
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t began = clock_mono_ns();
        if (stack_classes_build(&c, stacks, RANKS) != 0)
            exit(1);
        ms[i] = (double)(clock_mono_ns() - began) / 1e6;
        *classes = c.n_classes;
        *nodes = c.n_nodes;
    }
    stack_classes_fini(&c);
    qsort(ms, ROUNDS, sizeof ms[0], compare);
    return ms[ROUNDS / 2];
}

int main(int argc, char **argv) {
    size_t classes, nodes, few_classes, few_nodes;
    double apart = merge_ms(0, &classes, &nodes);
    double together = merge_ms(DEPTH, &few_classes, &few_nodes);
    printf("{\"ranks\": %d, \"depth\": %d, \"budget_ms\": %.0f,\n \"apart\": {\"classes\": %zu, \"nodes\": "
           "%zu, \"merge_ms\": %.1f},\n"
           " \"together\": {\"classes\": %zu, \"nodes\": %zu, \"merge_ms\": %.1f}}\n",
           RANKS, DEPTH, BUDGET_MS, classes, nodes, apart, few_classes, few_nodes, together);
    return argc > 1 && strcmp(argv[1], "--check") == 0 && (apart > BUDGET_MS || together > BUDGET_MS);
}
