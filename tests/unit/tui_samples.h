/* SPDX-License-Identifier: Apache-2.0 */
/* tui_samples: streams of samples made by hand, always the same, of targets that are large or hostile. */
#ifndef TESTS_TUI_SAMPLES_H
#define TESTS_TUI_SAMPLES_H

#include "unit/tui_fixture.h"

#define SAMPLES_HUGE_THREADS 200
#define SAMPLES_HUGE_DEPTH 60

/* Give an app `batches` batches, a quarter of a second apart, of the threads of fixture_snapshot. FIXTURE_NORMAL: those of
 * fixture_samples. FIXTURE_HUGE: 200 threads of 60 frames. FIXTURE_NAMES: names that nobody should draw as they are. FIXTURE_UNKNOWN:
 * threads without a frame. */
void samples_feed(struct app *a, enum fixture_kind kind, int batches);

#endif
