/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_metrics: the table of that name: collectives that have ended, each as a pair of ranks: who
 * waited, and for whom.
 *
 * It is a view on python.collectives, made again before each query that names it. Who came last to
 * a collective is known where all of its ranks are read together, and have one clock
 * (arrivals.h).
 */
#ifndef CLIENT_SQL_COMM_METRICS_H
#define CLIENT_SQL_COMM_METRICS_H

#include "store/sql/sql.h"

#define COMM_METRICS_OF "python.collectives" /* it exists where this table does */
#define COMM_METRICS_MOST 1000000            /* collectives that are compared; of more the newest */

/* Its description as a table (store/sql/sql.h). Static. */
void comm_metrics_info(struct sql_table_info *out);

/* Whose times are compared with each other. */
enum comm_clocks {
    COMM_CLOCKS_OF_HOST,  /* those of one host */
    COMM_CLOCKS_RECORDED, /* and those of hosts whose clocks the recording of the job has (cluster.nodes) */
    COMM_CLOCKS_ONE,      /* all: they are those of one clock */
};

/* Make the view, if `text` may ask for it. `targets`: processes of the session, 0: not known. `most`: rows that are
 * compared (COMM_METRICS_MOST). On failure it is unchanged. Returns a line about what is not known for their
 * number; NULL: nothing. Static. */
const char *comm_metrics_make(struct sql *s, const char *text, size_t targets, enum comm_clocks clocks,
                              uint64_t most);

#endif
