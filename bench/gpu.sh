#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# All checks that need a GPU, a line each: "ok" or "FAILED", what, and the numbers. It takes minutes on a device of NVIDIA;
# without one it says so, and ends.
#
# usage: bench/gpu.sh [BUILD] [--only NAME[,NAME...]]        names: bench/gpu.sh --list
#        PYTHON=a Python with torch for CUDA

set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
'' | -*) ;;
*)
    PROBING_BUILD=$1
    shift
    ;;
esac
PROBING_BUILD=$(cd "${PROBING_BUILD:-build}" && pwd)
export PROBING_BUILD
exec "${PYTHON:-python3}" bench/support/gpu_checks.py "$@"
