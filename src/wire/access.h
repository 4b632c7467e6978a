/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access: what somebody may see or do; the one scale of methods (wire.h), of columns of tables (store/ring/ring_tables.c) and of fields of
 * answers (field_tables.c). docs/access.md is made of all three.
 */
#ifndef WIRE_ACCESS_H
#define WIRE_ACCESS_H

/* What it does to the job, from the least to the most; whoever may do one may do those before it. */
enum wire_access {
    WIRE_NOTHING = 0, /* lowest access level */
    WIRE_READ_ONLY,   /* what the agent sees and keeps: stacks, samples, tables, status */
    WIRE_VALUES, /* values of the job's variables, which may be anything; its command line; code that somebody has had run */
    WIRE_CHANGES, /* runs code of somebody's in the job, or changes the job or the agent */
    WIRE_OWNS,    /* says who may enter: by the agent's unix socket alone */
};

#endif
