#!/bin/bash
# A text in 8 shards, as a Slurm array:
#
#     sbatch examples/slurm_shards.sh MODEL INPUT OUTPUT
#     sbatch --dependency=afterok:JOB --wrap 'nmt-translate --merge --output OUTPUT'
#
# The tasks need not run at the same time, nor on the same machine. One that failed is repeated by itself with
# `sbatch --array=3 …`, so the number of shards stands here and is not taken from Slurm, which would then say 1.
#SBATCH --array=1-8
#SBATCH --cpus-per-task=2
#SBATCH --time=08:00:00
set -eu
shards=8
export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
nmt-translate --model "$1" --input "$2" --output "$3" --shard "$SLURM_ARRAY_TASK_ID/$shards"
