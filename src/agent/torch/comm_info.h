/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_info: what torch knows of a collective that it begins: its group, sizes and number.
 *
 * ProcessGroupNCCL (and XCCL's) puts a torch::ParamCommsDebugInfo into c10::ThreadLocalDebugInfo
 * before it begins the span of a collective, on the thread that calls it. The object is read by
 * its layout, which depends on torch's version and on its strings, through the seam that cannot
 * fault, and believed only if its class has that name, if it names the span's operation, and if
 * its numbers are possible. No allocation, no lock; any thread.
 */
#ifndef AGENT_TORCH_COMM_INFO_H
#define AGENT_TORCH_COMM_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/torch/spans.h"
#include "base/mem.h"

enum comm_info_strings {
    COMM_INFO_STRINGS_NEW, /* std::string of _GLIBCXX_USE_CXX11_ABI=1: with a buffer of its own */
    COMM_INFO_STRINGS_OLD, /* of 0: a pointer to the characters, behind their number */
};

/* Where the members are in the object; 0: it has none such. */
struct comm_info {
    enum comm_info_strings strings;
    bool wide; /* numbers of elements have 64 bits, otherwise 32 */
    uint32_t pg, rank, world, name, in, out, dtype, seq, p2p, size;
    uint64_t class_at; /* atomic: a table of virtual functions that is that class's; 0: none is known yet */
};

/* Fill `c` for a version (100 * major + minor). False: its layout is not known. */
bool comm_info_init(struct comm_info *c, unsigned version, enum comm_info_strings strings);

/* Is it the name of a collective that may have such an object? */
static inline bool comm_info_is_of(const char *name) {
    return (name[0] == 'n' || name[0] == 'x') && name[1] == 'c' && name[2] == 'c' && name[3] == 'l' &&
           name[4] == ':';
}

/* Read the object at `at`, of the span `name` ("nccl:all_reduce"). False: not believed. */
bool comm_info_read(struct comm_info *c, struct mem *m, uint64_t at, const char *name,
                    struct spans_comm *out);

#endif
