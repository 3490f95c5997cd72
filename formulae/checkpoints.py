"""How large a checkpoint is and how long it stops training; how often to write one is goodput's."""

from typing import Final

from formulae.units import require_positive, require_range

CHECKPOINT_BYTES_PER_PARAM: Final = 14


def checkpoint_bytes(
    params: float, *, bytes_per_param: float = CHECKPOINT_BYTES_PER_PARAM
) -> float:
    """Size of one checkpoint from which training goes on.

    bytes = params * 14: bf16 weights, fp32 weights, mean and variance

    Args:
        params: all parameters, >= 1.
        bytes_per_param: published tables use 13 to 15.

    Returns:
        Bytes, over all accelerators.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: Rajbhandari et al. 2020, arXiv:1910.02054, without gradients; published: 8B 105 GB, 70B
        912 GB, 405B 5.3 TB, 1T 15 TB.

    >>> checkpoint_bytes(8e9)
    112000000000.0
    """
    require_range("params", params, low=1)
    require_positive("bytes_per_param (bytes)", bytes_per_param, high=32)
    return params * bytes_per_param


def blocking_write_s(size_bytes: float, *, bandwidth_bytes_per_s: float) -> float:
    """Time that a checkpoint stops training: its w in Young's formula.

    w = bytes / bandwidth

    Args:
        size_bytes: of the checkpoint, bytes, > 0.
        bandwidth_bytes_per_s: of the whole cluster, bytes/s, > 0: to storage when training waits
            for it, from accelerator to host memory when the rest is written behind its back.

    Returns:
        Seconds, s.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: definition.

    >>> blocking_write_s(checkpoint_bytes(8e9), bandwidth_bytes_per_s=2e9)
    56.0
    """
    require_positive("size_bytes (bytes)", size_bytes)
    require_positive("bandwidth_bytes_per_s (bytes/s)", bandwidth_bytes_per_s)
    return size_bytes / bandwidth_bytes_per_s
