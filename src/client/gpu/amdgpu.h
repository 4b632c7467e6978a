/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amdgpu: GPUs of AMD, from the files of the kernel's driver (Documentation/gpu/amdgpu/thermal.rst and
 * misc.rst of Linux): no library, no process of theirs.
 */
#ifndef CLIENT_GPU_AMDGPU_H
#define CLIENT_GPU_AMDGPU_H

/* Where `class/drm` lies; "/sys" unless a test says otherwise. The text outlives its use. */
void amdgpu_set_root(const char *path);

#endif
