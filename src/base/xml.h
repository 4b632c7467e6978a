/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xml: text from elsewhere within a document of XML or HTML.
 */
#ifndef BASE_XML_H
#define BASE_XML_H

#include "base/strbuf.h"

#define XML_TEXT_MAX 2048 /* bytes of one text; the rest is cut off */

/* Append `text` sanitised and escaped, for an element or a quoted attribute; at most `cols`
 * columns, with ".." where it is cut (0: all of it). NULL is "?". U+FFFE and U+FFFF, which XML
 * excludes, become U+FFFD. */
void xml_put_text(struct strbuf *out, const char *text, int cols);

#endif
