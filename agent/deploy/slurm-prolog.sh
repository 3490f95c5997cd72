#!/bin/sh
# Slurm's Prolog (slurm.conf: Prolog=…): notes which GPUs a job was given, for
# costwatch-agent --jobs-folder /run/costwatch-jobs
# so that GPUs that are allocated and idle belong to the job too.
set -u
folder=/run/costwatch-jobs
mkdir -p "$folder" && chmod 755 "$folder"
umask 022
{
  echo "GPUS=${SLURM_JOB_GPUS:-}"
  # Where Slurm hands the prolog a job's comment: sbatch --comment=costwatch:project/run
  case "${SLURM_JOB_COMMENT:-}" in
    costwatch:*) echo "RUN=${SLURM_JOB_COMMENT#costwatch:}" ;;
  esac
} > "$folder/.$SLURM_JOB_ID" && mv "$folder/.$SLURM_JOB_ID" "$folder/$SLURM_JOB_ID"
exit 0 # a note that fails never drains a node
