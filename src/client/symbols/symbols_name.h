/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_name: a mangled name as people write it, within bounds. Private to the helper for symbols.
 *
 * A name of a few hundred bytes can stand for a text of terabytes, and can keep a demangler busy for years. Here it has room for
 * SYMBOLS_PLAIN_MAX bytes and 100 ms of processor time; a name that wants more stays as it is, and after twenty that wanted more
 * time no others are tried. One thread; uses ITIMER_VIRTUAL and SIGVTALRM.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_NAME_H
#define CLIENT_SYMBOLS_SYMBOLS_NAME_H

#include "client/symbols/symbols_protocol.h"

#define SYMBOLS_NAME_TIME_US 100000

/* Catch the signal; from here on a name may take `time_us` of processor time. 0 or -1. */
int symbols_name_begin(long time_us);

/* Length of the name in `out`, or 0: `symbol` stays as it is. */
size_t symbols_name_plain(const char *symbol, char out[SYMBOLS_PLAIN_MAX]);

#endif
