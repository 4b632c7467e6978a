/* SPDX-License-Identifier: Apache-2.0 */
/* ring_tables_virtual: see ring_tables_virtual.h. The unit of Python that makes the rows names the columns: src/agent/python/units. */
#include "store/ring/ring_tables_virtual.h"

#define RING_END                                                                                             \
    { .name = NULL }

const struct ring_column_def ring_modules[] = {
    {"path", RING_TEXT, NULL,
     "name of the variable it was found in, then of each module down to it; without what wraps it", NULL,
     WIRE_VALUES},
    {"parent", RING_TEXT, NULL, "path of the module it is in; NULL for the outermost", NULL, WIRE_VALUES},
    {"depth", RING_INT32, NULL, "0 for the outermost", NULL, WIRE_VALUES},
    {"name", RING_TEXT, NULL, "its name in its parent", NULL, WIRE_VALUES},
    {"class", RING_TEXT, NULL, "its class; torch's own without their module", NULL, WIRE_VALUES},
    {"parameters", RING_INT64, NULL, "numbers in its parameters and those below it; shared ones once", NULL,
     WIRE_VALUES},
    {"own_parameters", RING_INT64, NULL, "numbers in its own parameters", NULL, WIRE_VALUES},
    {"bytes", RING_INT64, "bytes", "of parameters and buffers, its own and below it; shared ones once", NULL,
     WIRE_VALUES},
    {"dtype", RING_TEXT, NULL, "of its parameters and those below it; 'mixed'", NULL, WIRE_VALUES},
    {"device", RING_TEXT, NULL, "of its parameters and those below it; 'mixed'", NULL, WIRE_VALUES},
    {"training", RING_BOOL, NULL, "1: in training mode", NULL, WIRE_VALUES},
    {"compiled", RING_BOOL, NULL, "1: by torch.compile", NULL, WIRE_VALUES},
    {"hooks", RING_INT32, NULL, "hooks on it, forward and backward", NULL, WIRE_VALUES},
    {"forward_ms", RING_DOUBLE, "ms", "forward, in the last step in which it was traced; NULL: it was not",
     NULL, WIRE_VALUES},
    {"backward_ms", RING_DOUBLE, "ms", "backward, in that step; NULL: it was not traced", NULL, WIRE_VALUES},
    {"calls", RING_INT64, NULL, "forward calls in that step; NULL: it was not traced", NULL, WIRE_VALUES},
    {"activation_bytes", RING_INT64, "bytes", "of what forward returned in that step; NULL: not known", NULL,
     WIRE_VALUES},
    {"traced_step", RING_INT64, NULL, "that step (python.steps); NULL: it was not traced", NULL, WIRE_VALUES},
    {"grad_norm", RING_DOUBLE, NULL,
     "2-norm of the gradients there are now, its own and below it, or, of a job that has dropped them, as "
     "the "
     "optimizer had them in traced_step; NULL: not all known, not on the CPU, too many, or not finite",
     NULL, WIRE_VALUES},
    {"nan", RING_TEXT, NULL,
     "gradient: its own (as of grad_norm) has NaN or infinities; gradient below: one below it has; NULL: not "
     "that is known",
     NULL, WIRE_VALUES},
    {"root", RING_TEXT, NULL,
     "what it was found in: a variable of '__main__' or another module, or of a function that runs", NULL,
     WIRE_VALUES},
    RING_END,
};

const struct ring_column_def ring_tensors[] = {
    {"name", RING_TEXT, NULL,
     "how it is reached: from its module, or from a variable of '__main__', a module, a function (x@train)",
     NULL, WIRE_VALUES},
    {"kind", RING_TEXT, NULL,
     "parameter, buffer, gradient, optimizer, local, global, or attribute of an object", NULL, WIRE_VALUES},
    {"type", RING_TEXT, NULL, "its class; torch's own without their module", NULL, WIRE_VALUES},
    {"shape", RING_TEXT, NULL, "[64, 128]; NULL where it would have to be computed", NULL, WIRE_VALUES},
    {"dtype", RING_TEXT, NULL, "type of its numbers", NULL, WIRE_VALUES},
    {"device", RING_TEXT, NULL, "where they are", NULL, WIRE_VALUES},
    {"bytes", RING_INT64, "bytes",
     "of its numbers, as its shape has them; NULL where they are not laid out so (sparse)", NULL,
     WIRE_VALUES},
    {"module", RING_TEXT, NULL,
     "path of the module (python.modules) whose parameter, buffer or gradient it is, or for whose parameter "
     "an optimizer keeps it",
     NULL, WIRE_VALUES},
    {"storage_id", RING_INT64, NULL,
     "where its numbers are kept: equal for tensors that share them; NULL: it has no memory", NULL,
     WIRE_VALUES},
    {"storage_bytes", RING_INT64, "bytes", "of all of that memory", NULL, WIRE_VALUES},
    {"shared", RING_BOOL, NULL, "1: another tensor of this table has the same storage", NULL, WIRE_VALUES},
    {"requires_grad", RING_BOOL, NULL, "1: autograd follows it", NULL, WIRE_VALUES},
    {"grad", RING_BOOL, NULL, "1: it has a gradient now", NULL, WIRE_VALUES},
    {"first_step", RING_INT64, NULL, "step at the first look that saw it; NULL unknown", NULL, WIRE_VALUES},
    {"age_s", RING_DOUBLE, "s", "since the first look that saw it; NULL unknown", NULL, WIRE_VALUES},
    {"id", RING_INT64, NULL,
     "its address: what python.tensor_statistics and python.tensor_holders are asked by", NULL, WIRE_VALUES},
    RING_END,
};

