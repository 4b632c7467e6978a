/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper: the source of helper.py, which the python worker runs in the job; built in as text. Plain data.
 */
#ifndef AGENT_HELPER_H
#define AGENT_HELPER_H

#define HELPER_BETWEEN "\n\n\n" /* between two of its pieces, each of which is compiled alone */

/* NUL-terminated. */
extern const char helper_source[];

#endif
