/* SPDX-License-Identifier: Apache-2.0 */
/* ring_tables_virtual: columns of the tables that Python makes in the job when they are read. Belongs to ring_tables.c. */
#ifndef STORE_RING_RING_TABLES_VIRTUAL_H
#define STORE_RING_RING_TABLES_VIRTUAL_H

#include "store/ring/ring.h"

extern const struct ring_column_def ring_modules[], ring_tensors[], ring_tensor_growth[],
    ring_tensor_statistics[], ring_tensor_holders[];

#endif
