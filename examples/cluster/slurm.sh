#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#SBATCH --nodes=4 --ntasks-per-node=1 --gpus-per-node=8
#
# A job of Slurm that records itself: one relay on each host beside the ranks, which ends with them. The password is
# in ~/.config/probing-top/clickhouse-password (mode 0600).
URL=clickhouses://writer@clickhouse.example/probing

srun --overlap --ntasks-per-node=1 probing relay --to "$URL" --job "$SLURM_JOB_NAME-$SLURM_JOB_ID" &
relays=$!

srun torchrun --nnodes "$SLURM_NNODES" --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint "$(hostname):29400" \
    --rdzv-id "$SLURM_JOB_ID" train.py
status=$?

# what the last seconds have brought is written before they end
kill -TERM "$relays"
wait "$relays"
exit "$status"
