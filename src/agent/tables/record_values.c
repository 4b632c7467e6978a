/* SPDX-License-Identifier: Apache-2.0 */
/* record_values: the rows of python.variables: values that are watched; see record.h, step_values.h. */
#include <math.h>

#include "agent/tables/record.h"

void record_value(struct record *r, const struct spans_event *e, double timestamp, int64_t step) {
    const struct spans_value *value = &e->value;
    const struct hooks *h = &r->hooks;
    union ring_value v[RING_VARIABLES_COUNT];
    char func[SPANS_FUNC], text[SPANS_TEXT];
    spans_take_text(value->text, func, text);
    if (value->set != h->set || value->expr >= h->watch.n || isnan(timestamp))
        return; /* of what was watched before */
    v[RING_VARIABLES_TIMESTAMP].f = timestamp;
    v[RING_VARIABLES_STEP].i = step;
    v[RING_VARIABLES_FUNC].s = func;
    v[RING_VARIABLES_NAME].s = h->watch.exprs[value->expr].name;
    v[RING_VARIABLES_VALUE].f = value->is_number && isfinite(value->number) ? value->number : NAN;
    v[RING_VARIABLES_TEXT].s = value->is_known ? text : NULL;
    record_append(r, RING_VARIABLES, v);
}
