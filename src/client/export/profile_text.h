/* SPDX-License-Identifier: Apache-2.0 */
/* profile_text: the output of `probing profile` for users. Pure: texts are the agent's, and made
 * harmless here. */
#ifndef CLIENT_EXPORT_PROFILE_TEXT_H
#define CLIENT_EXPORT_PROFILE_TEXT_H

#include "base/strbuf.h"
#include "client/sql/result.h"

/* Columns of `rows`. */
enum profile_text_column { PROFILE_TEXT_OPERATION = 0, PROFILE_TEXT_TOTAL, PROFILE_TEXT_CALLS };

/* Append the result (`note`), the place of the trace, and the most expensive operations. */
void profile_text_put(struct strbuf *out, const char *note, const char *file, const struct result *rows);

#endif
