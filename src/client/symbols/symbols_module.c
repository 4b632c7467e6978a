/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_module: see symbols_module.h.
 *
 * elfutils: libdwfl.h, libdw.h. The file is laid out alone (dwfl_report_offline), so addresses
 * are its own plus a bias. libdwfl goes through all symbols for each address; a library has up
 * to a million, so they are sorted here once. Inlined functions: DWARF 5, 3.3.8.
 */
#include "client/symbols/symbols_module.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <elfutils/version.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/symbols/symbols_loop.h"
#include "client/symbols/symbols_name.h"
#include "client/symbols/symbols_serve.h"

struct symbols_entry {
    uint64_t start, size; /* 0: up to the next one */
    uint32_t number;      /* in libdwfl's table */
    uint8_t rank;         /* of several at one address the lowest is shown */
};

struct symbols_file {
    Dwfl *dwfl;
    Dwfl_Module *module;
    GElf_Addr bias; /* to add to the file's own addresses */
    struct symbols_entry *entries;
    size_t n;
    uint64_t loop, loop_size; /* the interpreter's loop; 0 if it is not in this file */
    bool asked_alt;
};

/* ---- debug information in other files ---- */

/* The checksum of .gnu_debuglink: CRC-32 as in zlib. */
static uint32_t module_crc(int fd) {
    static uint32_t table[256];
    static uint8_t piece[65536];
    uint32_t crc = ~0U;
    off_t at = 0;
    ssize_t n;
    for (uint32_t i = 0; i < 256 && !table[255]; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320U : 0);
        table[i] = c;
    }
    while ((n = pread(fd, piece, sizeof piece, at)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            crc = crc >> 8 ^ table[(crc ^ piece[i]) & 0xff];
        at += n;
    }
    return ~crc;
}

/* True if it is the intended file. */
static bool module_is_meant(int fd, const void *id, size_t id_len, GElf_Word crc) {
    const void *found;
    if (id_len == 0)
        return module_crc(fd) == crc;
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    ssize_t len = elf ? dwelf_elf_gnu_build_id(elf, &found) : -1;
    bool is_it = len == (ssize_t)id_len && memcmp(found, id, id_len) == 0;
    elf_end(elf);
    return is_it;
}

/* libdwfl asks for debug information outside the file itself. The client finds files, by this
 * build id or name; no server is asked. */
static int module_find_debug(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
                             const char *file, const char *link, GElf_Word crc, char **debug_name) {
    const unsigned char *id = NULL;
    GElf_Addr where;
    int len = dwfl_module_build_id(mod, &id, &where);
    size_t id_len = len > 0 ? (size_t)len : 0;
    (void)userdata, (void)name, (void)base, (void)file;
    *debug_name = NULL;
    for (uint32_t number = 0; id_len || link; number++) {
        int fd = symbols_serve_want(SYMBOLS_WANT_DEBUG, id, id_len, link, number);
        if (fd < 0)
            break;
        if (module_is_meant(fd, id, id_len, crc))
            return fd;
        close(fd);
    }
    return -1;
}

static int module_find_no_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
                              char **file, Elf **elf) {
    (void)mod, (void)userdata, (void)name, (void)base, (void)file, (void)elf;
    return -1;
}

/* Data shared by several debug files is in a file of its own (dwz), which libdw would open
 * itself. */
static void module_find_alt(struct symbols_file *f) {
    Dwarf_Addr bias;
    const char *name;
    const void *id, *found;
    Dwarf *dwarf = f->asked_alt ? NULL : dwfl_module_getdwarf(f->module, &bias);
    f->asked_alt = true;
    ssize_t len = dwarf ? dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id) : 0;
    for (uint32_t number = 0; len > 0; number++) {
        int fd = symbols_serve_want(SYMBOLS_WANT_ALT, id, (size_t)len, name, number);
        if (fd < 0)
            return;
        Dwarf *alt = dwarf_begin(fd, DWARF_C_READ);
        if (alt && dwelf_elf_gnu_build_id(dwarf_getelf(alt), &found) == len &&
            memcmp(found, id, (size_t)len) == 0) {
            dwarf_setalt(dwarf, alt);
            return;
        }
        if (alt)
            dwarf_end(alt);
        close(fd);
    }
}

/* ---- the symbol table ---- */

