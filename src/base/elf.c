/* SPDX-License-Identifier: Apache-2.0 */
/* elf: see elf.h. Layouts: System V gABI chapters 4 and 5; DT_GNU_HASH as glibc's
 * elf/dl-lookup.c reads it. */
#include "base/elf.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define ELF_MAX_PHDR 64
#define ELF_MAX_DYN 256
#define ELF_MAX_SHDR 256
#define ELF_NAME_MAX 256
#define ELF_MAX_CHAIN 65536U
#define ELF_IMPORT_NAME 32 /* of an imported function, with its NUL; longer ones are not searched for */
#define ELF_MAX_FILE_SYMBOLS (4U * 1024 * 1024)

static int elf_check_header(const Elf64_Ehdr *eh) {
    if (memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 || eh->e_ident[EI_CLASS] != ELFCLASS64 ||
        eh->e_ident[EI_DATA] != ELFDATA2LSB || eh->e_machine != EM_X86_64)
        return -1;
    return eh->e_type == ET_DYN || eh->e_type == ET_EXEC ? 0 : -1;
}

/* The loader adds the bias to pointers in the dynamic section of most images, but not of the
 * vdso. */
static uint64_t elf_dyn_ptr(const struct elf_image *img, uint64_t v) {
    return v >= img->base ? v : v + img->bias;
}

static int elf_read_dynamic(struct elf_image *img, uint64_t size) {
    uint64_t n = size / sizeof(Elf64_Dyn);
    for (uint64_t i = 0; i < n && i < ELF_MAX_DYN; i++) {
        Elf64_Dyn d;
        if (mem_read(img->mem, img->dynamic + i * sizeof d, &d, sizeof d) != 0)
            return -1;
        switch (d.d_tag) {
        case DT_NULL:
            return 0;
        case DT_SYMTAB:
            img->symtab = elf_dyn_ptr(img, d.d_un.d_ptr);
            break;
        case DT_STRTAB:
            img->strtab = elf_dyn_ptr(img, d.d_un.d_ptr);
            break;
        case DT_STRSZ:
            img->strsz = d.d_un.d_val;
            break;
        case DT_GNU_HASH:
            img->gnu_hash = elf_dyn_ptr(img, d.d_un.d_ptr);
            break;
        case DT_HASH:
            img->hash = elf_dyn_ptr(img, d.d_un.d_ptr);
            break;
        case DT_RELA:
            img->relocs = elf_dyn_ptr(img, d.d_un.d_ptr);
            break;
        case DT_RELASZ:
            img->relocs_size = d.d_un.d_val;
            break;
        case DT_RELACOUNT:
            img->n_relative = d.d_un.d_val;
            break;
        case DT_JMPREL:
            img->plt_relocs = elf_dyn_ptr(img, d.d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            img->plt_relocs_size = d.d_un.d_val;
            break;
        case DT_DEBUG:
            img->r_debug = d.d_un.d_ptr;
            break;
        default:
            break;
        }
    }
    return 0;
}

static void elf_note_load(struct elf_image *img, const Elf64_Phdr *ph) {
    uint64_t start = ph->p_vaddr + img->bias, end = start + ph->p_memsz;
    if (end > img->load_end)
        img->load_end = end;
    if (!(ph->p_flags & PF_X))
        return;
    if (!img->text_start || start < img->text_start)
        img->text_start = start;
    if (end > img->text_end)
        img->text_end = end;
}

int elf_open_memory(struct elf_image *img, struct mem *mem, uint64_t base) {
    Elf64_Ehdr eh;
    Elf64_Phdr ph[ELF_MAX_PHDR];
    *img = (struct elf_image){.mem = mem, .base = base};
    if (mem_read(mem, base, &eh, sizeof eh) != 0 || elf_check_header(&eh) != 0)
        return -1;
    if (eh.e_phentsize != sizeof ph[0] || eh.e_phnum == 0 || eh.e_phnum > ELF_MAX_PHDR ||
        eh.e_phoff > 1U << 20)
        return -1;
    if (mem_read(mem, base + eh.e_phoff, ph, eh.e_phnum * sizeof ph[0]) != 0)
        return -1;
    img->type = eh.e_type;
    uint64_t first = UINT64_MAX;
    for (unsigned i = 0; i < eh.e_phnum; i++)
        if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr < first)
            first = ph[i].p_vaddr;
    if (first == UINT64_MAX)
        return -1;
    img->bias = base - (first & ~4095ULL);
    uint64_t dyn_size = 0;
    for (unsigned i = 0; i < eh.e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD)
            elf_note_load(img, &ph[i]);
        else if (ph[i].p_type == PT_GNU_EH_FRAME)
            img->eh_frame_hdr = ph[i].p_vaddr + img->bias;
        else if (ph[i].p_type == PT_GNU_RELRO) {
            img->relro_start = ph[i].p_vaddr + img->bias;
            img->relro_end = img->relro_start + ph[i].p_memsz;
        } else if (ph[i].p_type == PT_DYNAMIC) {
            img->dynamic = ph[i].p_vaddr + img->bias;
            dyn_size = ph[i].p_memsz;
        }
    }
    return img->dynamic ? elf_read_dynamic(img, dyn_size) : 0;
}

