"""Expected goodput of a cluster that fails and restarts from checkpoints; not what was measured."""

import math

from formulae.units import S_PER_DAY, QuantityError, require_positive, require_range


def mean_time_between_failures_s(*, nodes: int, failures_per_node_day: float) -> float:
    """Mean time between failures that stop a job on this many nodes.

    M = 86400 / (nodes * r)

    Args:
        nodes: count, >= 1.
        failures_per_node_day: r, rate, 1/(node day), > 0; published clusters 0.0023 to 0.0065.

    Returns:
        Seconds, s.

    Source: Kokolis et al. 2025 (HPCA), arXiv:2410.21680.

    >>> mean_time_between_failures_s(nodes=100, failures_per_node_day=0.005)
    172800.0
    """
    require_positive("nodes", nodes)
    require_positive("failures_per_node_day", failures_per_node_day)
    return S_PER_DAY / (nodes * failures_per_node_day)


def young_daly_interval_s(
    *, checkpoint_write_s: float, mean_time_between_failures_s: float
) -> float:
    """Checkpoint interval that loses least time, to first order.

    tau = sqrt(2 * w * M)

    Args:
        checkpoint_write_s: w, time that a checkpoint blocks training, s, > 0.
        mean_time_between_failures_s: M, of the whole job, s, > 0.

    Returns:
        Seconds between checkpoints, s.

    Source: Young 1974, CACM 17(9), p. 530; Daly 2006, FGCS 22(3), p. 303.

    >>> young_daly_interval_s(checkpoint_write_s=50.0, mean_time_between_failures_s=10_000.0)
    1000.0
    """
    require_positive("checkpoint_write_s", checkpoint_write_s)
    require_positive("mean_time_between_failures_s", mean_time_between_failures_s)
    return math.sqrt(2 * checkpoint_write_s * mean_time_between_failures_s)


def expected_goodput(
    *,
    nodes: int,
    failures_per_node_day: float,
    restart_s: float,
    checkpoint_write_s: float,
    checkpoint_interval_s: float | None = None,
) -> float:
    """Expected effective training time ratio: the useful share of the billed time.

    ETTR = (1 - nodes * r * (u0 + tau / 2)) / (1 + w / tau)

    Hardware failures only: evaluation, loss spikes, ramp-up and queueing come on top.

    Args:
        nodes: count, >= 1.
        failures_per_node_day: r, rate, 1/(node day), > 0.
        restart_s: u0, time to detect a failure and restart, s, >= 0.
        checkpoint_write_s: w, time that a checkpoint blocks training, s, > 0.
        checkpoint_interval_s: tau, s, > 0; the Young/Daly interval when left out.

    Returns:
        Fraction, above 0, below 1.

    Raises:
        QuantityError: failures eat all the time; the closed form holds only while losses are small.

    Source: Kokolis et al. 2025 (HPCA), arXiv:2410.21680, closed form of ETTR.

    >>> ettr = expected_goodput(
    ...     nodes=32, failures_per_node_day=0.00379, restart_s=900, checkpoint_write_s=60
    ... )
    >>> round(ettr, 3)
    0.986
    """
    failure_gap_s = mean_time_between_failures_s(
        nodes=nodes, failures_per_node_day=failures_per_node_day
    )
    require_range("restart_s", restart_s, low=0)
    interval_s = checkpoint_interval_s
    if interval_s is None:
        interval_s = young_daly_interval_s(
            checkpoint_write_s=checkpoint_write_s, mean_time_between_failures_s=failure_gap_s
        )
    require_positive("checkpoint_write_s", checkpoint_write_s)
    require_positive("checkpoint_interval_s", interval_s)
    kept_fraction = 1 - (restart_s + interval_s / 2) / failure_gap_s
    if kept_fraction <= 0:
        raise QuantityError(
            f"a failure every {failure_gap_s:.0f} s leaves no useful time at a restart of "
            f"{restart_s:.0f} s and a checkpoint every {interval_s:.0f} s; lower one of them"
        )
    return kept_fraction / (1 + checkpoint_write_s / interval_s)