static int module_compare(const void *a, const void *b) {
    const struct symbols_entry *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* True if the symbol is code with a usable name. */
static bool module_is_code(const GElf_Sym *sym, GElf_Word section, Elf *elf) {
    GElf_Shdr sh;
    switch (GELF_ST_TYPE(sym->st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
        return section != SHN_UNDEF;
    case STT_NOTYPE: {
        Elf_Scn *scn = section != SHN_UNDEF && section < SHN_LORESERVE ? elf_getscn(elf, section) : NULL;
        return scn && gelf_getshdr(scn, &sh) && (sh.sh_flags & SHF_EXECINSTR);
    }
    default:
        return false;
    }
}

/* Rank of names for the same address: typed before untyped, public before private, then fewer
 * leading underscores first. */
static uint8_t module_rank(const GElf_Sym *sym, const char *name) {
    unsigned bind = GELF_ST_BIND(sym->st_info);
    unsigned rank = bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2;
    unsigned underscores = 0; /* counted up to a limit: a name may be as long as its file */
    while (underscores < 7 && name[underscores] == '_')
        underscores++;
    rank = rank * 8 + underscores;
    return (uint8_t)(rank + (GELF_ST_TYPE(sym->st_info) == STT_NOTYPE ? 32 : 0));
}

static void module_read_symbols(struct symbols_file *f) {
    int n = dwfl_module_getsymtab(f->module);
    f->entries = n > 0 ? calloc((size_t)n, sizeof *f->entries) : NULL;
    for (int i = 1; f->entries && i < n; i++) {
        GElf_Sym sym;
        GElf_Addr addr;
        GElf_Word section;
        Elf *elf;
        const char *name = dwfl_module_getsym_info(f->module, i, &sym, &addr, &section, &elf, NULL);
        if (!name || !name[0] || !module_is_code(&sym, section, elf))
            continue;
        if (native_role_of(name) == NATIVE_ROLE_LOOP && sym.st_size > f->loop_size) {
            f->loop = addr;
            f->loop_size = sym.st_size;
        }
        f->entries[f->n++] = (struct symbols_entry){
            .start = addr, .size = sym.st_size, .number = (uint32_t)i, .rank = module_rank(&sym, name)};
    }
    if (f->n)
        qsort(f->entries, f->n, sizeof *f->entries, module_compare);
}

/* Map without write permission: that counts as the file's memory and not as ours, which has a
 * limit. */
static Dwfl_Module *module_report(Dwfl *dwfl, int fd) {
#if _ELFUTILS_PREREQ(0, 188)
    struct stat st;
    Dwfl_Module *module = NULL;
    char *data = fstat(fd, &st) == 0 && st.st_size > 0
                     ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                     : MAP_FAILED;
    if (data != MAP_FAILED)
        module = dwfl_report_offline_memory(dwfl, "module", "module", data, (size_t)st.st_size);
    close(fd);
    return module;
#else
    Dwfl_Module *module = dwfl_report_offline(dwfl, "module", "module", fd);
    if (!module)
        close(fd);
    return module;
#endif
}

struct symbols_file *symbols_module_open(int fd) {
    static const Dwfl_Callbacks callbacks = {.find_elf = module_find_no_elf,
                                             .find_debuginfo = module_find_debug,
                                             .section_address = dwfl_offline_section_address};
    struct symbols_file *f = calloc(1, sizeof *f);
    if (f)
        f->dwfl = dwfl_begin(&callbacks);
    if (!f || !f->dwfl) {
        free(f);
        close(fd);
        return NULL;
    }
    dwfl_report_begin(f->dwfl);
    f->module = module_report(f->dwfl, fd);
    dwfl_report_end(f->dwfl, NULL, NULL);
    if (!f->module || !dwfl_module_getelf(f->module, &f->bias)) {
        dwfl_end(f->dwfl);
        free(f);
        return NULL;
    }
    module_read_symbols(f);
    return f;
}

/* ---- looking up ---- */

/* Name of the function at `at`, or NULL. */
static const char *module_symbol(const struct symbols_file *f, uint64_t at) {
    size_t low = 0, high = f->n;
    GElf_Sym sym;
    GElf_Addr addr;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->entries[middle].start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    uint64_t start = f->entries[low - 1].start, next = low < f->n ? f->entries[low].start : UINT64_MAX;
    while (low > 1 && f->entries[low - 2].start == start)
        low--;
    for (size_t i = low - 1; i < f->n && f->entries[i].start == start; i++) {
        const struct symbols_entry *e = &f->entries[i];
        if (e->size ? at - start < e->size : at < next)
            return dwfl_module_getsym_info(f->module, (int)e->number, &sym, &addr, NULL, NULL, NULL);
    }
    return NULL;
}

static const char *module_keep_name(const char *symbol, struct arena *text) {
    char name[SYMBOLS_MANGLED_MAX], plain[SYMBOLS_PLAIN_MAX];
    if (!symbol)
        return NULL;
    bool is_mangled = symbols_strip_version(symbol, name, sizeof name);
    return arena_strdup(text, is_mangled && symbols_name_plain(name, plain) ? plain : name);
}

/* The name of an inlined function: the linker's if there is one, for its namespace. */
static const char *module_die_name(Dwarf_Die *die) {
    Dwarf_Attribute attr;
    const char *linkage = NULL;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr))
        linkage = dwarf_formstring(&attr);
    return linkage ? linkage : dwarf_diename(die);
}

