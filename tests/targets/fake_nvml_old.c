/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_old: fake_nvml with the functions of an old driver only. */
#define FAKE_NVML_OLD
#include "fake_nvml.c"
