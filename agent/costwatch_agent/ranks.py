"""Which process of a training run this is, from the environment of whatever started it."""

import os
import sys
from collections.abc import Mapping
from typing import Final

# Of torchrun and its like, Slurm, Open MPI, MPICH and Intel MPI, PMIx.
RANKS: Final = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
SIZES: Final = {
    "RANK": "WORLD_SIZE",
    "SLURM_PROCID": "SLURM_NTASKS",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK": "PMI_SIZE",
}


def place(environment: Mapping[str, str] = os.environ) -> tuple[int, int | None]:
    """The rank, and how many there are where that is known. A process on its own is rank 0."""
    torch_place = _place_in_torch()
    if torch_place is not None:
        return torch_place
    for name in RANKS:
        rank = environment.get(name, "")
        if rank.isdecimal():
            size = environment.get(SIZES.get(name, ""), "")
            return int(rank), int(size) if size.isdecimal() and int(size) > 0 else None
    return 0, None


def _place_in_torch() -> tuple[int, int] | None:
    """What torch.distributed says, where it is in use already; it is never imported here."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())
