/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loaded: the loader's progress with a library of the job.
 *
 * A library is mapped before it is relocated: until then its functions jump to invalid
 * addresses. Right after the relocation of an image glibc removes the write permission from the
 * pages of its PT_GNU_RELRO (elf/dl-reloc.c, _dl_protect_relro; musl does the same,
 * ldso/dynlink.c), which /proc/self/maps shows. The loader's lock is not taken, because an
 * import may hold it for long. Constructors run after that and leave no mark; a caller of the
 * library must give them time.
 */
#ifndef AGENT_TORCH_LOADED_H
#define AGENT_TORCH_LOADED_H

#include "base/elf.h"

enum loaded_state {
    LOADED_ABSENT = 0, /* not mapped */
    LOADED_SEVERAL,    /* mapped more than once */
    LOADED_UNREADABLE, /* the mapping is not an ELF image, or not complete yet */
    LOADED_UNTOLD,     /* it has no PT_GNU_RELRO of a page or more: its relocation is not visible */
    LOADED_BEGUN,      /* mapped, and not relocated yet */
    LOADED_RELOCATED,
};

/* Find the one library whose file name begins with `name` ("libtorch_cpu.so"). From
 * LOADED_UNTOLD on `*image` is filled; it borrows `mem`. */
enum loaded_state loaded_inspect(const char *name, struct mem *mem, struct elf_image *image);

#endif
