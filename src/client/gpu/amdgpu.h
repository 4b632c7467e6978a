/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amdgpu: GPUs of AMD, from the files of the kernel's driver (Documentation/gpu/amdgpu/thermal.rst and
 * misc.rst of Linux; for processes Documentation/gpu/drm-usage-stats.rst): no library, no process of theirs.
 */
#ifndef CLIENT_GPU_AMDGPU_H
#define CLIENT_GPU_AMDGPU_H

/* Where `class/drm` and the folders of processes lie; "/sys" and "/proc" unless a test says otherwise. The
 * texts outlive their use. */
void amdgpu_set_root(const char *sys, const char *proc);

#endif
