/* SPDX-License-Identifier: Apache-2.0 */
/* data_shot: see data_shot.h. */
#include "tui/model/data_shot.h"

#include <stdlib.h>
#include <string.h>

void data_shot_fini(struct data_shot *s) {
    if (s->valid)
        model_snapshot_fini(&s->snapshot);
    free(s->stack_hash);
    free(s->stack_since);
    free(s->gil);
    memset(s, 0, sizeof *s);
}
