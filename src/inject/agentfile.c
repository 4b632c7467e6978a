/* SPDX-License-Identifier: Apache-2.0 */
/* agentfile: see agentfile.h. */
#include "inject/agentfile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/agent_abi.h"
#include "base/elf.h"
#include "base/text.h"
#include "version.h"

/* Lay out the file's segments as the loader would, so that base/elf can read it as an image.
 * NULL if it is not one. */
static uint8_t *agentfile_lay_out(const uint8_t *bytes, size_t size, size_t *image_size) {
    Elf64_Ehdr eh;
    Elf64_Phdr ph;
    uint64_t end = 0;
    if (size < sizeof eh)
        return NULL;
    memcpy(&eh, bytes, sizeof eh);
    if (memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
        eh.e_type != ET_DYN || eh.e_machine != EM_X86_64 || eh.e_phentsize != sizeof ph ||
        eh.e_phoff > size || eh.e_phnum > (size - eh.e_phoff) / sizeof ph)
        return NULL;
    for (unsigned i = 0; i < eh.e_phnum; i++) {
        memcpy(&ph, bytes + eh.e_phoff + i * sizeof ph, sizeof ph);
        if (ph.p_type != PT_LOAD)
            continue;
        if (ph.p_offset > size || ph.p_filesz > size - ph.p_offset || ph.p_filesz > ph.p_memsz ||
            ph.p_memsz > AGENTFILE_MAX || ph.p_vaddr > AGENTFILE_MAX)
            return NULL;
        if (ph.p_vaddr + ph.p_memsz > end)
            end = ph.p_vaddr + ph.p_memsz;
    }
    uint8_t *image = end ? calloc(1, end) : NULL;
    for (unsigned i = 0; image && i < eh.e_phnum; i++) {
        memcpy(&ph, bytes + eh.e_phoff + i * sizeof ph, sizeof ph);
        if (ph.p_type == PT_LOAD)
            memcpy(image + ph.p_vaddr, bytes + ph.p_offset, ph.p_filesz);
    }
    *image_size = end;
    return image;
}

/* Find entry and version of an image. 0, or -2 if they are missing. */
static int agentfile_inspect(const struct elf_image *img, uint64_t *entry,
                             char version[AGENTFILE_VERSION_MAX]) {
    uint64_t at, size = 0;
    char raw[AGENTFILE_VERSION_MAX];
    if (elf_find_symbol(img, AGENT_ENTRY, entry, NULL) != 0 ||
        elf_find_symbol(img, AGENT_VERSION_SYMBOL, &at, &size) != 0 || size == 0)
        return -2;
    size_t n = size < sizeof raw ? (size_t)size : sizeof raw - 1;
    if (mem_read(img->mem, at, raw, n) != 0)
        return -2;
    raw[n] = '\0';
    text_sanitize(version, AGENTFILE_VERSION_MAX, raw);
    return 0;
}

int agentfile_version(const uint8_t *bytes, size_t size, char version[AGENTFILE_VERSION_MAX]) {
    size_t image_size = 0;
    uint64_t entry;
    struct mem mem;
    struct elf_image img;
    uint8_t *image = agentfile_lay_out(bytes, size, &image_size);
    if (!image)
        return -1;
    mem_init_buffer(&mem, image, image_size, 0);
    int rc = elf_open_memory(&img, &mem, 0) == 0 ? agentfile_inspect(&img, &entry, version) : -1;
    free(image);
    return rc;
}

static int agentfile_slurp(int fd, const char *path, uint8_t **bytes, size_t *size, struct err *e) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot read the agent %s", path);
    if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > AGENTFILE_MAX)
        return err_set(e, ERR_FAILED,
                       "%s is not the agent libprobing.so (no regular file, empty or too large)", path);
    uint8_t *buf = malloc((size_t)st.st_size);
    if (!buf)
        return err_set(e, ERR_FAILED, "out of memory while reading %s", path);
    size_t used = 0;
    while (used < (size_t)st.st_size) {
        ssize_t n = read(fd, buf + used, (size_t)st.st_size - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int saved = n < 0 ? errno : EIO;
            free(buf);
            return err_set_errno(e, ERR_FAILED, saved, "cannot read the agent %s", path);
        }
        used += (size_t)n;
    }
    *bytes = buf;
    *size = used;
    return 0;
}

int agentfile_read(const char *path, uint8_t **bytes, size_t *size, struct err *e) {
    char version[AGENTFILE_VERSION_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set_errno(e, ERR_FAILED, errno,
                             "cannot open the agent %s (set PROBING_AGENT to libprobing.so)", path);
    int rc = agentfile_slurp(fd, path, bytes, size, e);
    close(fd);
    if (rc != 0)
        return -1;
    rc = agentfile_version(*bytes, *size, version);
    if (rc == 0 && strcmp(version, PROBING_VERSION) == 0)
        return 0;
    free(*bytes);
    *bytes = NULL;
    if (rc == -1)
        return err_set(e, ERR_FAILED, "%s is not a 64-bit x86 shared library: give the path of libprobing.so",
                       path);
    if (rc == -2)
        return err_set(e, ERR_FAILED, "%s is not the agent: it has no %s; give the path of libprobing.so",
                       path, AGENT_ENTRY);
    return err_set(e, ERR_FAILED, "the agent %s is version %s, this program is %s: install both together",
                   path, version, PROBING_VERSION);
}

int agentfile_find_mapped(struct target *t, uint64_t *entry, struct err *e) {
    struct elf_image img;
    char version[AGENTFILE_VERSION_MAX];
    if (elf_open_memory(&img, &t->mem, t->images[t->agent].base) != 0 ||
        agentfile_inspect(&img, entry, version) != 0)
        return err_set(e, ERR_ATTACH,
                       "process %d has a library called " AGENT_MEMFD_NAME " loaded that is not our agent",
                       (int)t->pid);
    if (strcmp(version, PROBING_VERSION) != 0)
        return err_set(
            e, ERR_ATTACH,
            "process %d has the agent of version %s loaded, this program is %s: use that version, or restart "
            "the job",
            (int)t->pid, version, PROBING_VERSION);
    return 0;
}
