/* SPDX-License-Identifier: Apache-2.0 */
/* helper: see helper.h. The assembler puts the file in (mk/build.mk knows of it). */
#include "agent/helper.h"

__asm__(".pushsection .rodata\n"
        ".global helper_source\n"
        ".hidden helper_source\n"
        ".type helper_source, @object\n"
        "helper_source:\n"
        ".incbin \"src/agent/helper.py\"\n"
        ".byte 0\n"
        ".size helper_source, . - helper_source\n"
        ".popsection\n");
