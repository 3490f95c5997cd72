#!/bin/sh
# Slurm's Epilog (slurm.conf: Epilog=…): the job's GPUs are free again.
rm -f "/run/costwatch-jobs/$SLURM_JOB_ID"
exit 0