bool elf_needs(const struct elf_image *img, const char *name) {
    char needed[ELF_NAME_MAX];
    for (uint64_t i = 0; img->dynamic && img->strtab && i < ELF_MAX_DYN; i++) {
        Elf64_Dyn d;
        if (mem_read(img->mem, img->dynamic + i * sizeof d, &d, sizeof d) != 0 || d.d_tag == DT_NULL)
            return false;
        if (d.d_tag == DT_NEEDED && d.d_un.d_val < img->strsz &&
            mem_read_cstr(img->mem, img->strtab + d.d_un.d_val, needed, sizeof needed) > 0 &&
            strcmp(needed, name) == 0)
            return true;
    }
    return false;
}

/* Check that symbol `index` is defined and called `name`, and fill the result. */
static int elf_match_symbol(const struct elf_image *img, uint32_t index, const char *name, uint64_t *addr,
                            uint64_t *size) {
    Elf64_Sym sym;
    char buf[ELF_NAME_MAX];
    size_t n = strlen(name);
    if (mem_read(img->mem, img->symtab + (uint64_t)index * sizeof sym, &sym, sizeof sym) != 0)
        return -1;
    if (sym.st_shndx == SHN_UNDEF || sym.st_name >= img->strsz || img->strsz - sym.st_name < n + 1)
        return -1;
    if (n + 1 > sizeof buf || mem_read(img->mem, img->strtab + sym.st_name, buf, n + 1) != 0 ||
        memcmp(buf, name, n + 1) != 0)
        return -1;
    if (ELF64_ST_TYPE(sym.st_info) == STT_TLS)
        return -1;
    *addr = sym.st_value + img->bias;
    if (size)
        *size = sym.st_size;
    return 0;
}

static int elf_find_gnu(const struct elf_image *img, const char *name, uint64_t *addr, uint64_t *size) {
    uint32_t head[4]; /* nbuckets, symoffset, bloom_size, bloom_shift */
    if (mem_read(img->mem, img->gnu_hash, head, sizeof head) != 0 || head[0] == 0)
        return -1;
    uint32_t h = 5381;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        h = h * 33 + *p;
    uint64_t buckets = img->gnu_hash + sizeof head + (uint64_t)head[2] * 8;
    uint64_t chains = buckets + (uint64_t)head[0] * 4;
    uint32_t index;
    if (mem_read_u32(img->mem, buckets + (uint64_t)(h % head[0]) * 4, &index) != 0 || index < head[1])
        return -1;
    for (uint32_t steps = 0; steps < ELF_MAX_CHAIN; steps++, index++) {
        uint32_t entry;
        if (mem_read_u32(img->mem, chains + (uint64_t)(index - head[1]) * 4, &entry) != 0)
            return -1;
        if ((entry | 1U) == (h | 1U) && elf_match_symbol(img, index, name, addr, size) == 0)
            return 0;
        if (entry & 1U)
            break;
    }
    return -1;
}

