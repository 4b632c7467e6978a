/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access: what a client may see or do. The one scale of methods (wire.h), table columns
 * (store/ring/ring_tables.c) and fields of answers (field_tables.c). docs/access.md is generated
 * from all three.
 */
#ifndef WIRE_ACCESS_H
#define WIRE_ACCESS_H

/* Effects on the job, from the least to the most. A client with one level has all lower ones. */
enum wire_access {
    WIRE_NOTHING = 0, /* lowest access level */
    WIRE_READ_ONLY,   /* what the agent observes: stacks, samples, tables, status */
    /* values of the job's variables, which may be anything; its command line; code that clients
     * have run */
    WIRE_VALUES,
    WIRE_CHANGES, /* runs a client's code in the job, or changes the job or the agent */
    WIRE_OWNS,    /* decides who may connect: only through the agent's unix socket */
};

#endif
