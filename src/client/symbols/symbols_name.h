/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_name: the readable form of a mangled name, within bounds. Private to the helper for
 * symbols.
 *
 * A name of a few hundred bytes can expand to terabytes of text, and can keep a demangler busy
 * for years. Here it has room for SYMBOLS_PLAIN_MAX bytes and 100 ms of CPU time; a name that
 * needs more stays as it is, and after twenty that needed more time no others are tried. One
 * thread; uses ITIMER_VIRTUAL and SIGVTALRM.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_NAME_H
#define CLIENT_SYMBOLS_SYMBOLS_NAME_H

#include "client/symbols/symbols_protocol.h"

#define SYMBOLS_NAME_TIME_US 100000

/* Catch the signal; from here on a name may take `time_us` of CPU time. 0 or -1. */
int symbols_name_begin(long time_us);

/* Length of the name in `out`, or 0 if `symbol` stays as it is. */
size_t symbols_name_plain(const char *symbol, char out[SYMBOLS_PLAIN_MAX]);

#endif
