/* SPDX-License-Identifier: Apache-2.0 */
/* net_library: libwebsockets told to print nothing, and watched for memory that it did not get. */
#ifndef AGENT_SERVER_NET_LIBRARY_H
#define AGENT_SERVER_NET_LIBRARY_H

#include <stdbool.h>

/* Before a context is made. */
void net_library_begin(void);

/* Since then there was no memory for something that the library has wanted. It makes its tables without looking whether it got memory
 * for each (lws_create_vhost), and would fall over the missing one later. */
bool net_library_lacks_memory(void);

#endif