static int elf_find_sysv(const struct elf_image *img, const char *name, uint64_t *addr, uint64_t *size) {
    uint32_t head[2]; /* nbucket, nchain */
    if (mem_read(img->mem, img->hash, head, sizeof head) != 0 || head[0] == 0)
        return -1;
    uint32_t h = 0;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        h = (h << 4) + *p;
        uint32_t g = h & 0xf0000000U;
        h ^= g >> 24;
        h &= ~g;
    }
    uint32_t index;
    if (mem_read_u32(img->mem, img->hash + 8 + (uint64_t)(h % head[0]) * 4, &index) != 0)
        return -1;
    for (uint32_t steps = 0; index != 0 && index < head[1] && steps < ELF_MAX_CHAIN; steps++) {
        if (elf_match_symbol(img, index, name, addr, size) == 0)
            return 0;
        if (mem_read_u32(img->mem, img->hash + 8 + ((uint64_t)head[0] + index) * 4, &index) != 0)
            return -1;
    }
    return -1;
}

int elf_find_symbol(const struct elf_image *img, const char *name, uint64_t *addr, uint64_t *size) {
    if (!img->symtab || !img->strtab)
        return -1;
    if (img->gnu_hash && elf_find_gnu(img, name, addr, size) == 0)
        return 0;
    return img->hash ? elf_find_sysv(img, name, addr, size) : -1;
}

/* Number of symbols, which only the hash tables know. 0 unknown. */
static uint64_t elf_count_symbols(const struct elf_image *img) {
    uint32_t head[4], block[128], last = 0, entry = 0;
    if (img->hash && mem_read(img->mem, img->hash, head, 2 * sizeof head[0]) == 0)
        return head[1];
    if (!img->gnu_hash || mem_read(img->mem, img->gnu_hash, head, sizeof head) != 0 ||
        head[0] > ELF_MAX_FILE_SYMBOLS)
        return 0;
    uint64_t buckets = img->gnu_hash + sizeof head + (uint64_t)head[2] * 8;
    for (uint32_t i = 0; i < head[0]; i += 128) {
        uint32_t n = head[0] - i < 128 ? head[0] - i : 128;
        if (mem_read(img->mem, buckets + (uint64_t)i * 4, block, n * sizeof block[0]) != 0)
            return 0;
        for (uint32_t k = 0; k < n; k++)
            last = block[k] > last ? block[k] : last;
    }
    if (last < head[1])
        return 0;
    /* The chain of the last bucket ends with the last symbol. */
    for (uint32_t steps = 0; steps < ELF_MAX_CHAIN && !(entry & 1U); steps++, last++)
        if (mem_read_u32(img->mem, buckets + (uint64_t)head[0] * 4 + (uint64_t)(last - head[1]) * 4,
                         &entry) != 0)
            return 0;
    return last;
}

/* Rank of a function among those at the same address, public ones first; -1 if it is not a
 * function or has no name. */
static int elf_rank_function(const struct elf_image *img, const Elf64_Sym *s) {
    unsigned type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);
    if (s->st_shndx == SHN_UNDEF || s->st_name == 0 || s->st_name >= img->strsz || s->st_size == 0 ||
        (type != STT_FUNC && type != STT_GNU_IFUNC))
        return -1;
    return bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2;
}

