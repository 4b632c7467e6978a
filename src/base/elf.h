/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf: symbols and sections of ELF64 images, in a process's memory or in a file (System V gABI,
 * x86-64 psABI).
 *
 * Memory has only what the loader mapped: program headers, the dynamic section, its symbols.
 * Sections need the file. Every offset is bounds-checked: images are foreign bytes.
 */
#ifndef BASE_ELF_H
#define BASE_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct elf_image {
    struct mem *mem; /* borrowed */
    uint64_t base;   /* address of the ELF header */
    /* to add to the image's own addresses */
    uint64_t bias;
    uint64_t symtab, strtab, strsz, gnu_hash, hash, r_debug; /* run-time addresses; 0 when absent */
    uint64_t text_start, text_end;   /* of the executable segments, run-time addresses */
    uint64_t load_end;               /* end of the last PT_LOAD, run-time address */
    uint64_t relro_start, relro_end; /* PT_GNU_RELRO, run-time addresses; equal when absent */
    uint64_t eh_frame_hdr, dynamic;
    /* relocations: run-time address and bytes; of the first, `n_relative` at the beginning have no symbol */
    uint64_t relocs, relocs_size, n_relative, plt_relocs, plt_relocs_size;
    int type; /* ET_EXEC or ET_DYN */
};

/* Read the headers of the image mapped at `base`. 0, or -1 if it is not a usable x86-64 ELF64
 * image. */
int elf_open_memory(struct elf_image *img, struct mem *mem, uint64_t base);

/* True if the image names the library `name` among those to be loaded with it. */
bool elf_needs(const struct elf_image *img, const char *name);

/* Run-time address (and size, if `size` is not NULL) of an exported, defined symbol. 0, or -1 if
 * there is none. */
int elf_find_symbol(const struct elf_image *img, const char *name, uint64_t *addr, uint64_t *size);

/* The exported function that contains an address. */
struct elf_function {
    uint64_t addr; /* in: run-time address */
    uint64_t name; /* run-time address of its name; 0 if no function contains it */
    int rank;      /* of several at one address the lowest rank wins */
};

/* Find the functions of `n` addresses in one pass over all symbols of the image. */
void elf_find_functions(const struct elf_image *img, struct elf_function *list, size_t n);

/* Call `fn` for each word of the image that the loader has filled, or will fill, with the address of a
 * function that the image imports and whose name is one of `n` (at most ELF_IMPORTS): the index of the name, and the
 * word's run-time address. */
#define ELF_IMPORTS 16
void elf_each_import(const struct elf_image *img, const char *const *names, size_t n,
                     void (*fn)(void *arg, size_t name, uint64_t slot), void *arg);

/* A section of the file behind `fd`: its link-time address, size and file offset. 0 or -1. */
struct elf_section {
    uint64_t addr, size, offset;
};
int elf_find_section(int fd, const char *name, struct elf_section *out);

/* A symbol of the file's .symtab (falling back to .dynsym): link-time value. 0 or -1. Slow:
 * reads the whole table. */
int elf_find_file_symbol(int fd, const char *name, uint64_t *value);

#endif
