/* SPDX-License-Identifier: Apache-2.0 */
/* path: names of source files as people know them. Pure functions. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>

/* The part of a path that people know a file by: from the package on for installed ones, else the file's name; a
 * package's __init__.py keeps its folder. Within `path`. */
const char *path_short(const char *path);

/* Is a source file one of a library, and none of the job's own: in a folder that Python keeps those in, or none at all
 * (<frozen importlib._bootstrap>)? */
bool path_is_library(const char *path);

/* A command line without the folders of its program: "python train.py" of "/usr/bin/python train.py". Within `cmdline`. */
const char *path_short_command(const char *cmdline);

#endif