void elf_find_functions(const struct elf_image *img, struct elf_function *list, size_t n) {
    Elf64_Sym block[128];
    uint64_t count = img->symtab && img->strtab ? elf_count_symbols(img) : 0;
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < n; i++) {
        list[i].name = 0;
        low = list[i].addr < low ? list[i].addr : low;
        high = list[i].addr > high ? list[i].addr : high;
    }
    for (uint64_t i = 0; n && i < count && i < ELF_MAX_FILE_SYMBOLS; i += 128) {
        uint64_t some = count - i < 128 ? count - i : 128;
        if (mem_read(img->mem, img->symtab + i * sizeof block[0], block, some * sizeof block[0]) != 0)
            return;
        for (uint64_t k = 0; k < some; k++) {
            uint64_t at = block[k].st_value + img->bias;
            bool within = at <= high && (at >= low || low - at < block[k].st_size);
            int rank = within ? elf_rank_function(img, &block[k]) : -1;
            for (size_t l = 0; rank >= 0 && l < n; l++)
                if (list[l].addr - at < block[k].st_size && (!list[l].name || rank < list[l].rank)) {
                    list[l].name = img->strtab + block[k].st_name;
                    list[l].rank = rank;
                }
        }
    }
}

/* Symbols of imported functions by their names; those that no symbol has are UINT32_MAX. */
static void elf_find_imports(const struct elf_image *img, const char *const *names, size_t n,
                             uint32_t *symbols) {
    Elf64_Sym block[128];
    uint32_t head[2]; /* of DT_GNU_HASH: nbuckets, symoffset; imported symbols come before those in it */
    char name[ELF_IMPORT_NAME];
    uint64_t count = 0;
    if (img->gnu_hash && mem_read(img->mem, img->gnu_hash, head, sizeof head) == 0)
        count = head[1];
    if (count <= 1) /* none is in it: the offset may be anything */
        count = elf_count_symbols(img);
    for (size_t i = 0; i < n; i++)
        symbols[i] = UINT32_MAX;
    for (uint64_t i = 0; i < count && i < ELF_MAX_FILE_SYMBOLS; i += 128) {
        uint64_t some = count - i < 128 ? count - i : 128;
        if (mem_read(img->mem, img->symtab + i * sizeof block[0], block, some * sizeof block[0]) != 0)
            return;
        for (uint64_t k = 0; k < some; k++) {
            if (block[k].st_shndx != SHN_UNDEF || block[k].st_name == 0 || block[k].st_name >= img->strsz ||
                mem_read_cstr(img->mem, img->strtab + block[k].st_name, name, sizeof name) < 0)
                continue;
            for (size_t l = 0; l < n; l++)
                if (strcmp(name, names[l]) == 0)
                    symbols[l] = (uint32_t)(i + k);
        }
    }
}

#define ELF_MAX_RELOCS ((uint64_t)64 * 1024 * 1024) /* bytes */

static void elf_each_reloc(const struct elf_image *img, uint64_t at, uint64_t size, const uint32_t *symbols,
                           size_t n, void (*fn)(void *arg, size_t name, uint64_t slot), void *arg) {
    Elf64_Rela block[128];
    uint64_t count = (size < ELF_MAX_RELOCS ? size : ELF_MAX_RELOCS) / sizeof block[0];
    for (uint64_t i = 0; at && i < count; i += 128) {
        uint64_t some = count - i < 128 ? count - i : 128;
        if (mem_read(img->mem, at + i * sizeof block[0], block, some * sizeof block[0]) != 0)
            return;
        for (uint64_t k = 0; k < some; k++) {
            uint64_t type = ELF64_R_TYPE(block[k].r_info);
            if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
                continue;
            for (size_t l = 0; l < n; l++)
                if (ELF64_R_SYM(block[k].r_info) == symbols[l] && symbols[l] != UINT32_MAX)
                    fn(arg, l, block[k].r_offset + img->bias);
        }
    }
}

void elf_each_import(const struct elf_image *img, const char *const *names, size_t n,
                     void (*fn)(void *arg, size_t name, uint64_t slot), void *arg) {
    uint32_t symbols[ELF_IMPORTS];
    uint64_t skip = img->n_relative * sizeof(Elf64_Rela);
    if (n > ELF_IMPORTS || !img->symtab || !img->strtab)
        return;
    elf_find_imports(img, names, n, symbols);
    if (img->n_relative < ELF_MAX_RELOCS && skip < img->relocs_size)
        elf_each_reloc(img, img->relocs ? img->relocs + skip : 0, img->relocs_size - skip, symbols, n, fn,
                       arg);
    elf_each_reloc(img, img->plt_relocs, img->plt_relocs_size, symbols, n, fn, arg);
}

