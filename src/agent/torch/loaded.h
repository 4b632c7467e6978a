/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loaded: how far the loader has come with a library of the job's.
 *
 * A library is mapped before it is relocated: until then its functions jump to nowhere. Right after the relocation of an
 * image glibc takes the right to write from the pages of its PT_GNU_RELRO (elf/dl-reloc.c, _dl_protect_relro; musl does the
 * same, ldso/dynlink.c), and that is seen in /proc/self/maps. The loader's lock is not asked for: an import may hold it for
 * long. Constructors run after that and leave no mark; who calls into the library gives them time.
 */
#ifndef AGENT_TORCH_LOADED_H
#define AGENT_TORCH_LOADED_H

#include "base/elf.h"

enum loaded_state {
    LOADED_ABSENT = 0, /* not mapped */
    LOADED_SEVERAL,    /* mapped more than once */
    LOADED_UNREADABLE, /* what is mapped is no ELF image, or not wholly mapped yet */
    LOADED_UNTOLD,     /* it has no PT_GNU_RELRO of a page or more: when it is relocated is not seen */
    LOADED_BEGUN,      /* mapped, and not relocated yet */
    LOADED_RELOCATED,
};

/* Look for the one library whose file's name begins with `name` ("libtorch_cpu.so"). From LOADED_UNTOLD on `*image` is
 * filled; it borrows `mem`. */
enum loaded_state loaded_inspect(const char *name, struct mem *mem, struct elf_image *image);

#endif
