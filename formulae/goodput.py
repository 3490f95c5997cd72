"""Expected goodput of a cluster that fails and restarts from checkpoints; not what was measured."""

import math
from dataclasses import dataclass

from formulae.units import S_PER_DAY, QuantityError, require_positive, require_range


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAdvice:
    """How often to write a checkpoint; steps are None where the time of a step is not known."""

    interval_s: float
    interval_steps: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodputBreakdown:
    """Where the billed time goes: the four fractions sum to 1."""

    nodes: int
    mean_time_between_failures_s: float
    checkpoint_interval_s: float
    goodput_fraction: float
    restart_loss_fraction: float
    rework_loss_fraction: float
    checkpoint_loss_fraction: float
    advice: CheckpointAdvice

    @property
    def failure_loss_fraction(self) -> float:
        """Restarts, and the work since the last checkpoint that is done again."""
        return self.restart_loss_fraction + self.rework_loss_fraction


def nodes_for(accelerators: int, accelerators_per_node: int) -> int:
    """Nodes that hold so many accelerators.

    nodes = ceil(accelerators / accelerators per node)

    Args:
        accelerators: count, >= 1.
        accelerators_per_node: count, >= 1; 8 in common servers, 4 in a GB200 tray.

    Returns:
        Nodes, a count.

    Raises:
        QuantityError: a count is below 1.

    Source: definition; a node is what fails as one.

    >>> nodes_for(16_384, 8), nodes_for(9, 8)
    (2048, 2)
    """
    require_range("accelerators", accelerators, low=1)
    require_range("accelerators_per_node", accelerators_per_node, low=1)
    return -(-accelerators // accelerators_per_node)


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


def checkpoint_advice(
    *,
    checkpoint_write_s: float,
    mean_time_between_failures_s: float,
    step_s: float | None = None,
) -> CheckpointAdvice:
    """The interval of Young and Daly in seconds, and in whole steps where a step's time is known.

    tau = sqrt(2 * w * M); steps = max(1, round(tau / step))

    Args:
        checkpoint_write_s: w, time that a checkpoint blocks training, s, > 0.
        mean_time_between_failures_s: M, of the whole job, s, > 0.
        step_s: time of one step, s, > 0.

    Returns:
        Seconds and steps between checkpoints.

    Raises:
        QuantityError: a quantity is out of its range.

    Source: Young 1974, CACM 17(9), p. 530; Daly 2006, FGCS 22(3), p. 303.

    >>> checkpoint_advice(
    ...     checkpoint_write_s=300, mean_time_between_failures_s=86_400, step_s=1.8
    ... )
    CheckpointAdvice(interval_s=7200.0, interval_steps=4000)
    """
    interval_s = young_daly_interval_s(
        checkpoint_write_s=checkpoint_write_s,
        mean_time_between_failures_s=mean_time_between_failures_s,
    )
    if step_s is None:
        return CheckpointAdvice(interval_s=interval_s, interval_steps=None)
    require_positive("step_s", step_s)
    return CheckpointAdvice(
        interval_s=interval_s, interval_steps=max(1, round(interval_s / step_s))
    )


def goodput_breakdown(
    *,
    nodes: int,
    failures_per_node_day: float,
    restart_s: float,
    checkpoint_write_s: float,
    checkpoint_interval_s: float | None = None,
    step_s: float | None = None,
) -> GoodputBreakdown:
    """The expected goodput, and what the rest of the billed time is lost to.

    restart = u0 / M; rework = tau / (2 M); ETTR = (1 - restart - rework) / (1 + w / tau);
    checkpoints = ETTR * w / tau; the four sum to 1

    Args:
        nodes: count, >= 1.
        failures_per_node_day: r, rate, 1/(node day), > 0.
        restart_s: u0, time to detect a failure and restart, s, >= 0.
        checkpoint_write_s: w, time that a checkpoint blocks training, s, > 0.
        checkpoint_interval_s: tau, s, > 0; the Young/Daly interval when left out.
        step_s: time of one step, s, > 0, for the advice in steps.

    Returns:
        Goodput and losses as fractions of the billed time, and the advised interval.

    Raises:
        QuantityError: failures eat all the time, or a quantity is out of its range.

    Source: Kokolis et al. 2025 (HPCA), arXiv:2410.21680, closed form of ETTR, term by term.

    >>> parts = goodput_breakdown(
    ...     nodes=2048, failures_per_node_day=0.00379, restart_s=900, checkpoint_write_s=60
    ... )
    >>> round(parts.goodput_fraction, 3), round(parts.failure_loss_fraction, 3)
    (0.824, 0.133)
    """
    failure_gap_s = mean_time_between_failures_s(
        nodes=nodes, failures_per_node_day=failures_per_node_day
    )
    advice = checkpoint_advice(
        checkpoint_write_s=checkpoint_write_s,
        mean_time_between_failures_s=failure_gap_s,
        step_s=step_s,
    )
    interval_s = advice.interval_s if checkpoint_interval_s is None else checkpoint_interval_s
    goodput_fraction = expected_goodput(
        nodes=nodes,
        failures_per_node_day=failures_per_node_day,
        restart_s=restart_s,
        checkpoint_write_s=checkpoint_write_s,
        checkpoint_interval_s=interval_s,
    )
    return GoodputBreakdown(
        nodes=nodes,
        mean_time_between_failures_s=failure_gap_s,
        checkpoint_interval_s=interval_s,
        goodput_fraction=goodput_fraction,
        restart_loss_fraction=restart_s / failure_gap_s,
        rework_loss_fraction=interval_s / 2 / failure_gap_s,
        checkpoint_loss_fraction=goodput_fraction * checkpoint_write_s / interval_s,
        advice=advice,
    )
