/* SPDX-License-Identifier: Apache-2.0 */
/*
 * old_glibc: what a C library before glibc 2.28 does not have, for programs that are to run with glibc 2.17
 * (make ZIG=1). Elsewhere this file is empty. As the functions of the same names; ENOSYS where the kernel
 * is older than the call. Any thread.
 */
#include <features.h>

#ifdef __GLIBC__
#if !__GLIBC_PREREQ(2, 28)
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t getrandom(void *out, size_t len, unsigned flags) { return syscall(SYS_getrandom, out, len, flags); }

int memfd_create(const char *name, unsigned flags) { return (int)syscall(SYS_memfd_create, name, flags); }

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *out) {
    return (int)syscall(SYS_statx, dir, path, flags, mask, out);
}
#endif
#endif
