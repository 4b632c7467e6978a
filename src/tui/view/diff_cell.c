/* SPDX-License-Identifier: Apache-2.0 */
/* diff_cell: see diff_cell.h. */
#include "tui/view/diff_cell.h"

#include <math.h>
#include <stdio.h>

#define DIFF_MUCH 2.0  /* percentage points from which it counts as more, */
#define DIFF_VERY 10.0 /* and as most */

enum theme_role diff_role(double delta) {
    double size = fabs(delta);
    if (isnan(delta) || size < DIFF_LEAST)
        return ROLE_DIFF_SAME;
    int step = size < DIFF_MUCH ? 0 : size < DIFF_VERY ? 1 : 2;
    return (enum theme_role)((delta > 0 ? ROLE_DIFF_MORE_1 : ROLE_DIFF_LESS_1) + step);
}

void diff_text(double delta, char *buf, size_t cap) {
    if (isnan(delta))
        snprintf(buf, cap, "?");
    else if (fabs(delta) < 0.05) /* it would be a signed zero */
        snprintf(buf, cap, "0.0");
    else
        snprintf(buf, cap, "%+.1f", delta);
}

char diff_sign(double delta) {
    if (isnan(delta))
        return '?';
    return fabs(delta) < DIFF_LEAST ? '=' : delta > 0 ? '+' : '-';
}
