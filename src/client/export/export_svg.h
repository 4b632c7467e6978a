/* SPDX-License-Identifier: Apache-2.0 */
/* export_svg: what the SVG is made of beside its frames: text files of this folder, as they are. Neither holds "]]>". */
#ifndef CLIENT_EXPORT_EXPORT_SVG_H
#define CLIENT_EXPORT_EXPORT_SVG_H

extern const char export_svg_style[];
extern const char export_svg_script[];

#endif