static int elf_pread(int fd, void *buf, size_t len, uint64_t at) {
    return at <= INT64_MAX && pread(fd, buf, len, (off_t)at) == (ssize_t)len ? 0 : -1;
}

/* Read the section headers. Returns their number, or -1; `*names` gets the file offset and size
 * of the name table. */
static int elf_read_sections(int fd, Elf64_Shdr *sh, Elf64_Shdr *names) {
    Elf64_Ehdr eh;
    if (elf_pread(fd, &eh, sizeof eh, 0) != 0 || elf_check_header(&eh) != 0)
        return -1;
    if (eh.e_shentsize != sizeof *sh || eh.e_shnum == 0 || eh.e_shnum > ELF_MAX_SHDR ||
        eh.e_shstrndx >= eh.e_shnum)
        return -1;
    if (elf_pread(fd, sh, eh.e_shnum * sizeof *sh, eh.e_shoff) != 0)
        return -1;
    *names = sh[eh.e_shstrndx];
    return eh.e_shnum;
}

int elf_find_section(int fd, const char *name, struct elf_section *out) {
    Elf64_Shdr sh[ELF_MAX_SHDR], names;
    int n = elf_read_sections(fd, sh, &names);
    size_t len = strlen(name) + 1;
    char buf[ELF_NAME_MAX];
    if (len > sizeof buf)
        return -1;
    for (int i = 0; i < n; i++) {
        if (sh[i].sh_name >= names.sh_size || names.sh_size - sh[i].sh_name < len)
            continue;
        if (elf_pread(fd, buf, len, names.sh_offset + sh[i].sh_name) == 0 && memcmp(buf, name, len) == 0) {
            *out =
                (struct elf_section){.addr = sh[i].sh_addr, .size = sh[i].sh_size, .offset = sh[i].sh_offset};
            return 0;
        }
    }
    return -1;
}

/* Scan one symbol table of a file in blocks. */
static int elf_scan_symbols(int fd, const Elf64_Shdr *tab, const Elf64_Shdr *str, const char *name,
                            uint64_t *value) {
    Elf64_Sym block[128];
    char buf[ELF_NAME_MAX];
    size_t len = strlen(name) + 1;
    uint64_t count = tab->sh_size / sizeof block[0];
    if (len > sizeof buf || count > ELF_MAX_FILE_SYMBOLS)
        return -1;
    for (uint64_t i = 0; i < count; i += 128) {
        uint64_t n = count - i < 128 ? count - i : 128;
        if (elf_pread(fd, block, n * sizeof block[0], tab->sh_offset + i * sizeof block[0]) != 0)
            return -1;
        for (uint64_t k = 0; k < n; k++) {
            const Elf64_Sym *s = &block[k];
            if (s->st_shndx == SHN_UNDEF || s->st_name >= str->sh_size || str->sh_size - s->st_name < len)
                continue;
            if (elf_pread(fd, buf, len, str->sh_offset + s->st_name) == 0 && memcmp(buf, name, len) == 0) {
                *value = s->st_value;
                return 0;
            }
        }
    }
    return -1;
}

int elf_find_file_symbol(int fd, const char *name, uint64_t *value) {
    Elf64_Shdr sh[ELF_MAX_SHDR], names;
    int n = elf_read_sections(fd, sh, &names);
    static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (size_t t = 0; t < 2; t++)
        for (int i = 0; i < n; i++)
            if (sh[i].sh_type == types[t] && sh[i].sh_link < (uint32_t)n &&
                elf_scan_symbols(fd, &sh[i], &sh[sh[i].sh_link], name, value) == 0)
                return 0;
    return -1;
}