static int module_die_number(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attr;
    Dwarf_Word value;
    if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value) != 0 || value > INT32_MAX)
        return 0;
    return (int)value;
}

/* The call site of the inlined function: file and line. */
static void module_call_place(Dwarf_Die *cu, Dwarf_Die *die, struct arena *text, const char **file,
                              int *line) {
    Dwarf_Files *files;
    size_t n, number = (size_t)module_die_number(die, DW_AT_call_file);
    *line = module_die_number(die, DW_AT_call_line);
    *file = NULL;
    if (dwarf_getsrcfiles(cu, &files, &n) == 0 && number < n)
        *file = arena_strdup(text, dwarf_filesrc(files, number, NULL, NULL));
}

/* Functions inlined at `at`, innermost first, into `list`. `*file` and `*line` are the current
 * position; on return the call site of the last of them. Returns their number. */
static size_t module_inlined(struct symbols_file *f, uint64_t at, struct symbol *list, struct arena *text,
                             const char **file, int *line) {
    Dwarf_Addr bias;
    Dwarf_Die *cu = dwfl_module_addrdie(f->module, at, &bias), *scopes = NULL, *chain = NULL;
    size_t n = 0;
    if (!cu || dwarf_getscopes(cu, at - bias, &scopes) <= 0)
        return 0;
    int n_chain = dwarf_getscopes_die(&scopes[0], &chain);
    for (int i = 0; i < n_chain && n + 1 < SYMBOLS_MAX_INLINED; i++) {
        int tag = dwarf_tag(&chain[i]);
        if (tag == DW_TAG_subprogram)
            break;
        if (tag != DW_TAG_inlined_subroutine)
            continue;
        list[n++] = (struct symbol){
            .func = module_keep_name(module_die_name(&chain[i]), text), .file = *file, .line = *line};
        module_call_place(cu, &chain[i], text, file, line);
    }
    free(scopes);
    free(chain);
    return n;
}

/* True if the file has code at its own `address`. Code discarded by a linker keeps its lines, at
 * address 0. */
static bool module_has_code_at(const struct symbols_file *f, uint64_t address) {
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(f->module, &bias);
    size_t n = 0;
    if (!elf || elf_getphdrnum(elf, &n) != 0)
        return false;
    for (size_t i = 0; i < n && i <= INT_MAX; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD && (segment.p_flags & PF_X) &&
            address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_memsz)
            return true;
    }
    return false;
}

size_t symbols_module_find(struct symbols_file *f, uint64_t address, struct symbol *list, struct arena *text,
                           enum native_role *role) {
    uint64_t at = address + f->bias;
    const char *symbol = module_symbol(f, at), *file = NULL;
    int line = 0;
    *role = native_role_of(symbol);
    if (!symbol && f->loop && symbols_loop_has(f->module, f->loop, f->loop_size, at))
        *role = NATIVE_ROLE_LOOP;
    if (*role == NATIVE_ROLE_LOOP || *role == NATIVE_ROLE_LOOP_PART) {
        list[0].func = module_keep_name(symbol, text);
        return 1; /* its place in the source is unknown */
    }
    bool is_code = module_has_code_at(f, address);
    if (is_code)
        module_find_alt(f);
    Dwfl_Line *where = is_code ? dwfl_module_getsrc(f->module, at) : NULL;
    if (where)
        file = arena_strdup(text, dwfl_lineinfo(where, NULL, &line, NULL, NULL, NULL));
    size_t n = where ? module_inlined(f, at, list, text, &file, &line) : 0;
    list[n] = (struct symbol){.func = module_keep_name(symbol, text), .file = file, .line = line};
    return n + 1;
}
