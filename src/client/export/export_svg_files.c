/* SPDX-License-Identifier: Apache-2.0 */
/* export_svg_files: the style and the script of the SVG; the assembler puts the files in (mk/build.mk knows of them). */
#include "client/export/export_svg.h"

__asm__(".pushsection .rodata\n"
        ".global export_svg_style\n"
        ".hidden export_svg_style\n"
        ".type export_svg_style, @object\n"
        "export_svg_style:\n"
        ".incbin \"src/client/export/export_svg.css\"\n"
        ".byte 0\n"
        ".size export_svg_style, . - export_svg_style\n"
        ".global export_svg_script\n"
        ".hidden export_svg_script\n"
        ".type export_svg_script, @object\n"
        "export_svg_script:\n"
        ".incbin \"src/client/export/export_svg.js\"\n"
        ".byte 0\n"
        ".size export_svg_script, . - export_svg_script\n"
        ".popsection\n");
