/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file on disk, and as one mapped where they say it is. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/elf.h"
#include "base/mem.h"

#define FUZZ_BASE 0x400000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_mapped(const uint8_t *data, size_t size) {
    struct mem m;
    struct elf_image img;
    uint64_t addr, len;
    mem_init_buffer(&m, data, size, FUZZ_BASE);
    if (elf_open_memory(&img, &m, FUZZ_BASE) != 0)
        return;
    (void)elf_find_symbol(&img, "probing_start", &addr, &len);
    (void)elf_find_symbol(&img, "_PyRuntime", &addr, NULL);
    (void)elf_find_symbol(&img, "", &addr, NULL);
    (void)elf_needs(&img, "libpython3.11.so.1.0");
    struct elf_function functions[] = {{.addr = FUZZ_BASE}, {.addr = FUZZ_BASE + 64}, {.addr = UINT64_MAX}};
    elf_find_functions(&img, functions, sizeof functions / sizeof functions[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1;
    struct elf_section section;
    uint64_t value;
    fuzz_mapped(data, size);
    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        return 0;
    (void)elf_find_section(fd, ".PyRuntime", &section);
    (void)elf_find_file_symbol(fd, "_PyRuntime", &value);
    return 0;
}
