/* SPDX-License-Identifier: Apache-2.0 */
/* about: what --version prints. */
#pragma once

#include "base/strbuf.h"

/*
 * Append the program's name and version, the commit it was built from (gen/commit.h), the compiler,
 * the oldest glibc it runs on as far as the headers say, and the libraries with their versions.
 * The first line is "PROGRAM VERSION", for scripts.
 */
void about_put(struct strbuf *out, const char *program, const char *commit);
