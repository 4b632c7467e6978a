/* SPDX-License-Identifier: Apache-2.0 */
/* path: names of source files as people know them. Pure functions. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>

/* The part of a path by which people know a file: from the package on for an installed one,
 * otherwise the file's name; a package's __init__.py keeps its folder. Points into `path`. */
const char *path_short(const char *path);

/* True for a source file of a library, as opposed to the job's own code: in a folder where
 * Python keeps libraries, or in none at all (<frozen importlib._bootstrap>). */
bool path_is_library(const char *path);

/* A command line without the program's folders: "python train.py" of "/usr/bin/python train.py".
 * Points into `cmdline`. */
const char *path_short_command(const char *cmdline);

#endif
