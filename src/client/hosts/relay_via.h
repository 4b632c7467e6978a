/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_via: the command that runs a relay on a host: ssh, srun, kubectl, or whatever reaches it.
 *
 * A template is words, with quotes as in a shell, and no shell here reads it. {host} is the host, {relay}
 * the command that is to run there, {slurm} the number of a job of Slurm, {container} a container. The
 * presets are a table.
 *
 * {relay} is the one word `sh`, and what that is to run comes by its input: so nothing has to be quoted on
 * the way, whatever shells read the command there, and however many. Nothing else may be sent before the
 * relay's first line has come, since a shell reads ahead. Pure.
 */
#ifndef CLIENT_HOSTS_RELAY_VIA_H
#define CLIENT_HOSTS_RELAY_VIA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* For the shell on the host. */
#define RELAY_SCRIPT "PATH=$PATH:$HOME/.local/bin; exec probing relay --stdio\n"

struct relay_via {
    const char *via; /* a preset's name, or a template; NULL: "srun" with `slurm`, else "ssh" */
    /* what {relay} is instead of the shell, in words, for hosts without one; NULL the shell */
    const char *relay;
    const char *script;            /* what the shell gets; NULL: RELAY_SCRIPT */
    const char *slurm, *container; /* NULL none */
};

/* A preset. Of two with one name the one with {container} is taken if that is given. */
struct relay_preset {
    const char *name, *template; /* NULL: the relay is a child of this program, on this host */
};

extern const struct relay_preset relay_presets[]; /* ends with a NULL name */

/* The name of the preset with that number, for lists; NULL: it has none. */
const char *relay_preset_name(int i);

#define RELAY_WORDS_MAX 64
#define RELAY_WORDS_BYTES 4096

/* A command, as execvp takes it. Not to be copied: the words point into it. */
struct relay_words {
    char *words[RELAY_WORDS_MAX + 1];
    size_t n;           /* 0: the relay is a child of this program */
    const char *script; /* to be sent before all else; NULL nothing */
    char bytes[RELAY_WORDS_BYTES];
    size_t used;
};

/* The command for a host. 0, or -1 with ERR_USAGE. */
int relay_via_words(const struct relay_via *v, const char *host, struct relay_words *out, struct err *e);

/* The preset's name, or the first word of the template, for people. */
void relay_via_name(const struct relay_via *v, char *buf, size_t cap);

#endif
