"""Does the energy counter agree with the power? A continuous check of each device."""

import logging
from collections import deque
from dataclasses import dataclass, field
from typing import Final

log = logging.getLogger(__name__)
WINDOW_S: Final = 300.0  # compared: long enough for bursts to even out
SHORTEST_S: Final = 60.0
FEWEST_READINGS: Final = 6
MAX_STEP_S: Final = 60.0  # power is not integrated over a longer pause
LIMIT_FRACTION: Final = 0.05
CLEAR_FRACTION: Final = 0.04  # a flag goes only when well inside the limit


@dataclass(slots=True)
class _Watch:
    """One device: instants with the counter and the power's integral until then."""

    epoch: int
    points: deque[tuple[float, int, float]] = field(default_factory=deque)
    last_power_w: float = 0.0
    divergence: float | None = None
    flagged: bool = False


class CrossCheck:
    """Compares the counter's rise with the trapezoids of power over the last minutes."""

    def __init__(self) -> None:
        self._watches: dict[str, _Watch] = {}

    def add(
        self, uuid: str, *, at_s: float, counter_millijoule: int, power_w: float, epoch: int
    ) -> None:
        """Take a pair of readings; `at_s` of a clock that never steps."""
        watch = self._watches.get(uuid)
        if (
            watch is None
            or watch.epoch != epoch
            or not 0 < at_s - watch.points[-1][0] <= MAX_STEP_S
        ):
            flagged = watch.flagged if watch else False
            watch = _Watch(epoch=epoch, flagged=flagged)
            watch.points.append((at_s, counter_millijoule, 0.0))
            self._watches[uuid] = watch
        else:
            before_s, _, integral_j = watch.points[-1]
            integral_j += (at_s - before_s) * (watch.last_power_w + power_w) / 2
            watch.points.append((at_s, counter_millijoule, integral_j))
            while watch.points[-1][0] - watch.points[1][0] >= WINDOW_S:
                watch.points.popleft()
        watch.last_power_w = power_w
        self._judge(uuid, watch)

    def _judge(self, uuid: str, watch: _Watch) -> None:
        (start_s, start_millijoule, start_j), (end_s, end_millijoule, end_j) = (
            watch.points[0],
            watch.points[-1],
        )
        if end_s - start_s < SHORTEST_S or len(watch.points) < FEWEST_READINGS:
            return
        counted_j = (end_millijoule - start_millijoule) / 1000
        integrated_j = end_j - start_j
        most_j = max(counted_j, integrated_j)
        if most_j <= 0:
            watch.divergence = 0.0
            return
        watch.divergence = (integrated_j - counted_j) / most_j
        limit = CLEAR_FRACTION if watch.flagged else LIMIT_FRACTION
        diverges = abs(watch.divergence) > limit
        if diverges != watch.flagged:
            watch.flagged = diverges
            log.warning(
                "%s: over %.0f s the energy counter rose by %.0f J and power adds up to %.0f J: %s",
                uuid,
                end_s - start_s,
                counted_j,
                integrated_j,
                "they diverge by more than 5 %" if diverges else "they agree again",
            )

    def divergence(self, uuid: str) -> float | None:
        """(power - counter) over the larger of both; None where there is not enough to compare."""
        watch = self._watches.get(uuid)
        return watch.divergence if watch else None

    def flagged(self, uuid: str) -> bool:
        """Whether a device's counter and power disagree."""
        watch = self._watches.get(uuid)
        return watch.flagged if watch else False
