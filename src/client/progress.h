/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress: a line on standard error about what is being waited for, if that is a terminal:
 * "sampling: 2 of 5 s, 198 samples; ^C ends it". Nothing otherwise.
 *
 * A thread of its own redraws the line, so the work need not, and only what takes longer than a
 * second is shown. There is one line; output.h removes it before anything else is printed there.
 * From the main thread.
 */
#ifndef CLIENT_PROGRESS_H
#define CLIENT_PROGRESS_H

/* Begin to show `what`, in place of what was shown before. `total_s`: how long it will take; 0: it is
 * not known. `hint`: how the user can end it; NULL: none. Both texts have to stay. */
void progress_begin(const char *what, double total_s, const char *hint);

/* What is there so far: "198 samples". */
void progress_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Remove the line. */
void progress_end(void);

#endif
