/* SPDX-License-Identifier: Apache-2.0 */
/* flame_color: see flame_color.h. */
#include "tui/screens/flame/flame_color.h"

#include <stdint.h>

#include "base/hash.h"
#include "tui/model/data.h"

#define FLAME_COLORS 3 /* for each kind of frame */

enum theme_role flame_color_of(const struct model_frame *f, bool by_module) {
    uint64_t h = hash_fnv_text(HASH_FNV_START, f->file ? f->file : f->module);
    if (!by_module)
        h = hash_fnv_text(h, f->func);
    enum theme_role kind = data_frame_role(f);
    if (kind == ROLE_FUNC_NATIVE)
        return ROLE_FLAME_NATIVE;
    int first = kind == ROLE_FUNC_LIBRARY ? ROLE_FLAME_LIBRARY_1 : ROLE_FLAME_OWN_1;
    return (enum theme_role)(first + (int)((h ^ (h >> 32)) % FLAME_COLORS));
}