const struct ring_column_def ring_tensor_growth[] = {
    {"type", RING_TEXT, NULL, "class", NULL, WIRE_VALUES},
    {"shape", RING_TEXT, NULL, "shape; NULL unknown", NULL, WIRE_VALUES},
    {"dtype", RING_TEXT, NULL, "type of the numbers", NULL, WIRE_VALUES},
    {"device", RING_TEXT, NULL, "where they are", NULL, WIRE_VALUES},
    {"kind", RING_TEXT, NULL, "as in python.tensors", NULL, WIRE_VALUES},
    {"owner", RING_TEXT, NULL,
     "what holds them: a module, or how they are reached with [*] for any place in a container", NULL,
     WIRE_VALUES},
    {"count", RING_INT64, NULL, "how many there are", NULL, WIRE_VALUES},
    {"bytes", RING_INT64, "bytes", "of their storages, each once", NULL, WIRE_VALUES},
    {"count_then", RING_INT64, NULL, "how many there were at the first of the last looks", NULL, WIRE_VALUES},
    {"bytes_then", RING_INT64, "bytes", "and of how many bytes", NULL, WIRE_VALUES},
    {"growth_bytes", RING_INT64, "bytes", "bytes more than then", NULL, WIRE_VALUES},
    {"growth_per_step", RING_DOUBLE, "bytes", "of a step since; NULL: no steps are known", NULL, WIRE_VALUES},
    {"since_step", RING_INT64, NULL, "the step at that look; NULL unknown", NULL, WIRE_VALUES},
    RING_END,
};

const struct ring_column_def ring_tensor_statistics[] = {
    {"id", RING_INT64, NULL, "of the tensor: python.tensors", NULL, WIRE_VALUES},
    {"shape", RING_TEXT, NULL, "its shape", NULL, WIRE_VALUES},
    {"dtype", RING_TEXT, NULL, "type of its numbers", NULL, WIRE_VALUES},
    {"device", RING_TEXT, NULL, "where they are", NULL, WIRE_VALUES},
    {"numel", RING_INT64, NULL, "how many numbers", NULL, WIRE_VALUES},
    {"nan", RING_INT64, NULL, "that are no numbers", NULL, WIRE_VALUES},
    {"inf", RING_INT64, NULL, "that are infinite", NULL, WIRE_VALUES},
    {"zeros", RING_INT64, NULL, "that are 0", NULL, WIRE_VALUES},
    {"min", RING_DOUBLE, NULL, "least of the finite ones", NULL, WIRE_VALUES},
    {"max", RING_DOUBLE, NULL, "largest of the finite ones", NULL, WIRE_VALUES},
    {"mean", RING_DOUBLE, NULL, "mean of the finite ones", NULL, WIRE_VALUES},
    {"std", RING_DOUBLE, NULL, "standard deviation of the finite ones, as of a sample", NULL, WIRE_VALUES},
    {"histogram", RING_TEXT, NULL, "how many of them are in each of 20 equal parts from min to max", NULL,
     WIRE_VALUES},
    RING_END,
};

const struct ring_column_def ring_tensor_holders[] = {
    {"id", RING_INT64, NULL, "of the tensor: python.tensors", NULL, WIRE_VALUES},
    {"holder", RING_TEXT, NULL, "how it is reached, as a name of python.tensors", NULL, WIRE_VALUES},
    {"kind", RING_TEXT, NULL, "as in python.tensors", NULL, WIRE_VALUES},
    {"root", RING_TEXT, NULL, "where that begins: '__main__' or another module, or a function that runs",
     NULL, WIRE_VALUES},
    RING_END,
};
